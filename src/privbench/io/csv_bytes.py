"""The bytes of a CSV file as a stream, whether it is stored as it is, with gzip, or alone in a zip archive.

Memory stays bounded whatever a small file unpacks to: gzip is unpacked block by block, an archive to a private folder.
Arrow reads ahead in threads of its own, which must not call Python when a reader is dropped: all streams are Arrow's.
"""

import errno
import lzma
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from privbench.errors import SourceError
from privbench.io.staging import private_folder

CSV_SUFFIXES = (".csv", ".csv.gz", ".csv.zip", ".zip")
"""How the name of a CSV file ends."""
_COPIED = 2**20
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError)
"""What reading a damaged or locked file raises; RuntimeError is zipfile's, where a password or a method is wanted."""


@contextmanager
def open_bytes(path: Path) -> Iterator[pa.NativeFile]:
    """Open a CSV file for reading; SourceError where its bytes cannot be had, now or later in the block."""
    try:
        with _opened(path) as file:
            yield file
    except READ_ERRORS as error:
        if getattr(error, "errno", None) == errno.ENOSPC:
            raise SourceError(f"{path.name}: no room to unpack it. Unpack it yourself, or set TMPDIR.") from error
        packed = path.suffix.lower() in (".gz", ".zip")
        what = "is damaged, or not packed as its name says" if packed else "cannot be read"
        raise SourceError(f"{path.name}: {what} ({getattr(error, 'strerror', None) or error}).") from error


@contextmanager
def _opened(path: Path) -> Iterator[pa.NativeFile]:
    match path.suffix.lower():
        case ".gz":
            with pa.OSFile(str(path)) as file, pa.CompressedInputStream(file, "gzip") as packed:
                yield packed
        case ".zip":
            with private_folder() as folder, pa.OSFile(str(_unpacked(path, folder))) as member:
                yield member
        case _:
            with pa.OSFile(str(path)) as plain:
                yield plain


def _unpacked(path: Path, folder: Path) -> Path:
    target = folder / "member.csv"
    with (
        zipfile.ZipFile(path) as archive,
        archive.open(_only_member(archive, path)) as member,
        target.open("wb") as file,
    ):
        shutil.copyfileobj(member, file, _COPIED)
    return target


def _only_member(archive: zipfile.ZipFile, path: Path) -> zipfile.ZipInfo:
    """The one file of an archive; folders, and what some systems add beside, are none."""
    members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        raise SourceError(
            f"{path.name}: holds {len(members)} files. In a folder of tables an archive holds one CSV file; unpack it, "
            "one file per table."
        )
    return members[0]
