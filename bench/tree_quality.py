"""How good method `tree` is: its figures on adult_disc, raw Adult and households, beside what they should reach.

    python bench/tree_quality.py --data DIR [--runs 5] [--only adult_disc,adult,households]

DIR holds adult_disc/, adult/, households_sandiego/ and workloads/. Figures are medians over seeded runs; noise is that
of tests. KLD and TV of adult_disc are means over all pairs of columns, on codes, with 1e-10 added to each share; its
Q-errors are those of 1,000 queries on 2 to 8 columns, drawn by seed around rows of the data.
"""

import argparse
import json
import operator
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from adult_table import figures, write_adult
from privbench.encode.coded import CodedTable
from privbench.evaluation.evaluate import evaluate
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.methods.method import silent
from privbench.methods.registry import find_method
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import ColumnFacts, Facts, TableFacts
from privbench.privacy.noise import TestEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.receipt import open_ledger
from privbench.privacy.vault import Vault
from privbench.schema.spec import Spec
from privbench.schema.unit import Neighbours
from privbench.spn.sample import sample

Codes = NDArray[np.int64]
Figures = dict[str, float]
Query = list[tuple[int, str, int]]

COMPARISONS = {"=": operator.eq, "<=": operator.le, ">=": operator.ge}
QUERIES, QUERY_SEED = 1000, 4242
TINY = 1e-10
ADULT_DISC: dict[tuple[str, str], Figures] = {
    ("3.2", "0"): {"KLD2": 0.047, "TV2": 0.0365, "Q mean": 1.35, "Q p95": 2.4},
    ("3.2", "1e-9"): {"KLD2": 0.040},
    ("0.4", "0"): {"KLD2": 0.097},
    ("0.1", "0"): {"KLD2": 0.20, "TV2": 0.145},
}
"""What figures should reach, by epsilon and delta."""
RAW_ADULT: Figures = {"KLD2": 0.06, "KLD3": 0.25, "KLD4": 0.64, "Q mean": 1.32, "Q median": 1.06, "Q p75": 1.18}
AGAINST_PAPER: Figures = {"KLD2": 0.3, "cross KLD": 0.3, "Q mean": 0.5}
"""Parts of what the paper's method has."""
FANOUT_TV = 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", default="adult_disc,adult,households")
    given = parser.parse_args()
    measures = {"adult_disc": measure_adult_disc, "adult": measure_adult, "households": measure_households}
    for name in given.only.split(","):
        measures[name](given.data, given.runs)


def measure_adult_disc(data: Path, runs: int) -> None:
    adult = read_adult_disc(data / "adult_disc")
    for (epsilon, delta), wanted in ADULT_DISC.items():
        found = [adult.compare(synthesise(adult, epsilon, delta, seed)) for seed in range(runs)]
        show(f"adult_disc, epsilon {epsilon}, delta {delta}", medians(found), wanted)


def measure_adult(data: Path, runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        real, without = write_adult(data, Path(folder))
        queries, out = data / "workloads/adult_sam_1000.sql", Path(folder) / "out"
        found = []
        for seed in range(runs):
            make(draft(real, domains="data"), out, "tree", seed)
            results = [evaluate(side, out, workload=w, floor=False) for side, w in ((real, queries), (without, None))]
            row = figures(*results, floor=False, seconds=None)
            names = {"KLD2": 3, "KLD3": 4, "KLD4": 5, "Q mean": 9, "Q median": 10, "Q p75": 11}
            found.append({name: float(row[at] or 0) for name, at in names.items()})
    show("raw Adult, epsilon 3.2, KLD without fnlwgt", medians(found), RAW_ADULT)


def measure_households(data: Path, runs: int) -> None:
    paper, tree = (medians([households(data, method, seed) for seed in range(runs)]) for method in ("paper", "tree"))
    wanted = {name: part * paper[name] for name, part in AGAINST_PAPER.items()} | {"fanout TV": FANOUT_TV}
    show("households, epsilon 3.2, method paper", paper, {})
    show("households, epsilon 3.2", tree, wanted)


def households(data: Path, method: str, seed: int) -> Figures:
    """Figures of one run on the codes of both tables and on 400 queries."""
    source = data / "households_sandiego"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        rows = make(draft(source, domains="data", unit="household"), out, method, seed)
        workload = data / "workloads/households_sandiego_gen400.sql"
        result = evaluate(source, out, workload=workload, floor=False, lambdas=(2,))
    real = pq.read_metadata(source / "person.parquet").num_rows
    whole = result.workload["q_error"].all
    assert whole is not None
    errors = whole.errors
    return {
        "KLD2": _known(result.marginals[2]["kld"].codes.value),
        "cross KLD": _known(result.cross["kld"].codes.value),
        "fanout TV": _known(result.fanouts["tvd"].value),
        "persons off by": abs(rows["person"] / real - 1),
        "Q mean": errors.mean,
        "Q median": errors.median,
    }


def make(spec: Spec, out: Path, method: str, seed: int) -> dict[str, int]:
    """A synthetic database by seed."""
    shutil.rmtree(out, ignore_errors=True)
    return generate(fit(spec, epsilon="3.2", method=method, entropy=TestEntropy(seed)), out, seed=seed)


@dataclass(frozen=True, kw_only=True)
class Table:
    """Codes by column, how many codes each column has, and which are ordered."""

    codes: Mapping[str, Codes]
    sizes: Mapping[str, int]
    ordered: frozenset[str]

    @property
    def rows(self) -> int:
        return len(next(iter(self.codes.values())))

    def compare(self, other: Mapping[str, Codes]) -> Figures:
        """Distances of pairs of columns, and errors of queries."""
        pairs = list(combinations(self.sizes, 2))
        distances = np.array([_distances(self._shares(self.codes, p), self._shares(other, p)) for p in pairs])
        queries = self.queries()
        real, found = (np.maximum(counts(codes, queries), 1) for codes in (self.codes, other))
        errors = np.maximum(found / real, real / found)
        kld, tv = distances.mean(axis=0)
        return {"KLD2": kld, "TV2": tv, "Q mean": errors.mean(), "Q p95": float(np.quantile(errors, 0.95))}

    def queries(self) -> list[Query]:
        """Conjunctions that hold for some row."""
        rng = np.random.default_rng(QUERY_SEED)
        columns = list(self.sizes)
        found = []
        for _ in range(QUERIES):
            row = rng.integers(self.rows)
            chosen = rng.choice(len(columns), rng.integers(2, 9), replace=False)
            found.append(
                [(int(c), self._comparison(columns[c], rng), int(self.codes[columns[c]][row])) for c in chosen]
            )
        return found

    def _comparison(self, column: str, rng: np.random.Generator) -> str:
        return str(rng.choice(list(COMPARISONS))) if column in self.ordered and self.sizes[column] >= 10 else "="

    def _shares(self, codes: Mapping[str, Codes], pair: tuple[str, str]) -> NDArray[np.float64]:
        first, second = pair
        key = codes[first] * self.sizes[second] + codes[second]
        return np.bincount(key, minlength=self.sizes[first] * self.sizes[second]) / len(key)


def read_adult_disc(folder: Path) -> Table:
    """The table of codes and what its schema says of them."""
    schema = json.loads((folder / "schema.json").read_text())
    table = pq.read_table(folder / "adult_disc.parquet")
    codes = {name: table[name].to_numpy().astype(np.int64) for name in table.column_names}
    sizes = {name: int(found.max()) + 1 for name, found in codes.items()}
    return Table(codes=codes, sizes=sizes, ordered=frozenset(schema["ordinal"]))


def synthesise(table: Table, epsilon: str, delta: str, seed: int) -> dict[str, Codes]:
    """As many rows as the table has, from a model of it with public size."""
    columns = {name: ColumnFacts(size=size, ordered=name in table.ordered) for name, size in table.sizes.items()}
    facts = Facts(
        entity="adult",
        neighbours=Neighbours.REPLACE,
        tables={"adult": TableFacts(name="adult", columns=columns, rows=table.rows, cap=None)},
        links=(),
    )
    coded = {name: codes.astype(np.uint16) for name, codes in table.codes.items()}
    data = {"adult": CodedTable(codes=coded, keys={}, entities=np.arange(table.rows))}
    ledger = open_ledger(Fraction(epsilon), Fraction(delta), Neighbours.REPLACE)
    method: Any = find_method("tree")
    entropy = TestEntropy(seed)
    vault = Vault(NumpyEngine(one_part(data), entropy=entropy), ledger=ledger, entropy=entropy)
    model = method.learn(vault, facts, method.read_settings({}), silent)["adult"]
    found = sample(model.network, table.rows, np.random.default_rng(seed))
    return {name: found[name].astype(np.int64) for name in table.sizes}


def counts(codes: Mapping[str, Codes], queries: Sequence[Query]) -> NDArray[np.float64]:
    """How many rows meet each query."""
    columns = [found.astype(np.int16) for found in codes.values()]
    return np.array(
        [np.logical_and.reduce([COMPARISONS[op](columns[c], value) for c, op, value in q]).sum() for q in queries],
        np.float64,
    )


def medians(found: Sequence[Figures]) -> Figures:
    return {name: median(run[name] for run in found) for name in found[0]}


def show(title: str, found: Figures, wanted: Figures) -> None:
    parts = [
        f"{name} {value:.4g}" + (f" (<= {wanted[name]:.4g})" if name in wanted else "") for name, value in found.items()
    ]
    print(f"{title}: {', '.join(parts)}", flush=True)


def _distances(real: NDArray[np.float64], other: NDArray[np.float64]) -> tuple[float, float]:
    """Kullback-Leibler divergence and total variation."""
    there = (real > 0) | (other > 0)
    p, q = real[there] + TINY, other[there] + TINY
    return float((p * np.log(p / q)).sum()), float(np.abs(real - other).sum() / 2)


def _known(value: float | None) -> float:
    assert value is not None
    return value


if __name__ == "__main__":
    main()
