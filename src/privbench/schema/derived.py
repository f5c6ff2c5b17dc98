"""Columns that are a function of the rows around them, and are therefore worked out instead of learnt.

Three kinds: how many rows of another table a row owns, a copy of a column of the row's owner, and the place of the row
among the rows of its owner. A derived column has no domain, is not measured and costs nothing. `possible` lists what
a column could equal by the schema: the choices that a spec has, and where a test is worth its cost.
"""

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator

from privbench.errors import SpecError
from privbench.schema.types import Kind

if TYPE_CHECKING:  # tables and the unit are built from derived columns
    from privbench.schema.tables import Column
    from privbench.schema.unit import Protection

Name = Annotated[str, Field(min_length=1, max_length=1000)]
WORDS = "`rows: TABLE` (how many of its rows this row owns), `owner: COLUMN` (a copy of the owner's) or `rank: 1`"


class DerivedOrigin(Enum):
    """Who says what a column equals: the publisher, a test of this fit, or a test of a fit before it."""

    DECLARED = "declared"
    FOUND = "found"
    EARLIER = "earlier release"


class Derived(BaseModel):
    """What a column is equal to: one of the three, in the words of the spec file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: Name | None = None
    """The table whose rows are counted: those that the row owns."""
    owner: Name | None = None
    """The column of the owner row that is copied."""
    rank: Annotated[StrictInt, Field(ge=0, le=1)] | None = None
    """The number of the first of an owner's rows; the next ones count on."""

    @model_validator(mode="after")
    def _one_word(self) -> "Derived":
        if sum(value is not None for value in (self.rows, self.owner, self.rank)) != 1:
            raise ValueError(f"say one of {WORDS}")
        return self

    def __str__(self) -> str:
        """Say what the column equals.

        >>> print(Derived(rows="person"), Derived(owner="region"), Derived(rank=0), sep="; ")
        rows of person; region of its owner; rank from 0
        """
        if self.rows is not None:
            return f"rows of {self.rows}"
        return f"rank from {self.rank}" if self.owner is None else f"{self.owner} of its owner"

    def words(self) -> dict[str, str | int]:
        """Write it as the spec file does.

        >>> Derived(rank=1).words()
        {'rank': 1}
        """
        words: dict[str, str | int] = self.model_dump(exclude_none=True)
        return words


def possible(protection: "Protection", table: str, name: str) -> Iterator[Derived]:
    """List what a column could equal, by the schema alone."""
    column, owner = protection.schema.table(table).column(name), protection.owners.get(table)
    if column.type.kind is Kind.INTEGER:
        yield from (Derived(rows=child) for child, key in protection.owners.items() if key.table == table)
    if owner is None:
        return
    if column.type.kind is Kind.INTEGER:
        yield from (Derived(rank=1), Derived(rank=0))
    yield from (Derived(owner=c.name) for c in protection.schema.table(owner.table).columns if _copies(column, c))


def check_derived(protection: "Protection") -> None:
    """Refuse a declared column that cannot equal what it should. Raises SpecError naming its path in the spec."""
    for table in protection.schema.tables:
        keys = {c for key in table.foreign_keys for c in key.columns} | {k[0] for k in table.keys if len(k) == 1}
        for column in table.columns:
            if column.derived is None:
                continue
            where = f"tables.{table.name}.columns.{column.name}.derived"
            if table.name not in protection.order:
                raise SpecError(f"{where}: {table.name} is public and copied as it is. Take this out.")
            if column.name in keys:
                raise SpecError(f"{where}: the column is a key, whose values are generated. Take this out.")
            choices = list(possible(protection, table.name, column.name))
            if column.derived not in choices:
                listed = ", ".join(_yaml(choice) for choice in choices) or "none"
                raise SpecError(
                    f"{where}: {_yaml(column.derived)} cannot be, by the tables' owner keys and the columns' types. "
                    f"Possible for {column.type.sql}{'' if column.nullable else ' NOT NULL'} here: {listed}."
                )


def _copies(column: "Column", other: "Column") -> bool:
    """Whether a column can hold every value of another."""
    return column.type == other.type and (column.nullable or not other.nullable)


def _yaml(derived: Derived) -> str:
    [(word, value)] = derived.words().items()
    return f"{{{word}: {value}}}"
