"""The columns of a model as `model_values` wants them, whatever they are: modelled, public, computed, keys, made up."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from privbench.encode.interval import IntervalCodec
from privbench.encode.listed import OrderedList, TextList
from privbench.encode.predicate import Between
from privbench.encode.text import LengthCodec
from privbench.estimation.estimate import cardinality
from privbench.estimation.sample import sampled
from privbench.estimation.values import sampled_values
from privbench.generation.keys import KeyMaker, keeps_entity_keys
from privbench.model.model import Model
from privbench.model.order import is_numbered
from privbench.schema.computed import equal_columns
from privbench.schema.domain import Origin
from privbench.schema.types import Kind, SqlType
from privbench.schema.unit import Link, Role
from privbench.spn.infer import marginal
from privbench.workload.model_values import (
    MOST_STRINGS,
    ModelColumn,
    interval_column,
    listed_column,
    made_up_column,
)
from privbench.workload.table_names import OutsideError
from privbench.workload.trace import Base

_DECLARED = (Origin.DECLARED, Origin.SCHEMA)
_COUNTS = (*range(33), *(2**n for n in range(6, 21)))
"""Numbers of rows at which the distribution of a computed column is read from the model."""


class ModelColumns:
    """Finds, and remembers, the columns of one model."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._rows = {name: max(round(table.rows), 1) for name, table in model.tables.items()}
        self._kept = keeps_entity_keys(model, 1.0)
        self._keys = KeyMaker(model, keep_entity_keys=self._kept, folder=Path())

    def type_of(self, table: str, column: str) -> SqlType:
        return self._model.protection.schema.table(table).column(column).type

    def origin(self, table: str, column: str) -> Base:
        """The column whose values a foreign key's, or a copy's, are; a public table keeps its keys if it can."""
        protection = self._model.protection
        equals = None if protection.roles[table] is Role.PUBLIC else equal_columns(protection, table).get(column)
        if equals is not None and equals.owner is not None:
            return self.origin(protection.owners[table].table, equals.owner)
        for link in protection.keys:
            if link.table == table and column in link.key.columns and not self._keeps(link):
                return self.origin(link.key.table, link.key.references[link.key.columns.index(column)])
        return table, column

    def _keeps(self, link: Link) -> bool:
        """Whether a public table keeps the values of a key as they are: it references public rows, or kept ids."""
        roles, target = self._model.protection.roles, link.key.table
        is_kept = roles[target] is Role.PUBLIC or (self._kept and target == self._model.protection.entity)
        return roles[link.table] is Role.PUBLIC and is_kept

    def column(self, table: str, name: str) -> ModelColumn:
        """Make a column; OutsideError if the model does not know its values."""
        declared, where, kind = self._model.protection.schema.table(table), f"{table}.{name}", self.type_of(table, name)
        if self._model.protection.roles[table] is Role.PUBLIC:
            content = pq.read_table(io.BytesIO(self._model.public[table]), columns=[name])
            return _public(where, kind, content.column(0))
        if declared.column(name).computed is not None:
            return self._computed(table, name)
        if name in self._model.codecs[table]:
            return self._modelled(table, name)
        if not is_numbered(declared, (name,)):
            raise OutsideError(f"compares with {where}, whose values are not known")
        if self._kept and table == self._model.protection.entity:
            return _public(where, kind, self._model.entity_keys.column(name))  # type: ignore[union-attr]
        return made_up_column(where, kind, self._rows[table], lambda rows: self._keys.own_key(declared, rows))

    def _modelled(self, table: str, name: str) -> ModelColumn:
        codec, where, kind = self._model.codecs[table][name], f"{table}.{name}", self.type_of(table, name)
        if self._model.protection.schema.table(table).column(name).relative_to is not None:
            return _counted(
                where, kind, sampled_values(self._model, sampled(self._model), table, name), is_public=False
            )
        shares = marginal(self._model.tables[table].network, name)
        is_public = self._model.spec.column(table, name).origin in _DECLARED
        if isinstance(codec, IntervalCodec):
            return interval_column(where, codec, shares, is_public=is_public)
        if isinstance(codec, OrderedList):
            return listed_column(where, kind, codec.points, shares[: len(codec.points)], is_public=is_public)
        if isinstance(codec, TextList):
            others = codec.others.to_pylist()
            rest = 0.0 if codec.other_code is None else float(shares[codec.other_code])
            weights = np.concatenate([shares[: len(codec.points)], rest * codec.other_shares])
            values = pa.concat_arrays([codec.points, codec.others])
            return listed_column(where, kind, values, weights, made_up=others, is_public=is_public)
        if isinstance(codec, LengthCodec):
            return made_up_column(
                where, kind, codec.distinct or self._rows[table], lambda rows: _strings(codec, shares, rows)
            )
        zero = np.zeros(1, np.uint8)
        return made_up_column(
            where,
            kind,
            self._rows[table],
            lambda rows: pa.concat_arrays(
                [codec.decode(zero, np.random.default_rng(0), first_row=int(row)) for row in rows]
            ),
        )

    def _computed(self, table: str, name: str) -> ModelColumn:
        """A number of rows, or the number of a row: how likely each is follows from the cardinality up to it."""
        upto = [
            cardinality(self._model, tables={table: table}, filters=[((table, name), Between(high=count))])
            for count in _COUNTS
        ]
        weights = np.diff([0.0, *upto])
        values = pa.array(_COUNTS, pa.int64()).filter(pa.array(weights > 0))
        return listed_column(
            f"{table}.{name}", self.type_of(table, name), values, weights[weights > 0], is_public=False
        )


def _strings(codec: LengthCodec, shares: NDArray[np.float64], rows: NDArray[np.int64]) -> pa.Array:
    """Made-up strings of lengths as the model draws them."""
    cells = shares[: len(codec.shortest)] + 1e-12
    codes = np.random.default_rng(0).choice(len(cells), size=min(len(rows), MOST_STRINGS), p=cells / cells.sum())
    return codec.decode(codes.astype(np.uint16), np.random.default_rng(0), first_row=0)


def _public(where: str, kind: SqlType, values: pa.ChunkedArray) -> ModelColumn:
    """Public values as they stand in a table; text that is not among them is made up."""
    return _counted(where, kind, values, is_public=True)


def _counted(where: str, kind: SqlType, values: pa.Array | pa.ChunkedArray, *, is_public: bool) -> ModelColumn:
    if kind.kind is Kind.FLOAT:
        values = values.filter(pc.is_finite(values))
    counted = pc.value_counts(values.drop_null())
    points, weights = counted.field("values"), counted.field("counts").to_numpy(zero_copy_only=False)
    return listed_column(where, kind, points, weights.astype(np.float64), is_public=is_public)
