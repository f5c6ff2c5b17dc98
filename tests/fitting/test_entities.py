"""Whose rows are whose: copies of shared lookup rows, rows without an owner, rows of a missing owner."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privbench.fitting.draft import draft
from privbench.fitting.reading import ReadDatabase, read_database
from privbench.io.open import open_source
from privbench.methods.method import silent
from privbench.model.model import compile_codecs
from privbench.schema.spec import Orphans, Spec

from ..one_part import only_part

DDL = """
CREATE TABLE address (id INTEGER PRIMARY KEY, town INTEGER);
CREATE TABLE customer (id INTEGER PRIMARY KEY, age INTEGER, address_id INTEGER REFERENCES address (id));
CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer (id), price INTEGER);
"""


def read(folder: Path, purchases: list[int | None], addresses: list[int | None], **choices: object) -> ReadDatabase:
    folder.mkdir()
    (folder / "schema.sql").write_text(DDL)
    tables = {
        "address": {"id": [10, 11, 12], "town": [5, 6, 7]},
        "customer": {"id": [1, 2, 3], "age": [20, 30, 40], "address_id": addresses},
        "purchase": {"id": list(range(len(purchases))), "customer_id": purchases, "price": [1] * len(purchases)},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table({n: pa.array(v, pa.int32()) for n, v in columns.items()}), folder / f"{name}.parquet")
    spec: Spec = draft(folder, unit="customer", lookups={"address": "customer"}, domains="data", **choices)
    protection = spec.protection()
    with open_source(folder) as source:
        return read_database(
            source,
            protection,
            compile_codecs(spec, protection),
            orphans_as_null=spec.orphans is Orphans.NULL,
            progress=silent,
        )


def test_every_user_of_a_lookup_row_has_a_copy(tmp_path: Path) -> None:
    found = only_part(read(tmp_path / "d", [1], [10, 11, 10])).tables
    named = found["customer"].keys["customer.address_id"]
    assert len(set(named.tolist())) == 3
    address = found["address"]
    assert address.entities[named].tolist() == found["customer"].entities.tolist()
    towns = address.codes["town"][named]
    assert towns[0] == towns[2] != towns[1]
    assert len(address.entities) == 4, "three rows and one copy; the one that nobody uses is there too"
    assert len(set(address.entities.tolist())) == 4


def test_without_a_customer_the_others_look_the_same(tmp_path: Path) -> None:
    """The first user of a shared address goes: what is left is what it would be had it never been there."""
    whole = only_part(read(tmp_path / "whole", [1, 3], [10, 11, 10])).tables
    fewer = only_part(read(tmp_path / "fewer", [3, 3], [None, 11, 10])).tables
    for database in (whole, fewer):
        customers, addresses = database["customer"], database["address"]
        mine = addresses.entities == customers.entities[2]
        assert addresses.codes["town"][mine].tolist() == [0]


def test_rows_of_one_missing_owner_are_one_entity_and_rows_without_one_their_own(tmp_path: Path) -> None:
    found = only_part(read(tmp_path / "d", [1, 77, None, 77, 88, None], [10, 11, 12], orphans=Orphans.NULL)).tables
    entities = found["purchase"].entities.tolist()
    assert entities[0] == found["customer"].entities[0]
    assert entities[1] == entities[3]
    assert len(set(entities)) == 5
    assert (found["purchase"].keys["purchase.customer_id"] == np.array([0, -1, -1, -1, -1, -1])).all()


@pytest.mark.parametrize("ids", [[1, 2, 3]])
def test_a_nullable_key_without_nulls_is_drafted_as_never_null(tmp_path: Path, ids: list[int | None]) -> None:
    read(tmp_path / "d", ids, [10, 11, 12])
    spec = draft(tmp_path / "d", unit="customer", lookups={"address": "customer"}, domains="data")
    said = spec.column("purchase", "customer_id")
    assert (said.null, said.origin.value) == (False, "data")


def test_rows_that_a_copy_names_are_copied_too(tmp_path: Path) -> None:
    """Two customers share an address, and it a region: a lookup of a lookup, which stands first in the schema."""
    (tmp_path / "schema.sql").write_text(
        "CREATE TABLE region (id INTEGER PRIMARY KEY, size INTEGER);"
        "CREATE TABLE address (id INTEGER PRIMARY KEY, region_id INTEGER REFERENCES region (id));"
        "CREATE TABLE customer (id INTEGER PRIMARY KEY, address_id INTEGER REFERENCES address (id));"
    )
    tables = {
        "region": {"id": [1, 2], "size": [5, 6]},
        "address": {"id": [10, 11], "region_id": [1, 1]},
        "customer": {"id": [1, 2, 3], "address_id": [10, 10, 11]},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table({n: pa.array(v, pa.int32()) for n, v in columns.items()}), tmp_path / f"{name}.parquet")
    lookups = {"region": "address", "address": "customer"}
    spec = draft(tmp_path, unit="customer", lookups=lookups, domains="data")
    protection = spec.protection()
    with open_source(tmp_path) as source:
        codecs = compile_codecs(spec, protection)
        found = only_part(read_database(source, protection, codecs, orphans_as_null=False, progress=silent)).tables
    named = found["address"].keys["address.region_id"][found["customer"].keys["customer.address_id"]]
    assert found["region"].entities[named].tolist() == found["customer"].entities.tolist()


def test_the_order_of_ones_copies_depends_on_nobody_else(tmp_path: Path) -> None:
    """Two purchases of a customer name two items; whether somebody else named one of them first changes nothing."""

    def items(folder: Path, customers: list[int], named: list[int]) -> list[int]:
        folder.mkdir()
        (folder / "schema.sql").write_text(
            "CREATE TABLE customer (id INTEGER PRIMARY KEY);"
            "CREATE TABLE item (id INTEGER PRIMARY KEY, price INTEGER);"
            "CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customer (id), "
            "item_id INTEGER REFERENCES item (id));"
        )
        tables = {
            "customer": {"id": [1, 2]},
            "item": {"id": [10, 11], "price": [5, 6]},
            "purchase": {"id": list(range(len(named))), "customer_id": customers, "item_id": named},
        }
        for name, columns in tables.items():
            pq.write_table(
                pa.table({n: pa.array(v, pa.int32()) for n, v in columns.items()}), folder / f"{name}.parquet"
            )
        spec = draft(folder, unit="customer", lookups={"item": "purchase"}, domains="data")
        protection = spec.protection()
        with open_source(folder) as source:
            codecs = compile_codecs(spec, protection)
            found = only_part(read_database(source, protection, codecs, orphans_as_null=False, progress=silent)).tables
        mine = found["item"].entities == 1  # of the second customer
        return [int(code) for code in found["item"].codes["price"][mine]]

    alone = items(tmp_path / "alone", [2, 2], [10, 11])
    assert len(alone) == 2
    assert items(tmp_path / "before", [1, 2, 2], [10, 10, 11]) == alone
