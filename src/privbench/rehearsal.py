"""The rehearsal of a fit: the whole way once, on made-up rows, before anything private is read or spent.

A model that knows nothing but the spec gives a few rows, which keep its keys and rules as all rows do. They are fitted,
saved, verified, generated from and loaded as the real ones will be, with a budget of their own that nobody records. So
what fails for reasons of the spec fails here. Of the source only a few rows of public tables are read.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from privbench.deferred import duckdb
from privbench.encode.codec import Codec
from privbench.encode.made_up import usual_domain
from privbench.errors import DataError, PrivBenchError, RehearsalError, first_line
from privbench.fitting.domains import inside_rules, wanted_types
from privbench.fitting.engines import ThisMachine
from privbench.fitting.fit import known_codecs, learn
from privbench.fitting.prepare import Prepared
from privbench.fitting.public_tables import PublicTables
from privbench.generation.bundle import write_companions
from privbench.generation.run import Run
from privbench.io.base import Format, Source, arrow_schema
from privbench.io.memory import MemorySource, Tables
from privbench.io.names import quote_text
from privbench.io.sinks import open_sink
from privbench.io.staging import private_folder
from privbench.methods.domains.coarse import coarse_domain
from privbench.methods.method import Progress, TableModel, silent
from privbench.mistakes import whereabouts
from privbench.model.file import load_unverified, save_model
from privbench.model.model import Model
from privbench.model.receipt_check import verify_model
from privbench.privacy.noise import TestEntropy
from privbench.schema.domain import Domain, Origin, Values
from privbench.schema.spec import Spec
from privbench.schema.tables import Place, Table
from privbench.schema.types import Kind, SqlType
from privbench.schema.unit import Link, LinkKind, Protection
from privbench.spn.block_link import BlockLink
from privbench.spn.count_links import DegreeLink
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.feature_names import COMPONENT, in_degree_column, key_column, null_column, rows_column
from privbench.spn.inside_link import InsideLink
from privbench.spn.link import LinkModel
from privbench.spn.nodes import Leaf, Product
from privbench.spn.reference_link import ReferenceLink

ENTITIES = 12
"""Made-up entities: enough for keys, NULLs and pairs to come about, few enough to cost nothing."""
EPSILON = Fraction(100_000)
"""The budget of a rehearsal: with so few entities a usual one would buy nothing but noise."""
PUBLIC_ROWS = 1000
"""So many rows of each public table are looked at, and all of them where these hold no whole keys."""
SEED = 0
ROWS_PER_OWNER = np.array([0, 1, 2, 3])
"""Edges of the bins of rows per owner row, and of keys to a row: none, one, two."""
BUNDLES = (Format.PARQUET, Format.CSV, Format.SQLITE)
"""What the rehearsed database is written as: scripts for all systems, loaded where that needs no server."""
SPENT = "Found in a rehearsal on made-up rows: nothing was spent. If it is mistaken, `--no-rehearsal` goes without"


def rehearse(prepared: Prepared, source: Source, delta: Fraction, progress: Progress = silent) -> None:
    """Walk the whole way on made-up rows. Raises PrivBenchError that says what fails, and that nothing was spent."""
    progress("rehearsing on made-up rows", 0, 1)
    with _nothing_spent(), private_folder() as folder:
        rows = made_up_rows(prepared, read_public(prepared, source))
        model = _fitted(prepared, rows, delta)
        save_model(model, folder / "model")
        model = load_unverified(folder / "model")
        verdict = verify_model(model)
        if verdict.problems:
            raise RehearsalError(f"the receipt would not verify: {'; '.join(verdict.problems)}.")
        _write(model, folder)


@contextmanager
def _nothing_spent() -> Iterator[None]:
    """Turn whatever ends the block into an error that says so."""
    try:
        yield
    except PrivBenchError as error:
        raise type(error)(f"{error} ({SPENT}.)") from error
    except Exception as error:
        place = whereabouts(error)
        raise RehearsalError(
            f"{place.words}: the fit would fail by a mistake in PrivBench "
            f"({type(error).__name__}: {first_line(error)}, in {place.line}). "
            "Say `drop: true` under the column in the spec, or take out what names it there; and please report it with "
            f"the spec. ({SPENT}.)"
        ) from error


# -- rows --------------------------------------------------------------------------------------------------------------


def read_public(prepared: Prepared, source: Source) -> dict[str, bytes]:
    """Read the first rows of each public table whose keys lead to rows that are among them; all where none are."""
    public = PublicTables(source, prepared.protection)
    heads = {table.name: _head(source, table, PUBLIC_ROWS) for table in public.named}
    held = _whole_keys(prepared.protection, heads)
    if any(heads[name].num_rows and not rows.num_rows for name, rows in held.items()):
        held = _whole_keys(prepared.protection, {t.name: _head(source, t, None) for t in public.named})
    if held:
        public = PublicTables(MemorySource(Tables(held)), prepared.protection)
    for table in public.named:
        public.read(table)
    public.make_up(prepared.spec.made_up_domains(prepared.protection))
    return public.tables


def _head(source: Source, table: Table, rows: int | None) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    for batch in source.read(table):
        batches.append(batch)
        if rows is not None and sum(b.num_rows for b in batches) >= rows:
            break
    held = pa.Table.from_batches(batches, schema=arrow_schema(table))
    return held if rows is None else held.slice(0, rows)


def _whole_keys(protection: Protection, heads: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """The rows whose keys to public tables lead to rows that are there."""
    tables = dict(heads)
    copied = [link for link in protection.links if link.kind is LinkKind.COPIED]
    links = [link for link in copied if link.table in tables and link.target in tables]
    before = None
    while before != (before := {name: held.num_rows for name, held in tables.items()}):
        for link in links:
            tables[link.table] = tables[link.table].filter(_leads_somewhere(link, tables))
    return tables


def _leads_somewhere(link: Link, tables: Mapping[str, pa.Table]) -> pa.Array:
    held, there = tables[link.table], tables[link.target].select(list(link.key.references))
    own = held.select(list(link.key.columns)).rename_columns(list(link.key.references))
    numbered = own.append_column("\0row", pa.array(range(len(own))))
    types = {name: there.schema.field(name).type for name in link.key.references}
    numbered = numbered.cast(pa.schema([*types.items(), ("\0row", pa.int64())]))
    found = numbered.join(there, keys=list(types), join_type="left semi").column("\0row")
    whole = pc.is_in(pa.array(range(len(own))), value_set=found.combine_chunks())
    for name in link.key.columns:
        whole = pc.or_(whole, pc.is_null(held.column(name)))
    return whole


def made_up_rows(prepared: Prepared, public: Mapping[str, bytes]) -> dict[str, pa.Table]:
    """A few rows of every table that a source has, as the spec wants them, from the spec alone."""
    model = made_up_model(prepared, public)
    tables = {t.name: t for t in model.protection.schema.published().tables}
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in tables}
    with private_folder() as spool, closing(Run(model, scale=1.0, seed=SEED, spool=spool)) as run:
        for name, batch in run.batches(silent):
            if run.writes(name):
                batches[name].append(batch)
    return {name: pa.Table.from_batches(made, schema=arrow_schema(tables[name])) for name, made in batches.items()}


# -- a model that knows the spec alone ---------------------------------------------------------------------------------


def made_up_model(prepared: Prepared, public: Mapping[str, bytes]) -> Model:
    """A model of a spec without data: all codes alike, one or two rows for each owner."""
    spec = _with_domains(prepared.spec, prepared.protection)
    protection = spec.protection()
    with_owner = prepared.chosen.method.children_with_owner
    model = Model(
        spec=spec,
        tables={},
        public=public,
        entity_keys=None,
        receipt={"unit": {"tables": {name: {"rows_per_entity": None} for name in protection.order}}},
    )
    links = {link.name: _link(link, model.public_rows, with_owner=with_owner) for link in protection.links}
    columns = {name: [Leaf(column=COMPONENT, counts=np.ones(1))] for name in protection.order}
    for name in protection.order:
        columns[name] += [_leaf(column, codec) for column, codec in model.codecs[name].items()]
    for link in (link for link in protection.links if link.table in columns):
        for column in links[link.name].columns(link):
            if column.name != COMPONENT:
                counts = np.ones(column.codes)
                columns[link.target if column.on_target else link.table].append(Leaf(column=column.name, counts=counts))
    sizes = _sizes(protection)
    tables = {
        name: TableModel(
            network=Product(children=tuple(columns[name])),
            rows=sizes[name],
            links={link.name: links[link.name] for link in protection.links_of(name)},
        )
        for name in protection.order
    }
    return Model(spec=spec, tables=tables, public=model.public, entity_keys=None, receipt=model.receipt)


def _with_domains(spec: Spec, protection: Protection) -> Spec:
    """The spec with a domain for each column, and without maps that are yet to be found."""
    wanted = wanted_types(spec, protection)
    found = {place: (_domain(protection, place, kind), Origin.DECLARED) for place, kind in wanted.items()}
    return spec.with_domains(found).without_maps_to_find()


def _domain(protection: Protection, place: Place, kind: SqlType) -> Domain:
    if kind.kind is not Kind.TEXT:
        return inside_rules(protection, place, usual_domain(place[1], kind))
    return inside_rules(protection, place, Values(values=("a", "b")) if kind.syntax is None else coarse_domain(kind))


def _leaf(column: str, codec: Codec) -> Leaf:
    """All codes alike, but for a fifth of NULLs."""
    counts = np.ones(codec.size)
    if codec.null_code is not None:
        counts[codec.null_code] = max(codec.size / 4, 1.0)
    return Leaf(column=column, counts=counts)


def _link(link: Link, public: Mapping[str, int], *, with_owner: bool) -> LinkModel:
    edges = ROWS_PER_OWNER[: 3 if link.unique else 4]
    null = null_column(link.name) if link.nullable else None
    if link.kind is LinkKind.OWNER and with_owner:
        unowned = ENTITIES / 4 if link.nullable else 0.0
        return FanoutLink(column=rows_column(link.name), edges=edges, exponent=0.0, unowned=unowned)
    if link.kind is LinkKind.INSIDE:
        return InsideLink(column=in_degree_column(link.name), edges=edges, exponent=0.0, null=null)
    if link.kind is LinkKind.CATEGORY and with_owner:
        slots = public[link.target]
        return BlockLink(column=key_column(link.name), blocks=min(slots, ENTITIES), slots=slots)
    if link.kind is LinkKind.REFERENCE and with_owner:
        return ReferenceLink(column=None, null=null)
    return DegreeLink(counts=np.ones(len(edges) - 1), null_share=0.25 if link.nullable else 0.0)


def _sizes(protection: Protection) -> dict[str, float]:
    """About as many rows as owners have, and no more of lookups than rows that reference them."""
    sizes: dict[str, float] = {}
    for name in protection.order:
        link = protection.owner_link(name)
        rows = ENTITIES if link is None else sizes[link.target] * (0.5 if link.unique else 1.0)
        sizes[name] = rows + (ENTITIES / 4 if link is not None and link.nullable else 0)
    return sizes


# -- the walk ----------------------------------------------------------------------------------------------------------


def _fitted(prepared: Prepared, rows: Mapping[str, pa.Table], delta: Fraction) -> Model:
    """The model of made-up rows."""
    with ThisMachine(None) as place:
        with place.open(Tables(rows)) as source:
            try:
                read = place.read(source, prepared, known_codecs(prepared), silent)
            except DataError as error:
                raise RehearsalError(
                    f"rows that are made by the spec would be refused, so change it and not the data: {error}"
                ) from error
        return learn(prepared, read, epsilon=EPSILON, delta=delta, entropy=TestEntropy(SEED), progress=silent)


def _write(model: Model, folder: Path) -> None:
    """Generate from the model, write bundles with their scripts, and load them where that needs no server."""
    schema = model.protection.schema.published()
    with private_folder() as spool, closing(Run(model, scale=1.0, seed=SEED, spool=spool)) as run:
        batches = [(name, batch) for name, batch in run.batches(silent) if run.writes(name)]
    rows = {table.name: run.written[table.name] for table in schema.tables}
    for form in BUNDLES:
        bundle = folder / form.value
        (bundle / "data").mkdir(parents=True)
        with open_sink(bundle / "data", schema=schema, format=form) as sink:
            for name, batch in batches:
                sink.write(name, batch)
        write_companions(bundle, model, rows=rows, form=form, lost=(), rules=run.rule_counts, scale=1.0, seed=SEED)
        if form is Format.PARQUET:
            _load(bundle)


def _load(bundle: Path) -> None:
    """Run the script that loads a bundle into DuckDB, which checks keys and rules."""
    script = (bundle / "load" / "duckdb.sql").read_bytes().decode().removeprefix(".bail on\n")
    with duckdb.connect() as connection:
        connection.execute(f"SET file_search_path = {quote_text(str(bundle))}")
        try:
            connection.execute(script)
        except duckdb.Error as error:
            raise RehearsalError(
                f"a bundle would not load by its own script, load/duckdb.sql: {first_line(error)}. Take the key or "
                "rule that it names out of the spec, and please report it with the spec."
            ) from error
