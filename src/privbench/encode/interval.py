"""Range and Bins: ordered columns whose cells are intervals of ticks.

The outer cells are open when encoding: what lies below or above goes to the nearest one. Decoding draws between
the outer edges as declared (held inside the type's bounds): uniform on the grid, log-uniform where a cell of
positive numbers spans more than a factor of 2.5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.grid import Grid
from privbench.encode.layout import Codes, LaidOut, one_array
from privbench.encode.predicate import All, Between, OfValues, Predicate, Prefix
from privbench.schema.domain import Scalar
from privbench.schema.types import Kind

LOG_RATIO = 2.5
_NUMBERS = (Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class IntervalCodec(LaidOut):
    """Cell i holds the ticks first[i] .. last[i]; the next cell starts right after. Compiled by `codec`."""

    grid: Grid
    first: NDArray[np.int64]  # (cells,)
    last: NDArray[np.int64]  # (cells,)
    ordered: bool = True

    def encode(self, values: pa.Array | pa.ChunkedArray) -> Codes:
        """Return the code of each value."""
        ticks = self.grid.ticks(one_array(values))
        if self._value_by_value:
            cells = np.clip(ticks, self.first[0], self.last[-1]) - self.first[0]
        else:
            cells = np.searchsorted(self.first[1:], ticks, side="right")
        return self.layout.pack(cells, values)

    def decode(self, codes: Codes, rng: np.random.Generator, *, first_row: int) -> pa.Array:  # noqa: ARG002
        """Draw a value from the cell of each code."""
        nulls = self.layout.nulls(codes)
        cells = np.where(nulls, 0, codes)
        ticks = self.first[cells]
        if not self._value_by_value:
            ticks = (ticks.view(np.uint64) + self._offsets(cells, rng.random(len(cells)))).view(np.int64)
        return self.grid.values(ticks, nulls=nulls)

    def coverage(self, predicate: Predicate | All) -> NDArray[np.float64]:
        """Return the share of each cell that satisfies the predicate."""
        return self.layout.coverage(predicate, self._shares)

    def at(self, cell: int, share: float) -> Scalar:
        """Return the value below which that share of a cell's values lies, by the law that decode draws from."""
        offset = int(self._offsets(np.array([cell]), np.array([share]))[0])
        return self.grid.scalar(int(self.first[cell]) + offset)

    def labels(self) -> tuple[str, ...]:
        """Return a value, or an interval, per code."""
        starts, ends = self._texts(self.first), self._texts(self.last)
        names = [a if a == b else f"{a} .. {b}" for a, b in zip(starts, ends, strict=True)]
        return self.layout.labels(names)

    @property
    def _value_by_value(self) -> bool:
        return bool(np.array_equal(self.first, self.last))

    @property
    def _spans(self) -> NDArray[np.uint64]:
        """Ticks of each cell beyond its first; unsigned, because a cell may span more than half of int64."""
        return np.asarray(self.last.view(np.uint64) - self.first.view(np.uint64))

    @property
    def _logs(self) -> NDArray[np.float64]:
        """log(end / start) of the cells that are drawn log-uniformly, 0 for the others."""
        starts = np.maximum(self.first, 1).astype(np.float64)
        ratios = (self.last.astype(np.float64) + 1) / starts
        chosen = (self.first > 0) & (ratios > LOG_RATIO) & (self.grid.type.kind in _NUMBERS)
        return np.log(np.where(chosen, ratios, 1.0))

    def _offsets(self, cells: NDArray[np.int_], share: NDArray[np.float64]) -> NDArray[np.uint64]:
        spans, logs = self._spans, self._logs
        offsets = share * (spans.astype(np.float64) + 1)[cells]
        bent = logs[cells] > 0
        if bent.any():
            chosen = cells[bent]
            offsets[bent] = self.first[chosen] * np.expm1(share[bent] * logs[chosen])
        return np.minimum(offsets.astype(np.uint64), spans[cells])

    def _shares(self, parts: tuple[OfValues, ...]) -> NDArray[np.float64]:
        runs: set[tuple[int, int]] = {(int(self.first[0]), int(self.last[-1]))}
        for part in parts:
            met = ((max(a, c), min(b, d)) for a, b in runs for c, d in self._runs(part))
            runs = {(low, high) for low, high in met if low <= high}
        return self.layout.spread(sum((self._share(a, b) for a, b in runs), np.zeros(len(self.first))))

    def _runs(self, predicate: OfValues) -> Sequence[tuple[int, int]]:
        """Return the runs of ticks that satisfy the predicate, first and last included; no two of them meet."""
        low, high = int(self.first[0]), int(self.last[-1])
        if isinstance(predicate, Prefix):
            return []
        if isinstance(predicate, Between):
            if predicate.low is not None:
                low = max(low, _at_least(self.grid.position(self.where, predicate.low), predicate.include_low))
            if predicate.high is not None:
                high = min(high, -_at_least(-self.grid.position(self.where, predicate.high), predicate.include_high))
            return [(low, high)] if low <= high else []
        places = {self.grid.position(self.where, v) for v in predicate.values}
        return [(int(p), int(p)) for p in places if p.denominator == 1 and low <= p <= high]

    def _share(self, low: int, high: int) -> NDArray[np.float64]:
        """Return the share of each cell that a run of ticks covers, by the law that decode draws from."""
        a = np.clip(self.first, low, None)
        b = np.clip(self.last, None, high)
        met = a <= b
        counts = np.where(met, b.view(np.uint64) - a.view(np.uint64), 0).astype(np.float64) + met
        logs = self._logs
        bent = met & (logs > 0)
        shares = counts / (self._spans.astype(np.float64) + 1)
        ends = np.where(bent, b, 1).astype(np.float64) + 1
        return np.where(bent, np.log(ends / np.where(bent, a, 1)) / np.where(bent, logs, 1), shares)

    def _texts(self, ticks: NDArray[np.int64]) -> list[str]:
        values = self.grid.values(ticks, nulls=np.zeros(len(ticks), dtype=bool))
        texts: list[str] = values.cast(pa.string()).to_pylist()
        return texts


def _at_least(place: Fraction, inclusive: bool) -> int:
    """Return the first tick at or above (or, exclusive, above) a place."""
    return ceil(place) if inclusive else floor(place) + 1
