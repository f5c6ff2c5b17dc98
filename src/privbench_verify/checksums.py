"""The files of a bundle against its checksums."""

import hashlib
from pathlib import Path

CHECKSUMS = "SHA256SUMS"
RECEIPT = "receipt.json"
MAX_CHECKSUMS = 2**26


def wrong_checksums(folder: Path) -> list[str]:
    """What in a bundle is not what its checksums say, is missing, is not listed, or is a link."""
    listed = _listed(folder / CHECKSUMS)
    if listed is None:
        return [CHECKSUMS]
    present = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_symlink() or not p.is_dir()}
    present.pop(CHECKSUMS, None)
    return sorted(n for n in listed.keys() | present.keys() if n not in present or not _is(present[n], listed.get(n)))


def is_plain_file(path: Path) -> bool:
    """Whether it is a file: not a link, nor a pipe that would never end."""
    return path.is_file() and not path.is_symlink()


def sha256(path: Path) -> str:
    """The SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _listed(path: Path) -> dict[str, str] | None:
    """The digest of each file by its name; None if they cannot be read, or a name stands twice."""
    try:
        if not is_plain_file(path) or path.stat().st_size > MAX_CHECKSUMS:
            return None
        lines = path.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError):
        return None
    lines = lines[:-1] if lines[-1] == "" else lines
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    return listed if len(listed) == len(lines) else None


def _is(path: Path, digest: str | None) -> bool:
    try:
        return is_plain_file(path) and sha256(path) == digest
    except OSError:
        return False
