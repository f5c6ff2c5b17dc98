"""Keys in unusual places: cycles, unique reference keys, natural keys, public tables that name entities."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privbench.errors import ModelError, SchemaError
from privbench.generation import blocks
from privbench.methods.method import TableModel
from privbench.model.check import check_model
from privbench.model.model import Model
from privbench.model.order import generation_order
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.fanouts import fanout_edges
from privbench.spn.feature_names import (
    COMPONENT,
    in_degree_column,
    null_column,
    own_column,
    owner_column,
    public_column,
    rows_column,
)
from privbench.spn.nodes import Leaf
from privbench.spn.reference_link import ReferenceLink

from ..tree_models import INTEGER, made, network
from .test_tree_rows import number, opened

EDGES = fanout_edges(5)


def table(key: list[str], foreign: list[tuple[str, str]], **columns: Any) -> dict[str, Any]:
    keys = [{"columns": [c], "table": t, "references": ["id"]} for c, t in foreign]
    return {"key": key, "foreign_keys": keys, "columns": columns}


def cycle(*, unique: bool = False) -> Model:
    """Persons with a favourite note, which is of a visit of a person: named before it is made."""
    person = table(["id"], [("best_id", "note")], id=INTEGER, best_id=INTEGER)
    visit = table(["id"], [("person_id", "person")], id=INTEGER, person_id={"type": "INTEGER", "null": False})
    note = table(["id"], [("visit_id", "visit")], id=INTEGER, visit_id={"type": "INTEGER", "null": False})
    person["unique"] = [["best_id"]] if unique else []
    spec = {"unit": "person", "tables": {"person": person, "visit": visit, "note": note}}
    for name, column in (("visit", "person_id"), ("note", "visit_id")):
        spec["tables"][name]["owner"] = [column]  # type: ignore[index]
    best = ReferenceLink(column=None, null=null_column("person.best_id"))

    def children(link: str) -> FanoutLink:
        return FanoutLink(column=rows_column(link), edges=EDGES, exponent=1.0, unowned=0.0)

    bins = len(EDGES) - 1
    models = {
        "person": TableModel(
            network=network([(null_column("person.best_id"), 2, None), (rows_column("visit.person_id"), bins, None)]),
            rows=300,
            links={"person.best_id": best},
        ),
        "visit": TableModel(
            network=network([(rows_column("note.visit_id"), bins, None)]),
            rows=900,
            links={"visit.person_id": children("visit.person_id")},
        ),
        "note": TableModel(
            network=Leaf(column=COMPONENT, counts=np.ones(1)),
            rows=700,
            links={"note.visit_id": children("note.visit_id")},
        ),
    }
    return made(spec, models)


@pytest.mark.parametrize("scale", [0.01, 1, 3])
def test_a_table_named_before_it_is_made_keeps_its_promise(
    scale: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 100)
    model = cycle()
    check_model(model)
    base = opened(model, tmp_path / "out", scale=scale)
    for name, rows in (("person", 300), ("visit", 900), ("note", 700)):
        assert number(base, f"SELECT count(*) FROM {name}") == round(rows * scale)
    orphans = "SELECT count(*) FROM person WHERE best_id NOT IN (SELECT id FROM note)"
    assert number(base, orphans) == 0
    named = number(base, "SELECT count(best_id) FROM person")
    nulls = number(base, "SELECT count(*) FROM person WHERE best_id IS NULL")
    assert named + nulls == round(300 * scale)
    assert scale < 1 or (named > 0 and nulls > 0)
    assert number(base, "SELECT count(DISTINCT best_id) FROM person") > 0.8 * named


def test_owners_come_first_or_not_at_all() -> None:
    """A cycle through a key that must be looked up can be made with counts, not where rows come with their owners."""
    person = table(["id"], [], id=INTEGER, best=INTEGER)
    person["foreign_keys"] = [{"columns": ["best"], "table": "visit", "references": ["code"]}]
    visit = table(["id"], [("person_id", "person")], id=INTEGER, person_id=INTEGER)
    visit["columns"]["code"] = {"type": "INTEGER", "domain": {"serial": True}, "null": False}
    visit |= {"unique": [["code"]], "owner": ["person_id"]}
    model = made({"unit": "person", "tables": {"person": person, "visit": visit}}, {})
    assert generation_order(model.spec, model.protection) == ("visit", "person")
    with pytest.raises(SchemaError, match="cycle"):
        generation_order(model.spec, model.protection, owners_first=True)


@pytest.mark.parametrize("block", [50, 65_536])
def test_a_unique_reference_key(block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is named at most once, rows with an in-degree first; and a unique key to the table's own rows."""
    monkeypatch.setattr(blocks, "BLOCK_ROWS", block)
    person = table(["id"], [("twin_id", "person")], id=INTEGER, twin_id=INTEGER)
    person["unique"] = [["twin_id"]]
    person["columns"]["kind"] = {"type": "INTEGER", "domain": {"range": [1, 2]}, "null": False}
    visit = table(["id"], [("person_id", "person"), ("guide_id", "person")], id=INTEGER, person_id=INTEGER)
    visit["columns"]["guide_id"] = INTEGER
    visit |= {"unique": [["guide_id"]], "owner": ["person_id"]}
    sizes = [("kind", 2, None), (rows_column("visit.person_id"), 2, None), (null_column("person.twin_id"), 2, None)]
    tree = network(
        [*sizes, (in_degree_column("visit.guide_id"), 2, "kind"), (in_degree_column("person.twin_id"), 2, None)]
    )
    twin = ReferenceLink(
        column=in_degree_column("person.twin_id"), edges=fanout_edges(1), exponent=0, null=null_column("person.twin_id")
    )
    guide = ReferenceLink(
        column=in_degree_column("visit.guide_id"), edges=fanout_edges(1), exponent=0, null=null_column("visit.guide_id")
    )
    children = FanoutLink(column=rows_column("visit.person_id"), edges=fanout_edges(1), exponent=0, unowned=20)
    models = {
        "person": TableModel(network=tree, rows=1000, links={"person.twin_id": twin}),
        "visit": TableModel(
            network=network([(null_column("visit.guide_id"), 2, None)]),
            rows=500,
            links={"visit.person_id": children, "visit.guide_id": guide},
        ),
    }
    model = made({"unit": "person", "tables": {"person": person, "visit": visit}}, models)
    check_model(model)
    base = opened(model, tmp_path / "out")
    for holder, key in (("visit", "guide_id"), ("person", "twin_id")):
        assert number(base, f"SELECT count({key}) FROM {holder}") > 50
        assert number(base, f"SELECT count({key}) - count(DISTINCT {key}) FROM {holder}") == 0
        assert number(base, f"SELECT count(*) FROM {holder} WHERE {key} NOT IN (SELECT id FROM person)") == 0


def test_public_tables_say_how_often_entities_are_named(tmp_path: Path) -> None:
    """With their ids kept, entities are drawn by the number of public rows that name them."""
    person = table(["id"], [], id=INTEGER, kind={"type": "INTEGER", "domain": {"range": [1, 2]}, "null": False})
    press = table(["id"], [("person_id", "person")], id=INTEGER, person_id=INTEGER) | {"public": True}
    spec = {"unit": "person", "tables": {"person": person, "press": press}}
    tree = network([("kind", 2, public_column("press.person_id"))], given={public_column("press.person_id"): 3})
    certain = replace(tree.columns[0], factors=(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]),))
    models = {"person": TableModel(network=replace(tree, columns=(certain,)), rows=100)}
    ids = pa.table({"id": pa.array(range(1000, 1100), pa.int32())})
    named = [1000 + i for i in range(0, 100, 7) for _ in range(1 + i % 3)]
    content = pa.table({"id": pa.array(range(len(named)), pa.int32()), "person_id": pa.array(named, pa.int32())})
    buffer = io.BytesIO()
    pq.write_table(content, buffer, compression="none")
    model = replace(made(spec, models), public={"press": buffer.getvalue()}, entity_keys=ids)
    base = opened(model, tmp_path / "out")
    kinds = base.execute("SELECT id, kind FROM person ORDER BY id").fetchall()
    assert kinds == [(1000 + i, 2 if i % 7 == 0 else 1) for i in range(100)]
    check_model(model)


def test_entities_without_columns_of_their_own(tmp_path: Path) -> None:
    """Of an entity table with nothing but its key, too, fanouts are carried on."""
    visit = table(["id"], [("person_id", "person")], id=INTEGER, person_id={"type": "INTEGER", "null": False})
    spec = {"unit": "person", "tables": {"person": table(["id"], [], id=INTEGER), "visit": visit}}
    children = FanoutLink(column=rows_column("visit.person_id"), edges=np.array([2, 3]), exponent=0.0, unowned=0.0)
    models = {
        "person": TableModel(network=network([(rows_column("visit.person_id"), 1, None)]), rows=50),
        "visit": TableModel(
            network=Leaf(column=COMPONENT, counts=np.ones(1)), rows=100, links={"visit.person_id": children}
        ),
    }
    base = opened(made(spec, models), tmp_path / "out")
    assert number(base, "SELECT min(n) * 1000 + max(n) FROM (SELECT count(*) n FROM visit GROUP BY person_id)") == 2002
    assert number(base, "SELECT count(*) FROM visit") == 100


def test_a_reference_from_a_table_of_another_owner(tmp_path: Path) -> None:
    """What a table asks of its owner is not asked of the other tables that it names."""
    required = {"type": "INTEGER", "null": False}
    visit = table(["id"], [("person_id", "person")], id=INTEGER, person_id=required)
    visit["columns"]["cost"] = {"type": "INTEGER", "domain": {"range": [1, 3]}, "null": False}
    note = table([], [("visit_id", "visit"), ("author_id", "person")], visit_id=required, author_id=INTEGER)
    note["owner"] = ["visit_id"]
    note["columns"]["stars"] = {"type": "INTEGER", "domain": {"range": [1, 2]}, "null": False}
    spec = {"unit": "person", "tables": {"person": table(["id"], [], id=INTEGER), "visit": visit, "note": note}}
    bins = len(EDGES) - 1

    def children(link: str) -> FanoutLink:
        return FanoutLink(column=rows_column(link), edges=EDGES, exponent=1.0, unowned=0.0)

    author = ReferenceLink(
        column=in_degree_column("note.author_id"), edges=EDGES, exponent=1.0, null=null_column("note.author_id")
    )
    people = [(rows_column("visit.person_id"), bins, None), (in_degree_column("note.author_id"), bins, None)]
    visits = [("cost", 3, None), (rows_column("note.visit_id"), bins, "cost")]
    notes = network(
        [("stars", 2, owner_column("cost")), (null_column("note.author_id"), 2, None)], given={owner_column("cost"): 4}
    )
    models = {
        "person": TableModel(network=network(people), rows=200),
        "visit": TableModel(network=network(visits), rows=500, links={"visit.person_id": children("visit.person_id")}),
        "note": TableModel(
            network=notes, rows=900, links={"note.visit_id": children("note.visit_id"), "note.author_id": author}
        ),
    }
    model = made(spec, models)
    check_model(model)
    base = opened(model, tmp_path / "out")
    assert number(base, "SELECT count(*) FROM note WHERE author_id NOT IN (SELECT id FROM person)") == 0
    assert number(base, "SELECT count(DISTINCT author_id) FROM note") > 50


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("unowned", [0.0, 60.0])
def test_keys_to_the_row_above_follow_owners(*, nullable: bool, unowned: float, tmp_path: Path) -> None:
    """Through two tables; rows without a row above reference any."""
    required = {"type": "INTEGER", "null": False}
    visit = table(["id"], [("person_id", "person")], id=INTEGER, person_id=INTEGER)
    note = table(["id"], [("visit_id", "visit"), ("author_id", "person")], id=INTEGER, visit_id=required)
    note["columns"]["author_id"] = {"type": "INTEGER", "null": nullable}
    note["owner"] = ["visit_id"]
    spec = {"unit": "person", "tables": {"person": table(["id"], [], id=INTEGER), "visit": visit, "note": note}}
    visits = FanoutLink(column=rows_column("visit.person_id"), edges=EDGES, exponent=1.0, unowned=unowned)
    notes = FanoutLink(column=rows_column("note.visit_id"), edges=EDGES, exponent=1.0, unowned=0.0)
    column, own, bins = in_degree_column("note.author_id"), own_column("note.author_id"), len(EDGES) - 1
    author = ReferenceLink(column=column, edges=EDGES, exponent=1.0, null=None, own=own)
    model = made(
        spec,
        {
            "person": TableModel(
                network=network([(rows_column("visit.person_id"), bins, None), (column, bins, None)]), rows=200
            ),
            "visit": TableModel(
                network=network([(rows_column("note.visit_id"), bins, None)]),
                rows=500,
                links={"visit.person_id": visits},
            ),
            "note": TableModel(
                network=Leaf(column=own, counts=np.array([30.0, 60.0, 10.0][: 2 + nullable])),
                rows=900,
                links={"note.visit_id": notes, "note.author_id": author},
            ),
        },
    )
    check_model(model)
    base = opened(model, tmp_path / "out")
    joined = "FROM note JOIN visit ON visit_id = visit.id"
    above = number(base, f"SELECT count(*) {joined} WHERE author_id = person_id")
    owned = number(base, f"SELECT count(*) {joined} WHERE person_id IS NOT NULL")
    assert 0.55 < above / owned < 0.75
    assert number(base, f"SELECT count(*) {joined} WHERE person_id IS NULL AND author_id IS NULL") <= 20
    nulls = number(base, "SELECT count(*) FROM note WHERE author_id IS NULL")
    assert nulls > 0 if nullable else nulls == 0
    assert number(base, f"SELECT count(*) {joined} WHERE person_id IS NULL") > 0 or not unowned


def test_a_row_above_that_is_not_there_is_refused() -> None:
    spec = {"unit": "person", "tables": {"person": table(["id"], [("best_id", "person")], id=INTEGER, best_id=INTEGER)}}
    best = ReferenceLink(column=None, null=None, own=own_column("person.best_id"))
    people = network([(own_column("person.best_id"), 3, None)])
    model = made(spec, {"person": TableModel(network=people, rows=10, links={"person.best_id": best})})
    with pytest.raises(ModelError, match="row above that there is not"):
        check_model(model)
