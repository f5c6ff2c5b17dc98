"""Key values to positions and entities: composite, NULL, missing, repeated, and of types that differ but compare."""

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.encode import keys as keys_module
from privbench.encode.keys import MISSING, NULL, KeyIndex, entities_by_owner, own_entities, owners_of_lookup
from privbench.errors import DataError


def column(values: list[Any], of: pa.DataType | None = None) -> pa.ChunkedArray:
    """A column in two chunks."""
    half = len(values) // 2
    whole = pa.array(values, of)
    return pa.chunked_array([whole[:half], whole[half:]], type=whole.type)


def find(keys: list[pa.ChunkedArray], wanted: list[pa.ChunkedArray], **options: bool) -> list[int]:
    found: list[int] = KeyIndex("t(id)", keys, **options).find(wanted).tolist()
    return found


# -- one column ----------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=30), st.data())
def test_each_key_finds_its_row_and_others_find_none(keys: list[int], data: st.DataObject) -> None:
    wanted = data.draw(st.lists(st.one_of(st.none(), st.integers(-9, 9), st.sampled_from(keys or [0]))))
    expected = [NULL if w is None else keys.index(w) if w in keys else MISSING for w in wanted]
    assert find([column(keys, pa.int64())], [column(wanted, pa.int64())]) == expected


@pytest.mark.parametrize(
    ("keys", "wanted"),
    [
        (column([300, 5], pa.int64()), column([5, 300, 7], pa.int16())),
        (column([100, 5], pa.uint8()), column([5, 100, -7], pa.int8())),
        (column(["300", "5"]), column([5, 300, 7], pa.int32())),
        (column([300, 5], pa.int32()), column(["5", "300", "x"])),
        (column([Decimal("300"), Decimal("5")], pa.decimal128(38, 0)), column([5, 300, 7])),
        (column([Decimal("300.00"), Decimal("5.00")], pa.decimal128(9, 2)), column([5, 300, 7])),
        (
            column([Decimal("0.50"), Decimal("5.05")], pa.decimal128(9, 2)),
            column([Decimal("5.050"), Decimal("0.500"), Decimal("5.005")], pa.decimal128(9, 3)),
        ),
        (column([300, 5]), column([5.0, 300.0, 7.5], pa.float64())),
        (column([1.5, -0.25], pa.float64()), column([-0.25, 1.5, 15.0], pa.float32())),
        (column(["b", ""]), column(["", "b", "B"], pa.large_string())),
    ],
    ids=["widths", "signs", "text-integer", "integer-text", "huge", "scale", "scales", "float", "floats", "large"],
)
def test_types_that_compare_in_sql_compare_here(keys: pa.ChunkedArray, wanted: pa.ChunkedArray) -> None:
    assert find([keys], [wanted]) == [1, 0, MISSING]


@pytest.mark.parametrize("number", [10, 100, 1000, 0], ids=str)
def test_zeros_of_whole_numbers_stay(number: int) -> None:
    keys = column([Decimal(number), Decimal(1)], pa.decimal128(9, 2))
    assert find([keys], [column([number, 1])]) == [0, 1]


def test_an_empty_table_has_no_rows_to_name() -> None:
    assert find([column([], pa.int64())], [column([1, None])]) == [MISSING, NULL]
    assert find([column([1])], [column([], pa.int64())]) == []


# -- several columns -----------------------------------------------------------------------------------------------

PAIRS = [column([1, 1, 2]), column(["a", "b", "a"])]


def test_a_composite_key_must_agree_in_every_part() -> None:
    wanted = [column([2, 1, 2, 9, 1]), column(["a", "b", "b", "a", "z"])]
    assert find(PAIRS, wanted) == [2, 1, MISSING, MISSING, MISSING]


def test_a_composite_key_with_any_null_is_null() -> None:
    wanted = [column([1, None, None, 7]), column([None, "a", None, None])]
    assert find(PAIRS, wanted) == [NULL] * 4


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)), unique=True, min_size=1))
def test_composite_keys_find_their_rows(keys: list[tuple[int, int, int]]) -> None:
    every = [(a, b, c) for a in range(4) for b in range(4) for c in range(4)]
    columns = [column(list(part)) for part in zip(*keys, strict=True)]
    wanted = [column(list(part)) for part in zip(*every, strict=True)]
    assert find(columns, wanted) == [keys.index(k) if k in keys else MISSING for k in every]


# -- what is wrong with the data -----------------------------------------------------------------------------------


def test_repeated_keys_are_refused_with_their_number_but_not_their_value() -> None:
    with pytest.raises(DataError, match=r"t\(id\): 2 rows repeat") as caught:
        find([column([77, 77, 77, 5])], [])
    assert "77" not in str(caught.value)
    with pytest.raises(DataError, match="1 rows repeat"):
        find([column([1, 1]), column(["x", "x"])], [])


def test_null_keys_are_refused_unless_the_key_may_be_null() -> None:
    with pytest.raises(DataError, match="1 rows have a NULL"):
        find([column([1, None])], [])
    assert find([column([1, None, None])], [column([None, 1])], nullable=True) == [NULL, 0]
    assert find([column([None, 2, 1])], [column([1, 2])], nullable=True) == [2, 1]


NARROW = (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32())


@pytest.mark.parametrize("narrow", NARROW, ids=str)
@pytest.mark.parametrize("first", [1, -5, 200, -(2**31)], ids=str)
@pytest.mark.parametrize("gaps", [False, True])
def test_keys_of_a_narrow_type_never_wrap_round_to_rows_that_only_wider_ones_reach(
    narrow: pa.DataType, first: int, gaps: bool
) -> None:
    keys = np.arange(first, first + 70_000)
    keys = np.delete(keys, 3) if gaps else keys
    ends = np.iinfo(narrow.to_pandas_dtype())
    wanted = [
        n for n in (ends.min, ends.min + 1, -129, -5, -1, 0, 1, 4, 127, 255, ends.max) if ends.min <= n <= ends.max
    ]
    position = {key: row for row, key in enumerate(keys.tolist())}
    found = KeyIndex("t(id)", [pa.array(keys)]).find([pa.array([*wanted, None], narrow)])
    assert found.tolist() == [*(position.get(number, -2) for number in wanted), -1]


def test_keys_of_many_parts_are_found() -> None:
    wide = [column(list(range(3000))) for _ in range(6)]
    assert find(wide, wide) == list(range(3000))


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=4), st.integers(0, 30), st.integers(-(2**63), 2**63 - 31))
def test_keys_that_count_up_are_found(others: list[int], rows: int, first: int) -> None:
    wanted = [*range(first, first + rows), *others, None]
    expected = [*range(rows), *(o - first if first <= o < first + rows else MISSING for o in others), NULL]
    assert KeyIndex.counting("t(id)", first, rows).find([column(wanted, pa.int64())]).tolist() == expected
    texts = column([None if w is None else str(w) for w in wanted], pa.string())
    assert KeyIndex.counting("t(id)", first, rows).find([texts]).tolist() == expected


@given(st.lists(st.text(max_size=100), unique=True, max_size=30), st.lists(st.text(max_size=3)))
def test_texts_are_found(keys: list[str], others: list[str]) -> None:
    wanted = keys + others
    expected = [keys.index(w) if w in keys else MISSING for w in wanted]
    assert find([column(keys, pa.string())], [column(wanted, pa.string())]) == expected


def test_keys_with_the_same_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of the table get another hash, and one that is not there is compared."""
    real = keys_module.hash_rows

    def rough(columns: list[pa.Array], *, salt: int) -> np.ndarray:
        return real(columns, salt=salt) % np.uint64(7 if salt < 5 else 2**20)

    monkeypatch.setattr(keys_module, "hash_rows", rough)
    keys = [f"{n}" for n in range(20)]
    assert find([column(keys)], [column([*keys, *map(str, range(20, 4000))])]) == [*range(20)] + [MISSING] * 3980
    with pytest.raises(DataError, match="1 rows repeat"):
        find([column([*keys, "7"])], [])


# -- entities ------------------------------------------------------------------------------------------------------


def test_entities_follow_owners_and_rows_without_one_are_their_own() -> None:
    people = own_entities(3)
    visits, free = entities_by_owner(np.array([2, NULL, 0, 2, MISSING]), people, next_entity=3)
    assert visits.tolist() == [2, 3, 0, 2, 4]
    notes, free = entities_by_owner(np.array([1, 0, NULL]), visits, next_entity=free)
    assert notes.tolist() == [3, 2, 5]
    assert free == 6


def test_without_owners_every_row_is_an_entity() -> None:
    entities, free = entities_by_owner(np.array([NULL, NULL]), own_entities(0), next_entity=0)
    assert (entities.tolist(), free) == ([0, 1], 2)
    assert entities_by_owner(np.array([], np.int64), own_entities(2), next_entity=2)[1] == 2


@given(st.lists(st.integers(-2, 4), max_size=20))
def test_two_rows_share_an_entity_exactly_if_they_share_an_owner(owners: list[int]) -> None:
    entities, free = entities_by_owner(np.array(owners, np.int64), np.array([7, 5, 5, 8, 9]), next_entity=10)
    same = {0: 7, 1: 5, 2: 5, 3: 8, 4: 9}
    assert [e for e, o in zip(entities, owners, strict=True) if o >= 0] == [same[o] for o in owners if o >= 0]
    alone = [int(e) for e, o in zip(entities, owners, strict=True) if o < 0]
    assert alone == list(range(10, free))


def test_a_lookup_row_belongs_to_the_first_row_that_names_it() -> None:
    assert owners_of_lookup(np.array([1, NULL, 1, 0, MISSING]), 3).tolist() == [3, 0, NULL]
    assert owners_of_lookup(np.array([], np.int64), 2).tolist() == [NULL, NULL]
