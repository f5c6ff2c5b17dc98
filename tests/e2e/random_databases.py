"""Random databases: shapes with keys of any kind, filled with columns of all types and relations between them.

Each is a function of its number: CHECKs over one and two columns, IN lists, BETWEEN and orders of dates; computed
columns (products, copies of the owner's, sums of child rows); composite keys; hidden lists; CHAR(n); long ranges of
time; decimals; columns that are constant, all NULL or nearly so; tables of one row and of none; owners that are NULL;
names that need quotes, with the dots of a schema among them.
"""

import datetime as dt
import string
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np

from privbench.io.names import quote_sql

from .random_shapes import DraftShape, DraftTable, random_keys
from .shapes import Rng, Shape

NAMES = ("order", "sales.item", "a b", "Größe", 'say "so"', "x;y", "select", "Table", "hr.Entry", "it's")
"""Names for tables and columns that need quotes, or look qualified."""
EPOCH = dt.datetime(1900, 1, 1)
SECONDS = 200 * 365 * 86400


def random_database(number: int) -> Shape:
    """A database that is a function of its number."""
    rng = np.random.default_rng([18, number])
    odd = iter(rng.permutation(NAMES).tolist())
    drafted = random_keys(rng, name=lambda plain: next(odd) if rng.random() < 0.2 else plain)
    if rng.random() < 0.3:
        _hidden_list(rng, drafted)
    for table in [*drafted.private, *drafted.public]:
        for kind in rng.permutation(len(KINDS))[: int(rng.integers(0, 6))]:
            KINDS[kind](rng, table)
    for table in drafted.private[1:]:
        if rng.random() < 0.4 and table.owner is not None:
            ACROSS[int(rng.integers(0, len(ACROSS)))](rng, table)
    orphans = rng.random() < 0.15 and any(_orphans(rng, table) for table in drafted.private[1:])
    for table in [*drafted.private, *drafted.public]:
        _any_order(rng, table)
    shape = drafted.shape(rng)
    return replace(shape, choices={**shape.choices, "orphans": "null"}) if orphans else shape


# -- columns of one table ----------------------------------------------------------------------------------------------


def _name(rng: Rng, table: DraftTable, plain: str) -> str:
    """A name that the table does not have, now and then an odd one."""
    odd = NAMES[int(rng.integers(0, len(NAMES)))]
    plain = odd if rng.random() < 0.1 else plain
    taken = {name.lower() for name in table.columns}
    return next(n for n in [plain, *(f"{plain}{i}" for i in range(99))] if n.lower() not in taken)


def _add(rng: Rng, table: DraftTable, plain: str, kind: str, values: list[Any], *, null: float = 0.0) -> str:
    """Add a column, with some of its values NULL."""
    name = _name(rng, table, plain)
    nulls = rng.random(len(values)) < null
    table.columns[name] = kind + ("" if null or rng.random() < 0.3 else " NOT NULL")
    table.values[name] = [None if gone else value for value, gone in zip(values, nulls, strict=True)]
    return name


def _check(table: DraftTable, condition: str) -> None:
    table.constraints.append(f"CHECK ({condition})")


def _nulls(rng: Rng) -> float:
    return float(rng.choice([0.0, 0.0, 0.1, 0.6, 1.0]))


def _number(rng: Rng, table: DraftTable) -> None:
    kind = str(rng.choice(["SMALLINT", "INTEGER", "BIGINT", "TINYINT"]))
    values = rng.integers(0, 100, table.rows).tolist()
    name = _add(rng, table, "n", kind, values, null=_nulls(rng))
    if rng.random() < 0.6:
        _check(table, f"{quote_sql(name)} BETWEEN 0 AND 120" if rng.random() < 0.5 else f"{quote_sql(name)} >= 0")


def _choice(rng: Rng, table: DraftTable) -> None:
    words = ["open", "closed", "it's", "äöü", ""][: int(rng.integers(1, 6))]
    values = [words[i] for i in rng.integers(0, len(words), table.rows)]
    name = _add(rng, table, "status", "VARCHAR(10)", values, null=_nulls(rng))
    listed = ", ".join("'" + word.replace("'", "''") + "'" for word in words)
    if rng.random() < 0.7:
        _check(table, f"{quote_sql(name)} IN ({listed})")


def _order(rng: Rng, table: DraftTable) -> None:
    low = rng.integers(-50, 50, table.rows)
    high = low + rng.integers(0, 30, table.rows)
    first = _add(rng, table, "low", "INTEGER", low.tolist())
    second = _add(rng, table, "high", "INTEGER", high.tolist(), null=float(rng.choice([0.0, 0.2])))
    _check(table, f"{quote_sql(first)} <= {quote_sql(second)}")
    if rng.random() < 0.3:
        _check(table, f"{quote_sql(second)} <= {quote_sql(first)} + 30")


def _dates(rng: Rng, table: DraftTable) -> None:
    begun = rng.integers(0, 20_000, table.rows)
    ended = begun + rng.integers(0, 400, table.rows)
    day = EPOCH.date() + dt.timedelta(days=18_000)
    first = _add(rng, table, "begun", "DATE", [day + dt.timedelta(days=int(d)) for d in begun])
    ends = [day + dt.timedelta(days=int(d)) for d in ended]
    second = _add(rng, table, "ended", "DATE", ends, null=float(rng.choice([0.0, 0.3])))
    if rng.random() < 0.7:
        _check(table, f"{quote_sql(second)} >= {quote_sql(first)}")


def _moment(rng: Rng, table: DraftTable) -> None:
    seconds = rng.integers(0, SECONDS, table.rows)
    _add(rng, table, "seen", "TIMESTAMP", [EPOCH + dt.timedelta(seconds=int(s)) for s in seconds], null=_nulls(rng))


def _decimal(rng: Rng, table: DraftTable) -> None:
    cents = [Decimal(int(c)) / 100 for c in rng.integers(-(10**6), 10**6, table.rows)]
    _add(rng, table, "amount", "DECIMAL(12, 2)", cents, null=_nulls(rng))


def _letters(rng: Rng, table: DraftTable) -> None:
    width = int(rng.choice([1, 1, 2, 5]))
    drawn = rng.integers(0, 26, (table.rows, width))
    values = ["".join(string.ascii_uppercase[i] for i in row) for row in drawn]
    _add(rng, table, "code", f"CHAR({width})", values, null=_nulls(rng))


def _text(rng: Rng, table: DraftTable) -> None:
    values = [f"word {i}" for i in rng.integers(0, 10**6, table.rows)]
    plain = str(rng.choice(["note", "email", "last_name", "city"]))
    _add(rng, table, plain, str(rng.choice(["VARCHAR", "VARCHAR(40)", "TEXT"])), values, null=_nulls(rng))


def _constant(rng: Rng, table: DraftTable) -> None:
    _add(rng, table, "same", "SMALLINT", [7] * table.rows)
    _add(
        rng, table, "nothing", str(rng.choice(["DATE", "INTEGER", "VARCHAR", "DOUBLE"])), [None] * table.rows, null=1.0
    )


def _truth(rng: Rng, table: DraftTable) -> None:
    _add(rng, table, "flag", "BOOLEAN", (rng.random(table.rows) < 0.2).tolist(), null=_nulls(rng))
    _add(rng, table, "ratio", "DOUBLE", rng.normal(0, 1, table.rows).tolist(), null=_nulls(rng))


def _product(rng: Rng, table: DraftTable) -> None:
    one, two = rng.integers(1, 9, table.rows), rng.integers(1, 50, table.rows)
    first = _add(rng, table, "quantity", "INTEGER", one.tolist())
    second = _add(rng, table, "price", "INTEGER", two.tolist())
    table.columns[first], table.columns[second] = "INTEGER NOT NULL", "INTEGER NOT NULL"
    formula = f"{quote_sql(first)} * {quote_sql(second)}"
    generated = f"INTEGER GENERATED ALWAYS AS ({formula}) STORED"
    name = _add(rng, table, "total", "INTEGER", (one * two).tolist())
    table.columns[name] = generated if rng.random() < 0.5 else "INTEGER NOT NULL"


def _unique(rng: Rng, table: DraftTable) -> None:
    if not table.rows:
        return
    cells = rng.permutation(table.rows * 2)[: table.rows]
    first = _add(rng, table, "u", "SMALLINT", (cells // 4).tolist())
    second = _add(rng, table, "v", "CHAR(1)", ["abcd"[c % 4] for c in cells])
    table.constraints.append(f"UNIQUE ({quote_sql(first)}, {quote_sql(second)})")


def _numbered(rng: Rng, table: DraftTable) -> None:
    """A date in the order of the ids, and the id of an earlier row."""
    if table.key != ("id",) or "VARCHAR" in table.columns["id"]:
        return
    days = np.sort(rng.integers(0, 2000, table.rows))
    _add(rng, table, "entered", "DATE", [dt.date(2012, 1, 1) + dt.timedelta(days=int(d)) for d in days])
    if rng.random() < 0.5 and table.rows:
        earlier = rng.integers(-1, np.maximum(np.arange(table.rows), 1))
        earlier[0] = -1
        (name,) = table.refer(table, earlier, nullable=True)
        _check(table, f"{quote_sql(name)} < {quote_sql('id')}")


KINDS: tuple[Callable[[Rng, DraftTable], None], ...] = (
    _number,
    _choice,
    _order,
    _dates,
    _moment,
    _decimal,
    _letters,
    _text,
    _constant,
    _truth,
    _product,
    _unique,
    _numbered,
)


# -- columns of rows and their owners ----------------------------------------------------------------------------------


def _sum(rng: Rng, table: DraftTable) -> None:
    """The owner holds the sum of its rows here, or their number."""
    owner, owners = table.owner, table.owners
    assert owner is not None
    assert owners is not None
    values = rng.integers(0, 20, table.rows)
    _add(rng, table, "part", "INTEGER", values.tolist())
    sums = np.bincount(owners[owners >= 0], values[owners >= 0], minlength=owner.rows).astype(int)
    name = _add(rng, owner, "whole", "INTEGER", sums.tolist())
    if rng.random() < 0.5:
        _check(owner, f"{quote_sql(name)} >= 0")


def _copy(rng: Rng, table: DraftTable) -> None:
    """A column of the owner, in its rows too."""
    owner, owners = table.owner, table.owners
    assert owner is not None
    assert owners is not None
    if "region" not in owner.columns:
        _add(rng, owner, "region", "SMALLINT", rng.integers(0, 7, owner.rows).tolist())
    name = next((n for n in owner.columns if n.startswith("region")), None)
    if name is not None:
        there = owner.values[name]
        _add(rng, table, "region", "SMALLINT", [there[at] if at >= 0 else None for at in owners], null=0.01)


def _later(rng: Rng, table: DraftTable) -> None:
    """A date soon after one of the owner's."""
    owner, owners = table.owner, table.owners
    assert owner is not None
    assert owners is not None
    days = rng.integers(0, 3000, owner.rows)
    start = dt.date(2010, 1, 1)
    _add(rng, owner, "joined", "DATE", [start + dt.timedelta(days=int(d)) for d in days])
    after = [int(days[at]) if at >= 0 else 0 for at in owners] + rng.integers(0, 60, table.rows)
    _add(rng, table, "visited", "DATE", [start + dt.timedelta(days=int(d)) for d in after], null=0.05)


ACROSS: tuple[Callable[[Rng, DraftTable], None], ...] = (_sum, _copy, _later)


def _hidden_list(rng: Rng, drafted: DraftShape) -> None:
    """Two tables with rows of the same seasons of an entity, which are in no table of their own."""
    entity = drafted.private[0]
    seasons = [(at, 2000 + n) for at in range(entity.rows) for n in range(int(rng.integers(0, 4)))]
    for name in ("bat", "pitch"):
        kept = [season for season in seasons if rng.random() < 0.8]
        table = DraftTable(name=name, rows=len(kept))
        places = np.array([at for at, _ in kept], np.int64)
        table.owner, table.owners = entity, places
        mine = table.refer(entity, places, nullable=False)
        table.columns["year"], table.values["year"] = "INTEGER NOT NULL", [year for _, year in kept]
        table.set_key((*mine, "year"))
        drafted.private.append(table)
        drafted.owners[name] = mine


def _orphans(rng: Rng, table: DraftTable) -> bool:
    """Let some keys of a table that may be NULL lead nowhere; whether there are any."""
    keyed = {name for name in table.columns if name.startswith("k") and name.endswith("_id")}
    for name in sorted(keyed - set(table.key)):
        values = table.values[name]
        if "NOT NULL" in table.columns[name] or "VARCHAR" in table.columns[name] or not len(values):
            continue
        if not any(f"UNIQUE ({quote_sql(name)})" in constraint for constraint in table.constraints):
            table.values[name] = [999_999 if rng.random() < 0.1 else value for value in values]
            return True
    return False


def _any_order(rng: Rng, table: DraftTable) -> None:
    """Columns stand in any order."""
    names = [list(table.columns)[i] for i in rng.permutation(len(table.columns))]
    table.columns = {name: table.columns[name] for name in names}
