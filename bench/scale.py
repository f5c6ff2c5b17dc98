"""How speed and memory grow: made databases from a hundred thousand to a hundred million rows, against a floor.

    python bench/scale.py                            the small and middle cases
    python bench/scale.py --only job --only rows8    some cases
    python bench/scale.py --large                    the hundred million rows, too (10 GB of disk)
    python bench/scale.py --table                    the same as a table of docs/performance.md
    python bench/scale.py --peers PYTHON             adult and wide by other tools, too (see bench/peers.py)

The floor is reading the Parquet files with Arrow, batch by batch, and writing them again: a program that does nothing
else. Every figure is of a process of its own: CPU-seconds of all its threads, wall seconds, and the largest resident
memory, imports and all. Linux counts the memory of the program that starts another as that one's, too, so this program
loads no library, and databases are made by bench/scale_databases.py. Cases:

    adult       48,842 x 14, by `privbench synth`, too: mostly starting up
    wide        1.7 million x 16
    california  600,000 households and 1.7 million persons, as large as the census of the paper
    job         2.3 million titles, 36 million rows of four tables that they own, and four public tables
    rows8       1e3, 1e5, 1e6, 1e7 and, with --large, 1e8 rows of 8 columns and a key; 1e8 with `--memory 1GB`

The growth of the cost per row is that from a million rows of rows8 to the most that were measured, with the start-up
and without it: what a thousand rows take is start-up.
"""

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
TOOL = [sys.executable, "-c", "from privbench.cli.main import main; main()"]
PEERS = ("mst", "aim")
START_UP, FIRST = "rows8-1e3", "rows8-1e6"
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
    is_cut: bool = False
    """Whether it was stopped before its end, since it took too long."""

    def __str__(self) -> str:
        figures = (
            f"{self.cpu:7.2f} CPU-s {self.wall:7.2f} s (wall / CPU {self.wall / self.cpu:.2f}) {self.megabytes:6.0f} MB"
        )
        return f"{figures}, cut off unfinished" if self.is_cut else figures


@dataclass(frozen=True)
class Case:
    name: str
    unit: str
    draft: tuple[str, ...] = ()
    fit: tuple[str, ...] = ()
    """Further options of `draft` and `fit`."""
    synth: bool = False
    peers: bool = False


@dataclass(frozen=True)
class Measured:
    case: str
    rows: int
    spent: dict[str, Spent] = field(default_factory=dict)

    @property
    def both(self) -> float:
        """CPU-seconds of fit and generate."""
        return self.spent["fit"].cpu + self.spent["generate"].cpu

    @property
    def wall(self) -> float:
        """Wall seconds of fit and generate."""
        return self.spent["fit"].wall + self.spent["generate"].wall

    @property
    def floors(self) -> float:
        """Fit and generate, in floors."""
        return self.both / self.spent["floor"].cpu

    def per_row(self, start_up: float = 0.0) -> float:
        """CPU-microseconds of fit and generate for a row."""
        return 1e6 * (self.both - start_up) / self.rows

    def __str__(self) -> str:
        head = f"{self.case}: {self.rows:,} rows; fit + generate {self.both:.2f} CPU-s"
        steps = [f"    {step:9} {spent}" for step, spent in self.spent.items()]
        return "\n".join([f"{head}, {self.per_row():.2f} CPU-us per row, {self.floors:.2f} x the floor", *steps])


CASES = [
    Case("adult", "adult", synth=True, peers=True),
    Case("wide", "wide", peers=True),
    Case("california", "household"),
    Case("job", "title", draft=("--public", "kind_type,role_type,info_type,company_type")),
    *(Case(f"rows8-{rows}", "rows8") for rows in ("1e3", "1e5", "1e6", "1e7")),
]
LARGE = [Case("rows8-1e8", "rows8", fit=("--memory", "1GB"))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", help="a case; may be repeated")
    parser.add_argument("--large", action="store_true", help="a hundred million rows, too")
    parser.add_argument("--keep", type=Path, help="where made databases are kept for the next run")
    parser.add_argument("--fit-option", action="append", default=[], help="given to every fit, such as --memory=1GB")
    parser.add_argument("--evaluate", action="store_true", help="evaluate the bundles, too")
    parser.add_argument("--peers", metavar="PYTHON", help="the Python that has other tools; see bench/peers.py")
    parser.add_argument("--limit", type=int, default=600, help="CPU-seconds after which other tools are cut off")
    parser.add_argument("--table", action="store_true", help="print a table in Markdown")
    given = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as temporary:
        for case in [*CASES, *(LARGE if given.large else [])]:
            if given.only and case.name.split("-")[0] not in given.only and case.name not in given.only:
                continue
            source = (given.keep or Path(temporary)) / case.name
            result = measured(case, source, given.fit_option, evaluate=given.evaluate)
            print(result, flush=True)
            if given.peers and case.peers:
                show_peers(given.peers, source / f"{case.name}.parquet", limit=given.limit)
            results.append(result)
    show_growth({result.case: result for result in results})
    if given.table:
        print(markdown(results))


def measured(case: Case, source: Path, fit_options: list[str], *, evaluate: bool) -> Measured:
    """Measure one case: the floor, then what the tool does."""
    result = Measured(case.name, rows=made_rows(case.name, source))
    with tempfile.TemporaryDirectory() as scratch:
        floor, spec, model, bundle, both, score, cache = (
            f"{scratch}/{name}" for name in ("floor", "spec.yaml", "my.model", "bundle", "synth", "score", "cache")
        )
        draft = ["draft", source, "--unit", case.unit, "--domains", "data", *case.draft, "-o", spec]
        fit = ["fit", spec, "--source", source, "--epsilon", "3.2", *case.fit, *fit_options, "-o", model]
        generate = ["generate", model, "-o", bundle, "--seed", "1"]
        synth = ["synth", source, "--domains", "data", "--epsilon", "3.2", "--seed", "1", "-o", both]
        score_it = ["evaluate", "--real", source, "--synthetic", bundle, "-o", score, "--cache", cache]
        result.spent["floor"] = run([sys.executable, "-c", FLOOR, source, floor])
        for command in (draft, fit, generate, *([synth] if case.synth else []), *([score_it] if evaluate else [])):
            result.spent[str(command[0])] = run([*TOOL, *command])
    return result


def made_rows(name: str, folder: Path) -> int:
    """Make a database, unless it is there; returns how many rows it has."""
    command = [sys.executable, HERE / "scale_databases.py", name, folder]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)  # noqa: S603


def run(command: list[str | Path], *, limit: int = resource.RLIM_INFINITY) -> Spent:
    """Run a program and say what it cost; it is cut off after `limit` CPU-seconds."""
    with tempfile.TemporaryDirectory() as record, tempfile.TemporaryFile() as errors:
        environment = {**os.environ, "PRIVBENCH_BUDGET_RECORD": str(Path(record) / "record.json")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled
        started = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, env=environment)  # noqa: S603
        resource.prlimit(child.pid, resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
        _, status, usage = os.wait4(child.pid, 0)
        wall, cpu = time.perf_counter() - started, usage.ru_utime + usage.ru_stime
        is_cut = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU
        if status and not is_cut:
            errors.seek(0)
            sys.exit(f"{' '.join(map(str, command))}\n{errors.read().decode()}")
    return Spent(cpu, wall, usage.ru_maxrss / 1024, is_cut)


def show_peers(python: str, table: Path, *, limit: int) -> None:
    """Say what other tools take for the same table, from reading it to writing another."""
    for method in PEERS:
        with tempfile.TemporaryDirectory() as scratch:
            spent = run([python, HERE / "peers.py", method, table, f"{scratch}/made.parquet"], limit=limit)
        print(f"    dpmm's {method.upper()}: {spent}", flush=True)


def show_growth(results: dict[str, Measured]) -> None:
    """Say how the cost of a row of rows8 grows, if the cases that it takes were measured."""
    last = [result for name, result in results.items() if name.startswith("rows8")][-1:]
    if START_UP in results and FIRST in results and last != [results[FIRST]]:
        (most,) = last
        for words, start_up in (("with the start-up", 0.0), ("without it", results[START_UP].both)):
            few, many = results[FIRST].per_row(start_up), most.per_row(start_up)
            print(f"rows8, {words}: {few:.2f} CPU-us per row of 1e6, {many:.2f} of {most.case[6:]}: {many / few:.2f} x")


def markdown(results: list[Measured]) -> str:
    head = (
        "| case | rows | floor | draft | fit | generate | both | x floor | CPU-us per row | wall / CPU "
        "| MB of fit, generate |"
    )
    return "\n".join([head, "|---" * head.count(" | ") + "|---|", *map(markdown_row, results)])


def markdown_row(result: Measured) -> str:
    floor, draft, fit, made = (result.spent[step] for step in ("floor", "draft", "fit", "generate"))
    return (
        f"| {result.case} | {result.rows:,} | {floor.cpu:.1f} | {draft.cpu:.1f} | {fit.cpu:.1f} | {made.cpu:.1f} "
        f"| {result.both:.1f} | {result.floors:.1f} | {result.per_row():.2f} | {result.wall / result.both:.2f} "
        f"| {fit.megabytes:.0f}, {made.megabytes:.0f} |"
    )


if __name__ == "__main__":
    main()
