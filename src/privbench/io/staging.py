"""Write beside the target and rename at the end, so that nothing half-written is ever seen under its name.

The temporary path is a hidden name in the target's own folder, since a rename is atomic only within one file
system. Any exception, Ctrl-C too, removes it.
"""

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from privbench.errors import TargetError, first_line

_RESULTS = {"result.json", "report.html", "compare.json", "compare.csv", "compare.html"}
"""What evaluations write."""


def is_laid_out(folder: Path) -> bool:
    """Tell whether a folder has its tables in data/ and its schema beside, as a bundle has."""
    return (folder / "data").is_dir() and (folder / "schema.sql").is_file()


def is_bundle(folder: Path) -> bool:
    """Tell whether a folder looks like one that `generate` wrote, with receipt and checksums."""
    return is_laid_out(folder) and all((folder / name).is_file() for name in ("receipt.json", "SHA256SUMS"))


def _is_ours(folder: Path) -> bool:
    """Tell whether a folder is one that PrivBench wrote: a bundle, or what an evaluation wrote and nothing else."""
    return is_bundle(folder) or {p.name for p in folder.iterdir()} <= _RESULTS


@contextmanager
def staged(target: Path, *, force: bool) -> Iterator[Path]:
    """Give a path to write a file or a folder at; it takes the target's name when the block ends well.

    The path does not exist yet. With `force` an existing file, empty folder or bundle is replaced, and only
    at the end. An OSError in the block (disk full, no permission) becomes a TargetError.
    """
    target = Path(os.path.abspath(target))
    check_target(target, force=force)
    temp = target.with_name(f".{target.name}.{secrets.token_hex(4)}.partial")
    try:
        yield temp
        _publish(temp, target, force=force)
    except OSError as error:
        raise target_error(target, error) from error
    finally:
        remove(temp)


def target_error(target: Path | str, error: OSError) -> TargetError:
    """Say in plain words why the target could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return TargetError(f"{target}: the disk is full. Nothing was left behind; free some space or write elsewhere.")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return TargetError(f"{target}: no permission to write there. Choose another place.")
    return TargetError(f"{target}: could not be written ({error.strerror or error}). Nothing was left behind.")


def refused_write(name: str, system: str, error: Exception) -> TargetError:
    """Say that a database system could not write its file."""
    return TargetError(f"{name}: {system} could not write it ({first_line(error)}). Nothing was left behind.")


def remove(path: Path) -> None:
    """Remove a file or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def check_target(target: Path, *, force: bool) -> None:
    """Refuse a target that could not be written, before any work is done for it."""
    target = Path(os.path.abspath(target))
    if not target.parent.is_dir():
        raise TargetError(f"{target}: the folder {target.parent} does not exist. Make it first.")
    if not os.path.lexists(target):
        return
    if not force:
        raise TargetError(f"{target}: already exists. Choose another name, or replace it with `--force`.")
    if target.is_dir() and any(target.iterdir()) and not _is_ours(target):
        raise TargetError(
            f"{target}: is a folder with files that are not ours, so it is not replaced even with `--force`. "
            "Choose another name, or remove it yourself."
        )


def _publish(temp: Path, target: Path, *, force: bool) -> None:
    """Rename; what stood there is moved aside first and comes back if the rename fails."""
    if not os.path.lexists(target):
        temp.rename(target)
        return
    check_target(target, force=force)
    if target.is_dir() and not temp.is_dir():
        raise TargetError(f"{target}: is a folder, and a file is to be written. Choose another name.")
    old = temp.with_suffix(".old")
    target.rename(old)
    try:
        temp.rename(target)
    except BaseException:
        old.rename(target)
        raise
    remove(old)
