"""Names of tables and columns on the command line match without regard to case, if only one does."""

from pathlib import Path

import pytest

import privbench
from privbench.errors import SpecError
from privbench.schema.choices import Choices
from privbench.schema.tables import Column, Schema, Table
from privbench.schema.types import parse_type

from .conftest import Run


def _drafted(run: Run, shop: Path, *flags: str) -> privbench.Spec:
    out = shop.parent / "drafted.yaml"
    result = run("draft", shop, "--domains", "data", *flags, "-o", out, "--force")
    assert result.code == 0, result.err
    return privbench.read_spec(out)


def test_unit_owner_and_columns(run: Run, shop: Path) -> None:
    spec = _drafted(run, shop, "--unit", "PERSON", "--owner", "Visit.Person_ID", "--drop", "visit.COST,Person.City")
    assert spec.unit == "person"
    assert spec.tables["visit"].owner == ("person_id",)
    assert spec.column("visit", "cost").drop
    assert spec.column("person", "city").drop


def test_tables_that_are_public_or_dropped(run: Run, shop: Path) -> None:
    assert _drafted(run, shop, "--unit", "Person", "--drop", "VISIT").tables["visit"].drop
    assert _drafted(run, shop, "--unit", "Person", "--public", "Visit").tables["visit"].public


def test_lookups(run: Run, shop: Path) -> None:
    assert _drafted(run, shop, "--unit", "VISIT", "--owned-by", "PERSON=Visit").tables["person"].owned_by == "visit"


def test_rows_and_trees(run: Run, spec: Path, tmp_path: Path) -> None:
    assert "person" in run("fit", spec, "--epsilon", "9", "--dry-run", "--rows", "PERSON=60").out
    assert run("fit", spec, "--epsilon", "9", "-o", tmp_path / "m").code == 0
    assert run("show", tmp_path / "m", "--tree", "Visit").out == run("show", tmp_path / "m", "--tree", "visit").out
    model = privbench.load_model(tmp_path / "m")
    share = privbench.selectivity(model, "person", {"age": privbench.Between(high=20)})
    assert privbench.selectivity(model, "PERSON", {"Age": privbench.Between(high=20)}) == share


def _table(name: str, *columns: str) -> Table:
    return Table(name=name, columns=tuple(Column(name=c, type=parse_type("INTEGER")) for c in columns))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"unit": "ITEM"}, "--unit ITEM: several have that name but for case. Say which: item, Item."),
        ({"public": ["ITEM"]}, "--public ITEM: several"),
        ({"drop": ["ITEM"]}, "--drop ITEM: several"),
        ({"lookups": {"shop": "ITEM"}}, "--owned-by ITEM: several"),
        ({"owners": {"SHOP": ("KEY",)}}, r"--owner shop: KEY: several .* Say which: key, Key\."),
        ({"drop_columns": [("SHOP", "KEY")]}, "--drop shop: KEY: several"),
    ],
)
def test_the_choices_are_listed(words: dict[str, object], message: str) -> None:
    schema = Schema(tables=(_table("item", "a"), _table("Item", "a"), _table("shop", "key", "Key")))
    nothing = {"unit": None, "public": (), "drop": (), "drop_columns": (), "owners": {}, "lookups": {}, "made_up": {}}
    with pytest.raises(SpecError, match=message):
        Choices(**{**nothing, **words}).spelled(schema)  # type: ignore[arg-type]
    exact = Choices(**{**nothing, "unit": "Item", "drop_columns": [("shop", "Key")]})  # type: ignore[arg-type]
    assert exact.spelled(schema).unit == "Item"
    assert exact.spelled(schema).drop_columns == (("shop", "Key"),)
