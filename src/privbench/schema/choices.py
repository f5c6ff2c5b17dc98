"""The publisher's choices, checked against the schema: which table is the unit, which are public, made up or others.

Every message names the flag or the word of the spec that makes the choice, and lists what could be chosen. Dropping a
table drops the foreign keys into it and the columns of those keys, since an id of a row that is not there says
nothing; a column that another key still needs stays. A primary key is never cut: that is an error.
"""

import difflib
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from privbench.errors import SchemaError, SpecError
from privbench.schema.expression import Expression
from privbench.schema.tables import ForeignKey, Place, Schema, Table

MOST_LISTED = 50
MADE_UP_ROWS = 100
"""So many rows are made up for a table if the publisher does not say how many."""


def flag(name: str, value: str) -> str:
    """Show a flag as one types it in a shell.

    >>> flag("--drop", "order line")
    "`--drop 'order line'`"
    """
    return f"`{name} {shlex.quote(value)}`"


def closest(name: str, choices: Iterable[str]) -> str:
    """Say what else could have been named: the nearest choice, then all of them.

    >>> closest("custmer", ["customer", "store"])
    'Did you mean customer? Choices: customer, store.'
    """
    choices = list(choices)
    folded = {c.casefold()[:100]: c for c in choices[:1000]}
    near = difflib.get_close_matches(name.casefold()[:100], folded, n=1)
    listed = ", ".join(choices[:MOST_LISTED]) + (", .." if len(choices) > MOST_LISTED else "")
    return (f"Did you mean {folded[near[0]]}? " if near else "") + f"Choices: {listed or 'none'}."


def spelled_like(name: str, names: Iterable[str], *, option: str) -> str:
    """Spell a name as it is spelled among others, if it is there but for case; any other stays, for others to refuse.

    >>> spelled_like("customer", ["Customer", "store"], option="--unit")
    'Customer'
    >>> spelled_like("customer", ["Customer", "CUSTOMER"], option="--unit")
    Traceback (most recent call last):
    privbench.errors.SpecError: --unit customer: several have that name but for case. Say which: Customer, CUSTOMER.
    """
    known = list(names)
    alike = [] if name in known else [other for other in known if other.casefold() == name.casefold()]
    if len(alike) > 1:
        raise SpecError(f"{option} {name}: several have that name but for case. Say which: {', '.join(alike)}.")
    return alike[0] if alike else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What a publisher chooses when a spec is drafted, in names of tables and columns."""

    unit: str | None
    public: Collection[str]
    drop: Collection[str]
    drop_columns: Collection[Place]
    owners: Mapping[str, tuple[str, ...]]
    lookups: Mapping[str, str]
    made_up: Mapping[str, int]

    def spelled(self, schema: Schema) -> "Choices":
        """Spell all names as the schema does. SpecError where a name is that of several but for case."""
        columns = {t.name: [c.name for c in t.columns] for t in schema.tables}

        def table(name: str, option: str) -> str:
            return spelled_like(name, columns, option=option)

        def place(name: str, column: str, option: str) -> Place:
            of = table(name, option)
            return of, spelled_like(column, columns.get(of, ()), option=f"{option} {of}:")

        return Choices(
            unit=None if self.unit is None else table(self.unit, "--unit"),
            public=tuple(table(name, "--public") for name in self.public),
            drop=tuple(table(name, "--drop") for name in self.drop),
            drop_columns=tuple(place(*given, "--drop") for given in self.drop_columns),
            owners={
                table(name, "--owner"): tuple(place(name, column, "--owner")[1] for column in key)
                for name, key in self.owners.items()
            },
            lookups={table(name, "--owned-by"): table(of, "--owned-by") for name, of in self.lookups.items()},
            made_up={table(name, "--made-up"): rows for name, rows in self.made_up.items()},
        )


def check_choices(
    schema: Schema,
    *,
    entity: str | None,
    owners: Iterable[str],
    public: Iterable[str],
    made_up: Iterable[str],
    lookups: Iterable[str],
    drop: Iterable[str],
) -> None:
    """Refuse names that are no table, and tables that were given two roles."""
    names = [t.name for t in schema.tables]
    roles = {} if entity is None else {entity: "it is the unit"}
    given = {"--public": public, "--made-up": made_up, "--drop": drop, "--owned-by": lookups, "--owner": owners}
    for option, tables in given.items():
        for table in dict.fromkeys(tables):
            if table not in names:
                raise SpecError(f"{option} {table}: there is no such table. {closest(table, names)}")
            if table in roles:
                raise SpecError(
                    f"{option} {table}: {roles[table]} already, and a table is only one of these. Remove one."
                )
            roles[table] = f"it has {option}"


def choose_entity(schema: Schema, entity: str | None, public: Collection[str]) -> str:
    """Return the named table, or the only one there is. Otherwise the error lists the choices."""
    names = [t.name for t in schema.tables]
    if entity is None and len(names) == 1:
        return names[0]
    counts = {t.name: _count_reaching(schema, t.name) for t in schema.tables if t.primary_key and t.name not in public}
    ranked = sorted(counts, key=lambda name: -counts[name])
    listed = "\n".join(
        f"  {flag('--unit', name)}   reached by {counts[name]} of {len(names) - 1} other tables" for name in ranked
    )
    if entity is None:
        raise SpecError(
            "no unit: name the table that has one row for each person (or other entity) to protect.\n"
            + (listed or "  No table has a primary key; give it one with `key: [COLUMN]` in the spec.")
        )
    if entity not in names:
        raise SpecError(f"unit {entity}: there is no such table. {closest(entity, ranked or names)}")
    return entity


def _count_reaching(schema: Schema, target: str) -> int:
    reached, before = {target}, 0
    while len(reached) > before:
        before = len(reached)
        reached |= {t.name for t, key in schema.foreign_keys() if key.table in reached}
    return len(reached) - 1


def referrers(schema: Schema, table: str) -> tuple[str, ...]:
    """Name the other tables that have a key into `table`."""
    return tuple(dict.fromkeys(t.name for t, key in schema.foreign_keys() if key.table == table != t.name))


def lookup_key(schema: Schema, table: str, owner: str, public: Collection[str]) -> ForeignKey:
    """Find the one key of `owner` into the lookup `table`."""
    option = flag("--owned-by", f"{table}={owner}")
    users = [name for name in referrers(schema, table) if name not in public]
    if owner not in users:
        reason = "is public or made up" if owner in public else f"has no key into {table}"
        raise SpecError(f"{option}: {owner} {reason}. Private tables that have one: {', '.join(users) or 'none'}.")
    keys = [k for k in schema.table(owner).foreign_keys if k.table == table]
    if len(keys) > 1:
        raise SpecError(
            f"{option}: {owner} has {len(keys)} keys into {table}: {'; '.join(map(str, keys))}. A lookup needs exactly "
            f"one: drop a column of the others in the spec (`drop: true` under it), or make {table} public."
        )
    return keys[0]


def leave_out(tables: Sequence[Table], *, drop: Collection[str] = (), columns: Collection[Place] = ()) -> Schema:
    """Make the schema of `tables` without what is dropped. Raises SchemaError if a primary key loses a column.

    >>> from privbench.schema.tables import Column
    >>> from privbench.schema.types import parse_type
    >>> a = Table(name="a", columns=(Column(name="x", type=parse_type("INTEGER")),))
    >>> b = replace(a, name="b")
    >>> [t.name for t in leave_out([a, b], drop=["a"]).tables]
    ['b']
    """
    kept = [t for t in tables if t.name not in drop]
    why = dict.fromkeys(columns, "it is dropped")
    while lost := {p: reason for t in kept for p, reason in _dangling(t, drop, why).items() if p not in why}:
        why |= lost
    return Schema(tables=tuple(_cut(t, drop, why) for t in kept))


def _dangling(table: Table, drop: Collection[str], gone: Collection[Place]) -> dict[Place, str]:
    """Find the columns of keys whose target is gone, and why; not those that a key which stays needs."""
    stays = {c for key in table.foreign_keys if not _target_gone(key, drop, gone) for c in key.columns}
    return {
        (table.name, column): f"its key {key} points at what is dropped"
        for key in table.foreign_keys
        if _target_gone(key, drop, gone)
        for column in key.columns
        if column not in stays
    }


def _target_gone(key: ForeignKey, drop: Collection[str], gone: Collection[Place]) -> bool:
    return key.table in drop or any((key.table, column) in gone for column in key.references)


def _cut(table: Table, drop: Collection[str], why: Mapping[Place, str]) -> Table:
    def whole(columns: Collection[str]) -> bool:
        return not any((table.name, c) in why for c in columns)

    for column in table.primary_key:
        if (table.name, column) in why:
            raise SchemaError(
                f"{table.name}.{column}: {why[table.name, column]}, but it is part of the primary key. "
                f"Drop {table.name} too ({flag('--drop', table.name)}), keep what the key points at (`--public` or "
                f"`--made-up`), "
                f"or take the key out of `foreign_keys` in the spec, which leaves its columns as plain ones."
            )
    columns = tuple(c for c in table.columns if whole([c.name]))
    if not columns:
        raise SchemaError(f"{table.name}: no column is left. Drop the table too: {flag('--drop', table.name)}.")
    return replace(
        table,
        columns=columns,
        foreign_keys=tuple(k for k in table.foreign_keys if whole(k.columns) and not _target_gone(k, drop, why)),
        uniques=tuple(u for u in table.uniques if whole(u)),
        indexes=tuple(i for i in table.indexes if whole(i.columns)),
        checks=tuple(c for c in table.checks if not names_dropped(c, table.name, drop, why)),
    )


def names_dropped(check: Expression, table: str, drop: Collection[str], columns: Collection[Place]) -> bool:
    """Tell whether a rule of a table names a table or a column that is dropped."""
    places = [(name.table or table, name.column) for name in check.columns]
    return any(place in columns or place[0] in drop for place in places)
