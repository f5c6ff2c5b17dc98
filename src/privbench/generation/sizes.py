"""How many rows each table is to have at a scale, and which tables came out smaller. From the model alone.

An owner has at most as many rows as an entity may have, and no more than its keys can tell apart; both are public or
follow from the spec.
"""

from collections.abc import Collection, Mapping, Sequence
from math import prod

from privbench.encode.interval import IntervalCodec
from privbench.model.model import Model
from privbench.model.order import colliding_keys
from privbench.schema.computed import equal_columns
from privbench.schema.domain import Range, Values
from privbench.schema.unit import Link
from privbench.spn.fanouts import MANY

Sizes = Mapping[str, int]
"""How many rows each table has or will have."""


def planned_rows(model: Model, scale: float) -> dict[str, int]:
    """How many rows each table is to have. One that has rows keeps at least one at any scale.

    A table with a NOT NULL key into a table without rows has none either.
    """
    private = model.protection.order
    planned = dict(model.public_rows)
    for name in private:
        rows = model.tables[name].rows
        planned[name] = max(round(rows * scale), 1 if rows >= 0.5 else 0)
    required = [link for link in model.protection.links if link.table in model.tables and not link.nullable]
    for _ in private:
        planned |= {link.table: 0 for link in required if planned[link.target] == 0}
    return planned


def within_reach(model: Model, planned: Sizes, promised: Collection[str]) -> dict[str, int]:
    """The same, but for promised tables no more rows than their owners can have."""
    reached = dict(planned)
    for name in (n for n in model.protection.order if n in promised and n in model.protection.owners):
        owners = reached[model.protection.owners[name].table]
        reached[name] = min(reached[name], owners * most_rows_per_owner(model, name, reached))
    return reached


def most_rows_per_owner(model: Model, name: str, sizes: Sizes) -> int:
    """The most rows of a table that one owner row may have: by the cap, and by each key that holds the owner key."""
    owner = model.protection.owner_link(name)
    if owner is None:
        return MANY
    limits = [
        prod(_different(model, name, c, sizes) for c in key if c not in owner.key.columns)
        for key in model.protection.schema.table(name).keys
        if set(owner.key.columns) <= set(key)
    ]
    cap = model.receipt["unit"]["tables"][name]["rows_per_entity"]  # null: an entity may have any number
    return max(1, min([MANY if cap is None else int(cap), *limits]))


def rows_without_owner(model: Model, link: Link, *, rows: int, scale: float) -> int:
    """How many of the rows of a table have no owner, where the others come with one."""
    children = model.tables[link.table].links[link.name].with_owner
    return 0 if children is None or not link.nullable else min(round(children.unowned * scale), rows)


def is_counted(model: Model, name: str) -> bool:
    """Whether a computed column of its owner says how many rows of a table there are."""
    owner = model.protection.owner_link(name)
    return owner is not None and any(
        equals.rows == name for equals in equal_columns(model.protection, owner.target).values()
    )


def lost_rows(model: Model, planned: Sizes, written: Sizes, left_out: Sizes | None = None) -> list[str]:
    """Say which private tables have fewer rows than their size asked for, with the key that is to blame.

    `left_out` are rows that are not there since they would break a rule, which are told elsewhere. Hidden lists are not
    among the tables written, and taken to have as many rows as planned.
    """
    lines = []
    made = {**planned, **{name: rows + (left_out or {}).get(name, 0) for name, rows in written.items()}}
    for name in (name for name in model.protection.order if name in written):
        wanted = planned[name] or round(model.tables[name].rows)
        if made[name] < wanted:
            why = _why_lost(model, name, wanted, made)
            lines.append(f"{name}: {made[name]:,} of {wanted:,} rows were made: {why}.")
    return lines


def _different(model: Model, name: str, column: str, sizes: Sizes) -> int:
    """About how many different values a column of a key can have."""
    for link in model.protection.links_of(name):
        if column in link.key.columns:
            return sizes[link.target]
    declared = model.protection.schema.table(name).column(column)
    equals = equal_columns(model.protection, name).get(column)
    if equals is not None and equals.rank is not None:
        return declared.type.bounds[1] - equals.rank + 1
    codec = model.codecs[name].get(column)
    listed = isinstance(model.spec.column(name, column).domain, Range | Values)
    if codec is None or not listed:
        return MANY
    return (
        int(codec.values_in.sum()) if isinstance(codec, IntervalCodec) else codec.size - (codec.null_code is not None)
    )


def _lacks_target(link: Link, written: Sizes) -> bool:
    """Whether a key must reference a row of a table that has none."""
    return written[link.target] == 0 and not link.nullable


def _why_lost(model: Model, name: str, wanted: int, written: Sizes) -> str:
    for link in model.protection.links_of(name):
        if _lacks_target(link, written):
            return f"its NOT NULL key {_listed(link.key.columns)} needs a row of {link.target}, which came out empty"
    owner, most = model.protection.owner_link(name), most_rows_per_owner(model, name, written)
    if owner is not None and written[owner.target] * most < wanted:
        return (
            f"its key {_listed(owner.key.columns)} references one of {written[owner.target]:,} rows of {owner.target}, "
            f"each at most {most:,} times"
        )
    table = model.protection.schema.table(name)
    keys = " and ".join(f"({_listed(key)})" for key in colliding_keys(model.spec, table))
    if keys:
        return f"the others repeated the key {keys}, also when drawn again"
    if owner is not None and is_counted(model, name):
        return f"the others belong to rows of {owner.target} that were left out"
    return "its target tables are too small"


def _listed(columns: Sequence[str]) -> str:
    return ", ".join(columns)
