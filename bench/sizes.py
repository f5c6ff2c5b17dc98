"""Whether ranges of sizes hold: 20 made databases of 8 shapes, and real ones.

    python bench/sizes.py [--epsilon 3.2,1.6] [--delta 0] [--runs 5] [--seed 1] [--data DIR] [--only sakila,households]

Each database has an entity table and one owned table; a shape says who has how many rows. `few` are shapes of which
2 to 10 % of the entities hold all rows, 20 to 300 each in the middle. A range of 90 % should hold the size in 90 % of
all fits; `off` is the factor between size and estimate, `width` that between the ends of the range (medians). Each
seed has other databases; noise is that of tests. With --data those of bench/link_databases.py are fitted, too.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from link_databases import CASES
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.io.open import open_source
from privbench.methods.method import TableModel
from privbench.privacy.noise import TestEntropy
from privbench.schema.spec import Spec

Numbers = NDArray[np.int64]
DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT NOT NULL CHECK (age BETWEEN 0 AND 99));
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id),
  cost SMALLINT NOT NULL CHECK (cost BETWEEN 0 AND 20));"""
MOST = 8000
"""The most rows of an entity."""


@dataclass(frozen=True, kw_only=True)
class Shape:
    """The rows of those that have any: a function of their number and of a middle."""

    draw: Callable[[np.random.Generator, int, float], NDArray[np.float64]]
    databases: Sequence[tuple[int, float, float]]
    """Entities, the share that has rows, the middle of their rows."""


SHAPES = {
    "few, log-normal": Shape(
        draw=lambda rng, k, middle: middle * rng.lognormal(0, 0.8, k),
        databases=[(900, 0.09, 150), (3000, 0.02, 60), (600, 0.1, 40), (2000, 0.05, 300)],
    ),
    "few, Pareto": Shape(
        draw=lambda rng, k, middle: 0.6 * middle * (1 + rng.pareto(1.5, k)),
        databases=[(1500, 0.04, 50), (800, 0.08, 120), (4000, 0.03, 20)],
    ),
    "few, alike": Shape(
        draw=lambda rng, k, middle: rng.poisson(middle, k).astype(float),
        databases=[(700, 0.06, 200), (2500, 0.02, 100), (1200, 0.1, 25)],
    ),
    "many, Poisson": Shape(
        draw=lambda rng, k, middle: rng.poisson(middle, k).astype(float), databases=[(2000, 0.9, 6), (5000, 0.7, 2)]
    ),
    "many, geometric": Shape(
        draw=lambda rng, k, middle: rng.geometric(1 / middle, k).astype(float),
        databases=[(3000, 0.8, 4), (1000, 0.6, 12)],
    ),
    "many, log-normal": Shape(
        draw=lambda rng, k, middle: middle * rng.lognormal(0, 1.0, k), databases=[(4000, 0.8, 5), (1500, 0.5, 20)]
    ),
    "many, Pareto": Shape(
        draw=lambda rng, k, middle: 0.6 * middle * (1 + rng.pareto(1.4, k)),
        databases=[(6000, 0.9, 3), (2500, 0.6, 10)],
    ),
    "two kinds": Shape(
        draw=lambda rng, k, middle: np.where(rng.random(k) < 0.25, 10 * middle, 1.0),
        databases=[(3000, 0.7, 12), (1500, 0.5, 4)],
    ),
}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one fit said of one size."""

    real: int
    rows: float
    low: float
    high: float

    @property
    def holds(self) -> bool:
        """Whether the range has the real size in it, up to rounding."""
        return self.low - 0.5 <= self.real <= self.high + 0.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--epsilon", default="3.2,1.6")
    parser.add_argument("--delta", default="0")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default="sakila,households")
    given = parser.parse_args()
    for epsilon in given.epsilon.split(","):
        print(f"## epsilon {epsilon}, delta {given.delta}, {given.runs} runs, databases {given.seed}")
        groups: dict[str, list[Outcome]] = {}
        for name, tables in made(given.seed):
            spec = draft(tables, schema=DDL, unit="person")
            found = outcomes(spec, tables, {"visit": len(tables["visit"])}, epsilon, given)
            groups.setdefault(name, []).extend(found)
        for name in given.only.split(",") if given.data else ():
            with tempfile.TemporaryDirectory() as folder:
                groups[f"real, {name}"] = real(name, given.data, Path(folder), epsilon, given)
        for name, found in groups.items():
            print(line(name, found), flush=True)
        for kind in ("few", "many", "two", "real"):
            if together := [one for name, found in groups.items() if name.startswith(kind) for one in found]:
                print(line(f"all {kind}", together), flush=True)


def made(seed: int) -> Iterator[tuple[str, dict[str, pa.Table]]]:
    """The made databases, each with the name of its shape."""
    for at, (name, shape) in enumerate(SHAPES.items()):
        for place, (entities, share, middle) in enumerate(shape.databases):
            rng = np.random.default_rng([seed, at, place])
            rows = np.zeros(entities, np.int64)
            some = round(entities * share)
            rows[:some] = np.clip(np.round(shape.draw(rng, some, middle)), 1, MOST)
            yield name, with_rows(rows, rng)


def with_rows(rows: Numbers, rng: np.random.Generator) -> dict[str, pa.Table]:
    """Persons with so many visits."""
    owners = np.repeat(np.arange(len(rows)), rows)
    return {
        "person": pa.table({"id": np.arange(len(rows)), "age": rng.integers(0, 100, len(rows))}),
        "visit": pa.table(
            {"id": np.arange(len(owners)), "person_id": owners, "cost": rng.integers(0, 21, len(owners))}
        ),
    }


def real(name: str, data: Path, folder: Path, epsilon: str, given: argparse.Namespace) -> list[Outcome]:
    """Fits of a real database: the sizes of its private tables beside the unit's."""
    place, case = folder / "real", CASES[name]
    place.mkdir()
    case.write(data, place)
    spec = draft(place, unit=case.unit, public=case.public, owners=case.owners, domains="data")
    with open_source(place) as source:
        sizes = {t.name: source.rows(t.name) for t in source.schema().tables}
    private = set(spec.protection().order) - {case.unit}
    return outcomes(spec, place, {t: rows for t, rows in sizes.items() if t in private}, epsilon, given)


def outcomes(
    spec: Spec, source: Path | dict[str, pa.Table], sizes: dict[str, int], epsilon: str, given: argparse.Namespace
) -> list[Outcome]:
    """What so many fits say of sizes."""
    found = []
    for run in range(given.runs):
        entropy = TestEntropy(1000 * given.seed + run)
        tables = fit(spec, source=source, epsilon=epsilon, delta=given.delta, entropy=entropy).tables
        found += [outcome(tables[name], rows) for name, rows in sizes.items()]
    return found


def outcome(table: TableModel, rows: int) -> Outcome:
    """What a model says of a table that has so many rows."""
    assert table.rows_low is not None
    assert table.rows_high is not None
    return Outcome(real=rows, rows=table.rows, low=table.rows_low, high=table.rows_high)


def line(name: str, found: Sequence[Outcome]) -> str:
    """How many ranges hold, how many sizes lie above theirs, and how far estimates are off."""
    off = np.exp(np.abs(np.log([max(one.rows, 1) / one.real for one in found])))
    width = np.median([one.high / max(one.low, 1) for one in found])
    return (
        f"{name:<20} {len(found):>4} fits: holds {np.mean([one.holds for one in found]):>4.0%}, "
        f"above {np.mean([one.real > one.high + 0.5 for one in found]):>4.0%}, off {np.median(off):>6.2f} "
        f"(90 %: {np.quantile(off, 0.9):.2f}), width {width:.2f}"
    )


if __name__ == "__main__":
    main()
