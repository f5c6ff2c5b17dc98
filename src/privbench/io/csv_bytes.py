"""The bytes of a CSV file as a stream, whether it is stored as it is, with gzip, or alone in a zip archive.

Nothing is unpacked as a whole: memory stays bounded whatever a small file unpacks to.
"""

import gzip
import io
import lzma
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from privbench.errors import SourceError

CSV_SUFFIXES = (".csv", ".csv.gz", ".csv.zip", ".zip")
"""How the name of a CSV file ends."""
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)
"""What reading a damaged or locked file raises; RuntimeError is zipfile's, where a password or a method is wanted."""


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a CSV file for reading; SourceError where its bytes cannot be had, now or later in the block."""
    try:
        with _opened(path) as file:
            yield file
    except READ_ERRORS as error:
        packed = path.suffix.lower() in (".gz", ".zip")
        what = "is damaged, or not packed as its name says" if packed else "cannot be read"
        raise SourceError(f"{path.name}: {what} ({getattr(error, 'strerror', None) or error}).") from error


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    match path.suffix.lower():
        case ".gz":
            with gzip.open(path) as packed:
                yield io.BufferedReader(packed)
        case ".zip":
            with zipfile.ZipFile(path) as archive, archive.open(_only_member(archive, path)) as member:
                yield member
        case _:
            with path.open("rb") as plain:
                yield plain


def _only_member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    """The one file of an archive; folders, and what some systems add beside, are none."""
    members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        raise SourceError(
            f"{path.name}: holds {len(members)} files. In a folder of tables an archive holds one CSV file; unpack it, "
            "one file per table."
        )
    return members[0]
