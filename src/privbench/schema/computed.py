"""Columns that follow from other columns by an expression, and are therefore computed instead of learnt.

An expression names columns of the row itself, of a row above it (`TABLE.COLUMN` of its owner, its owner's owner ..), of
a row of a public table that one of the row's keys references, or, inside COUNT, SUM, MIN, MAX and AVG, of rows below.
A computed column has no domain, is not measured and costs nothing. Three plain cases (`Equals`) are made together with
the rows, and can be found by a test: how many rows of another table a row owns, a copy of a column of the row's owner,
and the place of the row among the rows of its owner. `possible` lists which of these a column could be by the schema.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, StrictInt, model_validator

from privbench.deferred import exp
from privbench.errors import SpecError
from privbench.schema.expression import DIALECT, ColumnName, Expression, parse_expression
from privbench.schema.functions import why_refused
from privbench.schema.tables import Column, Place, Table
from privbench.schema.types import Kind

if TYPE_CHECKING:  # the unit asks which columns are computed
    from privbench.schema.unit import Link, Protection

Name = Annotated[str, Field(min_length=1, max_length=1000)]


class ComputedOrigin(Enum):
    """Who says what a column equals: the publisher, the schema, the data, a test of this fit, or of a fit before it."""

    DECLARED = "declared"
    SCHEMA = "schema"
    DATA = "data"
    FOUND = "found"
    EARLIER = "earlier release"


def _read(value: object) -> Expression:
    if isinstance(value, Expression):
        if (why := why_refused(value.tree)) is not None:
            raise ValueError(f"{why}; or take it out.")
        return value
    if not isinstance(value, str):
        raise ValueError("a SQL expression is wanted, such as price * quantity, COUNT(TABLE.*) or ROW_NUMBER()")
    try:
        return parse_expression(value, where="computed")
    except SpecError as error:
        raise ValueError(str(error)) from None


ExpressionText = Annotated[Expression, PlainValidator(_read), PlainSerializer(str, return_type=str)]
"""An expression as the spec file writes it."""


class Equals(BaseModel):
    """One of the three plain cases, in the words of receipts."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    rows: Name | None = None
    """The table whose rows are counted: those that the row owns."""
    owner: Name | None = None
    """The column of the owner row that is copied."""
    rank: Annotated[StrictInt, Field(ge=0, le=1)] | None = None
    """The number of the first of an owner's rows; the next ones count on."""

    @model_validator(mode="after")
    def _one_word(self) -> "Equals":
        if sum(value is not None for value in (self.rows, self.owner, self.rank)) != 1:
            raise ValueError("say one of `rows`, `owner` and `rank`")
        return self

    def __str__(self) -> str:
        """Say what the column equals.

        >>> print(Equals(rows="person"), Equals(owner="region"), Equals(rank=0), sep="; ")
        rows of person; region of its owner; rank from 0
        """
        if self.rows is not None:
            return f"rows of {self.rows}"
        return f"rank from {self.rank}" if self.owner is None else f"{self.owner} of its owner"

    def words(self) -> dict[str, str | int]:
        """Write it as a receipt does.

        >>> Equals(rank=1).words()
        {'rank': 1}
        """
        words: dict[str, str | int] = self.model_dump(exclude_none=True)
        return words

    def expression(self, owner: str | None) -> Expression:
        """Write it as the spec file does, for a table whose rows are owned by rows of `owner`.

        >>> print(Equals(rows="person").expression(None), Equals(owner="region").expression("home"))
        COUNT(person.*) home.region
        >>> print(Equals(rank=0).expression("home"))
        ROW_NUMBER() - 1
        """
        plain, quoted = self._written(owner), self._written(owner, quoted=True)
        return plain if equals_of(plain, owner) == self else quoted

    def _written(self, owner: str | None, *, quoted: bool | None = None) -> Expression:
        if self.rows is not None:
            star = exp.Column(this=exp.Star(), table=exp.to_identifier(self.rows, quoted=quoted))
            return Expression(sql=exp.Count(this=star, big_int=True).sql(DIALECT))
        if self.owner is not None and owner is not None:
            return Expression(sql=exp.column(self.owner, table=owner, quoted=quoted).sql(DIALECT))
        return Expression(sql="ROW_NUMBER()" if self.rank else "ROW_NUMBER() - 1")


def equals_of(expression: Expression, owner: str | None) -> Equals | None:
    """Recognise a plain case, in a table whose rows are owned by rows of `owner`; None for any other expression.

    >>> equals_of(parse_expression("home.region", where="computed"), "home")
    Equals(rows=None, owner='region', rank=None)
    """
    match expression.tree:
        case exp.Count(this=exp.Column(this=exp.Star()) as star):
            return Equals(rows=star.table)
        case exp.Column() as column if owner is not None and column.table == owner:
            return Equals(owner=column.name)
        case exp.RowNumber():
            return Equals(rank=1)
        case exp.Sub(this=exp.RowNumber(), expression=exp.Literal(this="1", is_string=False)):
            return Equals(rank=0)
    return None


def possible(protection: "Protection", table: str, name: str) -> Iterator[Equals]:
    """List which plain cases a column could be, by the schema alone."""
    column, owner = protection.schema.table(table).column(name), protection.owners.get(table)
    if column.type.kind is Kind.INTEGER:
        yield from (Equals(rows=child) for child, key in protection.owners.items() if key.table == table)
    if owner is None:
        return
    if column.type.kind is Kind.INTEGER:
        yield from (Equals(rank=1), Equals(rank=0))
    yield from (Equals(owner=c.name) for c in protection.schema.table(owner.table).columns if _copies(column, c))


def _copies(column: Column, other: Column) -> bool:
    """Whether a column can hold every value of another."""
    return column.type == other.type and (column.nullable or not other.nullable)


def public_paths(protection: "Protection", table: str) -> dict[str, tuple["Link", ...]]:
    """The public tables that a row of a table leads to, and by which keys; not those that it reaches in two ways."""
    public = {t.name for t in protection.schema.tables} - set(protection.order)
    paths: list[tuple[Link, ...]] = [(link,) for link in protection.links_of(table) if link.target in public]
    for path in paths:
        reached = {link.target for link in path}
        onwards = protection.links_of(path[-1].target)
        paths += [(*path, link) for link in onwards if link.target in public - reached]
    targets = [path[-1].target for path in paths]
    return {path[-1].target: path for path in paths if targets.count(path[-1].target) == 1}


def named_place(protection: "Protection", table: str, name: ColumnName) -> Place | None:
    """The column that an expression of a table names outside aggregates; None if there is none that it may name."""
    source = table if name.table is None else name.table
    reachable = {table, *protection.above(table), *public_paths(protection, table)}
    return _if_there(protection, source, name.column) if source in reachable else None


def aggregated_place(protection: "Protection", table: str, name: ColumnName) -> Place | None:
    """The column of the rows below that an expression names inside an aggregate; ``*`` is any row."""
    if name.table is None or name.table == table or table not in protection.above(name.table):
        return None
    return (name.table, "*") if name.column == "*" else _if_there(protection, name.table, name.column)


def _if_there(protection: "Protection", table: str, column: str) -> Place | None:
    return (table, column) if column in {c.name for c in protection.schema.table(table).columns} else None


def computed_order(protection: "Protection") -> tuple[Place, ...]:
    """All computed columns, each after those that it is computed from. Raises SpecError if they form a circle."""
    needs = computed_from(protection)
    order: dict[Place, None] = {}
    while len(order) < len(needs):
        left = [place for place in needs if place not in order]
        free = [place for place in left if not needs[place] & set(left)]
        if not free:
            around = [place for place in left if _reaches(place, place, needs)]
            raise SpecError(
                f"tables.{around[0][0]}.columns.{around[0][1]}.computed: {', '.join('.'.join(p) for p in around)} are "
                "computed from each other in a circle, so that none can be worked out first. Take `computed` out of "
                "one of them."
            )
        order |= dict.fromkeys(free)
    return tuple(order)


def computed_from(protection: "Protection") -> dict[Place, set[Place]]:
    """All computed columns, and the columns that each is computed from."""
    return {
        (table, c.name): set(_places(protection, table, c.computed))
        for table in protection.order
        for c in protection.schema.table(table).columns
        if c.computed is not None
    }


def _places(protection: "Protection", table: str, expression: Expression) -> Iterator[Place]:
    """The columns that an expression of a table is computed from."""
    named = [named_place(protection, table, name) for name in expression.columns]
    named += [aggregated_place(protection, table, name) for name in expression.aggregated]
    yield from (place for place in named if place is not None)


def _reaches(start: Place, end: Place, needs: Mapping[Place, set[Place]]) -> bool:
    reached, before = set(needs[start]), -1
    while len(reached) > before:
        before = len(reached)
        reached |= {after for place in reached for after in needs.get(place, ())}
    return end in reached


def late_columns(protection: "Protection") -> tuple[Place, ...]:
    """The computed columns that need rows which are made later, in the order in which they can be worked out.

    They hold aggregates of the rows below, but for a number of own rows, or are computed from such a column.
    """
    late: dict[Place, None] = {}
    for table, name in computed_order(protection):
        expression = protection.schema.table(table).column(name).computed
        assert expression is not None  # noqa: S101  it is computed
        waits = bool(expression.aggregated) and _plain_case(protection, table, name) is None
        if waits or not late.keys().isdisjoint(_places(protection, table, expression)):
            late[table, name] = None
    return tuple(late)


def _plain_case(protection: "Protection", table: str, name: str) -> Equals | None:
    """The plain case that a computed column is by its expression, the schema and its type."""
    expression = protection.schema.table(table).column(name).computed
    owner = protection.owners[table].table if table in protection.owners else None
    equals = None if expression is None else equals_of(expression, owner)
    return equals if equals in list(possible(protection, table, name)) else None


def equal_columns(protection: "Protection", table: str) -> dict[str, Equals]:
    """The computed columns of a private table that are plain cases, and made with its rows."""
    columns = [c.name for c in protection.schema.table(table).columns if c.computed is not None]
    late = set(late_columns(protection)) if columns else set()
    cases = {name: _plain_case(protection, table, name) for name in columns if (table, name) not in late}
    return {name: equals for name, equals in cases.items() if equals is not None}


def row_columns(protection: "Protection", table: str) -> tuple[str, ...]:
    """The computed columns of a table that are worked out from its rows and those above, in a fitting order."""
    apart = {(table, name) for name in equal_columns(protection, table)} | set(late_columns(protection))
    return tuple(name for owner, name in computed_order(protection) if owner == table and (table, name) not in apart)


def named_elsewhere(protection: "Protection", table: str) -> set[Place]:
    """The columns of other tables that the computed columns of a table are made from, when its rows are made."""
    columns = [protection.schema.table(table).column(name) for name in row_columns(protection, table)]
    places = {place for c in columns if c.computed is not None for place in _places(protection, table, c.computed)}
    return {place for place in places if place[0] != table}


def check_computed(protection: "Protection") -> None:
    """Refuse a computed column that cannot be. Raises SpecError naming its path in the spec."""
    for table in protection.schema.tables:
        for column in (c for c in table.columns if c.computed is not None):
            where = f"tables.{table.name}.columns.{column.name}.computed"
            if table.name in protection.made_up:
                _check_made_up(where, table, column)
                continue
            if table.name not in protection.order:
                raise SpecError(f"{where}: {table.name} is public and copied as it is. Take this out.")
            _check_keys(where, protection, table, column)
            _check_functions(where, protection, table.name, column)
            _check_names(where, protection, table.name, column)
    for table_name, name in late_columns(protection):
        _check_late(protection, table_name, name)


def _check_made_up(where: str, table: Table, column: Column) -> None:
    """A row that is made up from the schema is worked out from itself alone."""
    expression = column.computed
    assert expression is not None  # noqa: S101  it is computed
    drawn = {c.name for c in table.columns if c.computed is None}
    if expression.aggregated or any(name.table is not None or name.column not in drawn for name in expression.columns):
        raise SpecError(
            f"{where}: rows of {table.name} are made up, each by itself: only columns of the row can be named that are "
            "not computed. Take this out."
        )


def _check_late(protection: "Protection", table: str, name: str) -> None:
    """What waits for the rows below is computed from them and from the row itself: nothing else is there in the end."""
    expression = protection.schema.table(table).column(name).computed
    named = () if expression is None else expression.columns
    other = next((n for n in named if n.table not in (None, table)), None)
    if other is not None:
        raise SpecError(
            f"tables.{table}.columns.{name}.computed: {other} is of another table, but the column is computed in the "
            f"end, from aggregates or from a column that waits for them, and beside these only columns of {table} can "
            f"be named. Take it out, or compute a column of {table} from it first and name that."
        )


def _check_keys(where: str, protection: "Protection", table: Table, column: Column) -> None:
    """Keys have values of their own; in one of several columns a rank may stand, or another plain case."""
    foreign = {c for key in table.foreign_keys for c in key.columns}
    plain = _plain_case(protection, table.name, column.name) is not None
    keys = [key for key in table.keys if column.name in key and (len(key) == 1 or not plain)]
    if column.name in foreign or keys:
        raise SpecError(f"{where}: the column is in a key, whose values are generated. Take this out, or the key.")


def _check_functions(where: str, protection: "Protection", table: str, column: Column) -> None:
    tree = column.computed.tree if column.computed is not None else exp.Null()
    if tree.find(exp.RowNumber) and _plain_case(protection, table, column.name) is None:
        raise SpecError(
            f"{where}: ROW_NUMBER() is the place of a row among those of its owner, for an integer column of an owned "
            "table. Write ROW_NUMBER() or ROW_NUMBER() - 1 and nothing else, or take this out."
        )
    for node in tree.find_all(exp.AggFunc):
        if node.find_ancestor(exp.AggFunc) is not None:
            raise SpecError(
                f"{where}: {node.sql('duckdb')[:80]}: the rows below are asked for COUNT, SUM, MIN, MAX and AVG, none "
                "inside another."
            )
        tables = {c.table for c in node.find_all(exp.Column)}
        if len(tables) != 1:
            raise SpecError(
                f"{where}: {node.sql('duckdb')[:80]}: an aggregate is of columns of one table, each written "
                "`TABLE.COLUMN`; `COUNT(TABLE.*)` counts rows."
            )


def _check_names(where: str, protection: "Protection", table: str, column: Column) -> None:
    expression = column.computed
    assert expression is not None  # noqa: S101  it is computed
    _check_there(
        where, expression.columns, lambda name: named_place(protection, table, name), _reach(protection, table)
    )
    below = [t for t in protection.order if t != table and table in protection.above(t)]
    listed = f"An aggregate is of rows that {table} owns: of {', '.join(below) or 'no table'}."
    _check_there(where, expression.aggregated, lambda name: aggregated_place(protection, table, name), listed)


def _check_there(
    where: str, names: tuple[ColumnName, ...], place: Callable[[ColumnName], Place | None], choices: str
) -> None:
    for name in names:
        if place(name) is None:
            raise SpecError(
                f"{where}: there is no column {name} that it can be computed from, or it is dropped. {choices}"
            )


def _reach(protection: "Protection", table: str) -> str:
    above = ", ".join(protection.above(table)) or "none"
    public = ", ".join(public_paths(protection, table)) or "none"
    return (
        f"A bare name is a column of {table}; `TABLE.COLUMN` one of an owner ({above}), or of a public table that its "
        f"keys lead to in one way ({public})."
    )
