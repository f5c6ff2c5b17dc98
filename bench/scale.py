"""How speed and memory grow: made databases from a hundred thousand to a hundred million rows, against a floor.

    python bench/scale.py                            the small and middle cases
    python bench/scale.py --only job --only rows8    some cases
    python bench/scale.py --large                    the hundred million rows, too (10 GB of disk)
    python bench/scale.py --table                    the same as a table of docs/performance.md

The floor is reading the Parquet files with Arrow, batch by batch, and writing them again: a program that does nothing
else. Every figure is of a process of its own: CPU-seconds of all its threads, wall seconds, and the largest resident
memory, imports and all. Cases:

    adult       48,842 x 14, by `privbench synth`: mostly starting up
    wide        1.7 million x 16
    california  600,000 households and 1.7 million persons, as large as the census of the paper
    job         2.3 million titles, 36 million rows of four tables that they own, and four public tables
    rows8       1e5, 1e6, 1e7 and, with --large, 1e8 rows of 8 columns and a key
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BATCH = 2**20
FLOOR = """
import sys, pyarrow as pa, pyarrow.parquet as pq
from pathlib import Path
source, target = map(Path, sys.argv[1:])
target.mkdir()
for file in sorted(source.glob("*.parquet")):
    opened = pq.ParquetFile(file)
    with pq.ParquetWriter(target / file.name, opened.schema_arrow) as writer:
        for batch in opened.iter_batches():
            writer.write_batch(batch)
"""


@dataclass(frozen=True)
class Spent:
    cpu: float
    wall: float
    megabytes: float

    def __str__(self) -> str:
        return f"{self.cpu:7.2f} CPU-s {self.wall:7.2f} s {self.megabytes:6.0f} MB"


@dataclass(frozen=True)
class Case:
    name: str
    make: Callable[[Path], None]
    entity: str
    options: tuple[str, ...] = ()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a case; may be repeated")
    parser.add_argument("--large", action="store_true", help="a hundred million rows, too")
    parser.add_argument("--keep", type=Path, help="where made databases are kept for the next run")
    parser.add_argument("--fit-option", action="append", default=[], help="given to fit, such as --memory=1GB")
    parser.add_argument("--evaluate", action="store_true", help="evaluate the bundles, too")
    parser.add_argument("--table", action="store_true", help="print a table in Markdown")
    given = parser.parse_args()
    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        for case in cases(large=given.large):
            if given.only and case.name.split("-")[0] not in given.only and case.name not in given.only:
                continue
            lines.append(measured(case, folder, given.fit_option, evaluate=given.evaluate))
    if given.table:
        print(markdown(lines))


def cases(*, large: bool) -> list[Case]:
    sizes = [10**5, 10**6, 10**7] + [10**8] * large
    return [
        Case("adult", write_adult, "adult"),
        Case("wide", write_wide, "wide"),
        Case("california", write_california, "household"),
        Case("job", write_job, "title", ("--public", "kind_type,role_type,info_type,company_type")),
        *(Case(f"rows8-{rows:.0e}".replace("e+0", "e"), lambda f, n=rows: write_rows(f, n), "rows8") for rows in sizes),
    ]


def measured(case: Case, folder: Path, fit_options: list[str], *, evaluate: bool) -> dict[str, object]:
    """Measure one case: the floor, then what the tool does."""
    source = folder / case.name
    if not source.exists():
        source.mkdir(parents=True)
        case.make(source)
    rows = sum(pq.ParquetFile(f).metadata.num_rows for f in source.glob("*.parquet"))
    tool = [sys.executable, "-c", "from privbench.cli.main import main; main()"]
    spent: dict[str, Spent] = {}
    with tempfile.TemporaryDirectory() as scratch:
        at = Path(scratch)
        spent["floor"] = run([sys.executable, "-c", FLOOR, str(source), str(at / "floor")])
        draft = [*tool, "draft", str(source), "--unit", case.entity, "--domains", "data"]
        spent["draft"] = run([*draft, *case.options, "-o", str(at / "spec.yaml")])
        fit = [*tool, "fit", str(at / "spec.yaml"), "--source", str(source), "--epsilon", "3.2"]
        spent["fit"] = run([*fit, "-o", str(at / "m.model"), *fit_options])
        spent["generate"] = run([*tool, "generate", str(at / "m.model"), "-o", str(at / "bundle"), "--seed", "1"])
        if case.name == "adult":
            synth = [*tool, "synth", str(source), "--domains", "data", "--epsilon", "3.2", "--seed", "1"]
            spent["synth"] = run([*synth, "-o", str(at / "synth")])
        if evaluate:
            spent["evaluate"] = run(
                [
                    *tool,
                    "evaluate",
                    "--real",
                    str(source),
                    "--synthetic",
                    str(at / "bundle"),
                    "-o",
                    str(at / "e"),
                    "--cache",
                    str(at / "floors"),
                ]
            )
    both = spent["fit"].cpu + spent["generate"].cpu
    print(f"{case.name}: {rows:,} rows; fit + generate {both:.2f} CPU-s, {both / spent['floor'].cpu:.2f}x the floor")
    for step, what in spent.items():
        print(f"    {step:9} {what}", flush=True)
    return {"case": case.name, "rows": rows, "spent": spent, "both": both}


def run(command: list[str]) -> Spent:
    """Run a program and say what it cost."""
    with tempfile.TemporaryDirectory() as record, tempfile.TemporaryFile() as errors:
        environment = {**os.environ, "PRIVBENCH_BUDGET_RECORD": str(Path(record) / "record.json")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled
        started = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)  # noqa: S603
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
        if status:
            errors.seek(0)
            sys.exit(f"{' '.join(command)}\n{errors.read().decode()}")
    return Spent(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def markdown(lines: list[dict[str, object]]) -> str:
    head = "| case | rows | floor | draft | fit | generate | both | x floor | wall / CPU | MB of fit, generate |\n"
    body = []
    for line in lines:
        spent: dict[str, Spent] = line["spent"]  # type: ignore[assignment]
        floor, draft, fit, made = (spent[step] for step in ("floor", "draft", "fit", "generate"))
        both = fit.cpu + made.cpu
        body.append(
            f"| {line['case']} | {line['rows']:,} | {floor.cpu:.1f} | {draft.cpu:.1f} | {fit.cpu:.1f} | {made.cpu:.1f} "
            f"| {both:.1f} | {both / floor.cpu:.1f} | {(fit.wall + made.wall) / both:.2f} "
            f"| {fit.megabytes:.0f}, {made.megabytes:.0f} |"
        )
    return "\n".join([head + "|---" * 10 + "|", *body])


# -- made databases ----------------------------------------------------------------------------------------------


class Writer:
    """Writes a table in batches that are made as they are written."""

    def __init__(self, file: Path) -> None:
        self._file, self._writer = file, None

    def __enter__(self) -> "Writer":
        return self

    def __exit__(self, *_: object) -> None:
        self._writer.close()

    def write(self, columns: dict[str, pa.Array | np.ndarray]) -> None:
        batch = pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._file, batch.schema)
        self._writer.write_batch(batch)


def write_adult(folder: Path) -> None:
    rng = np.random.default_rng(1)
    latent = rng.random(48_842)
    sizes = (74, 9, 16, 16, 7, 15, 6, 5, 2, 12, 9, 20, 42, 2)
    with Writer(folder / "adult.parquet") as writer:
        writer.write({f"a{i}": coded(latent, size, rng).astype(np.int16) for i, size in enumerate(sizes)})


def write_wide(folder: Path) -> None:
    rng = np.random.default_rng(2)
    with Writer(folder / "wide.parquet") as writer:
        for start in range(0, 1_700_000, BATCH):
            latent = rng.random(min(BATCH, 1_700_000 - start))
            writer.write({f"a{i}": coded(latent, 4 + 3 * i, rng).astype(np.int16) for i in range(16)})


def write_california(folder: Path) -> None:
    rng = np.random.default_rng(3)
    households = 616_000
    wealth = rng.random(households)
    persons = np.minimum(1 + rng.poisson(1.75, households), 12)
    with Writer(folder / "household.parquet") as writer:
        writer.write(
            {
                "household_id": np.arange(1, households + 1, dtype=np.int32),
                "persons": persons.astype(np.int16),
                **{f"h{i}": coded(wealth, size, rng).astype(np.int16) for i, size in enumerate((5, 7, 60, 9, 12, 8))},
                "income": (np.exp(9 + 2.5 * wealth + rng.normal(0, 0.3, households))).astype(np.int32),
                "rent": pa.array((500 + 3000 * wealth).astype(np.int32), mask=rng.random(households) < 0.4),
            }
        )
    owner = np.repeat(np.arange(households), persons)
    first = np.cumsum(persons) - persons
    with Writer(folder / "person.parquet") as writer:
        writer.write(
            {
                "person_id": np.arange(1, len(owner) + 1, dtype=np.int32),
                "household_id": (owner + 1).astype(np.int32),
                "pnum": (np.arange(len(owner)) - first[owner] + 1).astype(np.int16),
                **{
                    f"p{i}": coded(wealth[owner], size, rng).astype(np.int16)
                    for i, size in enumerate((91, 2, 4, 3, 8, 13, 17, 5, 6, 30, 25))
                },
            }
        )
    (folder / "schema.sql").write_text(
        schema(folder, {"household": "household_id", "person": "person_id"}, {"person.household_id": "household"})
    )


JOB = {"cast_info": 20_400_000, "movie_info": 8_600_000, "movie_keyword": 4_400_000, "movie_companies": 2_600_000}


def write_job(folder: Path) -> None:
    rng = np.random.default_rng(4)
    titles = 2_280_000
    kind = coded(rng.random(titles), 7, rng)
    year = 1900 + coded(kind / 7, 120, rng)
    write_public(folder, {"kind_type": 7, "role_type": 11, "info_type": 113, "company_type": 4})
    with Writer(folder / "title.parquet") as writer:
        writer.write(
            {
                "id": np.arange(1, titles + 1, dtype=np.int32),
                "kind_id": (kind + 1).astype(np.int16),
                "production_year": pa.array(year.astype(np.int16), mask=rng.random(titles) < 0.03),
                "season_nr": pa.array(coded(kind / 7, 30, rng).astype(np.int16), mask=kind < 3),
            }
        )
    activity = rng.gamma(0.6, 1.0, titles) * (1 + kind)
    for name, rows in JOB.items():
        fanouts = rng.poisson(activity / activity.sum() * rows)
        movie = np.repeat(np.arange(titles), fanouts)
        with Writer(folder / f"{name}.parquet") as writer:
            for start in range(0, len(movie), BATCH):
                part = movie[start : start + BATCH]
                writer.write(
                    {"id": np.arange(start + 1, start + len(part) + 1, dtype=np.int32)} | job_row(name, part, kind, rng)
                )
    owned = {f"{name}.movie_id": "title" for name in JOB}
    lookups = {
        "title.kind_id": "kind_type",
        "cast_info.role_id": "role_type",
        "movie_info.info_type_id": "info_type",
        "movie_companies.company_type_id": "company_type",
    }
    keys = dict.fromkeys(("title", *JOB, "kind_type", "role_type", "info_type", "company_type"), "id")
    (folder / "schema.sql").write_text(schema(folder, keys, owned | lookups))


def job_row(
    name: str, movie: np.ndarray, kind: np.ndarray, rng: np.random.Generator
) -> dict[str, np.ndarray | pa.Array]:
    latent, rows = kind[movie] / 7, len(movie)
    row: dict[str, np.ndarray | pa.Array] = {"movie_id": (movie + 1).astype(np.int32)}
    if name == "cast_info":
        row["role_id"] = (coded(latent, 11, rng) + 1).astype(np.int16)
        row["nr_order"] = pa.array(coded(latent, 60, rng).astype(np.int16), mask=rng.random(rows) < 0.5)
        row["gender"] = coded(latent, 3, rng).astype(np.int16)
    elif name == "movie_info":
        row["info_type_id"] = (coded(latent, 113, rng) + 1).astype(np.int16)
        row["votes"] = coded(latent, 200, rng).astype(np.int16)
    elif name == "movie_keyword":
        row["keyword"] = coded(latent, 500, rng).astype(np.int16)
    else:
        row["company_type_id"] = (coded(latent, 4, rng) + 1).astype(np.int16)
        row["country"] = coded(latent, 80, rng).astype(np.int16)
    return row


def write_public(folder: Path, tables: dict[str, int]) -> None:
    for name, rows in tables.items():
        with Writer(folder / f"{name}.parquet") as writer:
            writer.write({"id": np.arange(1, rows + 1, dtype=np.int16), "name": [f"{name} {i}" for i in range(rows)]})


def write_rows(folder: Path, rows: int) -> None:
    rng = np.random.default_rng(5)
    with Writer(folder / "rows8.parquet") as writer:
        for start in range(0, rows, BATCH):
            latent = rng.random(min(BATCH, rows - start))
            columns = {
                f"a{i}": coded(latent, size, rng).astype(np.int16)
                for i, size in enumerate((2, 5, 9, 16, 24, 40, 70, 120))
            }
            writer.write({"id": np.arange(start, start + len(latent), dtype=np.int64)} | columns)
    (folder / "schema.sql").write_text(schema(folder, {"rows8": "id"}, {}))


def coded(latent: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Codes that lean on a number between 0 and 1, and are uneven."""
    return ((0.6 * latent + 0.4 * rng.random(len(latent))) ** 1.5 * size).astype(np.int64)


def schema(folder: Path, keys: dict[str, str], references: dict[str, str]) -> str:
    types = {pa.int16(): "SMALLINT", pa.int32(): "INTEGER", pa.int64(): "BIGINT", pa.string(): "VARCHAR(40)"}
    statements = []
    for file in sorted(folder.glob("*.parquet"), key=lambda f: list(keys).index(f.stem)):
        name = file.stem
        columns = [f"{field.name} {types[field.type]}" for field in pq.read_schema(file)]
        columns.append(f"PRIMARY KEY ({keys[name]})")
        for place, target in references.items():
            table, column = place.split(".")
            if table == name:
                columns.append(f"FOREIGN KEY ({column}) REFERENCES {target} ({keys[target]})")
        statements.append(f"CREATE TABLE {name} ({', '.join(columns)});")
    return "\n".join(statements) + "\n"


if __name__ == "__main__":
    main()
