"""Relative columns through a whole database: coded, restored, drafted, refused; over random schemas."""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.encode.predicate import Between, IsNull
from privbench.encode.relative import stand_ins
from privbench.errors import SpecError
from privbench.estimation.estimate import cardinality, cardinality_with_error
from privbench.fitting import relative as relative_module
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.fitting.reading import read_database
from privbench.generation.generate import generate
from privbench.generation.relative import RelativeColumns
from privbench.io.open import open_source
from privbench.methods.method import silent
from privbench.model.model import compile_codecs
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.schema.relative import relative_columns
from privbench.schema.spec import Spec, read_spec, write_spec

from ..one_part import only_part

TABLES = ("a", "b", "c")
"""Each owns the next."""
DAYS = {"range": [-40, 40]}


def spec_of(relative: Mapping[tuple[str, str], dict[str, Any]]) -> Spec:
    """Three tables, each with two dates; those named are relative."""
    plain = {"type": "DATE", "domain": {"range": ["2020-01-01", "2020-12-31"]}}
    tables: dict[str, Any] = {}
    for place, name in enumerate(TABLES):
        columns: dict[str, Any] = {"id": {"type": "BIGINT", "null": False}}
        columns |= {c: plain | relative.get((name, c), {}) for c in ("x", "y")}
        tables[name] = {"key": ["id"], "columns": columns}
        if place:
            columns["owner"] = {"type": "BIGINT"}
            key = {"columns": ["owner"], "table": TABLES[place - 1], "references": ["id"]}
            tables[name] |= {"foreign_keys": [key], "owner": ["owner"]}
    return Spec.model_validate({"unit": "a", "tables": tables})


@st.composite
def relations(draw: st.DrawFn) -> dict[tuple[str, str], dict[str, Any]]:
    """Which columns are relative to what, without a circle: a base comes earlier, or is the row before."""
    places = [(table, column) for table in TABLES for column in draw(st.permutations(("x", "y")))]
    chosen: dict[tuple[str, str], dict[str, Any]] = {}
    for at, (table, column) in enumerate(places):
        bases = [p for p in places[:at] if p[1] == "y" or p[0] != table or p in places[:at]]
        words = [f"{t}.{c}" if t != table else c for t, c in bases]
        if table != "a" and not any(t == table and w["relative_to"] == "previous" for (t, _), w in chosen.items()):
            words.append("previous")
        word = draw(st.none() | st.sampled_from(words)) if words else None
        if word == "previous":
            chosen[table, column] = {"relative_to": word, "domain": {"range": [0, 400]}, "first": YEAR}
        elif word is not None:
            chosen[table, column] = {"relative_to": word, "domain": {"range": [-2000, 2000]}}
    return chosen


YEAR = {"range": ["2020-01-01", "2020-12-31"]}
dates = st.none() | st.integers(0, 365).map(lambda n: dt.date(2020, 1, 1) + dt.timedelta(days=n))


@st.composite
def rows(draw: st.DrawFn) -> dict[str, pa.Table]:
    """Rows of the three tables, some without an owner."""
    made, count = {}, 0
    for place, name in enumerate(TABLES):
        owners = [None, *range(count)]
        count = draw(st.integers(1, 6))
        columns = {"id": pa.array(range(count), pa.int64())}
        columns |= {c: pa.array([draw(dates) for _ in range(count)], pa.date32()) for c in ("x", "y")}
        if place:
            columns["owner"] = pa.array([draw(st.sampled_from(owners)) for _ in range(count)], pa.int64())
        made[name] = pa.table(columns)
    return made


def write(folder: Path, tables: Mapping[str, pa.Table]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        pq.write_table(table, folder / f"{name}.parquet")
    return folder


@given(relations(), rows())
@settings(deadline=None)
def test_decoding_the_codes_gives_back_every_value(
    tmp_path_factory: pytest.TempPathFactory, relative: dict[tuple[str, str], dict[str, Any]], data: dict[str, pa.Table]
) -> None:
    spec = spec_of(relative)
    protection = spec.protection()
    codecs = compile_codecs(spec, protection)
    with open_source(write(tmp_path_factory.mktemp("source"), data)) as source:
        read = read_database(
            source, protection, codecs, orphans_as_null=False, null_bases=stand_ins(spec, protection), progress=silent
        )
    private = only_part(read).tables
    model: Any = SimpleNamespace(spec=spec, protection=protection, codecs=codecs)
    restored: dict[str, dict[str, pa.Array]] = {}
    for name in TABLES:
        coded = private[name]
        owners = coded.keys[f"{name}.owner"] if name != "a" else None
        runs = np.arange(len(coded.entities)) if owners is None else np.argsort(owners, kind="stable")
        codes = {c: held[runs] for c, held in coded.codes.items()}
        rng = np.random.default_rng(0)
        columns = RelativeColumns(model, name)
        values = {c: codecs[name][c].decode(codes[c], rng, first_row=0) for c in ("x", "y") if c not in columns}

        def above(table: str, column: str, name: str = name, runs: Any = runs) -> pa.Array:
            at = runs
            for below, owner in zip((name, *protection.above(name)), protection.above(name), strict=False):
                at = np.append(private[below].keys[f"{below}.owner"], -1)[at]
                if owner == table:
                    break
            return restored[table][column].take(pa.array(np.maximum(at, 0), mask=at < 0))

        values |= columns.decoded(codes, rng, None if owners is None else owners[runs], values, above)
        values |= columns.restored(values, above)
        back = np.argsort(runs, kind="stable")
        restored[name] = {c: values[c].take(pa.array(back)) for c in ("x", "y")}
        was = sorted(map(str, zip(data[name]["x"].to_pylist(), data[name]["y"].to_pylist(), strict=True)))
        now = sorted(map(str, zip(*(restored[name][c].to_pylist() for c in ("x", "y")), strict=True)))
        assert now == was


# -- codes of an entity are a function of its own rows -----------------------------------------------------------------

NULL_BASES: dict[str, dict[tuple[str, str], dict[str, Any]]] = {
    "own row": {("b", "y"): {"relative_to": "x", "domain": DAYS}},
    "row above": {("b", "y"): {"relative_to": "a.x", "domain": DAYS}},
    "two above": {("c", "y"): {"relative_to": "a.x", "domain": DAYS}},
    "a difference": {
        ("b", "x"): {"relative_to": "a.x", "domain": DAYS},
        ("c", "y"): {"relative_to": "b.x", "domain": DAYS},
    },
}
"""Relative columns by where their base is."""


def codes_of_the_second(folder: Path, spec: Spec, shift: int) -> dict[str, dict[str, list[int]]]:
    """The codes of three entities' second one, whose bases are NULL, where those of the others are shifted."""
    protection = spec.protection()
    there = dt.date(2020, 6, 1) + dt.timedelta(days=shift)
    columns = {"id": [0, 1, 2], "owner": [0, 1, 2], "x": [there, None, there], "y": [dt.date(2020, 6, 9)] * 3}
    tables = {name: pa.table({c: v for c, v in columns.items() if name != "a" or c != "owner"}) for name in TABLES}
    with open_source(write(folder, tables)) as source:
        null_bases = stand_ins(spec, protection)
        read = read_database(
            source,
            protection,
            compile_codecs(spec, protection),
            orphans_as_null=False,
            null_bases=null_bases,
            progress=silent,
        )
    private = only_part(read).tables
    entity = int(private["a"].entities[1])
    return {
        name: {c: codes[table.entities == entity].tolist() for c, codes in table.codes.items()}
        for name, table in private.items()
    }


@pytest.mark.parametrize("where", NULL_BASES)
def test_what_stands_for_a_null_base_is_nobody_elses(where: str, tmp_path: Path) -> None:
    spec = spec_of(NULL_BASES[where])
    assert codes_of_the_second(tmp_path / "0", spec, 0) == codes_of_the_second(tmp_path / "9", spec, 9)


@pytest.mark.parametrize("fill", [pc.fill_null_forward, pc.fill_null_backward], ids=["the row before", "the next row"])
@pytest.mark.parametrize("where", NULL_BASES)
def test_a_null_base_that_is_taken_from_another_row_is_seen(
    where: str, fill: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = relative_module._differences

    def filled(protection: Any, name: str, column: str, base: Any, private: Any, values: Any, **options: Any) -> Any:
        bases = {table: {c: fill(v) for c, v in held.items()} for table, held in values.items()}
        return code(protection, name, column, base, private, bases, **options)

    monkeypatch.setattr(relative_module, "_differences", filled)
    spec = spec_of(NULL_BASES[where])
    assert codes_of_the_second(tmp_path / "0", spec, 0) != codes_of_the_second(tmp_path / "9", spec, 9)


def shop(folder: Path, people: int = 300) -> Path:
    """Orders of customers and their lines: shipped 1 to 60 days after the order, received 1 to 9 days after that."""
    rng = np.random.default_rng(5)
    first = np.datetime64("2020-01-01")
    orders, lines = people * 4, people * 12
    ordered = first + rng.integers(0, 1000, orders)
    owner = np.sort(rng.integers(0, orders, lines))
    shipped = ordered[owner] + rng.integers(1, 61, lines)
    received = pa.array(shipped + rng.integers(1, 10, lines), mask=rng.random(lines) < 0.1)
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "schema.sql").write_text(
        "CREATE TABLE customer (id BIGINT PRIMARY KEY, age INTEGER NOT NULL CHECK (age BETWEEN 0 AND 9));"
        "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer BIGINT NOT NULL REFERENCES customer (id),"
        " ordered DATE NOT NULL);"
        "CREATE TABLE line (id BIGINT PRIMARY KEY, orders BIGINT NOT NULL REFERENCES orders (id),"
        " shipped DATE NOT NULL, received DATE);"
    )
    return write(
        folder / "src",
        {
            "customer": pa.table({"id": np.arange(people), "age": rng.integers(0, 10, people).astype(np.int32)}),
            "orders": pa.table(
                {"id": np.arange(orders), "customer": np.sort(rng.integers(0, people, orders)), "ordered": ordered}
            ),
            "line": pa.table({"id": np.arange(lines), "orders": owner, "shipped": shipped, "received": received}),
        },
    )


@pytest.fixture(scope="module")
def drafted(tmp_path_factory: pytest.TempPathFactory) -> tuple[Spec, dict[tuple[str, str], str]]:
    notes: dict[tuple[str, str], str] = {}
    spec = draft(shop(tmp_path_factory.mktemp("shop")), unit="customer", domains="data", tell=notes.__setitem__)
    return spec, notes


def test_dates_that_lie_close_are_drafted_as_differences(drafted: tuple[Spec, Any], tmp_path: Path) -> None:
    spec, notes = drafted
    line = spec.tables["line"].columns
    assert (line["shipped"].relative_to, line["received"].relative_to) == ("orders.ordered", "shipped")
    assert line["received"].domain is not None
    assert line["received"].domain.model_dump() == {"range": (1, 9), "step": None}
    assert spec.tables["orders"].columns["ordered"].relative_to is None
    assert "0 of 3,600 values lie before orders.ordered" in notes["line", "shipped"]
    write_spec(spec, tmp_path / "spec.yaml", notes=notes)
    assert notes["line", "shipped"] in (tmp_path / "spec.yaml").read_text()
    assert read_spec(tmp_path / "spec.yaml") == spec
    assert spec.source is not None
    plain = draft(spec.source, unit="customer", domains="data", find=False)
    assert not any(c.relative_to for table in plain.tables.values() for c in table.columns.values())


@pytest.mark.parametrize("method", ["tree", "independent"])
def test_rows_keep_their_order_in_time_and_estimates_agree(
    drafted: tuple[Spec, Any], method: str, tmp_path: Path
) -> None:
    model = fit(drafted[0], epsilon="5", method=method, entropy=FixedEntropy(2))
    generate(model, tmp_path / "out", seed=1)
    line, orders = (pq.read_table(tmp_path / "out" / "data" / f"{t}.parquet").to_pandas() for t in ("line", "orders"))
    joined = line.merge(orders, left_on="orders", right_on="id")
    assert joined.ordered.isna().sum() == 0
    days = (np.array(joined.shipped, "datetime64[D]") - np.array(joined.ordered, "datetime64[D]")).astype(int)
    assert days.min() >= 1
    assert days.max() <= 60
    both = joined.dropna(subset=["received"])
    assert (both.received > both.shipped).all()
    late = Between(low="2021-06-01")
    rows, error = cardinality_with_error(model, tables={"l": "line"}, filters=[(("l", "shipped"), late)])
    real = (line.shipped >= dt.date(2021, 6, 1)).sum()
    assert error is not None
    assert rows == pytest.approx(real, abs=0.1 * len(line))
    exact = cardinality_with_error(model, tables={"l": "line"}, filters=[(("l", "received"), IsNull())])
    assert exact[1] is None
    assert cardinality(model, tables={"o": "orders"}) > 0


def test_domains_of_differences_are_found_with_budget(drafted: tuple[Spec, Any]) -> None:
    data = drafted[0].model_dump(mode="json", by_alias=True)
    for column in ("shipped", "received"):
        data["tables"]["line"]["columns"][column] |= {"domain": "private", "from": "private"}
    model = fit(Spec.model_validate(data), epsilon="200", entropy=FixedEntropy(2))
    low, *_, high = model.codecs["line"]["shipped"].labels()
    assert 0 <= int(low.split(" .. ")[0]) <= 5
    assert 40 <= int(high.split(" .. ")[-1]) <= 127


@pytest.mark.parametrize(
    ("place", "words", "message"),
    [
        (("b", "x"), {"relative_to": "z"}, "there is no column 'z'"),
        (("b", "x"), {"relative_to": "c.x"}, "there is no column 'c.x'"),
        (("b", "x"), {"relative_to": "x"}, "its own base"),
        (("b", "x"), {"relative_to": "owner"}, "is a key"),
        (("a", "x"), {"relative_to": "previous", "first": YEAR}, "rows of a have none"),
        (("b", "x"), {"relative_to": "a.id"}, "is a key"),
    ],
)
def test_bases_that_cannot_be(place: tuple[str, str], words: dict[str, Any], message: str) -> None:
    spec = spec_of({place: {"domain": DAYS, **words}})
    with pytest.raises(SpecError, match=rf"tables\.{place[0]}\.columns\.{place[1]}\.relative_to: .*{message}"):
        spec.protection()


def test_circles_dropped_and_wrongly_typed_bases() -> None:
    circle = spec_of({("b", c): {"domain": DAYS, "relative_to": o} for c, o in (("x", "y"), ("y", "x"))})
    with pytest.raises(SpecError, match="x, y are relative to each other in a circle"):
        circle.protection()
    dropped = spec_of({("b", "x"): {"domain": DAYS, "relative_to": "a.y"}, ("a", "y"): {"drop": True}})
    with pytest.raises(SpecError, match=r"tables.b.columns.x.relative_to: there is no column 'a.y'"):
        dropped.protection()
    typed = {"type": "VARCHAR", "domain": {"values": ["1"]}}
    with pytest.raises(SpecError, match=r"a\.y is VARCHAR"):
        spec_of({("b", "x"): {"domain": DAYS, "relative_to": "a.y"}, ("a", "y"): typed}).protection()
    with pytest.raises(SpecError, match="VARCHAR has no differences"):
        spec_of({("b", "x"): {**typed, "relative_to": "y"}}).protection()
    data = spec_of({("b", "x"): {"domain": DAYS, "relative_to": "y"}}).model_dump(mode="json", by_alias=True)
    data["tables"]["b"] |= {"public": True, "owner": None}
    data["tables"]["c"] |= {"drop": True, "owner": None}
    with pytest.raises(SpecError, match="b is public"):
        Spec.model_validate(data).protection()


def test_any_name_can_be_a_base() -> None:
    """A column may have the name of a table and a column, or that of the row before: quotes say what is meant."""
    data = spec_of({("b", "x"): {"domain": DAYS, "relative_to": "a.x"}}).model_dump(mode="json", by_alias=True)
    columns = data["tables"]["b"]["columns"]
    columns["a.x"] = columns["previous"] = {"type": "DATE", "domain": {"range": ["2020-01-01", "2020-12-31"]}}
    for words, meant in (
        ("a.x", ("b", "a.x")),
        ('"a"."x"', ("a", "x")),
        ("b.previous", ("b", "previous")),
        ("b.y", ("b", "y")),
    ):
        columns["x"]["relative_to"] = words
        base = relative_columns(Spec.model_validate(data).protection(), "b")["x"]
        assert (base.table, base.column) == meant
