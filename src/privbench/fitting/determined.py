"""Between domains and learning: make a map of each column that another column of the row determines.

One histogram of both columns, for a small part of the budget, says which value goes with which: the one that most
entities have. From then on the column follows from the other, leaves the model, and costs nothing more. A value that
too few entities have to tell goes with what is most common in the whole column.
"""

from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codec, Codecs
from privbench.encode.interval import IntervalCodec
from privbench.encode.listed import OrderedList, TextList
from privbench.errors import SpecError
from privbench.privacy.features import Feature, Own, whole_axis
from privbench.privacy.ledger import Scope
from privbench.privacy.queries import Histogram
from privbench.privacy.vault import Vault
from privbench.schema.determined import Pairs, as_scalar
from privbench.schema.domain import Scalar
from privbench.schema.spec import Spec
from privbench.schema.tables import Place
from privbench.schema.unit import Protection

SCOPE = "determined columns"
"""How the ledger calls all of it."""
MAP_SHARE = Fraction(1, 50)
"""The part of the budget for one map."""
MOST_SHARE = Fraction(1, 10)
"""The largest part of the budget for all maps."""
SURE = 2.0
"""Standard deviations of the noise by which a value's most common partner must stand out to be believed."""


def determined_columns(protection: Protection) -> dict[Place, str]:
    """The columns whose map is to be made, and the columns that determine them."""
    columns = [(t, c) for t in protection.order for c in protection.schema.table(t).columns]
    return {(t, c.name): c.determined_by for t, c in columns if c.determined_by is not None and c.computed is None}


def check_cells(protection: Protection, codecs: Codecs) -> None:
    """Refuse a map between columns whose cells are not single values, as far as they are known. Raises SpecError."""
    for (table, name), by in determined_columns(protection).items():
        for column in (name, by):
            codec = codecs[table].get(column)
            if codec is None or cell_values(codec) is None:
                raise SpecError(
                    f"tables.{table}.columns.{name}.determined_by: a map is made from value to value, but the values "
                    f"of {column} are not declared one by one. Give it `domain: {{values: [..]}}` or "
                    "`{range: [..]}`, or say `map: [[VALUE, VALUE], ..]`."
                )


def cost_of_maps(protection: Protection, budget: Fraction) -> Fraction:
    """What all maps cost that are to be made."""
    return budget * min(MAP_SHARE * len(determined_columns(protection)), MOST_SHARE)


def with_maps(spec: Spec, protection: Protection, codecs: Codecs, vault: Vault) -> Spec:
    """The spec with a map for each determined column. Sees noisy answers alone."""
    wanted = determined_columns(protection)
    scope = vault.ledger.root.sequential(SCOPE)
    amount = cost_of_maps(protection, vault.ledger.budget) / max(len(wanted), 1)
    return spec.with_maps(
        {
            (table, name): _map(vault, scope, table, (by, codecs[table][by]), (name, codecs[table][name]), amount)
            for (table, name), by in wanted.items()
        }
    )


def _map(
    vault: Vault, scope: Scope, table: str, key: tuple[str, Codec], value: tuple[str, Codec], amount: Fraction
) -> Pairs:
    axes = tuple(whole_axis(_feature(name, codec)) for name, codec in (key, value))
    measured = vault.measure(Histogram(table=table, axes=axes), amount, scope)
    others = value[1].other_code
    counts = measured.counts.copy()
    if others is not None:
        counts[:, others] = -np.inf  # which stands for no one value
    return paired(counts, key[1], value[1], doubt=SURE * sqrt(measured.noise.variance))


def paired(counts: NDArray[np.float64], key: Codec, value: Codec, *, doubt: float) -> Pairs:
    """The most common partner of each value, by counts of both; what is in doubt has that of all."""
    usual = int(counts.sum(axis=0).argmax())
    best = np.where(counts.max(axis=1) >= doubt, counts.argmax(axis=1), usual)
    keys, values = _scalars(key), _scalars(value)
    return [(k, values[at]) for k, at in zip(keys, best, strict=True) if k is not _OTHER]


_OTHER: Any = object()
"""Stands for all values that are not listed."""


def _scalars(codec: Codec) -> list[Scalar | None]:
    """What each code stands for, as a spec writes it."""
    cells = cell_values(codec)
    assert cells is not None  # noqa: S101  checked before
    other = [_OTHER] * (codec.other_code is not None)
    return [*map(as_scalar, cells.to_pylist()), *other, *([None] * (codec.null_code is not None))]


def cell_values(codec: Codec) -> pa.Array | None:
    """The value of each cell of a column; None if some cell has several, or made-up ones."""
    if isinstance(codec, OrderedList | TextList):
        return codec.points
    return codec.cell_values() if isinstance(codec, IntervalCodec) else None


def _feature(name: str, codec: Codec) -> Feature:
    return Feature(name=name, size=codec.size, ordered=codec.ordered, source=Own(name))
