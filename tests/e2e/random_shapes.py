"""Random shapes: any mix of key kinds, owners, references, cycles and public tables that a schema may have.

`random_databases` fills them with columns of all types and with relations between these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from privbench.io.names import quote_sql

from .shapes import Columns, Rng, Shape

PRIMARY_KEYS = ("number", "text", "none", "owner and attribute", "owner and reference", "owner")


@dataclass(slots=True, kw_only=True)
class DraftTable:
    """A table that is being made up: its columns as SQL, its constraints, its values."""

    name: str
    rows: int
    columns: dict[str, str] = field(default_factory=dict)
    constraints: list[str] = field(default_factory=list)
    values: Columns = field(default_factory=dict)
    key: tuple[str, ...] = ()
    owner: "DraftTable | None" = None
    owners: np.ndarray | None = None
    """The owner row of each row (negative: none)."""

    def sql(self) -> str:
        parts = [f"{quote_sql(name)} {kind}" for name, kind in self.columns.items()] + self.constraints
        return f"CREATE TABLE {quote_sql(self.name)} ({', '.join(parts)});"

    def refer(self, target: "DraftTable", places: np.ndarray, *, nullable: bool) -> tuple[str, ...]:
        """Add a foreign key whose rows name the target's rows at these places (negative: NULL)."""
        names = tuple(f"k{len(self.columns)}_{column}" for column in target.key)
        for name, column in zip(names, target.key, strict=True):
            self.columns[name] = target.columns[column].replace(" NOT NULL", "") + ("" if nullable else " NOT NULL")
            self.values[name] = [None if at < 0 else target.values[column][at] for at in places]
        there = f"{quote_sql(target.name)} ({_quoted(target.key)})"
        self.constraints.append(f"FOREIGN KEY ({_quoted(names)}) REFERENCES {there}")
        return names

    def number(self, kind: str) -> None:
        self.columns["id"] = "VARCHAR(8) NOT NULL" if kind == "text" else "INTEGER NOT NULL"
        ids = range(3, 3 + 2 * self.rows, 2)
        self.values["id"] = [f"k{i}" for i in ids] if kind == "text" else list(ids)
        self.set_key(("id",))

    def set_key(self, key: tuple[str, ...]) -> None:
        self.key = key
        self.constraints.append(f"PRIMARY KEY ({_quoted(key)})")


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(map(quote_sql, names))


@dataclass(slots=True, kw_only=True)
class DraftShape:
    """Tables with their keys, and who owns which."""

    private: list[DraftTable]
    public: list[DraftTable]
    owners: dict[str, tuple[str, ...]]

    def shape(self, rng: Rng) -> Shape:
        """The shape, its tables declared in any order."""
        tables = [*self.private, *self.public]
        rows: Mapping[str, Columns] = {t.name: t.values for t in tables}
        order = rng.permutation(len(tables))
        return Shape(
            ddl="\n".join(tables[i].sql() for i in order),
            rows=lambda _: rows,
            choices={
                "unit": self.private[0].name,
                "public": [t.name for t in self.public],
                "owners": self.owners,
            },
        )


def random_shape(seed: int) -> Shape:
    """A shape that is a function of its seed."""
    rng = np.random.default_rng(seed)
    drafted = random_keys(rng)
    for table in drafted.private:
        _attributes(rng, table)
    return drafted.shape(rng)


def random_keys(rng: Rng, *, name: Callable[[str], str] = str) -> DraftShape:
    """Tables that have keys alone; `name` may call them otherwise."""
    entity = DraftTable(name=name("entity"), rows=40)
    entity.number(str(rng.choice(["number", "text"])))
    private, public, owners = [entity], [], {}
    for at in range(int(rng.integers(0, 3))):
        table = DraftTable(name=name(f"public{at}"), rows=int(rng.integers(1, 12)))
        table.number("number")
        public.append(table)
    for at in range(int(rng.integers(1, 4))):
        table, owner = _owned(rng, name(f"t{at}"), private, public)
        private.append(table)
        owners[table.name] = owner
    _refer_across(rng, private, public)
    return DraftShape(private=private, public=public, owners=owners)


def _owned(
    rng: Rng, name: str, private: list[DraftTable], public: list[DraftTable]
) -> tuple[DraftTable, tuple[str, ...]]:
    """A table owned by an earlier one, with any kind of primary key."""
    above = [t for t in private if t.key]
    owner = above[int(rng.integers(0, len(above)))]
    kind = str(rng.choice(PRIMARY_KEYS))
    table = DraftTable(name=name, rows=int(rng.integers(0, 60)))
    if kind == "owner":
        table.rows = min(table.rows, owner.rows)
        places = rng.permutation(owner.rows)[: table.rows]
    else:
        places = rng.integers(0, owner.rows, table.rows) if owner.rows else np.zeros(0, np.int64)
        table.rows = len(places)
    nullable = kind in ("number", "text", "none") and rng.random() < 0.4
    if nullable:
        places = np.where(rng.random(table.rows) < 0.2, -1, places)
    if kind in ("number", "text"):
        table.number(kind)
    if kind == "owner and reference":
        others = [*above, *public]
        other = others[int(rng.integers(0, len(others)))]
        pairs = rng.permutation(owner.rows * other.rows)[: table.rows]
        table.rows = len(pairs)
        table.owner, table.owners = owner, pairs // max(other.rows, 1)
        mine = table.refer(owner, table.owners, nullable=False)
        table.set_key(mine + table.refer(other, pairs % max(other.rows, 1), nullable=False))
        return table, mine
    table.owner, table.owners = owner, places
    mine = table.refer(owner, places, nullable=nullable)
    if kind == "owner":
        table.set_key(mine)
    if kind == "owner and attribute":
        table.columns["place"] = "SMALLINT NOT NULL"
        table.values["place"] = rng.permutation(table.rows).tolist()
        table.set_key((*mine, "place"))
    return table, mine


def _refer_across(rng: Rng, private: list[DraftTable], public: list[DraftTable]) -> None:
    """References between any two tables, cycles and self references among them, to numbered keys."""
    numbered = [t for t in [*private, *public] if t.key == ("id",) and "VARCHAR" not in t.columns["id"] and t.rows]
    for table in [*private, *public]:
        if not numbered or rng.random() < 0.5:
            continue
        target = numbered[int(rng.integers(0, len(numbered)))]
        unique = rng.random() < 0.3 and table.rows <= target.rows
        nullable = bool(rng.random() < 0.6)
        places = rng.permutation(target.rows)[: table.rows] if unique else rng.integers(0, target.rows, table.rows)
        if nullable:
            places = np.where(rng.random(table.rows) < 0.3, -1, places)
        names = table.refer(target, places, nullable=nullable)
        if unique:
            table.constraints.append(f"UNIQUE ({_quoted(names)})")


def _attributes(rng: Rng, table: DraftTable) -> None:
    for at in range(int(rng.integers(0, 3))):
        table.columns[f"a{at}"] = "SMALLINT"
        table.values[f"a{at}"] = rng.integers(0, 5, table.rows).tolist()
    if rng.random() < 0.4 and table.rows:
        table.columns |= {"u": "SMALLINT", "v": "VARCHAR"}
        cells = rng.permutation(table.rows * 2)[: table.rows]
        table.values |= {"u": (cells // 4).tolist(), "v": ["abcd"[c % 4] for c in cells]}
        table.constraints.append("UNIQUE (u, v)")
