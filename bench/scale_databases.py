"""The made databases of bench/scale.py: makes one, unless it is there, and prints how many rows it has.

    python bench/scale_databases.py rows8-1e6 FOLDER

A process of its own: what it takes to make a database shall not count as memory of the programs that are measured next.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

BATCH = 2**20


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    if not folder.exists():
        folder.mkdir(parents=True)
        maker(name)(folder)
    print(sum(pq.ParquetFile(file).metadata.num_rows for file in folder.glob("*.parquet")))


def maker(name: str) -> Callable[[Path], None]:
    """What makes a database; `rows8-1e6` is that of a million rows."""
    kind, _, rows = name.partition("-")
    if kind == "rows8":
        return partial(write_rows, rows=int(float(rows)))
    return {"adult": write_adult, "wide": write_wide, "california": write_california, "job": write_job}[name]


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
