"""A lock on what comes out: digests of drafts, models, rows, estimates and results of seeded runs, in one file.

A change that should not change what comes out is shown not to. One that should says so by new digests:

    python -m tests.e2e.test_bytes        (or with names of databases: those alone)

Digests are of values as text, never of files: floats to six digits, no paths, no seconds, no versions of libraries.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privbench.evaluation.evaluate import evaluate
from privbench.evaluation.result import result_json
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.io.base import Source, arrow_schema
from privbench.io.open import open_source
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.schema.spec import Spec
from privbench.schema.tables import Table
from privbench.workload.estimate import estimate_statements
from privbench.workload.generate import generate_workload

from ..computed_orders import LATE, ROWS, computed_spec, write_source
from ..seeded import SeededEntropy
from .shapes import SHAPES, Columns, Rng, Shape

DIGESTS = Path(__file__).with_name("digests.json")
FAST = ("list", "numbered", "parent_child", "relative", "rules")
"""Databases that every run of the fast tests looks at."""
_OF_THE_RUN = ("id", "real", "software", "synthetic")
"""What of a receipt or a result says when, where and by which version it was made."""


def _relative(rng: Rng) -> Mapping[str, Columns]:
    stay = np.repeat(np.arange(120), rng.integers(1, 5, 120))
    came = np.datetime64("2020-01-01") + rng.integers(0, 700, len(stay))
    return {
        "guest": {"id": range(120), "age": rng.integers(20, 80, 120).tolist()},
        "stay": {
            "guest": stay.tolist(),
            "number": np.concatenate([np.arange(n) for n in np.bincount(stay)]).tolist(),
            "came": came.tolist(),
            "left": (came + rng.integers(1, 9, len(stay))).tolist(),
        },
    }


def _list(rng: Rng) -> Mapping[str, Columns]:
    rows = np.array([(p, 1990 + n) for p in range(400) for n in range(int(rng.integers(1, 9)))])
    held = {"bat": rng.random(len(rows)) < 0.95, "pitch": rows[:, 0] % 2 == 0}
    members = {
        name: {
            "player": rows[at, 0].tolist(),
            "year": rows[at, 1].tolist(),
            "team": (rows[at, 0] % 7).tolist(),
            "won": rng.integers(0, 9, int(at.sum())).tolist(),
        }
        for name, at in held.items()
    }
    return {"player": {"id": range(400), "height": rng.integers(0, 9, 400).tolist()}, **members}


def _rules(rng: Rng) -> Mapping[str, Columns]:
    clients, n = 200, 500
    low = rng.integers(0, 40, n)
    joined = np.datetime64("2020-01-01") + rng.integers(0, 300, clients)
    at = rng.integers(0, clients, n)
    return {
        "client": {"id": range(clients), "joined": joined.tolist(), "boss": [None, *range(clients - 1)]},
        "bid": {
            "client": at.tolist(),
            "low": low.tolist(),
            "high": (low + rng.integers(0, 9, n)).tolist(),
            "day": (joined[at] + rng.integers(0, 300, n)).tolist(),
        },
    }


def _numbered(rng: Rng) -> Mapping[str, Columns]:
    n = 400
    day = np.datetime64("2020-01-01") + np.sort(rng.integers(0, 700, n))
    return {
        "author": {"id": range(100), "town": rng.integers(0, 5, 100).tolist()},
        "post": {
            "id": range(n),
            "author": rng.integers(0, 100, n).tolist(),
            "day": day.tolist(),
            "answers": [None if i < 9 or i % 3 else int(rng.integers(0, n)) for i in range(n)],
        },
        "vote": {"post": rng.integers(0, n, 600).tolist(), "up": rng.integers(0, 2, 600).astype(bool).tolist()},
    }


SHAPES_OF_RELATIONS = {
    "relative": Shape(
        ddl="""CREATE TABLE guest (id INTEGER PRIMARY KEY, age SMALLINT NOT NULL);
CREATE TABLE stay (guest INTEGER NOT NULL REFERENCES guest, number SMALLINT NOT NULL, came DATE NOT NULL,
  "left" DATE NOT NULL);""",
        rows=_relative,
        choices={"unit": "guest"},
    ),
    "list": Shape(
        ddl="""CREATE TABLE player (id INTEGER PRIMARY KEY, height INTEGER NOT NULL);
CREATE TABLE bat (player INTEGER NOT NULL REFERENCES player, year INTEGER, team INTEGER, won INTEGER,
  PRIMARY KEY (player, year));
CREATE TABLE pitch (player INTEGER NOT NULL REFERENCES player, year INTEGER, team INTEGER, won INTEGER,
  PRIMARY KEY (player, year));""",
        rows=_list,
        choices={"unit": "player"},
    ),
    "rules": Shape(
        ddl="""CREATE TABLE client (id INTEGER PRIMARY KEY, joined DATE NOT NULL, boss INTEGER REFERENCES client,
  CHECK (boss < id));
CREATE TABLE bid (client INTEGER NOT NULL REFERENCES client, low SMALLINT NOT NULL, high SMALLINT, day DATE,
  CHECK (low <= high));""",
        rows=_rules,
        choices={"unit": "client"},
    ),
    "numbered": Shape(
        ddl="""CREATE TABLE author (id INTEGER PRIMARY KEY, town SMALLINT);
CREATE TABLE post (id INTEGER PRIMARY KEY, author INTEGER NOT NULL REFERENCES author, day DATE NOT NULL,
  answers INTEGER REFERENCES post);
CREATE TABLE vote (post INTEGER NOT NULL REFERENCES post, up BOOLEAN NOT NULL);""",
        rows=_numbered,
        choices={"unit": "author"},
    ),
}


def _drafted(shape: Shape) -> Callable[[Path], tuple[Path, Spec]]:
    def made(folder: Path) -> tuple[Path, Spec]:
        source = shape.write(folder / "source")
        return source, draft(source, domains="data", **shape.choices)

    return made


def _orders(folder: Path) -> tuple[Path, Spec]:
    source = write_source(folder / "orders.duckdb", clients=150)
    return source, computed_spec(source, {**ROWS, **LATE})


DATABASES: Mapping[str, Callable[[Path], tuple[Path, Spec]]] = {
    **{name: _drafted(shape) for name, shape in (SHAPES | SHAPES_OF_RELATIONS).items()},
    "orders": _orders,
}


def _rounded(value: Any) -> Any:
    """A value of JSON without seconds, whose floats have six digits: the last ones depend on the machine."""
    match value:
        case float():
            return f"{value:.6g}"
        case dict():
            return {str(key): _rounded(held) for key, held in value.items() if not str(key).endswith("seconds")}
        case list() | tuple():
            return [_rounded(held) for held in value]
    return value


def _digest(value: Any) -> str:
    return sha256(json.dumps(_rounded(value), sort_keys=True, default=str).encode()).hexdigest()[:16]


def _columns(source: Source, table: Table) -> dict[str, list[Any]]:
    return pa.Table.from_batches(source.read(table), schema=arrow_schema(table)).to_pydict()


def _bundle(model: Model, out: Path, **words: Any) -> str:
    generate(model, out, seed=1, **words)
    with open_source(out) as source:
        return _digest({table.name: _columns(source, table) for table in source.schema().tables})


def artefacts(name: str, folder: Path) -> Iterator[tuple[str, str]]:
    """What comes out of a seeded run over a database, step by step, and its digest."""
    source, spec = DATABASES[name](folder)
    yield "draft", _digest(spec.model_dump(mode="json", exclude={"source"}))
    save_model(fit(spec, source=source, epsilon=500, entropy=SeededEntropy()), folder / "model")
    model = load_model(folder / "model")
    yield "receipt", _digest({k: v for k, v in model.receipt.items() if k not in _OF_THE_RUN})
    for scale in (1, 0.3):
        yield f"rows at scale {scale}", _bundle(model, folder / str(scale), scale=scale)
    yield "rows in 3 partitions", _bundle(model, folder / "partitions", partitions=3)
    workload = generate_workload(model, n=20, seed=1)
    estimates = estimate_statements(model, workload.statements)
    yield "estimates", _digest([(e.statement.sql, e.rows) for e in estimates])
    result = result_json(evaluate(source, folder / "1", workload=workload, model=model, lambdas=(1, 2)))
    yield "result", _digest({key: value for key, value in result.items() if key not in _OF_THE_RUN})


def _check(name: str, folder: Path) -> None:
    known = json.loads(DIGESTS.read_text())[name]
    moved = [what for what, digest in artefacts(name, folder) if known.get(what) != digest]
    assert not moved, (
        f"{name}: {', '.join(moved)} came out otherwise than before. If that is meant, say why in the commit, and "
        f"renew the digests: python -m tests.e2e.test_bytes {name}"
    )


@pytest.mark.parametrize("name", FAST)
def test_what_comes_out_is_what_came_out(name: str, tmp_path: Path) -> None:
    _check(name, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(DATABASES.keys() - set(FAST)))
def test_so_does_what_other_databases_give(name: str, tmp_path: Path) -> None:
    _check(name, tmp_path)


def test_another_seed_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SeededEntropy, "__init__", lambda self: setattr(self, "_bits", np.random.PCG64(2)))
    with pytest.raises(AssertionError, match="parent_child: receipt, rows at scale 1"):
        _check("parent_child", tmp_path)


def _renew(names: list[str]) -> None:
    """Write the digests of these databases, or of all."""
    digests = json.loads(DIGESTS.read_text()) if names else {}
    for name in names or DATABASES:
        with tempfile.TemporaryDirectory() as folder:
            digests[name] = dict(artefacts(name, Path(folder)))
    DIGESTS.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    _renew(sys.argv[1:])
