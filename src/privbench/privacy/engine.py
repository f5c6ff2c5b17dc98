"""The engine: exact answers to queries about private rows. Only the vault holds one, and asks after it has charged.

Nothing here is noisy, and nothing here may be returned as it is. A batch of queries comes at once. Each is answered
from tallies, counts that add up over the parts of the database: whoever can map work over parts can be an engine's
`Parts`. In-degrees alone look beyond a part: the keys of all parts are counted first, and every counter is told how
often the rows of its part are referenced.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import combinations
from typing import Any, NoReturn, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.codec import Codecs
from privbench.privacy import exact
from privbench.privacy.blocks import Block
from privbench.privacy.common import Cap, Common, degree_key
from privbench.privacy.differences import most_in_a_window, near
from privbench.privacy.exact import Codes, Integers
from privbench.privacy.facts import LinkFacts
from privbench.privacy.features import Axis, Difference, Feature, InDegree, KeySlot, Nearness, OfFirst, OfOwner, Source
from privbench.privacy.noise import Entropy, random_order
from privbench.privacy.pair_cover import covering_groups
from privbench.privacy.part import Part
from privbench.privacy.part_counter import (
    Cells,
    Counted,
    Lead,
    PartCounter,
    Spread,
    Tally,
    Targets,
    ValueCounts,
    Weighed,
    encoded,
    with_differences,
)
from privbench.privacy.parts import Parts
from privbench.privacy.queries import (
    CapChoice,
    Counts,
    Dependence,
    Dependency,
    DependencyChoice,
    HeavyHitters,
    Histogram,
    Pair,
    PairChoice,
    PublishedRowSplit,
    Query,
    SplitChoice,
    Sums,
)
from privbench.privacy.windows import NEAR
from privbench.schema.unit import LinkKind

MANY_PARTS = 32
"""So many parts take longer to count than compiled loops take to load."""
MOST_CELLS = 2**15
"""A joint histogram of several columns has at most so many cells: more would not stay in the cache."""

Exact = Integers | ValueCounts
"""Counts by cell, scores by candidate, or counts by value."""


class Engine(Protocol):
    """Evaluates queries exactly. Which rows of a table are kept, and blocks of them, queries describe."""

    def count(self, queries: Sequence[Query]) -> list[Exact]:
        """The exact answer of each query."""
        ...

    def take_differences(self, columns: Sequence[Difference]) -> None:
        """Hold differences instead of the values of columns that have no codes yet."""
        ...

    def encode(self, codecs: Codecs) -> None:
        """Code the columns that had no codes yet, and let go of all values."""
        ...

    def cap_rows(self, table: str, cap: int, owner: LinkFacts | None, *, orphans: bool) -> None:
        """Keep at most so many rows of each entity, of those whose owner row is kept.

        Rows without owner are kept where the key may be NULL, or `orphans` says so; others lack an owner where none
        should, and are left out, so that no table outgrows its public bound.
        """
        ...

    def split_rows(self, block: Block, split: int, right: NDArray[np.bool_]) -> None:
        """Remember which rows of a block went right in a split that has no public description."""
        ...

    def codes_in(self, block: Block, columns: Iterable[str]) -> dict[str, Codes]:
        """The codes of the rows of a block, for a split that has no public description."""
        ...

    def forget(self, table: str) -> None:
        """Let go of what was remembered of a table that will not be asked about again."""
        ...


class NumpyEngine:
    """Counts by NumPy, part by part; what was counted for pairs of axes is remembered until it is forgotten."""

    def __init__(self, parts: Parts, *, entropy: Entropy) -> None:
        self._parts, self._entropy = parts, entropy
        self._common = Common(compiled=len(parts) >= MANY_PARTS)
        self._pairs: dict[tuple[Weighed, Axis, Axis], Integers] = {}
        self._scores: dict[tuple[Weighed, Pair], int] = {}
        self._leads: dict[Dependency, int] = {}

    def __repr__(self) -> str:
        return "<private tables>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")

    # -- rows --------------------------------------------------------------------------------------------------

    def take_differences(self, columns: Sequence[Difference]) -> None:
        """Hold differences instead of the values of columns that have no codes yet."""
        self._rewrite(partial(with_differences, columns=columns))

    def encode(self, codecs: Codecs) -> None:
        """Code the columns that had no codes yet, and let go of all values."""
        self._rewrite(partial(encoded, codecs=codecs))

    def _rewrite(self, work: Callable[[Part], Part]) -> None:
        """Put another part in the place of each; what was counted before is not true of these."""
        self._parts.rewrite(work)
        self._pairs, self._scores, self._leads = {}, {}, {}
        self._common.degrees = {}

    def cap_rows(self, table: str, cap: int, owner: LinkFacts | None, *, orphans: bool) -> None:
        """Keep at most so many rows of each entity, of those whose owner row is kept."""
        self._common.caps.append(Cap(table, cap, owner, orphans))

    def split_rows(self, block: Block, split: int, right: NDArray[np.bool_]) -> None:
        """Remember which rows of a block went right in a split that has no public description."""
        self._in_one_part(partial(_split_rows, block=block, split=split, right=right))

    def codes_in(self, block: Block, columns: Iterable[str]) -> dict[str, Codes]:
        """The codes of the rows of a block."""
        codes: dict[str, Codes] = self._in_one_part(
            partial(_codes_in, block=block, columns=tuple(columns), common=self._common)
        )
        return codes

    def forget(self, table: str) -> None:
        """Let go of what was counted for a table."""
        self._pairs = {key: cells for key, cells in self._pairs.items() if key[0].table != table}
        self._scores, self._leads = {}, {}

    def _in_one_part(self, work: Any) -> Any:
        """Work that looks at rows of all entities together: blocks of a database in one part."""
        if len(self._parts) != 1:
            raise ValueError("rows in several parts cannot be looked at together")
        return next(self._parts.map(work))

    # -- queries -----------------------------------------------------------------------------------------------

    def count(self, queries: Sequence[Query]) -> list[Exact]:
        """The exact answer of each query: one pass over the parts counts what all of them need."""
        wanted = [self._tallies(query) for query in queries]
        counted = iter(self._counted([tally for tallies in wanted for tally in tallies]))
        found = [list(zip(tallies, counted, strict=False)) for tallies in wanted]
        return [self._answer(query, tallies) for query, tallies in zip(queries, found, strict=True)]

    def _tallies(self, query: Query) -> list[Tally]:
        """What must be counted to answer a query, and was not counted before."""
        match query:
            case Histogram() if _is_pair(query):
                rows = Weighed(query.table, query.full_rows)
                return [] if self._is_counted(rows, *query.axes) else [Cells(rows, query.axes)]
            case PairChoice():
                asked = ((pair.first, pair.second) for pair in query.candidates)
                return self._pair_tallies(Weighed(query.table, query.full_rows), [*asked, *query.foreseen])
            case DependencyChoice():
                return self._lead_tallies(query.candidates)
            case PublishedRowSplit():
                raise ValueError(f"{query.table}: a split of rows is no count")
            case Dependence() | SplitChoice() if len(self._parts) > 1:
                raise ValueError(f"{query.table}: entropies of rows in several parts cannot be counted")
            case _:
                return [query]

    def _answer(self, query: Query, counted: Sequence[tuple[Tally, Counted]]) -> Exact:
        """The answer of a query from the tallies that it wanted, and from what is remembered."""
        match query:
            case Histogram() if _is_pair(query):
                self._remember_pairs(counted)
                return self._pair(Weighed(query.table, query.full_rows), *query.axes)
            case PairChoice():
                self._remember_pairs(counted)
                rows = Weighed(query.table, query.full_rows)
                return np.array([*(self._score(rows, pair) for pair in query.candidates), 0], np.int64)
            case DependencyChoice():
                self._remember_leads(query.candidates, counted)
                return np.array([*(self._leads[candidate] for candidate in query.candidates), query.none], np.int64)
        ((_, answer),) = counted
        match query, answer:
            case CapChoice(), np.ndarray():
                return exact.cap_scores(answer, query.penalties)
            case HeavyHitters(), ValueCounts():
                there = answer.counts > 0
                return ValueCounts(answer.values[there], answer.counts[there])
        return answer

    # -- pairs of axes -----------------------------------------------------------------------------------------

    def _pair(self, rows: Weighed, first: Axis, second: Axis) -> Integers:
        """Weights by the bins of two axes, counted once for either order of them."""
        turned = self._pairs.get((rows, second, first))
        return self._pairs[rows, first, second] if turned is None else turned.T

    def _score(self, rows: Weighed, pair: Pair) -> int:
        """How far a pair of axes is from what is expected of it; worked out once."""
        if (rows, pair) not in self._scores:
            cells = self._pair(rows, pair.first, pair.second)
            score = exact.distance_score(cells, pair.expected, pair.penalty, pair.sensitivity_factor)
            self._scores[rows, pair] = score
        return self._scores[rows, pair]

    def _is_counted(self, rows: Weighed, first: Axis, second: Axis) -> bool:
        """Whether a pair of axes was counted before, perhaps with something else expected of it."""
        return (rows, first, second) in self._pairs or (rows, second, first) in self._pairs

    def _pair_tallies(self, rows: Weighed, pairs: Sequence[tuple[Axis, Axis]]) -> list[Tally]:
        """Joint tables that hold those of pairs that were not counted yet, as few as their bins allow.

        Pairs with an axis in which some rows have no bin are counted alone: such rows would be missing from the tables
        of other pairs, too.
        """
        new = [pair for pair in dict.fromkeys(pairs) if not self._is_counted(rows, *pair)]
        together = [pair for pair in new if all(axis.total for axis in pair)]
        axes = list(dict.fromkeys(axis for pair in together for axis in pair))
        place = {axis: at for at, axis in enumerate(axes)}
        wanted = [(place[first], place[second]) for first, second in together]
        groups = covering_groups([axis.size for axis in axes], wanted, most=MOST_CELLS)
        joint = [Cells(rows, tuple(axes[at] for at in group)) for group in groups]
        return [*joint, *(Cells(rows, pair) for pair in new if not all(axis.total for axis in pair))]

    def _remember_pairs(self, counted: Sequence[tuple[Tally, Counted]]) -> None:
        """Take the tables of all pairs out of joint ones."""
        for tally, cells in counted:
            if isinstance(tally, Cells) and isinstance(cells, np.ndarray):
                for (i, first), (j, second) in combinations(enumerate(tally.axes), 2):
                    others = tuple(k for k in range(len(tally.axes)) if k not in (i, j))
                    self._pairs[tally.rows, first, second] = cells.sum(axis=others)

    # -- dependencies ------------------------------------------------------------------------------------------

    def _lead_tallies(self, candidates: Sequence[Dependency]) -> list[Tally]:
        """What says by how much rows that agree with candidates outweigh what counts against these."""
        new = [candidate for candidate in candidates if candidate not in self._leads]
        tallies = [spread or Lead(candidate) for candidate in new for spread in [_spread(candidate)]]
        return list(dict.fromkeys(tallies))

    def _remember_leads(self, candidates: Sequence[Dependency], counted: Sequence[tuple[Tally, Counted]]) -> None:
        found = dict(counted)
        for candidate in candidates:
            if candidate not in self._leads:
                source, spread = candidate.feature.source, _spread(candidate)
                cells = np.asarray(found[spread or Lead(candidate)])
                if isinstance(source, Nearness):
                    differing, dates = cells[: len(NEAR) + 1], cells[len(NEAR) + 1 :]
                    self._leads[candidate] = near(differing, source.days) - most_in_a_window(dates, source.days)
                else:
                    self._leads[candidate] = int(cells[0])

    # -- parts -------------------------------------------------------------------------------------------------

    def _counted(self, tallies: Sequence[Tally]) -> list[Counted]:
        """What all parts together say of tallies."""
        if not tallies:
            return []
        self._learn_common(tallies)
        return self._added_up(tallies)

    def _added_up(self, tallies: Sequence[Tally]) -> list[Counted]:
        """The sums over parts of what these say, each part counted once for all tallies."""
        found: list[list[Counted]] = [[] for _ in tallies]
        with closing(self._parts.map(partial(_tallies_of, tallies=tallies, common=self._common))) as parts:
            for counted in parts:
                for place, more in zip(found, counted, strict=True):
                    if place and not isinstance(more, ValueCounts) and not isinstance(place[0], ValueCounts):
                        place[0] = place[0] + more
                    else:
                        place.append(more)
        return [_merged(counted) for counted in found]

    def _learn_common(self, tallies: Sequence[Tally]) -> None:
        """Find out what counters must know to count: how often rows are referenced, and the order of slots."""
        sources = [source for tally in tallies for axis in _axes(tally) for source in _sources(axis.feature)]
        for source in sources:
            if isinstance(source, KeySlot) and source.shuffled and source.link.slots and self._common.order is None:
                self._common.order = random_order(source.link.slots, self._entropy)
        degrees = [s for s in sources if isinstance(s, InDegree) and s.link.kind is not LinkKind.INSIDE]
        counted = {degree_key(source): Targets(source) for source in degrees}
        new = {key: tally for key, tally in counted.items() if key not in self._common.degrees}
        if new:
            self._common.degrees |= zip(new, map(_by_number, self._added_up(list(new.values()))), strict=True)


def _is_pair(query: Histogram) -> bool:
    """Whether a query is about two axes, and may have been counted when their pair was a candidate."""
    return query.counts is Counts.WEIGHTS and len(query.axes) == 2


def _tallies_of(counter: PartCounter, *, tallies: Sequence[Tally], common: Common) -> list[Counted]:
    return counter.tallies(tallies, common)


def _merged(counted: Sequence[Counted]) -> Counted:
    """What parts say together: counts are added up already, counts by value are not."""
    values = [c.values for c in counted if isinstance(c, ValueCounts)]
    if not values:
        return counted[0]
    counts = np.concatenate([c.counts for c in counted if isinstance(c, ValueCounts)])
    if isinstance(values[0], np.ndarray):
        every, at = np.unique(np.concatenate(values), return_inverse=True)
    else:
        texts = pa.concat_arrays(values)
        every = texts.unique()
        every = every.take(pc.sort_indices(every))  # so that they stand alike however rows were divided
        at = pc.index_in(texts, value_set=every).to_numpy()
    sums = np.zeros(len(every), np.int64)
    np.add.at(sums, at, counts)  # not in floats: these are weights of any number of rows
    return ValueCounts(every, sums)


def _by_number(counted: Counted) -> Integers:
    """Counts of row numbers, by number up to the largest."""
    assert isinstance(counted, ValueCounts)  # noqa: S101  of targets
    degrees = np.zeros(int(counted.values.max(initial=-1)) + 1, np.int64)
    degrees[counted.values] = counted.counts
    return degrees


def _spread(candidate: Dependency) -> Spread | None:
    source = candidate.feature.source
    return Spread(candidate.table, source.column, source.base) if isinstance(source, Nearness) else None


def _axes(tally: Tally) -> tuple[Axis, ...]:
    return tally.axes if isinstance(tally, Histogram | Sums | Cells) else ()


def _sources(feature: Feature) -> Iterator[Source]:
    """What a feature is made of, through the rows that it is taken from."""
    yield feature.source
    if isinstance(feature.source, OfOwner | OfFirst):
        yield from _sources(feature.source.feature)


def _split_rows(counter: PartCounter, *, block: Block, split: int, right: NDArray[np.bool_]) -> None:
    counter.split_rows(block, split, right)


def _codes_in(counter: PartCounter, *, block: Block, columns: Sequence[str], common: Common) -> dict[str, Codes]:
    counter.tallies((), common)
    return counter.codes_in(block, columns)
