"""The pieces of a bundle must belong together: receipt, manifest, checksums, data, companions."""

import csv
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from privbench_verify.bundle import Manifest, csv_problems, read_manifest, verify_bundle, verify_file
from privbench_verify.read import ReceiptError

from ..failing import assert_fails
from .receipts import Json, domain, good

COLUMNS = {
    "person": ["id", "age", "sex", "wage", "city", "job", "town"],
    "visit": ["person", "guest", "previous", "cost", "age"],
    "item": ["visit", "payer", "after"],
    "job": ["id"],
    "town": ["id"],
    "prize": ["winner"],
}
ROLES = {"person": "entity", "visit": "owned", "item": "owned", "job": "lookup", "town": "public", "prize": "public"}


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def rows_of(table: str) -> int:
    return 120 if table == "person" else 3


def write_csv(path: Path, columns: list[str], rows: int) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([[f'"{i}"\nline'] * len(columns) for i in range(rows)])


def write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value), encoding="utf-8")


def seal(folder: Path) -> None:
    """Write the checksums of all that is there."""
    (folder / "SHA256SUMS").unlink(missing_ok=True)
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    lines = [f"{digest(p)}  {p.relative_to(folder).as_posix()}\n" for p in files]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    (folder / "data").mkdir(parents=True)
    (folder / "schema.sql").write_text("CREATE TABLE person (id INTEGER);\n")
    (folder / "README.md").write_text("# A synthetic database\n")
    write(folder / "receipt.json", good())
    tables: Json = {}
    for name, columns in COLUMNS.items():
        write_csv(folder / "data" / f"{name}.csv", columns, rows_of(name))
        listed = [{"name": column, "type": "INTEGER", "nullable": True} for column in columns]
        tables[name] = {
            "role": ROLES[name],
            "rows": rows_of(name),
            "columns": listed,
            "files": [f"data/{name}.csv"],
        }
    manifest = {"version": 1, "software": "privbench 0.2.0", "scale": "1", "seed": 7, "format": "csv"}
    manifest |= {"tables": tables, "model": "0" * 64, "receipt": digest(folder / "receipt.json")}
    write(folder / "manifest.json", manifest)
    seal(folder)
    return folder


def change_manifest(folder: Path, change: Callable[[Json], Any]) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    change(manifest)
    write(folder / "manifest.json", manifest)


def change_receipt(folder: Path, change: Callable[[Json], Any]) -> None:
    receipt = json.loads((folder / "receipt.json").read_text())
    change(receipt)
    write(folder / "receipt.json", receipt)
    change_manifest(folder, lambda m: m.update(receipt=digest(folder / "receipt.json")))


def test_an_honest_bundle_is_verified(bundle: Path) -> None:
    verdict = verify_bundle(bundle)
    assert verdict.problems == ()
    assert verdict.status == "verified"
    assert verify_bundle(str(bundle)) == verdict
    alone = verify_file(bundle / "receipt.json")
    assert verdict.assumptions[: len(alone.assumptions)] == alone.assumptions
    assert replace(verdict, assumptions=alone.assumptions) == alone


def test_the_manifest_can_be_read(bundle: Path) -> None:
    manifest = read_manifest(bundle)
    assert {name: table.rows for name, table in manifest.tables.items()} == {n: rows_of(n) for n in COLUMNS}
    assert [column.name for column in manifest.tables["visit"].columns] == COLUMNS["visit"]
    assert (manifest.format, manifest.scale, manifest.tables["job"].files) == ("csv", 1, ("data/job.csv",))


def test_files_are_compared_with_their_checksums(bundle: Path) -> None:
    (bundle / "README.md").write_text("other")
    assert_fails(verify_bundle(bundle), "README.md: is missing, was changed or added, or is a link")


@pytest.mark.parametrize("name", ["schema.sql", "README.md", "manifest.json", "receipt.json"])
def test_no_piece_may_be_missing(bundle: Path, name: str) -> None:
    (bundle / name).unlink()
    seal(bundle)
    assert_fails(verify_bundle(bundle), f"{name}: is missing")


def test_links_and_pipes_are_not_read(bundle: Path) -> None:
    (bundle / "data" / "job.csv").unlink()
    os.mkfifo(bundle / "data" / "job.csv")
    assert_fails(verify_bundle(bundle), "data/job.csv: is missing, was changed or added, or is a link")
    (bundle / "SHA256SUMS").unlink()
    os.mkfifo(bundle / "SHA256SUMS")
    assert_fails(verify_bundle(bundle), "SHA256SUMS: is missing")
    (bundle / "receipt.json").unlink()
    os.mkfifo(bundle / "receipt.json")
    assert_fails(verify_bundle(bundle), "receipt.json: is missing, or is no file")


def table(name: str, **fields: Any) -> Callable[[Json], Any]:
    return lambda m: m["tables"][name].update(fields)


MANIFESTS: dict[str, tuple[Callable[[Json], Any], str]] = {
    "of another receipt": (lambda m: m.update(receipt="0" * 64), "belongs to another receipt"),
    "a receipt that is no digest": (lambda m: m.update(receipt="x"), "not a SHA-256 digest"),
    "a model that is no digest": (lambda m: m.update(model="A" * 64), "not a SHA-256 digest"),
    "another version": (lambda m: m.update(version=2), "version is 2, not 1"),
    "an unknown field": (lambda m: m.update(more=1), "unknown field more"),
    "an unknown field of a table": (table("visit", bytes=1), "unknown field bytes"),
    "a seed that is a text": (lambda m: m.update(seed="7"), "not a whole number"),
    "a scale that is a number": (lambda m: m.update(scale=1), "scale is 1, not a text"),
    "a scale of zero": (lambda m: m.update(scale="0"), "scale is 0"),
    "a scale that is huge": (lambda m: m.update(scale="1e999999999"), "not a rational"),
    "a scale that is no number": (lambda m: m.update(scale="nan"), "not a rational"),
    "a table too few": (lambda m: m["tables"].pop("visit"), "visit: is None in manifest.json, but owned"),
    "a public table too few": (lambda m: m["tables"].pop("town"), "town: is None in manifest.json, but public"),
    "a table too many": (
        lambda m: m["tables"].update(other=m["tables"]["visit"]),
        "other: is owned in manifest.json, but None",
    ),
    "a private table said to be public": (
        table("visit", role="public"),
        "visit: is public in manifest.json, but owned",
    ),
    "another entity": (table("person", role="owned"), "person: is owned in manifest.json, but entity"),
    "an unknown role": (table("visit", role="secret"), "not one of: entity"),
    "rows that are a text": (table("visit", rows="3"), "not a whole number"),
    "rows that are true": (table("visit", rows=True), "not a whole number"),
    "rows that are not there": (table("visit", rows=4), "visit: has 3 rows, but manifest.json says 4"),
    "rows of an entity table that is public": (table("person", rows=121), "at scale 1, but the receipt says 120"),
    "a file that is not there": (table("visit", files=["data/visits.csv"]), "is listed, but is no file"),
    "a file outside": (table("visit", files=["../receipt.json"]), "is listed, but is no file"),
    "a file that is no data": (table("visit", files=["receipt.json"]), "is listed, but is no file"),
    "no file": (table("visit", files=[]), "has no file"),
    "a file of two tables": (table("visit", files=["data/item.csv"]), "listed for two tables"),
    "columns in another order": (
        lambda m: m["tables"]["visit"]["columns"].reverse(),
        "does not name the columns of the manifest",
    ),
    "a column twice": (
        lambda m: m["tables"]["visit"]["columns"].append(m["tables"]["visit"]["columns"][0]),
        "a column stands twice",
    ),
    "a column of the owner key missing": (
        lambda m: m["tables"]["visit"]["columns"].pop(0),
        "visit.person: is in the receipt",
    ),
    "a column of a lookup's key missing": (
        lambda m: m["tables"]["person"]["columns"].pop(5),
        "person.job: is in the receipt",
    ),
    "a column of a reference missing": (
        lambda m: m["tables"]["visit"]["columns"].pop(1),
        "visit.guest: is in the receipt",
    ),
    "a column of an implied key missing": (
        lambda m: m["tables"]["item"]["columns"].pop(1),
        "item.payer: is in the receipt",
    ),
    "a column of a key inside the entity missing": (
        lambda m: m["tables"]["item"]["columns"].pop(2),
        "item.after: is in the receipt",
    ),
    "a column with a domain missing": (
        lambda m: m["tables"]["visit"]["columns"].pop(3),
        "visit.cost: is in the receipt",
    ),
    "a column of a public key missing": (
        lambda m: m["tables"]["person"]["columns"].pop(0),
        "person.id: is in the receipt",
    ),
    "a column with more": (
        lambda m: m["tables"]["visit"]["columns"][0].update(key=True),
        "unknown field key",
    ),
    "a column that may be NULL or not": (
        lambda m: m["tables"]["visit"]["columns"][0].update(nullable=1),
        "neither true nor false",
    ),
}


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_changed_manifest_fails(bundle: Path, name: str) -> None:
    change, message = MANIFESTS[name]
    change_manifest(bundle, change)
    seal(bundle)
    assert_fails(verify_bundle(bundle), message)


def test_all_tables_may_be_in_one_file_of_any_format(bundle: Path) -> None:
    def in_one_file(manifest: Any) -> None:
        manifest["format"] = "new"
        for table in manifest["tables"].values():
            table["files"] = ["data/all.new"]

    for file in (bundle / "data").iterdir():
        file.unlink()
    (bundle / "data" / "all.new").write_text("rows")
    change_manifest(bundle, in_one_file)
    seal(bundle)
    verdict = verify_bundle(bundle)
    assert (verdict.status, verdict.problems) == ("verified", ())


def test_every_file_of_the_data_is_listed(bundle: Path) -> None:
    (bundle / "data" / "more").mkdir()
    (bundle / "data" / "more" / "secret.csv").write_text("a\n")
    seal(bundle)
    assert_fails(verify_bundle(bundle), "is not listed under data/")


@pytest.mark.parametrize(
    ("rows", "scale", "status"),
    [
        (240, "1", "failed"),
        (240, "1.0", "failed"),
        (240, "1/1", "failed"),
        (240, "2", "verified"),
        (60, "0.5", "verified"),
        (60, "5e-1", "verified"),
        (119, "1", "verified"),
    ],
)
def test_at_scale_one_there_are_at_most_the_public_rows(bundle: Path, rows: int, scale: str, status: str) -> None:
    """Fewer where keys that must be unique would repeat."""
    write_csv(bundle / "data" / "person.csv", COLUMNS["person"], rows)
    change_manifest(bundle, lambda m: (m.update(scale=scale), m["tables"]["person"].update(rows=rows)))
    seal(bundle)
    assert verify_bundle(bundle).status == status


def test_a_receipt_that_does_not_add_up_fails(bundle: Path) -> None:
    change_receipt(bundle, lambda r: r["ledger"].update(total="1/2"))
    seal(bundle)
    assert_fails(verify_bundle(bundle), "ledger.total")


def test_a_condition_stays(bundle: Path) -> None:
    def conditional(receipt: Json) -> None:
        receipt["public"]["domains"][2] = domain("visit", "cost", "data")
        receipt["condition"] = "epsilon holds given that these domains are public: visit.cost"

    change_receipt(bundle, conditional)
    seal(bundle)
    assert verify_bundle(bundle).status == "conditional"


def test_hostile_json_is_a_failure(bundle: Path) -> None:
    (bundle / "receipt.json").write_text("[" * 10**5)
    assert_fails(verify_bundle(bundle), "receipt.json: cannot be read as JSON")
    assert_fails(verify_file(bundle / "receipt.json"), "nested more than 64 deep")


def test_a_hostile_manifest_is_a_failure(bundle: Path) -> None:
    (bundle / "manifest.json").write_text('{"version": 1, "version": 1}')
    seal(bundle)
    assert_fails(verify_bundle(bundle), "stands twice")
    with pytest.raises(ReceiptError):
        read_manifest(bundle)


def test_a_folder_without_anything_fails(tmp_path: Path) -> None:
    assert_fails(verify_bundle(tmp_path), "receipt.json: is missing")
    assert_fails(verify_bundle(tmp_path / "none"), "receipt.json: is missing")


def other_format(folder: Path) -> None:
    for name in COLUMNS:
        (folder / "data" / f"{name}.csv").rename(folder / "data" / f"{name}.parquet")
    change_manifest(
        folder,
        lambda m: (
            m.update(format="parquet"),
            [one.update(files=[f"data/{name}.parquet"]) for name, one in m["tables"].items()],
        ),
    )
    seal(folder)


def test_formats_that_need_a_library_are_checked_by_who_has_one(bundle: Path) -> None:
    other_format(bundle)
    verdict = verify_bundle(bundle)
    assert verdict.status == "verified"
    assert "they were not counted" in verdict.assumptions[-1]
    counted = verify_bundle(bundle, {"parquet": csv_problems})
    assert counted.status == "verified"
    assert counted.assumptions == verdict.assumptions[:-1]

    def wrong(folder: Path, manifest: Manifest) -> Iterator[str]:
        yield f"{manifest.format} of {folder.name} is wrong"

    assert_fails(verify_bundle(bundle, {"parquet": wrong}), "parquet of bundle is wrong")


def test_csv_files_are_counted_as_they_are_written(tmp_path: Path) -> None:
    """A NULL of a single column is an empty line; fields may be long, quoted, of several lines, or no UTF-8."""
    path = tmp_path / "t.csv"
    for header, body, rows in (
        (["a"], b'"a"\n\n""\n"x"\n', 3),
        (["a", "b"], b'"a","b"\n,\n"x\n\n""y",2\n', 2),
        (["a"], b"a\n" + b"x" * 200_000 + b"\n", 1),
        (["a"], b"a\n\xff\xfe\n\x00\n", 2),
        (["é\n,"], '"é\n,"\n1\n'.encode(), 1),
        (["a"], b"a\n", 0),
    ):
        path.write_bytes(body)
        columns = [{"name": name, "type": "TEXT", "nullable": True} for name in header]
        assert list(csv_problems(tmp_path, one_table(columns, rows))) == []
        assert len(list(csv_problems(tmp_path, one_table(columns, rows + 1)))) == 1
    path.write_bytes(b"a,b\n1,2\n\n3,4\n")
    columns = [{"name": name, "type": "TEXT", "nullable": True} for name in "ab"]
    assert "fields" in next(iter(csv_problems(tmp_path, one_table(columns, 2))))
    assert csv.field_size_limit() == 131072


def one_table(columns: list[Json], rows: int) -> Manifest:
    from privbench_verify.bundle import ManifestColumn, ManifestTable

    table = ManifestTable(
        role="owned", rows=rows, columns=tuple(ManifestColumn(**c) for c in columns), files=("t.csv",)
    )
    return replace(
        Manifest(format="csv", scale=1, tables={}, model="0" * 64, receipt="0" * 64),  # type: ignore[arg-type]
        tables={"t": table},
    )
