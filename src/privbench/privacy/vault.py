"""The vault: the only object that holds private codes, and the only door to them.

Each measured query is charged to the ledger before the data are touched, is refused if it does not fit the
budget, and returns integers with noise. A method sees blocks (sets of rows described by what was released),
never rows. With a tape of recorded answers and no data the vault replays a run: whatever a method makes must
come out the same, which is how the tests show that nothing flows past the ledger.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from privbench.encode.coded import CodedDatabase, CodedTable
from privbench.privacy import queries
from privbench.privacy.blocks import Centres
from privbench.privacy.events import Event, Mechanism, quantise
from privbench.privacy.facts import SIZE_LIMIT, Facts, LinkFacts
from privbench.privacy.ledger import Ledger, Scope
from privbench.privacy.noise import Entropy, discrete_laplace, round_scale
from privbench.privacy.partition import CentrePair, nearer_right, widest_distance
from privbench.privacy.printed import printed_row_split
from privbench.privacy.select import permute_and_flip

Answer = NDArray[np.int64]
ColumnSplit = tuple[tuple[str, ...], tuple[str, ...]]

_PARALLEL_ROWS = 200_000
"""Blocks larger than this count their entropies on several cores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A set of rows of one table, known by how it came about; its queries are charged to `scope`."""

    table: str
    number: int
    scope: Scope


class Vault:
    """Private tables behind measured queries. Exactly one of `data` and `tape` is given."""

    def __init__(
        self,
        facts: Facts,
        data: CodedDatabase | None,
        *,
        ledger: Ledger,
        entropy: Entropy,
        tape: Sequence[Answer] | None = None,
    ) -> None:
        if (data is None) == (tape is None):
            raise ValueError("give the vault either data or a tape")
        self.facts = facts
        self.ledger = ledger
        self.entropy = entropy
        self.answers: list[Answer] = []
        self._data = data
        self._tape = iter(tape or ())
        self._caps: dict[str, int] = {}
        self._kept: dict[str, NDArray[np.int64]] = {}
        self._rows: list[NDArray[np.int64] | None] = []
        self._entropies: dict[tuple[int, frozenset[str]], float] = {}

    def __reduce__(self) -> NoReturn:
        raise TypeError("a vault cannot be pickled")

    # -- rows per entity ---------------------------------------------------------------------------------------

    def choose_cap(self, table: str, candidates: Sequence[int], *, allowed: int, epsilon: Fraction) -> int:
        """Pick the cap that cuts the rows of about `allowed` entities. One entity moves every score by 1."""

        def scores() -> Answer:
            _, counts = np.unique(self._table(table).entities[self._rows_of_kept_owners(table)], return_counts=True)
            return queries.cap_scores(counts, candidates, allowed=allowed)

        at = self._select(self.ledger.root, table, "rows per entity", scores, sensitivity=1, epsilon=epsilon)
        return candidates[at]

    def cap_rows(self, table: str, cap: int) -> None:
        """Keep at most `cap` rows of each entity, by entity-local truncation. Owners are capped before."""
        self._caps[table] = cap
        if self._data is None:
            return
        coded = self._table(table)
        rows = self._rows_of_kept_owners(table)
        keep = queries.keep_rows(coded.entities[rows], {n: c[rows] for n, c in coded.codes.items()}, cap)
        self._kept[table] = rows[keep]

    def cap(self, table: str) -> int:
        """The most rows that an entity has in a table."""
        return self._caps[table]

    # -- blocks ------------------------------------------------------------------------------------------------

    def whole(self, table: str, scope: Scope) -> Block:
        """All rows of a table, its queries charged to `scope`."""
        return self._block(table, scope, None if self._data is None else self._kept[table])

    def split(self, block: Block, columns: Sequence[str], centres: CentrePair) -> tuple[Block, Block]:
        """Part a block by released centres: each row goes to the nearer. Costs nothing."""
        scopes = block.scope.partition(
            "rows by released centres", centres.parting(block.table, self.cap(block.table)), 2
        )
        if self._data is None:
            return self._block(block.table, scopes[0], None), self._block(block.table, scopes[1], None)
        rows, right = self._in(block), self._labels(block, columns, centres)
        return self._block(block.table, scopes[0], rows[~right]), self._block(block.table, scopes[1], rows[right])

    def split_as_printed(
        self, block: Block, columns: Sequence[str], *, rounds: int, fewest: int, epsilon: Fraction
    ) -> tuple[tuple[Block, Block], tuple[int, int]]:
        """Split rows as the paper prints it: centres of the raw rows, noise on each row's distance, exact sizes.

        The claimed epsilon is charged and marked as not verified: one row moves the centres, and with them the
        distances of all rows.
        """
        epsilon = quantise(epsilon)
        facts = {c: self.facts.tables[block.table].columns[c] for c in columns}
        sensitivity = widest_distance(facts) * self.cap(block.table)
        scale = round_scale(Fraction(sensitivity * rounds) / (2 * epsilon))
        block.scope.charge(
            Event(
                mechanism=Mechanism.AS_PRINTED,
                query="row split",
                table=block.table,
                sensitivity=Fraction(sensitivity),
                scale=scale,
                epsilon=epsilon,
                draws=rounds,
            )
        )
        coin = np.random.default_rng(self.entropy.words(4))
        sides: list[NDArray[np.int64]] = []

        def sizes() -> Answer:
            codes = {c: self._codes(block, c) for c in columns}
            right = printed_row_split(
                codes, facts, rounds=rounds, fewest=fewest, scale=scale, entropy=self.entropy, coin=coin
            )
            rows = self._in(block)
            sides.extend((rows[~right], rows[right]))
            return np.array([len(s) for s in sides], np.int64)

        left, right = (int(n) for n in self._answer(sizes))
        by = Centres(table=block.table, rows_per_entity=self.cap(block.table), centres=({}, {}))
        scopes = block.scope.partition("rows as printed, by noisy distances", by, 2)
        blocks = [self._block(block.table, s, sides[i] if sides else None) for i, s in enumerate(scopes)]
        return (blocks[0], blocks[1]), (left, right)

    # -- measured queries --------------------------------------------------------------------------------------

    def size(self, block: Block, *, epsilon: Fraction) -> int:
        """How many rows."""
        answer = self._count(block, "size", lambda: _one(len(self._in(block))), draws=1, epsilon=epsilon)
        return int(answer[0])

    def histogram(self, block: Block, column: str, *, epsilon: Fraction) -> Answer:
        """Rows per code of a column."""
        size = self.facts.tables[block.table].columns[column].size

        def exact() -> Answer:
            return queries.histogram(self._codes(block, column), size)

        return self._count(block, f"histogram of {column}", exact, draws=size, epsilon=epsilon)

    def choose_column_split(self, block: Block, candidates: Sequence[ColumnSplit], *, epsilon: Fraction) -> ColumnSplit:
        """Pick the split of columns with the least dependence between its halves."""

        def scores() -> Answer:
            return -np.array([self._dependence_units(block, c) for c in self._prepared(block, candidates)], np.int64)

        sensitivity = queries.dependence_sensitivity(self.cap(block.table))
        at = self._select(block.scope, block.table, "column split", scores, sensitivity=sensitivity, epsilon=epsilon)
        return candidates[at]

    def dependence(self, block: Block, split: ColumnSplit, *, epsilon: Fraction) -> float:
        """Rows times the mutual information in bits between the halves of a split of columns."""

        def exact() -> Answer:
            return _one(self._dependence_units(block, split))

        sensitivity = queries.dependence_sensitivity(self.cap(block.table))
        query = f"dependence of {len(split[0])} and {len(split[1])} columns"
        answer = self._measure(
            block.scope, block.table, query, exact, draws=1, sensitivity=sensitivity, epsilon=epsilon
        )
        bits: float = float(answer[0]) * queries.dependence_bound(self._most_rows(block.table)) / 2**queries.BITS
        return bits

    def cluster_sizes(self, block: Block, columns: Sequence[str], centres: CentrePair, *, epsilon: Fraction) -> Answer:
        """Rows nearer to either centre."""
        return self._count(
            block,
            "cluster sizes",
            lambda: queries.cluster_counts(self._labels(block, columns, centres)),
            draws=2,
            epsilon=epsilon,
        )

    def cluster_column(
        self, block: Block, columns: Sequence[str], centres: CentrePair, column: str, *, epsilon: Fraction
    ) -> Answer:
        """For either cluster, the sum of an ordered column's coordinates or the histogram of an unordered one."""
        facts = self.facts.tables[block.table].columns[column]
        if facts.ordered:
            return self._measure(
                block.scope,
                block.table,
                f"cluster sums of {column}",
                lambda: queries.cluster_sums(
                    queries.coordinates(self._codes(block, column), facts.size), self._labels(block, columns, centres)
                ),
                draws=2,
                sensitivity=self.cap(block.table) * queries.COORDINATE,
                epsilon=epsilon,
            )
        return self._count(
            block,
            f"cluster histograms of {column}",
            lambda: queries.cluster_histograms(
                self._codes(block, column), self._labels(block, columns, centres), facts.size
            ),
            draws=2 * facts.size,
            epsilon=epsilon,
        )

    def slot_counts(self, link: LinkFacts, parts: Sequence[Block], *, scope: Scope, epsilon: Fraction) -> Answer:
        """Rows per part and key slot, NULL first. The parts are disjoint blocks of the link's table."""
        if link.slots is None:
            raise ValueError(f"{link.name}: the rows it can name are private")
        slots = link.slots

        def exact() -> Answer:
            return queries.slot_counts(self._key(link), [self._in(p) for p in parts], slots)

        return self._measure(
            scope,
            link.table,
            f"rows per key of {link.name}",
            exact,
            draws=len(parts) * (slots + 1),
            sensitivity=self.cap(link.table),
            epsilon=epsilon,
        )

    def null_keys(self, link: LinkFacts, *, scope: Scope, epsilon: Fraction) -> int:
        """How many rows have a NULL key."""

        def exact() -> Answer:
            return _one(int((self._key(link)[self._kept[link.table]] == queries.NULL).sum()))

        query, sensitivity = f"NULL keys of {link.name}", self.cap(link.table)
        answer = self._measure(scope, link.table, query, exact, draws=1, sensitivity=sensitivity, epsilon=epsilon)
        return int(answer[0])

    def degree_histogram(self, link: LinkFacts, *, cap: int, scope: Scope, epsilon: Fraction) -> Answer:
        """Rows of the named table by how many keys name them, up to `cap`."""

        def exact() -> Answer:
            kept = self._kept[link.target]
            degree = queries.degrees(self._key(link)[self._kept[link.table]], len(self._table(link.target).entities))
            return queries.degree_histogram(degree[kept], cap)

        query = f"rows of {link.target} by number of {link.name}"
        sensitivity = self.degree_sensitivity(link)
        return self._measure(scope, link.table, query, exact, draws=cap + 1, sensitivity=sensitivity, epsilon=epsilon)

    def degree_sensitivity(self, link: LinkFacts) -> int:
        """How far an entity moves a degree histogram: its named rows, and twice its keys if they may name others'."""
        own = self.cap(link.target)
        return own if link.kind is link.kind.OWNER else own + 2 * self.cap(link.table)

    # -- behind the door ---------------------------------------------------------------------------------------

    def _count(self, block: Block, query: str, exact: Callable[[], Answer], *, draws: int, epsilon: Fraction) -> Answer:
        """A query in which each row counts once."""
        sensitivity = self.cap(block.table)
        return self._measure(
            block.scope, block.table, query, exact, draws=draws, sensitivity=sensitivity, epsilon=epsilon
        )

    def _measure(
        self,
        scope: Scope,
        table: str,
        query: str,
        exact: Callable[[], Answer],
        *,
        draws: int,
        sensitivity: int,
        epsilon: Fraction,
    ) -> Answer:
        epsilon = quantise(epsilon)
        scale = round_scale(Fraction(sensitivity) / epsilon)
        scope.charge(
            Event(
                mechanism=Mechanism.DISCRETE_LAPLACE,
                query=query,
                table=table,
                sensitivity=Fraction(sensitivity),
                scale=scale,
                epsilon=epsilon,
                draws=draws,
            )
        )

        def noisy() -> Answer:
            counts = exact()
            return counts + discrete_laplace(counts.size, scale, self.entropy).reshape(counts.shape)

        return self._answer(noisy)

    def _select(
        self,
        scope: Scope,
        table: str,
        query: str,
        scores: Callable[[], Answer],
        *,
        sensitivity: int,
        epsilon: Fraction,
    ) -> int:
        epsilon = quantise(epsilon)
        scale = round_scale(Fraction(2 * sensitivity) / epsilon)
        scope.charge(
            Event(
                mechanism=Mechanism.PERMUTE_AND_FLIP,
                query=query,
                table=table,
                sensitivity=Fraction(sensitivity),
                scale=scale,
                epsilon=epsilon,
                draws=1,
            )
        )
        answer = self._answer(lambda: _one(permute_and_flip(scores(), scale=scale, entropy=self.entropy)))
        return int(answer[0])

    def _answer(self, noisy: Callable[[], Answer]) -> Answer:
        answer = noisy() if self._data is not None else next(self._tape)
        self.answers.append(answer)
        return answer

    def _table(self, table: str) -> CodedTable:
        if self._data is None:
            raise RuntimeError("a replayed vault has no data")
        return self._data[table]

    def _key(self, link: LinkFacts) -> NDArray[np.int64]:
        return self._table(link.table).keys[link.name]

    def _block(self, table: str, scope: Scope, rows: NDArray[np.int64] | None) -> Block:
        self._rows.append(rows)
        return Block(table=table, number=len(self._rows) - 1, scope=scope)

    def _in(self, block: Block) -> NDArray[np.int64]:
        rows = self._rows[block.number]
        if rows is None:
            raise RuntimeError("a replayed vault has no data")
        return rows

    def _codes(self, block: Block, column: str) -> NDArray[np.unsignedinteger]:
        codes = self._table(block.table).codes[column]
        rows = self._in(block)
        return codes if len(rows) == len(codes) else codes[rows]

    def _labels(self, block: Block, columns: Sequence[str], centres: CentrePair) -> NDArray[np.bool_]:
        sizes = {c: self.facts.tables[block.table].columns[c] for c in columns}
        return nearer_right({c: self._codes(block, c) for c in columns}, sizes, centres)

    def _rows_of_kept_owners(self, table: str) -> NDArray[np.int64]:
        """Rows whose owner row was kept, or that have none."""
        rows = len(self._table(table).entities)
        link = self.facts.owner_link(table)
        if link is None:
            return np.arange(rows)
        kept = np.zeros(len(self._table(link.target).entities) + 1, bool)
        kept[self._kept[link.target]] = True
        kept[queries.NULL] = True
        return np.flatnonzero(kept[self._key(link)])

    def _most_rows(self, table: str) -> int:
        """A public bound on the rows of a table that are kept."""
        known = self.facts.tables[table].rows
        if known is not None:
            return known
        entities = self.facts.tables[self.facts.entity].rows
        if entities is None or self._may_be_unowned(table):
            return SIZE_LIMIT
        return entities * self.cap(table)

    def _may_be_unowned(self, table: str) -> bool:
        """Whether there may be rows that do not reach the entity table."""
        while table != self.facts.entity:
            link = self.facts.owner_link(table)
            if link is None or link.nullable or self.facts.strays:
                return True
            table = link.target
        return False

    def _prepared(self, block: Block, candidates: Sequence[ColumnSplit]) -> Sequence[ColumnSplit]:
        """Count the entropies that the candidates need, on several cores if the block is large."""
        halves = {frozenset(half) for split in candidates for half in split}
        halves.add(frozenset(c for half in candidates[0] for c in half))
        missing = [h for h in halves if (block.number, h) not in self._entropies]
        if len(self._in(block)) >= _PARALLEL_ROWS:
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda h: self._entropy(block, h), missing))
        return candidates

    def _dependence_units(self, block: Block, split: ColumnSplit) -> int:
        left, right = frozenset(split[0]), frozenset(split[1])
        bits = queries.dependence(
            self._entropy(block, left),
            self._entropy(block, right),
            self._entropy(block, left | right),
            len(self._in(block)),
        )
        return queries.dependence_units(bits, self._most_rows(block.table))

    def _entropy(self, block: Block, columns: frozenset[str]) -> float:
        key = (block.number, columns)
        if key not in self._entropies:
            facts = self.facts.tables[block.table].columns
            parts: Iterable[tuple[NDArray[np.unsignedinteger], int]] = (
                (self._codes(block, c), facts[c].size) for c in sorted(columns)
            )
            self._entropies[key] = queries.count_entropy(*queries.joint_keys(parts))
        return self._entropies[key]


def _one(count: int) -> Answer:
    return np.array([count], np.int64)
