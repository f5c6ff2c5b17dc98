"""An engine opened, as no method may: its only part, and the codes and bins of features there."""

from typing import Any

from privbench.encode.coded import CodedDatabase
from privbench.privacy.exact import Codes
from privbench.privacy.features import Axis, Feature, whole_axis
from privbench.privacy.part_counter import Cells, PartCounter, Weighed


def counter_of(engine: Any) -> PartCounter:
    """The counter of an engine's only part, told what all parts know."""
    [counter] = engine._parts._counters
    counter.tallies((), engine._common)
    assert isinstance(counter, PartCounter)
    return counter


def tables_of(engine: Any) -> CodedDatabase:
    """The coded tables of an engine's only part."""
    return counter_of(engine).part.tables


def bins_of(engine: Any, table: str, axis: Axis) -> Codes:
    """The bins of all rows of a table."""
    engine._learn_common([Cells(Weighed(table, 1), (axis,))])
    return counter_of(engine)._features.bins(table, axis)


def codes_of(engine: Any, table: str, feature: Feature) -> Codes:
    """The codes of all rows of a table."""
    return bins_of(engine, table, whole_axis(feature))
