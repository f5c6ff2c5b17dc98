"""Who is protected: the entity table, what each other table is to it, and what each foreign key is.

An entity is one row of the entity table with every row that reaches it through owner keys. `protect` turns a
schema and the publisher's few choices into a `Protection`, or says which choice is missing and how to make it.
A table's owner key is (first that applies): the declared key; the only direct key to the entity table; the only key
that leads to the entity table through owner keys. Anything else is asked for, never guessed.

A key may be declared to stay `inside` the entity. One that leads to a table above its own, as a payment's customer does
where payments are owned by rentals, is implied: it references the row above that the owner key leads to. Such keys also
say whose a row is that has no owner.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import combinations

from privbench.errors import SchemaError, SpecError
from privbench.schema.choices import check_choices, choose_entity, flag, leave_out, lookup_key, referrers
from privbench.schema.computed import equal_columns
from privbench.schema.tables import ForeignKey, Schema, Table

Lookups = Mapping[str, tuple[str, ForeignKey]]


class Neighbours(Enum):
    """Which databases the promise compares: one entity replaced by another, or one entity more or less."""

    REPLACE = "replace"
    ADD_REMOVE = "add-remove"


class Role(Enum):
    """What a table is to the entity."""

    ENTITY = "entity"
    OWNED = "owned"
    LOOKUP = "lookup"
    PUBLIC = "public"


class LinkKind(Enum):
    """What a foreign key is, by the roles of its two ends."""

    OWNER = "owner"
    """From an owned table towards the entity: says whose row it is."""
    REFERENCE = "reference"
    """Between private tables, but no owner key: self references and keys into a lookup are among these."""
    INSIDE = "inside"
    """To a row of the same entity that is not above its own."""
    IMPLIED = "implied"
    """To the row above its own that the owner key leads to, sooner or later."""
    CATEGORY = "category"
    """From a private table to a public one."""
    INBOUND = "inbound"
    """From a public table to a private one: the ids it names are public."""
    COPIED = "copied"
    """Between public tables."""


def key_name(table: str, key: ForeignKey) -> str:
    """Name a foreign key: its table and columns. Two keys never have the same name, whatever names they are made of.

    >>> key_name("visit", ForeignKey(columns=("a", "b,c"), table="person", references=("x", "y")))
    'visit.a,"b,c"'
    """
    return f"{_quoted(table)}.{','.join(map(_quoted, key.columns))}"


def _quoted(name: str) -> str:
    """A name as it is, or quoted as SQL does if it holds one of the characters that divide names, or none at all."""
    return f'"{name.replace(chr(34), chr(34) * 2)}"' if not name or set(name) & set('.,"') else name


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A foreign key, the table that holds it, and what it is."""

    table: str
    key: ForeignKey
    kind: LinkKind
    nullable: bool
    """Whether a row may have no target: some column of the key may be NULL."""
    unique: bool
    """Whether at most one row has the same target."""

    @property
    def name(self) -> str:
        """How the key is called in messages, the ledger and the model."""
        return key_name(self.table, self.key)

    @property
    def target(self) -> str:
        """The table whose rows the key references."""
        return self.key.table


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """Who is protected, worked out for every table and key of the schema."""

    schema: Schema
    """Without dropped tables and columns and the keys into them."""
    entity: str
    neighbours: Neighbours
    roles: Mapping[str, Role]
    owners: Mapping[str, ForeignKey]
    """Each owned table's owner key."""
    lookups: Mapping[str, tuple[str, ForeignKey]]
    """Each lookup's owner table, and that table's key into the lookup."""
    order: tuple[str, ...]
    """The private tables, the entity table first, owners before what they own."""
    links: tuple[Link, ...]
    """All keys but those that are implied, of which nothing is to be learnt."""
    implied: tuple[Link, ...] = ()
    made_up: Mapping[str, int] = field(default_factory=dict)
    """The public tables whose rows are made up from the schema, and how many: their real rows are never read."""

    @property
    def keys(self) -> tuple[Link, ...]:
        """All foreign keys."""
        return (*self.links, *self.implied)

    def role_words(self, table: str) -> str:
        """What a table is, for people and the manifest of a bundle."""
        return "made up" if table in self.made_up else self.roles[table].value

    def links_of(self, table: str) -> tuple[Link, ...]:
        """The keys that a table holds."""
        return tuple(link for link in self.links if link.table == table)

    def links_to(self, table: str) -> tuple[Link, ...]:
        """The keys that reference a table."""
        return tuple(link for link in self.links if link.target == table)

    def owner_link(self, table: str) -> Link | None:
        """The owner key of a table; None for the entity table, lookups and public tables."""
        return next((link for link in self.links_of(table) if link.kind is LinkKind.OWNER), None)

    def above(self, table: str) -> Iterator[str]:
        """The tables above a table: its owner's, that one's owner's, and so on. A lookup has none."""
        return _above(self.owners, table)

    def up_to(self, table: str, above: str) -> tuple[str, ...]:
        """The tables from a table up to one above it, which is left out."""
        tables = (table, *self.above(table))
        return tables[: tables.index(above)]

    def leads_above(self, link: Link) -> bool:
        """Whether a row may reference the row above it by a key that is not its owner key."""
        return link.kind is LinkKind.REFERENCE and not link.unique and link.target in self.above(link.table)

    def implied_of(self, table: str) -> tuple[Link, ...]:
        """The implied keys of a table, those to the nearest tables above it first."""
        above = list(self.above(table))
        return tuple(sorted((k for k in self.implied if k.table == table), key=lambda k: above.index(k.target)))

    def owner_keys(self, table: str) -> tuple[ForeignKey, ...]:
        """The keys that say whose the rows of an owned table are: of each row the first that is not NULL."""
        return (*(link.key for link in reversed(self.implied_of(table))), self.owners[table])

    def counts_rows(self, table: str) -> bool:
        """Whether a computed column says how many rows of an owned table an owner has, or numbers these rows."""
        above = equal_columns(self, self.owners[table].table).values()
        ranked = any(equals.rank is not None for equals in equal_columns(self, table).values())
        return ranked or any(equals.rows == table for equals in above)

    def attributes(self, table: str) -> tuple[str, ...]:
        """Name the columns of a table that are modelled; none of a public table."""
        return () if self.roles[table] is Role.PUBLIC else self.schema.table(table).attributes


def protect(
    schema: Schema,
    *,
    entity: str | None,
    neighbours: Neighbours = Neighbours.REPLACE,
    owners: Mapping[str, tuple[str, ...]] | None = None,
    public: Collection[str] = (),
    made_up: Mapping[str, int] | None = None,
    lookups: Mapping[str, str] | None = None,
    drop: Collection[str] = (),
    strict_references: bool = False,
) -> Protection:
    """Work out who is protected.

    `owners` maps a table to the columns of its owner key, `lookups` a table to the table whose rows own its rows,
    `made_up` a table to the number of rows that are made up for it; it is a public table otherwise.
    Raises SpecError where a choice is missing or wrong, SchemaError where the schema cannot be protected.
    """
    owners, lookups, made_up = owners or {}, lookups or {}, made_up or {}
    check_choices(schema, entity=entity, owners=owners, public=public, made_up=made_up, lookups=lookups, drop=drop)
    public = (*public, *made_up)
    schema = replace(leave_out(schema.tables, drop=drop), original=schema.original)
    entity = choose_entity(schema, entity, public)
    lookup_keys = {t: (owner, lookup_key(schema, t, owner, public)) for t, owner in lookups.items()}
    keys = find_owners(schema, entity=entity, public=public, declared=owners, lookups=lookup_keys)
    _check_inside(schema, entity, public, lookup_keys)
    links = tuple(_links(schema, keys, public))
    _check_overlaps(schema, entity, keys, links)
    _check_entity_key(schema.table(entity), links)
    _check_cycles(links)
    _check_made_up(links, made_up)
    _check_links(links, neighbours, strict_references=strict_references)
    _check_lookup_keys(links, lookup_keys)
    return Protection(
        schema=schema,
        entity=entity,
        neighbours=neighbours,
        roles={t.name: _role(t.name, entity, public, lookup_keys) for t in schema.tables},
        owners=keys,
        lookups=lookup_keys,
        order=_order(schema, entity, keys, lookup_keys),
        links=tuple(link for link in links if link.kind is not LinkKind.IMPLIED),
        implied=tuple(link for link in links if link.kind is LinkKind.IMPLIED),
        made_up=made_up,
    )


def _check_overlaps(schema: Schema, entity: str, owners: Mapping[str, ForeignKey], links: Collection[Link]) -> None:
    """Refuse keys that share a column, unless both have the same value there by the owner keys above them."""
    for table in schema.tables:
        for first, second in combinations([k for k in links if k.table == table.name], 2):
            for column in sorted({*first.key.columns} & {*second.key.columns}):
                if not _agree(first, second, column, owners, entity):
                    raise SchemaError(
                        f"{table.name}.{column}: two foreign keys share it, {first.key} and {second.key}, and one "
                        "value cannot be drawn for both. Take one of them out of `foreign_keys` in the spec, or leave "
                        f"out the table it points at: {flag('--drop', first.target)} or "
                        f"{flag('--drop', second.target)}. If one follows from the other, make that one the `owner` "
                        "and say `inside: true` beside the one that follows."
                    )


def _agree(first: Link, second: Link, column: str, owners: Mapping[str, ForeignKey], entity: str) -> bool:
    """Whether two keys have the same value in a column that they share, whichever rows they reference."""
    kinds = {first.kind, second.kind}
    if kinds == {LinkKind.COPIED}:
        return True
    if not kinds <= {LinkKind.OWNER, LinkKind.IMPLIED, LinkKind.INSIDE}:
        return False
    shared = set(_copied_from(first.key, column, owners)) & set(_copied_from(second.key, column, owners))
    return any(table == entity for table, _ in shared) if LinkKind.INSIDE in kinds else bool(shared)


def _copied_from(key: ForeignKey, column: str, owners: Mapping[str, ForeignKey]) -> Iterator[tuple[str, str]]:
    """The columns of rows above that hold the value of a key's column, as far as owner keys tell."""
    while True:
        column = key.references[key.columns.index(column)]
        yield key.table, column
        if key.table not in owners or column not in owners[key.table].columns:
            return
        key = owners[key.table]


def _check_inside(schema: Schema, entity: str, public: Collection[str], lookups: Collection[str]) -> None:
    """Refuse keys that are said to stay inside the entity where a table's rows do not belong to entities by keys."""
    for table, key in schema.foreign_keys():
        barred = [name for name in (table.name, key.table) if name in public or name in lookups]
        if key.inside and (barred or table.name == entity):
            what = f"{barred[0]} is public or a lookup" if barred else f"{entity} has one row of each entity"
            raise SpecError(
                f"{table.name}: its key {key} cannot be one that stays inside the entity: {what}. Take `inside` out."
            )


def _role(table: str, entity: str, public: Collection[str], lookups: Collection[str]) -> Role:
    if table == entity:
        return Role.ENTITY
    if table in public:
        return Role.PUBLIC
    return Role.LOOKUP if table in lookups else Role.OWNED


def _links(schema: Schema, owners: Mapping[str, ForeignKey], public: Collection[str]) -> Iterator[Link]:
    for table, key in schema.foreign_keys():
        yield Link(
            table=table.name,
            key=key,
            kind=_kind(table.name, key, owners, public),
            nullable=any(table.column(c).nullable for c in key.columns),
            unique=any(set(unique) <= set(key.columns) for unique in table.keys),
        )


def _kind(table: str, key: ForeignKey, owners: Mapping[str, ForeignKey], public: Collection[str]) -> LinkKind:
    if table in public:
        return LinkKind.COPIED if key.table in public else LinkKind.INBOUND
    if key.table in public:
        return LinkKind.CATEGORY
    if owners.get(table) is key:
        return LinkKind.OWNER
    if not key.inside:
        return LinkKind.REFERENCE
    return LinkKind.IMPLIED if key.table in _above(owners, table) else LinkKind.INSIDE


def _above(owners: Mapping[str, ForeignKey], table: str) -> Iterator[str]:
    """The tables above a table, from owner to owner."""
    while table in owners:
        table = owners[table].table
        yield table


def _check_entity_key(entity: Table, links: Iterable[Link]) -> None:
    users = dict.fromkeys(link.table for link in links if link.key.table == entity.name)
    if users and not entity.primary_key:
        raise SchemaError(
            f"{entity.name}: the unit table is referenced by {', '.join(users)} but has no primary key. Declare it: "
            "`key: [COLUMN]` in the spec, or PRIMARY KEY in schema.sql."
        )


def _check_cycles(links: Iterable[Link]) -> None:
    private = [link for link in links if link.kind in (LinkKind.OWNER, LinkKind.REFERENCE, LinkKind.INSIDE)]
    for link in private:
        if len(link.key.columns) == 1:
            continue
        reached, before = {link.key.table}, 0
        while len(reached) > before:
            before = len(reached)
            reached |= {other.key.table for other in private if other.table in reached}
        if link.table in reached:
            raise SchemaError(
                f"{link.table}: its key {link.key} has several columns and is part of a cycle of private tables, so "
                "neither side's values can be made first. Take one key of the cycle out of `foreign_keys` in the "
                f"spec, or leave out a table: {flag('--drop', link.table)}."
            )


def _check_made_up(links: Iterable[Link], made_up: Collection[str]) -> None:
    """Refuse keys of made-up rows to private rows: which rows there are is private."""
    for link in links:
        if link.table in made_up and link.kind is LinkKind.INBOUND:
            column = flag("--drop", f"{link.table}.{link.key.columns[0]}")
            raise SpecError(
                f"{link.table}: its rows are made up, and cannot reference rows of {link.target}, which are private, "
                f"by the key {link.key}. Leave the column out ({column}); or, if the key says whose row it is, do not "
                f"make {link.table} up."
            )


def _check_links(links: Iterable[Link], neighbours: Neighbours, *, strict_references: bool) -> None:
    inbound = [f"{k.table}: {k.key}" for k in links if k.kind is LinkKind.INBOUND]
    if inbound and neighbours is Neighbours.ADD_REMOVE:
        raise SpecError(
            f"public tables point at private keys, which makes those keys public: {'; '.join(inbound)}. That holds "
            "only where no entity comes or goes: set `neighbours: replace`, or drop these tables (`--drop T`)."
        )
    references = [f"{k.table}: {k.key}" for k in links if k.kind is LinkKind.REFERENCE]
    if references and strict_references:
        raise SpecError(
            f"`strict_references` allows no key between private tables but the owner keys: {'; '.join(references)}. "
            "Drop these columns (`drop: true` under the column), make the tables they point at public, or set "
            "`strict_references: false`: being referenced by another entity's rows is then not protected."
        )


def _check_lookup_keys(links: Iterable[Link], lookups: Lookups) -> None:
    """Refuse private keys into a lookup other than its owner's.

    Its rows are copied for each owner row: which copy such a key references would depend on who else is there.
    """
    for link in links:
        owner, key = lookups.get(link.key.table, (None, None))
        if link.kind is LinkKind.REFERENCE and owner is not None and (link.table != owner or link.key != key):
            raise SchemaError(
                f"{link.table}: its key {link.key} names rows of {link.key.table}, which belong to the rows of {owner} "
                f"that name them. Take the key out of `foreign_keys` in the spec, drop the column "
                f"({flag('--drop', f'{link.table}.{link.key.columns[0]}')}), or make {link.key.table} public."
            )


def _order(schema: Schema, entity: str, owners: Mapping[str, ForeignKey], lookups: Lookups) -> tuple[str, ...]:
    above = {t: key.table for t, key in owners.items()} | {t: owner for t, (owner, _) in lookups.items()}
    order = [entity]
    for table in order:
        order += [t.name for t in schema.tables if above.get(t.name) == table]
    return tuple(order)


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
    leading = tuple(k for k in table.foreign_keys if k.table not in barred and k.table != table.name)
    leading = tuple(k for k in leading if not k.inside) or leading
    direct = tuple(k for k in leading if k.table == entity)
    return direct if len(direct) == 1 else leading


def _leading_to(entity: str, steps: Mapping[str, Collection[str]], *, around: str | None = None) -> set[str]:
    """Find the tables with a path of steps to the entity table that does not pass through `around`."""
    reached, grown = {entity}, True
    while grown:
        more = {
            t for t, targets in steps.items() if t not in reached and t != around and not reached.isdisjoint(targets)
        }
        grown = bool(more)
        reached |= more
    return reached


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
            "  --public T           `public: true`     not private: copied as it is",
            "  --made-up T[=N]      `made_up: N`       not read: N rows are made up from the schema alone",
            "  --owned-by T=OWNER   `owned_by: OWNER`  a row belongs to the row of OWNER that references it",
            "  --drop T             `drop: true`       left out, with the keys into it",
            "If a key does lead there, declare it in schema.sql (in Python `schema`), or in the spec (`foreign_keys`).",
        ]
    )


def _ambiguous(entity: str, several: Mapping[str, list[ForeignKey]]) -> str:
    lines = [f"more than one key leads to {entity}; say which one tells whose rows these are:"]
    for table, keys in several.items():
        lines += [f"  {_flag(table, key)}   {key}" for key in keys]
    lines.append("In the spec: `owner: [COLUMN]` under the table. The other keys become references.")
    return "\n".join(lines)
