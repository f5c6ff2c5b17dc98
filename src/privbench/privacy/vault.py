"""The vault: the only holder of an engine, and so the only way to private rows.

Nothing leaves it but integers with noise. Each query is charged to the ledger before the rows are touched, and refused
if it does not fit the budget. With a tape of recorded answers and no engine the vault replays a run: whatever a method
makes must come out the same, which is how the tests show that nothing flows past the ledger.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codecs
from privbench.privacy.blocks import Block, CentrePair, Side
from privbench.privacy.calibrate import Noise, calibrate, calibrate_published, drawable
from privbench.privacy.engine import Engine, Exact
from privbench.privacy.events import Event, PrivacyMeasure
from privbench.privacy.facts import ColumnFacts, LinkFacts
from privbench.privacy.features import Difference
from privbench.privacy.gaussian import discrete_gaussian
from privbench.privacy.ledger import Ledger, Scope
from privbench.privacy.noise import Entropy, discrete_laplace
from privbench.privacy.part_counter import ValueCounts
from privbench.privacy.partitions import Centres
from privbench.privacy.published import published_row_split
from privbench.privacy.queries import Choice, Counted, FrequentValues, HeavyHitters, Histogram, PublishedRowSplit
from privbench.privacy.select import exponential_mechanism, permute_and_flip
from privbench.privacy.sparse import sparse_histogram
from privbench.privacy.thresholds import passing

Answer = NDArray[Any]
"""Integers; strings and their counts are objects, a row each."""
Request = tuple[Counted, Fraction]
"""A query, and the amount of budget that it may cost."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measured:
    """Noisy counts, their noise in entities, and what an entity counts."""

    values: NDArray[np.int64]
    noise: Noise
    unit: int
    keys: tuple[Any, ...] = ()
    """Of heavy hitters: the ticks or strings that were let out, in order."""

    @property
    def counts(self) -> NDArray[np.float64]:
        """The counts in entities; where rows count, in rows."""
        return self.values / self.unit

    @property
    def total(self) -> float:
        """The sum of all counts."""
        return float(self.counts.sum())


class Vault:
    """Private rows behind two verbs: `measure` and `choose`. Either an engine or a tape is given."""

    def __init__(
        self, engine: Engine | None, *, ledger: Ledger, entropy: Entropy, tape: Sequence[Answer] | None = None
    ) -> None:
        if (engine is None) == (tape is None):
            raise ValueError("give the vault either an engine or a tape")
        self.ledger = ledger
        self.answers: list[Answer] = []
        self._entropy = entropy
        self._engine = engine
        self._tape = iter(tape or ())
        self._caps: dict[str, int] = {}
        self._splits = 0
        self._parts: dict[tuple[str, tuple[tuple[int, bool], ...]], Scope] = {}
        """The scope of each part of a table that was split here."""

    def __repr__(self) -> str:
        return "<vault>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a vault cannot be pickled")

    # -- what an amount buys -----------------------------------------------------------------------------------

    @property
    def privacy_measure(self) -> PrivacyMeasure:
        """What amounts are in."""
        return self.ledger.measure

    @property
    def noise_is_private(self) -> bool:
        """Whether nobody can predict or repeat the noise."""
        return self._entropy.private

    def drawable(self, amount: Fraction, *, sensitivity: int) -> bool:
        """Whether noise for so much sensitivity and so little budget can be drawn at all."""
        return drawable(self.privacy_measure, amount, sensitivity=sensitivity)

    # -- the two verbs -----------------------------------------------------------------------------------------

    def measure(
        self, query: Counted, amount: Fraction, scope: Scope | None = None, *, delta: Fraction = Fraction(0)
    ) -> Measured:
        """Answer a query by noisy counts for so much budget, charged to a scope or to that of the query's block."""
        return self.measure_all([(query, amount)], scope, delta=delta)[0]

    def measure_all(
        self, requests: Sequence[Request], scope: Scope | None = None, *, delta: Fraction = Fraction(0)
    ) -> list[Measured]:
        """The same for several queries at once: all are charged, then all are counted in one batch."""
        events = [
            calibrate(query, self.privacy_measure, amount, delta=_part(query, delta)) for query, amount in requests
        ]
        for (query, _), event in zip(requests, events, strict=True):
            self._check_caps(query)
            self._scope_of(query, scope).charge(event)
        exact = [None] * len(events) if self._engine is None else self._engine.count([query for query, _ in requests])
        return [
            _measured(query, event, self._release(event, counts))
            for (query, _), event, counts in zip(requests, events, exact, strict=True)
        ]

    def choose(self, query: Choice, amount: Fraction, scope: Scope | None = None) -> int:
        """The number of a candidate with a high score, for so much budget."""
        event = calibrate(query, self.privacy_measure, amount)
        self._check_caps(query)
        self._scope_of(query, scope).charge(event)
        exact = None if self._engine is None else self._engine.count([query])[0]
        return int(self._release(event, exact)[0])

    def coins(self, count: int) -> NDArray[np.uint64]:
        """Random words that have nothing to do with the data, for what a method tries at random; they are recorded."""
        return self._recorded(None if self._engine is None else self._entropy.words(count))

    # -- rows and blocks ---------------------------------------------------------------------------------------

    def cap_rows(self, table: str, cap: int, owner: LinkFacts | None, *, orphans: bool = False) -> None:
        """Keep at most `cap` rows of each entity, by entity-local truncation. Owners are capped before."""
        if table in self._caps:
            raise ValueError(f"{table}: its rows are capped already, and blocks may hold them")
        self._caps[table] = cap
        if self._engine is not None:
            self._engine.cap_rows(table, cap, owner, orphans=orphans)

    def cap(self, table: str) -> int:
        """The most rows that an entity has in a table."""
        return self._caps[table]

    def cap_or_none(self, table: str) -> int | None:
        """The most rows that an entity has in a table; None where it may have any number, so that weights count."""
        return self._caps.get(table)

    def whole(self, table: str, scope: Scope) -> Block:
        """All rows of a table, what is asked of them charged to `scope`."""
        _check_outside_parts(scope)
        return Block(table=table, cap=self._caps[table], scope=scope)

    def split(self, block: Block, columns: dict[str, ColumnFacts], centres: CentrePair) -> tuple[Block, Block]:
        """Split a block by released centres: each row goes to the nearer. Costs nothing."""
        by = centres.parting(block.table, block.cap)
        scopes = block.scope.partition("rows by released centres", by, 2)
        return self._sides(block, scopes, centres, columns)

    def split_as_published(
        self, block: Block, columns: dict[str, ColumnFacts], *, rounds: int, fewest: int, amount: Fraction
    ) -> tuple[tuple[Block, Block], tuple[int, int]]:
        """Split rows as the paper publishes it: centres of the raw rows, noise on each row's distance, exact sizes.

        The claimed epsilon is charged and marked as not verified: one row moves the centres, and with them the
        distances of all rows.
        """
        query = PublishedRowSplit(block=block, columns=columns, rounds=rounds, fewest=fewest)
        event = calibrate_published(query, amount)
        block.scope.charge(event)
        by = Centres(table=block.table, rows_per_entity=block.cap, centres=({}, {}))
        sides = self._sides(block, block.scope.partition("rows as published, by noisy distances", by, 2), None, None)
        answer = None
        if self._engine is not None:
            codes = self._engine.codes_in(block, columns)
            right = published_row_split(
                codes, columns, rounds=rounds, fewest=fewest, scale=event.scale, entropy=self._entropy
            )
            self._engine.split_rows(block, sides[0].path[-1].split, right)
            answer = np.bincount(right, minlength=2)
        left, on_right = self._recorded(answer).tolist()
        return sides, (left, on_right)

    def take_differences(self, columns: Sequence[Difference]) -> None:
        """Hold differences instead of the values of columns that have no codes yet."""
        if self._engine is not None:
            self._engine.take_differences(columns)

    def encode(self, codecs: Codecs) -> None:
        """Code the columns that had no codes yet, now that their domains are known."""
        if self._engine is not None:
            self._engine.encode(codecs)

    def forget(self, table: str) -> None:
        """The table is learnt: let go of what was counted for it."""
        if self._engine is not None:
            self._engine.forget(table)

    # -- noise and the record ---------------------------------------------------------------------------------------

    def _check_caps(self, query: Counted | Choice) -> None:
        """Refuse a query that claims other rows per entity than are kept: its sensitivity would be another."""
        claimed = [] if query.block is None else [(query.table, query.block.cap)]
        for axis in query.axes if isinstance(query, Histogram) else ():
            counted = axis.feature.in_degree
            if counted is not None and counted.cap is not None:
                claimed.append((counted.link.table, counted.cap))
        for table, cap in claimed:
            if cap != self._caps.get(table):
                raise ValueError(f"{table}: a query is about {cap} rows per entity, but not so many are kept")

    def _scope_of(self, query: Counted | Choice, scope: Scope | None) -> Scope:
        """Where a query is charged: one on a part of a table to that part, one on a whole table to a scope outside.

        A query on a whole table that is charged to a part of it would count as parallel to the other parts.
        """
        block = query.block
        if block is not None and block.path:
            if scope is not None or self._parts.get((block.table, block.trail)) is not block.scope:
                raise ValueError(f"{query.table}: a query on a part of a table is charged to that part")
            return block.scope
        if scope is None and block is None:
            raise ValueError(f"{query.table}: a query on a whole table needs a scope to be charged to")
        outside = scope or (block.scope if block is not None else self.ledger.root)
        _check_outside_parts(outside)
        return outside

    def _sides(
        self,
        block: Block,
        scopes: Sequence[Scope],
        centres: CentrePair | None,
        columns: dict[str, ColumnFacts] | None,
    ) -> tuple[Block, Block]:
        """The two blocks of a split, which is called by a number that no other split has."""
        self._splits += 1
        left, right = (
            Block(
                table=block.table,
                cap=block.cap,
                scope=scope,
                path=(*block.path, Side(split=self._splits, right=right, centres=centres, columns=columns)),
            )
            for right, scope in zip((False, True), scopes, strict=True)
        )
        self._parts |= {(side.table, side.trail): side.scope for side in (left, right)}
        return left, right

    def _release(self, event: Event, exact: Exact | None) -> Answer:
        """The noisy answer of an event that was charged, given the exact one; without one, that on the tape."""
        return self._recorded(None if exact is None else draw(event, exact, self._entropy))

    def _recorded(self, answer: Answer | None) -> Answer:
        """An answer, or the one on the tape; recorded, and locked so that the record stays what it was."""
        if answer is None:
            answer = next(self._tape, None)
        if answer is None:
            raise RuntimeError("the tape has fewer answers than the run that replays it asks for")
        answer.setflags(write=False)
        self.answers.append(answer)
        return answer


def draw(event: Event, exact: Exact, entropy: Entropy) -> Answer:
    """The noisy answer of an event, given the exact one."""
    if event.mechanism.chooses:
        choose = exponential_mechanism if event.mechanism.concentrated else permute_and_flip
        return np.array([choose(_scores(exact), scale=event.scale, entropy=entropy)], np.int64)
    if isinstance(exact, ValueCounts):
        return _draw_values(event, exact, entropy)
    noise = discrete_gaussian if event.mechanism.concentrated else discrete_laplace
    noisy: Answer = exact + noise(exact.size, event.scale, entropy).reshape(exact.shape)
    return noisy


def _draw_values(event: Event, exact: ValueCounts, entropy: Entropy) -> Answer:
    """Values with large counts, a row each of value and noisy count, in an order that says nothing about rows."""
    query = event.query
    if isinstance(query, HeavyHitters):
        above = max(0, math.ceil(float(event.scale) * math.log(max(query.draws / (2 * query.false), 1.0))))
        return sparse_histogram(
            exact.values,
            exact.counts,
            low=query.low,
            high=query.high,
            above=above,
            scale=event.scale,
            entropy=entropy,
        )
    kept, counts = passing(exact.counts, threshold=event.threshold, scale=event.scale, entropy=entropy)
    if isinstance(exact.values, np.ndarray):
        return np.stack([exact.values[kept], counts], axis=1)
    return _sorted_strings(exact.values.filter(pa.array(kept)), counts)


def _sorted_strings(values: pa.Array, counts: NDArray[np.int64]) -> Answer:
    """Strings and their counts by code points; what is not Unicode is no string."""
    pairs = zip(values.cast(pa.binary()).to_pylist(), counts.tolist(), strict=True)
    valid = sorted((raw.decode(), count) for raw, count in pairs if raw.decode(errors="ignore").encode() == raw)
    return np.array(valid, dtype=object).reshape(-1, 2)


def _scores(exact: Exact) -> NDArray[np.int64]:
    if isinstance(exact, ValueCounts):
        raise TypeError("a choice has scores, not counts by value")
    return exact


def _measured(query: Counted, event: Event, answer: Answer) -> Measured:
    noise = Noise(gaussian=event.mechanism.concentrated, scale=float(event.scale / query.unit))
    if not isinstance(query, HeavyHitters | FrequentValues):
        return Measured(values=answer, noise=noise, unit=query.unit)
    keys, counts = answer[:, 0].tolist(), answer[:, 1].astype(np.int64)
    return Measured(values=counts, noise=noise, unit=query.unit, keys=tuple(keys))


def _part(query: Counted, delta: Fraction) -> Fraction:
    """The delta of a query: only values that are let out because they are there cost any."""
    return delta if isinstance(query, FrequentValues) else Fraction(0)


def _check_outside_parts(scope: Scope) -> None:
    if scope.parted:
        raise ValueError("a query on a whole table must be charged outside all partitions")
