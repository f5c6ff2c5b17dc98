"""The paper's Adult table again: 45,222 x 15 (rows with NULLs dropped), SAM-1000; ours beside the printed figures.

    python bench/adult_table.py --data DIR [--epsilon 3.2] [--runs 3] [--methods paper,independent]

DIR holds adult/adult.parquet, adult/schema.sql and workloads/adult_sam_1000.sql. KLD is on raw values, as in the
paper, with and without fnlwgt, and on codes; 4-way figures are means over 300 marginals drawn by seed. Figures are
medians over runs. Domains are taken from the data, as the paper does. Our seconds are CPU-seconds.
Q-error p95 is not printed in the paper.
"""

import argparse
import shutil
import tempfile
from pathlib import Path
from statistics import median

import pyarrow.compute as pc
import pyarrow.parquet as pq

from privbench.evaluation.evaluate import evaluate
from privbench.evaluation.measured_run import OwnMethod
from privbench.evaluation.result import Result
from privbench.fitting.draft import draft
from privbench.fitting.promise import parse_epsilon

WAYS = (2, 3, 4)
QUANTILES = ("mean", "median", "p75", "p95", "max")
Row = tuple[float | None, ...]
"""KLD on values, KLD without fnlwgt, KLD on codes (2, 3, 4-way each), Q-error by QUANTILES, CPU-seconds."""
N = (None, None, None)
PRINTED: dict[str, Row] = {
    "PrivSyn, printed": (13.01, 14.68, 15.03, *N, *N, 2.56, 1.30, 1.60, None, 22.79, 83.20),
    "PrivBayes, printed": (10.37, 12.64, 13.74, *N, *N, 1.41, 1.31, 1.55, None, 3.45, 17.90),
    "AIM, printed": (7.75, 10.13, 11.63, *N, *N, 1.34, 1.24, 1.50, None, 2.98, 2009.17),
    "DataSynthesizer, printed": (6.92, 9.84, 11.94, *N, *N, 1.40, 1.26, 1.58, None, 3.55, 0.63),
    "MST, printed": (5.24, 7.07, 8.53, *N, *N, 1.38, 1.24, 1.52, None, 5.71, 178.91),
    "Exponential-PreFair, printed": (5.12, 6.98, 8.48, *N, *N, 1.43, 1.30, 1.61, None, 7.2, 1736.14),
    "Greedy-PreFair, printed": (4.73, 6.52, 8.02, *N, *N, 1.44, 1.29, 1.60, None, 17.16, 180.43),
    "DPGAN, printed": (4.56, 6.68, 8.55, *N, *N, 1.37, 1.27, 1.52, None, 3.53, 747.02),
    "PrivMRF, printed": (4.55, 6.29, 7.79, *N, *N, 1.38, 1.25, 1.52, None, 4.19, 1744.36),
    "PrivBench, printed": (1.71, 2.79, 4.05, *N, *N, 1.40, 1.25, 1.56, None, 7.78, 2.48),
}
"""The paper's table; its seconds are learning and inference together, on another machine."""
MEASURED_BEFORE: dict[str, Row] = {
    "PrivBench's code, re-measured": (1.707, 2.794, 4.047, 0.124, 0.433, 1.037, *N, 2.47, 1.22, 1.74, None, 540, None),
    "all exact, fnlwgt binned": (1.60, 2.45, 3.28, *N, *N, *[None] * 5, None),
    "bootstrap, measured before": (0.408, 0.748, 1.151, 0.016, 0.073, 0.199, *N, 1.054, 1.013, 1.038, None, 5, None),
}
"""The reference code on the same rows and queries, and what shows how much of KLD is fnlwgt alone."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--epsilon", default="3.2")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--methods", default="paper,independent")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        real, without = write_adult(given.data, Path(folder))
        queries = given.data / "workloads/adult_sam_1000.sql"
        show_head(f"Adult, epsilon {given.epsilon}, median of {given.runs} runs")
        for name, row in (PRINTED | MEASURED_BEFORE).items():
            show(name, row)
        floor: Row | None = None
        for method in given.methods.split(","):
            rows = []
            for run in range(given.runs):
                out = Path(folder) / f"{method}-{run}"
                spec = draft(real, domains="data")
                cost = OwnMethod(name=method)(
                    spec, source=str(real), epsilon=parse_epsilon(given.epsilon), out=out, seed=run
                )
                results = [
                    evaluate(real, out, workload=queries, lambdas=WAYS, floor=floor is None),
                    evaluate(without, out, lambdas=WAYS, floor=floor is None),
                ]
                if floor is None:
                    floor = figures(*results, floor=True, seconds=None)
                    show("floor, a resample of the rows", floor)
                rows.append(figures(*results, floor=False, seconds=cost.cpu_seconds))
                shutil.rmtree(out)
            show(f"{method}, ours", tuple(middle(values) for values in zip(*rows, strict=True)))


def write_adult(data: Path, folder: Path) -> tuple[Path, Path]:
    """The rows without NULLs, with all columns and without fnlwgt."""
    table = pq.read_table(data / "adult/adult.parquet")
    complete = table.filter(pc.invert(_any_null(table)))
    assert complete.shape == (45_222, 15), complete.shape
    real, without = folder / "adult", folder / "without_fnlwgt"
    for place, kept in ((real, complete), (without, complete.drop_columns(["fnlwgt"]))):
        place.mkdir()
        pq.write_table(kept, place / "adult.parquet")
    shutil.copy(data / "adult/schema.sql", real)
    return real, without


def _any_null(table):
    found = pc.is_null(table.column(0))
    for column in table.columns[1:]:
        found = pc.or_(found, pc.is_null(column))
    return found


def figures(full: Result, without: Result, *, floor: bool, seconds: float | None) -> Row:
    side = "floor" if floor else "value"
    values = [getattr(full.marginals[ways]["kld"].values, side) for ways in WAYS]
    fewer = [getattr(without.marginals[ways]["kld"].values, side) for ways in WAYS]
    codes = [getattr(full.marginals[ways]["kld"].codes, side) for ways in WAYS]
    whole = full.workload["q_error"].all
    assert whole is not None
    found = whole.floor if floor else whole.errors
    return (*values, *fewer, *codes, *(getattr(found, name) for name in QUANTILES), seconds)


def middle(values: tuple[float | None, ...]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def show_head(title: str) -> None:
    print(title)
    groups = ("KLD 2/3/4-way", "without fnlwgt", "on codes", "Q mean/median/75/95/max", "seconds")
    print(f"| {'':<30} | " + " | ".join(groups) + " |", flush=True)
    print("|---" * (len(groups) + 1) + "|")


def show(name: str, row: Row) -> None:
    parts = (row[:3], row[3:6], row[6:9], row[9:14], row[14:])
    print(f"| {name:<30} | " + " | ".join(_cell(part) for part in parts) + " |", flush=True)


def _cell(part: Row) -> str:
    return "-" if all(v is None for v in part) else "/".join("-" if v is None else f"{v:.3g}" for v in part)


if __name__ == "__main__":
    main()
