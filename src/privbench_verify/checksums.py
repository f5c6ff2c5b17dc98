"""The files of a bundle against its checksums."""

import hashlib
from pathlib import Path

CHECKSUMS = "SHA256SUMS"
RECEIPT = "receipt.json"


def wrong_checksums(folder: Path) -> list[str]:
    """What in a bundle is not what its checksums say, is missing, is not listed, or is a link."""
    try:
        lines = (folder / CHECKSUMS).read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return [CHECKSUMS]
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    if len(listed) < len(lines) or (folder / CHECKSUMS).is_symlink():
        return [CHECKSUMS]
    found = {p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_symlink() or not p.is_dir()}
    del found[CHECKSUMS]
    return sorted(n for n in listed.keys() | found.keys() if n not in found or not _is(found[n], listed.get(n)))


def _is(path: Path, digest: str | None) -> bool:
    """Whether it is a file (not a link, nor a pipe that would never end) of that digest."""
    return path.is_file() and not path.is_symlink() and sha256(path) == digest


def sha256(path: Path) -> str:
    """The SHA-256 digest of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
