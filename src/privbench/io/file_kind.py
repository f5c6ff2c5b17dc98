"""What a path holds, by its content: so that an error can say what was given where something else is wanted."""

import re
import zipfile
from pathlib import Path

from privbench.io.staging import is_bundle

SPEC, MODEL, BUNDLE = "a spec", "a model file", "a bundle"
_HEAD = 2**16
_MAGIC = {
    b"SQLite format 3\0": "a SQLite database",
    b"PAR1": "a Parquet file",
    b"{": "a JSON file",
}


def kind_of(path: Path | str) -> str | None:
    """Name what is there, with its article; None if nothing is, or it is of no known kind."""
    path = Path(path)
    if path.is_dir():
        return BUNDLE if is_bundle(path) else "a folder"
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD)
    except (OSError, ValueError):
        return None
    if head.startswith(b"PK"):
        return MODEL if _has_header(path) else None
    if head[8:12] == b"DUCK":
        return "a DuckDB database"
    if re.search(rb"^tables:", head, re.MULTILINE):
        return SPEC
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def _has_header(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as file:
            return "model.json" in file.namelist()
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):  # damage may look like another zip version
        return False
