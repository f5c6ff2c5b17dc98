"""The publisher's choices, checked against the schema: which table is the unit, which are public, dropped or lookups.

Every message names the flag or the word of the spec that makes the choice, and lists what could be chosen.
"""

import difflib
import shlex
from collections.abc import Collection, Iterable

from privbench.errors import SpecError
from privbench.schema.tables import ForeignKey, Schema

MOST_LISTED = 50


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


def check_choices(
    schema: Schema,
    *,
    entity: str | None,
    owners: Iterable[str],
    public: Iterable[str],
    lookups: Iterable[str],
    drop: Iterable[str],
) -> None:
    """Refuse names that are no table, and tables that were given two roles."""
    names = [t.name for t in schema.tables]
    said = {} if entity is None else {entity: "it is the unit"}
    for option, tables in {"--public": public, "--drop": drop, "--owned-by": lookups, "--owner": owners}.items():
        for table in dict.fromkeys(tables):
            if table not in names:
                raise SpecError(f"{option} {table}: there is no such table. {closest(table, names)}")
            if table in said:
                raise SpecError(
                    f"{option} {table}: {said[table]} already, and a table is only one of these. Remove one."
                )
            said[table] = f"it has {option}"


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
    found, before = {target}, 0
    while len(found) > before:
        before = len(found)
        found |= {t.name for t, key in schema.foreign_keys() if key.table in found}
    return len(found) - 1


def referrers(schema: Schema, table: str) -> tuple[str, ...]:
    """Name the other tables that have a key into `table`."""
    return tuple(dict.fromkeys(t.name for t, key in schema.foreign_keys() if key.table == table != t.name))


def lookup_key(schema: Schema, table: str, owner: str, public: Collection[str]) -> ForeignKey:
    """Find the one key of `owner` into the lookup `table`."""
    option = flag("--owned-by", f"{table}={owner}")
    users = [name for name in referrers(schema, table) if name not in public]
    if owner not in users:
        found = "is public" if owner in public else f"has no key into {table}"
        raise SpecError(f"{option}: {owner} {found}. Private tables that have one: {', '.join(users) or 'none'}.")
    keys = [k for k in schema.table(owner).foreign_keys if k.table == table]
    if len(keys) > 1:
        raise SpecError(
            f"{option}: {owner} has {len(keys)} keys into {table}: {'; '.join(map(str, keys))}. A lookup needs exactly "
            f"one: drop a column of the others in the spec (`drop: true` under it), or make {table} public."
        )
    return keys[0]
