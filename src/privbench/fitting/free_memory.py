"""How much memory is free for this process: on the machine, and in the container that it runs in.

A container is a control group of Linux with a limit, of version 1 or 2. Groups are nested and each may have a limit, so
all of them are asked, from that of this process up to the root. Cached files, which the kernel drops when memory is
short, are not counted as used. `root` is where `/proc` and `/sys` are, so that tests can make up a machine.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path("/")
_GUESS = 2**33
"""What is taken to be free where the system does not tell."""
_NO_LIMIT = 2**60
"""Version 1 writes a huge number for no limit: the largest page of 63 bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Version:
    """Where a version of control groups says what."""

    folders: tuple[str, ...]
    """Where it is mounted."""
    limits: tuple[str, ...]
    used: str
    cached: str
    """The line of `memory.stat` that counts cached files which have not been used lately, of all groups inside."""


_ONE = _Version(
    folders=("sys/fs/cgroup/memory",),
    limits=("memory.limit_in_bytes",),
    used="memory.usage_in_bytes",
    cached="total_inactive_file",
)
_TWO = _Version(
    folders=("sys/fs/cgroup", "sys/fs/cgroup/unified"),
    limits=("memory.max", "memory.high"),
    used="memory.current",
    cached="inactive_file",
)


def free_memory(root: Path = ROOT) -> int:
    """The bytes that are free for this process."""
    free, room = _free_on_machine(root), room_in_container(root)
    return free if room is None else min(free, room)


def room_in_container(root: Path = ROOT) -> int | None:
    """The bytes that this process may still take under the limits of its control groups; None if there is no limit."""
    rooms = [room for version, folder in _groups(root) for room in _rooms(version, folder)]
    return max(min(rooms), 0) if rooms else None


def _groups(root: Path) -> Iterator[tuple[_Version, Path]]:
    """The folders of the control groups of this process; inside a container some of them may not be there."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        version = _TWO if not controllers else _ONE if "memory" in controllers.split(",") else None
        if version is not None:
            group = PurePosixPath("/", path)
            for folder in version.folders:
                yield from ((version, root / folder / str(g).lstrip("/")) for g in (group, *group.parents))


def _rooms(version: _Version, folder: Path) -> Iterator[int]:
    """What is left of each limit of a control group."""
    limits = [limit for name in version.limits if (limit := _number(folder / name)) is not None and limit < _NO_LIMIT]
    used = _number(folder / version.used)
    if limits and used is not None:
        facts = dict(line.split(None, 1) for line in _read(folder / "memory.stat").splitlines() if " " in line)
        cached = int(facts.get(version.cached, 0))
        yield from (limit - max(used - cached, 0) for limit in limits)


def _free_on_machine(root: Path) -> int:
    for line in _read(root / "proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return _GUESS


def _number(file: Path) -> int | None:
    """The number in a file; None if it is not there, or says `max`, which is no limit."""
    text = _read(file).strip()
    return int(text) if text.isdecimal() else None


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
