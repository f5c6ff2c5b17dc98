"""What a method may know of a database for free: shapes, links, and the sizes that are public."""

from collections.abc import Mapping, Sequence
from typing import Any

from privbench.encode.codec import Codec
from privbench.errors import SpecError
from privbench.methods.method import Settings
from privbench.model.order import ids_are_public
from privbench.privacy.facts import ColumnFacts, Facts, LinkFacts, PublicCounts, TableFacts
from privbench.schema.spec import Orphans, Sizes, Spec
from privbench.schema.unit import Link, LinkKind, Neighbours, Protection, Role


def sizes_are_public(spec: Spec, settings: Settings) -> bool:
    """Whether the spec declares the sizes of all tables public; as published, the paper does.

    Raises SpecError where entities may come and go: no two neighbours have the same sizes then.
    """
    public = spec.sizes is Sizes.PUBLIC or settings.as_published
    if public and spec.neighbours is Neighbours.ADD_REMOVE:
        said = "method.as_published" if settings.as_published else "sizes: public"
        raise SpecError(
            f"`{said}` publishes the number of entities, which `neighbours: add-remove` protects. "
            "Set `neighbours: replace`, or take it out."
        )
    return public


def known_rows(protection: Protection, rows: Mapping[str, int], *, public_sizes: bool) -> dict[str, int]:
    """The sizes that are public: of public tables, of the entity table under `replace`, of all if so declared."""
    known = {name: rows[name] for name, role in protection.roles.items() if role is Role.PUBLIC and name in rows}
    if public_sizes:
        known |= {name: rows[name] for name in protection.order}
    if protection.neighbours is Neighbours.REPLACE:
        known[protection.entity] = rows[protection.entity]
    return known


Codecs = Mapping[str, Mapping[str, Codec]]
"""Codecs by table and column."""


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
            lookup_of=protection.lookups[name][0] if name in protection.lookups else None,
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
    )


def _link_facts(protection: Protection, link: Link, known: Mapping[str, int]) -> LinkFacts:
    slotted = link.kind is LinkKind.CATEGORY or (link.target == protection.entity and link.target in known)
    counted = link.kind is LinkKind.OWNER and protection.counts_rows(link.table)
    return link_facts(link, slots=known[link.target] if slotted else None, counted=counted)


def link_facts(link: Link, *, slots: int | None, counted: bool = False) -> LinkFacts:
    """What is public of a key that can reference so many rows; None where their number is private."""
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


def derived_json(protection: Protection, nodes: Sequence[Mapping[str, Any]]) -> tuple[dict[str, Any], ...]:
    """Derived columns as the receipt has them: found if an event of the ledger has tested them, else declared."""
    tested = [
        (node["query"]["table"], axis["feature"]["column"], axis["feature"]["equals"])
        for node in nodes
        if node["kind"] == "event"
        for axis in node["query"].get("axes", ())
        if axis["feature"]["kind"] == "agreement"
    ]
    return tuple(
        {
            "table": table.name,
            "column": column.name,
            "origin": "found" if (table.name, column.name, column.derived.words()) in tested else "declared",
            "equals": column.derived.words(),
        }
        for table in protection.schema.tables
        for column in table.columns
        if column.derived is not None
    )
