"""Small databases of many schemas for method `tree`: every kind of key, also where there is little or nothing."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privbench.encode.coded import CodedTable
from privbench.encode.keys import NULL, entities_by_owner, own_entities
from privbench.privacy.facts import ColumnFacts, Facts, LinkFacts, TableFacts
from privbench.schema.unit import LinkKind, Neighbours

Key = tuple[str, LinkKind, bool, bool]
"""Target, kind, whether it may be NULL, whether it is unique."""
TOWNS = 1500
OWNER, REFERENCE, CATEGORY = LinkKind.OWNER, LinkKind.REFERENCE, LinkKind.CATEGORY


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """Tables in owner order with numbers of codes by column, keys by table and name, and rows by table."""

    columns: dict[str, dict[str, int]]
    keys: dict[str, dict[str, Key]]
    rows: dict[str, int]
    lookups: dict[str, str] | None = None
    orphans: bool = False

    def facts(self, neighbours: Neighbours, *, sizes: bool = False) -> Facts:
        """What is public of it."""
        entity, replaces = next(iter(self.columns)), neighbours is Neighbours.REPLACE
        return Facts(
            entity=entity,
            neighbours=neighbours,
            tables={
                table: TableFacts(
                    name=table,
                    columns={c: ColumnFacts(size=n, ordered=n % 2 == 0, null=n > 3) for c, n in columns.items()},
                    rows=self.rows[table] if replaces and (sizes or table == entity) else None,
                    cap=None,
                    lookup_of=(self.lookups or {}).get(table),
                )
                for table, columns in self.columns.items()
            },
            links=tuple(
                LinkFacts(
                    name=f"{table}.{key}",
                    table=table,
                    columns=(key,),
                    target=target,
                    kind=kind,
                    slots=self.rows[target] if kind is CATEGORY or (target == entity and replaces) else None,
                    nullable=nullable,
                    unique=unique,
                )
                for table, keys in self.keys.items()
                for key, (target, kind, nullable, unique) in keys.items()
            ),
            orphans=self.orphans,
        )

    def data(self, seed: int = 0) -> dict[str, CodedTable]:
        """Its rows: codes that depend on their owner and on each other, keys to random rows."""
        rng = np.random.default_rng(seed)
        found: dict[str, CodedTable] = {}
        free = next(iter(self.rows.values()))
        for table, columns in self.columns.items():
            rows = self.rows[table]
            keys = {f"{table}.{k}": self._key(rows, key, rng) for k, key in self.keys.get(table, {}).items()}
            owner = next(
                ((f"{table}.{k}", t) for k, (t, kind, *_) in self.keys.get(table, {}).items() if kind is OWNER), None
            )
            entities = own_entities(rows)
            if owner is not None:
                entities, free = entities_by_owner(keys[owner[0]], found[owner[1]].entities, next_entity=free)
            sort = (entities % 3 + rng.integers(0, 2, rows)).astype(np.int64)
            codes = {c: (sort * 7 + rng.integers(0, 2, rows)) % n for c, n in columns.items()}
            found[table] = CodedTable(
                codes={c: x.astype(np.uint16) for c, x in codes.items()}, keys=keys, entities=entities
            )
        return found

    def _key(self, rows: int, key: Key, rng: np.random.Generator) -> NDArray[np.int64]:
        target, _, nullable, unique = key
        there = self.rows[target]
        if there == 0:
            return np.full(rows, NULL, np.int64)
        if unique:
            picked = np.append(rng.permutation(there), np.full(max(rows - there, 0), NULL))[:rows]
        else:
            picked = rng.integers(0, there, rows)
        missing = rng.random(rows) < (0.2 if nullable or self.orphans else 0.0)
        return np.where(missing, NULL, picked).astype(np.int64)


def _two_levels(**changes: object) -> Schema:
    given: dict[str, object] = {
        "columns": {"home": {"kind": 4, "rooms": 9}, "person": {"age": 40, "sex": 2}},
        "keys": {"person": {"home": ("home", OWNER, False, False)}},
        "rows": {"home": 300, "person": 700},
    }
    return Schema(**{**given, **changes})  # type: ignore[arg-type]


SCHEMAS: dict[str, Callable[[], Schema]] = {
    "one table": lambda: Schema(columns={"home": {"kind": 4, "rooms": 9, "one": 1}}, keys={}, rows={"home": 400}),
    "one table with one column of one code": lambda: Schema(columns={"home": {"one": 1}}, keys={}, rows={"home": 200}),
    "two levels": _two_levels,
    "unowned rows": lambda: _two_levels(keys={"person": {"home": ("home", OWNER, True, False)}}),
    "orphans": lambda: _two_levels(orphans=True),
    "at most one row each": lambda: _two_levels(
        keys={"person": {"home": ("home", OWNER, False, True)}}, rows={"home": 300, "person": 200}
    ),
    "no columns at all": lambda: _two_levels(columns={"home": {}, "person": {}}),
    "no columns below": lambda: _two_levels(columns={"home": {"kind": 4}, "person": {}}),
    "nobody": lambda: _two_levels(rows={"home": 0, "person": 0}),
    "no rows below": lambda: _two_levels(rows={"home": 300, "person": 0}),
    "three levels and a lookup": lambda: Schema(
        columns={"home": {"kind": 4}, "person": {"age": 40}, "job": {"pay": 12}, "address": {"zone": 6}},
        keys={
            "home": {"address": ("address", REFERENCE, True, True)},
            "person": {"home": ("home", OWNER, False, False)},
            "job": {"person": ("person", OWNER, True, False), "at": ("address", REFERENCE, True, False)},
        },
        rows={"home": 200, "person": 500, "job": 400, "address": 150},
        lookups={"address": "home"},
    ),
    "two parents and a self reference": lambda: Schema(
        columns={"home": {"kind": 4}, "person": {"age": 40}},
        keys={
            "home": {"next": ("home", REFERENCE, True, False), "best": ("home", REFERENCE, False, True)},
            "person": {"home": ("home", OWNER, False, False), "work": ("home", REFERENCE, True, False)},
        },
        rows={"home": 300, "person": 600},
    ),
    "public tables": lambda: Schema(
        columns={"home": {"kind": 4}},
        keys={
            "home": {
                "town": ("town", CATEGORY, False, False),
                "birth": ("town", CATEGORY, True, False),
                "none": ("void", CATEGORY, True, False),
            }
        },
        rows={"home": 300, "town": TOWNS, "void": 0},
    ),
    "public tables and orphans": lambda: Schema(
        columns={"home": {"kind": 4}},
        keys={"home": {"town": ("town", CATEGORY, False, False), "none": ("void", CATEGORY, False, False)}},
        rows={"home": 300, "town": 7, "void": 0},
        orphans=True,
    ),
}
