"""Who is protected and what is public: what a receipt says beside its charges, and what its queries are judged by.

Names are only compared, never looked into, so that a table or column may have any name.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from privbench_verify.read import (
    Json,
    Place,
    ReceiptError,
    digest_of,
    fields_of,
    integer_of,
    list_of,
    listed,
    names_of,
    object_of,
    one_of,
    optional_text_of,
    positive_of,
    rational_of,
    shown,
    shown_place,
    text_of,
)

ENTITY_WEIGHT = 2**20
"""What all rows of an entity in a table weigh together, where rows are counted by weight."""
NEIGHBOURS = {"replace": 2, "add-remove": 1}
"""What an epsilon for adding or removing one entity costs in their terms: replacing is removing and adding."""
PRIVATE, DATA, EARLIER = "private", "data", "earlier release"
DECLARED, FOUND, SCHEMA = "declared", "found", "schema"
_DOMAIN_ORIGINS = (DECLARED, SCHEMA, PRIVATE, DATA, EARLIER)
_COMPUTED_ORIGINS = (DECLARED, SCHEMA, DATA, FOUND, EARLIER)
_RELATIVE_ORIGINS = (DECLARED, FOUND, EARLIER)
_LIMITS = (DECLARED, "chosen", "derived", "none")
_ROLES = ("entity", "owned", "lookup")
_MAX_EARLIER = 1000

EXPRESSION, MAP = "expression", "map"
Equals = tuple[str, str | int]
"""What a column equals: `rows` of a table, the `owner`'s column, the `rank` from 0 or 1, an `expression`, or a
`map` of another column of the row."""
_Fact = TypeVar("_Fact")


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A foreign key: the table that holds it, its columns, and the table that it references."""

    table: str
    columns: tuple[str, ...]
    target: str

    def __str__(self) -> str:
        return f"{shown(self.table)}({', '.join(map(shown, self.columns))}) -> {shown(self.target)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateTable:
    """A table of the unit: what it is to the entity, whose rows own its rows, and how many an entity has."""

    role: str
    owner: str | None
    key: tuple[str, ...] | None
    """The columns that lead to the owner; of a lookup, the columns of the owner table that lead here."""
    rows_per_entity: int | None
    """None where an entity may have any number, so that rows cannot be counted."""
    limit_from: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Where the domain of a column comes from, and from which earlier release if from one."""

    origin: str
    release: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Computed:
    """A column that equals what the rows around it say, and where that is known from."""

    equals: Equals
    origin: str
    release: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Relative:
    """A column that is coded as a difference from another, and where that is known from."""

    base: Place | None
    """None for the same column in the row before."""
    origin: str
    release: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """An earlier release on which this one builds: what it promised."""

    receipt: str
    epsilon: Fraction
    delta: Fraction
    neighbours: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All of it."""

    neighbours: str
    entity: str
    tables: Mapping[str, PrivateTable]
    lists: tuple[str, ...]
    """Tables of the unit that exist in the model alone: what rows of other tables share."""
    references: frozenset[Link]
    """Keys between private tables that are not owner keys."""
    inside: frozenset[Link]
    """Keys to rows of the same entity that are not above the row itself, and not owner keys."""
    implied: tuple[Link, ...]
    """Keys to rows above the row itself, of each table in the order in which they say whose a row is."""
    domains: Mapping[Place, Domain]
    sizes: Mapping[str, int]
    public_tables: tuple[str, ...]
    """Those that are made up among them."""
    made_up: Mapping[str, int]
    """Tables of which no row was read, and how many rows were made up for each."""
    people: Mapping[str, Mapping[str, str]]
    """Columns of public tables that look like people, with their types, as the publisher was told."""
    public_keys: tuple[tuple[str, tuple[str, ...]], ...]
    """Private tables and their columns whose values are public, as public tables reference them."""
    orphans: str
    parameters: Mapping[str, str | int | bool]
    earlier: tuple[Release, ...]
    computed: Mapping[Place, Computed]
    relative: Mapping[Place, Relative]
    rules: tuple[Place, ...]
    """Rules that were taken from the data, each after its table."""

    def taken_from_releases(self) -> Iterator[tuple[Place, str]]:
        """Columns whose domain or dependency is from an earlier release, and the digest of its receipt."""
        for places in (self.domains, self.computed, self.relative):
            for place, fact in places.items():
                if fact.release is not None:
                    yield place, fact.release

    def rows_per_entity(self, table: str, where: str) -> int:
        """The most rows that an entity has in a table, where these can be counted."""
        if (rows := self.tables[table].rows_per_entity) is None:
            raise ReceiptError(f"{where}: {shown(table)} has no limit of rows per entity, so rows cannot be counted")
        return rows

    def owner_link(self, table: str) -> Link | None:
        """The owner key of an owned table."""
        facts = self.tables.get(table)
        if facts is None or facts.role != "owned" or facts.owner is None or facts.key is None:
            return None
        return Link(table=table, columns=facts.key, target=facts.owner)

    def owner_of(self, table: str, where: str) -> str:
        """The table that owns the rows of an owned table."""
        if (link := self.owner_link(table)) is None:
            raise ReceiptError(f"{where}: {shown(table)} is no owned table, so its rows have no owner row")
        return link.target

    def table_of(self, value: object, where: str) -> str:
        """The name of a private table."""
        if (name := text_of(value, where)) not in self.tables:
            raise ReceiptError(f"{where} is {shown(name)}, which is no table of the unit")
        return name


def read_facts(receipt: Json) -> Facts:
    """Read all that a receipt says beside its numbers and charges; ReceiptError at the first thing that is wrong."""
    entity, tables, lists = _unit(receipt["unit"])
    inside, implied = _inside(receipt["inside"], tables)
    names = ("domains", "sizes", "tables", "keys", "orphans", "orphans_note", "parameters")
    public = fields_of(receipt["public"], "public", names, optional=("rules", "made_up", "people"))
    made_up = object_of(public.get("made_up", {}), "public.made_up", integer_of)
    facts = Facts(
        neighbours=one_of(receipt["neighbours"], "neighbours", NEIGHBOURS),
        entity=entity,
        tables=tables,
        lists=lists,
        references=_references(receipt["references"], tables),
        inside=inside,
        implied=implied,
        domains=_domains(public["domains"]),
        sizes=object_of(public["sizes"], "public.sizes", integer_of),
        public_tables=(*names_of(public["tables"], "public.tables"), *made_up),
        made_up=made_up,
        people=object_of(public.get("people", {}), "public.people", lambda v, where: object_of(v, where, text_of)),
        public_keys=tuple(list_of(public["keys"], "public.keys", _public_key)),
        orphans=one_of(public["orphans"], "public.orphans", ("error", "null")),
        parameters=object_of(public["parameters"], "public.parameters", _parameter),
        earlier=_earlier(receipt["earlier"]),
        computed=_computed(receipt["computed"], tables),
        relative=_relative(receipt["relative"], tables),
        rules=tuple(list_of(public.get("rules", []), "public.rules", _rule)),
    )
    if twice := facts.references & facts.inside:
        raise ReceiptError(f"inside.keys: {next(iter(twice))} is among the references, too")
    _check_note(public["orphans_note"], "public.orphans_note", needed=facts.orphans == "null")
    _check_public(facts)
    _check_lists(facts)
    _check_releases(facts)
    return facts


def _rule(value: object, where: str) -> Place:
    rule = fields_of(value, where, ("table", "rule"))
    return text_of(rule["table"], f"{where}.table"), text_of(rule["rule"], f"{where}.rule")


def read_link(value: object, where: str) -> Link:
    """Read a foreign key."""
    link = fields_of(value, where, ("table", "columns", "target"))
    return Link(
        table=text_of(link["table"], f"{where}.table"),
        columns=names_of(link["columns"], f"{where}.columns", least=1),
        target=text_of(link["target"], f"{where}.target"),
    )


def read_equals(value: object, table: str, tables: Mapping[str, PrivateTable], where: str) -> Equals:
    """Read what a computed column of a table equals."""
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in ("rows", "owner", "rank"):
        raise ReceiptError(f"{where} is not one of rows, owner and rank")
    ((kind, argument),) = value.items()
    if kind == "rows":
        child = tables.get(text_of(argument, f"{where}.rows"))
        if child is None or child.role != "owned" or child.owner != table:
            raise ReceiptError(f"{where}: {shown(argument)} is no table whose rows are owned by rows of {shown(table)}")
        return kind, text_of(argument, where)
    if tables[table].role != "owned":
        raise ReceiptError(f"{where}: rows of {shown(table)} have no owner row")
    if kind == "rank":
        return kind, integer_of(argument, f"{where}.rank", most=1)
    return kind, text_of(argument, f"{where}.owner")


def _read_computed(value: object, table: str, tables: Mapping[str, PrivateTable], where: str) -> Equals:
    """Read what a computed column equals: what an event can compare it with, a map, or an expression (not parsed)."""
    for kind in (EXPRESSION, MAP):
        if isinstance(value, dict) and list(value) == [kind]:
            return kind, text_of(value[kind], f"{where}.{kind}")
    return read_equals(value, table, tables, where)


def _unit(value: object) -> tuple[str, dict[str, PrivateTable], tuple[str, ...]]:
    unit = fields_of(value, "unit", ("entity", "weight", "tables", "lists"))
    if type(unit["weight"]) is not int or unit["weight"] != ENTITY_WEIGHT:
        raise ReceiptError(f"unit.weight is not {ENTITY_WEIGHT}")
    entity = text_of(unit["entity"], "unit.entity")
    tables = object_of(unit["tables"], "unit.tables", _private_table)
    if entity not in tables:
        raise ReceiptError(f"unit.entity is {shown(entity)}, which is no table of the unit")
    for name, table in tables.items():
        _check_table(name, table, entity, tables)
    _check_owners(entity, tables)
    lists = names_of(unit["lists"], "unit.lists")
    for name in lists:
        if name not in tables or tables[name].role != "owned":
            raise ReceiptError(f"unit.lists: {shown(name)} is no owned table of the unit")
    return entity, tables, lists


def _private_table(value: object, where: str) -> PrivateTable:
    table = fields_of(value, where, ("role", "owner", "key", "rows_per_entity", "rows_per_entity_from"))
    rows, key, owner = table["rows_per_entity"], table["key"], table["owner"]
    return PrivateTable(
        role=one_of(table["role"], f"{where}.role", _ROLES),
        owner=None if owner is None else text_of(owner, f"{where}.owner"),
        key=None if key is None else names_of(key, f"{where}.key", least=1),
        rows_per_entity=None if rows is None else integer_of(rows, f"{where}.rows_per_entity", least=1),
        limit_from=one_of(table["rows_per_entity_from"], f"{where}.rows_per_entity_from", _LIMITS),
    )


def _check_table(name: str, table: PrivateTable, entity: str, tables: Mapping[str, PrivateTable]) -> None:
    where, rows, origin = f"unit.tables.{shown(name)}", table.rows_per_entity, table.limit_from
    if (name == entity) != (table.role == "entity"):
        raise ReceiptError(f"{where}: its role is {table.role}, but the entity table is {shown(entity)}")
    if (rows is None) != (origin == "none"):
        raise ReceiptError(f'{where}: rows_per_entity must be null exactly when rows_per_entity_from is "none"')
    if name == entity:
        if (table.owner, table.key, rows, origin) != (None, None, 1, "derived"):
            raise ReceiptError(f"{where}: an entity has one row in its own table, which is derived, and no owner")
        return
    if table.owner is None or table.owner not in tables or table.key is None:
        raise ReceiptError(f"{where}: it has no owner table in the unit, or no key")
    if origin == "derived" and rows != tables[table.owner].rows_per_entity:
        raise ReceiptError(
            f"{where}: rows_per_entity {rows} has the origin derived, but differs from that of its owner"
        )


def _check_owners(entity: str, tables: Mapping[str, PrivateTable]) -> None:
    """Every table leads to the entity table, from owner to owner."""
    reached = {entity}
    for name in tables:
        path: list[str] = []
        at: str | None = name
        while at is not None and at not in reached:
            if len(path) > len(tables):
                raise ReceiptError(f"unit.tables.{shown(name)}: its owners go round in a circle")
            path.append(at)
            at = tables[at].owner
        reached.update(path)


def _references(value: object, tables: Mapping[str, PrivateTable]) -> frozenset[Link]:
    references = fields_of(value, "references", ("note", "keys"))
    keys = list_of(references["keys"], "references.keys", read_link)
    for link in keys:
        if link.table not in tables or link.target not in tables:
            raise ReceiptError(f"references.keys: {link} is not between tables of the unit")
        holder = tables[link.table]
        if holder.role == "owned" and (holder.owner, holder.key) == (link.target, link.columns):
            raise ReceiptError(f"references.keys: {link} is an owner key")
    if len(set(keys)) < len(keys):
        raise ReceiptError("references.keys names a key twice")
    _check_note(references["note"], "references.note", needed=bool(keys))
    return frozenset(keys)


def _inside(value: object, tables: Mapping[str, PrivateTable]) -> tuple[frozenset[Link], tuple[Link, ...]]:
    """Keys that stay inside the entity, and implied ones, to a table above, of which nothing is counted."""

    def read(item: object, where: str) -> tuple[Link, bool]:
        key = fields_of(item, where, ("table", "columns", "target", "role"))
        link = read_link({name: key[name] for name in ("table", "columns", "target")}, where)
        implied = one_of(key["role"], f"{where}.role", ("implied", "inside")) == "implied"
        if link.table not in tables or link.target not in tables or tables[link.table].role != "owned":
            raise ReceiptError(f"{where}: {link} is not from an owned table to a table of the unit")
        if tables[link.target].role == "lookup":
            raise ReceiptError(f"{where}: {link} leads to a lookup, whose rows belong to the rows that reference them")
        if (tables[link.table].owner, tables[link.table].key) == (link.target, link.columns):
            raise ReceiptError(f"{where}: {link} is an owner key")
        if implied != (link.target in _owners(link.table, tables)):
            raise ReceiptError(f"{where}: {link} is implied if and only if it leads to a table above its own")
        return link, implied

    inside = fields_of(value, "inside", ("note", "keys"))
    keys = list_of(inside["keys"], "inside.keys", read)
    if len({link for link, _ in keys}) < len(keys):
        raise ReceiptError("inside.keys names a key twice")
    _check_note(inside["note"], "inside.note", needed=bool(keys))
    return frozenset(link for link, implied in keys if not implied), tuple(link for link, implied in keys if implied)


def _owners(table: str, tables: Mapping[str, PrivateTable]) -> Iterator[str]:
    """The tables above a table, from owner to owner."""
    while (owner := tables[table].owner) is not None:
        yield owner
        table = owner


def _check_note(value: object, where: str, *, needed: bool) -> None:
    """What a note says is for people; that it is there where it is needed, and only there, is checked."""
    if (optional_text_of(value, where) is not None) != needed:
        raise ReceiptError(f"{where} is {'missing' if needed else 'not null, but must be null here'}")


def _place_of(value: Json, where: str) -> Place:
    return text_of(value["table"], f"{where}.table"), text_of(value["column"], f"{where}.column")


def _release_of(value: Json, origin: str, where: str) -> str | None:
    """The digest of the earlier release that an origin names; there is one if and only if it is such an origin."""
    if ("release" in value) != (origin == EARLIER):
        raise ReceiptError(f"{where}: release is given if and only if the origin is an {EARLIER}")
    return digest_of(value["release"], f"{where}.release") if origin == EARLIER else None


def _by_place(value: object, where: str, read: Callable[[object, str], tuple[Place, _Fact]]) -> dict[Place, _Fact]:
    """Read a list in which each column stands at most once."""
    pairs = list_of(value, where, read)
    facts = dict(pairs)
    if len(facts) < len(pairs):
        raise ReceiptError(f"{where} lists a column twice")
    return facts


def _column(item: object, where: str, fact: str, tables: Mapping[str, PrivateTable]) -> tuple[Place, Json]:
    """Read which column of the unit a fact is said of, and the fields that say it."""
    column = fields_of(item, where, ("table", "column", "origin", fact), optional=("release",))
    place = _place_of(column, where)
    if place[0] not in tables:
        raise ReceiptError(f"{where}: {shown(place[0])} is no table of the unit")
    return place, column


def _domains(value: object) -> dict[Place, Domain]:
    def read(item: object, where: str) -> tuple[Place, Domain]:
        domain = fields_of(item, where, ("table", "column", "origin"), optional=("release",))
        origin = one_of(domain["origin"], f"{where}.origin", _DOMAIN_ORIGINS)
        return _place_of(domain, where), Domain(origin=origin, release=_release_of(domain, origin, where))

    return _by_place(value, "public.domains", read)


def _computed(value: object, tables: Mapping[str, PrivateTable]) -> dict[Place, Computed]:
    def read(item: object, where: str) -> tuple[Place, Computed]:
        place, column = _column(item, where, "equals", tables)
        origin = one_of(column["origin"], f"{where}.origin", _COMPUTED_ORIGINS)
        equals = _read_computed(column["equals"], place[0], tables, f"{where}.equals")
        if origin == FOUND and equals[0] == EXPRESSION:
            raise ReceiptError(f"{where}: no event compares a column with an expression")
        return place, Computed(equals=equals, origin=origin, release=_release_of(column, origin, where))

    return _by_place(value, "computed", read)


def _relative(value: object, tables: Mapping[str, PrivateTable]) -> dict[Place, Relative]:
    def read(item: object, where: str) -> tuple[Place, Relative]:
        place, column = _column(item, where, "base", tables)
        origin = one_of(column["origin"], f"{where}.origin", _RELATIVE_ORIGINS)
        base = None
        if column["base"] != "previous":
            base = _place_of(fields_of(column["base"], f"{where}.base", ("table", "column")), f"{where}.base")
            _check_above(base[0], place[0], tables, where)
        return place, Relative(base=base, origin=origin, release=_release_of(column, origin, where))

    return _by_place(value, "relative", read)


def _check_above(base: str, table: str, tables: Mapping[str, PrivateTable], where: str) -> None:
    """A base is in the row itself, or in a row that owns it: of the same entity, or a code would tell of others."""
    at: str | None = table
    while at is not None and at != base:
        at = tables[at].owner if tables[at].role == "owned" else None
    if at is None:
        raise ReceiptError(f"{where}: rows of {shown(base)} do not own rows of {shown(table)}")


def _public_key(value: object, where: str) -> tuple[str, tuple[str, ...]]:
    key = fields_of(value, where, ("table", "columns"))
    return text_of(key["table"], f"{where}.table"), names_of(key["columns"], f"{where}.columns", least=1)


def _parameter(value: object, where: str) -> str | int | bool:
    if not isinstance(value, str | int):
        raise ReceiptError(f"{where} is neither a text, a whole number, true nor false")
    return value


def _earlier(value: object) -> tuple[Release, ...]:
    def read(item: object, where: str) -> Release:
        release = fields_of(item, where, ("receipt", "epsilon", "delta", "neighbours"))
        return Release(
            receipt=digest_of(release["receipt"], f"{where}.receipt"),
            epsilon=positive_of(release["epsilon"], f"{where}.epsilon"),
            delta=rational_of(release["delta"], f"{where}.delta"),
            neighbours=one_of(release["neighbours"], f"{where}.neighbours", NEIGHBOURS),
        )

    releases = list_of(value, "earlier", read)
    if len({release.receipt for release in releases}) < len(releases) or len(releases) > _MAX_EARLIER:
        raise ReceiptError(f"earlier names a release twice, or more than {_MAX_EARLIER}")
    return tuple(releases)


def _check_public(facts: Facts) -> None:
    """What is public is about tables that are there; who may come and go cannot be counted in public."""
    if wrong := [name for name in facts.public_tables if name in facts.tables]:
        raise ReceiptError(f"public.tables: {listed(map(shown, wrong))} is a table of the unit, too")
    if len(set(facts.public_tables)) < len(facts.public_tables):
        raise ReceiptError("public: a table is both public and made up")
    if wrong := [name for name in facts.people if name not in facts.public_tables or name in facts.made_up]:
        raise ReceiptError(f"public.people: {listed(map(shown, wrong))} is no public table")
    used = {*facts.sizes, *(table for table, _ in facts.public_keys), *(table for table, _ in facts.domains)}
    if wrong := sorted(used - facts.tables.keys()):
        raise ReceiptError(f"public: {listed(map(shown, wrong))} is no table of the unit")
    if copied := [name for name in facts.sizes if name in facts.tables and facts.tables[name].role == "lookup"]:
        raise ReceiptError(f"public.sizes: {shown(copied[0])} is a lookup, whose rows an entity moves by its keys")
    if facts.neighbours == "add-remove" and (facts.sizes or facts.public_keys):
        raise ReceiptError("public: sizes and keys must be empty, for add-remove protects which entities there are")


def _check_lists(facts: Facts) -> None:
    """What rows a list has must follow from the rows of one entity: its rows, and those that it owns, say whose first.

    The first key that says whose a row is leads to the entity table, and is part of the key into the list.
    """
    for name in facts.lists:
        members = [table for table, words in facts.tables.items() if words.owner == name]
        if not members:
            raise ReceiptError(f"unit.lists: no rows are owned by rows of {shown(name)}, so that it is no list of any")
        if facts.tables[name].owner not in (facts.entity, *facts.lists):
            raise ReceiptError(f"unit.lists: {shown(name)} is owned neither by the entity nor by a list")
        for table in members:
            first = next((link for link in facts.implied if link.table == table), None)
            if (
                first is None
                or first.target != facts.entity
                or not set(first.columns) <= set(facts.tables[table].key or ())
            ):
                raise ReceiptError(
                    f"unit.lists: whose a row of {shown(table)} is does not follow from its key into {shown(name)}"
                )
        if any(name in (link.table, link.target) for link in (*facts.references, *facts.inside)):
            raise ReceiptError(f"unit.lists: {shown(name)} has a key that is neither its owner's nor its members'")
        if name in facts.sizes:
            raise ReceiptError(f"public.sizes: {shown(name)} is a list, whose rows an entity moves by its keys")
        if facts.orphans != "error":
            raise ReceiptError(f"unit.lists: {shown(name)} has rows of owners that do not exist (public.orphans)")


def _check_releases(facts: Facts) -> None:
    """Every earlier release from which something is taken is listed with its cost."""
    costs = {release.receipt for release in facts.earlier}
    for place, release in facts.taken_from_releases():
        if release not in costs:
            raise ReceiptError(f"{shown_place(place)}: is from a release that `earlier` does not list with its cost")
