"""Tools to forge models: a small database, and ways to write the header of its model again."""

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from privbench.errors import ModelError
from privbench.model.file import load_model
from privbench.model.verify import verify

from .failing import assert_fails

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


def events(header: Header, query: str) -> list[dict[str, Any]]:
    """The events whose query begins so; there must be some."""
    found = [n for n in header["receipt"]["ledger"]["nodes"] if n.get("query", "").startswith(query)]
    assert found
    return found


def relabel(old: str, new: str) -> Change:
    """Let events be about something else."""

    def change(header: Header) -> None:
        for event in events(header, old):
            event["query"] = new

    return change


def alter(query: str, **facts: object) -> Change:
    """Let the first event of a query say something else."""

    def change(header: Header) -> None:
        events(header, query)[0].update(facts)

    return change


def scrub(header: Header) -> None:
    """Let no domain be taken from the data."""
    receipt = header["receipt"]
    domains = receipt["public"]["domains"]
    receipt["condition"] = None
    domains.update(declared=sorted(domains["declared"] + domains["data"]), data=[])


def empty_ledger(header: Header) -> None:
    """Let nothing have been measured or chosen."""
    receipt = header["receipt"]
    receipt["ledger"] = {"total": "0/1", "nodes": [{"kind": "sequence", "parent": None, "label": "x", "total": "0/1"}]}
    for name, table in receipt["unit"]["tables"].items():
        if table["rows_per_entity_from"] != "none":
            table["rows_per_entity_from"] = "derived" if name == "person" else "declared"


COMMON: dict[str, tuple[Change, str]] = {
    "condition scrubbed": (scrub, "condition is not what the model's spec says"),
    "sizes said to be public": (
        lambda h: h["receipt"]["public"]["sizes"].update(visit=150),
        "public.sizes is not what the model's spec says",
    ),
    "public tables hidden": (lambda h: h["receipt"]["public"].update(tables=[]), "public.tables is not what"),
    "public keys hidden": (lambda h: h["receipt"]["public"].update(keys=[]), "public.keys is not what"),
    "orphans denied": (lambda h: h["spec"].update(orphans="null"), "public.orphans is not what"),
    "another owner key": (lambda h: h["receipt"]["unit"]["tables"]["visit"].update(key=["cost"]), "unit.tables is not"),
    "another table": (
        lambda h: h["receipt"]["unit"]["tables"].update(
            other=h["receipt"]["unit"]["tables"]["person"] | {"role": "owned", "owner": "person"}
        ),
        "about other tables",
    ),
}
"""Forgeries that any method's receipt must not survive, with what is found."""
