"""Models with links that stand in networks, written down by hand: keys of every kind, two and three levels."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from privbench.methods.method import TableModel
from privbench.model.model import Model
from privbench.schema.spec import Spec
from privbench.spn.block_link import BlockLink
from privbench.spn.clique import CliqueTree, Conditional, Given
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.fanouts import RANK_EDGES, fanout_edges, size_edges
from privbench.spn.feature_names import (
    RANK,
    STRATUM,
    in_degree_column,
    key_column,
    null_column,
    owner_column,
    rows_column,
)
from privbench.spn.link import LinkModel
from privbench.spn.reference_link import Rates, ReferenceLink

Columns = Sequence[tuple[str, int, str | None]]
"""Name, codes, parent."""

INTEGER = {"type": "INTEGER"}
SPEC: dict[str, Any] = {
    "unit": "person",
    "tables": {
        "town": {"public": True, "key": ["id"], "columns": {"id": INTEGER, "name": {"type": "VARCHAR"}}},
        "person": {
            "key": ["id"],
            "foreign_keys": [
                {"columns": ["town_id"], "table": "town", "references": ["id"]},
                {"columns": ["boss_id"], "table": "person", "references": ["id"]},
            ],
            "columns": {
                "id": INTEGER,
                "town_id": INTEGER,
                "boss_id": INTEGER,
                "age": {"type": "INTEGER", "domain": {"range": [1, 5]}, "null": False},
            },
        },
        "visit": {
            "key": ["id"],
            "foreign_keys": [
                {"columns": ["person_id"], "table": "person", "references": ["id"]},
                {"columns": ["guest_id"], "table": "person", "references": ["id"]},
            ],
            "owner": ["person_id"],
            "columns": {
                "id": INTEGER,
                "person_id": {"type": "INTEGER", "null": False},
                "guest_id": INTEGER,
                "cost": {"type": "INTEGER", "domain": {"bins": [0, 4, 10]}, "null": True},
            },
        },
        "note": {
            "foreign_keys": [{"columns": ["visit_id"], "table": "visit", "references": ["id"]}],
            "columns": {
                "visit_id": INTEGER,
                "stars": {"type": "INTEGER", "domain": {"range": [1, 3]}, "null": False},
            },
        },
        "passport": {
            "key": ["person_id"],
            "foreign_keys": [{"columns": ["person_id"], "table": "person", "references": ["id"]}],
            "columns": {
                "person_id": {"type": "INTEGER", "null": False},
                "valid": {"type": "BOOLEAN", "null": False},
            },
        },
        "season": {
            "key": ["person_id", "year"],
            "foreign_keys": [{"columns": ["person_id"], "table": "person", "references": ["id"]}],
            "columns": {
                "person_id": {"type": "INTEGER", "null": False},
                "year": {"type": "INTEGER", "domain": {"range": [1990, 1993]}, "null": False},
            },
        },
        "game": {
            "foreign_keys": [
                {"columns": ["person_id", "year"], "table": "season", "references": ["person_id", "year"]}
            ],
            "columns": {
                "person_id": {"type": "INTEGER", "null": False},
                "year": {"type": "INTEGER", "null": False},
                "won": {"type": "BOOLEAN", "null": False},
            },
        },
    },
}
TOWNS = 6


def network(columns: Columns, *, given: Mapping[str, int] | None = None, seed: int = 0) -> CliqueTree:
    """A tree of columns with a parent each; those given may be parents. Its tables are drawn, and far from even."""
    rng = np.random.default_rng(seed)
    sizes = {name: codes for name, codes, _ in columns} | dict(given or {})
    made = [
        Conditional(
            column=name,
            bins=np.arange(codes),
            counts=rng.dirichlet(np.full(codes, 2.0)),
            parents=() if parent is None else (parent,),
            factors=() if parent is None else (rng.dirichlet(np.full(codes, 0.5), sizes[parent]),),
        )
        for name, codes, parent in columns
    ]
    if not given:
        return CliqueTree(columns=tuple(made))
    contexts = np.stack([rng.integers(0, codes, 50) for codes in given.values()], axis=1)
    return CliqueTree(
        columns=tuple(made),
        given=tuple(Given(column=name, bins=np.arange(codes)) for name, codes in given.items()),
        contexts=contexts,
        weights=np.full(50, 1 / 50),
    )


VISITS, NOTES, SEASONS, GAMES = fanout_edges(12), fanout_edges(3), fanout_edges(6), fanout_edges(2)
BOSSES, GUESTS = fanout_edges(20), fanout_edges(8)


def _bins(edges: np.ndarray) -> int:
    return len(edges) - 1


def tables(persons: float = 500, *, unowned: float = 40) -> dict[str, TableModel]:
    """What is released of each private table of the spec."""
    person = network(
        [
            ("age", 5, None),
            (key_column("person.town_id"), 4, "age"),
            (rows_column("visit.person_id"), _bins(VISITS), "age"),
            (rows_column("passport.person_id"), 3, "age"),
            (rows_column("season.person_id"), _bins(SEASONS), "age"),
            (in_degree_column("visit.guest_id"), _bins(GUESTS), "age"),
            (in_degree_column("person.boss_id"), _bins(BOSSES), "age"),
            (null_column("person.boss_id"), 2, "age"),
        ]
    )
    visit = network(
        [
            ("cost", 3, owner_column("age")),
            (null_column("visit.guest_id"), 2, RANK),
            (rows_column("note.visit_id"), 4, "cost"),
        ],
        given={owner_column("age"): 6, RANK: len(RANK_EDGES) - 1, STRATUM: len(size_edges()) - 1},
        seed=1,
    )
    note = network([("stars", 3, owner_column("cost"))], given={owner_column("cost"): 4}, seed=2)
    passport = network([("valid", 2, owner_column("age"))], given={owner_column("age"): 6}, seed=3)
    season = network(
        [("year", 4, RANK), (rows_column("game.person_id,year"), _bins(GAMES), "year")],
        given={RANK: len(RANK_EDGES) - 1},
        seed=4,
    )
    game = network([("won", 2, owner_column("year"))], given={owner_column("year"): 5}, seed=5)

    def children(link: str, edges: np.ndarray, alone: float = 0.0) -> dict[str, LinkModel]:
        return {link: FanoutLink(column=rows_column(link), edges=edges, exponent=1.5, unowned=alone)}

    boss = ReferenceLink(
        column=in_degree_column("person.boss_id"),
        edges=BOSSES,
        exponent=1.0,
        null=null_column("person.boss_id"),
        uncounted=Rates(more=0.5),
    )
    guest = ReferenceLink(
        column=in_degree_column("visit.guest_id"),
        edges=GUESTS,
        exponent=1.0,
        null=null_column("visit.guest_id"),
        uncounted=Rates(shape=0.5, more=2.0),
    )
    town = BlockLink(column=key_column("person.town_id"), blocks=3, slots=TOWNS)
    links: dict[str, dict[str, LinkModel]] = {
        "person": {"person.town_id": town, "person.boss_id": boss},
        "visit": children("visit.person_id", VISITS) | {"visit.guest_id": guest},
        "note": children("note.visit_id", NOTES, unowned),
        "passport": children("passport.person_id", np.array([0, 1, 2, 4])),
        "season": children("season.person_id", SEASONS),
        "game": children("game.person_id,year", GAMES),
    }
    networks = {"person": person, "visit": visit, "note": note, "passport": passport, "season": season, "game": game}
    ratio = {"person": 1.0, "visit": 5.7, "note": 4.8, "passport": 0.62, "season": 2.5, "game": 2.1}
    rows = {name: persons * each for name, each in ratio.items()}
    rows["note"] += unowned
    return {name: TableModel(network=networks[name], rows=rows[name], links=links[name]) for name in networks}


def made(
    spec: dict[str, Any] | None = None, models: dict[str, TableModel] | None = None, *, towns: int = TOWNS
) -> Model:
    """A model of these parts, with a receipt that says as much as a bundle needs."""
    parsed = Spec.model_validate(spec or SPEC)
    public = io.BytesIO()
    pq.write_table(
        pa.table({"id": pa.array(range(10, 10 + towns), pa.int32()), "name": ["x"] * towns}), public, compression="none"
    )
    models = tables() if models is None else models
    return Model(
        spec=parsed,
        tables=models,
        public={"town": public.getvalue()} if "town" in parsed.tables else {},
        entity_keys=None,
        receipt={
            "unit": {"entity": parsed.unit, "tables": {name: {"rows_per_entity": None} for name in models}},
            "neighbours": "replace",
            "epsilon": "1/1",
            "delta": "0/1",
            "stamp": None,
            "condition": None,
            "references": {"note": None, "keys": []},
            "inside": {"note": None, "keys": []},
            "public": {"orphans_note": None},
        },
    )
