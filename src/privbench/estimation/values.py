"""Sampled rows, and values for columns that are coded as differences: what such a column is cannot be told from a code.

A query that asks for values of such a column is answered by the values of a sample, drawn several times: their mean,
and how far they lie apart.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.keys import rows_led_to, rows_named
from privbench.encode.predicate import IsNull, Predicate
from privbench.errors import SpecError
from privbench.generation.relative import RelativeColumns
from privbench.model.model import Model
from privbench.rules.computed import ComputedRows
from privbench.schema.computed import computed_from, equal_columns, public_paths, row_columns
from privbench.schema.relative import relative_columns, values_needed
from privbench.schema.tables import Place
from privbench.schema.unit import Protection, key_name

Rows = NDArray[np.int64]
UNKNOWN = (
    "is a key, or is computed from keys or rows below, which estimates do not know. Count in generated rows instead."
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampledTable:
    """Rows of one table."""

    rows: int
    codes: dict[str, NDArray[np.uint16]]
    targets: dict[str, Rows]
    """By key: its target row, of the sample or of a public table; -1 for NULL."""
    further_up: Rows
    """Of a row without owner, the row that its nearest implied key references; -1 for none, and for other rows."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sampled:
    """Rows of all private tables, and how many there are for one of the model's."""

    tables: dict[str, SampledTable]
    scale: float
    seed: int
    values: dict[tuple[str, str], pa.Array] = field(default_factory=dict)
    """By table and column: values that were asked for, which are drawn then (`estimation.values`)."""


def asks_for_values(model: Model, filters: Iterable[tuple[Place, Sequence[Predicate]]]) -> frozenset[Place]:
    """The columns whose values must be sampled to answer filters: relative and computed ones, and with them all bases.

    None where no filter compares a value of such a column: codes then tell everything.
    """
    protection = model.protection
    relative = {(t, c) for t in protection.order for c in relative_columns(protection, t)}
    computed = {(t, c) for t in protection.order for c in row_columns(protection, t)}
    compared = {_held(protection, *place) for place, parts in filters if not all(isinstance(p, IsNull) for p in parts)}
    asked = {place for place, _ in filters}
    if relative.isdisjoint(compared) and computed.isdisjoint(asked):
        return frozenset()
    bases = {base for place, named in computed_from(protection).items() if place in computed for base in named}
    learnt = {(t, c) for t, c in bases if t in model.codecs and c in model.codecs[t]}
    return frozenset(relative.union(computed, learnt, *(values_needed(protection, t) for t in protection.order)))


def _held(protection: Protection, table: str, column: str) -> Place:
    """The column of a row above whose values a column has: as a copy, or as a part of the key into a hidden list."""
    while (key := protection.owners.get(table)) is not None:
        equals = equal_columns(protection, table).get(column)
        if equals is not None and equals.owner is not None:
            table, column = key.table, equals.owner
        elif protection.schema.table(key.table).list_of and column in key.columns:
            table, column = key.table, key.references[key.columns.index(column)]
        else:
            break
    return table, column


def sampled_values(model: Model, sample: Sampled, table: str, column: str) -> pa.Array:
    """The values of a modelled column in the rows of a sample; drawn once for each sample."""
    if (table, column) not in sample.values:
        relative = RelativeColumns(model, table)
        if column in relative:
            _draw_relative(model, sample, table, relative)
        elif column in row_columns(model.protection, table):
            sample.values[table, column] = _computed(model, sample, table, column)
        elif column not in model.codecs[table]:
            raise SpecError(f"{table}.{column}: {UNKNOWN}")
        else:
            rows, rng = sample.tables[table], _stream(model, sample, table, column)
            sample.values[table, column] = model.codecs[table][column].decode(rows.codes[column], rng, first_row=0)
    return sample.values[table, column]


def _computed(model: Model, sample: Sampled, table: str, column: str) -> pa.Array:
    """The values of a computed column, from those of the columns that it names."""
    own = {
        c: sampled_values(model, sample, t, c) for t, c in computed_from(model.protection)[table, column] if t == table
    }
    public = public_paths(model.protection, table)

    def other(name: str, named: str) -> pa.Array:
        if name not in public:
            return sampled_above(model, sample, table, name, named)
        rows = sample.tables[table].targets[public[name][0].name]
        for link in public[name][1:]:
            held, target = model.public_table(link.table), model.public_table(link.target)
            keys, referenced = link.key.columns, link.key.references
            led_to = rows_named([held.column(c) for c in keys], [target.column(c) for c in referenced])
            rows = np.where(rows < 0, -1, led_to[rows])
        values = model.public_table(name, [named]).column(0).combine_chunks()
        return values.take(pa.array(np.maximum(rows, 0), mask=rows < 0))

    with ComputedRows(model.protection, table, (column,)) as rows:
        return rows.values(own, other, count=sample.tables[table].rows)[column]


def _draw_relative(model: Model, sample: Sampled, table: str, relative: RelativeColumns) -> None:
    """Work out all relative columns of a table at once."""
    link, rows = model.protection.owner_link(table), sample.tables[table]
    owners = None if link is None else rows.targets[link.name]
    plain = [name for name in relative.needed if name in model.codecs[table] and name not in relative]
    values = {name: sampled_values(model, sample, table, name) for name in plain}

    def above(owner: str, column: str) -> pa.Array:
        return sampled_above(model, sample, table, owner, column)

    values |= relative.decoded(rows.codes, _stream(model, sample, table, ""), owners, values, above)
    values |= relative.restored(values, above)
    sample.values.update({(table, name): values[name] for name in values if name in relative})


def sampled_above(model: Model, sample: Sampled, table: str, above: str, column: str) -> pa.Array:
    """A column of the rows above those of a sampled table."""
    rows = rows_above(model.protection, sample.tables, table, np.arange(sample.tables[table].rows), above)
    return sampled_values(model, sample, above, column).take(pa.array(np.maximum(rows, 0), mask=rows < 0))


def rows_above(protection: Protection, tables: Mapping[str, SampledTable], table: str, rows: Rows, above: str) -> Rows:
    """The rows of a table above that owner keys lead to from some rows of a table; -1 where there is none."""
    path = protection.up_to(table, above)
    return rows_led_to(rows, (tables[name].targets[key_name(name, protection.owners[name])] for name in path))


def _stream(model: Model, sample: Sampled, table: str, column: str) -> np.random.Generator:
    """A stream of its own for each column of each sample; the empty name is for all relative columns together."""
    names = [t.name for t in model.protection.schema.tables]
    place = [c.name for c in model.protection.schema.table(table).columns].index(column) + 1 if column else 0
    return np.random.default_rng((sample.seed, names.index(table), place))
