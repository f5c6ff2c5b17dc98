from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.errors import PrivBenchError, SchemaError, SpecError
from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import parse_type
from privbench.schema.unit import LinkKind, Neighbours, Protection, Role, protect

Db = Callable[..., Schema]
SHOP = (
    "customer: id*",
    "invoice: id* customer_id>customer",
    "line: id* invoice_id>invoice track_id>track",
    "track: id*",
)


def kinds(protection: Protection) -> dict[str, str]:
    return {f"{link.table}.{'+'.join(link.key.columns)}": link.kind.value for link in protection.links}


def roles(protection: Protection) -> Mapping[str, str]:
    return {table: role.value for table, role in protection.roles.items()}


def refused(schema: Schema, kind: type[PrivBenchError] = SpecError, **choices: Any) -> str:
    with pytest.raises(kind) as caught:
        protect(schema, **{"entity": None, **choices})
    return str(caught.value)


def test_a_chain_with_a_public_table(db: Db) -> None:
    found = protect(db(*SHOP), entity="customer", public=["track"])
    assert roles(found) == {"customer": "entity", "invoice": "owned", "line": "owned", "track": "public"}
    assert found.order == ("customer", "invoice", "line")
    assert {t: k.columns for t, k in found.owners.items()} == {"invoice": ("customer_id",), "line": ("invoice_id",)}
    assert kinds(found) == {
        "invoice.customer_id": "owner",
        "line.invoice_id": "owner",
        "line.track_id": "category",
    }
    assert found.neighbours is Neighbours.REPLACE


def test_attributes_are_those_of_private_tables(db: Db) -> None:
    found = protect(db("a: id* x", "b: id* y"), entity="a", public=["b"])
    assert (found.attributes("a"), found.attributes("b")) == (("x",), ())


def test_one_table_is_its_own_entity(db: Db) -> None:
    found = protect(db("adult: age sex"), entity=None)
    assert (found.entity, found.order, found.links) == ("adult", ("adult",), ())


def test_the_unit_is_asked_for_with_the_choices(db: Db) -> None:
    assert refused(db(*SHOP)).splitlines()[1:] == [
        "  `--unit customer`   reached by 2 of 3 other tables",
        "  `--unit invoice`   reached by 1 of 3 other tables",
        "  `--unit track`   reached by 1 of 3 other tables",
        "  `--unit line`   reached by 0 of 3 other tables",
    ]


def test_no_primary_key_at_all_is_said(db: Db) -> None:
    assert "No table has a primary key" in refused(db("a: x", "b: y"))


def test_an_unknown_unit_gets_the_nearest_name(db: Db) -> None:
    assert "Did you mean customer?" in refused(db(*SHOP), entity="Custmer")


def test_a_diamond_asks_for_the_owner(db: Db) -> None:
    diamond = db("p: id*", "a: id* p_id>p", "b: id* p_id>p", "c: id* a_id>a b_id>b")
    message = refused(diamond, entity="p")
    assert "`--owner c.a_id`" in message
    assert "`--owner c.b_id`" in message
    assert "owner: [COLUMN]" in message
    found = protect(diamond, entity="p", owners={"c": ("b_id",)})
    assert kinds(found)["c.a_id"] == "reference"
    assert found.owners["c"].table == "b"
    assert found.order == ("p", "a", "b", "c")


def test_the_direct_key_wins_over_a_longer_path(db: Db) -> None:
    found = protect(db("p: id*", "rental: id* p_id>p", "payment: id* rental_id>rental p_id>p"), entity="p")
    assert found.owners["payment"].columns == ("p_id",)
    assert kinds(found)["payment.rental_id"] == "reference"


def test_two_keys_into_the_entity_are_asked_for(db: Db) -> None:
    transfer = db("account: id*", "transfer: id* from_id>account to_id>account", "note: id* t>transfer")
    message = refused(transfer, entity="account")
    assert "--owner transfer.from_id" in message
    assert "--owner transfer.to_id" in message
    assert "note" not in message
    found = protect(transfer, entity="account", owners={"transfer": ("to_id",)})
    assert kinds(found) == {"transfer.from_id": "reference", "transfer.to_id": "owner", "note.t": "owner"}


def test_every_key_that_leads_to_the_entity_is_a_choice(db: Db) -> None:
    schema = db("p: id*", "a: id* p_id>p", "b: id* x>p y>p a_id>a")
    message = refused(schema, entity="p")
    assert all(f"--owner b.{column}" in message for column in ("x", "y", "a_id"))


def test_self_references_are_references(db: Db) -> None:
    found = protect(db("e: id* boss>e", "task: id* e_id>e parent>task"), entity="e")
    assert kinds(found) == {"e.boss": "reference", "task.e_id": "owner", "task.parent": "reference"}
    message = refused(found.schema, SchemaError, entity="e", owners={"task": ("parent",)})
    assert "task -> task" in message


def test_a_cycle_is_cut_by_the_way_that_leads_out(db: Db) -> None:
    found = protect(db("p: id*", "staff: id* store_id>store p_id>p", "store: id* boss>staff"), entity="p")
    assert kinds(found) == {"staff.store_id": "reference", "staff.p_id": "owner", "store.boss": "owner"}
    deeper = db("p: id*", "c: id* p_id>p", "a: id* c_id>c b_id>b", "b: id* a_id>a")
    assert {t: k.table for t, k in protect(deeper, entity="p").owners.items()} == {"c": "p", "a": "c", "b": "a"}


def test_declared_owner_keys_in_a_cycle_are_refused(db: Db) -> None:
    schema = db("p: id*", "a: id* b_id>b p_id>p", "b: id* a_id>a p_id>p")
    message = refused(schema, SchemaError, entity="p", owners={"a": ("b_id",), "b": ("a_id",)})
    assert "owner keys form a cycle: a -> b -> a" in message
    assert protect(schema, entity="p", owners={"a": ("b_id",)}).order == ("p", "b", "a")


def test_tables_that_do_not_reach_the_entity_are_named_at_once(db: Db) -> None:
    schema = db("p: id* city>city", "city: id* land>land", "land: id*", "log: x")
    message = refused(schema, entity="p")
    for text in ["city (referenced by p)", "land (referenced by city)", "log (referenced by no table)"]:
        assert text in message
    for way in ["--public T", "--drop T", "--owned-by T=OWNER", "public: true", "drop: true", "owned_by: OWNER"]:
        assert way in message


def test_lookups_belong_to_the_row_that_references_them(db: Db) -> None:
    schema = db("customer: id* a>address", "address: id* c>city", "city: id*", "pet: id* o>customer")
    found = protect(schema, entity="customer", lookups={"address": "customer", "city": "address"})
    assert roles(found) == {"customer": "entity", "address": "lookup", "city": "lookup", "pet": "owned"}
    assert found.lookups["address"] == ("customer", schema.table("customer").foreign_keys[0])
    assert found.order == ("customer", "address", "pet", "city")
    assert set(kinds(found).values()) == {"reference", "owner"}
    assert kinds(found)["pet.o"] == "owner"


def test_a_lookup_needs_exactly_one_key_from_its_owner(db: Db) -> None:
    two = db("c: id* home>address work>address", "address: id*", "d: id* c_id>c")
    message = refused(two, entity="c", lookups={"address": "c"})
    assert "c has 2 keys into address: (home) -> address(id); (work) -> address(id)" in message
    message = refused(two, entity="c", lookups={"address": "d"})
    assert "d has no key into address. Private tables that have one: c." in message
    assert "d is public" in refused(two, entity="c", public=["d"], lookups={"address": "d"})
    assert "no key into" in refused(two, entity="c", lookups={"address": "nowhere"})


def test_lookups_in_a_circle_are_refused(db: Db) -> None:
    schema = db("p: id*", "a: id* b_id>b", "b: id* a_id>a")
    assert "a -> b -> a" in refused(schema, SchemaError, entity="p", lookups={"a": "b", "b": "a"})


def test_a_lookup_owns_nothing(db: Db) -> None:
    schema = db("c: id* a>address", "address: id*", "shop: id* a>address")
    assert "shop (referenced by no table)" in refused(schema, entity="c", lookups={"address": "c"})
    message = refused(schema, entity="c", lookups={"address": "c"}, owners={"shop": ("a",)})
    assert "shop.a: named as owner key, but it points at address" in message


def test_only_its_owner_names_a_lookup(db: Db) -> None:
    """Whose copy another key names would depend on who else is there."""
    schema = db("c: id* a>address", "address: id*", "visit: id* c_id>c at>address")
    message = refused(schema, SchemaError, entity="c", lookups={"address": "c"})
    assert "visit: its key" in message
    assert "--drop visit.at" in message


def test_public_tables_may_point_at_private_keys_under_replace_only(db: Db) -> None:
    schema = db("title: id*", "cast: id* movie>title", "kind: id*", "note: id* kind_id>kind")
    found = protect(schema, entity="title", public=["cast", "kind", "note"])
    assert kinds(found) == {"cast.movie": "inbound", "note.kind_id": "copied"}
    message = refused(schema, entity="title", public=["cast", "kind", "note"], neighbours=Neighbours.ADD_REMOVE)
    assert "cast: (movie) -> title(id)" in message
    assert "neighbours: replace" in message


def test_strict_references_names_every_reference(db: Db) -> None:
    schema = db("e: id* boss>e", "t: id* e_id>e up>t")
    message = refused(schema, entity="e", strict_references=True)
    assert "e: (boss) -> e(id); t: (up) -> t(id)" in message
    assert protect(db(*SHOP), entity="customer", public=["track"], strict_references=True).order[0] == "customer"


def test_composite_and_natural_keys(db: Db) -> None:
    schema = db("team: y* t*", "player: id*", "bat: player_id*>player y+t>team.y+t stint*")
    found = protect(schema, entity="player", public=["team"])
    assert kinds(found) == {"bat.player_id": "owner", "bat.y+t": "category"}
    assert found.attributes("bat") == ("stint",)
    message = refused(schema, entity="player", public=["team"], owners={"bat": ("y",)})
    assert "no foreign key of bat. Choices: `--owner bat.player_id`" in message


def test_a_composite_key_in_a_cycle_of_private_tables_is_refused(db: Db) -> None:
    schema = db("p: id*", "a: x* y*>p b_id>b", "b: id* x+y>a.x+y p_id>p")
    message = refused(schema, SchemaError, entity="p")
    assert "b: its key (x, y) -> a(x, y) has several columns and is part of a cycle" in message
    one_way = db("p: id*", "a: x* y*>p", "b: id* x+y>a.x+y p_id>p")
    assert protect(one_way, entity="p").order == ("p", "a", "b")
    loop = db("p: id*", "a: x* y*>p u+v>a.x+y")
    assert "part of a cycle" in refused(loop, SchemaError, entity="p")


def test_keys_that_share_a_column_are_refused_unless_copied(db: Db) -> None:
    schema = db("p: id*", "b: y* t*", "c: y* s*", "a: id* y+t>b.y+t y+s>c.y+s p_id>p")
    message = refused(schema, SchemaError, entity="p", public=["b", "c"])
    assert message.startswith("a.y: two foreign keys share it, (y, t) -> b(y, t) and (y, s) -> c(y, s)")
    assert "`--drop b` or `--drop c`" in message
    assert protect(schema, entity="p", public=["b"], drop=["c"]).order == ("p", "a")
    copied = db("p: id*", "b: y* t*", "c: y* s*", "a: id* y+t>b.y+t y+s>c.y+s")
    assert set(kinds(protect(copied, entity="p", public=["a", "b", "c"])).values()) == {"copied"}


def test_the_entity_needs_a_key_when_it_is_referenced() -> None:
    column = Column(name="code", type=parse_type("VARCHAR"))
    person = Table(name="person", columns=(column,), uniques=(("code",),))
    key = ForeignKey(columns=("code",), table="person", references=("code",))
    visit = Table(name="visit", columns=(column,), foreign_keys=(key,))
    message = refused(Schema(tables=(person, visit)), SchemaError, entity="person")
    assert "person: the unit table is referenced by visit but has no primary key" in message


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"public": ["trak"]}, "--public trak: there is no such table. Did you mean track?"),
        ({"drop": ["x"]}, "--drop x: there is no such table"),
        ({"owners": {"lines": ("a",)}}, "--owner lines"),
        ({"lookups": {"trck": "line"}}, "--owned-by trck"),
        ({"public": ["customer"]}, "--public customer: it is the unit already"),
        ({"drop": ["customer"]}, "--drop customer: it is the unit already"),
        ({"public": ["track"], "drop": ["track"]}, "--drop track: it has --public already"),
        ({"owners": {"customer": ("id",)}}, "--owner customer: it is the unit already"),
        ({"public": ["track"], "owners": {"line": ("track_id",)}}, "which is a public table or a lookup"),
    ],
)
def test_wrong_choices_name_the_flag(db: Db, choices: dict[str, Any], message: str) -> None:
    assert message in refused(db(*SHOP), entity="customer", **choices)


def test_dropping_removes_tables_from_everything(db: Db) -> None:
    found = protect(db(*SHOP), entity="customer", drop=["track"])
    assert [t.name for t in found.schema.tables] == ["customer", "invoice", "line"]
    assert [c.name for c in found.schema.table("line").columns] == ["id", "invoice_id"]
    assert "line.track_id" not in kinds(found)


def test_flags_are_ready_for_a_shell() -> None:
    integer = parse_type("INTEGER")
    p = Table(name="p", columns=(Column(name="id", type=integer),), primary_key=("id",))
    keys = tuple(ForeignKey(columns=(c,), table="p", references=("id",)) for c in ("from who", "to $x"))
    line = Table(
        name="order line", columns=tuple(Column(name=k.columns[0], type=integer) for k in keys), foreign_keys=keys
    )
    message = refused(Schema(tables=(p, line)), entity="p")
    assert "--owner 'order line.from who'" in message
    assert "--owner 'order line.to $x'" in message


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    count = draw(st.integers(1, 6))
    integer = parse_type("INTEGER")
    tables = []
    for i in range(count):
        targets = draw(st.lists(st.integers(0, count - 1), max_size=3))
        keys = tuple(
            ForeignKey(columns=(f"k{n}",), table=f"t{target}", references=("id",)) for n, target in enumerate(targets)
        )
        names = ["id", *(k.columns[0] for k in keys)]
        tables.append(
            Table(
                name=f"t{i}",
                columns=tuple(Column(name=n, type=integer) for n in names),
                primary_key=("id",),
                foreign_keys=keys,
            )
        )
    return Schema(tables=tuple(tables))


@given(schemas(), st.sets(st.sampled_from([f"t{i}" for i in range(1, 6)])))
def test_what_is_accepted_is_whole(schema: Schema, public: set[str]) -> None:
    public &= {t.name for t in schema.tables}
    try:
        found = protect(schema, entity="t0", public=public)
    except SpecError:
        return
    assert sorted(found.order) == sorted({t.name for t in schema.tables} - public)
    assert found.order[0] == "t0"
    assert set(found.owners) == {t for t, role in found.roles.items() if role is Role.OWNED}
    for table, key in found.owners.items():
        assert found.order.index(key.table) < found.order.index(table)
        assert [link.key for link in found.links if link.table == table and link.kind is LinkKind.OWNER] == [key]
    assert len(found.links) == sum(len(t.foreign_keys) for t in schema.tables)
