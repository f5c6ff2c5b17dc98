"""Whose row is whose, for the resample: from the model, from the bundle's receipt, or from the keys alone."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from privbench.errors import PrivBenchError
from privbench.model.model import Model
from privbench.schema.tables import ForeignKey, Schema
from privbench.schema.unit import Protection, Role, protect


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A table's rows belong to rows of `table`: through a key of theirs or, for a lookup, of that table's."""

    table: str
    key: ForeignKey
    lookup: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Owning:
    """The schema whose keys count, and the owner of each table: None for a table whose rows stand for themselves."""

    schema: Schema
    owners: Mapping[str, Owner | None]
    """Owners before what they own. Public tables are not here: they are never resampled."""

    def private(self, table: str) -> bool:
        """Whether a table is protected; all are where nobody said which are public."""
        return table in self.owners


def find_owning(real: Schema, synthetic: Schema, location: Path | str, model: Model | None) -> Owning:
    """Take the model's word, else that of the receipt beside the synthetic data, else follow the first keys."""
    protection = model.protection if model is not None else _of_receipt(Path(location) / "receipt.json", synthetic)
    return _by_keys(real) if protection is None else _by_protection(protection)


def _of_receipt(path: Path, schema: Schema) -> Protection | None:
    """Read who is protected from a bundle; None where there is no receipt or it does not fit the schema."""
    try:
        unit = json.loads(path.read_text(encoding="utf-8"))["unit"]
        return _protection(unit, schema)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, PrivBenchError):
        return None


def _protection(unit: dict[str, Any], schema: Schema) -> Protection:
    tables = unit["tables"]
    public = [t.name for t in schema.tables if t.name not in tables or tables[t.name]["role"] == Role.PUBLIC.value]
    return protect(
        schema,
        entity=unit["entity"],
        owners={t: tuple(e["key"]) for t, e in tables.items() if e["role"] == Role.OWNED.value and e["key"]},
        public=public,
        lookups={t: e["owner"] for t, e in tables.items() if e["role"] == Role.LOOKUP.value},
    )


def _by_protection(protection: Protection) -> Owning:
    owners: dict[str, Owner | None] = {}
    for table in protection.order:
        if table in protection.lookups:
            owner, key = protection.lookups[table]
            owners[table] = Owner(table=owner, key=key, lookup=True)
        elif table in protection.owners:
            owners[table] = Owner(table=protection.owners[table].table, key=protection.owners[table])
        else:
            owners[table] = None
    return Owning(schema=protection.schema, owners=owners)


def _by_keys(schema: Schema) -> Owning:
    """A table belongs to the table of its first key that closes no circle; the others are roots."""
    above: dict[str, Owner] = {}
    for table in schema.tables:
        for key in table.foreign_keys:
            if table.name not in _ancestors(key.table, above):
                above[table.name] = Owner(table=key.table, key=key)
                break
    order = [t.name for t in schema.tables if t.name not in above]
    for name in order:
        order += [t.name for t in schema.tables if t.name in above and above[t.name].table == name]
    return Owning(schema=schema, owners={name: above.get(name) for name in order})


def _ancestors(table: str, above: Mapping[str, Owner]) -> set[str]:
    """A table and everything it belongs to."""
    found = {table}
    while table in above:
        table = above[table].table
        found.add(table)
    return found
