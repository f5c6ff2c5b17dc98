"""A first spec from a source: types and keys from its catalogue, domains from its schema, or where they come from.

Where the schema gives none, a domain is left to the budget (`private`), and no value is looked at; text whose name says
that it is an e-mail address or a person's name is made up instead. Or a domain is taken from the data (`data`) and
marked as such, for the publisher to review: by keeping it, they declare it public, and the receipt says so. What else
holds in the data is then written down, too, and marked in the same way (decision 0040). Columns of a type without a
codec are left out, as `drop: true` in the spec.
"""

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from privbench.encode.counted import Counted, NullCounter, ValueCounter
from privbench.encode.guess import PERSONAL, guess_shape, shape_of_values
from privbench.encode.narrow import narrowed, rules_about
from privbench.encode.suggest import suggest_domain
from privbench.encode.text import fixed_edges, made_up_domain
from privbench.errors import SchemaError, SpecError
from privbench.fitting.draft_determined import with_determined
from privbench.fitting.draft_found import with_bounds, with_computed, with_rules
from privbench.fitting.draft_relative import Tell, with_relative
from privbench.fitting.find_clustering import clustered_as_stored, with_clustering
from privbench.fitting.find_inside import FoundInside, find_inside
from privbench.fitting.find_lists import FoundList, find_lists, with_lists
from privbench.fitting.find_numbering import find_numbering
from privbench.fitting.lists import SourceWithLists
from privbench.fitting.rules import BY_NO_ROW, BY_NUMBERS, broken_by_numbers, kept_by_no_row
from privbench.fitting.tables_in_sql import Sampler, TablesInSql
from privbench.io.base import Source, arrow_schema
from privbench.io.given import Given, csv_options, kept_place, source_of
from privbench.io.open import open_source
from privbench.methods.method import Progress, in_percent, silent
from privbench.methods.registry import DEFAULT
from privbench.model.arguments import check_lists, member_of
from privbench.model.facts import check_public_sizes
from privbench.model.model import compile_codecs
from privbench.model.schedule import Ready, Schedule, can_number, schedule
from privbench.rules.evaluate import Evaluator
from privbench.rules.row_rules import why_not
from privbench.schema.choices import MADE_UP_ROWS, Choices, closest, flag, leave_out
from privbench.schema.computed import ComputedOrigin
from privbench.schema.domain import Domain, Origin, Text
from privbench.schema.expression import ColumnName, Expression
from privbench.schema.functions import why_refused
from privbench.schema.inside import with_implied, with_inside
from privbench.schema.spec import Orphans, Sizes, Spec
from privbench.schema.table_spec import (
    LONGEST_NAME,
    ColumnSpec,
    ForeignKeySpec,
    IndexSpec,
    RuleSpec,
    TableSpec,
)
from privbench.schema.tables import Column, ForeignKey, Place, Schema, Table
from privbench.schema.types import Kind
from privbench.schema.unit import Neighbours, Protection, Role, protect

PRIVATE, DATA = Origin.PRIVATE.value, Origin.DATA.value
DOMAINS = (PRIVATE, DATA)
"""Where domains can come from that the schema does not give: found with budget by `fit`, or read from the data."""


def _untold(_place: Place, _note: str) -> None:
    """Hear nothing."""


def draft(
    source: Given,
    *,
    unit: str | None = None,
    schema: str | os.PathLike[str] | None = None,
    null: Collection[str] = (),
    delimiter: str | None = None,
    ragged: str = "error",
    domains: str = PRIVATE,
    neighbours: Neighbours | str = Neighbours.REPLACE,
    sizes: Sizes | str = Sizes.MEASURED,
    public: Collection[str] = (),
    made_up: Mapping[str, int] | Collection[str] = (),
    drop: Collection[str] = (),
    drop_columns: Collection[Place] = (),
    owners: Mapping[str, tuple[str, ...]] | None = None,
    lookups: Mapping[str, str] | None = None,
    orphans: Orphans | str = Orphans.ERROR,
    find: bool = True,
    tell: Tell = _untold,
    progress: Progress = silent,
) -> Spec:
    """Draft a spec. Raises SpecError where the unit, an owner key or a table's role has to be named.

    `source` is where a database is, or a dict with its tables by name: DataFrames of pandas or Polars, or Arrow
    tables. For these `schema` has the CREATE TABLE statements, as text or as a path; without it there are no keys.
    `null` lists the texts that mean NULL in CSV files, beside the empty field, `delimiter` is what stands between
    their columns, and `ragged` is "pad" where short rows lack their last values; the spec keeps all
    three. Names of tables and columns match without regard to case, if only one does.

    `domains` says where domains come from that the schema does not give: "private" leaves them to `fit`, which finds
    them with budget; "data" reads them from the data. `public` and `drop` are lists of tables, `drop_columns` columns,
    each as (table, column). `made_up` says of which tables no row is read: so many are made up from the schema instead
    (a list of tables: 100 of each). With `sizes="public"` the numbers of rows of private tables count as public, and
    are exact; else they are measured with noise. `owners` names the owner key of a table by its columns, `lookups` the
    table whose rows reference those of a lookup. With domains from the data, the draft also says what else holds
    there, unless `find` is off: columns that follow from others or lie close to them, rules, numbering, which rows lie
    together, keys and lists inside the entity. With `find` off, no fit looks for any of this with budget, either.
    `tell` hears, by table and column, how many rows disagree.

    Example::

        spec = privbench.draft("shop", unit="customer", public=["product"], drop=["audit"])
    """
    check_lists(
        public=public,
        made_up=made_up,
        drop=drop,
        **{f"owners of {table}": columns for table, columns in (owners or {}).items()},
    )
    neighbours, orphans = member_of(Neighbours, neighbours), member_of(Orphans, orphans)
    sizes = member_of(Sizes, sizes)
    if sizes is Sizes.PUBLIC:
        check_public_sizes(neighbours, "sizes: public")
    if domains not in DOMAINS:
        raise SpecError(f"domains {domains!r}: they can be found with budget (`private`) or read from the `data`.")
    located = source_of(source, schema=schema, null=null, delimiter=delimiter, ragged=ragged)
    with open_source(located) as opened:
        stored = opened.schema()
        chosen = Choices(
            unit=unit,
            public=public,
            drop=drop,
            drop_columns=drop_columns,
            owners=owners or {},
            lookups=lookups or {},
            made_up=made_up if isinstance(made_up, Mapping) else dict.fromkeys(made_up, MADE_UP_ROWS),
        ).spelled(stored)
        unit, public, drop, owners, lookups = chosen.unit, chosen.public, chosen.drop, chosen.owners, chosen.lookups
        _refuse_guessed(stored, chosen.made_up)
        places = {*_named(stored, chosen.drop_columns), *_without_codec(stored, drop)}
        stored = _with_computable(stored, places, public)
        kept = leave_out(stored.tables, columns=places)
        kept = with_implied(kept, public=[*public, *chosen.made_up, *drop, *lookups], owners=owners)

        def protected(schema: Schema, owners: Mapping[str, tuple[str, ...]]) -> Protection:
            return protect(
                schema,
                entity=unit,
                neighbours=neighbours,
                owners=owners,
                public=public,
                made_up=chosen.made_up,
                lookups=lookups,
                drop=drop,
            )

        protection = protected(kept, owners)
        found = FoundInside()
        lists: tuple[FoundList, ...] = ()
        if domains == DATA and find:
            declared = list(owners)
            found = find_inside(opened, protection, declared=declared)
            kept, owners = with_inside(kept, found.keys), {**owners, **found.owners}
            protection = protected(kept, owners)
            if neighbours is Neighbours.REPLACE and orphans is Orphans.ERROR:
                lists = find_lists(opened, protection, declared=declared)
            found.keys |= {(member.name, one.table.foreign_keys[0].columns) for one in lists for member in one.members}
            kept = with_lists(kept, lists)
            protection = protected(kept, {**owners, **{m.name: one.key for one in lists for m in one.members}})
        with_rows = SourceWithLists(opened, protection)
        if domains == PRIVATE:
            _refuse_guesses(protection)
        look = (
            _Private()
            if domains == PRIVATE
            else _Data(with_rows, entities=opened.rows(protection.entity), find=find, progress=progress)
        )
        tables = {}
        every = [
            next((t for t in stored.tables if t.name == kept_table.name), kept_table) for kept_table in kept.tables
        ]
        for table in every:
            tables[table.name] = _table(look, protection, table, found, dropped=table.name in drop, places=places)
        for one in lists:
            tables |= {member: _with_copies(tables[member], one.table) for member in one.table.list_of}
        if find and isinstance(look, _Data):
            progress("comparing columns", 0, 1)
            with TablesInSql(with_rows, protection.schema, look.samples) as sql:
                tables, protection = with_computed(sql, protection, tables, tell=tell)
                tables = with_rules(sql, protection, tables, tell=tell)
                tables = with_relative(with_rows, protection, tables, entities=look.entities, tell=tell)
                tables = with_bounds(sql, protection, tables)
            tables = with_clustering(with_rows, protection, tables)
    spec = Spec(
        source=kept_place(located),
        csv=csv_options(located),
        unit=protection.entity,
        neighbours=neighbours,
        orphans=orphans,
        sizes=sizes,
        tables=tables,
        method={} if find else {"name": DEFAULT, "find": False},
        original=stored.original and stored.original.with_nullable(stored),
    )
    return _without_late(spec)


def _without_late(spec: Spec) -> Spec:
    """A spec without numbering by what is known too late; rules that cannot be kept say why, or are not suggested."""
    tables, protection = dict(spec.tables), spec.protection()
    known = schedule(spec, protection)
    for name, words in tables.items():
        if words.numbered_by is not None and not can_number(known, (name, words.numbered_by)):
            [key] = words.key
            columns = words.columns | {key: words.columns[key].model_copy(update={"origin": Origin.DECLARED})}
            tables[name] = words.model_copy(update={"numbered_by": None, "columns": columns})
    spec = spec.model_copy(update={"tables": tables})
    known = schedule(spec, protection)
    for name in (n for n in protection.order if tables[n].rules):
        tables[name] = tables[name].model_copy(update={"rules": tuple(_kept_rules(spec, known, name))})
    return spec.model_copy(update={"tables": tables})


def _kept_rules(spec: Spec, known: Schedule, name: str) -> Iterator[RuleSpec]:
    """The rules of a table; a CHECK that cannot be kept, since a column is known too late, says why."""
    table, protection = known.protection.schema.table(name), known.protection
    codecs = compile_codecs(spec, protection, without={*spec.wanted(protection)})
    why_broken = dict.fromkeys(kept_by_no_row(known, table, codecs), BY_NO_ROW)
    if known.rules(table, Ready.NUMBERED) or known.rules(table, Ready.RENUMBERED):
        why_broken |= dict.fromkeys(broken_by_numbers(known, table, codecs), BY_NUMBERS)
    checks = iter(table.checks)
    for rule in spec.tables[name].rules:
        check = None if rule.left_out else next(checks)
        why = None if check is None else why_broken.get(check) or known.why_not(spec, table, check)
        if why is None:
            yield rule
        elif rule.origin is not Origin.DATA:
            yield rule.model_copy(update={"left_out": why[:LONGEST_NAME]})


def _refuse_guesses(protection: Protection) -> None:
    """Refuse private tables whose types depend on their values: they would be published without noise."""
    private = [protection.schema.table(name) for name in protection.order]
    if guessed := [table.name for table in private if any(column.guessed for column in table.columns)]:
        raise SpecError(
            f"{', '.join(guessed)}: the types of a CSV file, of columns of NULLs alone, and of columns of Python "
            "objects, are guessed from their values, which are private. Put a schema.sql with CREATE TABLE statements "
            "beside the file (in Python, give `schema`), or say `--domains data` and review the types, too."
        )


def _refuse_guessed(schema: Schema, made_up: Collection[str]) -> None:
    """Refuse made-up tables whose types depend on values: their rows say nothing."""
    tables = [table for table in schema.tables if table.name in made_up]
    if guessed := [table.name for table in tables if any(column.guessed for column in table.columns)]:
        raise SpecError(
            f"{', '.join(guessed)}: rows are made up from the schema alone, but the types are guessed from the values "
            "of real rows. Put a schema.sql with CREATE TABLE statements beside the file (in Python, give `schema`)."
        )


def _with_computable(schema: Schema, dropped: Collection[Place], public: Collection[str]) -> Schema:
    """Learn GENERATED columns like any other where they are in a key, or made of columns or functions not at hand."""
    tables = []
    for table in schema.tables:
        kept = {c.name for c in table.columns if (table.name, c.name) not in dropped}
        in_key = {c for key in (*table.keys, *(k.columns for k in table.foreign_keys)) for c in key}
        columns = []
        for column in table.columns:
            expression = None if table.name in public or column.name in in_key else column.computed
            named = () if expression is None else (*expression.columns, *expression.aggregated)
            if not all(name.table is None and name.column in kept for name in named) or not _is_known(
                table, expression
            ):
                expression = None
            columns.append(replace(column, computed=expression))
        tables.append(replace(table, columns=tuple(columns)))
    return replace(schema, tables=tuple(tables))


def _is_known(table: Table, expression: Expression | None) -> bool:
    """Whether an expression can be worked out: a schema may name functions of its own system."""
    if expression is None:
        return True
    if why_refused(expression.tree) is not None:
        return False
    types = {ColumnName(None, c.name): c.type.arrow for c in table.columns if c.type.kind is not Kind.OTHER}
    try:
        Evaluator([expression], types, where=table.name).close()
    except SpecError:
        return False
    return True


def _named(schema: Schema, places: Collection[Place]) -> Collection[Place]:
    """Columns to leave out, checked to be there."""
    for name, column in places:
        table = next((t for t in schema.tables if t.name == name), None)
        if table is None:
            raise SpecError(f"--drop {name}.{column}: no such table. {closest(name, (t.name for t in schema.tables))}")
        columns = [c.name for c in table.columns]
        if column not in columns:
            raise SpecError(f"--drop {name}.{column}: no such column. {closest(column, columns)}")
    return places


def _without_codec(schema: Schema, drop: Collection[str]) -> list[Place]:
    """Columns whose type has no codec; SchemaError if a key needs one."""
    referenced = {(key.table, c) for _, key in schema.foreign_keys() for c in key.references}
    places = []
    for table in (t for t in schema.tables if t.name not in drop):
        in_key = {*table.primary_key, *(c for key in table.foreign_keys for c in key.columns)}
        for column in (c for c in table.columns if c.type.kind is Kind.OTHER):
            if column.name in in_key or (table.name, column.name) in referenced:
                raise SchemaError(
                    f"{table.name}.{column.name}: is in a key, but type {column.type.sql} has no codec. Store it as "
                    f"an integer or VARCHAR, or leave the table out ({flag('--drop', table.name)})."
                )
            places.append((table.name, column.name))
    return places


def _table(
    look: "_Private | _Data",
    protection: Protection,
    table: Table,
    found: FoundInside,
    *,
    dropped: bool,
    places: Collection[Place],
) -> TableSpec:
    if dropped:
        return TableSpec(drop=True)
    role = protection.roles[table.name]
    kept = protection.schema.table(table.name)
    private = role is not Role.PUBLIC
    columns = look.columns(kept) if private else {c.name: _plain(c) for c in kept.columns}
    numbered_by = look.numbered_by(protection, kept) if private else None
    if numbered_by is not None:  # what is known of the key is from the data, too
        key = kept.primary_key[0]
        columns[key] = columns[key].model_copy(update={"origin": Origin.DATA})
    left_out = [c for c in table.columns if (table.name, c.name) in places]
    columns |= {c.name: _left_out(c) for c in left_out}
    return TableSpec(
        list_of=kept.list_of or None,
        key=kept.primary_key,
        unique=kept.uniques,
        indexes={i.name: IndexSpec(columns=i.columns, unique=i.unique) for i in kept.indexes},
        foreign_keys=tuple(_key(table.name, key, found) for key in kept.foreign_keys),
        owner=protection.owners[table.name].columns if role is Role.OWNED else None,
        owned_by=protection.lookups[table.name][0] if role is Role.LOOKUP else None,
        numbered_by=numbered_by,
        clustered_by=clustered_as_stored(protection, kept),
        public=role is Role.PUBLIC and table.name not in protection.made_up,
        made_up=protection.made_up.get(table.name),
        rules=tuple(_rules(table, kept, protection.schema)),
        quoted=table.quoted,
        columns={c.name: _with_quotes(c, columns[c.name]) for c in table.columns if c.name in columns},
    )


def _with_quotes(column: Column, words: ColumnSpec) -> ColumnSpec:
    return words.model_copy(update={"quoted": True}) if column.quoted else words


def _with_copies(member: TableSpec, of: Table) -> TableSpec:
    """A member of a list whose copies of the list's columns are said to be taken from the data."""
    copied = [c.name for c in of.columns if c.name not in of.primary_key]
    copies = {name: member.columns[name].model_copy(update={"computed_origin": ComputedOrigin.DATA}) for name in copied}
    return member.model_copy(update={"columns": {**member.columns, **copies}})


def _rules(table: Table, kept: Table, schema: Schema) -> Iterator[RuleSpec]:
    """The CHECKs of a table; those that cannot be kept say why."""
    for check in table.checks:
        why = why_not(check, kept, schema) if check in kept.checks else "it names a column that is left out"
        yield RuleSpec(check=check.sql, left_out=why and why[:LONGEST_NAME])


def _key(table: str, key: ForeignKey, found: FoundInside) -> ForeignKeySpec:
    origin = Origin.DATA if (table, key.columns) in found.keys else Origin.SCHEMA if key.inside else Origin.DECLARED
    return ForeignKeySpec(
        columns=key.columns, table=key.table, references=key.references, inside=key.inside, origin=origin
    )


class _Private:
    """Domains from the schema, else left to the budget. Looks at no value."""

    def columns(self, table: Table) -> dict[str, ColumnSpec]:
        return {column.name: self._column(table, column) for column in table.columns}

    def numbered_by(self, protection: Protection, table: Table) -> None:
        """Nothing: how keys are numbered stands in no schema."""

    def _column(self, table: Table, column: Column) -> ColumnSpec:
        if column.name not in table.attributes:
            return _plain(column, implied=_shaped_key(table, column))
        if column.implied is not None:
            return _plain(column, implied=column.implied)
        unique = (column.name,) in table.keys
        shape = _guess(table, column, unique=unique)
        if unique or column.type.syntax or guess_shape(column.name, column.type) in PERSONAL:
            return _plain(column, implied=made_up_domain(column.type, shape=shape, unique=unique))
        return ColumnSpec(
            type=column.type.sql, null=column.nullable, origin=Origin.PRIVATE, source_type=column.source_type
        )


class _Data:
    """Domains from the schema, else from the data; reads the columns whose domain the schema does not give."""

    def __init__(self, source: Source, *, entities: int, find: bool, progress: Progress) -> None:
        self._source = source
        self._find = find
        self._progress = progress
        self.entities = entities
        self.samples: dict[str, pa.Table] = {}

    def columns(self, table: Table) -> dict[str, ColumnSpec]:
        learnt = [c for c in table.columns if _needs_data(table, c)]
        counted = self._counted(table, learnt)
        specs = {}
        for column in table.columns:
            if column.name in counted:
                specs[column.name] = _from_data(table, column, counted[column.name], entities=self.entities)
            else:
                specs[column.name] = _plain(column, implied=column.implied if column.name in table.attributes else None)
        if not self._find or not counted:
            return specs
        return with_determined(self._source, table, specs, self.samples[table.name], counted=counted)

    def _counted(self, table: Table, learnt: Sequence[Column]) -> dict[str, Counted]:
        """Read a table once: count the values of some columns, and take a sample of the rows if it will be asked."""
        counters = {
            c.name: NullCounter(c.type.arrow) if _in_foreign_key(table, c) else ValueCounter(c.type.arrow)
            for c in learnt
        }
        sampler = Sampler()
        columns = table.columns if self._find else tuple(learnt)
        if columns:
            wanted = Table(name=table.name, columns=columns)
            done = in_percent(self._progress, f"reading {table.name}", self._source.rows(table.name))
            for batch in self._source.read(wanted):
                for name, counter in counters.items():
                    counter.add(batch.column(name))
                if self._find:
                    sampler.add(batch)
                done(batch.num_rows)
            self.samples[table.name] = sampler.rows(arrow_schema(wanted))
        return {name: counter.counted() for name, counter in counters.items()}

    def numbered_by(self, protection: Protection, table: Table) -> str | None:
        return find_numbering(self._source, protection, table) if self._find else None


def _needs_data(table: Table, column: Column) -> bool:
    """Attributes without an implied domain, text keys, whose length is wanted, and keys that might be NULL."""
    natural = table.primary_key == (column.name,) and column.type.kind is Kind.TEXT
    if _in_foreign_key(table, column):
        return column.nullable
    return natural or (column.name in table.attributes and column.implied is None)


def _in_foreign_key(table: Table, column: Column) -> bool:
    return any(column.name in key.columns for key in table.foreign_keys)


def _from_data(table: Table, column: Column, values: Counted, *, entities: int) -> ColumnSpec:
    return ColumnSpec(
        type=column.type.sql,
        null=column.nullable and values.has_nulls,
        domain=_domain(table, column, values, entities=entities),
        origin=Origin.DATA,
        source_type=column.source_type,
    )


def _domain(table: Table, column: Column, values: Counted, *, entities: int) -> Domain | None:
    where = f"{table.name}.{column.name}"
    if _in_foreign_key(table, column):
        return None
    unique = (column.name,) in table.keys
    guess = _guess(table, column, unique=unique)
    if table.primary_key == (column.name,):
        return _key_from_data(column, values.values, guess=guess)
    domain = suggest_domain(where, column.type, values, unique=unique, entities=entities, guess=guess)
    rules = [rule for rule in rules_about(table, column.name) if why_not(rule, table, Schema(tables=())) is None]
    return narrowed(where, column.type, domain, rules, unique=unique) or domain


def _guess(table: Table, column: Column, *, unique: bool) -> str | None:
    return guess_shape(column.name, column.type, table=table.name, unique=unique)


def _shaped_key(table: Table, column: Column) -> Domain | None:
    """The domain of a text key that is numbered anew, if its type or name says what its values look like."""
    if table.primary_key != (column.name,) or any(column.name in key.columns for key in table.foreign_keys):
        return None
    shape = _guess(table, column, unique=True)
    return None if shape is None else made_up_domain(column.type, shape=shape)


def _key_from_data(column: Column, values: pa.Array, *, guess: str | None) -> Domain:
    """How long the values of a text key are, and what they look like."""
    shape = shape_of_values(guess, column.type, values, unique=True)
    length = round(pc.mean(pc.utf8_length(values)).as_py() or 8)
    return Text(text=fixed_edges(shape, column.type) or (length, length + 1), shape=shape)


def _plain(column: Column, *, implied: Domain | None = None) -> ColumnSpec:
    origin = Origin.DECLARED if implied is None else Origin.SCHEMA
    return ColumnSpec(
        type=column.type.sql,
        null=column.nullable,
        domain=implied,
        origin=origin,
        computed=column.computed,
        computed_origin=ComputedOrigin.DECLARED if column.computed is None else ComputedOrigin.SCHEMA,
        source_type=column.source_type,
    )


def _left_out(column: Column) -> ColumnSpec:
    """A column that is dropped; for its type, if that has no codec."""
    untyped = column.type.sql if column.type.kind is Kind.OTHER else None
    return ColumnSpec(type=column.type.sql, null=column.nullable, drop=True, source_type=untyped)
