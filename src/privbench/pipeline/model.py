"""The model: everything that was released, and nothing else. Safe to publish.

One zip with a JSON header, plain arrays and the public tables as Parquet; no pickle, no row indices, no real
keys but public ones, no exact counts. Versioned. Reading one from a stranger runs nothing.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import ValidationError

from privbench.encode.codec import Codec, compile_codec
from privbench.errors import ModelError
from privbench.io.staging import staged
from privbench.methods.base import TableModel
from privbench.schema.domain import Values
from privbench.schema.spec import Spec
from privbench.schema.types import Kind
from privbench.schema.unit import Protection
from privbench.spn.links import DegreeCounts, LinkCounts, SlotCounts
from privbench.spn.store import pack, unpack

FORMAT, VERSION = "privbench-model", 1
MAX_HEADER = 2**28
_ENTITY_KEYS = "entity_keys.parquet"


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


def compile_codecs(spec: Spec, protection: Protection) -> dict[str, dict[str, Codec]]:
    """A codec for each modelled column of each private table."""
    return {
        table: {column: _codec(spec, protection, table, column) for column in protection.attributes(table)}
        for table in protection.order
    }


def _codec(spec: Spec, protection: Protection, table: str, column: str) -> Codec:
    declared = protection.schema.table(table).column(column)
    domain = spec.column(table, column).domain
    if domain is None and declared.type.kind is Kind.BOOLEAN:
        domain = Values(values=(False, True))
    if domain is None:
        raise ModelError(f"{table}.{column}: has no domain.")
    return compile_codec(f"{table}.{column}", declared.type, nullable=declared.nullable, domain=domain)


def save_model(model: Model, path: Path, *, force: bool = False) -> None:
    """Write a model file, whole or not at all."""
    arrays: dict[str, NDArray[Any]] = {}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "spec": model.spec.model_dump(mode="json", by_alias=True, exclude={"source"}),
        "tables": {name: _table_header(f"{i}", table, arrays) for i, (name, table) in enumerate(model.tables.items())},
        "public": list(model.public),
        "entity_keys": model.entity_keys is not None,
        "receipt": model.receipt,
    }
    with staged(path, force=force) as temp, zipfile.ZipFile(temp, "w", zipfile.ZIP_DEFLATED) as file:
        _put(file, "model.json", json.dumps(header, ensure_ascii=False).encode())
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, array, allow_pickle=False)
            _put(file, f"arrays/{name}.npy", buffer.getvalue())
        for i, content in enumerate(model.public.values()):
            _put(file, f"public/{i}.parquet", content)
        if model.entity_keys is not None:
            _put(file, _ENTITY_KEYS, _parquet(model.entity_keys))


def load_model(path: Path | str) -> Model:
    """Read a model file; ModelError if it is not one, or is damaged."""
    try:
        with zipfile.ZipFile(path) as file:
            return _read(file)
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file. `privbench fit` writes one.") from None
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError, OSError, EOFError) as error:
        raise ModelError(f"{path}: is not a model file, or is damaged ({type(error).__name__}). Fit again.") from error


def _read(file: zipfile.ZipFile) -> Model:
    if file.getinfo("model.json").file_size > MAX_HEADER:
        raise ModelError(f"the header of the model is larger than {MAX_HEADER // 2**20} MB, which no model's is.")
    header = json.loads(file.read("model.json"))
    if header["format"] != FORMAT or header["version"] != VERSION:
        raise ModelError(f"the model has version {header.get('version')}; this PrivBench reads version {VERSION}.")
    try:
        spec = Spec.model_validate(header["spec"])
    except ValidationError as error:
        raise ModelError(f"the spec inside the model is damaged: {error.errors()[0]['msg']}.") from None
    keys = pq.read_table(io.BytesIO(file.read(_ENTITY_KEYS))) if header["entity_keys"] else None
    model = Model(
        spec=spec,
        tables={name: _read_table(file, table) for name, table in header["tables"].items()},
        public={name: file.read(f"public/{i}.parquet") for i, name in enumerate(header["public"])},
        entity_keys=keys,
        receipt=header["receipt"],
    )
    _check(model)
    return model


def _check(model: Model) -> None:
    """The parts of a model must fit together: tables, columns and numbers of codes."""
    if set(model.tables) != set(model.protection.order):
        raise ModelError("the model is damaged: its tables are not those of its spec.")
    for name, table in model.tables.items():
        codes = {column: codec.size for column, codec in model.codecs[name].items()}
        found = {column: size for column, size in table.network.sizes.items() if not column.startswith("#")}
        if codes != found:
            raise ModelError(f"{name}: the model is damaged: its network does not fit its columns.")


def _table_header(prefix: str, table: TableModel, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    network, parts = pack(table.network)
    arrays |= {f"{prefix}.{name}": part for name, part in parts.items()}
    links = {}
    for i, (name, link) in enumerate(table.links.items()):
        arrays[f"{prefix}.link{i}"] = link.counts
        share = link.null_share if isinstance(link, DegreeCounts) else None
        links[name] = {"array": f"{prefix}.link{i}", "null_share": share}
    return {
        "network": network,
        "arrays": {name: f"{prefix}.{name}" for name in parts},
        "rows": table.rows,
        "links": links,
    }


def _read_table(file: zipfile.ZipFile, header: dict[str, Any]) -> TableModel:
    network = unpack(header["network"], {n: _array(file, where) for n, where in header["arrays"].items()})
    rows = float(header["rows"])
    if not 0 <= rows < 2**62:
        raise ModelError("the model is damaged: a table has an impossible number of rows.")
    links: dict[str, LinkCounts] = {}
    for name, link in header["links"].items():
        counts = _array(file, link["array"])
        share = link["null_share"]
        links[name] = SlotCounts(counts=counts) if share is None else DegreeCounts(counts=counts, null_share=share)
    return TableModel(network=network, rows=rows, links=links)


def _array(file: zipfile.ZipFile, name: str) -> NDArray[Any]:
    array: NDArray[Any] = np.lib.format.read_array(
        io.BytesIO(file.read(f"arrays/{name}.npy")), allow_pickle=False, max_header_size=10_000
    )
    return array


def _put(file: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add an entry with a fixed date, so that equal models are equal files."""
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    file.writestr(entry, content)


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()
