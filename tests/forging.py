"""Tools to forge models: a small database, and ways to write the header of its model again."""

import json
import math
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from privbench.errors import ModelError
from privbench.model.file import load_model
from privbench.model.model import Model
from privbench.model.verify import verify

from .failing import assert_fails
from .verify.receipts import settle

Header = dict[str, Any]
Change = Callable[[Header], Any]


def write_shop(source: Path, ddl: str, **rows: str) -> Path:
    """Write a database as CSV files, each text with its header line."""
    source.mkdir()
    (source / "schema.sql").write_text(ddl)
    for table, text in rows.items():
        (source / f"{table}.csv").write_text(text)
    return source


def forged(model: Path, out: Path, change: Change) -> Path:
    """Write a model again with another header."""
    with zipfile.ZipFile(model) as old, zipfile.ZipFile(out, "w") as new:
        header = json.loads(old.read("model.json"))
        change(header)
        for name in old.namelist():
            new.writestr(name, json.dumps(header) if name == "model.json" else old.read(name))
    return out


def assert_refused(path: Path, message: str) -> None:
    """A forged model neither verifies nor loads."""
    assert_fails(verify(path), message)
    with pytest.raises(ModelError, match="its receipt does not add up"):
        load_model(path)


def feature_text(feature: Mapping[str, Any]) -> str:
    """A feature in a few words, to find it by: `column city`, `owner fanout visit.person_id`."""
    if "feature" in feature:
        return f"{feature['kind']} {feature_text(feature['feature'])}"
    link = feature.get("link")
    name = f"{link['table']}.{','.join(link['columns'])}" if link else feature.get("column", "")
    return f"{feature['kind']} {name}".strip()


def events(
    header: Header, table: str, *features: str, kind: str = "histogram", counts: str | None = None
) -> list[dict[str, Any]]:
    """The events of a kind of query on a table by these features; there must be some. `counts` are any if None."""
    found = [
        node
        for node in header["receipt"]["ledger"]["nodes"]
        if node["kind"] == "event"
        and (node["query"]["kind"], node["query"]["table"]) == (kind, table)
        and [feature_text(axis["feature"]) for axis in node["query"].get("axes", ())] == [*features]
        and counts in (None, node["query"].get("counts"))
    ]
    assert found, (table, features, kind)
    return found


def places_from(model: Model, origin: str) -> list[str]:
    """The columns whose domain has an origin, as the receipt says."""
    domains = model.receipt["public"]["domains"]
    return [f"{domain['table']}.{domain['column']}" for domain in domains if domain["origin"] == origin]


def instead(table: str, features: tuple[str, ...], *others: str, counts: str | None = None) -> Change:
    """Let events be about other features of the table, with all that follows from it: they add up as before."""

    def change(header: Header) -> None:
        [other, *_] = events(header, table, *others)
        for event in events(header, table, *features, counts=counts):
            event.update({name: other[name] for name in ("query", "draws", "sensitivity")})

    return change


def fewer_bins(table: str, *features: str) -> Change:
    """Let events have one bin where there were several, and draw so many counts."""

    def change(header: Header) -> None:
        for event in events(header, table, *features):
            event["query"]["axes"][-1]["bins"] = 1
            event["draws"] = math.prod(axis["bins"] for axis in event["query"]["axes"])

    return change


def alter(table: str, *features: str, **facts: object) -> Change:
    """Let the first event of a query say something else."""

    def change(header: Header) -> None:
        events(header, table, *features)[0].update(facts)

    return change


def without(table: str, kind: str, *features: str, counts: str | None = None, keep: int = 0) -> Change:
    """Take out events of a kind of query on a table, all but so many; totals and budget are what is left."""

    def change(header: Header) -> None:
        receipt = header["receipt"]
        take_out(receipt["ledger"], events(header, table, *features, kind=kind, counts=counts)[keep:])
        settle(receipt)
        receipt["budget"]["amount"] = receipt["ledger"]["total"]

    return change


def take_out(ledger: dict[str, Any], gone: list[dict[str, Any]]) -> None:
    """Take events out of a ledger, and number its nodes anew."""
    nodes = ledger["nodes"]
    kept = [at for at, node in enumerate(nodes) if all(node is not event for event in gone)]
    number = {old: new for new, old in enumerate(kept)}
    ledger["nodes"] = [nodes[at] | {"parent": number.get(nodes[at]["parent"])} for at in kept]


def scrub(header: Header) -> None:
    """Let no domain be taken from the data."""
    receipt = header["receipt"]
    receipt["condition"] = None
    for domain in receipt["public"]["domains"]:
        domain["origin"] = "declared" if domain["origin"] == "data" else domain["origin"]


def empty_ledger(header: Header) -> None:
    """Let nothing have been measured or chosen."""
    receipt = header["receipt"]
    root = {"kind": "sequence", "parent": None, "label": "x", "total": "0/1"}
    receipt["ledger"] = {"total": "0/1", "delta": "0/1", "nodes": [root]}
    for name, table in receipt["unit"]["tables"].items():
        if table["rows_per_entity_from"] != "none":
            table["rows_per_entity_from"] = "derived" if name == "person" else "declared"


def set_method(name: str) -> Change:
    """Let spec and receipt say that another method made the model."""

    def change(header: Header) -> None:
        header["spec"].update(method={"name": name})
        header["receipt"]["public"]["parameters"].update(method=name)

    return change


def another_owner_key(header: Header) -> None:
    """Let visits be of persons by another key, wherever the receipt names it."""
    receipt = header["receipt"]
    receipt["unit"]["tables"]["visit"].update(key=["cost"])
    for node in receipt["ledger"]["nodes"]:
        for axis in node.get("query", {}).get("axes", ()):
            _rename_key(axis["feature"])


def _rename_key(feature: dict[str, Any]) -> None:
    if "feature" in feature:
        _rename_key(feature["feature"])
    if feature.get("link", {}).get("columns") == ["person_id"]:
        feature["link"]["columns"] = ["cost"]


MISSING = "charges are missing in the receipt for: "


def missing(*axes: tuple[int, str]) -> str:
    """How the problem of a missing histogram begins, whose axes are columns of the table."""
    described = [{"bins": bins, "feature": {"column": column, "kind": "column"}} for bins, column in axes]
    return f'{MISSING}{{"axes": {json.dumps(described)}'


def missing_key(bins: int, kind: str, table: str, column: str, target: str) -> str:
    """The same of a histogram whose one axis is about a key."""
    link = {"columns": [column], "table": table, "target": target}
    return f'{MISSING}{{"axes": {json.dumps([{"bins": bins, "feature": {"kind": kind, "link": link}}])}'


COMMON: dict[str, tuple[Change, str]] = {
    "condition scrubbed": (scrub, "condition is not what the model's spec says"),
    "sizes said to be public": (
        lambda h: h["receipt"]["public"]["sizes"].update(visit=150),
        "public.sizes is not what the model's spec says",
    ),
    "public tables hidden": (lambda h: h["receipt"]["public"].update(tables=[]), "public.tables is not what"),
    "public keys hidden": (lambda h: h["receipt"]["public"].update(keys=[]), "public.keys is not what"),
    "orphans denied": (lambda h: h["spec"].update(orphans="null"), "public.orphans is not what"),
    "another owner key": (another_owner_key, "unit.tables is not what the model's spec says"),
    "another table": (
        lambda h: h["receipt"]["unit"]["tables"].update(
            other=h["receipt"]["unit"]["tables"]["visit"] | {"rows_per_entity": 1, "rows_per_entity_from": "declared"}
        ),
        "about other tables",
    ),
    "a method that is not known": (set_method("magic"), "the cost of the model cannot be checked"),
}
"""Forgeries that any method's receipt must not survive, with what is found."""
