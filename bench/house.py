"""The size of the source and how far one has to walk in it: `python bench/house.py [--src PATH]`.

Lines, files, median lines of a file, modules that only one other module imports, and what `synth` passes on a database
of two tables: how many modules have a function that is called, and how often the package changes if one follows the
functions in the order in which each is called first. decisions/0030-rooms.md has the figures. Noise is drawn anew in
every run, so the last two vary by a few.
"""

import argparse
import ast
import importlib
import json
import pkgutil
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src"
SCHEMA = """CREATE TABLE customer (id INTEGER PRIMARY KEY, city SMALLINT NOT NULL, born SMALLINT NOT NULL);
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer (id), paid SMALLINT NOT NULL);"""


def measure(source: Path) -> dict[str, float]:
    """All figures of a source tree, by name."""
    lines = {module: len(path.read_text("utf-8").splitlines()) for module, path in _modules(source).items()}
    order = first_calls(source)
    return {
        "lines": sum(lines.values()),
        "files": len(lines),
        "median lines of a file": statistics.median(lines.values()),
        "modules with one importer": len(with_one_importer(source)),
        "modules passed by synth": len(set(order)),
        "package changes of synth": sum(_package(a) != _package(b) for a, b in pairwise(order)),
    }


def with_one_importer(source: Path) -> list[str]:
    """Name the modules that exactly one other module imports."""
    modules = _modules(source)
    importers: Counter[str] = Counter()
    for module, path in modules.items():
        importers.update({name for name in _imports(path) if name in modules} - {module})
    return sorted(name for name, count in importers.items() if count == 1)


def first_calls(source: Path) -> list[str]:
    """Give the module of each function that `synth` on two tables calls, in the order of first calls."""
    sys.path.insert(0, str(source))
    import privbench  # noqa: PLC0415

    assert Path(privbench.__file__).is_relative_to(source), f"{privbench.__file__} is imported already"
    for found in pkgutil.walk_packages(privbench.__path__, "privbench."):
        importlib.import_module(found.name)  # so that no definition is taken for a call
    order: dict[CodeType, str] = {}
    modules = {str(path): module for module, path in _modules(source).items()}

    def see(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename in modules:
            order.setdefault(frame.f_code, modules[frame.f_code.co_filename])

    with tempfile.TemporaryDirectory() as folder:
        shop = _write_shop(Path(folder) / "shop")
        before = sys.getprofile()
        sys.setprofile(see)
        try:
            privbench.synth(shop, Path(folder) / "out", unit="customer", epsilon="20", seed=1)
        finally:
            sys.setprofile(before)
    return list(order.values())


def _modules(source: Path) -> dict[str, Path]:
    """Every file by the dotted name of its module."""
    return {
        ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(source.rglob("*.py"))
    }


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _package(module: str) -> str:
    """The room: the folder under privbench, or the verifier."""
    first, *inner = module.split(".")
    return inner[0] if first == "privbench" and inner else first


def _write_shop(folder: Path) -> Path:
    folder.mkdir()
    customers = "".join(f"{i},{i % 3},{1950 + i % 60}\n" for i in range(2_000))
    purchases = "".join(f"{i},{i % 2_000},{i % 40}\n" for i in range(5_000))
    (folder / "schema.sql").write_text(SCHEMA)
    (folder / "customer.csv").write_text(f"id,city,born\n{customers}")
    (folder / "purchase.csv").write_text(f"id,customer_id,paid\n{purchases}")
    return folder


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", type=Path, default=SOURCE, help="the folder that holds the package")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    figures = measure(arguments.src.resolve())
    text = json.dumps(figures) if arguments.json else "\n".join(f"{n:>8g}  {name}" for name, n in figures.items())
    sys.stdout.write(text + "\n")
