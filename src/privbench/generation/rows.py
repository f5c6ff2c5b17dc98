"""The values of synthetic rows, block by block: decoded codes, key values, keys kept unique.

Blocks of private tables come from `draws`; what tables made later need of the rows is carried on.

Public tables are copied. Keys of theirs that reference private rows are kept or redrawn: where the ids of the entity
table are kept, such keys stay valid as they are. At other scales the ids are moved in order, so that what two public
tables say of one entity stays together. Keys into other private tables, and into public rows whose own key was
redrawn, are drawn over the rows that are there.
"""

import io
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privbench.generation.blocks import BLOCK_ROWS
from privbench.generation.carried import Spools
from privbench.generation.computed import copied_columns, number_columns
from privbench.generation.draws import Block, Draws
from privbench.generation.keys import KeyMaker, rows_further_up
from privbench.generation.members import MemberRules
from privbench.generation.relative import RelativeColumns, difference
from privbench.generation.ruled import KeptRules, RuleCounts, without_broken_keys
from privbench.generation.sizes import Sizes
from privbench.generation.unique import ROUNDS, Uniqueness, deduplicated
from privbench.io.base import arrow_schema
from privbench.methods.method import TableModel
from privbench.model.clustering import clustered_order, computed_first, value_ranks
from privbench.model.model import Model
from privbench.model.order import colliding_keys, is_numbered, redrawn_links, references_entity
from privbench.model.schedule import Ready, schedule
from privbench.rules.computed import ComputedRows
from privbench.schema.computed import equal_columns, public_paths
from privbench.schema.domain import Serial, never_repeats
from privbench.schema.expression import ColumnName
from privbench.schema.unit import Link, LinkKind, key_name
from privbench.spn.feature_names import rows_column

Places = NDArray[np.int64]
PASSES = 4
"""How often keys are made unique where that may break rules; rows that still repeat a key are left out."""
FEW_REPEATED = 1_000
"""Where at most one row of so many repeats a key, another pass costs more than it saves."""


class Made(NamedTuple):
    """Rows of a table, in the order in which they were made, and the row number of each one's owner (-1: none)."""

    batch: pa.RecordBatch
    owners: Places | None = None


class PrivateRows:
    """Makes the rows of one private table."""

    def __init__(
        self,
        model: Model,
        name: str,
        *,
        draws: Draws,
        sizes: Sizes,
        keys: KeyMaker,
        spools: Spools,
        is_ahead: bool = False,
    ) -> None:
        """`is_ahead` says that keys of tables made before reference rows by their numbers: none may lack."""
        self._table = model.protection.schema.table(name)
        self._protection = model.protection
        self._codecs = model.codecs[name]
        self._relative = RelativeColumns(model, name)
        self._links = model.protection.links_of(name)
        self._owner = model.protection.owner_link(name)
        self._implied = model.protection.implied_of(name)
        self._settled = {c for link in self._implied for c in link.key.columns}
        self._settled |= set() if self._owner is None else set(self._owner.key.columns)
        self._draws = draws
        self._sizes = sizes
        self._keys = keys
        self._spools = spools
        self._carries = spools.carries(name)
        self._members = MemberRules(model.protection, self._table)
        known = schedule(model.spec, model.protection)
        self._computed = ComputedRows(model.protection, name, known.formulas(name, Ready.DRAWN, Ready.NUMBERED))
        self._public = public_paths(model.protection, name)
        waiting = known.formulas(name, Ready.RENUMBERED, Ready.SUMMED)
        self._late = [self._table.column(c) for c in waiting]
        self._unique = [
            Uniqueness(key, local=self._holds_owner(key)) for key in colliding_keys(model.spec, self._table)
        ]
        self._numbered = {c for c in self._codecs if never_repeats(model.spec.column(name, c).domain)}
        self._clusters = model.spec.tables[name].clustered_by
        first = computed_first(model.protection, name, [level.column for level in self._clusters])
        self._computed_first = ComputedRows(model.protection, name, first)
        equal = equal_columns(model.protection, name)
        self._ranks = [column for column, equals in equal.items() if equals.rank is not None]
        self._key_rules, early = (known.rules(self._table, ready) for ready in (Ready.NUMBERED, Ready.DRAWN))
        self._nulled = known.nulled_columns(self._table, self._key_rules)
        drawn = [c for c in self._codecs if not self._relative.is_sequence(c)]
        self._rules = KeptRules(self._table, model.protection.schema, rules=early, drawn=drawn) if early else None
        named = {name.column for rule in early for name in rule.columns if name.table is None}
        ruled = computed_first(model.protection, name, named)
        self._ruled_formulas = ComputedRows(model.protection, name, ruled)
        self._computed_in_rules = bool(ruled)
        self._fixed = self._fixed_columns(model.tables[name])
        fixed = self._numbered & self._fixed
        self._serial = {c for c in fixed if isinstance(model.spec.column(name, c).domain, Serial)}
        tied = {*named, *self._relative.needed, *(c for c in self._codecs if c in self._relative), *self._numbered}
        self._free = set() if self._computed_in_rules else set(self._codecs) - tied
        self._refills = is_ahead and named.isdisjoint((*self._numbered, *self._ranks))

    @property
    def rule_counts(self) -> RuleCounts | None:
        """What it took so far to keep the table's rules; None if there are none."""
        if self._rules is not None:
            return self._rules.counts
        return RuleCounts() if self._table.checks else None

    def batches(self) -> Iterator[Made]:
        """The table, at most a few blocks in memory."""
        try:
            yield from self._batches()
        finally:
            if self._rules is not None:
                self._rules.close()

    def _batches(self) -> Iterator[Made]:
        written = 0
        schema = arrow_schema(self._table)
        with self._computed, self._computed_first, self._ruled_formulas, self._members:
            for block in self._draws.blocks():
                values, owners = self._block(block, written)
                count = len(next(iter(values.values())))
                written += count
                if count:
                    batch = pa.RecordBatch.from_arrays([values[f.name] for f in schema], schema=schema)
                    self._keys.spool(self._table, batch, owners)
                    yield Made(batch, owners)

    def _block(self, block: Block, written: int) -> tuple[dict[str, pa.Array], Places | None]:
        """The values of a block's rows, and their owners."""
        values, broken = self._ruled(block, self._values(block, written))
        for _ in range(PASSES if self._unique else 0):
            for unique in self._unique:
                values = unique.repaired(values, partial(self._redraw, unique, values, block, written))
            if self._rules is None:
                break
            values, broken = self._ruled(block, values)  # to repair a key may break a rule, and the other way round
            if all(unique.repeated(values).sum() <= block.rows // FEW_REPEATED for unique in self._unique):
                break
        if self._rules is not None:
            for unique in (u for u in self._unique if not self._free.isdisjoint(u.columns)):
                values = unique.repaired(values, partial(self._redraw_free, unique, block))
        keep = self._complete(values, block.rows)
        if self._rules is not None:
            self._rules.counts.left_out += int((broken & keep).sum())
        values, keep = deduplicated(values, keep & ~broken, self._unique)
        values, keep = self._ranked(block, values, keep)
        values, kept = self._refilled(block, values, np.flatnonzero(keep))
        values, kept = self._clustered(block, values, kept)
        numbers = np.arange(written, written + len(kept))  # each row's number in the table
        values |= self._within(block, kept, numbers)
        if is_numbered(self._table, self._table.primary_key):
            values[self._table.primary_key[0]] = self._keys.own_key(self._table, numbers)
        values |= self._computed_values(block, values, kept)
        if self._key_rules:
            values = without_broken_keys(
                self._protection.schema,
                self._table,
                self._key_rules,
                values,
                nulled=self._nulled,
                again=lambda changed: changed | self._computed_values(block, changed, kept),
            )
        self._carry(block, kept, values)
        if self._owner is None:
            return values, None
        owners, unchanged = self._owners(block), len(kept) == block.rows and not self._clusters
        return values, owners if unchanged else owners[kept]

    def _ranked(
        self, block: Block, values: dict[str, pa.Array], keep: NDArray[np.bool_]
    ) -> tuple[dict[str, pa.Array], NDArray[np.bool_]]:
        """The values of the rows that are kept, numbered again among those of their owner if some were left out.

        A row that then breaks a rule or repeats a key is left out as well.
        """
        while self._ranks and not keep.all():
            kept = np.flatnonzero(keep)
            targets = {name: rows[kept] for name, rows in block.targets.items()}
            counts = {name: rows[kept] for name, rows in block.counts.items()}
            numbers = dict(number_columns(self._protection, self._table, targets=targets, counts=counts))
            values |= {name: numbers[name] for name in self._ranks}
            stay = np.ones(len(kept), bool)
            if self._rules is not None:
                elsewhere = partial(self._elsewhere, block, kept)
                values |= self._ruled_formulas.values(values, elsewhere, count=len(kept))
                stay = ~self._rules.broken(values, self._asked_above(block, kept))
                self._rules.counts.left_out += int((~stay).sum())
            values, stay = deduplicated(values, stay, [u for u in self._unique if u.is_local])
            if stay.all():
                break
            keep[kept[~stay]] = False
        return values, keep

    def _refilled(self, block: Block, values: dict[str, pa.Array], kept: Places) -> tuple[dict[str, pa.Array], Places]:
        """The rows that stay, and where none may lack copies beside them of some, one for each that was left out.

        Keys of such a table are numbers: copies repeat none. What never repeats is made for each row anew.
        """
        lost = block.rows - len(kept)
        if not self._refills or not lost or not len(kept):
            return values, kept
        order = np.sort(np.append(np.arange(len(kept)), block.rng.integers(0, len(kept), lost)))
        values, kept = {name: array.take(pa.array(order)) for name, array in values.items()}, kept[order]
        for name in self._numbered:
            values[name] = self._codecs[name].decode(block.codes[name][kept], block.rng, first_row=block.first_row)
        if self._ranks:
            targets = {name: rows[kept] for name, rows in block.targets.items()}
            counts = {name: rows[kept] for name, rows in block.counts.items()}
            numbers = dict(number_columns(self._protection, self._table, targets=targets, counts=counts))
            values |= {name: numbers[name] for name in self._ranks}
        if self._rules is not None:
            self._rules.counts.left_out -= lost
            self._rules.counts.copied += lost
        return values, kept

    def _asked_above(self, block: Block, places: Places | None = None) -> dict[ColumnName, pa.Array]:
        """The columns of rows above that rules name."""
        names = [] if self._rules is None else [name for name in self._rules.columns if name.table is not None]
        return {n: self._above(block, n.table, n.column, places=places) for n in names if n.table is not None}

    def _clustered(self, block: Block, values: dict[str, pa.Array], kept: Places) -> tuple[dict[str, pa.Array], Places]:
        """The values of a block's rows in the order in which they lie, and their places in the block.

        Numbers that ascend with the rows do so still, unless a rule names them.
        """
        if not self._clusters:
            return values, kept
        elsewhere = partial(self._elsewhere, block, kept)
        known = values | self._computed_first.values(values, elsewhere, count=len(kept))
        ranks = [value_ranks(known[level.column]) for level in self._clusters]
        order = clustered_order(ranks, self._clusters, block.rng)
        stay = {name for name in self._serial if not values[name].null_count}
        moved = {name: array if name in stay else array.take(pa.array(order)) for name, array in values.items()}
        return moved, kept[order]

    def _owners(self, block: Block) -> Places:
        """The owners of a block's rows; of rows without one, rows further up."""
        assert self._owner is not None  # noqa: S101  else nothing is above
        owners = block.targets[self._owner.name]
        return owners if block.further_up is None else rows_further_up(owners, block.further_up)

    def _ruled(self, block: Block, values: dict[str, pa.Array]) -> tuple[dict[str, pa.Array], NDArray[np.bool_]]:
        """The values with rows drawn again that break a rule, and the rows that break one still."""
        if self._rules is None:
            return values, np.zeros(block.rows, bool)
        if self._computed_in_rules:
            places = np.arange(block.rows)
            values |= self._ruled_formulas.values(values, partial(self._elsewhere, block, places), count=block.rows)
        return self._rules.repaired(
            values,
            self._asked_above(block),
            within=partial(self._redraw_within, block),
            redraw=partial(self._redraw_rows, block),
            copy=partial(self._copy_columns, block),
            rng=block.rng,
        )

    def _redraw_rows(
        self, block: Block, places: Places, columns: Collection[str] | None, now: Mapping[str, pa.Array]
    ) -> dict[str, pa.Array]:
        """New codes for some rows, in some columns or in all that were not used yet, and the values of the columns."""
        codes = self._draws.redraw(block, places, columns)
        names = block.codes.keys() - self._fixed if columns is None else columns
        for name in names:
            block.codes[name][places] = codes[name]
        return self._of_codes(block, places, names, now)

    def _redraw_within(
        self, block: Block, places: Places, columns: Collection[str] | None, now: Mapping[str, pa.Array]
    ) -> dict[str, pa.Array]:
        """Other codes of the same bins for some rows, in some columns, and the values of the columns."""
        names = self._codecs.keys() if columns is None else columns
        for name, codes in self._draws.redraw_within(block, places, names).items():
            block.codes[name][places] = codes
        return self._of_codes(block, places, names, now)

    def _copy_columns(
        self,
        block: Block,
        places: Places,
        others: Places,
        columns: Collection[str],
        now: Mapping[str, pa.Array],
        taken: Mapping[str, pa.Array] | None,
    ) -> dict[str, pa.Array]:
        """The codes of some columns taken from other rows, and values of these codes, or `taken` as they are."""
        for name in columns:
            block.codes[name][places] = block.codes[name][others]
        return self._of_codes(block, places, columns, now, taken)

    def _of_codes(
        self,
        block: Block,
        places: Places,
        columns: Collection[str],
        now: Mapping[str, pa.Array],
        taken: Mapping[str, pa.Array] | None = None,
    ) -> dict[str, pa.Array]:
        """New values of some columns for some rows, and of what is worked out from them; `now` are those so far.

        They are those `taken`, if there are any, unless values never repeat.
        """
        values: dict[str, pa.Array] = {}
        for name in (c for c in self._codecs if c in columns):
            drawn = difference(name) if name in self._relative else name
            if taken is None or name in self._numbered:
                values[drawn] = self._decoded(block, name, places)
            else:
                values[drawn] = taken[drawn]
        if self._relative:
            values |= self._relative.restored({**now, **values}, partial(self._above, block, places=places))
        if self._computed_in_rules:
            elsewhere = partial(self._elsewhere, block, places)
            values |= self._ruled_formulas.values({**now, **values}, elsewhere, count=len(places))
        return values

    def _decoded(self, block: Block, name: str, places: Places) -> pa.Array:
        """New values of a column for some rows. Values that never repeat are made of the rows' own numbers."""
        codec, codes = self._codecs[name], block.codes[name]
        if name in self._numbered:
            return codec.decode(codes, block.rng, first_row=block.first_row).take(pa.array(places))
        return codec.decode(codes[places], block.rng, first_row=block.first_row)

    def _fixed_columns(self, model: TableModel) -> set[str]:
        """The columns that stay when a row is drawn again: those by which its keys and its rows were drawn already.

        So do values that never repeat, unless a rule names them.
        """
        fixed = {
            column.name
            for link in self._links
            for column in model.links[link.name].columns(link)
            if not column.on_target or link.target == link.table
        }
        counted = {equals.rows for equals in equal_columns(self._protection, self._table.name).values()}
        owners = self._protection.owners
        fixed |= {rows_column(key_name(t, key)) for t, key in owners.items() if t in counted}
        named = {name.column for check in self._table.checks for name in check.columns if name.table is None}
        sequences = {name for name in self._codecs if self._relative.is_sequence(name)}
        return fixed | sequences | (self._numbered - named)

    def _computed_values(self, block: Block, values: Mapping[str, pa.Array], places: Places) -> dict[str, pa.Array]:
        """The columns that are computed from those of some rows of a block; what comes late is NULL until then."""
        made = self._computed.values(values, partial(self._elsewhere, block, places), count=len(places))
        return made | {c.name: pa.nulls(len(places), c.type.arrow) for c in self._late}

    def _elsewhere(self, block: Block, places: Places, table: str, column: str) -> pa.Array:
        """A column of the rows above some rows of a block, or of the public rows that they reference."""
        path = self._public.get(table)
        if path is not None:
            return self._keys.values(table, column, self._keys.led_to(path, block.targets[path[0].name][places]))
        return self._above(block, table, column, places=places)

    def _above(self, block: Block, table: str, column: str, *, places: Places | None = None) -> pa.Array:
        """A column of the rows above those of a block, or of some of them; NULL for rows without an owner."""
        assert self._owner is not None  # noqa: S101  else nothing is above
        further_up = self._implied[0].target if self._implied else None
        owners = self._owners(block)
        owners = owners if places is None else owners[places]
        return self._keys.above(self._owner.target, owners, table=table, column=column, further_up=further_up)

    def _carry(self, block: Block, kept: Places, values: Mapping[str, pa.Array]) -> None:
        if not self._carries:
            return
        codes = block.features(self._spools.features(self._table.name), kept)
        counts = {name: rows[kept] for name, rows in block.counts.items()}
        entities = block.entities()[np.sort(kept)]  # a row that moved is an entity of its own: they ascend still
        owners = None if self._owner is None else block.targets[self._owner.name][kept]
        able = self._members.able(values, partial(self._above, block, places=kept))
        self._spools.carry(
            self._table.name, codes=codes, counts=counts, entities=entities, owners=owners, able=able, rng=block.rng
        )

    def _within(self, block: Block, kept: Places, numbers: Places) -> dict[str, pa.Array]:
        """Keys to the table's own rows, moved to rows that are there for sure, since rows may be lost."""
        values: dict[str, pa.Array] = {}
        for link in (k for k in self._links if k.target == self._table.name):
            in_key = any(set(link.key.columns) & set(unique.columns) for unique in self._unique)
            in_key |= link.kind is LinkKind.INSIDE  # another row might be another entity's
            targets = block.targets[link.name][kept]
            if link.name in block.local:
                values |= self._key_values(link, _moved_within(targets, block.rows, kept, numbers, null=in_key))
            elif self._unique:
                there = int(numbers.max(initial=-1)) + 1
                moved = np.where(targets < there, targets, -1 if in_key else targets % max(there, 1))
                values |= self._key_values(link, moved)
        return values

    def _values(self, block: Block, written: int) -> dict[str, pa.Array]:
        values: dict[str, pa.Array] = {}
        for name, codec in self._codecs.items():
            if name not in self._relative:
                values[name] = codec.decode(block.codes[name], block.rng, first_row=block.first_row)
        owners = None if self._owner is None else block.targets[self._owner.name]
        above = partial(self._above, block)
        values |= self._relative.decoded(block.codes, block.rng, owners, values, above)
        values |= self._relative.restored(values, above)
        for link in self._links:
            values |= self._key_values(link, _as_rows(block, link, block.targets[link.name], written))
        values |= self._implied_values(block)
        return values | dict(number_columns(self._protection, self._table, targets=block.targets, counts=block.counts))

    def _references(self, link: Link) -> dict[str, str]:
        """The columns that take a value of a key's target row, and which: its own, and copies of the owner's."""
        own = dict(zip(link.key.columns, link.key.references, strict=True))
        if link.kind is LinkKind.INSIDE:  # where keys share a column, they have the same value there
            return {name: reference for name, reference in own.items() if name not in self._settled}
        return own | (copied_columns(self._protection, self._table.name) if link.kind is LinkKind.OWNER else {})

    def _key_values(self, link: Link, targets: Places) -> dict[str, pa.Array]:
        """The values of a key. Where only some of its columns may be NULL, the others of a NULL key have any value."""
        partly = link.nullable and self._sizes[link.target] > 0
        values = {}
        for name, reference in self._references(link).items():
            column, rows = self._table.column(name), targets
            if partly and not column.nullable:
                rows = np.where(targets < 0, np.arange(len(targets)) % max(self._sizes[link.target], 1), targets)
            values[column.name] = self._keys.values(link.target, reference, rows).cast(column.type.arrow)
        return values

    def _implied_values(self, block: Block) -> dict[str, pa.Array]:
        """The values of implied keys: those of the rows above."""
        return {
            name: self._above(block, link.target, reference).cast(self._table.column(name).type.arrow)
            for link in self._implied
            for name, reference in zip(link.key.columns, link.key.references, strict=True)
        }

    def _complete(self, values: Mapping[str, pa.Array], rows: int) -> NDArray[np.bool_]:
        """Rows that have all they must have: a NOT NULL key whose target table is empty cannot be filled."""
        keep = np.ones(rows, bool)
        for link in (*self._links, *self._implied):
            for name in self._references(link):
                if not self._table.column(name).nullable and values[name].null_count:
                    keep &= values[name].is_valid().to_numpy(zero_copy_only=False)
        return keep

    def _redraw(
        self,
        unique: Uniqueness,
        before: Mapping[str, pa.Array],
        block: Block,
        written: int,
        places: Places,
        attempt: int,
    ) -> dict[str, pa.Array]:
        """New values for a key's own columns: first from the network, then, if that keeps repeating, from anywhere.

        A single such column then tries one code after the other, so that a row finds a place if few are left. A column
        that goes on from row to row stays as it is; what is relative to a new value is worked out again.
        """
        values: dict[str, pa.Array] = {}
        names = [c for c in unique.columns if c in self._codecs and not self._relative.is_sequence(c)]
        from_network, onward = attempt < ROUNDS // 3, attempt > ROUNDS // 3 and len(names) == 1
        codes = self._draws.redraw(block, places, names) if from_network and names else {}
        for name in names:
            codec = self._codecs[name]
            if not from_network:
                most = codec.size - (codec.null_code is not None)
                last = block.codes[name][places] if onward else block.rng.integers(0, most, len(places))
                codes[name] = ((last + 1) % most).astype(np.uint16)
            drawn = difference(name) if name in self._relative else name
            values[drawn] = codec.decode(codes[name], block.rng, first_row=block.first_row)
            block.codes[name][places] = codes[name]
        if not values.keys().isdisjoint(self._relative.needed):
            around = {name: before[name].take(pa.array(places)) for name in self._relative.needed} | values
            values |= self._relative.restored(around, partial(self._above, block, places=places))
        for link in self._links:
            if link.kind not in (LinkKind.OWNER, LinkKind.INSIDE) and set(link.key.columns) & set(unique.columns):
                targets = block.targets[link.name]
                there = block.rows if link.name in block.local else self._sizes[link.target]
                anew = block.rng.integers(0, max(there, 1), len(places))
                targets[places] = np.where(targets[places] < 0, -1, anew)
                values |= self._key_values(link, _as_rows(block, link, targets[places], written))
        return values

    def _redraw_free(self, unique: Uniqueness, block: Block, places: Places, _attempt: int) -> dict[str, pa.Array]:
        """Any values for those columns of a key that no rule names and nothing is relative to."""
        values: dict[str, pa.Array] = {}
        for name in (c for c in unique.columns if c in self._codecs and c in self._free):
            codec = self._codecs[name]
            most = codec.size - (codec.null_code is not None)
            block.codes[name][places] = block.rng.integers(0, most, len(places)).astype(np.uint16)
            values[name] = codec.decode(block.codes[name][places], block.rng, first_row=block.first_row)
        return values

    def _holds_owner(self, key: tuple[str, ...]) -> bool:
        return self._owner is not None and set(self._owner.key.columns) <= set(key)


def _as_rows(block: Block, link: Link, targets: Places, written: int) -> Places:
    """The target rows of keys as long as no row of the block is lost or moved."""
    return np.where(targets < 0, -1, targets + written) if link.name in block.local else targets


def _moved_within(targets: Places, rows: int, kept: Places, numbers: Places, *, null: bool) -> Places:
    """The rows of the table that places of a block became; for one that was lost NULL, or another one."""
    if not len(kept):
        return targets
    became = np.full(rows, -1, np.int64) if null else numbers[np.arange(rows) % len(kept)]
    became[kept] = numbers
    return np.where(targets < 0, -1, became[targets])


class PublicRows:
    """Makes the rows of one public table."""

    def __init__(
        self, model: Model, name: str, *, sizes: Sizes, keys: KeyMaker, keep_entity_keys: bool, seed: int
    ) -> None:
        self._model = model
        self._table = model.protection.schema.table(name)
        self._sizes = sizes
        self._keys = keys
        redrawn = redrawn_links(model.protection, keep_entity_keys=keep_entity_keys)
        self._redrawn = [link for link in redrawn if link.table == name]
        changed = {c for link in self._redrawn for c in link.key.columns}
        self._unique = [Uniqueness(key, local=False) for key in self._table.keys if changed & set(key)]
        self._rng = np.random.default_rng((seed, [t.name for t in model.protection.schema.tables].index(name)))

    def batches(self) -> Iterator[Made]:
        """The table, batch by batch. Rows whose key cannot be made unique are left out."""
        for batch in pq.ParquetFile(io.BytesIO(self._model.public[self._table.name])).iter_batches(
            BLOCK_ROWS, use_threads=False
        ):
            values = {name: batch.column(name) for name in batch.schema.names}
            for link in self._redrawn:
                values |= self._key_values(link, self._targets(link, values))
            for unique in self._unique:
                values = unique.repaired(values, partial(self._redraw, unique, values))
            keep = np.ones(batch.num_rows, bool)
            for column in (c.name for c in self._table.columns if not c.nullable):
                keep &= values[column].is_valid().to_numpy(zero_copy_only=False)
            values, _ = deduplicated(values, keep, self._unique)
            made = pa.RecordBatch.from_pydict(values, schema=batch.schema)
            self._keys.spool(self._table, made)
            yield Made(made)

    def _targets(self, link: Link, values: dict[str, pa.Array]) -> NDArray[np.int64]:
        """The rows that a key shall reference, -1 for NULL."""
        old, there = values[link.key.columns[0]], self._sizes[link.target]
        null = old.is_null().to_numpy(zero_copy_only=False)
        if there == 0:
            return np.full(len(old), -1, np.int64)
        if references_entity(self._model.protection, link) and self._model.entity_keys is not None:
            ids = self._model.entity_keys.column(0)
            at = pc.index_in(old.cast(ids.type), value_set=ids).fill_null(0).to_numpy(zero_copy_only=False)
            rows = at.astype(np.int64) * there // len(ids)
        else:
            rows = self._rng.integers(0, there, len(old))
        return np.where(null, -1, rows)

    def _redraw(
        self, unique: Uniqueness, values: dict[str, pa.Array], places: NDArray[np.int64], _attempt: int
    ) -> dict[str, pa.Array]:
        drawn: dict[str, pa.Array] = {}
        for link in (k for k in self._redrawn if set(k.key.columns) & set(unique.columns)):
            null = values[link.key.columns[0]].is_null().to_numpy(zero_copy_only=False)[places]
            rows = self._rng.integers(0, max(self._sizes[link.target], 1), len(places))
            drawn |= self._key_values(link, np.where(null, -1, rows))
        return drawn

    def _key_values(self, link: Link, targets: NDArray[np.int64]) -> dict[str, pa.Array]:
        return {
            column: self._keys.values(link.target, reference, targets, first=0).cast(
                self._table.column(column).type.arrow
            )
            for column, reference in zip(link.key.columns, link.key.references, strict=True)
        }
