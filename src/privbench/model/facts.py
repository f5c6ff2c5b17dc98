"""What a method may know of a database for free: shapes, links, and the sizes that are public."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.encode.codec import Codec, Codecs
from privbench.encode.possible import possible_codes
from privbench.errors import SpecError
from privbench.methods.method import Settings
from privbench.model.order import ids_are_public
from privbench.privacy.facts import ColumnFacts, Facts, LinkFacts, PossiblePairs, PublicCounts, TableFacts
from privbench.rules.orders import orders_in
from privbench.schema.computed import ComputedOrigin, equal_columns
from privbench.schema.domain import Origin
from privbench.schema.expression import ColumnName
from privbench.schema.lists import lists_of
from privbench.schema.pairs import Learnt, learnt_pairs
from privbench.schema.relative import base_of
from privbench.schema.spec import Orphans, Sizes, Spec
from privbench.schema.table_spec import ColumnSpec
from privbench.schema.unit import Link, LinkKind, Neighbours, Protection, Role
from privbench.spn.feature_names import key_column, null_column, own_column, owner_column


def sizes_are_public(spec: Spec, settings: Settings) -> bool:
    """Whether the spec declares the sizes of all tables public; as published, the paper does.

    Raises SpecError where entities may come and go: no two neighbours have the same sizes then.
    """
    public = spec.sizes is Sizes.PUBLIC or settings.as_published
    if public:
        check_public_sizes(spec.neighbours, "method.as_published" if settings.as_published else "sizes: public")
    return public


def check_public_sizes(neighbours: Neighbours, setting: str) -> None:
    """Refuse a setting that makes sizes public where entities may come and go."""
    if neighbours is Neighbours.ADD_REMOVE:
        raise SpecError(
            f"`{setting}` publishes the number of entities, which `neighbours: add-remove` protects. "
            "Set `neighbours: replace`, or take it out."
        )


def known_rows(protection: Protection, rows: Mapping[str, int], *, public_sizes: bool) -> dict[str, int]:
    """The sizes that are public: of public tables, of the entity table under `replace`, of all if so declared."""
    known = {name: rows[name] for name, role in protection.roles.items() if role is Role.PUBLIC and name in rows}
    return known | {name: rows[name] for name in tables_of_known_size(protection, public_sizes=public_sizes)}


def tables_of_known_size(protection: Protection, *, public_sizes: bool) -> tuple[str, ...]:
    """The private tables whose sizes are public.

    Never a lookup: its rows are copied for each row that references them, so that their number is not the size that
    the publisher knows, and an entity moves it. Never a hidden list, of which the same is true.
    """
    if public_sizes:
        lists = {table.name for table in lists_of(protection)}
        return tuple(name for name in protection.order if name not in {*protection.lookups, *lists})
    return (protection.entity,) if protection.neighbours is Neighbours.REPLACE else ()


def public_facts(
    spec: Spec,
    protection: Protection,
    codecs: Codecs,
    rows: Mapping[str, int],
    *,
    public_sizes: bool,
    public_counts: tuple[PublicCounts, ...] = (),
) -> Facts:
    """What the method may know for free."""
    known = known_rows(protection, rows, public_sizes=public_sizes)
    tables = {
        name: TableFacts(
            name=name,
            columns={c: _column_facts(codec) for c, codec in codecs[name].items()},
            rows=known.get(name),
            cap=spec.tables[name].rows_per_entity,
            weight=spec.tables[name].budget or 1.0,
            hidden=bool(spec.tables[name].list_of),
            lookup_of=protection.lookups[name][0] if name in protection.lookups else None,
            pairs=tuple({frozenset(pair): pair for pair in _pairs(spec, protection, name)}.values()),
        )
        for name in protection.order
    }
    private = [k for k in protection.links if protection.roles[k.table] is not Role.PUBLIC]
    links = tuple(_link_facts(protection, link, known) for link in private)
    return Facts(
        entity=protection.entity,
        neighbours=protection.neighbours,
        tables=tables,
        links=links,
        public_ids=ids_are_public(protection),
        public_counts=public_counts,
        orphans=spec.orphans is Orphans.NULL,
        possible=tuple(_possible_pairs(protection, codecs)),
    )


def _pairs(spec: Spec, protection: Protection, table: str) -> Iterator[tuple[str, str]]:
    """The pairs of columns that the spec says depend on each other, by names of features."""
    for first, second in learnt_pairs(spec.tables, protection, table):
        other = _feature_name(protection, second)
        yield _feature_name(protection, first), other if second.table == table else owner_column(other)


def _feature_name(protection: Protection, learnt: Learnt) -> str:
    if learnt.key is None:
        return learnt.column
    if learnt.key.kind is LinkKind.CATEGORY:
        return key_column(learnt.key.name)
    return own_column(learnt.key.name) if protection.leads_above(learnt.key) else null_column(learnt.key.name)


def _possible_pairs(protection: Protection, codecs: Codecs) -> Iterator[PossiblePairs]:
    """What rules that compare two columns, of a row or of it and its owner, leave of their codes.

    Codes of differences say nothing without their base, so relative columns are left out.
    """
    for name in protection.order:
        table, owner = protection.schema.table(name), protection.owner_link(name)
        found: dict[tuple[ColumnName, str], NDArray[np.bool_]] = {}
        for order in orders_in(table.checks):
            sides = [order.low, order.high]
            coded = [_absolute_codec(protection, codecs, c.table or name, c.column) for c in sides]
            above = [c.table for c in sides if c.table is not None]
            if None in coded or len(above) > 1 or (above and (owner is None or above != [owner.target])):
                continue
            possible = possible_codes(order, *(codec for codec in coded if codec is not None))
            if possible is None or possible.all():
                continue
            base, column = sides if order.high.table is None else sides[::-1]
            if (column, base.column) in found:  # the same two columns the other way round, so that both have one name
                base, column = column, base
            possible = possible if base is order.low else possible.T
            known = found.get((base, column.column))
            found[base, column.column] = possible if known is None else known & possible
        for (base, column_name), possible in found.items():
            yield PossiblePairs(
                table=name, column=column_name, base=base.column, of_owner=base.table is not None, possible=possible
            )


def _absolute_codec(protection: Protection, codecs: Codecs, table: str, column: str) -> Codec | None:
    """The codec of a column of a private table, unless its codes are differences."""
    relative = protection.schema.table(table).column(column).relative_to is not None
    return None if relative else codecs.get(table, {}).get(column)


def _link_facts(protection: Protection, link: Link, known: Mapping[str, int]) -> LinkFacts:
    slotted = link.kind is LinkKind.CATEGORY or (link.target == protection.entity and link.target in known)
    counted = link.kind is LinkKind.OWNER and protection.counts_rows(link.table)
    shared = link.kind is LinkKind.OWNER and bool(protection.implied_of(link.table))
    return replace(link_facts(link, slots=known[link.target] if slotted else None, counted=counted), shared=shared)


def link_facts(link: Link, *, slots: int | None, counted: bool = False) -> LinkFacts:
    """What is public of a key that can reference `slots` rows; None where their number is private."""
    return LinkFacts(
        name=link.name,
        table=link.table,
        columns=link.key.columns,
        target=link.target,
        kind=link.kind,
        slots=slots,
        nullable=link.nullable,
        unique=link.unique,
        counted=counted,
    )


def _column_facts(codec: Codec) -> ColumnFacts:
    return ColumnFacts(size=codec.size, ordered=codec.ordered, null=codec.null_code is not None)


def stated_facts(spec: Spec, protection: Protection) -> dict[str, Any]:
    """What a spec says that a receipt repeats: the origins of domains and computed columns, and earlier releases."""
    origins = spec.origins(protection)
    return {
        "domains": origins,
        "releases": {place: spec.column(*place).release for place, o in origins.items() if o is Origin.EARLIER},
        "earlier": spec.earlier_releases(),
        "computed": tuple(
            _computed_json(protection, place, column) for place, column in spec.computed_columns(protection).items()
        ),
        "relative": tuple(
            _relative_json(protection, place, column) for place, column in spec.relative_columns(protection).items()
        ),
        "orphans": spec.orphans.value,
        "rules_from_data": tuple(spec.rules_from_data()),
    }


def _computed_json(protection: Protection, place: tuple[str, str], column: ColumnSpec) -> dict[str, Any]:
    equals = equal_columns(protection, place[0]).get(place[1])
    origin = column.computed_origin if column.computed is not None else column.map_origin
    release = {"release": column.release} if origin is ComputedOrigin.EARLIER else {}
    words = {"map": column.determined_by} if column.computed is None else {"expression": column.computed.sql}
    return {
        "table": place[0],
        "column": place[1],
        "origin": origin.value,
        **release,
        "equals": words if equals is None else equals.words(),
    }


def _relative_json(protection: Protection, place: tuple[str, str], column: ColumnSpec) -> dict[str, Any]:
    base = base_of(protection, *place)
    assert base is not None  # noqa: S101  else it is not among the relative columns
    release = {"release": column.release} if column.relative_origin is ComputedOrigin.EARLIER else {}
    return {
        "table": place[0],
        "column": place[1],
        "origin": column.relative_origin.value,
        **release,
        "base": "previous" if base.previous else {"table": base.table, "column": base.column},
    }
