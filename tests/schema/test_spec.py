from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from privbench.errors import SchemaError, SpecError, TargetError
from privbench.schema.computed import ComputedOrigin
from privbench.schema.domain import Bins, Origin, Range, Serial, Text, Values
from privbench.schema.expression import Expression
from privbench.schema.release import Release
from privbench.schema.spec import Orphans, Sizes, Spec, read_spec, write_spec
from privbench.schema.table_spec import ColumnSpec, ForeignKeySpec, IndexSpec, TableSpec
from privbench.schema.unit import Neighbours, Role

SHOP = """
version: 1
source: shop.duckdb
unit: Customer
neighbours: add-remove
sizes: public
orphans: "null"
method: {name: paper, alpha: 0.5, as_published: true}
tables:
  Customer:
    key: [CustomerId]
    unique: [[Email]]
    indexes: {by_age: {columns: [Age]}}
    foreign_keys: [{columns: [Rep], table: Employee, references: [Id]}]
    columns:
      CustomerId: {type: INTEGER, null: false}
      Email: {type: VARCHAR, domain: {text: [0, 8, 16]}, from: data}
      Age: {type: SMALLINT, domain: {range: [0, 120]}}
      Vip: {type: BOOLEAN, null: false}
      Photo: {type: BLOB, drop: true}
      Rep: {type: INTEGER}
  Invoice:
    key: [Id]
    foreign_keys: [{columns: [Who], table: Customer, references: [CustomerId]}]
    owner: [Who]
    rows_per_entity: 12
    columns:
      Id: {type: INTEGER}
      Who: {type: INTEGER}
      Day: {type: DATE, domain: {bins: [2020-01-01, 2021-01-01], step: 1d}, from: schema}
  Employee:
    public: true
    key: [Id]
    columns: {Id: {type: INTEGER}, Name: {type: VARCHAR}}
  Log: {drop: true}
"""


def read(tmp_path: Path, text: str) -> Spec:
    path = tmp_path / "spec.yaml"
    path.write_text(text, encoding="utf-8")
    return read_spec(path)


def test_a_whole_spec(tmp_path: Path) -> None:
    spec = read(tmp_path, SHOP)
    assert (spec.unit, spec.neighbours, spec.sizes, spec.orphans) == (
        "Customer",
        Neighbours.ADD_REMOVE,
        Sizes.PUBLIC,
        Orphans.NULL,
    )
    assert spec.method == {"name": "paper", "alpha": 0.5, "as_published": True}
    schema = spec.schema()
    assert [t.name for t in schema.tables] == ["Customer", "Invoice", "Employee"]
    assert [c.name for c in schema.table("Customer").columns] == ["CustomerId", "Email", "Age", "Vip", "Rep"]
    assert schema.table("Invoice").column("Day").implied == Bins(bins=("2020-01-01", "2021-01-01"), step="1d")
    assert schema.table("Customer").column("Age").implied is None
    assert spec.column("Customer", "Email").origin is Origin.DATA
    protection = spec.protection()
    assert protection.roles["Employee"] is Role.PUBLIC
    assert protection.order == ("Customer", "Invoice")


def test_attributes(tmp_path: Path) -> None:
    spec = read(tmp_path, SHOP)
    assert spec.attributes("Customer") == ("Email", "Age", "Vip")
    assert spec.attributes("Invoice") == ("Day",)
    assert spec.attributes("Employee") == spec.attributes("Log") == ()
    with pytest.raises(SpecError, match="Did you mean Invoice"):
        spec.attributes("Invoce")
    with pytest.raises(SpecError, match=r"Customer\.Agee: .* Did you mean Age\?"):
        spec.column("Customer", "Agee")


def test_defaults(tmp_path: Path) -> None:
    spec = read(tmp_path, "tables: {t: {columns: {a: {type: BOOLEAN}}}}")
    assert spec == Spec(tables={"t": TableSpec(columns={"a": ColumnSpec(type="BOOLEAN")})})
    assert (spec.version, spec.neighbours, spec.sizes, spec.orphans) == (
        1,
        Neighbours.REPLACE,
        Sizes.MEASURED,
        Orphans.ERROR,
    )
    assert spec.protection().entity == "t"


def test_missing_domains_are_named_at_once() -> None:
    def spec(origin: Origin) -> Spec:
        kinds = {"id": "INTEGER", "a": "DATE", "b": "VARCHAR", "c": "BOOLEAN"}
        columns = {name: ColumnSpec(type=kind, origin=origin) for name, kind in kinds.items()}
        return Spec(unit="t", tables={"t": TableSpec(key=("id",), columns=columns)})

    with pytest.raises(SpecError, match=r"no domain for t\.a, t\.b\."):
        spec(Origin.DATA).protection()
    for origin in (Origin.DECLARED, Origin.PRIVATE):
        left = spec(origin)
        assert left.wanted(left.protection()) == (("t", "a"), ("t", "b"))
        assert left.origins(left.protection()) == {
            ("t", "a"): Origin.PRIVATE,
            ("t", "b"): Origin.PRIVATE,
            ("t", "c"): Origin.SCHEMA,
        }


def test_private_is_a_domain_of_the_file(tmp_path: Path) -> None:
    spec = read(tmp_path, "tables: {t: {columns: {a: {type: DATE, domain: private}}}}")
    assert spec.column("t", "a") == ColumnSpec(type="DATE", origin=Origin.PRIVATE)
    write_spec(spec, tmp_path / "again.yaml")
    assert "domain: private}" in (tmp_path / "again.yaml").read_text()
    assert read_spec(tmp_path / "again.yaml") == spec
    with pytest.raises(SpecError, match=r"line 1, tables\.t\.columns\.a: `domain: private` .* take `from` out"):
        read(tmp_path, "tables: {t: {columns: {a: {type: DATE, domain: private, from: data}}}}")


@pytest.mark.parametrize("domain", [Range(range=(0, 9)), Values(values=("x",)), Text(text=(0, 9), distinct=3)])
def test_a_unique_column_must_not_repeat(domain: Any) -> None:
    def spec(domain: Any) -> Spec:
        return Spec(tables={"t": TableSpec(unique=(("a",),), columns={"a": ColumnSpec(type="INTEGER", domain=domain)})})

    with pytest.raises(SpecError, match=r"t\.a: a UNIQUE column"):
        spec(domain).protection()
    assert spec(Serial()).protection().order == ("t",)


def test_dropping_in_a_spec_needs_no_columns_of_the_dropped_table() -> None:
    key = ForeignKeySpec(columns=("g",), table="gone", references=("id",))
    columns = {"id": ColumnSpec(type="INTEGER"), "g": ColumnSpec(type="INTEGER")}
    spec = Spec(
        tables={"gone": TableSpec(drop=True), "t": TableSpec(key=("id",), columns=columns, foreign_keys=(key,))}
    )
    assert [c.name for c in spec.schema().table("t").columns] == ["id"]
    cut = Spec(tables={"gone": TableSpec(drop=True), "t": TableSpec(key=("g",), columns=columns, foreign_keys=(key,))})
    with pytest.raises(SchemaError, match=r"t\.g: .* part of the primary key"):
        cut.schema()


def test_the_written_file_is_for_people(tmp_path: Path) -> None:
    spec = read(tmp_path, SHOP)
    write_spec(spec, tmp_path / "out.yaml")
    text = (tmp_path / "out.yaml").read_text(encoding="utf-8")
    lines = [line.strip() for line in text.splitlines()]
    place = lines.index("# taken from the data: by keeping it you declare it public")
    assert lines[place + 1] == "Email: {type: VARCHAR, null: true, domain: {text: [0, 8, 16]}, from: data}"
    assert text.count("taken from the data") == 1
    assert 'orphans: "null"' in lines
    assert "owner: [Who]" in lines
    assert read_spec(tmp_path / "out.yaml") == spec


def test_writing_is_careful(tmp_path: Path) -> None:
    spec = Spec(tables={"t": TableSpec(columns={"a": ColumnSpec(type="BOOLEAN")})})
    path = tmp_path / "spec.yaml"
    path.write_text("mine")
    with pytest.raises(TargetError, match="--force"):
        write_spec(spec, path)
    assert path.read_text() == "mine"
    write_spec(spec, path, force=True)
    assert read_spec(path) == spec
    with pytest.raises(TargetError, match="cannot be written"):
        write_spec(spec, tmp_path / "no" / "spec.yaml")
    (tmp_path / "folder").mkdir()
    with pytest.raises(TargetError, match="cannot be written"):
        write_spec(spec, tmp_path / "folder", force=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder", "spec.yaml"]


STRANGE = [
    "a: b",
    "it's",
    'say "x"',
    "line\nbreak",
    "null",
    "true",
    "1",
    "select",
    "日本語",
    "#",
    "- x",
    "<bins>",
    "*",
    "\x00",
]
names = st.one_of(st.sampled_from(STRANGE), st.text(min_size=1, max_size=12))
scalars = st.one_of(
    names, st.booleans(), st.integers(-(10**30), 10**30), st.floats(allow_nan=False, allow_infinity=False)
)
domains = st.one_of(
    st.builds(Range, range=st.tuples(scalars, scalars), step=st.one_of(st.none(), scalars)),
    st.builds(
        Bins, bins=st.lists(scalars, min_size=2, max_size=90).map(tuple), heavy_hitters=st.lists(scalars).map(tuple)
    ),
    st.builds(Values, values=st.lists(scalars, min_size=1, unique_by=str).map(tuple), other=st.booleans()),
    st.builds(
        Text, text=st.lists(st.integers(0, 99), min_size=2).map(tuple), distinct=st.one_of(st.none(), st.just(3))
    ),
    st.just(Serial()),
)
types = st.sampled_from(["INTEGER", "DECIMAL(10,2)", "timestamp with time zone"])
RELEASES = tuple(
    Release(receipt=sign * 64, epsilon="16/5", delta="1/1000000000", neighbours=Neighbours.REPLACE) for sign in "1e"
)
digests = st.sampled_from([release.receipt for release in RELEASES])
columns = st.one_of(
    st.builds(
        ColumnSpec,
        type=types,
        null=st.booleans(),
        domain=st.one_of(st.none(), domains),
        origin=st.sampled_from([origin for origin in Origin if origin is not Origin.EARLIER]),
        drop=st.booleans(),
    ),
    st.builds(ColumnSpec, type=types, domain=domains, origin=st.just(Origin.EARLIER), release=digests),
    st.builds(
        ColumnSpec,
        type=types,
        computed=st.just(Expression(sql="ROW_NUMBER()")),
        computed_origin=st.just(ComputedOrigin.EARLIER),
        release=digests,
    ),
)


@st.composite
def tables(draw: st.DrawFn) -> TableSpec:
    held = draw(st.dictionaries(names, columns, min_size=1, max_size=4))
    some = st.lists(st.sampled_from(sorted(held)), min_size=1, unique=True).map(tuple)
    return TableSpec(
        key=draw(some),
        unique=draw(st.lists(some, max_size=2).map(tuple)),
        indexes=draw(st.dictionaries(names, st.builds(IndexSpec, columns=some, unique=st.booleans()), max_size=2)),
        rows_per_entity=draw(st.one_of(st.none(), st.integers(1, 99))),
        order=draw(st.one_of(st.none(), some)),
        owned_by=None,
        columns=held,
    )


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    held = draw(st.dictionaries(names, tables(), max_size=3))
    linked = {}
    for name, table in held.items():
        target = draw(st.sampled_from(sorted(held)))
        width = len(held[target].key)
        keys: tuple[ForeignKeySpec, ...] = ()
        if width <= len(table.columns):
            chosen = tuple(list(table.columns)[:width])
            keys = (ForeignKeySpec(columns=chosen, table=target, references=held[target].key),)
        linked[name] = table.model_copy(update={"foreign_keys": keys, "owner": keys[0].columns if keys else None})
    return Spec(
        source=draw(st.one_of(st.none(), names)),
        neighbours=draw(st.sampled_from(Neighbours)),
        sizes=draw(st.sampled_from(Sizes)),
        orphans=draw(st.sampled_from(Orphans)),
        strict_references=draw(st.booleans()),
        method=draw(st.dictionaries(names, scalars, max_size=3)),
        releases=RELEASES,
        tables=linked,
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(spec=specs())
def test_reading_gives_back_what_was_written(tmp_path: Path, spec: Spec) -> None:
    path = tmp_path / "spec.yaml"
    write_spec(spec, path, force=True)
    again = read_spec(path)
    assert again == spec
    assert repr(again) == repr(spec)  # 1, 1.0 and True are equal, but not the same
