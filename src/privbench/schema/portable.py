"""Expressions as systems write them, in words that all of them share, before anything else reads them.

PostgreSQL writes `x IN ('a', 'b')` as `x = ANY (ARRAY['a'::text, 'b'::text])`, MySQL puts the character set before each
text, and each has its own word for the bytes of a text. What has no such form stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce

from privbench.deferred import exp

_MOST = 2_000
"""A comparison with all members of an array is written out up to so many parts."""
_MEMBER = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([^,"\\{}]*[^,"\\{}\s]))\s*(,|$)', re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")

_SIMILAR = {"%": ".*", "_": ".", ".": r"\.", "^": r"\^", "$": r"\$"}


def portable(tree: exp.Expr) -> exp.Expr:
    """The expression with lists as IN and without the marks that only its own system understands.

    >>> import sqlglot
    >>> text = "upper((x)::text) <> ALL ((ARRAY['A'::character varying, 'B'::character varying])::text[])"
    >>> portable(sqlglot.parse_one(text, dialect="postgres")).sql("duckdb")
    "NOT UPPER(CAST((x) AS TEXT)) IN ('A', 'B')"
    """
    tree = tree.copy()
    for node in reversed(list(tree.walk())):  # those inside come first
        new = _portable(node)
        if new is not node:
            tree = new if node is tree else tree
            node.replace(new)
    return tree


def spoken(tree: exp.Expr, dialect: str) -> exp.Expr:
    """An expression in DuckDB's words with those that another system has another word for, which sqlglot does not know.

    >>> import sqlglot
    >>> spoken(sqlglot.parse_one("STRLEN(x) < 9", dialect="duckdb"), "postgres").sql("postgres")
    'OCTET_LENGTH(x) < 9'
    """

    def said(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Anonymous) or node.name.upper() != "STRLEN" or dialect == "duckdb":
            return node
        if dialect == "sqlite":
            return exp.Length(this=exp.cast(node.expressions[0], "BLOB"))
        return exp.func("OCTET_LENGTH", *node.expressions)

    return tree.transform(said)


def _portable(node: exp.Expr) -> exp.Expr:
    match node:
        case exp.Introducer(expression=exp.Expr() as text):
            return text
        case exp.Cast():
            return _uncast(node)
        case exp.Length() if node.args.get("binary"):
            return exp.func("STRLEN", node.this)
        case exp.Anonymous() if node.name.lower() == "octet_length" and len(node.expressions) == 1:
            return exp.func("STRLEN", node.expressions[0])
        case exp.RegexpLike(expression=exp.Anonymous() as pattern) if pattern.name.lower() == "similar_to_escape":
            return _similar(node, pattern)
        case exp.Binary() if (quantified := _quantified(node.expression)) is not None:
            return _members_compared(node, *quantified)
    return node


def _uncast(node: exp.Cast) -> exp.Expr:
    """A literal without a cast that says only what it is; what is cast to a type of the source's own, without it."""
    inner: exp.Expr = node.this
    to = node.to
    if to.this is exp.DataType.Type.USERDEFINED:
        return inner
    if not isinstance(inner, exp.Literal) or not inner.is_string or to.expressions:
        return node
    if to.this in exp.DataType.TEXT_TYPES or to.this is exp.DataType.Type.BPCHAR:
        return inner
    return _number(inner.name) or node if to.this in exp.DataType.NUMERIC_TYPES else node


def _number(text: str) -> exp.Expr | None:
    if not _NUMBER.fullmatch(text):
        return None
    digits = exp.Literal.number(text.lstrip("-"))
    return exp.Neg(this=digits) if text.startswith("-") else digits


def _quantified(node: exp.Expr | None) -> tuple[bool, list[exp.Expr]] | None:
    """Read ANY (is it any?) or ALL of an array, with the members."""
    if isinstance(node, exp.Any | exp.All):
        members = _members(node.this)
    elif isinstance(node, exp.Anonymous) and node.name.upper() in ("ANY", "ALL") and len(node.expressions) == 1:
        members = _members(node.expressions[0])
    else:
        return None
    return None if not members else (isinstance(node, exp.Any) or node.name.upper() == "ANY", members)


def _members(node: exp.Expr) -> list[exp.Expr] | None:
    """The members of an array that is written out: ARRAY['a', 'b'] or '{a,b}'::text[]."""
    node = node.unnest()
    if isinstance(node, exp.Array):
        return [_member(member) for member in node.expressions]
    if not isinstance(node, exp.Cast) or node.to.this is not exp.DataType.Type.ARRAY:
        return None
    inner = node.this.unnest()
    if isinstance(inner, exp.Literal) and inner.is_string and node.to.expressions:
        return _members_in(inner.name, node.to.expressions[0])
    return _members(inner)


def _member(node: exp.Expr) -> exp.Expr:
    """A member without brackets, and without casts of one kind of number to another."""
    inner = node.unnest()
    while isinstance(inner, exp.Cast) and inner.to.this in exp.DataType.NUMERIC_TYPES:
        inner = inner.this.unnest()
    number = inner.this if isinstance(inner, exp.Neg) else inner
    return inner if isinstance(number, exp.Literal) and not number.is_string else node.unnest()


def _members_in(text: str, of: exp.DataType) -> list[exp.Expr] | None:
    """The members of an array that PostgreSQL writes as one text; None for an array of arrays."""
    members: list[exp.Expr] = []
    rest, more = text.strip()[1:-1], True
    while more:
        match = _MEMBER.match(rest)
        if match is None:
            return None
        quoted, bare, comma = match.groups()
        word = re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) if bare is None else bare
        null = bare is not None and bare.upper() == "NULL"
        members.append(exp.Null() if null else _uncast(exp.Cast(this=exp.Literal.string(word), to=of.copy())))
        rest, more = rest[match.end() :], bool(comma)
    return members


def _members_compared(node: exp.Binary, is_any: bool, members: Sequence[exp.Expr]) -> exp.Expr:
    """A comparison with any, or with all, members of an array: a list, or one comparison after another."""
    if isinstance(node, exp.EQ) and is_any:
        return exp.In(this=node.this, expressions=[*members])
    if isinstance(node, exp.NEQ) and not is_any:
        return exp.Not(this=exp.In(this=node.this, expressions=[*members]))
    if len(members) * sum(1 for _ in node.this.walk()) > _MOST:
        return node
    join: Callable[..., exp.Expr] = exp.or_ if is_any else exp.and_
    return exp.paren(reduce(join, (_with(node, member) for member in members)), copy=False)


def _with(node: exp.Binary, other: exp.Expr) -> exp.Expr:
    compared = node.copy()
    compared.set("expression", other)
    return compared


def _similar(node: exp.Expr, call: exp.Anonymous) -> exp.Expr:
    """`x SIMILAR TO 'a%'` as a regular expression of the whole text; with an ESCAPE of its own it stays as it is."""
    pattern = call.expressions[0]
    if len(call.expressions) != 1 or not isinstance(pattern, exp.Literal):
        return node
    parts = re.split(r"(\\.|\[[^\]]*\])", pattern.name, flags=re.DOTALL)  # every second one stands for itself
    words = [part if at % 2 else re.sub(r"[%_.^$]", lambda m: _SIMILAR[m[0]], part) for at, part in enumerate(parts)]
    return exp.RegexpLike(this=node.this, expression=exp.Literal.string(f"^(?:{''.join(words)})$"))
