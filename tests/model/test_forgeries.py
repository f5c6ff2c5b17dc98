"""Forged models, receipts and bundles of the paper's method: each adds up on its face, and none is verified."""

import copy
import json
import os
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from privbench.errors import ModelError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation.generate import generate
from privbench.model.file import load_model, save_model
from privbench.model.verify import verify

from ..forging import (
    COMMON,
    MISSING,
    Change,
    alter,
    assert_refused,
    empty_ledger,
    fewer_bins,
    forged,
    instead,
    missing,
    missing_key,
    write_shop,
)
from ..seeded import SeededEntropy

DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, city VARCHAR, age SMALLINT);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id), cost SMALLINT);
CREATE TABLE item (visit_id INTEGER REFERENCES visit (id), price SMALLINT);
CREATE TABLE club (leader INTEGER REFERENCES person (id));"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file of persons, visits and items, and its header."""
    folder = tmp_path_factory.mktemp("forgeries")
    source = write_shop(
        folder / "source",
        DDL,
        person="id,city,age\n" + "".join(f"{i},{'xyz'[i % 3]},{i % 50}\n" for i in range(60)),
        visit="id,person_id,cost\n" + "".join(f"{i},{i % 60},{i % 7}\n" for i in range(150)),
        item="visit_id,price\n" + "".join(f"{i % 150},{i % 9}\n" for i in range(200)),
        club="leader\n3\n5\n",
    )
    spec = draft(source, unit="person", domains="data", public=["club"])
    save_model(fit(spec, epsilon="20", method="paper", entropy=SeededEntropy()), folder / "model")
    return folder


@pytest.fixture
def forge(folder: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """Write the model again with another header."""
    return lambda change: forged(folder / "model", tmp_path / "forged", change)


FORGED = COMMON | {
    "ledger emptied": (empty_ledger, "is not what the model's spec says"),
    "a leaf without event": (instead("person", ("column city",), "column age"), missing((3, "city"))),
    "a leaf with fewer bins": (fewer_bins("person", "column city"), missing((3, "city"))),
    "a leaf with fewer draws": (alter("person", "column city", draws=1), "draws is 1, but the query has 3"),
    "slots without event": (
        instead("visit", ("part", "key slot visit.person_id"), "column cost"),
        '"bins": 61, "feature": {"kind": "key slot"',
    ),
    "degrees with fewer bins": (
        fewer_bins("visit", "fanout item.visit_id"),
        missing_key(5, "fanout", "item", "visit_id", "visit"),
    ),
    "a size without event": (instead("visit", (), "column cost"), f'{MISSING}{{"axes": [], "counts": "rows"'),
    "another cap in the spec": (
        lambda h: h["spec"]["tables"]["visit"].update(rows_per_entity=4000),
        "unit.tables is not what",
    ),
    "as published in the spec": (
        lambda h: h["spec"].update(method={"name": "paper", "as_published": True}, sizes="public"),
        "public.sizes is not what",
    ),
    "another method in the spec": (
        lambda h: h["spec"].update(method={"name": "tree"}),
        "the model contains parts that method",
    ),
}


def test_the_honest_model(folder: Path, forge: Callable[..., Path]) -> None:
    assert verify(folder / "model").status == "conditional"
    assert verify(forge(lambda _: None)).problems == ()


@pytest.mark.parametrize("name", FORGED)
def test_a_receipt_that_is_not_the_models(name: str, forge: Callable[..., Path]) -> None:
    change, message = FORGED[name]
    path = forge(change)
    assert_refused(path, message)


def test_an_empty_ledger_pays_for_no_leaf(forge: Callable[..., Path]) -> None:
    problems = verify(forge(empty_ledger)).problems
    for query in (missing((3, "city")), missing((9, "price")), '"kind": "key slot"', f'{MISSING}{{"axes": [], '):
        assert any(query in problem for problem in problems), query


def test_a_key_that_stands_twice_is_refused(folder: Path, tmp_path: Path) -> None:
    receipt = load_model(folder / "model").receipt
    text = json.dumps(receipt)
    (tmp_path / "r.json").write_text(text[:-1] + ', "epsilon": "1/100"}')
    assert verify(tmp_path / "r.json").status == "failed"
    (tmp_path / "r.json").write_text(text)
    assert verify(tmp_path / "r.json").status == "conditional"
    with zipfile.ZipFile(folder / "model") as old, zipfile.ZipFile(tmp_path / "m", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content.replace(b'{"format"', b'{"version": 1, "format"') if name[0] == "m" else content)
    with pytest.raises(ModelError):
        verify(tmp_path / "m")


def test_an_entry_that_stands_twice_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes((folder / "model").read_bytes())
    with zipfile.ZipFile(tmp_path / "m", "a") as file, warnings.catch_warnings(action="ignore"):
        file.writestr("model.json", file.read("model.json"))
    with pytest.raises(ModelError, match="stands in it twice"):
        verify(tmp_path / "m")


def _link(bundle: Path) -> str:
    (bundle / "data" / "more.csv").symlink_to(bundle / "schema.sql")
    return "data/more.csv"


def _folder_link(bundle: Path) -> str:
    (bundle / "more").symlink_to(bundle.parent, target_is_directory=True)
    return "more"


def _linked_file(bundle: Path) -> str:
    (bundle / "schema.sql").rename(bundle.parent / "schema.sql")
    (bundle / "schema.sql").symlink_to(bundle.parent / "schema.sql")
    return "schema.sql"


def _linked_data(bundle: Path) -> str:
    (bundle / "data").rename(bundle.parent / "data")
    (bundle / "data").symlink_to(bundle.parent / "data", target_is_directory=True)
    return "data"


def _linked_sums(bundle: Path) -> str:
    (bundle / "SHA256SUMS").rename(bundle.parent / "sums")
    (bundle / "SHA256SUMS").symlink_to(bundle.parent / "sums")
    return "SHA256SUMS"


def _broken_link(bundle: Path) -> str:
    (bundle / "gone").symlink_to(bundle / "nothing")
    return "gone"


def _pipe(bundle: Path) -> str:
    os.mkfifo(bundle / "pipe")
    return "pipe"


def _extra(bundle: Path) -> str:
    (bundle / ".hidden").write_text("x")
    return ".hidden"


def _listed_twice(bundle: Path) -> str:
    sums = (bundle / "SHA256SUMS").read_text()
    (bundle / "SHA256SUMS").write_text(f"{'0' * 64}  schema.sql\n{sums}")
    return "SHA256SUMS"


@pytest.mark.parametrize(
    "add",
    [_link, _folder_link, _linked_file, _linked_data, _linked_sums, _broken_link, _pipe, _extra, _listed_twice],
)
def test_what_does_not_belong_in_a_bundle(add: Callable[[Path], str], folder: Path, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    generate(load_model(folder / "model"), bundle, seed=1)
    assert verify(bundle).status == "conditional"
    name = add(bundle)
    verdict = verify(bundle)
    assert verdict.status == "failed"
    assert any(problem.startswith(f"{name}: ") for problem in verdict.problems), verdict.problems


def test_the_readme_says_that_ids_are_kept(folder: Path, tmp_path: Path) -> None:
    model = load_model(folder / "model")
    note = "The ids of person are those of the source"
    for scale, kept in ((1, True), (2, False)):
        generate(model, tmp_path / str(scale), scale=scale, seed=1)
        assert (note in (tmp_path / str(scale) / "README.md").read_text()) == kept


def test_the_readme_says_what_orphans_mean(folder: Path, tmp_path: Path) -> None:
    model = copy.copy(load_model(folder / "model"))
    model.receipt["public"].update(orphans="null", orphans_note="Keys to missing rows were counted as NULL.")
    generate(model, tmp_path / "b", seed=1)
    assert "Keys to missing rows were counted as NULL." in (tmp_path / "b" / "README.md").read_text()
