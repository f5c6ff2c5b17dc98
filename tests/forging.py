"""Tools to forge models: a small database, and ways to write the header of its model again."""

import copy
import json
import zipfile
from collections.abc import Callable
from fractions import Fraction
from math import prod
from pathlib import Path
from typing import Any

import pytest

from privbench.errors import ModelError
from privbench.model.file import load_model
from privbench.model.verify import verify

from .failing import assert_fails

Json = dict[str, Any]
Header = Json
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


Wanted = Callable[[Json], bool]
"""Which queries of a receipt are meant."""


def counted_by(kind: str, column: str | None = None, *, table: str | None = None) -> Wanted:
    """Histograms by one feature of a kind, about a column or a key of that name."""

    def wanted(query: Json) -> bool:
        axes = query.get("axes", ())
        if query["kind"] != "histogram" or len(axes) != 1 or table not in (None, query["table"]):
            return False
        feature = axes[0]["feature"]
        names = [feature.get("column"), *feature.get("link", {}).get("columns", ())]
        return feature["kind"] == kind and (column is None or column in names)

    return wanted


def of_kind(kind: str, *, axes: int | None = None) -> Wanted:
    """Queries of a kind, with so many axes."""
    return lambda query: query["kind"] == kind and axes in (None, len(query.get("axes", ())))


def events(header: Header, wanted: Wanted) -> list[Json]:
    """The events of such queries; there must be some."""
    nodes = header["receipt"]["ledger"]["nodes"]
    found = [node for node in nodes if node["kind"] == "event" and wanted(node["query"])]
    assert found
    return found


def relabel(old: Wanted, new: Wanted) -> Change:
    """Let events be about what another one is about, with its draws: each still adds up by itself."""

    def change(header: Header) -> None:
        other = events(header, new)[0]
        for event in events(header, old):
            event.update(copy.deepcopy({name: other[name] for name in ("query", "draws", "sensitivity")}))

    return change


def alter(wanted: Wanted, **facts: object) -> Change:
    """Let the first event of a query say something else."""

    def change(header: Header) -> None:
        events(header, wanted)[0].update(facts)

    return change


def alter_bins(wanted: Wanted, bins: int) -> Change:
    """Let the first event of a query be about fewer bins, and have as many draws."""

    def change(header: Header) -> None:
        event = events(header, wanted)[0]
        event["query"]["axes"][0]["bins"] = bins
        event["draws"] = prod(axis["bins"] for axis in event["query"]["axes"])

    return change


def drop(wanted: Wanted) -> Change:
    """Leave out events of a query, and all that they cost."""

    def change(header: Header) -> None:
        ledger = header["receipt"]["ledger"]
        gone = events(header, wanted)
        kept = [at for at, node in enumerate(ledger["nodes"]) if not any(node is event for event in gone)]
        place = {at: new for new, at in enumerate(kept)}
        nodes = [ledger["nodes"][at] for at in kept]
        for node in nodes:
            node["parent"] = None if node["parent"] is None else place[node["parent"]]
        ledger["nodes"] = nodes
        totals(ledger)

    return change


def totals(ledger: Json) -> None:
    """Add the charges up again, as the tree composes them."""
    nodes = ledger["nodes"]
    spent: dict[int, Fraction] = dict.fromkeys(range(len(nodes)), Fraction(0))
    for at in reversed(range(len(nodes))):
        node = nodes[at]
        if node["kind"] == "event":
            spent[at] = Fraction(node.get("epsilon") or node["rho"])
        else:
            node["total"] = _rational(spent[at])
        if node["parent"] is not None:
            above = node["parent"]
            parallel = nodes[above]["kind"] == "partition"
            spent[above] = max(spent[above], spent[at]) if parallel else spent[above] + spent[at]
    ledger["total"] = _rational(spent[0])


def _rational(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def scrub(header: Header) -> None:
    """Let no domain be taken from the data."""
    receipt = header["receipt"]
    receipt["condition"] = None
    for domain in receipt["public"]["domains"]:
        if domain["origin"] == "data":
            domain["origin"] = "declared"


def empty_ledger(header: Header) -> None:
    """Let nothing have been measured or chosen."""
    receipt = header["receipt"]
    root = {"kind": "sequence", "parent": None, "label": "x", "total": "0/1"}
    receipt["ledger"] = {"total": "0/1", "delta": "0/1", "nodes": [root]}
    for name, table in receipt["unit"]["tables"].items():
        if table["rows_per_entity_from"] != "none":
            table["rows_per_entity_from"] = "derived" if name == "person" else "declared"


COMMON: dict[str, tuple[Change, str]] = {
    "condition scrubbed": (scrub, "condition is not what the model's spec says"),
    "sizes said to be public": (
        lambda h: h["receipt"]["public"]["sizes"].update(visit=150),
        "public.sizes is not what the model's spec says",
    ),
    "public tables hidden": (lambda h: h["receipt"]["public"].update(tables=[]), "public"),
    "public keys hidden": (lambda h: h["receipt"]["public"].update(keys=[]), "public"),
    "orphans denied": (lambda h: h["spec"].update(orphans="null"), "public.orphans is not what"),
    "another owner key": (lambda h: h["receipt"]["unit"]["tables"]["visit"].update(key=["cost"]), "key"),
    "another table": (
        lambda h: h["receipt"]["unit"]["tables"].update(
            other={**h["receipt"]["unit"]["tables"]["visit"], "rows_per_entity": 1, "rows_per_entity_from": "declared"}
        ),
        "about other tables",
    ),
}
"""Forgeries that any method's receipt must not survive, with what is found."""
