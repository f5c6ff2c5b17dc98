"""How believable joins are: sizes, links and join queries, real beside synthetic.

    python bench/links.py [--data DIR] [--only stats] [--methods tree,paper,independent,resample] [--epsilon 1.6]
        [--runs 1] [--public-sizes] [--no-find] [--json OUT]

`stats` is made by bench/stats_like.py; bench/link_databases.py says where the others are from. Queries are the
sub-plans of joins along up to 4 foreign keys, with 0 to 4 filters around a row of the real join; their counts are exact
(bench/join_counts.py). Lift is E[xy] / (E[x] E[y]) of two numbers of rows that reference one row, through owner keys
or others. Domains are from the data; noise is that of tests. Figures are medians over runs. `resample` draws entities
with replacement, each with all rows it owns: it is not private, and shows what chance alone does. Filters that would
single out a few rows are left out (bench/join_counts.py): with them heavy users decide all means (decision 43).
"""

import argparse
import json
import math
import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from join_counts import MANY_WORDS, Floats, Link, Query, Tables, Words, draw_subplans, read_tables
from link_databases import CASES, Case
from privbench.evaluation.resample import Owner, Ownership, resample
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.io.open import open_source
from privbench.privacy.noise import TestEntropy
from privbench.schema.spec import Sizes, Spec
from privbench.schema.unit import Protection

Figures = dict[str, float]
Codes = NDArray[np.int64]

JOINS, QUERIES, QUERY_SEED = 4, 900, 4242
"""The most joins of a query, and about how many sub-plans there are."""
BINS = 32
TINY = 1e-10
RESAMPLE = "resample"


@dataclass(frozen=True, kw_only=True)
class Real:
    """The real side of a comparison."""

    folder: Path
    spec: Spec
    tables: Tables
    words: Words
    queries: Sequence[Query]
    counts: Floats
    owners: Mapping[str, Link | None]
    """The owner key of each private table, owners first."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path())
    parser.add_argument("--only", default="stats")
    parser.add_argument("--methods", default="tree,paper,independent,resample")
    parser.add_argument("--epsilon", default="1.6")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--public-sizes", action="store_true")
    parser.add_argument("--no-find", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = {}
    for name in given.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            place, find = Path(folder) / "real", not given.no_find
            real = read_real(CASES[name], given.data, place, public_sizes=given.public_sizes, find=find)
            settings = f"{', public sizes' if given.public_sizes else ''}{'' if find else ', nothing found'}"
            print(f"## {name}, epsilon {given.epsilon}{settings}, {given.runs} runs, {len(real.queries)} queries")
            found[name] = measure(real, given.methods.split(","), epsilon=given.epsilon, runs=given.runs)
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1))


def read_real(case: Case, data: Path, folder: Path, *, public_sizes: bool, find: bool) -> Real:
    """Write the database, draft its spec, draw its queries and answer them."""
    folder.mkdir()
    case.write(data, folder)
    spec = draft(folder, unit=case.unit, public=case.public, owners=case.owners, domains="data", find=find)
    if public_sizes:
        spec = spec.model_copy(update={"sizes": Sizes.PUBLIC})
    with open_source(folder) as source:
        tables, words = read_tables(folder, source.schema())
    protection = spec.protection()
    private = [name for name in tables.sizes if name in protection.order]
    rng = np.random.default_rng(QUERY_SEED)
    queries = draw_subplans(tables, joins=JOINS, count=QUERIES, private=private, rng=rng)
    return Real(
        folder=folder,
        spec=spec,
        tables=tables,
        words=words,
        queries=queries,
        counts=np.array([tables.count(query) for query in queries]),
        owners={name: owner_link(tables, protection, name) for name in protection.order if name in private},
    )


def owner_link(tables: Tables, protection: Protection, table: str) -> Link | None:
    """The key that says whose the rows of a table are, as the source has it; rows of a hidden list are the unit's."""
    if table not in protection.owners:
        return None
    key = protection.owners[table]
    columns = (key if key.table in tables.sizes else protection.owner_keys(table)[0]).columns
    return next(link for link in tables.links if (link[0], link[1].columns) == (table, columns))


def measure(real: Real, methods: Sequence[str], *, epsilon: str, runs: int) -> dict[str, list[Figures]]:
    """Print the figures of the methods, medians over runs."""
    found: dict[str, list[Figures]] = {}
    for method in methods:
        found[method] = [run(real, method, epsilon=epsilon, seed=seed) for seed in range(runs)]
    truth = figures(real, real.tables)
    print(f"{'':<58} {'real':>10} " + " ".join(f"{method:>11}" for method in methods))
    for label in dict.fromkeys(label for runs_of in found.values() for label in runs_of[0]):
        shown = [median(one.get(label, math.nan) for one in found[method]) for method in methods]
        first = "" if label not in truth or label in ONLY_SYNTHETIC or label.startswith("Q ") else f"{truth[label]:.4g}"
        print(f"{label:<58} {first:>10} " + " ".join(f"{value:>11.4g}" for value in shown))
    for label in SPREAD if runs > 1 else ():
        print(
            f"{label}, each run: " + "; ".join(f"{m} {' '.join(f'{r[label]:.3g}' for r in found[m])}" for m in methods)
        )
    print(flush=True)
    return found


def run(real: Real, method: str, *, epsilon: str, seed: int) -> Figures:
    """Make one synthetic database and compare it."""
    started = time.process_time()
    if method == RESAMPLE:
        return figures(real, resampled(real, seed))
    out = real.folder.parent / "synthetic"
    shutil.rmtree(out, ignore_errors=True)
    entropy = TestEntropy(1000 * seed + 7)
    model = fit(real.spec, source=real.folder, epsilon=epsilon, method=method, entropy=entropy)
    fitted = time.process_time()
    generate(model, out, seed=seed)
    generated = time.process_time()
    made, _ = read_tables(out / "data", real.tables.schema, real.words)
    return figures(real, made) | {"fit, CPU-seconds": fitted - started, "generate, CPU-seconds": generated - fitted}


def resampled(real: Real, seed: int) -> Tables:
    """The real database with entities drawn with replacement."""
    schema = real.tables.schema
    owners = {name: Owner(table=link[1].table, key=link[1]) if link else None for name, link in real.owners.items()}
    drawn = resample(Ownership(schema=schema, owners=owners), real.tables.sizes, real.tables.links, seed=seed)
    columns = {
        table: {name: values[drawn.rows[table]] for name, values in kept.items()}
        for table, kept in real.tables.columns.items()
    }
    return Tables(schema, columns, drawn.links, {table: len(rows) for table, rows in drawn.rows.items()})


def figures(real: Real, made: Tables) -> Figures:
    """All figures of one database."""
    found = query_figures(real, made)
    off = [abs(made.sizes[t] / real.tables.sizes[t] - 1) for t, owner in real.owners.items() if owner]
    found |= {"size off by, median": median(off or [0.0]), "size off by, worst": max(off or [0.0])}
    found |= distances(real, made)
    for table in real.owners:
        found[f"rows of {table}"] = made.sizes[table]
    for link in made.links:
        if link[0] in real.owners and link not in real.owners.values():
            found[f"top 10 of {named(link)}"] = top_share(made.below(link), 10)
            found[f"top 100 of {named(link)}"] = top_share(made.below(link), 100)
    for first, second in combinations(made.links, 2):
        if first[1].table == second[1].table and {first[0], second[0]} & set(real.owners):
            found[f"lift {named(first)} x {named(second)}"] = lift(made.below(first), made.below(second))
    return found


def query_figures(real: Real, made: Tables) -> Figures:
    """Q-errors of the queries, both counts at least 1."""
    counts = np.array([made.count(query) for query in real.queries])
    joins = np.array([len(query.links) for query in real.queries])
    larger, smaller = np.maximum(real.counts, 1), np.maximum(counts, 1)
    errors = np.maximum(larger / smaller, smaller / larger)
    found = {
        "Q geometric mean": geometric(errors),
        "Q mean": float(errors.mean()),
        "Q median": float(np.median(errors)),
        "Q p95": float(np.quantile(errors, 0.95)),
    }
    for number in range(JOINS + 1):
        if (joins == number).any():
            found[f"Q geometric, {number} joins"] = geometric(errors[joins == number])
    return found


def distances(real: Real, made: Tables) -> Figures:
    """Mean distances of pairs of columns of the private tables, in bins of the real values, NULL one of them.

    Of nullable keys, whether they are NULL is compared in pairs with each column.
    """
    pairs, nulls = [], []
    for table in (real.tables.schema.table(name) for name in real.owners):
        ours, theirs = real.tables.columns[table.name], made.columns[table.name]
        keys = {*table.primary_key, *(c for key in table.foreign_keys for c in key.columns)}
        asked = [c.name for c in table.columns if len(real.words.get((table.name, c.name), ())) <= MANY_WORDS]
        codes = [binned(ours[name], theirs[name]) for name in asked if name not in keys]
        there = [
            (there_codes(real.tables, link), there_codes(made, link)) for link in made.links if link[0] == table.name
        ]
        some = [_distances(first, second) for first, second in combinations(codes, 2)]
        pairs += [np.mean(some, axis=0)] if some else []
        nulls += [_distances(key, column)[1] for key in there if not key[0].all() for column in codes]
    kld, tv = np.mean(pairs, axis=0) if pairs else (math.nan, math.nan)
    return {
        "KLD2": float(kld),
        "TV2": float(tv),
        "TV2 with NULL of a key": float(np.mean(nulls)) if nulls else math.nan,
    }


def there_codes(tables: Tables, link: Link) -> Codes:
    """Whether a key is there, as 0 and 1."""
    return (tables.links[link] >= 0).astype(np.int64)


def binned(real: Floats, made: Floats) -> tuple[Codes, Codes]:
    """Codes of both columns: bins of about equally many real rows, NULL the last."""
    values = real[~np.isnan(real)]
    edges = np.unique(values)
    if len(edges) > BINS:
        edges = np.unique(np.quantile(values, np.arange(1, BINS) / BINS))
    both = [np.where(np.isnan(v), BINS + 1, np.searchsorted(edges, np.nan_to_num(v), "right")) for v in (real, made)]
    return both[0], both[1]


def _distances(first: tuple[Codes, Codes], second: tuple[Codes, Codes]) -> tuple[float, float]:
    size = BINS + 2
    p, q = (
        np.bincount(a * size + b, minlength=size * size) / max(len(a), 1) for a, b in zip(first, second, strict=True)
    )
    there = (p > 0) | (q > 0)
    p, q = p[there] + TINY, q[there] + TINY
    return float((p * np.log(p / q)).sum()), float(np.abs(p - q).sum() / 2)


def top_share(below: Floats, count: int) -> float:
    """The share of references that the most referenced rows have."""
    return float(np.sort(below)[-count:].sum() / max(below.sum(), 1))


def lift(x: Floats, y: Floats) -> float:
    """How much larger the join of both is than if they were independent."""
    expected = x.mean() * y.mean()
    return float((x * y).mean() / expected) if expected else math.nan


def geometric(errors: Floats) -> float:
    return float(np.exp(np.log(errors).mean()))


def named(link: Link) -> str:
    return f"{link[0]}({', '.join(link[1].columns)})"


SPREAD = ("Q geometric mean", "size off by, median", "KLD2")
"""Figures that are also shown by run: noise in heavy tails moves them much."""
ONLY_SYNTHETIC = ("KLD2", "TV2", "TV2 with NULL of a key", "size off by, median", "size off by, worst")

if __name__ == "__main__":
    main()
