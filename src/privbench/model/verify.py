"""Verify what was published: a bundle, a model file or a receipt alone."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from privbench import __version__
from privbench.errors import ModelError, PrivBenchError
from privbench.io.load_scripts import definition_counts, script_files
from privbench.io.open import open_source
from privbench.model.file import load_unverified
from privbench.model.receipt_check import verify_model
from privbench.schema.schema_file import SCHEMA_FILE, read_schema
from privbench.schema.tables import Schema
from privbench_verify.bundle import SCRIPTS, Manifest, definition_lines, verify_bundle, verify_file
from privbench_verify.checksums import RECEIPT
from privbench_verify.receipt import Verdict
from privbench_verify.strict_json import read_json


def verify(path: Path | str) -> Verdict:
    """Add a receipt up again, and check that the pieces belong together.

    Of a bundle: checksums, manifest, receipt, the tables, columns and rows of its data, and that its scripts are those
    that its schema gives. Of a model: that its receipt accounts for everything in it. What runs of the source's own
    DDL, and which definitions hold literals, is told among the assumptions. `verified` means that the arithmetic and
    the pieces fit, not that the publisher ran what the receipt says. `path` is a bundle folder, a model file or a
    receipt.json; ModelError if it is none of these.

    Example::

        assert privbench.verify("bundle").status in ("verified", "conditional")
    """
    path = Path(path)
    if not path.exists():
        raise ModelError(f"{path}: there is no such file or folder.")
    if not path.is_dir():
        return verify_file(path) if path.suffix == ".json" else _verify_model(path)
    if not (path / RECEIPT).is_file():
        raise ModelError(f"{path}: is not a bundle: it has no {RECEIPT}.")
    checks = {"parquet": _parquet_problems, "duckdb": _database_problems, "sqlite": _database_problems}
    return _without_schema(path, verify_bundle(path, checks, _script_problems))


def _verify_model(path: Path) -> Verdict:
    """Verify a model; what it runs and holds of the source's own DDL is told among the assumptions."""
    model = load_unverified(path)
    verdict, original = verify_model(model), model.spec.original
    published = model.protection.schema.published()
    every = definition_counts(replace(published, original=original)) | {"run": definition_counts(published)["run"]}
    held = every | {"code": {}, "held": every["code"]}
    return replace(verdict, assumptions=(*verdict.assumptions, *definition_lines(held)))


def _script_problems(folder: Path, manifest: Manifest) -> tuple[str, ...]:
    """Which scripts are not those that the schema of a bundle gives."""
    if not (folder / SCHEMA_FILE).is_file():
        return ()
    try:
        bundle = read_schema(read_json((folder / SCHEMA_FILE).read_bytes()))
        scripts = script_files(bundle.schema, manifest.format, {n: t.files for n, t in manifest.tables.items()})
    except (PrivBenchError, OSError, ValueError, RecursionError) as error:
        return (f"{SCHEMA_FILE}: the scripts cannot be made again from it: {error}",)
    return tuple(_schema_problems(folder, manifest, bundle.schema, scripts))


def _schema_problems(folder: Path, manifest: Manifest, schema: Schema, scripts: Mapping[str, str]) -> Iterator[str]:
    tables = {t.name: [(c.name, c.type.sql, c.nullable) for c in t.columns] for t in schema.tables}
    if tables != {n: [(c.name, c.type, c.nullable) for c in t.columns] for n, t in manifest.tables.items()}:
        yield f"{SCHEMA_FILE}: its tables and columns are not those of the manifest"
    if definition_counts(schema) != manifest.definitions:
        yield "manifest.json: what it says of the source's definitions is not what the schema says"
    for name in sorted({*scripts, *(name for name in SCRIPTS if (folder / name).exists())}):
        path = folder / name
        if name not in scripts:
            yield f"{name}: is no script of a bundle of this format"
        elif not path.is_file() or path.read_bytes() != scripts[name].encode():
            yield f"{name}: is not what the schema of the bundle gives{_written_by(manifest)}"


def _written_by(manifest: Manifest) -> str:
    here = f"privbench {__version__}"
    if manifest.software == here:
        return ""
    return f"; it is said to be of {manifest.software[:40]}, this is {here}: verify it with that version"


def _without_schema(folder: Path, verdict: Verdict) -> Verdict:
    """A bundle whose scripts cannot be made again is not verified."""
    if (folder / SCHEMA_FILE).is_file() or verdict.status == "failed":
        return verdict
    unknown = (
        f"{SCHEMA_FILE}: is missing: the bundle is of an earlier version, and nobody can tell what its scripts run"
    )
    return replace(verdict, status="unverified", problems=(*verdict.problems, unknown))


def read_receipt(path: Path) -> Any:
    """Read a receipt.json; ModelError if it is none."""
    try:
        return read_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ModelError(f"{path}: cannot be read as a receipt ({type(error).__name__}).") from error


def _parquet_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """What Parquet files hold otherwise than the manifest says."""
    for name, table in manifest.tables.items():
        try:
            files = [pq.ParquetFile(folder / file) for file in table.files]
        except (pa.ArrowException, OSError, ValueError) as error:
            yield f"{name}: its Parquet file cannot be read ({type(error).__name__})"
            continue
        if any(file.schema_arrow.names != [column.name for column in table.columns] for file in files):
            yield f"{name}: the columns of its file are not those of the manifest"
        if (rows := sum(file.metadata.num_rows for file in files)) != table.rows:
            yield f"{name}: has {rows} rows, but the manifest says {table.rows}"


def _database_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """What a database file holds otherwise than the manifest says."""
    files = {file for table in manifest.tables.values() for file in table.files}
    if len(files) != 1:
        yield "the tables are not in one database file"
        return
    try:
        with open_source(folder / files.pop()) as source:
            columns = {table.name: [column.name for column in table.columns] for table in source.schema().tables}
            for name, table in manifest.tables.items():
                if columns.get(name) != [column.name for column in table.columns]:
                    yield f"{name}: its columns in the database are not those of the manifest"
                elif (rows := source.rows(name)) != table.rows:
                    yield f"{name}: has {rows} rows, but the manifest says {table.rows}"
    except PrivBenchError as error:
        yield f"the database cannot be read: {error}"
