"""Columns that are a function of the rows around them, and are therefore worked out instead of learnt.

Three kinds: how many rows of another table a row owns, a copy of a column of the row's owner, and the place of the row
among the rows of its owner. A derived column has no domain, is not measured and costs nothing.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StrictInt, model_validator

Name = Annotated[str, Field(min_length=1, max_length=1000)]
WORDS = "`rows: TABLE` (how many of its rows this row owns), `owner: COLUMN` (a copy of the owner's) or `rank: 1`"


class Derived(BaseModel):
    """What a column is equal to: one of the three, in the words of the spec file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: Name | None = None
    """The table of which the row owns so many rows."""
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
        found: dict[str, str | int] = self.model_dump(exclude_none=True)
        return found
