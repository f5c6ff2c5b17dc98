"""The model file: one zip with a JSON header, plain arrays and the public tables as Parquet.

No pickle, no row indices, no real keys but public ones, no exact counts. Versioned. Reading one from a stranger
runs nothing, and takes no more memory than the file says.
"""

import io
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import ValidationError

from privbench.errors import ModelError, PrivBenchError
from privbench.io.file_kind import BUNDLE, MODEL, SPEC, kind_of
from privbench.io.staging import staged
from privbench.methods.method import TableModel
from privbench.model.check import check_model
from privbench.model.model import Model
from privbench.model.receipt_check import verify_model
from privbench.schema.spec import Spec
from privbench.spn.links import pack_link, read_link
from privbench.spn.store import pack, unpack
from privbench_verify.strict_json import read_json

FORMAT, VERSION = "privbench-model", 2
MAX_HEADER = 2**28
MAX_CONTENT = 2**35
MAX_ARRAY_HEADER = 10_000
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    pa.ArrowException,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    OSError,
    EOFError,
    RuntimeError,  # an encrypted or nested entry; NotImplementedError and RecursionError are such
    MemoryError,
)
"""What the standard library and Arrow raise on a file that is not what it says."""
_ENTITY_KEYS = "entity_keys.parquet"
_WAYS = {SPEC: " Run `privbench fit` on this spec first.", BUNDLE: " `privbench verify` takes a bundle, too."}


def save_model(model: Model, path: Path | str, *, force: bool = False) -> None:
    """Write a model file, whole or not at all. It holds what was released, so it may be published.

    Example::

        privbench.save_model(model, "shop.model")
    """
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
    with staged(Path(path), force=force) as temp, zipfile.ZipFile(temp, "w", zipfile.ZIP_DEFLATED) as file:
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
    """Read a model file and check that its parts fit together; ModelError if it is not one, or is damaged.

    Example::

        model = privbench.load_model("shop.model")
        model.receipt["epsilon"]
    """
    with _reading(path) as file:
        model = _read(file, _header(file))
        if problems := verify_model(model).problems:
            raise ModelError(f"its receipt does not add up: {problems[0]}.")
        return model


def load_unverified(path: Path | str) -> Model:
    """Read a model file like `load_model`, but leave its receipt unchecked."""
    with _reading(path) as file:
        return _read(file, _header(file))


@contextmanager
def _reading(path: Path | str) -> Iterator[zipfile.ZipFile]:
    """Open a model file; whatever is wrong with it is a ModelError that names it."""
    if (kind := kind_of(path)) not in (None, MODEL):
        raise ModelError(
            f"{path}: is {kind}. A model file is wanted, as `privbench fit` writes it.{_WAYS.get(kind, '')}"
        )
    try:
        with zipfile.ZipFile(path) as file:
            if sum(entry.file_size for entry in file.infolist()) > MAX_CONTENT:
                raise ModelError(f"it unpacks to more than {MAX_CONTENT // 2**30} GB, which no model does.")
            if len(set(file.namelist())) < len(file.namelist()):
                raise ModelError("an entry stands in it twice.")
            yield file
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file. `privbench fit` writes one.") from None
    except PrivBenchError as error:
        raise ModelError(f"{path}: is damaged, or not a model file: {error}") from error
    except DAMAGE as error:
        raise ModelError(
            f"{path}: is not a model file, or is damaged ({type(error).__name__}). Get a fresh copy."
        ) from error


def _header(file: zipfile.ZipFile) -> dict[str, Any]:
    if file.getinfo("model.json").file_size > MAX_HEADER:
        raise ModelError(f"its header is larger than {MAX_HEADER // 2**20} MB, which no model's is.")
    header: dict[str, Any] = read_json(file.read("model.json"))
    if header["format"] != FORMAT or header["version"] != VERSION:
        raise ModelError(f"it has version {str(header['version'])[:20]}; this PrivBench reads version {VERSION}.")
    return header


def _read(file: zipfile.ZipFile, header: dict[str, Any]) -> Model:
    try:
        spec = Spec.model_validate(header["spec"])
    except ValidationError as error:
        raise ModelError(f"its spec: {error.errors()[0]['msg']}.") from None
    model = Model(
        spec=spec,
        tables={name: _read_table(file, table) for name, table in header["tables"].items()},
        public={name: file.read(f"public/{i}.parquet") for i, name in enumerate(header["public"])},
        entity_keys=pq.read_table(io.BytesIO(file.read(_ENTITY_KEYS))) if header["entity_keys"] else None,
        receipt=header["receipt"],
    )
    check_model(model)
    return model


def _table_header(prefix: str, table: TableModel, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    network, parts = pack(table.network)
    arrays |= {f"{prefix}.{name}": part for name, part in parts.items()}
    links = {name: pack_link(f"{prefix}.link{i}", link, arrays) for i, (name, link) in enumerate(table.links.items())}
    return {
        "network": network,
        "arrays": {name: f"{prefix}.{name}" for name in parts},
        "rows": table.rows,
        "links": links,
    }


def _read_table(file: zipfile.ZipFile, header: dict[str, Any]) -> TableModel:
    network = unpack(header["network"], {n: _array(file, where) for n, where in header["arrays"].items()})
    links = {name: read_link(link, partial(_array, file)) for name, link in header["links"].items()}
    return TableModel(network=network, rows=float(header["rows"]), links=links)


def _array(file: zipfile.ZipFile, name: str) -> NDArray[Any]:
    """An array, never pickled; its size is compared with what it declares before memory is taken."""
    content = io.BytesIO(file.read(f"arrays/{name}.npy"))
    if np.lib.format.read_magic(content) != (1, 0):
        raise ModelError("an array has an unknown version.")
    shape, _, kind = np.lib.format.read_array_header_1_0(content, max_header_size=MAX_ARRAY_HEADER)
    if kind.hasobject or math.prod(shape) * kind.itemsize != len(content.getbuffer()) - content.tell():
        raise ModelError("an array is not as long as it says.")
    content.seek(0)
    array: NDArray[Any] = np.lib.format.read_array(content, allow_pickle=False, max_header_size=MAX_ARRAY_HEADER)
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
