"""Verify what was published: a bundle, a model file or a receipt alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from privbench.errors import ModelError, PrivBenchError
from privbench.io.open import open_source
from privbench.model.file import load_unverified
from privbench.model.receipt_check import verify_model
from privbench_verify.bundle import Manifest, verify_bundle, verify_file
from privbench_verify.checksums import RECEIPT
from privbench_verify.receipt import Verdict
from privbench_verify.strict_json import read_json


def verify(path: Path | str) -> Verdict:
    """Add a receipt up again, and check that the pieces belong together.

    Of a bundle: checksums, manifest, receipt, and the tables, columns and rows of its data. Of a model: that its
    receipt accounts for everything in it. `verified` means that the arithmetic and the pieces fit, not that the
    publisher ran what the receipt says. `path` is a bundle folder, a model file or a receipt.json; ModelError if it is
    none of these.

    Example::

        assert privbench.verify("bundle").status in ("verified", "conditional")
    """
    path = Path(path)
    if not path.exists():
        raise ModelError(f"{path}: there is no such file or folder.")
    if not path.is_dir():
        return verify_file(path) if path.suffix == ".json" else verify_model(load_unverified(path))
    if not (path / RECEIPT).is_file():
        raise ModelError(f"{path}: is not a bundle: it has no {RECEIPT}.")
    checks = {"parquet": _parquet_problems, "duckdb": _database_problems, "sqlite": _database_problems}
    return verify_bundle(path, checks)


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
