"""Between reading and learning: find columns that equal what the rows around them say, and take them out of the model.

Which columns are looked at follows from the schema; whether they agree is asked of the vault.
"""

import logging
from collections.abc import Iterable, Sequence

import pyarrow as pa

from privbench.errors import SpecError
from privbench.fitting.reading import check_source
from privbench.io.base import Source
from privbench.methods.tree.computed import Candidate, find_computed
from privbench.model.chosen import Chosen
from privbench.model.facts import link_facts
from privbench.model.order import generation_order, referenced_ahead
from privbench.privacy.vault import Vault
from privbench.rules.computed import ComputedQuery, is_compared
from privbench.schema.computed import Equals, computed_order, equal_columns, possible
from privbench.schema.relative import relative_columns, values_needed
from privbench.schema.spec import Spec
from privbench.schema.tables import Column, Table
from privbench.schema.types import Kind
from privbench.schema.unit import Neighbours, Protection

_logger = logging.getLogger(__name__)
Place = tuple[str, str]


def computed_columns(protection: Protection) -> tuple[str, ...]:
    """Say which columns are computed, and what they equal."""
    columns = [(table.name, column) for table in protection.schema.tables for column in table.columns]
    return tuple(f"{table}.{c.name} = {_shown(c)}" for table, c in columns if c.computed is not None)


def check_counted(spec: Spec, protection: Protection) -> None:
    """Refuse columns that count rows of a table whose number is promised before its owners' are drawn."""
    equal = {(t, c): equals for t in protection.order for c, equals in equal_columns(protection, t).items()}
    counting = {place: equals.rows for place, equals in equal.items() if equals.rows is not None}
    ahead = referenced_ahead(protection, generation_order(spec, protection, owners_first=True)) if counting else ()
    for (table, column), child in counting.items():
        if child in ahead:
            raise SpecError(
                f"tables.{table}.columns.{column}.computed: other tables reference rows of {child} before {child} "
                "is generated, so the number of its rows is already fixed. Take this out, and give the column a "
                "domain; or take such a key out of `foreign_keys`."
            )


def tell_differing(source: Source, protection: Protection) -> None:
    """Tell the publisher in how many rows a computed column is not what its expression says. Nothing is spent yet.

    Raises SourceError where the source lacks a column of the spec.
    """
    check_source(source.schema(), protection.schema)
    places = [place for place in computed_order(protection) if is_compared(protection, place)]
    queries = {place: ComputedQuery(protection, place) for place in places}
    wanted: dict[str, set[str]] = {}
    for query in queries.values():
        for table, columns in query.columns.items():
            wanted.setdefault(table, set()).update(columns)
    tables = {name: _read(source, protection.schema.table(name), columns) for name, columns in wanted.items()}
    for (table, column), query in queries.items():
        differing = query.run(tables)
        if differing:
            _logger.warning(
                "%s.%s: in %s of %s rows it is not %s. In synthetic rows it always is. These numbers are for you "
                "alone; they are not published.",
                table,
                column,
                f"{differing:,}",
                f"{tables[table].num_rows:,}",
                _shown(protection.schema.table(table).column(column)),
            )


def _shown(column: Column) -> str:
    return str(column.computed) if column.determined_by is None else f"what {column.determined_by} determines"


def _read(source: Source, table: Table, columns: set[str]) -> pa.Table:
    kept = Table(name=table.name, columns=tuple(c for c in table.columns if c.name in columns))
    schema = pa.schema([pa.field(c.name, c.type.arrow) for c in kept.columns])
    return pa.Table.from_batches(source.read(kept), schema=schema)


def candidates_to_test(spec: Spec, protection: Protection, chosen: Chosen) -> tuple[Candidate, ...]:
    """What columns might equal, by the schema; none where the spec wants no tests, or entities may come and go."""
    tested = chosen.method.computes_columns and getattr(chosen.settings, "computed", False)
    if not tested or protection.neighbours is Neighbours.ADD_REMOVE:
        return ()
    ahead = referenced_ahead(protection, generation_order(spec, protection, owners_first=True))
    learnt = _to_be_learnt(protection)
    return tuple(
        _candidate(protection, table, column, equals)
        for table in protection.order
        for column in protection.attributes(table)
        for equals in possible(protection, table, column)
        if equals.rows not in ahead
        and (table, column) not in learnt
        and (equals.owner is None or (protection.owners[table].table, equals.owner) not in learnt)
        and _is_likely(protection, table, column, equals)
    )


def _to_be_learnt(protection: Protection) -> set[Place]:
    """Relative columns, of which there are no values to compare, their bases, and columns of which maps are made."""
    places: set[Place] = set()
    for table in protection.order:
        places |= {(table, column) for column in relative_columns(protection, table)}
        places |= values_needed(protection, table)
        for column in protection.schema.table(table).columns:
            if column.determined_by is not None:
                places |= {(table, column.name), (table, column.determined_by)}
    return places


def places_of(candidates: Iterable[Candidate]) -> set[Place]:
    """The columns whose values candidates are about."""
    places = set()
    for candidate in candidates:
        places.add((candidate.table, candidate.column))
        if candidate.equals.owner is not None:
            places.add((candidate.link.target, candidate.equals.owner))
    return places


def with_tested(
    spec: Spec, protection: Protection, candidates: Sequence[Candidate], vault: Vault, *, entities: int
) -> Spec:
    """The spec in which the columns are computed whose candidates hold. Sees noisy answers alone."""
    held = find_computed(vault, candidates, entities=entities)
    owners = {name: key.table for name, key in protection.owners.items()}
    return spec.with_computed({(c.table, c.column): c.equals.expression(owners.get(c.table)) for c in held})


def _candidate(protection: Protection, table: str, column: str, equals: Equals) -> Candidate:
    link = protection.owner_link(equals.rows or table)
    if link is None:
        raise ValueError(f"{table}.{column}: equals something of an owner that is not there")
    kind = protection.schema.table(table).column(column).type.kind
    return Candidate(
        table=table, column=column, equals=equals, link=link_facts(link, slots=None), plain=_plain(kind, equals)
    )


def _is_likely(protection: Protection, table: str, column: str, equals: Equals) -> bool:
    """Copies are looked for under the same name, ranks where owners may have several rows; in a key of one nothing."""
    declared = protection.schema.table(table)
    if (column,) in declared.keys:
        return False
    if equals.rank is not None:
        owner = protection.owners[table].columns
        return not any(set(key) <= set(owner) for key in declared.keys)
    if equals.owner is None:
        return True
    return equals.owner == column and column in protection.attributes(protection.owners[table].table)


def _plain(kind: Kind, equals: Equals) -> int | None:
    """The number that a column may well equal by chance: the first rank, no rows, 0 or false in a copy."""
    if equals.rank is not None:
        return equals.rank
    return {Kind.INTEGER: 0, Kind.FLOAT: 0, Kind.BOOLEAN: False}.get(kind)
