"""Floors kept in files: one per real database, workload and seed, under a name that is a fingerprint of these.

A file holds figures of the private data and stays with the publisher.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from privbench.evaluation.database import Database, Side, qualified
from privbench.evaluation.floor import Floor

VERSION = 1


def fingerprint(database: Database, settings: Sequence[object]) -> str:
    """A name for the real data (every value of every row, whatever their order) and all that the floor depends on."""
    tables = [
        (name, *database.rows(f"SELECT count(*), sum(hash(t)) FROM {qualified(Side.REAL, name)} t")[0])  # noqa: S608
        for name in sorted(database.tables[Side.REAL])
    ]
    return hashlib.sha256(repr((VERSION, tables, list(settings))).encode()).hexdigest()[:32]


def read_floor(cache: Path | None, name: str) -> Floor | None:
    """Find a floor that was kept; None if there is none or the file is damaged."""
    if cache is None:
        return None
    try:
        return _floor(json.loads((cache / f"floor-{name}.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_floor(cache: Path | None, name: str, floor: Floor) -> None:
    """Keep a floor; a folder that cannot be written only means that it is computed again."""
    if cache is None:
        return
    text = json.dumps(asdict(floor))
    try:
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        staged = cache / f".floor-{name}.json"
        staged.write_text(text, encoding="utf-8")
        staged.chmod(0o600)
        staged.replace(cache / f"floor-{name}.json")
    except OSError:
        return


def _floor(found: dict[str, Any]) -> Floor:
    return Floor(
        marginals={t: {int(w): _four(v) for w, v in ways.items()} for t, ways in found["marginals"].items()},
        columns={t: {c: _four(v) for c, v in columns.items()} for t, columns in found["columns"].items()},
        cross={k: _four(v) for k, v in found["cross"].items()},
        fanouts={k: (float(kld), float(tvd)) for k, (kld, tvd) in found["fanouts"].items()},
        q_errors={int(n): float(q) for n, q in found["q_errors"].items()},
    )


def _four(found: list[Any]) -> list[float]:
    if len(found) != 4:
        raise ValueError("four figures expected")
    return [float(v) for v in found]
