"""What a publishable page shows: the bundle's columns in the model's own cells, beside what the model says of them.

Only the bundle and the model are read. Queries are drawn from the bundle, so their literals are synthetic.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codec
from privbench.errors import SpecError
from privbench.evaluation.bins import range_bin
from privbench.evaluation.metrics import Plot, distance_metrics, plotted
from privbench.evaluation.result import Bin, BinKind, Histogram
from privbench.generation.bundle import is_untouched_bundle
from privbench.io.base import Source
from privbench.io.names import find_name
from privbench.io.open import open_source
from privbench.model.model import Model
from privbench.model.verify import read_receipt
from privbench.report.page import measure_data, plot_data
from privbench.schema.tables import Table
from privbench.spn.infer import marginal
from privbench.workload.generate import Style, generate_workload
from privbench.workload.query import Statement
from privbench_verify.checksums import RECEIPT

MAX_BARS = 40
QUERIES = 30
MAX_FANOUT = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Public:
    """The plots and queries of a publishable page."""

    location: str
    rows: Mapping[str, int]
    tables: tuple[Mapping[str, Any], ...]
    keys: tuple[Mapping[str, Any], ...]
    statements: tuple[Statement, ...]


def read_public(location: Path | str, *, model: Model, seed: int = 0) -> Public:
    """Read a bundle of this model."""
    if not is_untouched_bundle(Path(location)):
        raise SpecError(
            f"{location}: is no bundle, or its files were changed. A publishable report is made of a bundle as "
            "`privbench generate` wrote it."
        )
    if read_receipt(Path(location) / RECEIPT) != model.receipt:
        raise SpecError(f"{location}: was not made from this model: its receipt is another. Give the bundle's model.")
    with open_source(location) as source:
        schema = source.schema()
        published = [t.name for t in model.protection.schema.published().tables if t.name in model.tables]
        absent = [name for name in published if find_name(name, [t.name for t in schema.tables]) is None]
        if absent:
            raise SpecError(f"{location}: has no table {absent[0]}, so it was not made from this model.")
        modelled = [t for t in schema.tables if t.name in model.tables]
        tables = tuple({"name": t.name, "columns": _columns(source, t, model), "pairs": {}} for t in modelled)
        keys = tuple(_fanouts(source, modelled))
        rows = {t.name: source.rows(t.name) for t in schema.tables}
    queries = generate_workload(location, n=QUERIES, seed=seed, style=Style.MSCN)
    return Public(location=Path(location).name, rows=rows, tables=tables, keys=keys, statements=queries.statements)


def _columns(source: Source, table: Table, model: Model) -> list[dict[str, Any]]:
    absolute = {c.name for c in model.protection.schema.table(table.name).columns if c.relative_to is None}
    codecs = {
        name: codec
        for name, codec in model.codecs[table.name].items()
        if name in {c.name for c in table.columns} and name in absolute
    }
    if not codecs:
        return []
    counts = {name: np.zeros(codec.size, np.int64) for name, codec in codecs.items()}
    wanted = _only(table, tuple(codecs))
    for batch in source.read(wanted):
        for name, codec in codecs.items():
            counts[name] += np.bincount(codec.encode(batch.column(name)), minlength=codec.size)
    network = model.tables[table.name].network
    types = {c.name: c.type.sql for c in table.columns}
    return [
        _column(name, codec, marginal(network, name), counts[name], types[name])
        for name, codec in codecs.items()
        if name in network.sizes
    ]


def _column(
    name: str, codec: Codec, shares: NDArray[np.float64], counts: NDArray[np.int64], kind: str
) -> dict[str, Any]:
    total = int(counts.sum())
    bins, groups = _bins(codec)
    histogram = Histogram(
        bins=bins,
        real=tuple(round(float(shares[g].sum()) * total) for g in groups),
        synthetic=tuple(int(counts[g].sum()) for g in groups),
    )
    metrics = plotted(distance_metrics(), Plot.BARS) if total else ()
    figures = {m.name: measure_data(m.clipped(m.function(shares, counts / total)), None, "none") for m in metrics}
    return plot_data(name, histogram, about=kind, ordered=codec.ordered, measures=figures)


def _bins(codec: Codec) -> tuple[tuple[Bin, ...], list[NDArray[np.int64]]]:
    """The bins of a column, and the codes in each: neighbouring cells, then OTHER and NULL by themselves."""
    others = [
        (Bin(kind=kind), np.array([code]))
        for code, kind in ((codec.other_code, BinKind.REST), (codec.null_code, BinKind.NULL))
        if code is not None
    ]
    cells, names = codec.size - len(others), codec.labels()
    groups = np.array_split(np.arange(cells), min(cells, MAX_BARS)) if cells else []
    ranges = tuple(range_bin(names[g[0]], names[g[-1]]) for g in groups)
    return (*ranges, *(bin_ for bin_, _ in others)), [*groups, *(codes for _, codes in others)]


def _fanouts(source: Source, tables: list[Table]) -> Iterator[dict[str, Any]]:
    sizes = {t.name: source.rows(t.name) for t in tables}
    for table in tables:
        for key in table.foreign_keys:
            if key.table not in sizes:
                continue
            children_of: Counter[tuple[Any, ...]] = Counter()
            for batch in source.read(_only(table, key.columns)):
                children_of.update(_tuples(batch))
            children = Counter(min(count, MAX_FANOUT) for count in children_of.values())
            children[0] = max(0, sizes[key.table] - len(children_of))
            steps = range(max(children) + 1)
            bins = tuple(range_bin(n, None if n == MAX_FANOUT else n) for n in steps)
            histogram = Histogram(bins=bins, real=(), synthetic=tuple(children[n] for n in steps))
            about = f"rows of {table.name} per row of {key.table}"
            name = f"{table.name}.{','.join(key.columns)}"
            yield plot_data(name, histogram, about=about, ordered=True, measures={})


def _tuples(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return (row for row in rows if None not in row)


def _only(table: Table, names: tuple[str, ...]) -> Table:
    columns = tuple(c for c in table.columns if c.name in names)
    return replace(table, columns=columns, primary_key=(), foreign_keys=(), uniques=(), indexes=())
