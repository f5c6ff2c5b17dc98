"""Which codes of two columns can stand in one row that keeps the rules, by the cells of their codecs alone.

Two cells can, if the smallest value of one and the largest of the other do, by DuckDB's word. The outer cells of ranges
and bins have no end: what lies beyond was put there. NULL keeps any rule.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.codec import Codec
from privbench.encode.interval import IntervalCodec
from privbench.encode.listed import OrderedList
from privbench.rules.orders import Order
from privbench.rules.row_rules import RowRules
from privbench.schema.expression import ColumnName

_PAIRS = 2**20
"""About how many pairs of codes are asked for at once."""
Possible = NDArray[np.bool_]


def possible_codes(order: Order, low: Codec, high: Codec) -> Possible | None:
    """Which codes go together, (codes of low, codes of high); None where the cells of a column are not known values."""
    least, most = _ends(low, last=False), _ends(high, last=True)
    if least is None or most is None:
        return None
    types = {order.low: least.type, order.high: most.type}
    step = max(1, _PAIRS // high.size)
    with RowRules([order.comparison], types, where=str(order.comparison)) as asked:
        broken = [
            asked.broken(_crossed(order, least.slice(start, step), most))[0] for start in range(0, low.size, step)
        ]
    possible: Possible = ~np.concatenate(broken).reshape(low.size, high.size)
    return possible


def _crossed(order: Order, least: pa.Array, most: pa.Array) -> dict[ColumnName, pa.Array]:
    """Every pair of both."""
    first = np.repeat(np.arange(len(least)), len(most))
    second = np.tile(np.arange(len(most)), len(least))
    return {order.low: least.take(pa.array(first)), order.high: most.take(pa.array(second))}


def _ends(codec: Codec, *, last: bool) -> pa.Array | None:
    """The first or the last value of each code; NULL for NULL and where a cell has no such end."""
    if isinstance(codec, OrderedList):
        cells = codec.points
    elif isinstance(codec, IntervalCodec):
        ticks = codec.last if last else codec.first
        open_at = len(ticks) - 1 if last else 0
        cells = codec.grid.values(ticks, nulls=np.arange(len(ticks)) == open_at)
    else:
        return None
    return pa.concat_arrays([cells, pa.nulls(codec.size - len(cells), cells.type)])
