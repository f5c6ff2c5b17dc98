"""Made databases for workloads: one on disk, to be fitted, and a tiny model written down number by number."""

import datetime as dt
import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privbench.io.base import arrow_schema
from privbench.io.ddl import parse_ddl
from privbench.methods.method import TableModel
from privbench.model.model import Model
from privbench.schema.spec import Spec
from privbench.spn.count_links import DegreeLink, SlotLink
from privbench.spn.feature_names import COMPONENT
from privbench.spn.nodes import Leaf, Node, Product, Sum

DDL = """CREATE TABLE town (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL);
CREATE TABLE person (id INTEGER PRIMARY KEY, town_id INTEGER REFERENCES town, age SMALLINT, wage DECIMAL(9, 2),
  job VARCHAR, mail VARCHAR(40), born DATE);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER NOT NULL REFERENCES person, cost INTEGER, kind VARCHAR);
CREATE TABLE pet (person_id INTEGER REFERENCES person, weight DOUBLE);
CREATE TABLE note (visit_id INTEGER NOT NULL REFERENCES visit, stars TINYINT);"""
PEOPLE, VISITS, PETS, NOTES = 400, 1200, 300, 2000


def write_source(folder: Path) -> Path:
    """A database of five tables; persons are the entities, towns are public, some pets have no owner."""
    rng = np.random.default_rng(5)
    folder.mkdir()
    (folder / "schema.sql").write_text(DDL)
    busy = rng.pareto(1.5, PEOPLE) + 0.1
    owners = rng.choice(PEOPLE, VISITS, p=busy / busy.sum())
    pets = rng.choice(PEOPLE, PETS, p=busy / busy.sum())
    jobs = ["clerk", "cook", "nurse", "pilot"]
    tables = {
        "town": {"id": [10, 20, 30], "name": ["Aa", "Ab", "B"]},
        "person": {
            "id": [1000 + 7 * i for i in range(PEOPLE)],
            "town_id": [None if t == 0 else int(10 * t) for t in rng.choice(4, PEOPLE, p=[0.1, 0.5, 0.3, 0.1])],
            "age": rng.integers(18, 90, PEOPLE).tolist(),
            "wage": [round(float(w), 2) for w in rng.lognormal(7, 1, PEOPLE)],
            "job": [None if i % 11 == 0 else jobs[i % 4] for i in range(PEOPLE)],
            "mail": [f"secret.person.{i}@example.org" for i in range(PEOPLE)],
            "born": [dt.date(1950, 1, 1) + dt.timedelta(int(d)) for d in rng.integers(0, 18000, PEOPLE)],
        },
        "visit": {
            "id": list(range(50, 50 + VISITS)),
            "person_id": [1000 + 7 * int(o) for o in owners],
            "cost": rng.integers(1, 5000, VISITS).tolist(),
            "kind": ["a" if o % 2 else "b" for o in owners],
        },
        "pet": {
            "person_id": [None if i % 5 == 0 else 1000 + 7 * int(o) for i, o in enumerate(pets)],
            "weight": rng.normal(10, 3, PETS).round(1).tolist(),
        },
        "note": {
            "visit_id": rng.integers(50, 50 + VISITS, NOTES).tolist(),
            "stars": rng.integers(1, 6, NOTES).tolist(),
        },
    }
    for table in parse_ddl(DDL, where="schema.sql").tables:
        content = tables[table.name]
        if table.name == "person":
            content["wage"] = pa.array(content["wage"]).cast(pa.decimal128(9, 2), safe=False)
        pq.write_table(pa.table(content, schema=arrow_schema(table)), folder / f"{table.name}.parquet")
    return folder


TINY = {
    "unit": "person",
    "tables": {
        "town": {
            "public": True,
            "key": ["id"],
            "columns": {"id": {"type": "INTEGER"}, "name": {"type": "VARCHAR"}},
        },
        "person": {
            "key": ["id"],
            "foreign_keys": [{"columns": ["town_id"], "table": "town", "references": ["id"]}],
            "columns": {
                "id": {"type": "INTEGER"},
                "town_id": {"type": "INTEGER"},
                "age": {"type": "SMALLINT", "domain": {"range": [1, 2]}, "null": False},
            },
        },
        "visit": {
            "key": ["id"],
            "foreign_keys": [{"columns": ["person_id"], "table": "person", "references": ["id"]}],
            "columns": {
                "id": {"type": "INTEGER"},
                "person_id": {"type": "INTEGER", "null": False},
                "cost": {"type": "INTEGER", "domain": {"bins": [0, 4, 10]}, "null": True},
            },
        },
        "pet": {
            "foreign_keys": [{"columns": ["person_id"], "table": "person", "references": ["id"]}],
            "columns": {
                "person_id": {"type": "INTEGER", "null": True},
                "kind": {"type": "VARCHAR", "domain": {"values": ["ca", "co", "d"]}, "null": False},
            },
        },
        "note": {
            "foreign_keys": [{"columns": ["visit_id"], "table": "visit", "references": ["id"]}],
            "columns": {
                "visit_id": {"type": "INTEGER", "null": True},
                "stars": {"type": "TINYINT", "domain": {"range": [1, 2]}, "null": False},
            },
        },
    },
}


def tiny_model() -> Model:
    """Three persons, four visits, two pets and five notes, with parts that go with certain persons."""
    spec = Spec.model_validate(TINY)
    towns = pa.table({"id": pa.array([7, 8], pa.int32()), "name": ["x", "y"]})
    public = io.BytesIO()
    pq.write_table(towns, public, compression="none")
    tables = {
        "person": _table(3, {"age": [[1.0, 3.0]]}, {"person.town_id": SlotLink(counts=np.array([[1.0, 2.0, 3.0]]))}),
        "visit": _table(
            4,
            {"cost": [[3.0, 1.0, 0.0], [1.0, 2.0, 5.0]]},
            {"visit.person_id": SlotLink(counts=np.array([[0.0, 4.0, 1.0, 0.0], [0.0, 1.0, 1.0, 2.0]]))},
        ),
        "pet": _table(
            2,
            {"kind": [[1.0, 1.0, 2.0], [5.0, 0.0, 1.0]]},
            {"pet.person_id": SlotLink(counts=np.array([[1.0, 2.0, 0.0, 1.0], [1.0, 0.0, 3.0, 0.0]]))},
        ),
        "note": _table(
            5,
            {"stars": [[1.0, 4.0]]},
            {"note.visit_id": DegreeLink(counts=np.array([1.0, 2.0, 1.0]), null_share=0.2)},
        ),
    }
    caps = {name: {"rows_per_entity": 50} for name in tables}
    receipt = {"unit": {"tables": caps}}
    return Model(spec=spec, tables=tables, public={"town": public.getvalue()}, entity_keys=None, receipt=receipt)


def _table(rows: float, columns: dict[str, list[list[float]]], links: dict[str, object]) -> TableModel:
    parts = len(next(iter(columns.values())))
    network: Node = Sum(
        children=tuple(_part(p, parts, columns) for p in range(parts)),
        weights=np.arange(1, parts + 1) / (parts * (parts + 1) / 2),
    )
    return TableModel(network=network, rows=rows, links=links)  # type: ignore[arg-type]


def _part(part: int, parts: int, columns: dict[str, list[list[float]]]) -> Node:
    leaves = [Leaf(column=c, counts=np.array(counts[part])) for c, counts in columns.items()]
    return Product(children=(Leaf(column=COMPONENT, counts=np.eye(parts)[part]), *leaves))
