"""The spec file: what the database is, who is protected and what is public, written down for people to review.

`read_spec` and `write_spec` are the only doors to the file; in between a spec is a frozen value. An untrusted
spec is only data: reading it runs nothing and takes bounded memory.
"""

import os
import tempfile
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from privbench.errors import SpecError, TargetError
from privbench.schema.choices import closest, leave_out
from privbench.schema.computed import ComputedOrigin, check_computed
from privbench.schema.csv_options import CsvOptions
from privbench.schema.determined import Pairs, check_determined
from privbench.schema.domain import Domain, Origin, Scalar, domain_json, implied_by_type, never_repeats
from privbench.schema.expression import ColumnName, Expression
from privbench.schema.lists import check_lists, lists_of
from privbench.schema.notebook import page
from privbench.schema.original import OriginalDdl
from privbench.schema.pairs import check_pairs, without_list
from privbench.schema.relative import check_relative
from privbench.schema.release import MOST_RELEASES, Release, release_of
from privbench.schema.rules import check_rules, spelled, spelled_rules, wrong_names_in
from privbench.schema.spec_errors import NAMES, explain, wrong_names
from privbench.schema.table_spec import (
    PRIVATE,
    ColumnSpec,
    ForeignKeySpec,
    IndexSpec,
    Name,
    RuleSpec,
    TableSpec,
    Words,
)
from privbench.schema.tables import Place, Schema, Table
from privbench.schema.unit import Neighbours, Protection, Role, protect
from privbench.schema.yaml_file import MAX_BYTES, Plain, YamlError, entry, inline, item, parse_yaml

__all__ = [
    "ColumnSpec",
    "ForeignKeySpec",
    "IndexSpec",
    "Orphans",
    "RuleSpec",
    "Sizes",
    "Spec",
    "TableSpec",
    "read_spec",
    "write_spec",
]

MOST_TABLES = 10_000
MOST_SHOWN = 60
"""Characters of a domain that a notebook shows."""
_FROM_DATA = "taken from the data: by keeping it you declare it public"
_ORIGINAL = (
    "The DDL of the source as it stands there: DDL text, comments and view definitions are published as they are.\n"
    "# Review them; take a statement out if it says what must stay private."
)
_RULES_FROM_DATA = "rules `from: data` are taken from the data: by keeping one you declare it public"
_CLUSTERS_FROM_DATA = (
    "where rows lie: `share` of them in the order of the column, the others after them; in runs of about `run` rows. "
    "`from: data` is taken from the data: by keeping it you declare it public"
)


class Sizes(Enum):
    """Where the sizes of owned tables come from: measured with noise, or assumed public as the paper does."""

    MEASURED = "measured"
    PUBLIC = "public"


class Orphans(Enum):
    """What a key to a missing row is: an error, or NULL."""

    ERROR = "error"
    NULL = "null"


class Spec(Words):
    """A whole spec, checked when made: every name in it exists and every type is known."""

    version: Literal[1] = 1
    source: Name | None = None
    csv: CsvOptions | None = None
    unit: Name | None = None
    neighbours: Neighbours = Neighbours.REPLACE
    sizes: Sizes = Sizes.MEASURED
    orphans: Orphans = Orphans.ERROR
    strict_references: StrictBool = False
    method: dict[Name, Scalar] = Field(default_factory=dict)
    releases: Annotated[tuple[Release, ...], Field(max_length=MOST_RELEASES)] = ()
    tables: dict[Name, TableSpec] = Field(max_length=MOST_TABLES)
    original: OriginalDdl | None = None

    @model_validator(mode="after")
    def _names_exist(self) -> "Spec":
        if mistakes := list(islice(wrong_names(self.tables, self.unit, self.releases), 100)):
            text = "; ".join(f"{'.'.join(map(str, path))}: {message}" for path, message in mistakes)
            raise PydanticCustomError(NAMES, "{text}", {"text": text, "mistakes": mistakes})
        return self

    def __repr__(self) -> str:
        kept = [name for name, table in self.tables.items() if not table.drop]
        return f"<Spec: unit {self.unit}, tables {', '.join(kept)}>"

    __str__ = __repr__

    def _repr_html_(self) -> str:
        rows = [
            (name, column, words.type, *_shown_domain(table, words))
            for name, table in self.tables.items()
            if not table.drop
            for column, words in table.columns.items()
        ]
        notes = [f"Unit {self.unit}. All that stands here is published: review it. `write_spec` writes it to a file."]
        return page("Spec", ["table", "column", "type", "domain", "from"], rows, notes=notes)

    def schema(self) -> Schema:  # type: ignore[override]
        """Make the schema without dropped tables and columns and the keys into them.

        What is code of the source's own DDL is not in it: see `OriginalDdl.without_code`.
        """
        dropped = [name for name, table in self.tables.items() if table.drop]
        kept = leave_out(
            spelled_rules([table.table(name) for name, table in self.tables.items() if not table.drop]),
            drop=dropped,
            columns=[(t, c) for t, table in self.tables.items() for c, column in table.columns.items() if column.drop],
        )
        return replace(kept, original=self.original and self.original.without_code())

    def protection(self) -> Protection:
        """Work out who is protected. Raises SpecError also if a column's domain, or what it equals, cannot be."""
        public = [name for name, table in self.tables.items() if table.is_public]
        schema = self.schema()
        protection = protect(
            _with_nullable_keys(schema, public) if self.orphans is Orphans.NULL else schema,
            entity=self.unit,
            neighbours=self.neighbours,
            owners={name: table.owner for name, table in self.tables.items() if table.owner and not table.drop},
            public=[name for name in public if self.tables[name].made_up is None],
            made_up={name: table.made_up for name, table in self.tables.items() if table.made_up},
            lookups={name: table.owned_by for name, table in self.tables.items() if table.owned_by},
            strict_references=self.strict_references,
        )
        check_determined(protection)
        check_computed(protection)
        check_relative(protection)
        check_rules(protection)
        check_lists(protection)
        check_pairs(self.tables, protection)
        self._check_orphans()
        self._check_domains(protection)
        self._check_made_up(protection)
        return protection

    def column(self, table: str, column: str) -> ColumnSpec:
        """Find what the spec says of a column."""
        if table not in self.tables:
            raise SpecError(f"{table}: the spec has no such table. {closest(table, self.tables)}")
        columns = self.tables[table].columns
        if column not in columns:
            raise SpecError(f"{table}.{column}: the spec has no such column. {closest(column, columns)}")
        return columns[column]

    def attributes(self, table: str) -> tuple[str, ...]:
        """Name the columns of a table that carry a domain: none of a public or dropped one, none that is only a key."""
        if table not in self.tables:
            raise SpecError(f"{table}: the spec has no such table. {closest(table, self.tables)}")
        if self.tables[table].is_public or self.tables[table].drop:
            return ()
        return self.schema().table(table).attributes

    def origins(self, protection: Protection) -> dict[Place, Origin]:
        """Say where the domain of each modelled column is from; of a key, where its length or NOT NULL or `inside` is.

        A column by which rows are clustered is from the data if that was read there.

        The release of a column whose origin is EARLIER is `column(table, name).release`.
        """
        origins = {}
        for table in protection.order:
            modelled = protection.attributes(table)
            for name in (c.name for c in protection.schema.table(table).columns):
                column = self.column(table, name)
                if self._wanted(protection, table, name):
                    origins[table, name] = Origin.PRIVATE
                elif column.domain is not None or column.origin is Origin.DATA:
                    origins[table, name] = column.origin
                elif name in modelled:
                    origins[table, name] = Origin.SCHEMA
            for key in (k for k in self.tables[table].foreign_keys if k.origin is Origin.DATA):
                there = {c.name for c in protection.schema.table(table).columns}
                origins |= {(table, name): Origin.DATA for name in key.columns if name in there}
            clustered = [level.column for level in self.tables[table].clustered_by if level.origin is Origin.DATA]
            for name in clustered:
                if origins.get((table, name)) in (Origin.PRIVATE, Origin.EARLIER):
                    raise SpecError(
                        f"{table}.{name}: clustered_by is from the data, but the domain of the column is found with "
                        "budget. Take `from: data` out if it is public how the rows lie, or declare the domain."
                    )
                origins[table, name] = Origin.DATA
        return origins

    def computed_columns(self, protection: Protection) -> dict[Place, ColumnSpec]:
        """List the computed columns: what each equals, who says so, and in which earlier release, if in one."""
        places = ((table, c.name) for table in protection.order for c in protection.schema.table(table).columns)
        columns = {place: self.column(*place) for place in places}
        return {place: c for place, c in columns.items() if c.computed is not None or c.map is not None}

    def rules_from_data(self) -> Iterator[tuple[str, str]]:
        """List the rules that were taken from the data and are kept, as they are spelled, each with its table."""
        schema = self.schema()
        for table in schema.tables:
            columns = {t.name: [c.name for c in t.columns] for t in schema.tables}
            for rule in self.tables[table.name].rules:
                if rule.origin is Origin.DATA and rule.left_out is None:
                    expression = spelled(rule.expression(table.name), table.name, columns)
                    if expression in table.checks:
                        yield table.name, expression.sql

    def earlier_releases(self) -> tuple[Release, ...]:
        """List the releases on which a fit of this spec builds: their costs come on top of its own."""
        return self.releases

    def for_reuse(self, receipt: Mapping[str, Any]) -> "Spec":
        """Make the spec for a next fit from a model's: what was found with budget cites the release that paid for it.

        `receipt` is the model's. What is from still earlier releases stays so.
        """
        release = release_of(receipt)
        changes: dict[Place, dict[str, Any]] = {}
        for place, column in self._columns():
            change: dict[str, Any] = {}
            if column.origin is Origin.PRIVATE and column.domain is not None:
                change["origin"] = Origin.EARLIER
            if column.computed_origin is ComputedOrigin.FOUND:
                change["computed_origin"] = ComputedOrigin.EARLIER
            if column.relative_origin is ComputedOrigin.FOUND:
                change["relative_origin"] = ComputedOrigin.EARLIER
            if column.map_origin is ComputedOrigin.FOUND:
                change["map_origin"] = ComputedOrigin.EARLIER
            if change:
                changes[place] = {**change, "release": release.receipt}
        if not changes:
            return self
        return self._with_columns(changes).model_copy(update={"releases": (*self.releases, release)})

    def check_reuse(self) -> None:
        """Refuse domains and computed columns that some fit has found, where the spec does not say which fit."""
        unnamed = [
            ".".join(place)
            for place, column in self._columns()
            if (column.origin is Origin.PRIVATE and column.domain is not None)
            or ComputedOrigin.FOUND in (column.computed_origin, column.relative_origin, column.map_origin)
        ]
        if unnamed:
            raise SpecError(
                f"{', '.join(unnamed)}: found by an earlier fit, but the spec does not say by which, so that what it "
                "cost could not be cited. Take the spec out of its model with `privbench show MODEL --spec` (in "
                "Python `model.spec.for_reuse(model.receipt)`); or write `domain: private` to find a domain again; or "
                "take `from`, `computed_from` and `relative_from` out where it is public knowledge."
            )

    def wanted(self, protection: Protection) -> tuple[Place, ...]:
        """List the modelled columns whose domain is to be found with budget, each with its table."""
        places = ((table, column) for table in protection.order for column in protection.attributes(table))
        return tuple(place for place in places if self._wanted(protection, *place))

    def with_domains(self, domains: Mapping[Place, tuple[Domain, Origin]]) -> "Spec":
        """Make the spec in which these columns have these domains, none of them from an earlier release."""
        return self._with_columns(
            {p: {"domain": domain, "origin": origin, "release": None} for p, (domain, origin) in domains.items()}
        )

    def with_computed(
        self, computed: Mapping[Place, Expression], origin: ComputedOrigin = ComputedOrigin.FOUND
    ) -> "Spec":
        """Make the spec in which these columns are computed, found so by this fit or declared.

        They need no domain; their NULLs are from where they were.
        """
        plain = {"domain": None, "release": None, "computed_origin": origin}
        origins = {p: Origin.DATA if self.column(*p).origin is Origin.DATA else Origin.DECLARED for p in computed}
        return self._with_columns(
            {p: {**plain, "computed": expression, "origin": origins[p]} for p, expression in computed.items()}
        )

    def with_relative(self, bases: Mapping[Place, str]) -> "Spec":
        """Make the spec in which these columns, whose domain is to be found, are differences, found so by this fit."""
        origin = ComputedOrigin.FOUND
        return self._with_columns({p: {"relative_to": base, "relative_origin": origin} for p, base in bases.items()})

    def relative_columns(self, protection: Protection) -> dict[Place, ColumnSpec]:
        """List the columns that are coded as differences, with their base, and who says so."""
        places = ((table, c.name) for table in protection.order for c in protection.schema.table(table).columns)
        return {place: column for place in places if (column := self.column(*place)).relative_to is not None}

    def with_maps(self, maps: Mapping[Place, Pairs], origin: ComputedOrigin = ComputedOrigin.FOUND) -> "Spec":
        """Make the spec in which these columns are computed from those that determine them, by these maps."""
        return self._with_columns({place: {"map": tuple(m), "map_origin": origin} for place, m in maps.items()})

    def without_maps_to_find(self) -> "Spec":
        """Make the spec in which columns whose map is yet to be made are determined by nothing."""
        unmapped = [p for p, column in self._columns() if column.determined_by is not None and column.map is None]
        return self._with_columns({place: {"determined_by": None} for place in unmapped})

    def drafted_lists(self) -> tuple[str, ...]:
        """Name the hidden lists that were taken from the data: the key of a member to the unit is marked so."""
        lists = {name: table.list_of for name, table in self.tables.items() if table.list_of}
        entity = self.protection().entity if lists else None

        def is_marked(member: str) -> bool:
            keys = self.tables[member].foreign_keys
            return any(k.origin is Origin.DATA and k.inside and k.table == entity for k in keys)

        return tuple(name for name, members in lists.items() if any(map(is_marked, members)))

    def without_lists(self, names: Collection[str] | None = None) -> "Spec":
        """Make the spec without hidden lists: the unit owns rows of members, which have the list's columns.

        Without those of some names only, unless one list owns another: then all of them go.
        """
        lists = lists_of(self.protection()) if any(table.list_of for table in self.tables.values()) else ()
        if names is not None and not any(member in {t.name for t in lists} for t in lists for member in t.list_of):
            lists = tuple(table for table in lists if table.name in names)
        tables = dict(self.tables)
        for table in reversed(lists):  # those that own other lists first: each is then owned by the unit
            words = tables.pop(table.name)
            for member in table.list_of:
                tables[member] = _without_list(tables[member], table.name, words)
        return self.model_copy(update={"tables": tables}) if lists else self

    def without_inside(self) -> "Spec":
        """Make the spec in which no key stays inside the entity: rows are owned by the key that says whose they are.

        It has no `pairs`: they may name columns of other owners, and the methods that need it make no use of them.
        Raises SpecError where that may be NULL: a row without it would be an entity of its own.
        """
        if not any(key.inside for table in self.tables.values() for key in table.foreign_keys):
            return self
        spec = self.without_lists()
        protection, tables = spec.protection(), dict(spec.tables)
        for name, table in spec.tables.items():
            keys = tuple(k.model_copy(update={"inside": False, "origin": Origin.DECLARED}) for k in table.foreign_keys)
            owner = table.owner
            if name in protection.owners:
                owner = protection.owner_keys(name)[0].columns
                if owner != protection.owners[name].columns and any(table.columns[c].null for c in owner):
                    raise SpecError(
                        f"tables.{name}: the key {', '.join(owner)} says whose a row is, and without keys `inside` the "
                        "entity it would have to own every row, but it may be NULL. Say `null: false` under its "
                        "columns, or `method: tree`."
                    )
            tables[name] = table.model_copy(update={"foreign_keys": keys, "owner": owner, "pairs": ()})
        return self.model_copy(update={"tables": tables})

    def _columns(self) -> Iterator[tuple[Place, ColumnSpec]]:
        for table, words in self.tables.items():
            for name, column in words.columns.items():
                yield (table, name), column

    def _with_columns(self, changes: Mapping[Place, Mapping[str, Any]]) -> "Spec":
        tables = dict(self.tables)
        for (table, name), update in changes.items():
            column = tables[table].columns[name].model_copy(update=update)
            tables[table] = tables[table].model_copy(update={"columns": {**tables[table].columns, name: column}})
        return self.model_copy(update={"tables": tables})

    def published(self) -> "Spec":
        """Make the spec that may be published: without the source, what is dropped, and domains that nothing uses."""
        protection = self.protection()
        tables = {t.name: self._published_table(protection, t) for t in protection.schema.tables}
        update = {
            "source": None,
            "csv": None,
            "unit": protection.entity,
            "tables": tables,
            "original": self._published_ddl(protection),
        }
        return self.model_copy(update=update)

    def _published_ddl(self, protection: Protection) -> OriginalDdl | None:
        """The source's DDL as far as it names only what is published."""
        untyped = [place for place, column in self._columns() if _has_no_type(column)]
        return None if self.original is None else self.original.published(protection.schema, named=untyped)

    def _published_table(self, protection: Protection, table: Table) -> TableSpec:
        copied = protection.roles[table.name] is Role.PUBLIC and table.name not in protection.made_up
        used = set() if copied else {c.name for c in table.columns}
        plain = {"domain": None, "origin": Origin.DECLARED, "release": None}
        kept = {c.name for c in table.columns}
        columns = {n: c for n, c in self.tables[table.name].columns.items() if n in kept or _has_no_type(c)}
        return self.tables[table.name].model_copy(
            update={
                "columns": {n: c if n in used else c.model_copy(update=plain) for n, c in columns.items()},
                "rules": tuple(self._published_rules(protection, table)),
                "unique": table.uniques,
                "indexes": {i.name: IndexSpec(columns=i.columns, unique=i.unique) for i in table.indexes},
                "foreign_keys": tuple(
                    k
                    for k in self.tables[table.name].foreign_keys
                    if (k.columns, k.table) in {(kept.columns, kept.table) for kept in table.foreign_keys}
                ),
            }
        )

    def _published_rules(self, protection: Protection, table: Table) -> Iterator[RuleSpec]:
        """Give the rules that name nothing that is dropped, as they are spelled."""
        columns = {t.name: [c.name for c in t.columns] for t in protection.schema.tables}
        for rule in self.tables[table.name].rules:
            try:
                expression = spelled(rule.expression(table.name), table.name, columns)
            except SpecError:  # a CHECK that was left out since it cannot be read
                continue
            if not any(wrong_names_in(expression, table.name, columns)):
                yield rule.model_copy(update={"check": expression.sql})

    def _wanted(self, protection: Protection, table: str, column: str) -> bool:
        """Whether a domain is to be found: none is given, and the type does not list its own values."""
        words, kind = self.column(table, column), protection.schema.table(table).column(column).type
        missing = words.domain is None and words.origin in (Origin.DECLARED, Origin.PRIVATE)
        return missing and column in protection.attributes(table) and implied_by_type(kind) is None

    def _check_orphans(self) -> None:
        """Refuse lists beside orphans: rows of several tables that name one missing owner are not one entity."""
        lists = [name for name, table in self.tables.items() if table.list_of]
        if lists and self.orphans is Orphans.NULL:
            raise SpecError(
                f"tables.{lists[0]}.list_of: rows that reference a missing row have no list. Say `orphans: error` and "
                "repair such rows, or take the list out, with the keys into it."
            )

    def made_up_domains(self, protection: Protection) -> dict[Place, Domain]:
        """The domains that are declared for columns of tables that are made up."""
        columns = [(t, c.name) for t in protection.made_up for c in protection.schema.table(t).columns]
        return {place: domain for place in columns if (domain := self.column(*place).domain) is not None}

    def _check_made_up(self, protection: Protection) -> None:
        """Refuse domains that would be found in rows that are not read."""
        for table in protection.made_up:
            for name, column in self.tables[table].columns.items():
                if column.origin not in (Origin.DECLARED, Origin.SCHEMA) and not column.drop:
                    raise SpecError(
                        f"tables.{table}.columns.{name}: rows of {table} are made up and none is read, so that no "
                        "domain is found there. Declare one, or take `domain` and `from` out: values then follow from "
                        "the type and the name of the column."
                    )

    def _check_domains(self, protection: Protection) -> None:
        missing, repeating = [], []
        for name in protection.order:
            table = protection.schema.table(name)
            for column in table.attributes:
                domain, wanted = self.column(name, column).domain, self._wanted(protection, name, column)
                if domain is None and not wanted and implied_by_type(table.column(column).type) is None:
                    missing.append(f"{name}.{column}")
                if (column,) in table.keys and (wanted or domain is not None) and not never_repeats(domain):
                    repeating.append(f"{name}.{column}")
        if missing:
            raise SpecError(
                f"no domain for {', '.join(missing)}. Say under each column which values are public knowledge: "
                "`domain: {range: [0, 120]}`, {bins: [..]}, {values: [..]} or {text: [0, 8, 16]}; or `domain: private` "
                "to find them with budget; or `drop: true`."
            )
        if repeating:
            raise SpecError(
                f"{', '.join(repeating)}: a UNIQUE column must not repeat a value. Give it `domain: {{serial: true}}` "
                "(numbers) or `{text: [..]}` without `distinct`, or take it out of `unique` and `indexes`."
            )


def _shown_domain(table: TableSpec, column: ColumnSpec) -> tuple[str, str]:
    """The domain of a column and where it is from, for a notebook."""
    if table.is_public or column.drop:
        return "", "dropped" if column.drop else "public" if table.public else "made up"
    if column.domain is None:
        return "", "to be found with budget" if column.origin is Origin.PRIVATE else ""
    text = inline(domain_json(column.domain))
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..", column.origin.value


def _without_list(member: TableSpec, name: str, of: TableSpec) -> TableSpec:
    """A member without its list, which the unit owns: owned by the unit, with the columns of the list.

    It has the list's declared rules, too. Those from the data were found with the list, and go with it.
    """
    into = next(k for k in member.foreign_keys if k.table == name)
    held = dict(zip(into.references, into.columns, strict=True))
    owner = tuple(held[c] for c in of.owner or ())
    plain = {"inside": False, "origin": Origin.DECLARED}
    columns = dict(member.columns)
    for column in (c for c in of.columns if c not in (of.owner or ())):
        here = held.get(column, column)
        columns[here] = of.columns[column].model_copy(update={"null": member.columns[here].null})
    keys = [k for k in member.foreign_keys if k.table != name]
    return member.model_copy(
        update={
            "foreign_keys": tuple(k.model_copy(update=plain) if k.columns == owner else k for k in keys),
            "owner": owner,
            "columns": columns,
            "pairs": without_list(member, name, of, held),
            "rules": tuple(
                dict.fromkeys(
                    (*member.rules, *(_with_names(rule, held) for rule in of.rules if rule.origin is not Origin.DATA))
                )
            ),
        }
    )


def _with_names(rule: RuleSpec, names: Mapping[str, str]) -> RuleSpec:
    """A rule in which columns of the row have the names that they have elsewhere."""

    def renamed(name: ColumnName) -> ColumnName | None:
        return None if name.table is not None else ColumnName(None, names.get(name.column, name.column))

    return rule.model_copy(update={"check": Expression(sql=rule.check).spelled(renamed).sql})


def _has_no_type(column: ColumnSpec) -> bool:
    """Whether a column was left out for its type alone: readers are told, as it is not the publisher's choice."""
    return column.drop and column.source_type is not None


def _with_nullable_keys(schema: Schema, public: Collection[str]) -> Schema:
    """Let foreign keys of private tables be NULL, as keys to missing rows become; parts of a primary key never are."""
    tables = []
    for table in schema.tables:
        keys = [k.columns for k in table.foreign_keys if table.name not in public]
        nullable = {c for columns in keys if not set(columns) & set(table.primary_key) for c in columns}
        columns = tuple(replace(c, nullable=c.nullable or c.name in nullable) for c in table.columns)
        tables.append(replace(table, columns=columns))
    return replace(schema, tables=tuple(tables))


def read_spec(path: Path | str) -> Spec:
    """Read and check a spec file. Every error is a SpecError with the line, the path and what is allowed there.

    Example::

        spec = privbench.read_spec("spec.yaml")
    """
    try:
        with Path(path).open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise SpecError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}.") from None
    if len(raw) > MAX_BYTES:
        raise SpecError(f"{path}: larger than {MAX_BYTES // 2**20} MB, which no spec is.")
    try:
        root = parse_yaml(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SpecError(f"{path}, line {line}: not UTF-8 text.") from None
    except YamlError as error:
        raise SpecError(f"{path}, line {error.line}: {error}") from None
    try:
        return Spec.model_validate(root.plain())
    except ValidationError as error:
        raise SpecError(f"{path}:\n{explain(error, root, Spec)}") from None


def write_spec(spec: Spec, path: Path | str, *, force: bool = False, notes: Mapping[Place, str] | None = None) -> None:
    """Write a spec for people to read; `read_spec` gives back an equal one. The file appears whole or not at all.

    `notes` become comments above columns, each by its table and name.

    Example::

        privbench.write_spec(spec, "spec.yaml", force=True)
    """
    target = Path(path)
    if target.exists() and not force:
        raise TargetError(f"{path}: is there already. Choose another name, or replace it with `--force`.")
    text = spec_text(spec, notes or {})
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name[:40]}.", dir=target.parent)
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(target)
    except OSError as error:
        raise TargetError(f"{path}: cannot be written: {error.strerror or error}.") from None
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def spec_text(spec: Spec, notes: Mapping[Place, str] | None = None) -> str:
    """Return what `write_spec` writes."""
    return "\n".join(_lines(spec, notes or {})) + "\n"


def _lines(spec: Spec, notes: Mapping[Place, str]) -> Iterator[str]:
    yield "# What the database is, who is protected, and what is public. Review it: all that stands here is published."
    head = spec.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"tables", "original"})
    if spec.csv is not None:
        head["csv"] = spec.csv.model_dump(mode="json", exclude_defaults=True)
    for key, value in head.items():
        if value not in ({}, []):
            yield from entry(key, value)
    yield "tables:" if spec.tables else "tables: {}"
    for name, table in spec.tables.items():
        yield ""
        yield from _table_lines(name, table, {column: note for (t, column), note in notes.items() if t == name})
    if spec.original is not None:
        yield ""
        yield from _original_lines(spec.original)


def _original_lines(original: OriginalDdl) -> Iterator[str]:
    """The source's own DDL, statement by statement, so that people can read it and take parts out."""
    yield f"# {_ORIGINAL}"
    yield "original:"
    words = original.model_dump(mode="json", exclude_defaults=True)
    statements = words.pop("statements", [])
    for key, value in words.items():
        yield from entry(key, value, indent=2)
    if statements:
        yield "  statements:"
    for statement in statements:
        yield from item(statement, indent=4)


def _table_lines(name: str, table: TableSpec, notes: Mapping[str, str]) -> Iterator[str]:
    yield next(entry(name, {}, indent=2)).removesuffix(" {}")
    words = table.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"columns"})
    for key, value in words.items():
        if key == "clustered_by" and any(level.origin is Origin.DATA for level in table.clustered_by):
            yield f"    # {_CLUSTERS_FROM_DATA}"
        if key == "rules" and any(rule.origin is Origin.DATA for rule in table.rules):
            yield f"    # {_RULES_FROM_DATA}"
        yield from entry(key, value, indent=4)
    yield "    columns:" if table.columns else "    columns: {}"
    for name_of_column, column in table.columns.items():
        if column.origin is Origin.DATA:
            yield f"      # {_FROM_DATA}"
        if name_of_column in notes:
            yield f"      # {' '.join(notes[name_of_column].split())}"
        yield from entry(name_of_column, _column_words(column), indent=6)


def _column_words(column: ColumnSpec) -> dict[str, Plain]:
    """What the file says of a column: its type and NULLs always, other words where they say more than their absence."""
    words: dict[str, Any] = {"type": column.type, "null": column.null}
    if column.domain is None and column.origin is Origin.PRIVATE:
        words["domain"] = PRIVATE
    elif column.domain is not None:
        words["domain"] = domain_json(column.domain)
    plain = column.model_dump(mode="json", by_alias=True, exclude_defaults=True, exclude={"type", "null", "domain"})
    if words.get("domain") == PRIVATE:
        plain.pop("from", None)
    if column.first is not None:
        plain["first"] = domain_json(column.first)
    return words | plain
