"""Values are counted batch by batch as if they came at once."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.encode import counted as module
from privbench.encode.counted import NullCounter, ValueCounter, count_values, quantiles
from privbench.encode.suggest import suggest_domain
from privbench.schema.types import parse_type

BATCHES = st.lists(st.lists(st.none() | st.integers(0, 9), max_size=12), max_size=8)


@given(BATCHES)
def test_batches_count_like_the_whole(batches: list[list[int | None]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LEAST_MERGED", 3)
        counter = ValueCounter(pa.int32())
        for batch in batches:
            counter.add(pa.array(batch, pa.int32()))
        found = counter.counted()
    values = [value for batch in batches for value in batch]
    there = [value for value in values if value is not None]
    assert found.values.to_pylist() == list(dict.fromkeys(there))
    assert found.counts.tolist() == [there.count(value) for value in found.values.to_pylist()]
    assert (found.rows, found.known, found.has_nulls) == (len(values), len(there), len(there) < len(values))


@pytest.mark.parametrize(
    "values",
    [["b", None, "a", "b"], [2.5, float("nan"), 2.5, None], [True, False, None, True]],
    ids=["text", "float", "boolean"],
)
def test_other_types_are_counted_too(values: list[object]) -> None:
    found = count_values(pa.chunked_array([pa.array(values[:2], pa.array(values).type), pa.array(values[2:])]))
    assert found.known == 3
    assert len(found.values) == 2


def test_nulls_alone() -> None:
    counter = NullCounter(pa.int32())
    counter.add(pa.array([1, None, 3], pa.int32()))
    assert (counter.counted().rows, counter.counted().has_nulls) == (3, True)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40), st.sampled_from([0.001, 0.25, 0.6, 0.999]))
def test_quantiles_are_those_of_the_rows(rows: list[float], share: float) -> None:
    values, counts = np.unique(np.array(rows), return_counts=True)
    expected = np.quantile(rows, share, method="lower" if share <= 0.5 else "higher")
    assert quantiles(values, counts, (share,)) == [expected]


@pytest.mark.parametrize("sql", ["INTEGER", "DOUBLE", "DECIMAL(12,2)", "DATE", "VARCHAR"])
def test_a_domain_does_not_depend_on_batches(sql: str) -> None:
    kind = parse_type(sql)
    numbers = pa.array((np.random.default_rng(1).gamma(2, 300, 5_000)).astype(np.int32))
    column = numbers.cast(kind.arrow) if sql != "VARCHAR" else pc.cast(pc.divide(numbers, 50), pa.string())
    counter = ValueCounter(kind.arrow)
    for start in range(0, len(column), 700):
        counter.add(column.slice(start, 700))
    whole = suggest_domain("t.c", kind, pa.chunked_array([column]), unique=False)
    assert suggest_domain("t.c", kind, counter.counted(), unique=False) == whole
