"""Files of SQL to workloads and back: statements apart, `cardinality||` before them, comments left out.

The first line of a file that we write says for programs where its literals come from, the next lines say it for people.
A file that says `model` or `translated` carries a digest of its statements: one that was changed by hand says nothing.
"""

import hashlib
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import sqlglot
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from privbench.errors import SourceError, SpecError, first_line
from privbench.io.names import sql_comment
from privbench.io.staging import staged
from privbench.io.text import is_text
from privbench.schema.choices import closest
from privbench.schema.tables import Schema
from privbench.workload.literal import QueryDialect
from privbench.workload.query import Literals, Query, Statement, Workload
from privbench.workload.statement import query_of, read_statement
from privbench.workload.table_names import OutsideError

_MARK = re.compile(r"-- privbench: literals=(real|model|translated)(?: sha256=([0-9a-f]{64}))?")
_EXPLAINED = {
    Literals.REAL: (
        "PRIVATE: the literals, and which of them stand together, come from real rows. Do not publish this file.",
        "`privbench workload generate MODEL` makes one that can be published.",
    ),
    Literals.MODEL: ("The literals were drawn from a model or from its synthetic data; no private row was read.",),
    Literals.TRANSLATED: (),
}


def parse_workload(
    text: str, *, dialect: QueryDialect = QueryDialect.DUCKDB, schema: Schema | None = None, where: str = "workload"
) -> Workload:
    """Read statements, each with its query or the reason why it has none.

    `schema` finds the tables of columns that are not qualified. Raises SourceError if the text has no statement or
    cannot be taken apart (a quote that never ends).
    """
    try:
        tokens = sqlglot.tokenize(text, dialect=dialect.value)
    except SqlglotError as error:
        raise SourceError(f"{where}: is not SQL: {first_line(error)}") from None
    statements = tuple(
        _statement(text, number, group, dialect, schema) for number, group in enumerate(_groups(tokens), 1)
    )
    if not statements:
        raise SourceError(f"{where}: holds no statement. Write one query after another, each ended by `;`.")
    return Workload(statements=statements, literals=_declared(text))


def read_workload(
    path: Path | str, *, dialect: QueryDialect | str = QueryDialect.DUCKDB, schema: Schema | None = None
) -> Workload:
    """Read a file of SQL; `dialect` says whose SQL it is.

    Example::

        queries = privbench.read_workload("q.sql", dialect="postgres")
    """
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        problem = "is not UTF-8 text" if isinstance(error, UnicodeError) else "cannot be read"
        raise SourceError(f"{path}: {problem} ({getattr(error, 'strerror', None) or error}).") from None
    return parse_workload(text, dialect=dialect_of(dialect), schema=schema, where=str(path))


def workload_of(
    queries: Workload | Path | str, *, dialect: QueryDialect | str = QueryDialect.DUCKDB, schema: Schema | None = None
) -> Workload:
    """Queries as functions take them: a workload, the path of a file, or SQL itself."""
    if isinstance(queries, Workload):
        return queries
    if isinstance(queries, str) and is_text(queries):
        return parse_workload(queries, dialect=dialect_of(dialect), schema=schema)
    return read_workload(queries, dialect=dialect, schema=schema)


def dialect_of(name: QueryDialect | str) -> QueryDialect:
    """A dialect, or the one of that name."""
    try:
        return QueryDialect(name)
    except ValueError:
        choices = [dialect.value for dialect in QueryDialect]
        raise SpecError(f"dialect {name!r}: there is no such dialect. {closest(str(name), choices)}") from None


def write_workload(workload: Workload, path: Path | str, *, force: bool = False) -> None:
    """Write a file of SQL; it appears whole or not at all.

    Example::

        privbench.write_workload(queries, "q.sql", force=True)
    """
    with staged(Path(path), force=force) as temporary:
        temporary.write_text(workload_text(workload), encoding="utf-8", newline="\n")


def workload_text(workload: Workload) -> str:
    """Write a workload as the text of a file that `parse_workload` reads."""
    body = "".join(f"{_line(s)}\n" for s in workload.statements)
    header = [] if workload.literals is None else [_mark(workload.literals, body)]
    explained = () if workload.literals is None else _EXPLAINED[workload.literals]
    return "".join(f"{line}\n" for line in (*header, *map(comment, (*explained, *workload.notes)))) + body


def comment(text: str) -> str:
    r"""Write text as a comment of one line, whatever it holds, and whatever comment it stands in.

    >>> print(comment("a\n; DROP TABLE b */"))
    -- a\n; DROP TABLE b * /
    """
    return sql_comment(text).replace("*/", "* /").replace("/*", "/ *")


def _mark(literals: Literals, body: str) -> str:
    """The line that says for programs where literals come from."""
    digest = "" if literals is Literals.REAL else f" sha256={_digest(body)}"
    return f"-- privbench: literals={literals.value}{digest}"


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()


def _line(statement: Statement) -> str:
    prefix = "" if statement.cardinality is None else f"{statement.cardinality}||"
    return f"{prefix}{statement.sql};"


def _declared(text: str) -> Literals | None:
    """Where literals come from, if the file says so: `real` anywhere, the others in the header of an unchanged file."""
    lines = text.lstrip("\ufeff").split("\n")
    marks = [(at, mark) for at, line in enumerate(lines) if (mark := _MARK.fullmatch(line.strip()))]
    if any(mark[1] == Literals.REAL.value for _, mark in marks):
        return Literals.REAL
    if not marks or marks[0][0] != 0:
        return None
    body = next((at for at, line in enumerate(lines) if not line.startswith("--")), len(lines))
    return Literals(marks[0][1][1]) if _digest("\n".join(lines[body:])) == marks[0][1][2] else None


def _groups(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each statement. A stated cardinality at the start of a line begins one even without a `;`."""
    group: list[Token] = []
    for token, after in pairwise([*tokens, None]):
        assert token is not None  # noqa: S101  only the last one is
        ends = token.token_type is TokenType.SEMICOLON
        begins = group and token.line > group[-1].line and _states_rows(token, after)
        if (ends or begins) and group:
            yield group
            group = []
        if not ends:
            group.append(token)
    if group:
        yield group


def _states_rows(first: Token, second: Token | None) -> bool:
    counted = first.token_type is TokenType.NUMBER and first.text.isdecimal()
    return counted and second is not None and second.token_type is TokenType.DPIPE


def _statement(text: str, number: int, tokens: list[Token], dialect: QueryDialect, schema: Schema | None) -> Statement:
    cardinality: int | None = None
    if len(tokens) > 2 and _states_rows(tokens[0], tokens[1]):
        cardinality, tokens = int(tokens[0].text), tokens[2:]
    sql = text[tokens[0].start : tokens[-1].end + 1]
    query: Query | None = None
    reason: str | None = None
    try:
        query = query_of(read_statement(sql, dialect), dialect, schema)
    except OutsideError as error:
        reason = str(error)
    return Statement(number=number, sql=sql, query=query, reason=reason, cardinality=cardinality)
