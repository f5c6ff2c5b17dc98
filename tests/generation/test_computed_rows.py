"""Computed columns from spec to bundle: equal to what they are computed from in every row, scale and format."""

from pathlib import Path

import pytest

from privbench.encode.predicate import Between, In, IsNull
from privbench.errors import ModelError, SpecError
from privbench.estimation.estimate import cardinality, selectivity
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.fitting.plan import plan
from privbench.generation import blocks
from privbench.generation.generate import generate
from privbench.generation.sizes import most_rows_per_owner
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.receipt_check import verify_model
from privbench.model.verify import verify
from privbench.schema.computed import ComputedOrigin
from privbench.schema.expression import Expression
from privbench.schema.spec import Spec, read_spec, write_spec
from privbench.schema.unit import Neighbours

from ..computed_shop import COMPUTED, SHOPS, check, rows_of, write_source
from ..forging import Header, forged, write_shop
from ..seeded import SeededEntropy


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    source = write_source(tmp_path_factory.mktemp("derived") / "source")
    found = {place: Expression(sql=sql) for place, sql in COMPUTED.items()}
    return draft(source, unit="shop", domains="data").with_computed(found, ComputedOrigin.DECLARED)


@pytest.fixture(scope="module")
def model(spec: Spec) -> Model:
    return fit(spec, epsilon="50", entropy=SeededEntropy())


@pytest.mark.slow
def test_the_data_are_as_declared(spec: Spec) -> None:
    assert spec.source is not None
    check(rows_of(Path(spec.source)))


@pytest.mark.parametrize("form", ["parquet", "csv", "duckdb", "sqlite"])
def test_every_row_of_every_format(model: Model, form: str, tmp_path: Path) -> None:
    rows = generate(model, tmp_path / "out", seed=3, format=form)
    check(rows_of(tmp_path / "out"))
    assert rows["sale"] > SHOPS
    assert rows["line"] > rows["sale"]


@pytest.mark.parametrize("scale", [0.05, 3.0])
def test_every_scale_in_small_blocks(
    model: Model, scale: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 97)
    generate(model, tmp_path / "out", seed=4, scale=scale)
    check(rows_of(tmp_path / "out"))


def test_rows_that_are_sorted_keep_what_is_computed(spec: Spec, tmp_path: Path) -> None:
    sale = spec.tables["sale"].model_copy(update={"order": ("region", "lines")})
    shop = spec.tables["shop"].model_copy(update={"order": ("sales",)})
    ordered = spec.model_copy(update={"tables": {**spec.tables, "sale": sale, "shop": shop}})
    generate(fit(ordered, epsilon="50", entropy=SeededEntropy()), tmp_path / "out", seed=3)
    rows = rows_of(tmp_path / "out")
    check(rows)
    assert [row["sales"] for row in rows["shop"]] == sorted(row["sales"] for row in rows["shop"])


def test_where_entities_come_and_go(spec: Spec, tmp_path: Path) -> None:
    """What is declared holds there, too; nothing is tested, and how many shops there are stays private."""
    free = spec.model_copy(update={"neighbours": Neighbours.ADD_REMOVE})
    model = fit(free, epsilon="50", entropy=SeededEntropy())
    assert verify_model(model).status == "conditional"
    assert model.receipt["public"]["sizes"] == {}
    assert not any("#differs" in node.get("query", "") for node in model.receipt["ledger"]["nodes"])
    for scale in (0.05, 1.0):
        generate(model, tmp_path / f"{scale}", seed=3, scale=scale)
        check(rows_of(tmp_path / f"{scale}"))


def test_an_owner_has_no_more_rows_than_a_rank_can_number(model: Model) -> None:
    """Else rows with the same key would be lost, and who counts them would say too many."""
    assert most_rows_per_owner(model, "line", {"shop": 3, "sale": 9}) == 2**15 - 1


def test_nothing_is_learnt_of_computed_columns(model: Model) -> None:
    for table, column in COMPUTED:
        assert column not in model.codecs[table]
        assert column not in model.tables[table].network.sizes
    asked = [node.get("query", "") for node in model.receipt["ledger"]["nodes"]]
    assert not any("sales" in query or "number" in query or "position" in query for query in asked)


def test_a_model_keeps_what_is_computed(model: Model, tmp_path: Path) -> None:
    save_model(model, tmp_path / "shop.model")
    loaded = load_model(tmp_path / "shop.model")
    assert loaded.spec == model.spec
    assert verify(tmp_path / "shop.model").status == "conditional"  # NOT NULL and lists are from the data
    generate(model, tmp_path / "a", seed=1)
    generate(loaded, tmp_path / "b", seed=1)
    assert rows_of(tmp_path / "a") == rows_of(tmp_path / "b")


def test_estimates_know_computed_columns(model: Model, tmp_path: Path) -> None:
    generate(model, tmp_path / "out", seed=2, scale=20)
    rows = rows_of(tmp_path / "out")
    cases = {
        "shop.sales": Between(low=3),
        "sale.region": In(values=("north",)),
        "sale.number": Between(high=2),
        "sale.opened": IsNull(),
        "line.region": IsNull(),
        "line.lines": In(values=(3,)),
        "line.position": In(values=(1,)),
        "visit.region": In(values=("south", "west")),
    }
    holds = {
        Between(low=3): lambda v: v is not None and v >= 3,
        Between(high=2): lambda v: v is not None and v <= 2,
        IsNull(): lambda v: v is None,
    }
    for place, predicate in cases.items():
        table, column = place.split(".")
        holding = (lambda v, p=predicate: v in p.values) if isinstance(predicate, In) else holds[predicate]
        real = sum(holding(row[column]) for row in rows[table])
        found = cardinality(model, tables={table: table}, filters=[((table, column), predicate)])
        assert found == pytest.approx(real / 20, rel=0.1), place
        assert selectivity(model, table, {column: predicate}) == pytest.approx(real / len(rows[table]), rel=0.1)
    real = sum(line["lines"] == 3 and line["hue"] < 5 for line in rows["line"])
    joined = cardinality(
        model,
        tables={"s": "sale", "l": "line"},
        joins=[(("l", "sale_id"), ("s", "id"))],
        filters=[(("s", "lines"), In(values=(3,))), (("l", "hue"), Between(high=4))],
    )
    assert joined == pytest.approx(real / 20, rel=0.1)


def test_a_spec_file_holds_what_is_computed(spec: Spec, tmp_path: Path) -> None:
    write_spec(spec, tmp_path / "spec.yaml")
    assert read_spec(tmp_path / "spec.yaml") == spec
    assert 'computed: "COUNT(sale.*)"' in (tmp_path / "spec.yaml").read_text()


def test_the_plan_says_what_is_computed(spec: Spec) -> None:
    said = plan(spec, epsilon="50")
    assert said.computed[0] == "shop.sales = COUNT(sale.*)"
    assert len(said.computed) == len(COMPUTED)
    assert not any(column.column == "sales" for table in said.tables for column in table.columns)


def test_other_methods_refuse_computed_columns(spec: Spec) -> None:
    with pytest.raises(SpecError, match=r"tables\.shop\.columns\.sales\.computed: method paper learns every column"):
        fit(spec, epsilon="50", method="paper")


def test_a_forged_count_of_rows_that_do_not_come_with_their_owner_is_refused(spec: Spec, tmp_path: Path) -> None:
    assert spec.source is not None
    plain = draft(spec.source, unit="shop", domains="data", drop_columns=[("shop", "sales")])
    save_model(fit(plain, epsilon="50", method="independent", entropy=SeededEntropy()), tmp_path / "model")

    def change(header: Header) -> None:
        columns = header["spec"]["tables"]["shop"]["columns"]
        columns["sales"] = {"type": "TINYINT", "null": False, "computed": "COUNT(sale.*)"}

    with pytest.raises(ModelError, match="shop: counts rows of sale, which do not come with their owner"):
        load_model(forged(tmp_path / "model", tmp_path / "forged", change))


def test_rows_whose_number_is_promised_cannot_be_counted(tmp_path: Path) -> None:
    source = write_shop(
        tmp_path / "source",
        "CREATE TABLE shop (id INTEGER PRIMARY KEY, best_id INTEGER REFERENCES sale (id), sales SMALLINT);"
        "CREATE TABLE sale (id INTEGER PRIMARY KEY, shop_id INTEGER REFERENCES shop (id), hue SMALLINT);",
        shop="id,best_id,sales\n1,1,1",
        sale="id,shop_id,hue\n1,1,1",
    )
    spec = draft(source, unit="shop").with_computed(
        {("shop", "sales"): Expression(sql="COUNT(sale.*)")}, ComputedOrigin.DECLARED
    )
    with pytest.raises(SpecError, match=r"shop\.columns\.sales\.computed: other tables reference rows of sale before"):
        fit(spec, epsilon="50")
