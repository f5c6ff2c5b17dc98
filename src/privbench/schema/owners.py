"""Find each private table's owner key: the foreign key that says whose rows these are.

The rule (first that applies): the declared key; the only direct key to the entity table; the only key that leads
to the entity table through owner keys. Anything else is asked for, never guessed. Used by `unit.protect`.
"""

from collections.abc import Collection, Mapping

from privbench.errors import SchemaError, SpecError
from privbench.schema.choices import flag, referrers
from privbench.schema.tables import ForeignKey, Schema, Table

Lookups = Mapping[str, tuple[str, ForeignKey]]


def find_owners(
    schema: Schema, *, entity: str, public: Collection[str], declared: Mapping[str, tuple[str, ...]], lookups: Lookups
) -> dict[str, ForeignKey]:
    """Find the owner key of every private table but the entity table and the lookups."""
    owned = [t for t in schema.tables if t.name not in public and t.name != entity and t.name not in lookups]
    barred = {*public, *lookups}
    fixed = {t: _declared_key(schema.table(t), columns, barred) for t, columns in declared.items()}
    keys = {t.name: _candidates(t, entity, barred, fixed) for t in owned}
    steps = {t: {k.table for k in ks} for t, ks in keys.items()} | {t: {owner} for t, (owner, _) in lookups.items()}
    _refuse_cycle({t: key.table for t, key in fixed.items()} | {t: owner for t, (owner, _) in lookups.items()})
    reached = _leading_to(entity, steps)
    if lost := [t.name for t in schema.tables if t.name not in public and t.name not in reached]:
        raise SpecError(_unreached(schema, entity, lost))
    leading = {t: [k for k in ks if k.table in _leading_to(entity, steps, around=t)] for t, ks in keys.items()}
    if several := {t: ks for t, ks in leading.items() if len(ks) > 1}:
        raise SpecError(_ambiguous(entity, several))
    return {t: ks[0] for t, ks in leading.items()}


def _declared_key(table: Table, columns: tuple[str, ...], barred: Collection[str]) -> ForeignKey:
    where = f"{table.name}.{','.join(columns)}"
    keys = [k for k in table.foreign_keys if set(k.columns) == set(columns)]
    choices = ", ".join(_flag(table.name, k) for k in table.foreign_keys if k.table not in barred) or "none"
    if not keys:
        raise SpecError(f"{where}: named as owner key, but it is no foreign key of {table.name}. Choices: {choices}.")
    if keys[0].table in barred:
        raise SpecError(
            f"{where}: named as owner key, but it points at {keys[0].table}, which is a public table or a lookup and "
            f"owns nothing. Choices: {choices}."
        )
    return keys[0]


def _flag(table: str, key: ForeignKey) -> str:
    return flag("--owner", f"{table}.{','.join(key.columns)}")


def _candidates(
    table: Table, entity: str, barred: Collection[str], fixed: Mapping[str, ForeignKey]
) -> tuple[ForeignKey, ...]:
    if table.name in fixed:
        return (fixed[table.name],)
    direct = tuple(k for k in table.foreign_keys if k.table == entity)
    if len(direct) == 1:
        return direct
    return tuple(k for k in table.foreign_keys if k.table not in barred and k.table != table.name)


def _leading_to(entity: str, steps: Mapping[str, Collection[str]], *, around: str | None = None) -> set[str]:
    """Find the tables with a path of steps to the entity table that does not pass through `around`."""
    found, grown = {entity}, True
    while grown:
        more = {t for t, targets in steps.items() if t not in found and t != around and not found.isdisjoint(targets)}
        grown = bool(more)
        found |= more
    return found


def _refuse_cycle(owner: Mapping[str, str]) -> None:
    for start in owner:
        path = [start]
        while (after := owner.get(path[-1])) is not None and after not in path:
            path.append(after)
        if after == start:
            raise SchemaError(
                f"owner keys form a cycle: {' -> '.join([*path, start])}. Whose rows these are must end at the unit "
                f"table: name another owner key for one of them ({flag('--owner', path[0] + '.COLUMN')})."
            )


def _unreached(schema: Schema, entity: str, lost: list[str]) -> str:
    def described(name: str) -> str:
        return f"  {name} (referenced by {', '.join(referrers(schema, name)) or 'no table'})"

    return "\n".join(
        [
            f"no key leads from these tables to {entity}, so the schema does not say whose rows they hold:",
            *map(described, lost),
            "Say for each what it is, by a flag or in the spec:",
            "  --public T           `public: true`     nobody's secret: copied as it is",
            "  --owned-by T=OWNER   `owned_by: OWNER`  a row belongs to the row of OWNER that references it",
            "  --drop T             `drop: true`       left out, with the keys into it",
        ]
    )


def _ambiguous(entity: str, several: Mapping[str, list[ForeignKey]]) -> str:
    lines = [f"more than one key leads to {entity}; say which one tells whose rows these are:"]
    for table, keys in several.items():
        lines += [f"  {_flag(table, key)}   {key}" for key in keys]
    lines.append("In the spec: `owner: [COLUMN]` under the table. The other keys become references.")
    return "\n".join(lines)
