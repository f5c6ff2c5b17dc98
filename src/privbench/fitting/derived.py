"""Between reading and learning: find columns that equal what the rows around them say, and take them out of the model.

Which columns are looked at follows from the schema; whether they agree is asked of the vault.
"""

from collections.abc import Iterable, Sequence

from privbench.errors import SpecError
from privbench.methods.tree.derived import Candidate, find_derived
from privbench.model.chosen import Chosen
from privbench.model.facts import link_facts
from privbench.model.order import generation_order, referenced_ahead
from privbench.privacy.vault import Vault
from privbench.schema.derived import Derived, possible
from privbench.schema.relative import relative_columns, values_needed
from privbench.schema.spec import Spec
from privbench.schema.types import Kind
from privbench.schema.unit import Neighbours, Protection

Place = tuple[str, str]


def derived_columns(protection: Protection) -> tuple[str, ...]:
    """Say which columns are derived, and what they equal."""
    columns = [(table.name, column) for table in protection.schema.tables for column in table.columns]
    return tuple(f"{table}.{c.name} = {c.derived}" for table, c in columns if c.derived is not None)


def check_counted(spec: Spec, protection: Protection) -> None:
    """Refuse columns that count rows of a table whose number is promised before its owners' are drawn."""
    columns = [(table.name, column) for table in protection.schema.tables for column in table.columns]
    counting = {(t, c.name): c.derived.rows for t, c in columns if c.derived is not None and c.derived.rows is not None}
    ahead = referenced_ahead(protection, generation_order(spec, protection, owners_first=True)) if counting else ()
    for (table, column), child in counting.items():
        if child in ahead:
            raise SpecError(
                f"tables.{table}.columns.{column}.derived: other tables reference rows of {child} before {child} "
                "is generated, so the number of its rows is already fixed. Take this out, and give the column a "
                "domain; or take such a key out of `foreign_keys`."
            )


def candidates_to_test(spec: Spec, protection: Protection, chosen: Chosen) -> tuple[Candidate, ...]:
    """What columns might equal, by the schema; none where the spec wants no tests, or entities may come and go."""
    tested = chosen.method.derives_columns and getattr(chosen.settings, "derived", False)
    if not tested or protection.neighbours is Neighbours.ADD_REMOVE:
        return ()
    ahead = referenced_ahead(protection, generation_order(spec, protection, owners_first=True))
    relative = _in_differences(protection)
    return tuple(
        _candidate(protection, table, column, derived)
        for table in protection.order
        for column in protection.attributes(table)
        for derived in possible(protection, table, column)
        if derived.rows not in ahead
        and (table, column) not in relative
        and (derived.owner is None or (protection.owners[table].table, derived.owner) not in relative)
        and _is_likely(protection, table, column, derived)
    )


def _in_differences(protection: Protection) -> set[Place]:
    """Relative columns, of which there are no values to compare, and their bases, which must be learnt."""
    places: set[Place] = set()
    for table in protection.order:
        places |= {(table, column) for column in relative_columns(protection, table)}
        places |= values_needed(protection, table)
    return places


def places_of(candidates: Iterable[Candidate]) -> set[Place]:
    """The columns whose values candidates are about."""
    places = set()
    for candidate in candidates:
        places.add((candidate.table, candidate.column))
        if candidate.derived.owner is not None:
            places.add((candidate.link.target, candidate.derived.owner))
    return places


def with_tested(spec: Spec, candidates: Sequence[Candidate], vault: Vault, *, entities: int) -> Spec:
    """The spec in which the columns are derived whose candidates hold. Sees noisy answers alone."""
    held = find_derived(vault, candidates, entities=entities)
    return spec.with_derived({(candidate.table, candidate.column): candidate.derived for candidate in held})


def _candidate(protection: Protection, table: str, column: str, derived: Derived) -> Candidate:
    link = protection.owner_link(derived.rows or table)
    if link is None:
        raise ValueError(f"{table}.{column}: equals something of an owner that is not there")
    kind = protection.schema.table(table).column(column).type.kind
    return Candidate(
        table=table, column=column, derived=derived, link=link_facts(link, slots=None), plain=_plain(kind, derived)
    )


def _is_likely(protection: Protection, table: str, column: str, derived: Derived) -> bool:
    """Copies are looked for under the same name, ranks where owners may have several rows; in a key of one nothing."""
    declared = protection.schema.table(table)
    if (column,) in declared.keys:
        return False
    if derived.rank is not None:
        owner = protection.owners[table].columns
        return not any(set(key) <= set(owner) for key in declared.keys)
    if derived.owner is None:
        return True
    return derived.owner == column and column in protection.attributes(protection.owners[table].table)


def _plain(kind: Kind, derived: Derived) -> int | None:
    """The number that a column may well equal by chance: the first rank, no rows, 0 or false in a copy."""
    if derived.rank is not None:
        return derived.rank
    return {Kind.INTEGER: 0, Kind.FLOAT: 0, Kind.BOOLEAN: False}.get(kind)
