"""Temporary places: a hidden path beside a target, renamed at the end, and private folders for work files.

Nothing half-written is ever seen under a target's name; any exception, Ctrl-C too, removes what was begun. What a
killed run leaves (SIGKILL, a crash) is removed by the next run of the same user: each private folder and each staged
path has a lock file in one folder per user, readable by that user alone. A lock that no process holds is a leftover.
"""

import errno
import json
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from privbench.errors import TargetError, first_line

if sys.platform != "win32":
    import fcntl

_RESULTS = {"result.json", "report.html", "compare.json", "compare.csv", "compare.html"}
"""What evaluations write."""
_LOCK = ".lock"


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

    The path does not exist yet. It is a hidden name in the target's own folder, since a rename is atomic only within
    one file system. With `force` an existing file, empty folder or bundle is replaced, and only at the end. An OSError
    in the block (disk full, no permission) becomes a TargetError.
    """
    target = Path(os.path.abspath(target))
    check_target(target, force=force)
    token = secrets.token_hex(4)
    temp = target.with_name(f".{target.name}.{token}.partial")
    mark: _Mark | None = None
    with suppress(OSError):  # budget may have been spent: a full temporary folder must not cost the result
        mark = _set_mark(token, target=target)
    try:
        yield temp
        _publish(temp, target, force=force)
    except OSError as error:
        raise target_error(target, error) from error
    finally:
        remove(temp)
        if mark is not None:
            mark.end()


@contextmanager
def private_folder() -> Iterator[Path]:
    """Give an empty folder for work files that no other user can read; it is removed at the end."""
    token = secrets.token_hex(8)
    try:
        mark = _set_mark(token)
        folder = mark.path.with_suffix("")
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise target_error(_parent(), error) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        mark.end()


def remove_leftovers() -> None:
    """Remove what killed runs of this user left: private folders, and staged paths beside their targets."""
    if not os.path.lexists(_parent()):
        return
    with _locked_parent() as parent:
        for path in sorted(parent.iterdir()):
            if path.suffix == _LOCK:
                _remove_if_stale(path)
            elif not path.with_suffix(_LOCK).exists():
                remove(path)
        _remove_if_empty(parent)


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


def check_target(target: Path, *, force: bool, is_file: bool = False) -> None:
    """Refuse a target that could not be written, before any work is done for it; `is_file`: it will be a file."""
    target = Path(os.path.abspath(target))
    if not target.parent.is_dir():
        raise TargetError(f"{target}: the folder {target.parent} does not exist. Make it first.")
    if os.path.lexists(_parent()):
        with _locked_parent():  # raises if it is not this user's
            pass
    if not os.path.lexists(target):
        return
    if not force:
        raise TargetError(f"{target}: already exists. Choose another name, or replace it with `--force`.")
    if target.is_dir() and is_file:
        raise TargetError(f"{target}: is a folder, and a file is to be written. Choose another name.")
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
    check_target(target, force=force, is_file=not temp.is_dir())
    old = temp.with_suffix(".old")
    target.rename(old)
    try:
        temp.rename(target)
    except BaseException:
        old.rename(target)
        raise
    remove(old)


def _parent() -> Path:
    """The one folder of this user for private folders and lock files."""
    user = os.getuid() if sys.platform != "win32" else os.environ.get("USERNAME", "user")
    return Path(tempfile.gettempdir()) / f"privbench-{user}"


@contextmanager
def _locked_parent() -> Iterator[Path]:
    """Open the user's folder, made if it is not there, and keep other runs from changing it meanwhile.

    Raises TargetError where another user made something of that name: they could read or replace our files.
    """
    parent = _parent()
    if sys.platform == "win32":
        parent.mkdir(exist_ok=True)
        yield parent
        return
    while True:
        with suppress(FileExistsError):
            parent.mkdir(mode=0o700)
        try:
            handle = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:  # another run has just removed it
            continue
        except OSError:
            raise _not_ours(parent) from None
        try:
            facts = os.fstat(handle)
            if facts.st_uid != os.getuid():
                raise _not_ours(parent)
            if stat.S_IMODE(facts.st_mode) != 0o700:
                os.fchmod(handle, 0o700)
            fcntl.flock(handle, fcntl.LOCK_EX)
            if _is_same(parent, facts):
                yield parent
                return
        finally:
            os.close(handle)


def _not_ours(parent: Path) -> TargetError:
    return TargetError(
        f"{parent}: is a link, a file, or belongs to another user, so private files cannot be kept there. Remove it, "
        "or set the environment variable TMPDIR to a folder of your own."
    )


def _is_same(path: Path, facts: os.stat_result) -> bool:
    """Whether a path still leads to what was opened."""
    try:
        return os.path.samestat(os.lstat(path), facts)
    except FileNotFoundError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mark:
    """A lock file that says who is at work; the system lets go of the lock when the process ends, however it ends."""

    path: Path
    handle: int

    def end(self) -> None:
        """Remove the lock file, when what it stands for is gone."""
        with _locked_parent() as parent:
            self.path.unlink(missing_ok=True)
            os.close(self.handle)
            _remove_if_empty(parent)


def _set_mark(token: str, *, target: Path | None = None) -> _Mark:
    """Make a lock file and hold its lock. Stale ones of other runs are removed first."""
    remove_leftovers()
    mark = {"pid": os.getpid(), "started": time.time(), "target": None if target is None else str(target)}
    with _locked_parent() as parent:
        path = parent / f"{token}{_LOCK}"
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        _try_lock(handle)
        os.write(handle, json.dumps(mark).encode())
    return _Mark(path=path, handle=handle)


def _try_lock(handle: int) -> bool:
    """Take a lock that no process holds. Where the system has no locks, none counts as free."""
    if sys.platform == "win32":
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_if_stale(path: Path) -> None:
    """Remove what a lock file stands for if its process is gone; a target that was moved aside comes back."""
    handle = os.open(path, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    try:
        if not _try_lock(handle):
            return
        with suppress(ValueError, TypeError, KeyError, OSError):
            _remove_staged(path.stem, json.loads(os.read(handle, 2**16))["target"])
        remove(path.with_suffix(""))
        path.unlink(missing_ok=True)
    finally:
        os.close(handle)


def _remove_staged(token: str, target: str | None) -> None:
    if target is None:
        return
    path = Path(target)
    old = path.with_name(f".{path.name}.{token}.old")
    if os.path.lexists(old) and not os.path.lexists(path):
        old.rename(path)
    remove(old)
    remove(path.with_name(f".{path.name}.{token}.partial"))


def _remove_if_empty(parent: Path) -> None:
    with suppress(OSError):
        parent.rmdir()
