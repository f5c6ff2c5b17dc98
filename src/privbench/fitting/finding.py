"""Between reading and learning: find what columns depend on, take what they equal out of the model, code differences.

Which columns are looked at follows from the schema; what holds is asked of the vault.
"""

from collections.abc import Iterable, Iterator, Sequence

from privbench.fitting.determined import determined_columns
from privbench.methods.tree.finding import Candidate, find_dependencies
from privbench.model.chosen import Chosen
from privbench.model.facts import link_facts
from privbench.model.order import generation_order, referenced_ahead
from privbench.privacy.facts import LinkFacts
from privbench.privacy.features import Agreement, Base, Difference, Nearness, agreement, nearness
from privbench.privacy.vault import Vault
from privbench.privacy.windows import NEAR
from privbench.rules.candidates import relative_candidates
from privbench.schema.computed import Equals, possible
from privbench.schema.relative import Base as BaseColumn
from privbench.schema.relative import base_words, relative_columns
from privbench.schema.spec import Spec
from privbench.schema.tables import Place
from privbench.schema.types import Kind
from privbench.schema.unit import Neighbours, Protection

_DATES = (Kind.DATE, Kind.TIMESTAMP)
"""What lies so many days from another."""


def candidates_to_test(spec: Spec, protection: Protection, chosen: Chosen) -> tuple[Candidate, ...]:
    """What columns might depend on, by the schema; none if the spec does not want it, or entities may come and go."""
    wanted = chosen.method.computes_columns and getattr(chosen.settings, "find", False)
    if not wanted or protection.neighbours is Neighbours.ADD_REMOVE:
        return ()
    return (*_equal(spec, protection), *_near(spec, protection))


def _equal(spec: Spec, protection: Protection) -> Iterator[Candidate]:
    """Columns that may equal how many rows a row owns, what its owner says, or its rank."""
    ahead = referenced_ahead(protection, generation_order(spec, protection, owners_first=True))
    settled = _in_differences(protection) | _in_maps(protection)
    for table in protection.order:
        for column in protection.attributes(table):
            for equals in possible(protection, table, column):
                copied = None if equals.owner is None else (protection.owners[table].table, equals.owner)
                if equals.rows in ahead or (table, column) in settled or copied in settled:
                    continue
                if _is_likely(protection, table, column, equals):
                    yield _candidate(protection, table, column, equals)


def _near(spec: Spec, protection: Protection) -> Iterator[Candidate]:
    """Dates whose domain is to be found, and that may lie near others: of rows above, or before them in the row."""
    settled = {(t, c) for t in protection.order for c in relative_columns(protection, t)} | _in_maps(protection)
    for table, column in spec.wanted(protection):
        if (table, column) in settled or protection.schema.table(table).column(column).type.kind not in _DATES:
            continue
        attributes = protection.attributes(table)
        earlier = {(table, other) for other in attributes[: attributes.index(column)]}
        for base in relative_candidates(protection, table, column):
            place = (base.table, base.column)
            kind = protection.schema.table(base.table).column(base.column).type.kind
            if kind not in _DATES or place in settled or (base.table == table and place not in earlier):
                continue
            found = Base(base.column, _path(protection, table, base.table))
            for days in NEAR:
                yield Candidate(table=table, column=column, feature=nearness(column, found, days))


def _in_differences(protection: Protection) -> set[Place]:
    """Relative columns, of which there are no values to compare, and their bases, which must be learnt."""
    places: set[Place] = set()
    for table in protection.order:
        for column, base in relative_columns(protection, table).items():
            places |= {(table, column), (base.table, base.column)}
    return places


def _in_maps(protection: Protection) -> set[Place]:
    """Columns that others determine, and those others: maps are made of their codes."""
    determined = determined_columns(protection)
    return {*determined, *((table, by) for (table, _), by in determined.items())}


def places_of(candidates: Iterable[Candidate]) -> set[Place]:
    """The columns whose values candidates are about."""
    places = set()
    for candidate in candidates:
        places.add((candidate.table, candidate.column))
        source = candidate.feature.source
        if isinstance(source, Agreement) and source.equals.owner is not None:
            places.add((source.link.target, source.equals.owner))
        if isinstance(source, Nearness):
            places.add((source.base.table(candidate.table), source.base.column))
    return places


def with_dependencies(
    spec: Spec, protection: Protection, candidates: Sequence[Candidate], vault: Vault, *, entities: int
) -> Spec:
    """The spec in which columns are computed, and others relative, as candidates hold. Sees noisy answers alone.

    The vault then has differences instead of the values of relative columns.
    """
    held = find_dependencies(vault, candidates, entity=protection.entity, entities=entities)
    owners = {name: key.table for name, key in protection.owners.items()}
    equal = {(c.table, c.column): s for c in held if isinstance(s := c.feature.source, Agreement)}
    copied = {(s.link.target, s.equals.owner) for s in equal.values()}
    bases = {
        (c.table, c.column): s.base
        for c in held
        if isinstance(s := c.feature.source, Nearness)
        and (c.table, c.column) not in copied
        and (s.base.table(c.table), s.base.column) not in equal
    }
    vault.take_differences(
        [
            Difference(
                table=table,
                column=column,
                base=base,
                type=protection.schema.table(table).column(column).type,
                base_type=protection.schema.table(base.table(table)).column(base.column).type,
            )
            for (table, column), base in bases.items()
        ]
    )
    spec = spec.with_computed({p: s.equals.expression(owners.get(p[0])) for p, s in equal.items()})
    named = {p: BaseColumn(base.table(p[0]), base.column) for p, base in bases.items()}
    return spec.with_relative({p: base_words(protection, p[0], base) for p, base in named.items()})


def _path(protection: Protection, table: str, above: str) -> tuple[LinkFacts, ...]:
    """The owner keys that lead from a table to one above it."""
    links = [protection.owner_link(name) for name in protection.up_to(table, above)]
    return tuple(link_facts(link, slots=None) for link in links if link is not None)


def _candidate(protection: Protection, table: str, column: str, equals: Equals) -> Candidate:
    link = protection.owner_link(equals.rows or table)
    if link is None:
        raise ValueError(f"{table}.{column}: equals something of an owner that is not there")
    kind = protection.schema.table(table).column(column).type.kind
    feature = agreement(column, equals, _plain(kind, equals), link_facts(link, slots=None))
    return Candidate(table=table, column=column, feature=feature)


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
