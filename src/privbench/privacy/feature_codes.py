"""The codes of features for every row of a table, worked out from codes, keys and values; the engine counts them.

What is asked again and again is remembered until the table is forgotten. Nothing here may leave the vault.
"""

from collections.abc import Sequence
from typing import NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.grid import one_array
from privbench.encode.magnitude import Magnitudes, coarsest_step
from privbench.privacy import agreement, exact
from privbench.privacy.blocks import Block, nearer_right
from privbench.privacy.common import Common, degree_key
from privbench.privacy.differences import Days, days_of, within
from privbench.privacy.exact import NULL, Codes, Integers
from privbench.privacy.facts import LinkFacts
from privbench.privacy.features import (
    Activity,
    Agreement,
    Axis,
    Base,
    Cell,
    Cluster,
    EntityRows,
    Fanout,
    Feature,
    InDegree,
    KeyBlock,
    KeySlot,
    Magnitude,
    Nearness,
    NullKey,
    OfFirst,
    OfOwner,
    Own,
    OwnKey,
    Present,
    PublicRows,
    Rank,
    Source,
    Step,
    WhichBlock,
)
from privbench.privacy.part import Part
from privbench.privacy.rows import KeptRows
from privbench.schema.unit import LinkKind
from privbench.spn.fanouts import RANK_EDGES, bin_of


class FeatureCodes:
    """The codes of features by table, and their bins."""

    def __init__(self, part: Part, rows: KeptRows) -> None:
        self._data = part.tables
        self._raw = part.raw
        self._rows = rows
        self.common = Common()
        """What all parts know alike."""
        self._codes: dict[tuple[str, Feature], Codes] = {}
        self._binned: dict[tuple[str, Axis], Codes] = {}
        self._owner_rows: dict[str, Integers] = {}
        self._placed: dict[tuple[str, str], Codes] = {}
        self._labels: tuple[Block | None, Cluster | None, Codes] = (None, None, np.zeros(0, np.uint8))

    def __repr__(self) -> str:
        return "<private codes>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")

    def forget(self) -> None:
        """Let go of all but what takes long and is small: fanouts, and the places of rows among their owner's."""
        self._codes, self._binned, self._owner_rows = {}, {}, {}

    def bins(self, table: str, axis: Axis, block: Block | None = None) -> Codes:
        """The bin of every row of a table; -1 for rows that are not counted. Rows outside of the block have any."""
        if isinstance(axis.feature.source, Cluster) and block is not None:
            return self._cluster(block, axis.feature.source)
        if axis.whole:
            return self.codes(table, axis.feature)
        key = (table, axis)
        if key not in self._binned:
            source = axis.feature.source
            if isinstance(source, OfOwner):  # owners are fewer
                self._binned[key] = _bins(axis, self._above(source))[self._owners(source.link)]
            else:
                self._binned[key] = _bins(axis, self.codes(table, axis.feature))
        return self._binned[key]

    def codes(self, table: str, feature: Feature) -> Codes:
        """The code of every row of a table; -1 for rows that have none. Of a column without codes it is asked once."""
        if isinstance(feature.source, Magnitude | Step | Cell | Present | Agreement | Nearness):
            return self._codes_of(feature.source, table, feature.size)
        key = (table, feature)
        if key not in self._codes:
            self._codes[key] = self._codes_of(feature.source, table, feature.size)
        return self._codes[key]

    def _codes_of(self, source: Source, table: str, size: int) -> Codes:
        match source:
            case Own(column):
                return self._data[table].codes[column]
            case OfOwner(_, link):
                return self._above(source)[self._owners(link)]
            case OfFirst(feature, link):
                firsts = exact.as_indices(self._firsts(link))
                return exact.with_last(self.codes(table, feature), feature.size)[firsts]
            case Rank(link):
                return bin_of(self._places(link), RANK_EDGES - 1)
            case EntityRows() | Activity():
                return self._row_counts(source, table)
            case PublicRows():
                numbers = self._numbers(table)
                return source.codes if numbers is None else source.codes[numbers]
            case WhichBlock(blocks):
                return self._parts(table, blocks)
            case Agreement():
                return self._agreement(table, source)
            case Nearness(column, base, days):
                return within(self.differences(table, column, base), days)
            case Magnitude() | Step() | Cell() | Present():
                return self._raw_codes(table, source)
            case Cluster():
                raise ValueError(f"{table}: clusters are those of a block")
            case _:
                return self._key_codes(source, table, size)

    def _key_codes(
        self, source: Fanout | InDegree | NullKey | OwnKey | KeyBlock | KeySlot, table: str, size: int
    ) -> Codes:
        """What keys say: those of the table's own rows, or those that reference them."""
        key = self._key(source.link)
        match source:
            case NullKey():
                return np.asarray(key == NULL, np.uint8)
            case OwnKey(link, above):
                own = self._is_own(link, above).astype(np.uint8)
                return np.where(key == NULL, np.uint8(2), own) if link.nullable else own
            case KeyBlock(link, blocks):
                codes = exact.key_blocks(key, link.slots or 0, blocks)
                codes[codes >= size] = size - 1  # a key to a missing row, where none may be NULL
                return codes
            case KeySlot(link, shuffled):
                slots = self._slots(link, shuffled=shuffled)
                return np.where(slots >= NULL, slots + 1, -1)
            case InDegree(link, edges) if link.kind is not LinkKind.INSIDE:
                return bin_of(self._degrees(source, table), edges)
            case Fanout(link, edges, cap) | InDegree(link, edges, cap):
                if cap is None:
                    return bin_of(self._fanouts(link), edges)
                return bin_of(exact.degrees(key[self._rows.of_table(link.table)], self._size(table)), edges)

    def _degrees(self, source: InDegree, table: str) -> Integers:
        """How often the rows of a table are referenced from anywhere; those beyond the last that is are not."""
        degrees, numbers = self.common.degrees[degree_key(source)], self._numbers(table)
        rows = np.arange(self._size(table)) if numbers is None else numbers
        return np.append(degrees, 0)[np.minimum(rows, len(degrees))]

    def targets(self, source: InDegree) -> Integers:
        """The numbers of the rows that keys to rows of any entity reference, of the keys that count."""
        link = source.link
        key = self._key(link)
        if source.cap is not None:
            key = key[self._rows.of_table(link.table)]
        else:
            if source.above:
                key = np.where(self._is_own(link, source.above), NULL, key)
            key = exact.one_key_each(key, self._data[link.table].entities)
        return key[key >= 0]

    def _above(self, source: OfOwner) -> Codes:
        """The codes of owner rows, and that of no owner."""
        return exact.with_last(self.codes(source.link.target, source.feature), source.feature.size)

    def _owners(self, link: LinkFacts) -> Integers:
        """The owner row of each row, -1 for none."""
        if link.name not in self._owner_rows:
            self._owner_rows[link.name] = exact.as_indices(np.maximum(self._key(link), NULL))
        return self._owner_rows[link.name]

    def _fanouts(self, link: LinkFacts) -> Codes:
        """How many rows each row of a table is referenced by."""
        if ("rows", link.name) not in self._placed:
            self._placed["rows", link.name] = _narrow(exact.degrees(self._key(link), self._size(link.target)))
        return self._placed["rows", link.name]

    def _places(self, link: LinkFacts) -> Codes:
        """The place of each row among its owner's."""
        if ("place", link.name) not in self._placed:
            self._placed["place", link.name] = _narrow(exact.place_in_group(self._key(link)))
        return self._placed["place", link.name]

    def _firsts(self, link: LinkFacts) -> Codes:
        """The first row of the owner of each row, -1 for that row itself."""
        if ("first", link.name) not in self._placed:
            self._placed["first", link.name] = exact.first_of_group(self._key(link)).astype(np.int32)
        return self._placed["first", link.name]

    def _is_own(self, link: LinkFacts, above: Sequence[LinkFacts]) -> NDArray[np.bool_]:
        """Which rows' keys reference the row above them: one that is there, so it is of their entity."""
        key, rows, numbers = self._key(link), self._rows_above(link.table, above), self._numbers(link.target)
        if numbers is not None:
            rows = np.append(numbers, NULL)[rows]
        is_own: NDArray[np.bool_] = (key >= 0) & (key == rows)
        return is_own

    def _row_counts(self, source: EntityRows | Activity, table: str) -> Codes:
        """For each row of a table how many rows its entity has there, or how many it owns at all levels, in bins."""
        if isinstance(source, Activity):
            return bin_of(self._rows_below(table, source.links), source.edges)
        entities = exact.as_indices(self._data[table].entities)
        return bin_of(np.bincount(entities), source.edges)[entities]

    def _rows_below(self, table: str, links: Sequence[LinkFacts]) -> Integers:
        """How many rows each row of a table owns, through a tree of owner keys; rows without owner are nobody's."""
        rows = np.zeros(self._size(table), np.int64)
        for link in links:
            if link.target == table:
                owners, below = self._key(link), self._rows_below(link.table, links)
                owned = owners >= 0
                rows += exact.sums_by_cell(1 + below[owned], owners[owned], len(rows))
        return rows

    def _cluster(self, block: Block, source: Cluster) -> Codes:
        """Which centre each row of a block is nearer to; remembered, as a round asks for it column by column."""
        before, centres, labels = self._labels
        if before is not block or centres is not source:
            right = nearer_right(self._rows.codes(block, source.columns), source.columns, source.centres)
            labels = np.zeros(self._size(block.table), np.uint8)
            labels[self._rows.of(block)] = right
            self._labels = (block, source, labels)
        return labels

    def _parts(self, table: str, blocks: Sequence[Block]) -> Codes:
        codes = np.full(self._size(table), -1, np.int64)
        for number, block in enumerate(blocks):
            codes[self._rows.of(block)] = number
        return codes

    def _slots(self, link: LinkFacts, *, shuffled: bool) -> Integers:
        """The slots that the key of every row references: rows in their order, entities perhaps in a secret one."""
        targets = self._key(link)
        if not shuffled or self.common.order is None:
            return targets
        return np.where(targets >= 0, self.common.order[np.maximum(targets, 0)], targets)

    def _agreement(self, table: str, source: Agreement) -> Codes:
        equals, owners = source.equals, self._key(source.link)
        if equals.rows is not None:
            expected = pa.array(self._fanouts(source.link).astype(np.int64))
        elif equals.owner is not None:
            expected = agreement.owners_values(owners, self._raw[source.link.target][equals.owner])
        else:
            expected = agreement.ranks(owners, self._places(source.link), first=equals.rank or 0)
        return agreement.compared(self._raw[table][source.column], expected, plain=source.plain)

    def days(self, table: str, column: str) -> Days:
        """The values of a column of dates or times, in days."""
        return days_of(self._raw[table][column])

    def differences(self, table: str, column: str, base: Base) -> Days:
        """How many days the values of a column are after those of its base; NaN where either is missing."""
        bases: Days = np.append(self.days(base.table(table), base.column), np.nan)[self.base_rows(table, base)]
        return self.days(table, column) - bases

    def base_rows(self, table: str, base: Base) -> Integers:
        """For each row of a table the row that its base is in; NULL where there is none."""
        return self._rows_above(table, base.path)

    def _rows_above(self, table: str, path: Sequence[LinkFacts]) -> Integers:
        """For each row of a table the row that owner keys lead to, one after the other; NULL where there is none."""
        rows = np.arange(self._size(table))
        for link in path:
            rows = np.maximum(np.append(self._key(link), NULL)[rows], NULL)
        return rows

    def _raw_codes(self, table: str, source: Magnitude | Step | Cell | Present) -> Codes:
        """The codes of the values of a column; -1 for NULL and for values without a code."""
        values = self._raw[table][source.column]
        there = one_array(values.is_valid()).to_numpy(zero_copy_only=False)
        codes = np.full(len(values), -1, np.int64)
        if isinstance(source, Present):
            codes[there] = 0
            return codes
        valid = values.drop_null()
        if isinstance(source, Magnitude):
            codes[there] = Magnitudes(type=source.type).of(valid)
        elif isinstance(source, Step):
            codes[there] = coarsest_step(source.type, valid)
        else:
            ticks = source.grid.ticks(valid)
            cells = np.searchsorted(np.array(source.starts, np.int64), ticks, side="right") - 1
            cells[(ticks > source.last) | np.isin(ticks, np.array(source.without, np.int64))] = -1
            codes[there] = cells
        return codes

    def _size(self, table: str) -> int:
        return len(self._data[table].entities)

    def _numbers(self, table: str) -> Codes | None:
        return self._data[table].numbers

    def _key(self, link: LinkFacts) -> Integers:
        return self._data[link.table].keys[link.name]


def _bins(axis: Axis, codes: Codes) -> Codes:
    """The bins of codes, -1 for none, in a narrow type."""
    if axis.bins.min() < 0 or np.issubdtype(codes.dtype, np.signedinteger):
        return np.append(axis.bins, -1).astype(np.int32)[exact.as_indices(codes)]
    bins: Codes = axis.bins.astype(np.uint8) if axis.size <= 2**8 else axis.bins.astype(np.uint16)
    return bins[exact.as_indices(codes)]


def _narrow(numbers: Integers) -> Codes:
    """Numbers that are not negative in the narrowest type that holds them."""
    narrow: Codes = numbers.astype(np.min_scalar_type(int(numbers.max(initial=0))))
    return narrow
