"""The vault of columns whose domain is found with budget: a few measured queries, and no other door to raw values.

Like `vault.Vault`: every query is charged to the ledger before the data are touched, answers are integers with noise,
recorded and locked, and with a tape of answers instead of data a search is replayed. Counts are weights, so that
one entity moves each of them by at most UNITS in L1, however many rows it has; or votes, of which an entity has one
(docs/proofs/domains.md).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.grid import Grid
from privbench.encode.magnitude import Magnitudes, steps_of
from privbench.privacy.events import UNITS, Currency, Event
from privbench.privacy.gaussian import discrete_gaussian
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import Entropy, discrete_laplace
from privbench.privacy.price import Noise, drawable, price_frequent, price_noise, threshold_of
from privbench.privacy.raw import RawColumn
from privbench.privacy.sparse import sparse_histogram
from privbench.privacy.thresholds import passing
from privbench.schema.types import SqlType

Place = tuple[str, str]
"""A table and a column."""
Answer = NDArray[Any]
"""Integers; frequent texts are objects, each a row of a text and its noisy count."""
QUERIES_PER_COLUMN = 2
"""No column is asked more often for its frequent values: the delta for thresholds is shared so."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """Noisy counts in entities, and their noise."""

    counts: NDArray[np.float64]
    noise: Noise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HeavyHitters:
    """Ticks whose noisy counts came out above a threshold, ascending, and these counts in entities."""

    ticks: tuple[int, ...]
    counts: NDArray[np.float64]
    noise: Noise


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Texts:
    """Texts that came out at a threshold or above, in the order of their code points, and their counts in entities."""

    texts: tuple[str, ...]
    counts: NDArray[np.float64]
    noise: Noise


def magnitudes_query(column: str) -> str:
    """How the ledger calls the first query of a column that is not text."""
    return f"magnitudes of {column}"


def texts_query(column: str) -> str:
    """How the ledger calls the first query of a column of texts."""
    return f"texts of {column}"


def frequent_query(column: str) -> str:
    """How the ledger calls the query for frequent texts."""
    return f"frequent values of {column}"


def heavy_hitters_query(column: str) -> str:
    """How the ledger calls the query for single values with large counts."""
    return f"heavy_hitters of {column}"


def lone_share(thresholds: Fraction, columns: int) -> Fraction:
    """The part of the delta for thresholds that each query for frequent values gets."""
    return thresholds / (QUERIES_PER_COLUMN * columns)


class DomainVault:
    """Raw columns behind measured queries. Exactly one of `data` and `tape` is given; `types` is public."""

    def __init__(
        self,
        types: Mapping[Place, SqlType],
        data: Mapping[Place, RawColumn] | None,
        *,
        ledger: Ledger,
        entropy: Entropy,
        tape: Sequence[Answer] | None = None,
    ) -> None:
        if (data is None) == (tape is None):
            raise ValueError("give the vault either data or a tape")
        self.types = types
        self.answers: list[Answer] = []
        self._ledger = ledger
        self._scope = ledger.root.sequential("domains")
        self._entropy = entropy
        self._data = data
        self._tape = iter(tape or ())

    def __repr__(self) -> str:
        return "<private columns>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a vault cannot be pickled")

    @property
    def budget(self) -> Fraction:
        """What the ledger may spend in all."""
        return self._ledger.budget

    @property
    def currency(self) -> Currency:
        """What amounts are in."""
        return self._ledger.currency

    @property
    def spent(self) -> Fraction:
        """What was spent on domains."""
        return self._scope.total

    def drawable(self, amount: Fraction) -> bool:
        """Whether a query can be measured for so little."""
        enough = amount * self.currency.grid >= 1
        return enough and drawable(self.currency, amount, sensitivity=UNITS)

    @property
    def finds_heavy_hitters(self) -> bool:
        """Whether heavy hitters can be measured: with Laplace noise, whose zeros can be drawn, or with a threshold."""
        return self.currency is Currency.EPSILON or self._ledger.thresholds > 0

    def least_count(self, amount: Fraction) -> int:
        """How many entities, less or more by noise, a value must have to come out."""
        return threshold_of(self.currency, amount, delta=self._lone)

    def magnitudes(self, place: Place, *, amount: Fraction) -> Measured:
        """Entities by the order of magnitude of their values."""
        size = Magnitudes(type=self.types[place]).size
        return self._counts(place, magnitudes_query(place[1]), RawColumn.magnitudes, draws=size, amount=amount)

    def steps(self, place: Place, *, amount: Fraction) -> Measured:
        """Entities by the coarsest step that their values lie on, the last for none; zeros are not counted."""
        draws = len(steps_of(self.types[place])) + 1
        return self._counts(place, f"steps of {place[1]}", RawColumn.steps, draws=draws, amount=amount)

    def cells(
        self,
        place: Place,
        grid: Grid,
        *,
        starts: Sequence[int],
        last: int,
        without: Sequence[int] = (),
        amount: Fraction,
    ) -> Measured:
        """Entities by cells of ticks, from each start to the next, the last one to `last`; some ticks left out."""
        return self._counts(
            place,
            f"cells of {place[1]}",
            lambda column: column.cells(grid, starts, last, without),
            draws=len(starts),
            amount=amount,
        )

    def heavy_hitters(
        self, place: Place, grid: Grid, *, low: int, high: int, false: float, amount: Fraction
    ) -> HeavyHitters:
        """The ticks of low .. high with large counts.

        Without a delta about `false` of them are there by noise alone; with one, none.
        """
        if self.currency is not Currency.EPSILON:
            return self._frequent_ticks(place, grid, low=low, high=high, amount=amount)
        width = high - low + 1
        event = self._charge(place, heavy_hitters_query(place[1]), draws=width, amount=amount)
        above = max(0, math.ceil(float(event.scale) * math.log(max(width / (2 * false), 1.0))))

        def noisy(column: RawColumn) -> Answer:
            places, counts = column.ticks(grid, low, high)
            return sparse_histogram(
                places, counts, low=low, high=high, above=above, scale=event.scale, entropy=self._entropy
            )

        found = self._answer(place, noisy)
        return HeavyHitters(ticks=tuple(found[:, 0].tolist()), counts=found[:, 1] / UNITS, noise=_noise(event))

    def texts(self, place: Place, *, amount: Fraction) -> Measured:
        """How many entities have a text: a single count."""
        return self._counts(place, texts_query(place[1]), RawColumn.voters, draws=1, amount=amount)

    def frequent(self, place: Place, *, without: Sequence[str] = (), amount: Fraction) -> Texts:
        """The texts that enough entities vote for; nobody votes for those in `without`."""
        event = self._charge_frequent(place, frequent_query(place[1]), amount=amount)

        def noisy(column: RawColumn) -> Answer:
            values, votes = column.voted_values(without)
            kept, counts = self._passing(votes, event)
            return _by_text(values.filter(pa.array(kept)), counts)

        found = self._answer(place, noisy)
        texts, counts = found[:, 0].tolist(), found[:, 1].astype(np.float64)
        return Texts(texts=tuple(texts), counts=counts, noise=_noise(event, unit=1))

    def _frequent_ticks(self, place: Place, grid: Grid, *, low: int, high: int, amount: Fraction) -> HeavyHitters:
        event = self._charge_frequent(place, heavy_hitters_query(place[1]), amount=amount)

        def noisy(column: RawColumn) -> Answer:
            ticks, votes = column.voted_ticks(grid, low, high)
            kept, counts = self._passing(votes, event)
            return np.stack([ticks[kept], counts], axis=1)

        found = self._answer(place, noisy)
        return HeavyHitters(
            ticks=tuple(found[:, 0].tolist()), counts=found[:, 1].astype(np.float64), noise=_noise(event, unit=1)
        )

    @property
    def _lone(self) -> Fraction:
        """The chance that each query may have to let out a value of one entity alone."""
        return lone_share(self._ledger.thresholds, len(self.types))

    def _charge_frequent(self, place: Place, query: str, *, amount: Fraction) -> Event:
        """Pay for values of which each entity has one."""
        event = price_frequent(self.currency, place[0], query, amount=amount, delta=self._lone)
        self._scope.charge(event)
        return event

    def _passing(self, votes: NDArray[np.int64], event: Event) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        return passing(votes, threshold=event.threshold, scale=event.scale, entropy=self._entropy)

    def _counts(
        self, place: Place, query: str, exact: Callable[[RawColumn], Answer], *, draws: int, amount: Fraction
    ) -> Measured:
        event = self._charge(place, query, draws=draws, amount=amount)
        draw = discrete_gaussian if event.mechanism.concentrated else discrete_laplace

        def noisy(column: RawColumn) -> Answer:
            return exact(column) + draw(draws, event.scale, self._entropy)

        return Measured(counts=self._answer(place, noisy) / UNITS, noise=_noise(event))

    def _charge(self, place: Place, query: str, *, draws: int, amount: Fraction) -> Event:
        """Pay for counts that one entity moves by at most UNITS in L1, all in the same direction."""
        event = price_noise(
            self.currency,
            place[0],
            query,
            sensitivity=UNITS,
            amount=amount,
            draws=draws,
            weighted=True,
            additive=True,
        )
        self._scope.charge(event)
        return event

    def _answer(self, place: Place, noisy: Callable[[RawColumn], Answer]) -> Answer:
        """A noisy answer, or the one on the tape; recorded, and locked so that the record stays what it was."""
        answer = noisy(self._data[place]) if self._data is not None else next(self._tape, None)
        if answer is None:
            raise RuntimeError("the tape has fewer answers than the run that replays it asks for")
        answer.setflags(write=False)
        self.answers.append(answer)
        return answer


def _noise(event: Event, *, unit: int = UNITS) -> Noise:
    return Noise(gaussian=event.mechanism.concentrated, scale=float(event.scale / unit))


def _by_text(values: pa.Array, counts: NDArray[np.int64]) -> Answer:
    """Texts and their counts in an order that says nothing about rows; what is not Unicode is no text."""
    pairs = zip(values.cast(pa.binary()).to_pylist(), counts.tolist(), strict=True)
    found = sorted((raw.decode(), count) for raw, count in pairs if raw.decode(errors="ignore").encode() == raw)
    return np.array(found, dtype=object).reshape(-1, 2)
