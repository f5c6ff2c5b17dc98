"""Forged models, receipts and bundles: each adds up on its face, and none is verified."""

import copy
import json
import os
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privbench.errors import ModelError
from privbench.pipeline.check import verify
from privbench.pipeline.draft import draft
from privbench.pipeline.fit import fit
from privbench.pipeline.generate import generate
from privbench.pipeline.model_file import load_model, save_model

DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, city VARCHAR, age SMALLINT);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id), cost SMALLINT);
CREATE TABLE item (visit_id INTEGER REFERENCES visit (id), price SMALLINT);
CREATE TABLE club (leader INTEGER REFERENCES person (id));"""
Header = dict[str, Any]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file of persons, visits and items, and its header."""
    folder = tmp_path_factory.mktemp("forgeries")
    source = folder / "source"
    source.mkdir()
    (source / "schema.sql").write_text(DDL)
    (source / "person.csv").write_text("id,city,age\n" + "".join(f"{i},{'xyz'[i % 3]},{i % 50}\n" for i in range(60)))
    (source / "visit.csv").write_text("id,person_id,cost\n" + "".join(f"{i},{i % 60},{i % 7}\n" for i in range(150)))
    (source / "item.csv").write_text("visit_id,price\n" + "".join(f"{i % 150},{i % 9}\n" for i in range(200)))
    (source / "club.csv").write_text("leader\n3\n5\n")
    spec = draft(source, unit="person", domains="data", public=["club"])
    save_model(fit(spec, epsilon="20"), folder / "model")
    return folder


@pytest.fixture
def forge(folder: Path, tmp_path: Path) -> Callable[[Callable[[Header], Any]], Path]:
    """Write the model again with another header."""

    def rewrite(change: Callable[[Header], Any]) -> Path:
        out = tmp_path / "forged"
        with zipfile.ZipFile(folder / "model") as old, zipfile.ZipFile(out, "w") as new:
            header = json.loads(old.read("model.json"))
            change(header)
            for name in old.namelist():
                new.writestr(name, json.dumps(header) if name == "model.json" else old.read(name))
        return out

    return rewrite


def _scrub(header: Header) -> None:
    receipt = header["receipt"]
    domains = receipt["public"]["domains"]
    receipt["condition"] = None
    domains.update(declared=sorted(domains["declared"] + domains["data"]), data=[])


def _empty(header: Header) -> None:
    receipt = header["receipt"]
    receipt["ledger"] = {"total": "0/1", "nodes": [{"kind": "sequence", "parent": None, "label": "x", "total": "0/1"}]}
    for name, table in receipt["unit"]["tables"].items():
        table["rows_per_entity_from"] = "derived" if name == "person" else "declared"


def _relabel(old: str, new: str) -> Callable[[Header], None]:
    def change(header: Header) -> None:
        events = [n for n in header["receipt"]["ledger"]["nodes"] if n.get("query", "").startswith(old)]
        assert events
        for event in events:
            event["query"] = new

    return change


def _one_draw(query: str) -> Callable[[Header], None]:
    def change(header: Header) -> None:
        next(n for n in header["receipt"]["ledger"]["nodes"] if n.get("query", "").startswith(query))["draws"] = 1

    return change


FORGED: dict[str, tuple[Callable[[Header], Any], str]] = {
    "condition scrubbed": (_scrub, "condition is not what the model's spec says"),
    "ledger emptied": (_empty, "is not what the model's spec says"),
    "a leaf without event": (_relabel("histogram of city", "size"), "histogram of city"),
    "a leaf with fewer draws": (_one_draw("histogram of city"), "histogram of city"),
    "slots without event": (_relabel("rows per key of visit", "size"), "rows per key of visit.person_id"),
    "degrees with fewer draws": (_one_draw("rows of visit by number"), "rows of visit by number of item"),
    "a size without event": (
        _relabel("size", "histogram of cost"),
        "events are missing for what the model holds: size",
    ),
    "sizes said to be public": (
        lambda h: h["receipt"]["public"]["sizes"].update(visit=150),
        "public.sizes is not what the model's spec says",
    ),
    "public tables hidden": (lambda h: h["receipt"]["public"].update(tables=[]), "public.tables is not what"),
    "public keys hidden": (lambda h: h["receipt"]["public"].update(keys=[]), "public.keys is not what"),
    "orphans denied": (lambda h: h["spec"].update(orphans="null"), "public.orphans is not what"),
    "another cap in the spec": (
        lambda h: h["spec"]["tables"]["visit"].update(rows_per_entity=4000),
        "unit.tables is not what",
    ),
    "as printed in the spec": (
        lambda h: h["spec"].update(method={"name": "paper", "as_printed": True}, sizes="public"),
        "public.sizes is not what",
    ),
    "another owner key": (lambda h: h["receipt"]["unit"]["tables"]["visit"].update(key=["cost"]), "unit.tables is not"),
    "another table": (
        lambda h: h["receipt"]["unit"]["tables"].update(
            other=h["receipt"]["unit"]["tables"]["person"] | {"role": "owned", "owner": "person"}
        ),
        "about other tables",
    ),
}


def test_the_honest_model(folder: Path, forge: Callable[..., Path]) -> None:
    assert verify(folder / "model").status == "conditional"
    assert verify(forge(lambda _: None)).problems == ()


@pytest.mark.parametrize("name", FORGED)
def test_a_receipt_that_is_not_the_models(name: str, forge: Callable[..., Path]) -> None:
    change, message = FORGED[name]
    forged = forge(change)
    verdict = verify(forged)
    assert verdict.status == "failed"
    assert any(message in problem for problem in verdict.problems), verdict.problems
    with pytest.raises(ModelError, match="its receipt does not add up"):
        load_model(forged)


def test_an_empty_ledger_pays_for_no_leaf(forge: Callable[..., Path]) -> None:
    problems = verify(forge(_empty)).problems
    for query in ("histogram of city", "histogram of price", "rows per key of visit.person_id", "size"):
        assert any(query in problem for problem in problems)


def test_a_key_that_stands_twice_is_refused(folder: Path, tmp_path: Path) -> None:
    receipt = load_model(folder / "model").receipt
    text = json.dumps(receipt)
    (tmp_path / "r.json").write_text(text[:-1] + ', "epsilon": "1/100"}')
    with pytest.raises(ModelError, match=r"r\.json: the key 'epsilon' stands twice"):
        verify(tmp_path / "r.json")
    (tmp_path / "r.json").write_text(text)
    assert verify(tmp_path / "r.json").status == "conditional"
    with zipfile.ZipFile(folder / "model") as old, zipfile.ZipFile(tmp_path / "m", "w") as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, content.replace(b'{"format"', b'{"version": 1, "format"') if name[0] == "m" else content)
    with pytest.raises(ModelError, match="the key 'version' stands twice"):
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
    said = "The ids of `person` are those of the source"
    for scale, kept in ((1, True), (2, False)):
        generate(model, tmp_path / str(scale), scale=scale, seed=1)
        assert (said in (tmp_path / str(scale) / "README.md").read_text()) == kept


def test_the_readme_says_what_orphans_mean(folder: Path, tmp_path: Path) -> None:
    model = copy.copy(load_model(folder / "model"))
    model.receipt["public"].update(orphans="null", orphans_note="Keys to missing rows were counted as NULL.")
    generate(model, tmp_path / "b", seed=1)
    assert "Keys to missing rows were counted as NULL." in (tmp_path / "b" / "README.md").read_text()
