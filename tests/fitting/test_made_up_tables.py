"""Tables that are made up: no row of them is read, keys lead to rows that are there, and verifiers are told."""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import privbench
from privbench.encode.keys import SpreadIndex
from privbench.errors import SpecError
from privbench.evaluation.result import result_json
from privbench.io.given import source_of
from privbench.io.memory import MemorySource
from privbench.model.model import Model
from privbench.schema.domain import Values
from privbench.schema.spec import Spec
from privbench.schema.tables import Table

from ..failing import assert_fails

DDL = """
    CREATE TABLE store (
        store_id INTEGER PRIMARY KEY, city VARCHAR(30),
        manager_id SMALLINT NOT NULL UNIQUE REFERENCES staff(staff_id)
    );
    CREATE TABLE staff (
        staff_id SMALLINT PRIMARY KEY, first_name VARCHAR(45) NOT NULL, email VARCHAR(50), picture BLOB,
        store_id INTEGER NOT NULL REFERENCES store(store_id), boss SMALLINT REFERENCES staff(staff_id),
        pay INTEGER NOT NULL CHECK (pay BETWEEN 10 AND 19), twice INTEGER GENERATED ALWAYS AS (pay + pay)
    );
    CREATE TABLE depot (
        region CHAR(2) NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (region, number), CHECK (number BETWEEN 1 AND 4)
    );
    CREATE TABLE customer (
        id INTEGER PRIMARY KEY, store_id INTEGER NOT NULL REFERENCES store(store_id), age INTEGER,
        rep SMALLINT REFERENCES staff(staff_id), region CHAR(2), number INTEGER,
        FOREIGN KEY (region, number) REFERENCES depot(region, number)
    );
    CREATE TABLE visit (
        customer_id INTEGER NOT NULL REFERENCES customer(id), staff_id SMALLINT NOT NULL REFERENCES staff(staff_id),
        minutes INTEGER, PRIMARY KEY (customer_id, staff_id)
    );
"""
STAFF = ("staff_id", "first_name", "email", "picture", "store_id", "boss", "pay", "twice")
ENTITIES, SEEN = 300, (71, 72, 80, 95)
CHOICES: dict[str, Any] = {"unit": "customer", "public": ["store"], "made_up": {"staff": 12, "depot": 6}}


def _tables() -> dict[str, pa.Table]:
    """A shop whose staff and depots are not as declared: whoever reads them sees nonsense."""
    rng = random.Random(1)
    people = range(1, ENTITIES + 1)
    visits = [(person, staff) for person in people for staff in rng.sample(SEEN, 2)]
    return {
        "store": pa.table({"store_id": [1, 2, 3], "city": ["Graz", "Linz", "Wien"], "manager_id": [95, 71, 80]}),
        "staff": pa.table({name: ["real"] for name in STAFF}),
        "depot": pa.table({"region": ["XXL"], "number": ["none"]}),
        "customer": pa.table(
            {
                "id": list(people),
                "store_id": [rng.choice([1, 2]) for _ in people],
                "age": [rng.randint(18, 80) for _ in people],
                "rep": [rng.choice([71, 72, None]) for _ in people],
                "region": [rng.choice(["AB", None]) for _ in people],
                "number": [7000] * ENTITIES,
            }
        ),
        "visit": pa.table(
            {
                "customer_id": [person for person, _ in visits],
                "staff_id": [staff for _, staff in visits],
                "minutes": [rng.randint(1, 9) for _ in visits],
            }
        ),
    }


SEALED = {"staff", "depot"}


@pytest.fixture(autouse=True, scope="module")
def sealed() -> Iterator[None]:
    """A source that fails when made-up tables are read or counted."""
    read, rows = MemorySource.read, MemorySource.rows

    def sealed_read(self: MemorySource, table: Table) -> Iterator[pa.RecordBatch]:
        assert table.name not in SEALED, f"rows of {table.name} were read"
        return read(self, table)

    def sealed_rows(self: MemorySource, name: str) -> int:
        assert name not in SEALED, f"rows of {name} were counted"
        return rows(self, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemorySource, "read", sealed_read)
        patch.setattr(MemorySource, "rows", sealed_rows)
        yield


def _draft(**choices: Any) -> Spec:
    return privbench.draft(_tables(), schema=DDL, **{**CHOICES, **choices})


def _fit(spec: Spec) -> Model:
    return privbench.fit(spec, source=source_of(_tables(), schema=DDL), epsilon=8)


@pytest.fixture(scope="module")
def model() -> Model:
    return _fit(_draft())


def test_no_row_is_read_and_keys_are_valid(model: Model) -> None:
    made = privbench.generate(model, seed=3, scale=2, format="duckdb")
    tables = {name: table.to_pylist() for name, table in made.tables().items()}
    assert len(tables["staff"]) == 12  # made-up tables do not scale
    staff, depots = {row["staff_id"] for row in tables["staff"]}, {(r["region"], r["number"]) for r in tables["depot"]}
    assert len(depots) == 6
    assert {row["staff_id"] for row in tables["visit"]} <= staff
    assert {row["rep"] for row in tables["customer"]} <= {*staff, None}
    assert {row["rep"] for row in tables["customer"]} & {None}
    led = {(row["region"], row["number"]) for row in tables["customer"]}
    assert {pair for pair in led if None not in pair} <= depots
    assert len({(row["customer_id"], row["staff_id"]) for row in tables["visit"]}) == len(tables["visit"])
    assert [row["manager_id"] for row in tables["store"]] == [1, 2, 3]
    assert all(10 <= row["pay"] <= 19 and row["twice"] == 2 * row["pay"] for row in tables["staff"])
    with duckdb.connect(str(made.path / "data" / "database.duckdb"), read_only=True) as database:
        assert database.sql("SELECT count(*) FROM staff").fetchall() == [(12,)]
    verdict = privbench.verify(made.path)
    assert verdict.status == "verified"
    assert "No row of these tables was read; so many rows were made up from the schema: staff (12), depot (6)." in (
        verdict.assumptions
    )
    assert not any("look like people" in line for line in verdict.assumptions)
    readme = (made.path / "README.md").read_text()
    assert "| staff | made up | 12 | not read |" in readme


def test_a_draft_from_the_data_reads_no_row_either() -> None:
    spec = _draft(domains="data")
    assert spec.tables["staff"].made_up == 12
    assert not any("staff" in str(column.computed) for column in spec.tables["customer"].columns.values())
    assert {"staff", "depot"} <= set(_fit(spec).public)


def test_a_table_need_not_be_in_the_source(model: Model) -> None:
    tables = {name: table for name, table in _tables().items() if name != "staff"}
    ddl = DDL[: DDL.index("CREATE TABLE staff")] + DDL[DDL.index("CREATE TABLE depot") :]
    ddl = ddl.replace(" REFERENCES staff(staff_id)", "")
    fitted = privbench.fit(_draft(), source=source_of(tables, schema=ddl), epsilon=8)
    assert fitted.public["staff"] == model.public["staff"]


def test_declared_domains_are_kept_and_published() -> None:
    spec = _draft().with_domains(
        {("staff", "first_name"): (Values(values=("Ann", "Bob")), privbench.schema.domain.Origin.DECLARED)}
    )
    fitted = _fit(spec)
    assert set(fitted.public_table("staff")["first_name"].to_pylist()) == {"Ann", "Bob"}
    assert privbench.model.receipt_check.verify_model(fitted).status == "verified"


def test_rows_that_were_not_made_up_do_not_verify(model: Model, tmp_path: Path) -> None:
    rows = model.public_table("staff")
    other = rows.set_column(1, "first_name", pa.array(["Mike"] * 12))
    from privbench.fitting.public_tables import _parquet

    forged = Model(
        spec=model.spec,
        tables=model.tables,
        public={**model.public, "staff": _parquet(other)},
        entity_keys=model.entity_keys,
        receipt=model.receipt,
    )
    privbench.save_model(model, tmp_path / "true.model")
    assert privbench.verify(tmp_path / "true.model").status == "verified"
    privbench.save_model(forged, tmp_path / "forged.model")
    assert_fails(privbench.verify(tmp_path / "forged.model"), "staff: its rows are not those that are made up")


def test_made_up_tables_are_not_compared(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "SEALED", set())
    bundle = privbench.generate(model, tmp_path / "bundle", seed=1)
    real = {name: table for name, table in _tables().items() if name != "depot"}
    real["staff"] = model.public_table("staff")
    ddl = DDL[: DDL.index("CREATE TABLE depot")] + DDL[DDL.index("CREATE TABLE customer") :]
    ddl = ddl.replace(",\n        FOREIGN KEY (region, number) REFERENCES depot(region, number)", "")
    for known in (model, None):
        result = privbench.evaluate(real, bundle.path, schema=ddl, model=known, floor=False)
        assert not next(table for table in result.tables if table.name == "staff").columns
        assert not any("staff" in key.name for key in result.keys)
        assert any(skip.what == "staff" and "made up" in skip.reason for skip in result.skips)


def test_queries_over_made_up_tables_have_no_score(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "SEALED", set())
    bundle = privbench.generate(model, tmp_path / "bundle", seed=1)
    real = {name: table for name, table in _tables().items() if name != "depot"}
    ddl = DDL[: DDL.index("CREATE TABLE depot")] + DDL[DDL.index("CREATE TABLE customer") :]
    ddl = ddl.replace(",\n        FOREIGN KEY (region, number) REFERENCES depot(region, number)", "")
    over = ("customer", "Staff", "main.staff s", "customer c WHERE EXISTS (SELECT 1 FROM staff)")
    workload = "".join(f"SELECT COUNT(*) FROM {tables};\n" for tables in over)
    result = privbench.evaluate(real, bundle.path, schema=ddl, model=model, workload=workload)
    assert [query.sql for query in result.queries] == ["SELECT COUNT(*) FROM customer"]
    assert "3 of 4 queries" in [skip.what for skip in result.skips]
    assert "3 of 4 queries" in json.dumps(result_json(result))


def test_the_refusal_lists_four_choices() -> None:
    with pytest.raises(SpecError, match="no key leads") as error:
        _draft(public=(), made_up=())
    for choice in ("--public T", "--made-up T[=N]", "--owned-by T=OWNER", "--drop T"):
        assert choice in str(error.value)


@pytest.mark.parametrize(
    ("choices", "says"),
    [
        ({"made_up": {"staff": 12, "depot": 6, "store": 2}}, "--made-up store: it has --public already"),
        ({"made_up": {"customer": 9}}, "--made-up customer: it is the unit"),
        ({"made_up": {"staff": 12, "depot": 6, "visit": 9}}, "visit: its rows are made up, and cannot reference"),
        ({"made_up": {"staf": 12}}, "Did you mean staff"),
    ],
)
def test_choices_that_do_not_go_together(choices: dict[str, Any], says: str) -> None:
    with pytest.raises(SpecError, match=says):
        _draft(**choices)


def test_too_few_rows_for_a_unique_key_of_a_public_table() -> None:
    with pytest.raises(SpecError, match="larger `made_up` under staff"):
        _fit(_draft(made_up={"staff": 2, "depot": 6}))


def test_types_guessed_from_values_are_refused() -> None:
    with pytest.raises(SpecError, match="types are guessed") as error:
        privbench.draft({"t": pa.table({"a": [None]}), "u": pa.table({"b": [1]})}, unit="u", made_up=["t"])
    assert "schema.sql" in str(error.value)


def test_the_spec_refuses_what_has_no_meaning() -> None:
    words = _draft().model_dump(mode="json", by_alias=True, exclude_none=True)
    for change, says in (
        ({"public": True}, "public and made_up exclude each other"),
        ({"rows_per_entity": 3}, "rows_per_entity has no meaning beside made_up"),
        ({"made_up": 0}, "greater than 0"),
    ):
        tables = {**words["tables"], "staff": {**words["tables"]["staff"], **change}}
        with pytest.raises(ValueError, match=says):
            Spec.model_validate({**words, "tables": tables})


def test_a_domain_is_not_searched_in_rows_that_are_not_read() -> None:
    spec = _draft()
    column = spec.tables["staff"].columns["email"].model_copy(update={"origin": privbench.schema.domain.Origin.PRIVATE})
    staff = spec.tables["staff"].model_copy(update={"columns": {**spec.tables["staff"].columns, "email": column}})
    with pytest.raises(SpecError, match=r"staff\.columns\.email: rows of staff are made up"):
        spec.model_copy(update={"tables": {**spec.tables, "staff": staff}}).protection()


def test_a_key_goes_where_its_value_says() -> None:
    index = SpreadIndex(7)
    values = pa.array([*range(100), None], pa.int32())
    places = index.find([values])
    assert places[-1] == -1
    assert set(places[:-1].tolist()) == set(range(7))
    assert index.find([values.take(pa.array([40, 3]))]).tolist() == places[[40, 3]].tolist()
    assert index.find([values.cast(pa.int64())]).tolist() == places.tolist()


def test_rows_stay_the_same_in_later_versions(model: Model) -> None:
    """A model says that its rows follow from its spec: a later version has to make the same."""
    first = model.public_table("staff").to_pylist()[1]
    assert list(first.values()) == [2, "James", "u.cook42@example.net", "\\x688d", 1, 1, 19, 38]
    assert model.public_table("depot").to_pylist()[0] == {"region": "w5", "number": 4}
