"""The tools around the code: what `make quick` runs, what the site may load, and that all of CI goes through make."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from .conftest import pytest_collection_modifyitems

ROOT = Path(__file__).parents[1]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
nearby_tests = runpy.run_path(str(ROOT / ".ci/changed_tests.py"))["nearby_tests"]
changed_files = runpy.run_path(str(ROOT / ".ci/changed_tests.py"))["changed_files"]
external_loads = runpy.run_path(str(ROOT / ".ci/check_site.py"))["external_loads"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout with a few rooms."""
    files = {
        "src/privbench/io/open.py": "",
        "src/privbench/methods/tree/plan.py": "",
        "src/privbench_verify/ledger.py": "",
        "tests/test_api.py": "",
        "tests/test_docs.py": "",
        "tests/made.py": "",
        "tests/io/test_files.py": "from privbench.io.open import open_source",
        "tests/io/test_staging.py": "from ..made import shop",
        "tests/io/helper.py": "",
        "tests/methods/test_audit.py": "",
        "tests/verify/test_receipt.py": "",
        "docs/spec.md": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("changed", "tests"),
    [
        ([], []),
        (["tests/io/test_files.py"], ["tests/io/test_files.py"]),
        (["tests/io/helper.py", "tests/io/test_files.py"], ["tests/io"]),
        (["tests/made.py"], ["tests/io/test_staging.py"]),
        (["src/privbench/io/open.py"], ["src/privbench/io/open.py", "tests/io/test_files.py"]),
        (["src/privbench/methods/tree/plan.py"], ["src/privbench/methods/tree/plan.py", "tests/methods"]),
        (["src/privbench_verify/ledger.py"], ["src/privbench_verify/ledger.py", "tests/verify"]),
        (["docs/spec.md"], ["tests/test_api.py", "tests/test_docs.py"]),
        (["src/privbench/report/report.css"], []),
    ],
)
def test_the_tests_next_to_what_changed(changed: list[str], tests: list[str], tree: Path) -> None:
    assert nearby_tests(changed, tree) == tests


def test_what_changed(tree: Path) -> None:
    def git(*words: str) -> None:
        name = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *name, *words], cwd=tree, check=True, capture_output=True)  # noqa: S603, S607

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "a")
    assert changed_files(tree) == []
    (tree / "docs/spec.md").write_text("new")
    (tree / "tests/made.py").unlink()
    (tree / "tests/io/test_new.py").write_text("")
    assert changed_files(tree) == ["docs/spec.md", "tests/io/test_new.py"]


@pytest.mark.parametrize(
    ("page", "loads"),
    [
        ('<a href="https://a.example/">there</a><script src="../a.js"></script><img src="b.png">', []),
        ('<script src="https://a.example/a.js"></script>', ["https://a.example/a.js"]),
        ('<link rel=stylesheet href="//a.example/a.css">', ["//a.example/a.css"]),
        ("<style>@font-face { src: url('https://a.example/f') }</style>", ["https://a.example/f"]),
    ],
)
def test_what_a_page_loads_from_elsewhere(page: str, loads: list[str], tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(page)
    assert external_loads(tmp_path) == [f"index.html: loads {address}" for address in loads]


def test_all_cases_but_three_are_slow() -> None:
    class Case:
        def __init__(self, nodeid: str, *marks: str) -> None:
            self.nodeid, self.marks = nodeid, set(marks)

        def get_closest_marker(self, name: str) -> bool:
            return name in self.marks

        def add_marker(self, mark: pytest.MarkDecorator) -> None:
            self.marks.add(mark.name)

    cases = [Case(f"t.py::test_a[{i}]", "mostly_slow") for i in range(9)]
    others = [Case("t.py::test_b[0]", "mostly_slow"), Case("t.py::test_c[0]")]
    pytest_collection_modifyitems([*cases, *others])  # type: ignore[list-item]
    assert [i for i, case in enumerate(cases) if "slow" not in case.marks] == [0, 3, 6]
    assert all("slow" not in case.marks for case in others)


def test_the_workflow_and_the_hooks_call_make() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))
    steps = [step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step]
    entries = [hook["entry"] for repo in hooks["repos"] for hook in repo["hooks"]]
    assert len(steps) >= 2
    for line in [*steps, *entries]:
        make, *targets = line.split()
        assert make == "make"
        assert set(targets) <= TARGETS


@pytest.mark.slow
def test_the_figures_of_the_house() -> None:
    words = [sys.executable, str(ROOT / "bench/house.py"), "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)  # noqa: S603
    figures = json.loads(done.stdout)
    assert figures["files"] == len(list((ROOT / "src").rglob("*.py")))
    assert figures["lines"] / figures["files"] > 20
    assert 0 < figures["modules with one importer"] < figures["files"]
    assert 30 < figures["modules passed by synth"] < figures["files"]
    assert figures["package changes of synth"] > 10
