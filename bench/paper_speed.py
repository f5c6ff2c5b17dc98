"""How long the paper's method takes: adult_disc, and 1.7 million generated rows of 16 columns.

    python bench/paper_speed.py --data DIR        DIR holds adult_disc/adult_disc.parquet
    python bench/paper_speed.py                   the generated rows alone

Prints CPU- and wall seconds of fit (reading, encoding, learning) and of generate (sampling, decoding, writing).
Imports are not counted. The reference code of the paper takes 2.6 CPU-seconds for learning and sampling adult_disc.
"""

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import privbench
from privbench.schema.domain import Range
from privbench.schema.spec import Spec
from privbench.schema.table_spec import ColumnSpec, TableSpec

ROWS, COLUMNS = 1_700_000, 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--epsilon", default="3.2")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        warm_up(Path(folder) / "warm")
        if given.data:
            source = Path(folder) / "adult"
            source.mkdir()
            (source / "adult_disc.parquet").write_bytes((given.data / "adult_disc/adult_disc.parquet").read_bytes())
            for _ in range(given.runs):
                measure("adult_disc", source, given.epsilon)
        source = Path(folder) / "large"
        write_large(source)
        measure(f"{ROWS} x {COLUMNS}", source, given.epsilon)


def measure(name: str, source: Path, epsilon: str) -> None:
    (file,) = source.iterdir()
    spec = spec_of(file)
    with tempfile.TemporaryDirectory() as folder:
        cpu, wall = time.process_time(), time.perf_counter()
        model = privbench.fit(spec, source=source, epsilon=epsilon)
        middle_cpu, middle_wall = time.process_time(), time.perf_counter()
        privbench.generate(model, Path(folder) / "out", seed=1)
        end_cpu, end_wall = time.process_time(), time.perf_counter()
    print(
        f"{name:>14}  fit {middle_cpu - cpu:6.2f} CPU-s {middle_wall - wall:6.2f} s"
        f"   generate {end_cpu - middle_cpu:6.2f} CPU-s {end_wall - middle_wall:6.2f} s"
        f"   both {end_cpu - cpu:6.2f} CPU-s {end_wall - wall:6.2f} s"
    )


def spec_of(file: Path) -> Spec:
    """Every value of every (integer) column is a declared cell."""
    table = pq.read_table(file)
    columns = {
        name: ColumnSpec(type="INTEGER", null=False, domain=Range(range=(0, max(int(np.max(table[name])), 1))))
        for name in table.column_names
    }
    return Spec(unit=file.stem, tables={file.stem: TableSpec(columns=columns)})


def write_large(folder: Path) -> None:
    """Columns of 2 to 100 codes that depend on a hidden group, so that there is something to learn."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    group = rng.integers(0, 5, ROWS)
    sizes = np.linspace(2, 100, COLUMNS).astype(int)
    columns = {
        f"c{i:02}": pa.array((rng.integers(0, n, ROWS) * (1 + group) // 5).astype(np.int32))
        for i, n in enumerate(sizes)
    }
    pq.write_table(pa.table(columns), folder / "large.parquet")


def warm_up(folder: Path) -> None:
    folder.mkdir()
    pq.write_table(
        pa.table({"a": pa.array([0, 1, 2], pa.int32()), "b": pa.array([1, 0, 1], pa.int32())}), folder / "t.parquet"
    )
    model = privbench.fit(spec_of(folder / "t.parquet"), source=folder, epsilon="1")
    privbench.generate(model, folder / "out")


if __name__ == "__main__":
    main()
