"""The model: everything that was released, and nothing else. Safe to publish; `file` writes and reads it."""

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from privbench.encode.codec import Codec, compile_codec
from privbench.encode.narrow import ruled_codec, rules_about
from privbench.encode.relative import SequenceCodec
from privbench.errors import ModelError
from privbench.methods.method import TableModel
from privbench.model.order import has_own_values
from privbench.schema.domain import implied_by_type
from privbench.schema.notebook import page
from privbench.schema.spec import Spec
from privbench.schema.types import difference_type
from privbench.schema.unit import Neighbours, Protection
from privbench.spn.link import LinkModel


@dataclass(frozen=True, kw_only=True, eq=False)
class Model:
    """A fitted database: spec, released table models, copies of public tables, receipt."""

    spec: Spec
    tables: Mapping[str, TableModel]
    public: Mapping[str, bytes]
    entity_keys: pa.Table | None
    receipt: dict[str, Any]

    @cached_property
    def protection(self) -> Protection:
        """Who is protected."""
        return self.spec.protection()

    @cached_property
    def codecs(self) -> dict[str, dict[str, Codec]]:
        """Codecs by private table and column."""
        return compile_codecs(self.spec, self.protection)

    @cached_property
    def public_rows(self) -> dict[str, int]:
        """How many rows each public table has."""
        return {name: pq.read_metadata(io.BytesIO(content)).num_rows for name, content in self.public.items()}

    @property
    def promise(self) -> str:
        """What is promised to whom, in a line."""
        delta = float(Fraction(self.receipt["delta"]))
        words = f"epsilon {float(Fraction(self.receipt['epsilon'])):g}" + (f", delta {delta:g}" if delta else "")
        change = "replacing" if self.protection.neighbours is Neighbours.REPLACE else "adding or removing"
        return f"{words} for {change} one entity of {self.protection.entity}"

    def __repr__(self) -> str:
        return f"<Model: {self.promise}; tables {', '.join(self._sizes())}>"

    def _repr_html_(self) -> str:
        roles = self.protection.roles
        rows = [(name, roles[name].value, count) for name, count in self._sizes().items()]
        notes = [f"Promise: {self.promise}.", *([self.receipt["condition"]] if self.receipt["condition"] else [])]
        return page("Model", ["table", "role", "rows"], rows, notes=notes)

    def _sizes(self) -> dict[str, int]:
        """Rows of each table of a bundle at scale 1."""
        private = {name: round(table.rows) for name, table in self.tables.items()}
        names = [table.name for table in self.protection.schema.published().tables]
        return {name: (private | self.public_rows)[name] for name in names}

    def public_table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of a public table, or some of its columns."""
        return pq.read_table(io.BytesIO(self.public[name]), columns=None if columns is None else list(columns))


def is_estimated_by_sample(model: Model) -> bool:
    """Whether columns of the networks say where keys of some table point, rather than counts of the link's own."""
    return any(link.shares is None for link in _links(model))


def has_child_rows(model: Model) -> bool:
    """Whether rows of some table come with their owners, which are then made first."""
    return any(link.with_owner is not None for link in _links(model))


def _links(model: Model) -> Iterator[LinkModel]:
    return (link for table in model.tables.values() for link in table.links.values())


def compile_codecs(
    spec: Spec, protection: Protection, *, without: Collection[tuple[str, str]] = ()
) -> dict[str, dict[str, Codec]]:
    """A codec for each modelled column of each private table, but for those named by table and column."""
    return {
        table: {
            column: _codec(spec, protection, table, column)
            for column in protection.attributes(table)
            if (table, column) not in without
        }
        for table in protection.order
    }


def _codec(spec: Spec, protection: Protection, table: str, column: str) -> Codec:
    declared = protection.schema.table(table).column(column)
    domain = spec.column(table, column).domain or implied_by_type(declared.type)
    if domain is None:
        raise ModelError(f"{table}.{column}: has no domain.")
    where, nullable = f"{table}.{column}", declared.nullable
    if declared.relative_to is None:
        schema = protection.schema.table(table)
        rules, unique = rules_about(schema, column), (column,) in schema.keys
        in_key = has_own_values(schema, column)
        return ruled_codec(
            where, declared.type, nullable=nullable, domain=domain, rules=rules, unique=unique, in_key=in_key
        )
    steps = difference_type(declared.type)
    first = spec.column(table, column).first
    if first is None:
        return compile_codec(where, steps, nullable=nullable, domain=domain)
    start = declared.type if declared.start is None else steps
    return SequenceCodec(
        where=where,
        type=declared.type,
        nullable=nullable,
        has_start=declared.start is not None,
        first=compile_codec(f"{where} (first)", start, nullable=False, domain=first),
        steps=compile_codec(where, steps, nullable=False, domain=domain),
    )
