"""Domains whose edges are ticks of a grid, written as the spec file writes them."""

from collections.abc import Iterable

from privbench.encode.grid import Grid
from privbench.encode.scalar import step_scalar
from privbench.schema.domain import Bins, Range, Scalar
from privbench.schema.types import Kind

_BEYOND = (Kind.INTEGER, Kind.DECIMAL, Kind.TIME)
"""The kinds that can write one tick beyond their last; others cannot."""


def range_on(grid: Grid, first: int, last: int) -> Range:
    """Every tick from the first to the last is a cell."""
    return Range(range=(grid.scalar(first), grid.scalar(last)), step=_step(grid))


def bins_on(grid: Grid, edges: Iterable[int], heavy_hitters: Iterable[int]) -> Bins:
    """Cells between the edges that the type can hold (at least two are needed there), heavy hitters cut out of them."""
    within = sorted({min(max(edge, grid.low), grid.high + (grid.type.kind in _BEYOND)) for edge in edges})
    inside = sorted({heavy_hitter for heavy_hitter in heavy_hitters if within[0] <= heavy_hitter < within[-1]})
    return Bins(
        bins=tuple(grid.scalar(edge) for edge in within),
        heavy_hitters=tuple(grid.scalar(heavy_hitter) for heavy_hitter in inside),
        step=_step(grid),
    )


def _step(grid: Grid) -> Scalar | None:
    """The step, unless it is the type's own; a float has none of its own."""
    own = grid.step == 1 and grid.type.kind is not Kind.FLOAT
    return None if own else step_scalar(grid.type, grid.step)
