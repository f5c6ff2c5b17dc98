"""Runtimes on PostgreSQL: how often plans stay the same, and how far buffers and times are off, by method.

    python bench/runtime.py --data DIR [--only households,households_indexed,tpch,tpch_joins,adult] [--epsilon 3.2]
        [--rounds 5] [--methods tree,paper,independent] [--runtime auto]

DIR holds households_sandiego/, adult/ and workloads/. TPC-H at scale .02 is made by `tpchgen-cli` (from PyPI), with an
index on each foreign key; `tpch` is its 22 queries, `tpch_joins` generated ones that join. `households_indexed` and
`adult` have an index on each column, `households` one on its foreign key. Domains are from the data; noise is that of
tests. All variants are measured in one run: the real database twice, a resample by entity, and one of each method.
The table is that of docs/runtime.md.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from privbench.evaluation.databases import Side, open_pair
from privbench.evaluation.links import link_keys
from privbench.evaluation.resample import find_ownership
from privbench.evaluation.runtimes import loaded_schema, make_resample, reader
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.io.base import Source
from privbench.io.ddl import parse_ddl
from privbench.io.open import open_source
from privbench.methods.method import silent
from privbench.privacy.noise import TestEntropy
from privbench.runtime.figures import find_figures
from privbench.runtime.measure import measure
from privbench.runtime.result import AGAIN, REAL, RESAMPLE, Comparison, Runtime
from privbench.runtime.session import Variant
from privbench.runtime.systems import find_system
from privbench.schema.tables import Schema, Table
from privbench.workload.generate import Style, generate_workload
from privbench.workload.query import Statement
from privbench.workload.sql import read_workload
from rules import TPCH_PUBLIC, write_tables

TIMEOUT = 20.0
GENERATED = 200
TPCH_SCHEMA = """
CREATE TABLE region (r_regionkey INTEGER PRIMARY KEY, r_name VARCHAR NOT NULL, r_comment VARCHAR);
CREATE TABLE nation (n_nationkey INTEGER PRIMARY KEY, n_name VARCHAR NOT NULL,
  n_regionkey INTEGER NOT NULL REFERENCES region (r_regionkey), n_comment VARCHAR);
CREATE TABLE supplier (s_suppkey INTEGER PRIMARY KEY, s_name VARCHAR NOT NULL, s_address VARCHAR NOT NULL, s_nationkey
  INTEGER NOT NULL REFERENCES nation (n_nationkey), s_phone VARCHAR NOT NULL, s_acctbal DECIMAL(15,2) NOT NULL,
  s_comment VARCHAR NOT NULL);
CREATE TABLE part (p_partkey INTEGER PRIMARY KEY, p_name VARCHAR NOT NULL, p_mfgr VARCHAR NOT NULL, p_brand VARCHAR
  NOT NULL, p_type VARCHAR NOT NULL, p_size INTEGER NOT NULL, p_container VARCHAR NOT NULL,
  p_retailprice DECIMAL(15,2) NOT NULL, p_comment VARCHAR NOT NULL);
CREATE TABLE partsupp (ps_partkey INTEGER REFERENCES part (p_partkey), ps_suppkey INTEGER REFERENCES supplier
  (s_suppkey), ps_availqty INTEGER NOT NULL, ps_supplycost DECIMAL(15,2) NOT NULL, ps_comment VARCHAR NOT NULL,
  PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE customer (c_custkey INTEGER PRIMARY KEY, c_name VARCHAR NOT NULL, c_address VARCHAR NOT NULL,
  c_nationkey INTEGER NOT NULL REFERENCES nation (n_nationkey), c_phone VARCHAR NOT NULL,
  c_acctbal DECIMAL(15,2) NOT NULL, c_mktsegment VARCHAR NOT NULL, c_comment VARCHAR NOT NULL);
CREATE TABLE orders (o_orderkey INTEGER PRIMARY KEY, o_custkey INTEGER NOT NULL REFERENCES customer (c_custkey),
  o_orderstatus VARCHAR NOT NULL, o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL,
  o_orderpriority VARCHAR NOT NULL, o_clerk VARCHAR NOT NULL, o_shippriority INTEGER NOT NULL,
  o_comment VARCHAR NOT NULL);
CREATE TABLE lineitem (l_orderkey INTEGER NOT NULL REFERENCES orders (o_orderkey), l_partkey INTEGER NOT NULL,
  l_suppkey INTEGER NOT NULL, l_linenumber INTEGER NOT NULL, l_quantity DECIMAL(15,2) NOT NULL,
  l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL,
  l_returnflag VARCHAR NOT NULL, l_linestatus VARCHAR NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL,
  l_receiptdate DATE NOT NULL, l_shipinstruct VARCHAR NOT NULL, l_shipmode VARCHAR NOT NULL, l_comment VARCHAR NOT NULL,
  PRIMARY KEY (l_orderkey, l_linenumber),
  FOREIGN KEY (l_partkey, l_suppkey) REFERENCES partsupp (ps_partkey, ps_suppkey));
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A database, who is protected in it, and its workload."""

    write: Callable[[Path, Path], None]
    """Write its tables and schema.sql into a folder, given that of the data."""
    unit: str | None = None
    public: Sequence[str] = ()
    workload: str | None
    """A file of the data; None for generated queries."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default=",".join(CASES))
    parser.add_argument("--epsilon", default="3.2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--methods", default="tree,paper,independent")
    parser.add_argument("--runtime", default="auto")
    given = parser.parse_args()
    for name in given.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            real = Path(folder) / name
            real.mkdir()
            CASES[name].write(given.data, real)
            bundles = {m: make(CASES[name], real, m, epsilon=given.epsilon) for m in given.methods.split(",")}
            statements = queries(CASES[name], given.data, real)
            show(name, run(real, bundles, statements, runtime=given.runtime, rounds=given.rounds))


def make(case: Case, real: Path, method: str, *, epsilon: str) -> Path:
    """Fit and generate by one method."""
    spec = draft(real, unit=case.unit, public=case.public, domains="data")
    model = fit(spec.model_copy(update={"method": {"name": method}}), epsilon=epsilon, entropy=TestEntropy(7))
    out = real.parent / f"by-{method}"
    generate(model, out, seed=1)
    return out


def queries(case: Case, data: Path, real: Path) -> list[Statement]:
    """The workload: a file, or generated queries that join two to four tables of which one is private."""
    if case.workload is not None:
        with open_source(real) as source:
            return list(read_workload(data / "workloads" / case.workload, schema=source.schema()).statements)
    made = generate_workload(real, n=6 * GENERATED, seed=1, style=Style.MSCN).statements
    joining = [s for s in made if s.query is not None and 1 <= len(s.query.joins) <= 3]
    private = [s for s in joining if s.query and any(t.table not in case.public for t in s.query.tables)]
    return private[:GENERATED]


def run(real: Path, bundles: dict[str, Path], statements: Sequence[Statement], *, runtime: str, rounds: int) -> Runtime:
    """Measure all variants in one run."""
    first = next(iter(bundles.values()))
    with ExitStack() as stack:
        database = stack.enter_context(open_pair(real, first, silent))
        ownership = find_ownership(*(database.schemas[side] for side in (Side.REAL, Side.SYNTHETIC)), first, None)
        make_resample(database, ownership, link_keys(database, ownership.schema), seed=1)
        sides = {REAL: Side.REAL, AGAIN: Side.REAL, RESAMPLE: Side.FLOOR}
        variants = [Variant(name=name, read=reader(database, side)) for name, side in sides.items()]
        for method, bundle in bundles.items():
            variants.append(Variant(name=method, read=of_source(stack.enter_context(open_source(bundle)))))
        measured = measure(
            find_system(runtime),
            loaded_schema(database),
            variants,
            statements,
            timeout=TIMEOUT,
            seed=0,
            progress=silent,
            rounds=rounds,
        )
    return find_figures(measured)


def of_source(source: Source) -> Callable[[Table], Iterator[pa.RecordBatch]]:
    """How to read the tables of a bundle."""
    schema = source.schema()

    def read(table: Table) -> Iterator[pa.RecordBatch]:
        found = schema.table(table.name)
        return source.read(Table(name=found.name, columns=tuple(found.column(c.name) for c in table.columns)))

    return read


def show(name: str, runtime: Runtime) -> None:
    ran = len(runtime.queries) - len(runtime.failed)
    print(f"\n{name}: {ran} queries on {runtime.system}, {runtime.clock.value}, least of {runtime.rounds}, ", end="")
    print(f"load average {runtime.load_average:.1f}, {len(runtime.failed)} failed\n")
    head = ("variant", "same plans", "buffers mean / median / max", "discrepancy mean / median / 75 % / max", "x A/A")
    print("|".join(("", *head, "cost", "estimates", "pages", "est/act", "")))
    print("|" + "---|" * (len(head) + 4))
    floor = runtime.comparisons[AGAIN].discrepancy.mean
    for variant, found in runtime.comparisons.items():
        print("|".join(("", variant, *cells(found, floor), f"{runtime.estimate_errors[variant] or 0:.2f}", "")))
    print(f"(real: est/act {runtime.estimate_errors[REAL] or 0:.2f})")
    for note in runtime.notes:
        print(f"- {note}")
    for query in runtime.failed:
        print(f"- query {query.number}: {dict(query.errors)}")
    sys.stdout.flush()


def cells(found: Comparison, floor: float) -> Iterator[str]:
    def percents(*values: float) -> str:
        return " / ".join(f"{100 * value:.1f}" for value in values) + " %"

    yield percents(found.same_plans)
    yield "-" if (b := found.buffers) is None else percents(b.mean, b.median, b.max)
    times = found.discrepancy
    yield percents(times.mean, times.median, times.p75, times.max)
    yield f"{times.mean / floor:.2f}"
    yield f"{found.cost_factor or 0:.3f}"
    yield f"{found.estimate_factor or 0:.3f}"
    yield "-" if found.pages is None else percents(found.pages)


def copied(name: str, *, indexed: bool) -> Callable[[Path, Path], None]:
    """How to write a database of the data with an index on its foreign keys, or on every column."""

    def write(data: Path, folder: Path) -> None:
        for file in (data / name).glob("*.parquet"):
            shutil.copyfile(file, folder / file.name)
        text = (data / name / "schema.sql").read_text("utf-8")
        (folder / "schema.sql").write_text(text + "\n" + indexes(parse_ddl(text, where=name), every=indexed))

    return write


def indexes(schema: Schema, *, every: bool) -> str:
    """Statements for an index on each foreign key, or on each column that is no key by itself."""
    columns = {(t.name, k.columns) for t, k in schema.foreign_keys() if k.columns != t.primary_key}
    if every:
        columns |= {(t.name, (c.name,)) for t in schema.tables for c in t.columns if (c.name,) != t.primary_key}
    lists = [(table, ", ".join(f'"{c}"' for c in of), "_".join(of)) for table, of in sorted(columns)]
    return "\n".join(f'CREATE INDEX "{table}_{name}" ON "{table}" ({of});' for table, of, name in lists)


def write_tpch(_: Path, folder: Path) -> None:
    """Make TPC-H whole."""
    raw = folder.parent / "raw"
    program = Path(sys.executable).parent / "tpchgen-cli"
    subprocess.run([program, "parquet", "-s", "0.02", f"--output-dir={raw}"], check=True, capture_output=True)  # noqa: S603
    schema = TPCH_SCHEMA + indexes(parse_ddl(TPCH_SCHEMA, where="TPC-H"), every=False)
    write_tables(folder, schema, lambda table: f"'{raw / table}.parquet'")


HOUSEHOLDS = {"unit": "household", "workload": "households_sandiego_gen400.sql"}
CASES = {
    "households": Case(write=copied("households_sandiego", indexed=False), **HOUSEHOLDS),
    "households_indexed": Case(write=copied("households_sandiego", indexed=True), **HOUSEHOLDS),
    "tpch": Case(write=write_tpch, unit="customer", public=TPCH_PUBLIC, workload="tpch_22.sql"),
    "tpch_joins": Case(write=write_tpch, unit="customer", public=TPCH_PUBLIC, workload=None),
    "adult": Case(write=copied("adult", indexed=True), workload="adult_sam_1000.sql"),
}

if __name__ == "__main__":
    main()
