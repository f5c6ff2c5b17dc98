"""The vault: the only object that holds private codes, and the only door to them.

Each measured query goes through the door (`door.py`): it is charged to the ledger before the data are touched, is
refused if it does not fit the budget, and returns integers with noise. A method sees blocks (sets of rows described
by what was released), never rows.
"""

from collections.abc import Sequence
from fractions import Fraction

from privbench.encode.coded import CodedDatabase
from privbench.privacy import queries
from privbench.privacy.blocks import Centres
from privbench.privacy.door import Answer, Door, Exact, one
from privbench.privacy.events import CAP_CHOICE
from privbench.privacy.facts import Facts, LinkFacts
from privbench.privacy.ledger import Ledger, Scope
from privbench.privacy.noise import Entropy
from privbench.privacy.partition import Block, CentrePair, ColumnSplit, disjoint, widest_distance
from privbench.privacy.price import price_published
from privbench.privacy.published import published_row_split
from privbench.privacy.sealed import Sealed
from privbench.schema.unit import LinkKind


class Vault(Door):
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
        super().__init__(facts, data, ledger=ledger, entropy=entropy, tape=tape)
        self._caps: dict[str, int] = {}
        self._blocks = 0

    # -- rows per entity ---------------------------------------------------------------------------------------

    def choose_cap(
        self, table: str, candidates: Sequence[int], penalties: Sequence[int], *, scope: Scope, epsilon: Fraction
    ) -> int:
        """Pick the cap that cuts few entities for its penalty. One entity more moves every score down by at most 1."""
        _check_outside_parts(scope)
        at = self._select(
            scope,
            table,
            CAP_CHOICE,
            lambda sealed: queries.cap_scores(sealed.rows_per_entity(table), candidates, penalties),
            sensitivity=1,
            monotone=True,
            epsilon=epsilon,
        )
        return candidates[at]

    def cap_rows(self, table: str, cap: int) -> None:
        """Keep at most `cap` rows of each entity, by entity-local truncation. Owners are capped before."""
        if table in self._caps:
            raise ValueError(f"{table}: its rows are capped already, and blocks may hold them")
        self._caps[table] = cap
        if self._sealed is not None:
            self._sealed.cap_rows(table, cap)

    def cap(self, table: str) -> int:
        """The most rows that an entity has in a table."""
        return self._caps[table]

    def cap_or_none(self, table: str) -> int | None:
        """The most rows that an entity has in a table; None where it may have any number, so that weights count."""
        return self._caps.get(table)

    # -- blocks ------------------------------------------------------------------------------------------------

    def whole(self, table: str, scope: Scope) -> Block:
        """All rows of a table, its queries charged to `scope`."""
        _check_outside_parts(scope)
        block = self._block(table, scope)
        if self._sealed is not None:
            self._sealed.open_whole(block)
        return block

    def split(self, block: Block, columns: Sequence[str], centres: CentrePair) -> tuple[Block, Block]:
        """Part a block by released centres: each row goes to the nearer. Costs nothing."""
        by = centres.parting(block.table, self.cap(block.table))
        sides = self._sides(block, block.scope.partition("rows by released centres", by, 2))
        if self._sealed is not None:
            self._sealed.open_split(block, columns, centres, sides)
        return sides

    def split_as_published(
        self, block: Block, columns: Sequence[str], *, rounds: int, fewest: int, epsilon: Fraction
    ) -> tuple[tuple[Block, Block], tuple[int, int]]:
        """Split rows as the paper prints it: centres of the raw rows, noise on each row's distance, exact sizes.

        The claimed epsilon is charged and marked as not verified: one row moves the centres, and with them the
        distances of all rows.
        """
        facts = {c: self.facts.tables[block.table].columns[c] for c in columns}
        widest = widest_distance(facts) * self.cap(block.table)
        event = price_published(block.table, "row split", sensitivity=widest, rounds=rounds, amount=epsilon)
        block.scope.charge(event)
        by = Centres(table=block.table, rows_per_entity=self.cap(block.table), centres=({}, {}))
        sides = self._sides(block, block.scope.partition("rows as published, by noisy distances", by, 2))

        def sizes(sealed: Sealed) -> Answer:
            codes = {c: sealed.codes(block, c) for c in columns}
            right = published_row_split(
                codes, facts, rounds=rounds, fewest=fewest, scale=event.scale, entropy=self.entropy
            )
            sealed.open_sides(block, right, sides)
            return queries.cluster_counts(right)

        left, right = self._answer(sizes).tolist()
        return sides, (left, right)

    # -- measured queries --------------------------------------------------------------------------------------

    def size(self, block: Block, *, epsilon: Fraction) -> int:
        """How many rows."""
        answer = self._count(block, "size", lambda sealed: one(len(sealed.rows(block))), draws=1, epsilon=epsilon)
        return int(answer[0])

    def histogram(self, block: Block, column: str, *, epsilon: Fraction) -> Answer:
        """Rows per code of a column."""
        size = self.facts.tables[block.table].columns[column].size
        return self._count(
            block,
            f"histogram of {column}",
            lambda sealed: queries.histogram(sealed.codes(block, column), size),
            draws=size,
            epsilon=epsilon,
        )

    def choose_column_split(self, block: Block, candidates: Sequence[ColumnSplit], *, epsilon: Fraction) -> ColumnSplit:
        """Pick the split of columns with the least dependence between its halves."""
        most = self.facts.most_rows(block.table, self.cap(block.table))

        def scores(sealed: Sealed) -> Answer:
            return -sealed.dependences(block, candidates, most_rows=most)

        sensitivity = queries.dependence_sensitivity(self.cap(block.table))
        at = self._select(block.scope, block.table, "column split", scores, sensitivity=sensitivity, epsilon=epsilon)
        return candidates[at]

    def dependence(self, block: Block, split: ColumnSplit, *, epsilon: Fraction) -> float:
        """Rows times the mutual information in bits between the halves of a split of columns."""
        most = self.facts.most_rows(block.table, self.cap(block.table))
        answer = self._measure(
            block.scope,
            block.table,
            f"dependence of {len(split[0])} and {len(split[1])} columns",
            lambda sealed: sealed.dependences(block, [split], most_rows=most),
            draws=1,
            sensitivity=queries.dependence_sensitivity(self.cap(block.table)),
            epsilon=epsilon,
        )
        bits: float = float(answer[0]) * queries.dependence_bound(most) / 2**queries.BITS
        return bits

    def cluster_sizes(self, block: Block, columns: Sequence[str], centres: CentrePair, *, epsilon: Fraction) -> Answer:
        """Rows nearer to either centre."""
        return self._count(
            block,
            "cluster sizes",
            lambda sealed: queries.cluster_counts(sealed.labels(block, columns, centres)),
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
                lambda sealed: queries.cluster_sums(
                    queries.coordinates(sealed.codes(block, column), facts.size), sealed.labels(block, columns, centres)
                ),
                draws=2,
                sensitivity=self.cap(block.table) * queries.COORDINATE,
                epsilon=epsilon,
            )
        return self._count(
            block,
            f"cluster histograms of {column}",
            lambda sealed: queries.cluster_histograms(
                sealed.codes(block, column), sealed.labels(block, columns, centres), facts.size
            ),
            draws=2 * facts.size,
            epsilon=epsilon,
        )

    def slot_counts(self, link: LinkFacts, parts: Sequence[Block], *, scope: Scope, epsilon: Fraction) -> Answer:
        """Rows per part and key slot, NULL first. The parts are disjoint blocks of the link's table."""
        if link.slots is None:
            raise ValueError(f"{link.name}: the rows it can name are private")
        if not disjoint(parts) or any(part.table != link.table for part in parts):
            raise ValueError(f"{link.name}: the parts overlap or are of another table")
        _check_outside_parts(scope)
        slots = link.slots
        return self._measure(
            scope,
            link.table,
            f"rows per key of {link.name}",
            lambda sealed: queries.slot_counts(sealed.slots(link), [sealed.rows(p) for p in parts], slots),
            draws=len(parts) * (slots + 1),
            sensitivity=self.cap(link.table),
            epsilon=epsilon,
            additive=True,
        )

    def null_keys(self, link: LinkFacts, *, scope: Scope, epsilon: Fraction) -> int:
        """How many rows have a NULL key."""
        _check_outside_parts(scope)
        answer = self._measure(
            scope,
            link.table,
            f"NULL keys of {link.name}",
            lambda sealed: one(sealed.null_keys(link)),
            draws=1,
            sensitivity=self.cap(link.table),
            epsilon=epsilon,
            additive=True,
        )
        return int(answer[0])

    def degree_histogram(self, link: LinkFacts, *, cap: int, scope: Scope, epsilon: Fraction) -> Answer:
        """Rows of the named table by how many keys name them, up to `cap`."""
        _check_outside_parts(scope)
        return self._measure(
            scope,
            link.table,
            f"rows of {link.target} by number of {link.name}",
            lambda sealed: queries.degree_histogram(sealed.degrees(link), cap),
            draws=cap + 1,
            sensitivity=self.degree_sensitivity(link),
            epsilon=epsilon,
            additive=link.kind is LinkKind.OWNER,
        )

    def degree_sensitivity(self, link: LinkFacts) -> int:
        """How far an entity moves a degree histogram: its named rows, and twice its keys if they may name others'."""
        own = self.cap(link.target)
        return own if link.kind is LinkKind.OWNER else own + 2 * self.cap(link.table)

    # -- behind the door ---------------------------------------------------------------------------------------

    def _count(self, block: Block, query: str, exact: Exact, *, draws: int, epsilon: Fraction) -> Answer:
        """A query in which each row counts once."""
        cap = self.cap(block.table)
        return self._measure(
            block.scope, block.table, query, exact, draws=draws, sensitivity=cap, epsilon=epsilon, additive=True
        )

    def _block(self, table: str, scope: Scope, *, trail: tuple[tuple[int, int], ...] = ()) -> Block:
        self._blocks += 1
        return Block(table=table, number=self._blocks, scope=scope, trail=trail)

    def _sides(self, block: Block, scopes: Sequence[Scope]) -> tuple[Block, Block]:
        """The two blocks of a split, which is called by a number that no other split has."""
        split = self._blocks
        left, right = (
            self._block(block.table, scope, trail=(*block.trail, (split, side))) for side, scope in enumerate(scopes)
        )
        return left, right


def _check_outside_parts(scope: Scope) -> None:
    """Refuse to charge a query on a whole table to a part of it, which would count as parallel to the other parts."""
    if scope.parted:
        raise ValueError("a query on a whole table must be charged outside all partitions")
