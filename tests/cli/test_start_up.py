"""A command loads only what it needs: libraries take longer to load than small databases to fit."""

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

WALK = """
import sys
sys.argv = ["privbench", *{arguments}]
from privbench.cli.main import main
try:
    main()
except SystemExit as stopped:
    assert not stopped.code, stopped.code
print("LOADED", *sorted(set({watched}) & set(sys.modules)))
"""
SYNTH = ("--epsilon", "3", "--no-rehearsal")
"""A rehearsal loads made-up rows into a database and has them verified."""
SQL = {"duckdb", "sqlglot"}
SERVERS = {"privbench.io.mysql.source", "privbench.io.postgres.sink", "psycopg", "pymysql", "sqlite3"}
HEAVY = {*SQL, *SERVERS, "pandas", "rich", "opendp", "scipy", "pyarrow.dataset", "privbench.methods.paper.method"}
ALL = {*HEAVY, "numpy", "pyarrow", "pydantic", "yaml", "privbench.schema.spec"}


def loaded(*arguments: object, watched: set[str]) -> set[str]:
    """Run a command in a process of its own; returns what it loaded of some modules."""
    code = WALK.format(arguments=list(map(str, arguments)), watched=watched)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """One table, as Parquet and without a schema."""
    folder = tmp_path / "db"
    folder.mkdir()
    rows = range(3_000)
    columns = {"age": [i % 40 for i in rows], "visits": [i % 7 for i in rows], "size": [i * i % 300 for i in rows]}
    pq.write_table(pa.table(columns), folder / "person.parquet")
    return folder


@pytest.mark.parametrize("flag", ["--help", "--version"])
def test_help_loads_no_library(flag: str) -> None:
    assert loaded(flag, watched=ALL) == set()


def test_help_of_a_command_loads_no_library() -> None:
    assert loaded("synth", "--help", watched=ALL) == set()


@pytest.mark.parametrize("domains", ["data", "private"])
def test_a_walk_with_one_table_needs_no_sql(table: Path, tmp_path: Path, domains: str) -> None:
    spec, model = tmp_path / "s.yaml", tmp_path / "m.model"
    assert loaded("draft", table, "--domains", domains, "-o", spec, watched=HEAVY) == set()
    assert loaded("fit", spec, "--epsilon", "3", "--no-rehearsal", "-o", model, watched=HEAVY) == set()
    assert loaded("generate", model, "-o", tmp_path / "b", watched={*HEAVY, "privbench.fitting"}) == set()


@pytest.mark.parametrize("domains", ["data", "private"])
def test_synth_needs_neither_sql_nor_yaml_nor_the_verifier(table: Path, tmp_path: Path, domains: str) -> None:
    unneeded = {*HEAVY, "yaml", "privbench_verify.receipt"}
    made = loaded("synth", table, *SYNTH, "--domains", domains, "-o", tmp_path / "b", watched=unneeded)
    assert made == set()


def test_neither_garbage_nor_plugins_are_searched_for(table: Path, tmp_path: Path) -> None:
    """What is loaded stays until the end, and then goes with the process: to look through it takes longer than a fit.

    Functions that are registered first are called last at the end of a program.
    """
    code = (
        "import atexit, gc, importlib.metadata, sys\n"
        "atexit.register(lambda: print('LEFT ALONE AT THE END', gc.get_freeze_count() > 0))\n"
        "importlib.metadata.entry_points = lambda **_: sys.exit('searched for plugins')\n"
        "before = gc.get_stats()\natexit.register(lambda: print('COLLECTED', gc.get_stats() != before))\n"
        "from privbench.cli.main import main\nmain()"
    )
    walk = ["synth", str(table), *SYNTH, "--domains", "data", "-o", str(tmp_path / "b")]
    done = subprocess.run([sys.executable, "-c", code, *walk], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["COLLECTED False", "LEFT ALONE AT THE END True"]


def test_a_walk_with_duckdb_ends_without_complaints(table: Path, tmp_path: Path) -> None:
    walk = ["synth", str(table), "--domains", "data", "--epsilon", "3", "--to", "duckdb", "-o", str(tmp_path / "b")]
    code = "from privbench.cli.main import main\nmain()"
    done = subprocess.run([sys.executable, "-c", code, *walk], capture_output=True, text=True, check=False)  # noqa: S603
    assert (done.returncode, done.stderr) == (0, "")


def test_a_method_of_another_package_may_use_pandas() -> None:
    """Arrow is told that there is no pandas; an import of it still finds it, and so does Arrow when asked for it."""
    code = (
        "import sys\nfrom privbench.cli.quick_start import without_pandas\n"
        "without_pandas(lambda: None)()\nassert 'pandas' not in sys.modules\n"
        "import pyarrow as pa\nassert len(pa.table({'a': [1]}).to_pandas()) == 1\nimport pandas"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603
