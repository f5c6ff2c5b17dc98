"""The model file: one zip with a JSON header, plain arrays and the public tables as Parquet.

No pickle, no row indices, no real keys but public ones, no exact counts. Versioned. Reading one from anyone
runs nothing, and takes memory in proportion to the file: what unpacks to far more than its size is refused first.
"""

import hashlib
import io
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pydantic import ValidationError

from privbench.errors import ModelError, PrivBenchError
from privbench.io.file_kind import BUNDLE, MODEL, SPEC, kind_of
from privbench.io.staging import staged
from privbench.methods.method import TableModel
from privbench.model.check import check_model, check_parquet, entity_key_schema
from privbench.model.model import Model
from privbench.schema.spec import Spec
from privbench.spn.links import pack_link, read_link
from privbench.spn.store import pack, unpack
from privbench_verify.strict_json import read_json

FORMAT, VERSION = "privbench-model", 4
MAX_HEADER = 2**28
MAX_CONTENT = 2**35
FREE_CONTENT, MAX_RATIO = 2**26, 100
"""A file may unpack to FREE_CONTENT bytes and MAX_RATIO times its size; models stay far below."""
MAX_ARRAY_HEADER = 10_000
MAX_EXTRA = 32
"""Bytes that the format itself needs beside an entry, for one above 4 GB."""
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
    RuntimeError,  # entries that are encrypted, packed in an unknown way, or nested too deeply
    MemoryError,
)
"""What the standard library and Arrow raise on a file that is not what it says."""
HEADER = "model.json"
_ENTITY_KEYS = "entity_keys.parquet"
_HEADER_WORDS = ("format", "version", "spec", "tables", "public", "entity_keys", "receipt")
_SIZE_WORDS = ("rows_error", "rows_low", "rows_high")
_TABLE_WORDS = ("network", "arrays", "rows", *_SIZE_WORDS, "links")
_digests: WeakKeyDictionary[Model, str] = WeakKeyDictionary()
"""The digests of models that were read or written, as their files have them."""
_WAYS = {SPEC: " Run `privbench fit` on this spec first.", BUNDLE: " `privbench verify` takes a bundle, too."}


def save_model(model: Model, path: Path | str, *, force: bool = False) -> None:
    """Write a model file, whole or not at all. It holds what was released, so it may be published.

    Example::

        privbench.save_model(model, "shop.model")
    """
    with staged(Path(path), force=force) as temp, zipfile.ZipFile(temp, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in _entries(model):
            _put(file, name, content)


def model_digest(model: Model) -> str:
    """Name a model by what its file holds, however that is packed.

    The SHA-256 of a text with a line for each entry, in order of their names: the SHA-256 of the unpacked content in
    hexadecimal digits, its length, and the name, with a space between. Of a model that was loaded, the file's entries.
    """
    if model not in _digests:
        _digests[model] = _digest({name: _line(name, content) for name, content in _entries(model)})
    return _digests[model]


def _digest(lines: dict[str, str]) -> str:
    return hashlib.sha256("".join(lines[name] for name in sorted(lines)).encode()).hexdigest()


def _line(name: str, content: bytes) -> str:
    return f"{hashlib.sha256(content).hexdigest()} {len(content)} {name}\n"


def _entries(model: Model) -> Iterator[tuple[str, bytes]]:
    """Every entry of a model's file."""
    arrays: dict[str, NDArray[Any]] = {}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "spec": model.spec.model_dump(mode="json", by_alias=True, exclude={"source", "csv"}),
        "tables": {name: _table_header(f"{i}", table, arrays) for i, (name, table) in enumerate(model.tables.items())},
        "public": model.public_rows,
        "entity_keys": model.entity_keys is not None,
        "receipt": model.receipt,
    }
    yield HEADER, json.dumps(header, ensure_ascii=False).encode()
    for name, array in arrays.items():
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, array, allow_pickle=False)
        yield f"arrays/{name}.npy", buffer.getvalue()
    for i, content in enumerate(model.public.values()):
        yield f"public/{i}.parquet", content
    if model.entity_keys is not None:
        yield _ENTITY_KEYS, _parquet(model.entity_keys)


def load_model(path: Path | str) -> Model:
    """Read a model file and check that its parts fit together; ModelError if it is not one, or is damaged.

    Example::

        model = privbench.load_model("shop.model")
        model.receipt["epsilon"]
    """
    from privbench.model.receipt_check import verify_model  # noqa: PLC0415  who writes a model does not need it

    with _reading(path) as entries:
        model = _read(entries)
        if problems := verify_model(model).problems:
            raise ModelError(f"its receipt does not add up: {problems[0]}.")
        return model


def load_unverified(path: Path | str) -> Model:
    """Read a model file like `load_model`, but leave its receipt unchecked."""
    with _reading(path) as entries:
        return _read(entries)


class _Entries:
    """The entries of a model file, read one by one; remembers what was read, for the digest."""

    def __init__(self, file: zipfile.ZipFile, *, packed: int) -> None:
        if len(set(file.namelist())) < len(file.namelist()):
            raise ModelError("an entry stands in it twice.")
        unpacked = sum(entry.file_size for entry in file.infolist())
        if unpacked > min(MAX_CONTENT, FREE_CONTENT + MAX_RATIO * packed):
            raise ModelError(f"it unpacks to {unpacked:,} bytes, more than a model of its size can hold.")
        self._file = file
        self.lines: dict[str, str] = {}

    def check_all_read(self) -> None:
        """Refuse what no model holds: nothing in the file is without a use, and so without a check."""
        if unknown := sorted(set(self._file.namelist()) - set(self.lines)):
            raise ModelError(f"it holds {unknown[0][:100]!r}, which no model does.")
        entries = self._file.infolist()
        if self._file.comment or any(entry.comment or len(entry.extra) > MAX_EXTRA for entry in entries):
            raise ModelError("it holds a comment, which no model does.")

    def size(self, name: str) -> int:
        """How many bytes an entry says it has."""
        return self._file.getinfo(name).file_size

    def start(self, name: str, size: int) -> bytes:
        """The first bytes of an entry."""
        with self._file.open(name) as stream:
            return stream.read(size)

    def read(self, name: str) -> bytes:
        """All bytes of an entry, as many as it says."""
        with self._file.open(name) as stream:
            content = stream.read(self.size(name))
            if len(content) != self.size(name) or stream.read(1):
                raise ModelError("an entry is not as long as it says.")
        self.lines[name] = _line(name, content)
        return content


@contextmanager
def _reading(path: Path | str) -> Iterator[_Entries]:
    """Open a model file; whatever is wrong with it is a ModelError that names it."""
    if (kind := kind_of(path)) not in (None, MODEL):
        raise ModelError(
            f"{path}: is {kind}. A model file is wanted, as `privbench fit` writes it.{_WAYS.get(kind, '')}"
        )
    try:
        with zipfile.ZipFile(path) as file:
            yield _Entries(file, packed=Path(path).stat().st_size)
    except FileNotFoundError:
        raise ModelError(f"{path}: there is no such file. `privbench fit` writes one.") from None
    except _OldVersionError as error:
        raise ModelError(f"{path}: {error}") from None
    except PrivBenchError as error:
        raise ModelError(f"{path}: is damaged, or not a model file: {error}") from error
    except DAMAGE as error:
        raise ModelError(
            f"{path}: is not a model file, or is damaged ({type(error).__name__}). Get a fresh copy."
        ) from error


class _OldVersionError(ModelError):
    """A model file of another version."""


def _header(entries: _Entries) -> dict[str, Any]:
    if entries.size(HEADER) > MAX_HEADER:
        raise ModelError(f"its header is larger than {MAX_HEADER // 2**20} MB, which no model's is.")
    header: dict[str, Any] = read_json(entries.read(HEADER))
    if header["format"] != FORMAT:
        raise ModelError("its header names another format.")
    if header["version"] in range(1, VERSION):
        raise _OldVersionError(
            f"is a model file of version {header['version']}; this PrivBench reads version {VERSION} alone. Make a new "
            "one with `privbench fit SPEC --epsilon E -o MODEL`, which spends budget again. Bundles made from the "
            "old model stay as they are."
        )
    if header["version"] != VERSION:
        raise ModelError(f"it has version {str(header['version'])[:20]}; this PrivBench reads version {VERSION}.")
    _check_words(header, _HEADER_WORDS)
    for table in header["tables"].values():
        _check_words(table, _TABLE_WORDS)
    return header


def _check_words(words: dict[str, Any], known: Collection[str]) -> None:
    if unknown := sorted(set(words) - set(known)):
        raise ModelError(f"its header says {unknown[0][:100]!r}, which no model does.")


def _read(entries: _Entries) -> Model:
    header = _header(entries)
    try:
        spec = Spec.model_validate(header["spec"])
    except ValidationError as error:
        raise ModelError(f"its spec: {error.errors()[0]['msg'].removeprefix('Value error, ')}.") from None
    model = Model(
        spec=spec,
        tables={name: _read_table(entries, table) for name, table in header["tables"].items()},
        public={name: entries.read(f"public/{i}.parquet") for i, name in enumerate(header["public"])},
        entity_keys=_read_entity_keys(entries, spec) if header["entity_keys"] else None,
        receipt=header["receipt"],
    )
    entries.check_all_read()
    check_model(model, public_rows=header["public"])
    _digests[model] = _digest(entries.lines)
    return model


def _read_entity_keys(entries: _Entries, spec: Spec) -> pa.Table:
    content = entries.read(_ENTITY_KEYS)
    check_parquet(content, entity_key_schema(spec.protection()), where=spec.unit or "the unit table")
    return pq.read_table(io.BytesIO(content))


def _table_header(prefix: str, table: TableModel, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    network, parts = pack(table.network)
    arrays |= {f"{prefix}.{name}": part for name, part in parts.items()}
    links = {name: pack_link(f"{prefix}.link{i}", link, arrays) for i, (name, link) in enumerate(table.links.items())}
    return {
        "network": network,
        "arrays": {name: f"{prefix}.{name}" for name in parts},
        "rows": table.rows,
        "rows_error": table.rows_error,
        "rows_low": table.rows_low,
        "rows_high": table.rows_high,
        "links": links,
    }


def _read_table(entries: _Entries, header: dict[str, Any]) -> TableModel:
    network = unpack(header["network"], {n: _array(entries, where) for n, where in header["arrays"].items()})
    links = {name: read_link(link, partial(_array, entries)) for name, link in header["links"].items()}
    said = {name: header[name] for name in _SIZE_WORDS}
    numbers = {name: None if number is None else float(number) for name, number in said.items()}
    return TableModel(network=network, rows=float(header["rows"]), links=links, **numbers)


def _array(entries: _Entries, array: str) -> NDArray[Any]:
    """An array, never pickled; what its header declares is compared with its size before it is unpacked."""
    name = f"arrays/{array}.npy"
    start = io.BytesIO(entries.start(name, MAX_ARRAY_HEADER + 16))
    if np.lib.format.read_magic(start) != (1, 0):
        raise ModelError("an array has an unknown version.")
    shape, _, kind = np.lib.format.read_array_header_1_0(start, max_header_size=MAX_ARRAY_HEADER)
    if kind.hasobject or math.prod(shape) * kind.itemsize != entries.size(name) - start.tell():
        raise ModelError("an array is not as long as it says.")
    content = io.BytesIO(entries.read(name))
    values: NDArray[Any] = np.lib.format.read_array(content, allow_pickle=False, max_header_size=MAX_ARRAY_HEADER)
    return values


def _put(file: zipfile.ZipFile, name: str, content: bytes) -> None:
    """Add an entry with a fixed date, so that equal models are equal files."""
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.compress_type = zipfile.ZIP_DEFLATED
    file.writestr(entry, content)


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="none")
    return buffer.getvalue()
