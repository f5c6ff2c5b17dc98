"""Rows that are made up from the schema alone: types, names, keys, rules, and domains where some are declared.

Nothing is read: the same tables have the same rows wherever they are made. Keys are numbered, foreign keys reference
rows that are there, columns that are UNIQUE do not repeat, and rows that break a rule are drawn again. What cannot be
made so is refused, with the table, the column and the remedy.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codec
from privbench.encode.guess import guess_shape
from privbench.encode.hashing import hash_rows, mix
from privbench.encode.interval import IntervalCodec
from privbench.encode.keys import MISSING, KeyIndex, any_null, comparable, repeated
from privbench.encode.narrow import narrowed, ruled_codec, rules_about, widest_domain
from privbench.encode.serial import TEXT_LENGTH, most_values, numbered
from privbench.encode.spelling import salt_of
from privbench.encode.text import made_up_domain
from privbench.errors import SchemaError, SpecError
from privbench.rules.evaluate import Evaluator
from privbench.rules.row_rules import RowRules
from privbench.schema.domain import Bins, Domain, Range, Serial, Text, implied_by_type
from privbench.schema.expression import ColumnName
from privbench.schema.tables import Column, ForeignKey, Place, Schema, Table
from privbench.schema.types import Kind, SqlType

_NULLS = 10
"""One of so many values of a column that may be NULL is NULL."""
_TRIES = 200
"""So often rows that break a rule are drawn again."""
MOST_VALUES = 10_000_000
"""No more values are made up for a table, so that whoever makes those of a model again is done in bounded time."""
_STRINGS = 1000
"""Made-up strings that may repeat are of so many different ones, or fewer."""
_NUMBERS, _YEARS, _BIRTHS = (1, 100), ("2000-01-01", "2025-01-01"), ("1940-01-01", "2006-01-01")
Rows = NDArray[np.int64]
_Part = str | ForeignKey
"""What rows can differ in: a column, or the row that a key references."""


def make_up_tables(
    tables: Sequence[Table],
    rows: Mapping[str, int],
    *,
    domains: Mapping[Place, Domain] | None = None,
    known: Mapping[str, pa.Table] | None = None,
) -> dict[str, pa.Table]:
    """Make up so many rows of each table from the schema alone; a table is a value of `arrow_schema(table)`.

    Foreign keys reference rows of these tables, or of tables in `known`, which hold at least the columns that are
    referenced; the tables may reference each other in circles, and themselves. `domains` are declared ones; a column
    without one gets values by its type and name. A computed column is worked out if it looks at its own row alone,
    else it is drawn like any other. Rules that look at the row alone are kept; those that name other tables are not
    looked at. Deterministic: the rows are a function of the arguments.

    Raises SchemaError or SpecError that name table and column where no such rows can be made.

    >>> from privbench.schema.types import parse_type
    >>> number, text = parse_type("INTEGER"), parse_type("VARCHAR(60)")
    >>> columns = (Column(name="id", type=number), Column(name="email", type=text, nullable=False))
    >>> staff = Table(name="staff", columns=columns, primary_key=("id",), uniques=(("email",),))
    >>> make_up_tables([staff], {"staff": 2})["staff"].to_pylist()[1]["id"]
    2
    """
    for table in tables:
        if (values := rows[table.name] * len(table.columns)) > MOST_VALUES:
            raise SpecError(
                f"tables.{table.name}.made_up: {rows[table.name]:,} rows have {values:,} values, at most "
                f"{MOST_VALUES:,} are made up. Say {MOST_VALUES // len(table.columns):,} or less."
            )
    declared, there = domains or {}, dict(known or {})
    counts = {name: held.num_rows for name, held in there.items()} | {t.name: rows[t.name] for t in tables}
    making = {t.name: _Making(t, rows[t.name], _of(t, declared), counts) for t in tables}
    _follow_keys(making, there)
    return {name: one.finished(making, there) for name, one in making.items()}


def _of(table: Table, domains: Mapping[Place, Domain]) -> dict[str, Domain]:
    return {c.name: domains[table.name, c.name] for c in table.columns if (table.name, c.name) in domains}


def _follow_keys(making: Mapping[str, "_Making"], known: Mapping[str, pa.Table]) -> None:
    """Give foreign keys their values, each when the columns that it references have theirs."""
    waiting = [(one, key) for one in making.values() for key in one.keys]
    while waiting:
        ready = [
            (one, key)
            for one, key in waiting
            if _referenced(key, making, known) is not None and not one.waits_for_wider(key, waiting)
        ]
        if not ready:
            one, key = waiting[0]
            raise SchemaError(
                f"{one.table.name}: its key {key} is part of a circle of keys in which no value can be made first. "
                "Take one key of the circle out of `foreign_keys` in the spec."
            )
        for one, key in ready:
            one.follow(key, _referenced(key, making, known) or [])
        waiting = [pair for pair in waiting if pair not in ready]


def _referenced(
    key: ForeignKey, making: Mapping[str, "_Making"], known: Mapping[str, pa.Table]
) -> list[pa.Array] | None:
    """The columns that a key references; None as long as some are not made."""
    if key.table not in making:
        return [known[key.table].column(name).combine_chunks() for name in key.references]
    columns = making[key.table].columns
    return [columns[name] for name in key.references] if all(name in columns for name in key.references) else None


class _Making:
    """The rows of one table while they are made."""

    def __init__(self, table: Table, rows: int, domains: Mapping[str, Domain], counts: Mapping[str, int]) -> None:
        self.table = table
        self.rows = rows
        self.columns: dict[str, pa.Array] = {}
        self.keys = sorted(table.foreign_keys, key=lambda key: (key.table == table.name, -len(key.columns)))
        self._domains = domains
        self._counts = counts
        self._picks: dict[_Part, Rows] = {}
        """Which value a column, or which row a key, takes where rows are to differ in it."""
        in_keys = {name for key in table.foreign_keys for name in key.columns}
        plain = [c for c in table.columns if c.name not in in_keys]
        self._worked_out = [c.name for c in plain if c.computed is not None and _looks_at_row(c, table)]
        self._drawn = [c for c in plain if c.name not in self._worked_out]
        for key in sorted(table.keys, key=len):
            self._make_differ(key)
        for column in self._drawn:
            self.columns[column.name] = self._values(column, np.arange(rows), attempt=0)

    # -- rows that differ ----------------------------------------------------------------------------------------

    def _make_differ(self, key: Sequence[str]) -> None:
        """Choose what makes rows differ in a key: one column or reference with room for all rows, else several."""
        parts: list[_Part] = [
            *(c.name for c in self._drawn if c.name in key),
            *(k for k in self.keys if {*k.columns} <= {*key}),
        ]
        if any(part in self._picks and len(np.unique(self._picks[part])) == self.rows for part in parts):
            return
        if not parts:
            return  # it is of parts of keys, or worked out: its rows are looked at when they are there
        rooms = {part: self._room(part) for part in parts}
        numbers = np.arange(self.rows)
        free = [part for part in parts if part not in self._picks]
        if roomy := [part for part in free if rooms[part] >= self.rows]:
            self._picks[max(roomy, key=lambda part: (isinstance(part, str), rooms[part]))] = numbers
            return
        if prod(rooms.values()) < self.rows:
            raise SchemaError(
                f"{self.table.name}.{','.join(key)}: there are {prod(rooms.values()):,} different values of this key, "
                f"fewer than the {self.rows:,} rows to be made up. Say `made_up: {prod(rooms.values())}` or less, or "
                "declare larger domains."
            )
        for part in free:
            self._picks[part], numbers = numbers % rooms[part], numbers // rooms[part]

    def _room(self, part: _Part) -> int:
        """How many different values there are of a column, or rows to reference."""
        if isinstance(part, ForeignKey):
            return self._counts[part.table]
        column = self.table.column(part)
        if not self._is_bounded(column):
            return most_values(column.type, length=_length(column), shape=self._shape(column, unique=True))
        codec = self._codec(column, differs=True)
        if isinstance(codec, IntervalCodec):
            return int(codec.last[-1] - codec.first[0]) + 1
        return codec.size - (codec.null_code is not None)

    def _is_bounded(self, column: Column) -> bool:
        """Whether a domain or a rule says which values of a column there are, not only how long they are."""
        said = self._given(column) is not None or bool(rules_about(self.table, column.name))
        return said and not isinstance(self._domain(column, differs=True), Text | Serial)

    # -- values --------------------------------------------------------------------------------------------------

    def _values(self, column: Column, rows: Rows, *, attempt: int) -> pa.Array:
        """Draw the values of a column in some rows: one by its pick where rows differ in it."""
        where = f"{self.table.name}.{column.name}"
        picks = self._picks.get(column.name)
        if picks is not None and not self._is_bounded(column):
            shape = self._shape(column, unique=True)
            return numbered(column.type, picks[rows], length=_length(column), shape=shape).cast(column.type.arrow)
        codec = self._codec(column, differs=picks is not None)
        if picks is not None and isinstance(codec, IntervalCodec):
            return codec.grid.values(codec.first[0] + picks[rows])
        rng = np.random.default_rng([salt_of(where), attempt])
        values = codec.size - (codec.null_code is not None)
        codes = rng.integers(0, values, len(rows)) if picks is None else picks[rows]
        if codec.null_code is not None and picks is None:
            codes = np.where(rng.integers(0, _NULLS, len(rows)) == 0, codec.null_code, codes)
        return codec.decode(codes.astype(np.uint16), rng, first_row=0)

    def _codec(self, column: Column, *, differs: bool) -> Codec:
        return ruled_codec(
            f"{self.table.name}.{column.name}",
            column.type,
            nullable=column.nullable,
            domain=self._domain(column, differs=differs),
            rules=rules_about(self.table, column.name) if column.computed is None else (),
        )

    def _domain(self, column: Column, *, differs: bool) -> Domain:
        """The declared domain of a column, or one by type and name; a wide one where rows are to differ in it."""
        if (given := self._given(column)) is not None:
            return given
        if column.type.kind is Kind.TEXT:
            return _strings(column.type, self._shape(column, unique=False), rows=self.rows)
        usual, where = usual_domain(column.name, column.type), f"{self.table.name}.{column.name}"
        fits = narrowed(where, column.type, usual, rules_about(self.table, column.name)) is not None
        return usual if fits and not differs else widest_domain(column.type)

    def _given(self, column: Column) -> Domain | None:
        """The domain that is declared, or that the schema promises."""
        return self._domains.get(column.name) or column.implied or implied_by_type(column.type)

    def _shape(self, column: Column, *, unique: bool) -> str | None:
        declared = self._domains.get(column.name)
        if isinstance(declared, Text):
            return declared.shape
        return guess_shape(column.name, column.type, table=self.table.name, unique=unique)

    # -- keys ----------------------------------------------------------------------------------------------------

    def waits_for_wider(self, key: ForeignKey, waiting: Sequence[tuple["_Making", ForeignKey]]) -> bool:
        """Whether a key of more columns, some of them the same, is to be followed first."""
        before = self.keys[: self.keys.index(key)]
        return any(one is self and other in before and {*other.columns} & {*key.columns} for one, other in waiting)

    def follow(self, key: ForeignKey, referenced: Sequence[pa.Array]) -> None:
        """Give a foreign key the values of rows that it references, which agree with keys that share columns."""
        shared = [c for c in key.columns if c in self.columns]
        nullable = any(self.table.column(c).nullable for c in key.columns if c not in shared)
        if len(shared) == len(key.columns):
            return  # checked at the end, with all other keys
        salt = salt_of(f"{self.table.name}.{','.join(key.columns)}")
        drawn = mix(np.arange(self.rows, dtype=np.uint64) ^ np.uint64(salt))
        agreeing = [referenced[key.columns.index(c)] for c in shared]
        targets, found = _draw_targets(
            drawn,
            [self.columns[c] for c in shared],
            agreeing,
            targets=len(referenced[0]),
            own=key.table == self.table.name,
        )
        if key in self._picks and not shared:
            targets, found = self._picks[key], np.ones(self.rows, bool)
        if not found.all() and not nullable:
            raise SchemaError(
                f"{self.table.name}: no row can be made up for its key {key}: {key.table} has no row that agrees. Say "
                f"that {key.table} has rows, or drop the column: `drop: true` under {key.columns[0]}."
            )
        chosen = pa.array(targets, mask=~found | self._is_null(key, drawn, nullable=nullable))
        for name, values in zip(key.columns, referenced, strict=True):
            if name not in shared:
                self.columns[name] = values.take(chosen).cast(self.table.column(name).type.arrow)

    def _is_null(self, key: ForeignKey, drawn: NDArray[np.uint64], *, nullable: bool) -> NDArray[np.bool_]:
        """Which rows have no target, by the last bits of what was drawn for them."""
        if not nullable or key in self._picks:
            return np.zeros(self.rows, bool)
        first = np.arange(self.rows) == 0 if key.table == self.table.name else False
        return np.asarray(mix(drawn) % np.uint64(_NULLS) == 0) | first

    # -- the end -------------------------------------------------------------------------------------------------

    def finished(self, making: Mapping[str, "_Making"], known: Mapping[str, pa.Table]) -> pa.Table:
        """Work out computed columns, draw rows again that break a rule, and see that all of it holds."""
        self._work_out()
        self._keep_rules()
        self._check_keys(making, known)
        schema = pa.schema([pa.field(c.name, c.type.arrow) for c in self.table.columns])
        return pa.table([self.columns[c.name] for c in self.table.columns], schema=schema)

    def _work_out(self) -> None:
        if not self._worked_out:
            return
        columns = [self.table.column(name) for name in self._worked_out]
        expressions = [c.computed for c in columns if c.computed is not None]
        named = {name for expression in expressions for name in expression.columns}
        types = {name: self.table.column(name.column).type.arrow for name in named}
        with Evaluator(expressions, types, where=self.table.name) as evaluator:
            values = evaluator.values({name: self.columns[name.column] for name in named} or self._any_column())
        for column, made in zip(columns, values, strict=True):
            self.columns[column.name] = made.cast(column.type.arrow)

    def _any_column(self) -> dict[ColumnName, pa.Array]:
        return {ColumnName(None, name): values for name, values in self.columns.items()}

    def _keep_rules(self) -> None:
        """Draw rows again that break a rule, but for what rows differ in."""
        if not self.table.own_checks:
            return
        again = [c for c in self._drawn if c.name not in self._picks]
        with RowRules.of(self.table, _alone(self.table), self.table.own_checks) as rules:
            for attempt in range(1, _TRIES + 1):
                broken = rules.broken({name: self.columns[name.column] for name in rules.columns})
                rows = np.flatnonzero(broken.any(axis=0))
                if not len(rows):
                    return
                for column in again:
                    both = [self.columns[column.name], self._values(column, rows, attempt=attempt)]
                    places = np.arange(self.rows)
                    places[rows] = self.rows + np.arange(len(rows))
                    self.columns[column.name] = pa.concat_arrays(both).take(pa.array(places))
                self._work_out()
        rule = rules.rules[int(np.flatnonzero(broken.any(axis=1))[0])]
        raise SpecError(
            f"tables.{self.table.name}.rules: {rule}: no rows could be made up that keep it. Declare domains of its "
            "columns so that rows can keep it, or take the rule out."
        )

    def _check_keys(self, making: Mapping[str, "_Making"], known: Mapping[str, pa.Table]) -> None:
        """Refuse rows that would not load. It is the last word on keys that share columns."""
        for key in self.table.keys:
            columns = [comparable(self.columns[name]) for name in key]
            kept = pa.array(~any_null(columns))
            if repeated([column.filter(kept) for column in columns]):
                raise SchemaError(
                    f"{self.table.name}.{','.join(key)}: {self.rows:,} rows that differ in this key could not be made "
                    "up. Say fewer rows (`made_up: N`), or take the key out of `unique` and `indexes` in the spec."
                )
        for foreign in self.table.foreign_keys:
            columns = [self.columns[name] for name in foreign.columns]
            index = KeyIndex(self.table.name, _referenced(foreign, making, known) or [], nullable=True)
            if (index.find(columns) == MISSING).any():
                raise SchemaError(
                    f"{self.table.name}: rows that agree in all keys that share columns of {foreign} could not be made "
                    "up. Take one of these keys out of `foreign_keys` in the spec."
                )


def _draw_targets(
    drawn: NDArray[np.uint64], shared: Sequence[pa.Array], referenced: Sequence[pa.Array], *, targets: int, own: bool
) -> tuple[Rows, NDArray[np.bool_]]:
    """Draw a row of the target for each row, of those that agree in what is `shared`, and say whether there is one.

    Of the own table it is an earlier row, so that no circles come about; the first row has but itself.
    """
    there = hash_rows([comparable(c) for c in referenced]) if shared else np.zeros(targets, np.uint64)
    wanted = hash_rows([comparable(c) for c in shared]) if shared else np.zeros(len(drawn), np.uint64)
    order = np.argsort(there, kind="stable")
    first = np.searchsorted(there[order], wanted, side="left")
    count = np.searchsorted(there[order], wanted, side="right") - first
    if own and not shared:
        count = np.minimum(count, np.maximum(np.arange(len(drawn)), 1))
    places = first + (drawn % np.maximum(count, 1).astype(np.uint64)).astype(np.int64)
    return np.append(order, 0)[np.minimum(places, targets)], count > 0


def _length(column: Column) -> int:
    """How long texts are that rows differ in."""
    return TEXT_LENGTH if column.type.length is None else min(TEXT_LENGTH, column.type.length)


def _looks_at_row(column: Column, table: Table) -> bool:
    """Whether a computed column can be worked out from drawn columns of its row."""
    expression = column.computed
    if expression is None or expression.aggregated:
        return False
    computed = {c.name for c in table.columns if c.computed is not None}
    return all(name.table is None and name.column not in computed for name in expression.columns)


def _alone(table: Table) -> Schema:
    return Schema(tables=(replace(table, foreign_keys=()),))


def _strings(kind: SqlType, shape: str | None, *, rows: int) -> Domain:
    """Made-up strings that may repeat, of no more different ones than there are."""
    domain = made_up_domain(kind, shape=shape, unique=False)
    if not isinstance(domain, Text) or domain.distinct is not None:
        return domain
    room = most_values(kind, length=kind.length or 64, shape=shape)
    return domain.model_copy(update={"distinct": max(1, min(_STRINGS, rows, room))})


def usual_domain(name: str, kind: SqlType) -> Domain:
    """Values that a column of this type and name might have."""
    low, high = _NUMBERS
    word = name.lower()
    if kind.kind in (Kind.DATE, Kind.TIMESTAMP):
        years = _BIRTHS if "birth" in word or word == "dob" else _YEARS
        return Bins(bins=years, step="1d" if kind.kind is Kind.DATE else "1s")
    if kind.kind is Kind.TIME:
        return Bins(bins=("00:00:00", "24:00:00"), step="1s")
    if kind.kind is Kind.DURATION:
        return Bins(bins=("0s", "1d"), step="1s")
    if kind.kind is Kind.INTEGER:
        is_year = word.endswith("year") and kind.bits > 8
        return Range(range=(1990, 2024) if is_year else (low, min(high, kind.bounds[1])))
    if kind.kind is Kind.DECIMAL:
        whole = kind.precision - kind.scale
        return Bins(bins=(0, min(high, 10**whole)))
    return Bins(bins=(0, high), step=0.01)
