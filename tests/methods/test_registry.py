"""Methods of other packages: found by their entry point, they walk the whole way; what is no method is refused."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import privbench
from privbench.cli.commands import cli
from privbench.errors import SpecError
from privbench.estimation.estimate import cardinality
from privbench.evaluation.evaluate import evaluate
from privbench.methods import registry
from privbench.methods.registry import BUILT_IN, find_method, method_names
from privbench.methods.tree.method import TREE

from ..forging import write_shop

MODULE = """from dataclasses import replace

from privbench.methods.tree.method import TREE

CLONE = replace(TREE, name="clone")
NUMBER = 3
"""
ENTRY_POINTS = """[privbench.methods]
clone = outside_methods:CLONE
no-method = outside_methods:NUMBER
other-name = outside_methods:CLONE
not-there = outside_methods:MISSING
no-module = no_such_module_at_all:CLONE
crashes = outside_crash:CLONE
"""
DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT NOT NULL);
CREATE TABLE town (id INTEGER PRIMARY KEY, size SMALLINT NOT NULL);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id),
  town_id INTEGER NOT NULL REFERENCES town (id), cost SMALLINT NOT NULL, guest INTEGER REFERENCES person (id));"""


@pytest.fixture(autouse=True)
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed package that offers methods."""
    site = tmp_path / "site"
    metadata = site / "outside_methods-1.0.dist-info"
    metadata.mkdir(parents=True)
    (site / "outside_methods.py").write_text(MODULE)
    (site / "outside_crash.py").write_text("raise RuntimeError('out of order')\n")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-methods\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(site)
    registry._loaded.cache_clear()
    yield
    registry._loaded.cache_clear()
    for name in ("outside_methods", "outside_crash"):
        sys.modules.pop(name, None)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    visits = (f"{i},{i % 400},{i % 5},{i % 7},{i % 90 if i % 3 else ''}" for i in range(1200))
    return write_shop(
        tmp_path / "source",
        DDL,
        person="\n".join(["id,age", *(f"{i},{20 + i % 40}" for i in range(400))]),
        town="\n".join(["id,size", *(f"{i},{i}" for i in range(5))]),
        visit="\n".join(["id,person_id,town_id,cost,guest", *visits]),
    )


@pytest.fixture
def spec(source: Path) -> privbench.Spec:
    return privbench.draft(source, unit="person", public=["town"], domains="data", owners={"visit": ("person_id",)})


def test_its_names_stand_behind_those_of_privbench() -> None:
    assert method_names()[: len(BUILT_IN)] == tuple(BUILT_IN)
    assert set(method_names()) == {*BUILT_IN, "clone", "no-method", "other-name", "not-there", "no-module", "crashes"}
    assert find_method("clone").name == "clone"


@pytest.mark.parametrize("delta", ["0", "1e-9"])
def test_a_method_of_another_package_walks_the_whole_way(
    delta: str, spec: privbench.Spec, source: Path, tmp_path: Path
) -> None:
    fitted = privbench.fit(spec, epsilon=50, delta=delta, method="clone")
    assert fitted.receipt["public"]["parameters"]["method"] == "clone"
    privbench.save_model(fitted, tmp_path / "model")
    model = privbench.load_model(tmp_path / "model")
    assert model.spec.method["name"] == "clone"
    rows = privbench.generate(model, tmp_path / "bundle", seed=1).rows
    assert (rows["person"], rows["town"]) == (400, 5)
    assert rows["visit"] == pytest.approx(1200, rel=0.2)
    for path in ("model", "bundle"):
        verdict = privbench.verify(tmp_path / path)
        assert (verdict.status, verdict.problems) == ("conditional", ())
    share = privbench.selectivity(model, "person", {"age": privbench.Between(high=39)})
    assert share == pytest.approx(0.5, abs=0.1)
    tables = {"p": "person", "v": "visit"}
    joined = cardinality(model, tables=tables, joins=[(("v", "person_id"), ("p", "id"))])
    assert joined == pytest.approx(1200, rel=0.2)
    result = evaluate(source, tmp_path / "bundle", model=model, lambdas=(1,), floor=False)
    assert result.skips == ()
    assert {table.name for table in result.tables} >= {"person", "visit"}


def test_it_learns_what_the_method_that_it_is_a_clone_of_learns(spec: privbench.Spec, tmp_path: Path) -> None:
    bundles = []
    for method in ("tree", "clone"):
        model = privbench.fit(spec, epsilon=50, method=method)
        privbench.generate(model, tmp_path / method, seed=1)
        bundles.append({p.name: p.read_bytes() for p in (tmp_path / method / "data").iterdir()})
    assert bundles[0] == bundles[1]


def test_it_plans_as_well_and_is_named_on_the_command_line(spec: privbench.Spec, source: Path, tmp_path: Path) -> None:
    assert privbench.plan(spec, epsilon=50, rows={"person": 400}, method="clone").tables
    privbench.write_spec(spec, tmp_path / "spec.yaml")
    asked = ["fit", str(tmp_path / "spec.yaml"), "--epsilon", "50", "--method", "clone", "-o", str(tmp_path / "m")]
    answer = CliRunner().invoke(cli, asked)
    assert answer.exit_code == 0, answer.output
    assert privbench.load_model(tmp_path / "m").spec.method["name"] == "clone"


def test_a_model_whose_method_is_not_installed_is_neither_verified_nor_loaded(
    spec: privbench.Spec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    privbench.save_model(privbench.fit(spec, epsilon=50, method="clone"), tmp_path / "model")
    monkeypatch.setattr(registry, "_offered", dict)
    assert privbench.verify(tmp_path / "model").status == "failed"
    with pytest.raises(privbench.PrivBenchError, match="clone"):
        privbench.load_model(tmp_path / "model")


@pytest.mark.parametrize("name", ["no-method", "other-name", "not-there", "no-module", "crashes"])
def test_what_is_no_method_is_refused_by_name(name: str, spec: privbench.Spec) -> None:
    with pytest.raises(SpecError, match=rf"'{name}'.*(outside_methods|no_such_module_at_all|outside_crash):"):
        find_method(name)
    with pytest.raises(SpecError, match=name):
        privbench.fit(spec, epsilon=1, method=name)


def test_an_unknown_method_lists_those_that_there_are(spec: privbench.Spec) -> None:
    with pytest.raises(SpecError, match="magic") as refused:
        privbench.fit(spec, epsilon=1, method="magic")
    assert all(name in str(refused.value) for name in ("tree", "paper", "independent", "clone"))


def test_no_package_replaces_a_method_of_privbench(tmp_path: Path) -> None:
    points = tmp_path / "site" / "outside_methods-1.0.dist-info" / "entry_points.txt"
    points.write_text("[privbench.methods]\ntree = outside_methods:NUMBER\n")
    assert find_method("tree") is TREE
    assert method_names() == tuple(BUILT_IN)
