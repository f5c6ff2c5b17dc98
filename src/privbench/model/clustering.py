"""Which rows of the entity table lie together: `clustered_by` of the spec, a public fact.

Rows lie in the order of the first column. What it puts together lies in the order of the next one, and so on. Not all
of a real table is in such an order, and where it is, stretches of it may stand anywhere: a level says which share of
the rows is in order, and how long a run of them is. Rows are rearranged inside the block in which they are made,
before they get their numbers, so that keys are numbered as rows lie, and rows of other tables follow their owners.
"""

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.errors import SpecError
from privbench.model.order import ids_are_public
from privbench.schema.computed import computed_from, equal_columns, late_columns, row_columns
from privbench.schema.spec import Spec
from privbench.schema.table_spec import ClusterSpec
from privbench.schema.tables import Table
from privbench.schema.unit import Protection

Numbers = NDArray[np.int64]


def clustered_order(columns: Sequence[Numbers], levels: Sequence[ClusterSpec], rng: np.random.Generator) -> Numbers:
    """The rows in the order in which they lie; `columns` are the ranks of the values of each level's column.

    >>> clustered_order([np.array([1, 0, 1, 0])], [ClusterSpec(column="area")], np.random.default_rng(1)).tolist()
    [1, 3, 0, 2]
    """
    pieces = np.zeros(len(columns[0]), np.int64)
    for ranks, level in zip(columns, levels, strict=True):
        pieces = divided(pieces, ranks, level, rng)
    return np.argsort(pieces, kind="stable")


def divided(pieces: Numbers, ranks: Numbers, level: ClusterSpec, rng: np.random.Generator) -> Numbers:
    """Divide each piece of a table by one more column: the number of the piece that each row is in, in their order."""
    if not len(pieces):
        return pieces
    outside = (rng.random(len(pieces)) >= level.share).astype(np.int64)
    if level.run is None:
        return _numbered(pieces, outside, np.where(outside, 0, ranks))
    runs = _runs(_numbered(pieces, outside), ranks, level.run)
    anywhere = rng.permutation(int(runs.max()) + 1)[runs]
    return _numbered(pieces, outside, np.where(outside, 0, anywhere))


def _runs(pieces: Numbers, ranks: Numbers, run: int) -> Numbers:
    """Cut the rows of each piece, in the order of their values, into runs of about so many rows; all runs numbered."""
    order = np.lexsort((ranks, pieces))
    counts = np.bincount(pieces)
    starts = np.cumsum(counts) - counts
    places = np.empty(len(pieces), np.int64)
    places[order] = np.arange(len(pieces))
    runs = np.maximum(np.rint(counts / run).astype(np.int64), 1)
    within = (places - starts[pieces]) * runs[pieces] // counts[pieces]
    return _numbered(pieces, within)


def _numbered(*keys: Numbers) -> Numbers:
    """The rank of each row's keys among all that are there, the first key first."""
    order = np.lexsort(keys[::-1])
    changes = np.zeros(len(order), bool)
    for key in keys:
        changes[1:] |= np.diff(key[order]) != 0
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.cumsum(changes)
    return numbers


def value_ranks(values: pa.Array) -> Numbers:
    """The rank of each value among those that are there, that of NULL the last.

    >>> value_ranks(pa.array(["b", None, "a", "b"])).tolist()
    [1, 2, 0, 1]
    """
    encoded = values.dictionary_encode()
    ranks = np.empty(len(encoded.dictionary) + 1, np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(encoded.dictionary))
    ranks[-1] = len(encoded.dictionary)
    places: Numbers = ranks[encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)]
    return places


def clusterable_columns(protection: Protection, table: Table) -> tuple[str, ...]:
    """The columns by which rows of a table can lie: those whose values do not depend on the numbers of rows."""
    if table.name != protection.entity or ids_are_public(protection):
        return ()
    late = {column for name, column in late_columns(protection) if name == table.name}
    last = {*table.primary_key, *(c for key in table.foreign_keys if key.table == table.name for c in key.columns)}
    return tuple(c.name for c in table.columns if _needs(protection, table.name, {c.name}).isdisjoint(late | last))


def computed_first(protection: Protection, table: str, columns: Collection[str]) -> tuple[str, ...]:
    """The columns that must be computed to know some columns of a row, in a fitting order."""
    needed = _needs(protection, table, columns)
    return tuple(name for name in row_columns(protection, table) if name in needed)


def _needs(protection: Protection, table: str, columns: Collection[str]) -> set[str]:
    """Some columns of a table, and all of its columns that these are computed from; counted rows are drawn before."""
    sources = computed_from(protection)
    counted = equal_columns(protection, table)
    needed, before = set(columns), set[str]()
    while needed != before:
        before = set(needed)
        for name in before - counted.keys():
            needed |= {column for owner, column in sources.get((table, name), ()) if owner == table}
    return needed


def check_clustering(spec: Spec, protection: Protection) -> None:
    """Refuse rows that cannot lie by a column. Raises SpecError."""
    for table in protection.schema.tables:
        for level in spec.tables[table.name].clustered_by:
            if level.column not in clusterable_columns(protection, table):
                raise SpecError(
                    f"{table.name}.{level.column}: clustered_by: {_why_not(protection, table, level.column)}"
                )


def _why_not(protection: Protection, table: Table, column: str) -> str:
    if table.name != protection.entity:
        return (
            f"only rows of {protection.entity} lie by columns, those of {table.name} lie with their owners. Take it "
            "out, or say in `order` how the rows lie."
        )
    if ids_are_public(protection):
        return f"public tables reference the ids of {table.name}, so that they stay in their order. Take it out."
    if column not in {c.name for c in table.columns}:
        return "this column is dropped. Name another one, or take it out."
    return (
        "holds keys, is computed from them or adds up rows below: not known when rows are laid out. Name another one."
    )
