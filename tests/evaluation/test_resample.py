import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.evaluation.databases import Side, open_pair
from privbench.evaluation.links import find_parents
from privbench.evaluation.resample import Owner, Ownership, find_ownership, resample, write_resample
from privbench.methods.method import silent
from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import parse_type
from privbench.schema.unit import protect

from .conftest import REAL, Make

INTEGER = parse_type("INTEGER")
OWNER = ForeignKey(columns=("boss",), table="boss", references=("id",))
FRIEND = ForeignKey(columns=("friend",), table="boss", references=("id",))
SCHEMA = Schema(
    tables=(
        Table(name="boss", columns=(Column(name="id", type=INTEGER),), primary_key=("id",)),
        Table(
            name="pet",
            columns=tuple(Column(name=n, type=INTEGER) for n in ("boss", "friend")),
            foreign_keys=(OWNER, FRIEND),
        ),
    )
)
OWNERSHIP = Ownership(schema=SCHEMA, owners={"boss": None, "pet": Owner(table="boss", key=OWNER)})


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(-1, 9), st.integers(-1, 9)), max_size=40), st.integers(0, 100))
def test_a_drawn_entity_comes_with_all_its_rows(pets: list[tuple[int, int]], seed: int) -> None:
    boss, friend = (np.array([pet[side] for pet in pets], np.int32) for side in (0, 1))
    links = {("pet", OWNER): boss, ("pet", FRIEND): friend}
    drawn = resample(OWNERSHIP, {"boss": 10, "pet": len(pets)}, links, seed=seed)
    assert len(drawn.rows["boss"]) == 10
    assert (boss[drawn.rows["pet"]] < 0).sum() == (boss < 0).sum()  # rows without an owner, drawn among themselves
    owners = drawn.links["pet", OWNER]
    for copy, source in enumerate(drawn.rows["boss"]):
        mine = drawn.rows["pet"][owners == copy]
        assert sorted(mine) == np.flatnonzero(boss == source).tolist()
    friends = drawn.links["pet", FRIEND]
    was = friend[drawn.rows["pet"]]
    assert ((friends < 0) == (was < 0)).all()
    kept = np.isin(was, drawn.rows["boss"])
    assert (drawn.rows["boss"][friends[kept]] == was[kept]).all()


def test_public_tables_stay_as_they_are() -> None:
    ownership = Ownership(schema=SCHEMA, owners={"pet": None})
    links = {("pet", OWNER): np.array([3, 1, 1]), ("pet", FRIEND): np.array([0, -1, 2])}
    drawn = resample(ownership, {"boss": 4, "pet": 3}, links, seed=1)
    assert drawn.rows["boss"].tolist() == [0, 1, 2, 3]
    assert drawn.links["pet", OWNER].tolist() == links["pet", OWNER][drawn.rows["pet"]].tolist()


def test_without_a_word_on_owners_the_first_key_that_closes_no_circle_counts() -> None:
    boss, pet = SCHEMA.tables
    loop = Table(
        name="boss",
        columns=(*boss.columns, Column(name="best", type=INTEGER)),
        primary_key=("id",),
        foreign_keys=(ForeignKey(columns=("best",), table="boss", references=("id",)),),
    )
    schema = Schema(tables=(loop, pet))
    found = find_ownership(schema, schema, "nowhere", None)
    assert found.owners == {"boss": None, "pet": Owner(table="boss", key=OWNER)}
    assert protect(schema, entity="boss", owners={"pet": ("boss",)}).order == tuple(found.owners)


def test_written_tables_join_as_the_resample_says(make: Make) -> None:
    path = make("real", REAL)
    with open_pair(path, path, silent) as database:
        schema = database.schemas[Side.REAL]
        key = schema.table("sale").foreign_keys[0]
        links = {("sale", key): find_parents(database, Side.REAL, "sale", key)}
        sizes = {"customer": 60, "sale": 200}
        drawn = resample(find_ownership(schema, schema, path, None), sizes, links, seed=4)
        write_resample(database, schema, drawn)
        assert find_parents(database, Side.FLOOR, "sale", key).tolist() == drawn.links["sale", key].tolist()
        [(rows, ids)] = database.rows("SELECT count(*), count(DISTINCT id) FROM floor.customer")
        assert rows == ids == 60
        ages = [age for (age,) in database.rows("SELECT age FROM floor.customer ORDER BY rowid")]
        assert ages == [row % 7 for row in drawn.rows["customer"]]
