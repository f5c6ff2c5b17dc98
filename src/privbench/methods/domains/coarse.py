"""A domain from the type alone, for columns of which nothing could be found, or only that most values are zero."""

from fractions import Fraction

from privbench.encode.grid import Grid, bins_on
from privbench.encode.guess import guess_shape
from privbench.encode.scalar import DAY, bounds_of, number_of
from privbench.encode.text import made_up_domain
from privbench.schema.domain import Domain
from privbench.schema.types import Kind, SqlType

_YEARS = ("1900-01-01", "2100-01-01")
_MOMENTS = 80
_HOURS = 24
_FLOATS = {32: Fraction(1, 100), 64: Fraction(1, 10**5)}
_FLOAT_DOUBLINGS = {32: 20, 64: 46}
_WHOLE_DOUBLINGS = 60


def coarse_domain(kind: SqlType, *, signed: bool = True, column: str = "", table: str = "") -> Domain:
    """Return equal cells of time, or cells between powers of two; without sign only those of zero and above.

    Texts are made up, in the shape that the names of column and table suggest.

    >>> from privbench.schema.types import parse_type
    >>> coarse_domain(parse_type("UTINYINT")).bins
    (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)
    """
    if kind.kind is Kind.TEXT:
        return made_up_domain(kind, shape=guess_shape(column, kind, table=table), unique=False)
    if kind.kind in (Kind.DATE, Kind.TIMESTAMP):
        low, high = (int(number_of("", kind, year)) for year in _YEARS)
        return bins_on(Grid(type=kind, step=Fraction(1)), _equal(low, high, _MOMENTS), ())
    if kind.kind is Kind.TIME:
        return bins_on(Grid(type=kind, step=Fraction(1)), _equal(0, DAY, _HOURS), ())
    if kind.kind is Kind.FLOAT:
        grid, doublings = Grid(type=kind, step=_FLOATS[kind.bits]), _FLOAT_DOUBLINGS[kind.bits]
    else:
        grid = Grid(type=kind, step=Fraction(1))
        doublings = min(max(map(abs, bounds_of(kind))).bit_length(), _WHOLE_DOUBLINGS)
    powers = [0, *(2**k for k in range(doublings + 1))]
    return bins_on(grid, (*(1 - p for p in powers if p and signed and grid.low < 0), *powers), ())


def _equal(low: int, high: int, parts: int) -> list[int]:
    return [low + (high - low) * part // parts for part in range(parts + 1)]
