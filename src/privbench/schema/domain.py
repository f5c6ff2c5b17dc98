"""Domains: what is public about the values of a column, in the words of the spec file.

A domain is total: every value a column could hold falls in one of its cells, out-of-domain values in the
nearest cell or in OTHER, so that no error ever depends on a private value. `encode.codec` compiles a domain
and a type to a codec. NULL is not part of a domain; it is the column's `null`.
"""

from enum import Enum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from privbench.schema.types import LONGEST_BITS, Kind, SqlType

MAX_CELLS = 4096
"""More cells than this in one column drown in noise at any usable budget, so they are refused."""

Scalar = bool | int | Annotated[float, Field(allow_inf_nan=False)] | str
"""A value as YAML and JSON write it; dates, times and decimals are ISO or decimal strings."""


class Origin(Enum):
    """Where a domain comes from. PRIVATE is found with budget by this fit, EARLIER by a fit before it.

    DATA makes the guarantee conditional; EARLIER makes it one of several releases, whose costs add up.
    """

    DECLARED = "declared"
    SCHEMA = "schema"
    PRIVATE = "private"
    DATA = "data"
    EARLIER = "earlier release"


MOST_DISTINCT = 10_000_000
"""More different numbers than this to draw from are as good as all of them."""
MOST_OTHERS = 1_000_000
LONGEST_SHAPE = 200

Skew = Annotated[float, Field(ge=0, le=4, allow_inf_nan=False)]
"""How unevenly made-up values repeat: that of rank k is drawn about k ** -skew as often as the first; 0 is even."""
EVEN_SKEW, USUAL_SKEW = 0.0, 1.0
Shape = Annotated[str, Field(min_length=1, max_length=LONGEST_SHAPE)]
"""What made-up strings look like: the name of a shape, or a pattern such as AA-9999. `encode.shapes` reads it."""


class _Domain(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Range(_Domain):
    """Every value from the first to the last, in steps, is a cell of its own (narrow integers, dates, decimals)."""

    range: tuple[Scalar, Scalar]
    step: Scalar | None = None


class Bins(_Domain):
    """Cells between ascending edges, [e0, e1), [e1, e2) ..; the outer two are open. Heavy hitters have their own.

    `step` is the grid that values lie on (0.01 for cents, 1 for integers and dates, "1s" .. "1d" for timestamps);
    without it the type's own resolution holds. `distinct` is how many different values there are (default: every
    value of the grid); they repeat as `skew` says.
    """

    bins: Annotated[tuple[Scalar, ...], Field(min_length=2)]
    heavy_hitters: tuple[Scalar, ...] = ()
    step: Scalar | None = None
    distinct: Annotated[int, Field(gt=0, le=MOST_DISTINCT)] | None = None
    skew: Skew = USUAL_SKEW

    @model_validator(mode="after")
    def _skew_of_something(self) -> "Bins":
        return _needs_distinct(self)


class Values(_Domain):
    """A list of values, each a cell; `other` adds a cell for what is not listed (text only).

    OTHER stands for `others` made-up strings (default: 64 that are drawn evenly), of a `shape` if there is one, which
    repeat as `skew` says.
    """

    values: Annotated[tuple[Scalar, ...], Field(min_length=1, max_length=MAX_CELLS)]
    other: bool = False
    others: Annotated[int, Field(gt=0, le=MOST_OTHERS)] | None = None
    shape: Shape | None = None
    skew: Skew = USUAL_SKEW

    @model_validator(mode="after")
    def _distinct(self) -> "Values":
        if len(set(map(str, self.values))) < len(self.values):
            raise ValueError("a value is listed twice")
        if not self.other and (self.others is not None or self.shape is not None):
            raise ValueError("others and shape say what OTHER stands for: write `other: true`, or take them out")
        if self.others is None and self.skew != USUAL_SKEW:
            raise ValueError("skew is how `others` repeat: write how many there are, or take it out")
        return self


class Text(_Domain):
    """Free or unique text: no value is learnt, strings are made up. Cells are ranges of lengths.

    `lengths` are ascending edges of length cells; `distinct` is how many different strings to make up
    (default: a new one for each row), which repeat as `skew` says. `shape` is what they look like.
    """

    text: Annotated[tuple[int, ...], Field(min_length=2)]
    distinct: Annotated[int, Field(gt=0)] | None = None
    shape: Shape | None = None
    skew: Skew = USUAL_SKEW

    @model_validator(mode="after")
    def _skew_of_something(self) -> "Text":
        return _needs_distinct(self)


class Serial(_Domain):
    """Unique values without meaning (a second key): numbered anew, nothing learnt but the share of NULLs."""

    serial: Literal[True] = True


Domain = Range | Bins | Values | Text | Serial
_Pooled = TypeVar("_Pooled", Bins, Text)


def _needs_distinct(domain: _Pooled) -> _Pooled:
    if domain.distinct is None and domain.skew != USUAL_SKEW:
        raise ValueError("skew is how `distinct` values repeat: write how many there are, or take it out")
    return domain


def implied_by_type(of: SqlType) -> Domain | None:
    """Give BOOLEAN its two values, an ENUM its labels, a short BIT(n) its bits; no other type lists its own."""
    if of.kind is Kind.BOOLEAN:
        return Values(values=(False, True))
    if 0 < len(set(of.labels)) == len(of.labels) <= MAX_CELLS:
        return Values(values=of.labels)
    if of.sql.startswith("BIT") and of.syntax == "bits" and (of.length or 0) in range(1, LONGEST_BITS + 1):
        return Values(values=tuple(f"{bits:0{of.length}b}" for bits in range(2 ** (of.length or 0))))
    return None


def never_repeats(domain: Domain | None) -> bool:
    """Tell whether each row gets a value of its own, as a UNIQUE column needs.

    >>> never_repeats(Serial()), never_repeats(Text(text=(0, 8))), never_repeats(Text(text=(0, 8), distinct=9))
    (True, True, False)
    """
    return isinstance(domain, Serial) or (isinstance(domain, Text) and domain.distinct is None)


def domain_json(domain: Domain) -> dict[str, Any]:
    """Write the domain as the spec file writes it.

    >>> domain_json(Range(range=(0, 9)))
    {'range': [0, 9]}
    """
    return domain.model_dump(mode="json", exclude_defaults=not isinstance(domain, Serial))
