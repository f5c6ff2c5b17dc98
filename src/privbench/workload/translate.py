"""A publisher's own queries with other literals, drawn from the model, so that the queries can be published.

Works on the syntax tree. Each literal is traced to the column that it is compared with, and one of like selectivity is
drawn from the model in its place (`model_values`), anew for every statement: which literals stand together in the file
is not told. A literal stays only if the publisher said that those of the file are public and it is a value of a
declared domain, or if the file was written by us from a model. A query with a literal that cannot be traced, or of a
form that could carry other words, is left out. A file of queries from real rows is refused.
"""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby
from pathlib import Path

from sqlglot import exp

from privbench.errors import SpecError
from privbench.model.arguments import model_of
from privbench.model.model import Model
from privbench.workload.literal import QueryDialect, Usage, affix_of, like, literal_of, pattern_parts
from privbench.workload.model_columns import ModelColumns
from privbench.workload.model_values import Drawn, ModelColumn, comparable
from privbench.workload.query import Literals, Statement, Workload
from privbench.workload.sql import dialect_of, workload_of
from privbench.workload.statement import query_of, read_statement
from privbench.workload.table_names import OutsideError, plain_tables, qualified_tables
from privbench.workload.trace import (
    Base,
    Compared,
    Derived,
    Resolver,
    check_form,
    literals_of,
    rename,
    round_limits,
)

_SHOWN = 3
"""How many reasons an error gives."""
_LOWER, _UPPER = (Usage.AT_LEAST, Usage.ABOVE), (Usage.AT_MOST, Usage.BELOW)


class Outcome(Enum):
    """What became of a literal, or of a whole statement."""

    KEPT = "kept"
    TRANSLATED = "translated"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One literal of one statement, before and after; or a statement that was left out, and why.

    Holds original literals: the list of changes is for the publisher only.
    """

    statement: int
    outcome: Outcome
    column: str | None = None
    before: str | None = None
    after: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """Queries to publish, and for the publisher alone what became of each literal of the original ones."""

    workload: Workload
    changes: tuple[Change, ...]
    numbers: tuple[int, ...]
    """The number that each published statement had in the original file."""
    structure: "Structure"

    @property
    def counts(self) -> dict[str, int]:
        """How many literals were kept and translated, and how many statements were left out."""
        counted = Counter(change.outcome for change in self.changes)
        return {outcome.value: counted[outcome] for outcome in Outcome}


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """What of the original queries is published as it is: everything but literals."""

    forms: tuple[tuple[int, ...], ...]
    """The numbers of published statements, those together that are the same but for their literals."""
    conditions: int
    joins: int

    def __str__(self) -> str:
        """Say it in words."""
        statements = sum(map(len, self.forms))
        return f"{statements} statements of {len(self.forms)} forms, {self.conditions} conditions, {self.joins} joins"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traced:
    """A statement whose literals were all traced to columns."""

    statement: Statement
    tree: exp.Expr
    literals: tuple[tuple[Compared, Base], ...]
    limits: tuple[tuple[str, str], ...]


def translate_workload(
    queries: Workload | Path | str,
    *,
    model: Model | Path | str,
    literals_are_public: bool = False,
    dialect: QueryDialect | str = QueryDialect.DUCKDB,
) -> Translation:
    """Put literals drawn from the model in the place of those of your own queries, so that they may be published.

    `queries` is a workload, the path of a file, or SQL itself. What is to be published is the `workload` of the
    result, for `write_workload`; its `changes` hold the original literals and are for you alone.

    Example::

        translation = privbench.translate_workload("private.sql", model="shop.model")
        privbench.write_workload(translation.workload, "q.sql")
    """
    loaded, spoken = model_of(model), dialect_of(dialect)
    original = workload_of(queries, dialect=spoken, schema=loaded.protection.schema)
    return translate(original, loaded, literals_are_public=literals_are_public, dialect=spoken)


def translate(
    workload: Workload,
    model: Model,
    *,
    literals_are_public: bool = False,
    dialect: QueryDialect = QueryDialect.DUCKDB,
    seed: int | None = None,
) -> Translation:
    """Put literals drawn from the model in the place of all others.

    With `literals_are_public` those stay that are values of a declared domain. Stated cardinalities and comments are
    left out: they are facts of the private data. Draws come from the operating system unless there is a seed; who
    knows the seed can test guesses of the original literals. SpecError if every statement is left out, or if the
    literals come from real rows.
    """
    if workload.literals is Literals.REAL:
        raise SpecError(
            "the workload says that its literals come from real rows (literals=real): how many queries there are of "
            "which form follows from these rows, so that no other literals make it publishable. Make one from the "
            "model: `privbench workload generate MODEL`."
        )
    traced: list[_Traced] = []
    changes: list[Change] = []
    drawing = _Drawing(model, workload.literals, is_public=literals_are_public, seed=seed, dialect=dialect)
    published: list[Statement] = []
    for statement in workload.statements:
        try:
            item = _trace(statement, model, dialect)
            made = list(drawing.apply(item))
            published.append(_rewritten(item, model, dialect))
        except (OutsideError, SpecError) as error:
            made = [_left_out(statement, error)]
        else:
            traced.append(item)
        changes += made
    if not published:
        raise SpecError(_nothing_left(changes))
    statements = tuple(replace(s, number=number) for number, s in enumerate(published, 1))
    structure = _structure(traced)
    notes = _notes(workload, changes, structure)
    return Translation(
        workload=Workload(statements=statements, literals=Literals.TRANSLATED, notes=notes),
        changes=tuple(changes),
        numbers=tuple(s.number for s in published),
        structure=structure,
    )


def _structure(traced: Sequence[_Traced]) -> Structure:
    """What statements have besides literals."""
    forms: dict[str, list[int]] = {}
    conditions = joins = 0
    for number, item in enumerate(traced, 1):
        bare = item.tree.transform(lambda node: exp.Placeholder() if isinstance(node, exp.Literal) else node)
        forms.setdefault(bare.sql(), []).append(number)
        tests = list(item.tree.find_all(exp.Predicate))
        between = sum(isinstance(t, exp.EQ) and _is_join(t) for t in tests)
        conditions, joins = conditions + len(tests) - between, joins + between
    return Structure(forms=tuple(map(tuple, forms.values())), conditions=conditions, joins=joins)


def _is_join(test: exp.EQ) -> bool:
    sides = (test.this, test.expression)
    return all(isinstance(side, exp.Column) for side in sides) and sides[0].table != sides[1].table


def _left_out(statement: Statement, error: Exception) -> Change:
    return Change(statement=statement.number, outcome=Outcome.LEFT_OUT, before=statement.sql, reason=str(error))


def _nothing_left(changes: Sequence[Change]) -> str:
    reasons = "; ".join(f"statement {c.statement} {c.reason}".rstrip(".") for c in changes[:_SHOWN])
    return f"no query is left to publish: {len(changes)} left out ({reasons}{'; ..' if len(changes) > _SHOWN else ''})."


def _notes(workload: Workload, changes: Sequence[Change], structure: Structure) -> tuple[str, ...]:
    """What the header of the published file says was done: numbers alone, no word of the original."""
    why = "declared public" if workload.literals is None else "drawn from a model before"
    counted = Counter(change.outcome for change in changes if change.column is not None)
    limits = sum(c.column is None and c.outcome is Outcome.TRANSLATED for c in changes)
    left_out = [str(c.statement) for c in changes if c.outcome is Outcome.LEFT_OUT]
    listed = f" (numbers {', '.join(left_out)} of the original file)" if left_out else ""
    return (
        f"Literals: {counted[Outcome.TRANSLATED]} translated (drawn from the model, of like selectivity), "
        f"{counted[Outcome.KEPT]} kept ({why}). LIMIT rounded or OFFSET dropped: {limits}.",
        f"Queries left out: {len(left_out)}{listed}.",
        f"As in the original queries: {structure}; tables, columns, operators, their order, and about how selective "
        "each condition is: no epsilon covers them. Literals were drawn anew for every statement.",
    )


def _trace(statement: Statement, model: Model, dialect: QueryDialect) -> _Traced:
    tree = read_statement(statement.sql, dialect)
    plain_tables(tree, model.protection.schema)
    resolver = Resolver(tree, model.protection.schema)
    for node in tree.find_all(exp.Column):
        if not node.is_star:
            resolver.resolve(node)
    literals: list[tuple[Compared, Base]] = []
    for compared in literals_of(tree):
        base = resolver.resolve(compared.column)
        if isinstance(base, Derived):
            raise OutsideError(f"compares a literal with {compared.column.name}, which the query computes")
        literals.append((compared, base))
    check_form(tree)
    limits = round_limits(tree)
    rename(tree, model.protection.schema)
    return _Traced(statement=statement, tree=tree, literals=tuple(literals), limits=tuple(limits))


def _rewritten(item: _Traced, model: Model, dialect: QueryDialect) -> Statement:
    sql = qualified_tables(item.tree, dialect).sql(dialect=dialect.value, comments=False)
    try:
        query, reason = query_of(read_statement(sql, dialect), dialect, model.protection.schema), None
    except OutsideError as error:
        query, reason = None, str(error)
    return replace(item.statement, sql=sql, query=query, reason=reason, cardinality=None)


class _Drawing:
    """Draws literals: what one becomes is remembered by column, among conditions of one statement that AND joins."""

    def __init__(
        self, model: Model, literals: Literals | None, *, is_public: bool, seed: int | None, dialect: QueryDialect
    ) -> None:
        self._columns = ModelColumns(model)
        self._dialect = dialect
        self._from_model = literals in (Literals.MODEL, Literals.TRANSLATED)
        self._is_public = is_public
        self._rng = random.SystemRandom() if seed is None else random.Random(seed)  # noqa: S311
        self._drawn: dict[Base, Drawn] = {}

    def apply(self, item: _Traced) -> Iterator[Change]:
        """Replace the literals of a statement in its tree; SpecError if one does not fit its column."""
        number = item.statement.number
        for compared, base in item.literals:
            if compared.usage is not Usage.PATTERN:
                comparable(".".join(base), self._columns.type_of(*self._columns.origin(*base)), compared.value)
        for old, new in item.limits:
            yield Change(statement=number, outcome=Outcome.TRANSLATED, before=old, after=new)
        groups = [(group, group[0][0].conjunction[0]) for group in _ranges(item.literals)]  # before the tree changes
        for group, conjunction in groups:
            drawn = self._of(self._columns.origin(*group[0][1]))
            drawn.scope = (number, conjunction)
            before = [self._sql(compared.node) for compared, _ in group]
            if all(self._stays(compared, drawn.column) for compared, _ in group):
                after, outcome = before, Outcome.KEPT
            else:
                after, outcome = self._replaced([compared for compared, _ in group], drawn), Outcome.TRANSLATED
            for (_, base), old, new in zip(group, before, after, strict=True):
                yield Change(statement=number, outcome=outcome, column=".".join(base), before=old, after=new)

    def _replaced(self, group: Sequence[Compared], drawn: Drawn) -> list[str]:
        first = group[0]
        if first.usage is Usage.PATTERN:
            return [self._pattern(first, drawn)]
        if len(group) == 2:
            low, high = sorted(group, key=lambda c: c.usage in _UPPER)
            ends = dict(zip((id(low), id(high)), drawn.bounds(low.value, high.value), strict=True))
            values = [ends[id(compared)] for compared in group]
        elif first.usage is Usage.EQUAL:
            values = [drawn.equal(first.value)]
        else:
            values = [drawn.bound(first.value, first.usage)]
        nodes = [literal_of(value) for value in values]
        for compared, node in zip(group, nodes, strict=True):
            compared.node.replace(node)
        return [self._sql(node) for node in nodes]

    def _pattern(self, compared: Compared, drawn: Drawn) -> str:
        """Replace a LIKE by one that asks for a piece of text of like selectivity, or by `=` if it has no wildcard."""
        test, parts = self._like_parts(compared)
        if not any(wild for _, wild in parts):
            new: exp.Expr = exp.EQ(
                this=compared.column.copy(), expression=literal_of(drawn.equal("".join(c for c, _ in parts)))
            )
        elif (asked := affix_of(parts)) is not None:
            new = like(compared.column.copy(), drawn.piece(*asked), asked[1])
        else:
            raise OutsideError("has a LIKE whose pattern is neither the start, the end nor an inner piece of text")
        test.replace(new)
        literal = new.find(exp.Literal)
        return "" if literal is None else self._sql(literal)

    def _like_parts(self, compared: Compared) -> tuple[exp.Expr, list[tuple[str, bool]]]:
        """The test of a LIKE with its ESCAPE, and its pattern taken apart."""
        test = compared.node.parent
        assert test is not None  # noqa: S101  a pattern stands in a LIKE
        declared = test.parent if isinstance(test.parent, exp.Escape) else None
        escape = declared.expression.name if declared else "\\" if self._dialect.backslash else None
        return declared or test, pattern_parts(str(compared.value), escape)

    def _stays(self, compared: Compared, column: ModelColumn) -> bool:
        if compared.usage is Usage.PATTERN:
            parts = self._like_parts(compared)[1]
            if parts == [("%", True)]:
                return True
            pieces = [p for p in "".join("\0" if wild else c for c, wild in parts).split("\0") if p]
            is_held = bool(pieces) and column.holds_pieces(pieces)
        else:
            is_held = column.holds(compared.value)
        return is_held and (self._from_model or (self._is_public and column.is_public))

    def _of(self, base: Base) -> Drawn:
        if base not in self._drawn:
            self._drawn[base] = Drawn(column=self._columns.column(*base), rng=self._rng)
        return self._drawn[base]

    def _sql(self, node: exp.Expr) -> str:
        return node.sql(dialect=self._dialect.value)


def _ranges(literals: Sequence[tuple[Compared, Base]]) -> Iterator[list[tuple[Compared, Base]]]:
    """Literals one by one, but the two ends of one range together."""

    def key(item: tuple[Compared, Base]) -> tuple[int, str]:
        return item[0].conjunction

    bounds = [item for item in literals if item[0].usage in (*_LOWER, *_UPPER)]
    yield from ([item] for item in literals if item not in bounds)
    for _, same in groupby(sorted(bounds, key=key), key):
        group = list(same)
        if len(group) == 2 and {c.usage in _UPPER for c, _ in group} == {False, True}:
            yield group
        else:
            yield from ([item] for item in group)
