"""The plan of method `tree` against what a fit then does: noise, amounts, choices, refusals."""

from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import privbench
from privbench.errors import BudgetError, SpecError
from privbench.fitting.fit import fit
from privbench.methods.forecast import Outlook, TableForecast
from privbench.methods.tree.settings import TreeSettings, tree_settings
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.queries import ENTITY_WEIGHT

DDL = """CREATE TABLE person (id INTEGER PRIMARY KEY, city SMALLINT NOT NULL, age SMALLINT NOT NULL);
CREATE TABLE visit (
    id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person (id), cost SMALLINT NOT NULL
);"""


@pytest.fixture
def clinic(tmp_path: Path) -> Path:
    """Persons with two visits each."""
    folder = tmp_path / "clinic"
    folder.mkdir()
    (folder / "schema.sql").write_text(DDL)
    (folder / "person.csv").write_text("id,city,age\n" + "".join(f"{i},{i % 3},{i % 50}\n" for i in range(600)))
    (folder / "visit.csv").write_text("id,person_id,cost\n" + "".join(f"{i},{i // 2},{i % 7}\n" for i in range(1200)))
    return folder


def draft(folder: Path, **choices: str) -> privbench.Spec:
    return privbench.draft(folder, unit=choices.pop("unit", "person"), domains="data", **choices)


class NoEntropy:
    """Nothing may be drawn."""

    private = True

    def words(self, count: int) -> NDArray[np.uint64]:
        raise AssertionError(f"{count} words were drawn")


@pytest.fixture
def hospital(tmp_path: Path) -> Path:
    """Persons who may name another, visits that may have nobody, and a public table of wards."""
    folder = tmp_path / "hospital"
    folder.mkdir()
    (folder / "schema.sql").write_text(
        """CREATE TABLE person (id INTEGER PRIMARY KEY, city SMALLINT, friend INTEGER REFERENCES person (id));
        CREATE TABLE ward (id INTEGER PRIMARY KEY, beds SMALLINT);
        CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES person (id),
        ward_id INTEGER NOT NULL REFERENCES ward (id), cost SMALLINT NOT NULL);"""
    )
    people = "".join(f"{i},{i % 3},{i - 1 if i % 2 else ''}\n" for i in range(600))
    visits = "".join(f"{i},{i // 2 if i % 5 else ''},{i % 4},{i % 7}\n" for i in range(1200))
    (folder / "person.csv").write_text("id,city,friend\n" + people)
    (folder / "ward.csv").write_text("id,beds\n" + "".join(f"{i},9\n" for i in range(4)))
    (folder / "visit.csv").write_text("id,person_id,ward_id,cost\n" + visits)
    return folder


@pytest.mark.parametrize("delta", ["0", "1e-9"])
@pytest.mark.parametrize("epsilon", ["1", "20"])
@pytest.mark.parametrize("shape", ["clinic", "hospital"])
def test_the_noise_is_that_of_the_fit(shape: str, epsilon: str, delta: str, request: pytest.FixtureRequest) -> None:
    public = ["ward"] if shape == "hospital" else []
    drafted = privbench.draft(request.getfixturevalue(shape), unit="person", domains="data", public=public)
    spec = drafted.model_copy(update={"method": {"name": "tree", "strata": False}})
    rows = {"person": 600, "visit": 1200, **dict.fromkeys(public, 4)}
    plan = privbench.plan(spec, epsilon=epsilon, delta=delta, rows=rows)
    model = fit(spec, epsilon=epsilon, delta=delta, entropy=FixedEntropy(1))
    unowned = {"kind": "null key", "link": {"table": "visit", "columns": ["person_id"], "target": "person"}}
    drawn: dict[str, list[float]] = {"person": [], "visit": []}
    for node in model.receipt["ledger"]["nodes"]:
        axes = node.get("query", {}).get("axes", ())
        if len(axes) == 1 and axes[0]["feature"] != unowned:
            deviation = float(Fraction(node["scale"]) / ENTITY_WEIGHT) * (1 if delta != "0" else sqrt(2))
            drawn[node["query"]["table"]].append(deviation)
    assert [table.table for table in plan.tables] == ["person", "visit"]
    for table in plan.tables:
        noise = [column.noise for column in table.columns]
        assert noise
        # A table whose rows need not be counted has a little more for its columns than was planned.
        within = 1e-6 if table.table == "person" else 0.1
        assert noise == pytest.approx(drawn[table.table][: len(noise)], rel=within)


def test_no_table_spends_more_than_the_plan_says(clinic: Path) -> None:
    spec = draft(clinic)
    plan = privbench.plan(spec, epsilon=9, rows={"person": 600})
    nodes = fit(spec, epsilon=9, entropy=FixedEntropy(2)).receipt["ledger"]["nodes"]
    spent = {node["label"]: Fraction(node["total"]) for node in nodes if node.get("parent") == 0 and "total" in node}
    for table in plan.tables:
        assert 0.9 * table.amount < spent[f"table {table.table}"] <= table.amount
    assert sum(table.amount for table in plan.tables) <= plan.budget == Fraction(9, 2)


def test_nothing_is_opened(clinic: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = draft(clinic)
    clinic.rename(clinic.parent / "away")
    monkeypatch.setattr("privbench.io.open.open_source", None)
    plan = privbench.plan(spec, epsilon=1)
    assert plan.assumed == ("person", "visit")
    assert plan.rows == {"person": 10_000, "visit": 10_000}


def outlooks(spec: privbench.Spec, people: int) -> TableForecast:
    return privbench.plan(spec, epsilon=1, rows={"person": people}).tables[0]


def test_more_entities_see_more(clinic: Path) -> None:
    spec = draft(clinic)
    needs = outlooks(spec, 1000)
    assert outlooks(spec, needs.singles_from // 2).outlook is Outlook.NOISE
    assert outlooks(spec, needs.singles_from + 1).outlook is Outlook.SINGLES
    assert outlooks(spec, needs.pairs_from // 2).outlook is Outlook.SINGLES
    enough = outlooks(spec, needs.pairs_from + 1)
    assert enough.outlook is Outlook.PAIRS
    assert enough.pairs is not None
    more = outlooks(spec, 10 * needs.pairs_from).pairs
    assert more is not None
    assert more.least_dependence < enough.pairs.least_dependence <= enough.pairs.dependence


def pair_of_columns(folder: Path, dependence: float, people: int) -> Path:
    """Two columns of two codes, each even, whose table is so far from independence."""
    folder.mkdir()
    (folder / "schema.sql").write_text(
        "CREATE TABLE person (id INTEGER PRIMARY KEY, a SMALLINT NOT NULL, b SMALLINT NOT NULL);"
    )
    same = round(people * (0.5 + dependence))
    lines = (f"{i},{i % 2},{i % 2 if i < same else 1 - i % 2}\n" for i in range(people))
    (folder / "person.csv").write_text("id,a,b\n" + "".join(lines))
    return folder


def test_dependence_is_seen_where_the_plan_says(tmp_path: Path) -> None:
    people, found = 2000, []
    spec = draft(pair_of_columns(tmp_path / "none", 0.0, people))
    pairs = privbench.plan(spec, epsilon=1, rows={"person": people}).tables[0].pairs
    assert pairs is not None
    assert pairs.cells == 4
    for dependence in (0.0, pairs.least_dependence):
        source = pair_of_columns(tmp_path / f"{dependence}", dependence, people)
        chosen = 0
        for seed in range(12):
            model = fit(spec, source=source, epsilon=1, entropy=FixedEntropy(seed))
            chosen += any(len(n.get("query", {}).get("axes", ())) == 2 for n in model.receipt["ledger"]["nodes"])
        found.append(chosen)
    assert found[0] <= 6
    assert found[1] >= 11


def test_a_hopeless_fit_is_refused_before_anything_is_drawn(clinic: Path) -> None:
    spec = draft(clinic)
    reason = privbench.plan(spec, epsilon="0.001", rows={"person": 600}).refusal
    assert reason is not None
    with pytest.raises(BudgetError) as refused:
        fit(spec, epsilon="0.001", entropy=NoEntropy())
    assert str(refused.value) == reason
    assert "nothing at all could be learnt" in reason
    assert privbench.plan(spec, epsilon="0.001").refusal is None, "the number of entities is only assumed"
    assert privbench.plan(spec, epsilon="1", rows={"person": 600}).refusal is None


def test_also_where_domains_are_to_be_found(clinic: Path) -> None:
    spec = privbench.draft(clinic, unit="person", domains="private")
    plan = privbench.plan(spec, epsilon="0.001", rows={"person": 600})
    assert plan.domains is not None
    assert plan.domains.columns == ("person.city", "person.age", "visit.cost")
    assert plan.refusal
    assert "found with little budget" in plan.warnings[-1]
    assert float(plan.domains.amount + sum(t.amount for t in plan.tables)) == pytest.approx(float(plan.budget))
    with pytest.raises(BudgetError, match="nothing at all"):
        fit(spec, epsilon="0.001", entropy=NoEntropy())


def test_also_where_entities_come_and_go(clinic: Path) -> None:
    spec = draft(clinic).model_copy(update={"neighbours": privbench.Neighbours.ADD_REMOVE})
    plan = privbench.plan(spec, epsilon=1, rows={"person": 600})
    assert float(sum(table.amount for table in plan.tables)) == pytest.approx(0.99)
    with pytest.raises(BudgetError, match="nothing at all"):
        fit(spec, epsilon="0.001", entropy=FixedEntropy(4))
    with pytest.raises(AssertionError, match="were drawn"):  # not before the private number of entities was drawn
        fit(spec, epsilon="0.0004", entropy=NoEntropy())


def test_the_least_epsilon_is_refused_in_words(clinic: Path) -> None:
    with pytest.raises(BudgetError, match="epsilon"):
        privbench.plan(draft(clinic), epsilon="0.000001")
    with pytest.raises(BudgetError, match="epsilon"):
        fit(draft(clinic), epsilon="0.000001", entropy=NoEntropy())


def test_an_empty_database_is_not_refused(clinic: Path) -> None:
    spec = draft(clinic)
    (clinic / "person.csv").write_text("id,city,age\n")
    (clinic / "visit.csv").write_text("id,person_id,cost\n")
    assert fit(spec, epsilon=1, entropy=FixedEntropy(1)).tables["person"].rows == 0


def test_a_table_may_get_more(clinic: Path) -> None:
    spec = draft(clinic)
    visit = spec.tables["visit"].model_copy(update={"budget": 3})
    richer = spec.model_copy(update={"tables": {**spec.tables, "visit": visit}})
    usual, more = (privbench.plan(s, epsilon=1).tables for s in (spec, richer))
    total = usual[1].amount + usual[0].amount - sum(t.amount for t in more)
    assert float(total) == pytest.approx(0)
    ratio = (more[1].amount / more[0].amount) / (usual[1].amount / usual[0].amount)
    assert 2.8 < float(ratio) <= 3  # what counts the rows of a table is the same for all
    privbench.write_spec(richer, clinic / "spec.yaml")
    assert privbench.read_spec(clinic / "spec.yaml").tables["visit"].budget == 3
    with pytest.raises(SpecError, match=r"tables\.visit\.budget: method paper divides the budget by itself"):
        fit(richer, epsilon=1, method="paper")


def with_settings(spec: privbench.Spec, **settings: object) -> TableForecast:
    method = {"name": "tree", **settings}
    return privbench.plan(spec.model_copy(update={"method": method}), epsilon=5, rows={"person": 50_000}).tables[0]


def test_settings_go_before_what_is_automatic(clinic: Path) -> None:
    spec = draft(clinic)
    assert with_settings(spec, single_share=0.6, choice_share=0.2).settings["single_share"] == 0.6
    assert with_settings(spec, single_share=0.6, choice_share=0.2).settings["choice_share"] == 0.2
    alone = with_settings(spec, single_share=1)
    assert (alone.pairs, alone.outlook, alone.settings["choice_share"]) == (None, Outlook.SINGLES, 0)
    little = with_settings(spec, choice_share=0.5).settings
    assert little["single_share"] <= 0.4
    assert with_settings(spec, parents=2, bins=7).settings["bins"] == 7


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"single_share": 1.5}, "single_share is 1.5"),
        ({"single_share": -0.1}, "single_share is -0.1"),
        ({"choice_share": 0.6}, "choice_share is 0.6: it must lie above 0, at most 0.5"),
        ({"single_share": 0.9}, "add up to 0.95: they must leave at least 0.1"),
        ({"single_share": 0.6, "choice_share": 0.35}, "add up to 0.95"),
        ({"strata": 1}, "strata is 1: it must be of type bool"),
        ({"parents": 9}, "parents is 9"),
        ({"bins": 1}, "bins is 1"),
    ],
)
def test_settings_that_make_no_sense(declared: dict[str, object], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        tree_settings(declared)


def test_settings_are_automatic() -> None:
    assert tree_settings({}) == TreeSettings()


def test_methods_that_do_not_plan_ahead_say_so(clinic: Path) -> None:
    with pytest.raises(SpecError, match=r"method paper cannot show a plan.*Only `--method tree`"):
        privbench.plan(draft(clinic), epsilon=1, method="paper")


@pytest.mark.parametrize(
    ("rows", "said"),
    [({"persn": 3}, "rows of 'persn'.*Did you mean person"), ({"person": -1}, "-1"), ({"person": 2.5}, "2.5")],
)
def test_rows_that_make_no_sense(clinic: Path, rows: dict[str, int], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        privbench.plan(draft(clinic), epsilon=1, rows=rows)


def test_more_rows_cost_more(clinic: Path) -> None:
    spec = draft(clinic)
    small, large = (privbench.plan(spec, epsilon=1, rows={"person": n, "visit": 2 * n}) for n in (10_000, 10_000_000))
    assert large.seconds > 5 * small.seconds
    assert large.megabytes > 5 * small.megabytes
