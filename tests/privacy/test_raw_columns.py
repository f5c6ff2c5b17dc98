"""Columns without codes: counted by weight or by vote, charged before they are touched, recorded and replayed.

That an entity moves their counts by no more than is claimed, test_weighted_sensitivity.py shows for integers and
strings; here values of every type are tried, with NULLs and extremes.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.encode.codec import compile_codec
from privbench.encode.coded import CodedTable
from privbench.encode.grid import Grid
from privbench.errors import BudgetError
from privbench.methods.domains.columns import SearchedColumns
from privbench.privacy import features
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.facts import ColumnFacts
from privbench.privacy.features import Feature, whole_axis
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.queries import ENTITY_WEIGHT, Counts, FrequentValues, HeavyHitters, Histogram, Query
from privbench.privacy.thresholds import tail_probability
from privbench.privacy.vault import Vault
from privbench.schema.domain import Range
from privbench.schema.types import SqlType, parse_type

from .brute import by_value, checked_move

VALUES: dict[str, list[Any]] = {
    "INTEGER": [0, 1, -1, 5, 100, 2**31 - 1, -(2**31), None],
    "BIGINT": [0, 7, 2**63 - 1, -(2**63), None],
    "DOUBLE": [0.0, 0.5, -1e300, 1e-300, 0.01, float("nan"), float("inf"), None],
    "DECIMAL(38,2)": [Decimal("0.01"), Decimal(10) ** 35, Decimal(-5), None],
    "DATE": [date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), None],
    "TIMESTAMP": [datetime(2020, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 1), None],
    "VARCHAR": ["", "a", "b", "Ünï", "c\x00d", None],
}
TEXT, NUMBER = parse_type("VARCHAR"), parse_type("INTEGER")
ONE, HUNDREDTH, DELTA = Fraction(1), Fraction(1, 100), Fraction(1, 10**9)
PLACE = ("t", "a")
Rows = Sequence[tuple[int, Any]]
"""An entity and a value each."""


def engine_of(kind: SqlType, rows: Rows) -> NumpyEngine:
    """An engine on one column of one table."""
    entities = np.unique([e for e, _ in rows], return_inverse=True)[1].astype(np.int64)
    raw = {"t": {"a": pa.array([v for _, v in rows], kind.arrow)}}
    table = CodedTable(codes={}, keys={}, entities=entities)
    return NumpyEngine(one_part({"t": table}, raw), entropy=FixedEntropy(1))


def weights(feature: Feature) -> Histogram:
    return Histogram(table="t", axes=(whole_axis(feature),))


def grid_of(kind: SqlType) -> Grid:
    return Grid(type=kind, step=Fraction(1))


def queries_of(kind: SqlType) -> dict[str, Query]:
    """All that is asked of a column of a type."""
    holders = Histogram(table="t", axes=(whole_axis(features.present("a")),), counts=Counts.VOTES)
    if kind == TEXT:
        strings = {str(w): FrequentValues(table="t", column="a", without=w) for w in ((), ("a",), ("a", ""))}
        return {"holders": holders, **strings}
    grid = grid_of(kind)
    far = 10**12
    return {
        "holders": holders,
        "magnitudes": weights(features.magnitude("a", kind)),
        "steps": weights(features.step("a", kind)),
        "cells": weights(features.cell("a", grid, [-(10**6), -3, 0, 1, 50], 10**9)),
        "cells without": weights(features.cell("a", grid, [-3, 0], 3, (0, 2))),
        "heavy hitters": HeavyHitters(table="t", column="a", grid=grid, low=-far, high=far, false=1.0),
        "frequent ticks": FrequentValues(table="t", column="a", grid=grid, low=-3, high=3),
    }


def _rows() -> st.SearchStrategy[tuple[str, Rows]]:
    def of(name: str) -> st.SearchStrategy[tuple[str, Rows]]:
        row = st.tuples(st.integers(0, 3), st.sampled_from(VALUES[name]))
        return st.tuples(st.just(name), st.lists(row, min_size=1, max_size=9))

    return st.sampled_from(sorted(VALUES)).flatmap(of)


@given(_rows())
def test_an_entity_moves_each_count_by_what_is_claimed_whatever_its_values(case: tuple[str, Rows]) -> None:
    kind, rows = parse_type(case[0]), case[1]
    queries = queries_of(kind)
    whole = engine_of(kind, rows).count(list(queries.values()))
    for entity in {e for e, _ in rows}:
        rest = engine_of(kind, [row for row in rows if row[0] != entity]).count(list(queries.values()))
        for (name, query), more, less in zip(queries.items(), whole, rest, strict=True):
            checked_move(f"{case[0]} {name}", query, more, less)


@given(_rows())
def test_an_entity_has_one_vote_for_a_value_of_its_own(case: tuple[str, Rows]) -> None:
    kind, rows = parse_type(case[0]), case[1]
    votes = {name: q for name, q in queries_of(kind).items() if isinstance(q, FrequentValues)}
    for query in votes.values():

        def counts(some: Rows, query: FrequentValues = query) -> Counter[Any]:
            return Counter(by_value(engine_of(kind, some).count([query])[0]))  # type: ignore[arg-type]

        whole = counts(rows)
        for entity in {e for e, _ in rows}:
            own = [row for row in rows if row[0] == entity]
            rest = counts([row for row in rows if row[0] != entity])
            assert whole - rest == counts(own)
            assert whole == rest + counts(own)  # no other vote changes
            assert counts(own).total() <= 1


def test_an_entity_with_a_string_votes_and_one_without_does_not() -> None:
    rows = [(0, "a"), (0, "b"), (1, None), (2, ""), (2, None)]
    holders, strings = engine_of(TEXT, rows).count([queries_of(TEXT)["holders"], queries_of(TEXT)["()"]])
    assert np.asarray(holders).tolist() == [2]
    votes = by_value(strings)  # type: ignore[arg-type]
    assert (votes[""], sum(votes.values())) == (1, 2)


def test_the_bound_is_reached_however_many_rows_an_entity_has() -> None:
    magnitudes = queries_of(NUMBER)["magnitudes"]
    (few,) = engine_of(NUMBER, [(0, 5)] * 3 + [(1, 0)]).count([magnitudes])
    assert np.asarray(few).sum() == ENTITY_WEIGHT + 3 * (ENTITY_WEIGHT // 3)
    (many,) = engine_of(NUMBER, [(0, 5)] * (2 * ENTITY_WEIGHT)).count([magnitudes])
    assert np.asarray(many).sum() == 0  # rows that weigh nothing


def test_queries_count_what_they_say() -> None:
    engine = engine_of(NUMBER, [(0, 0), (1, 100), (2, 30), (3, 7), (4, None), (5, 105)])
    cells = weights(features.cell("a", grid_of(NUMBER), [0, 7, 31], 104, (30,)))
    ticks = HeavyHitters(table="t", column="a", grid=grid_of(NUMBER), low=1, high=104, false=1.0)
    known = queries_of(NUMBER)
    magnitudes, steps, found, heavy = engine.count([known["magnitudes"], known["steps"], cells, ticks])
    whole = np.asarray(magnitudes) // ENTITY_WEIGHT
    assert {at: n for at, n in enumerate(whole.tolist()) if n} == {32: 1, 35: 1, 37: 1, 39: 2}
    assert (np.asarray(steps) // ENTITY_WEIGHT).tolist() == [1, 1, 1, 1]  # 100: hundreds, 30: tens, 105: fives, 7: none
    assert (np.asarray(found) // ENTITY_WEIGHT).tolist() == [1, 1, 1]
    assert by_value(heavy) == dict.fromkeys((7, 30, 100), ENTITY_WEIGHT)  # type: ignore[arg-type]


# -- through the vault ---------------------------------------------------------------------------------------------


def vault_of(engine: NumpyEngine | None, *, ledger: Ledger | None = None, tape: Any = None, seed: int = 1) -> Vault:
    return Vault(engine, ledger=ledger or Ledger(ONE), entropy=FixedEntropy(seed), tape=tape)


def rho(amount: Fraction = ONE, *, thresholds: Fraction = DELTA) -> Ledger:
    return Ledger(amount, PrivacyMeasure.RHO_REPLACE, thresholds=thresholds)


def searched(vault: Vault, kind: SqlType = NUMBER) -> SearchedColumns:
    """The column as the search for domains asks about it."""
    return SearchedColumns(vault=vault, scope=vault.ledger.root, types={PLACE: kind})


def sevens(rows: int = 400, value: int = 7) -> NumpyEngine:
    return engine_of(NUMBER, [(at, value) for at in range(rows)])


WEIGHED: dict[str, tuple[Histogram | HeavyHitters, int]] = {
    "magnitudes": (weights(features.magnitude("a", NUMBER)), 65),
    "steps": (weights(features.step("a", NUMBER)), 4),
    "cells": (weights(features.cell("a", grid_of(NUMBER), (0, 50), 99)), 2),
    "heavy hitters": (HeavyHitters(table="t", column="a", grid=grid_of(NUMBER), low=0, high=9999, false=5.0), 10_000),
}


class _Untouchable(NumpyEngine):
    def __init__(self) -> None: ...

    def count(self, _queries: Any) -> Any:
        raise AssertionError("the rows were touched")


@pytest.mark.parametrize("name", WEIGHED)
def test_a_query_that_cannot_be_paid_touches_nothing(name: str) -> None:
    ledger = Ledger(Fraction(1, 10))
    with pytest.raises(BudgetError):
        vault_of(_Untouchable(), ledger=ledger).measure(WEIGHED[name][0], ONE, ledger.root)
    assert ledger.total == 0
    with pytest.raises(AssertionError, match="were touched"):
        vault_of(_Untouchable()).measure(WEIGHED[name][0], Fraction(1, 10), Ledger(ONE).root)


@pytest.mark.parametrize("name", WEIGHED)
def test_a_query_is_charged_for_an_entity_with_any_number_of_rows(name: str) -> None:
    query, draws = WEIGHED[name]
    vault = vault_of(sevens())
    vault.measure(query, Fraction(1, 4), vault.ledger.root)
    event = vault.ledger.to_json()["nodes"][-1]
    assert event["query"] == query.to_json()
    assert (event["sensitivity"], event["draws"]) == (f"{ENTITY_WEIGHT}/1", draws)
    assert Fraction(event["scale"]) == 4 * ENTITY_WEIGHT
    assert vault.ledger.total == Fraction(1, 4)


def test_what_is_asked_of_raw_columns_is_replayed_without_them() -> None:
    first = vault_of(sevens())
    asked = [(query, Fraction(1, 8)) for query, _ in WEIGHED.values()]
    before = first.measure_all(asked, first.ledger.root)
    second = vault_of(None, tape=first.answers, seed=9)
    after = second.measure_all(asked, second.ledger.root)
    assert all(np.array_equal(a.values, b.values) for a, b in zip(before, after, strict=True))
    assert before[-1].keys == after[-1].keys
    assert all(not answer.flags.writeable for answer in first.answers)
    with pytest.raises(RuntimeError, match="tape has fewer answers"):
        second.measure(*asked[0], second.ledger.root)


def test_noise_is_around_the_counts() -> None:
    columns = searched(vault_of(sevens(4000)))
    measured = columns.cells(PLACE, grid_of(NUMBER), starts=(0, 50), last=99, amount=Fraction(1, 2))
    assert measured.noise.scale == 2.0
    assert measured.counts.tolist() == pytest.approx([4000, 0], abs=60)
    assert len(set((measured.values % ENTITY_WEIGHT).tolist())) == 2  # noise in units, not in whole entities
    heavy = columns.heavy_hitters(PLACE, grid_of(NUMBER), low=0, high=9999, false=1e-9, amount=Fraction(1, 2))
    assert heavy.keys == (7,)


def test_values_neither_print_nor_leave() -> None:
    vault = vault_of(sevens(value=987654))
    for private in (vault, vault._engine):
        assert "987654" not in repr(private)
        with pytest.raises(TypeError, match="cannot be pickled"):
            private.__reduce__()


def test_with_a_delta_noise_is_gaussian() -> None:
    vault = vault_of(sevens(), ledger=rho())
    measured = vault.measure(WEIGHED["cells"][0], Fraction(1, 4), vault.ledger.root)
    assert vault.ledger.to_json()["nodes"][-1]["mechanism"] == "discrete-gaussian"
    assert measured.noise.gaussian
    assert measured.noise.scale == pytest.approx(2.0, abs=0.01)


def test_values_are_let_go_once_they_are_coded() -> None:
    engine = sevens()
    engine.encode({"t": {}})
    with pytest.raises(KeyError):
        engine.count([WEIGHED["cells"][0]])


# -- frequent values -----------------------------------------------------------------------------------------------


def strings(values: Sequence[str | None], *, ledger: Ledger | None = None, tape: Any = None) -> Vault:
    engine = engine_of(TEXT, list(enumerate(values))) if tape is None else None
    return vault_of(engine, ledger=ledger or rho(), tape=tape)


def test_what_frequent_strings_are_charged() -> None:
    vault = strings(["a"] * 5_000 + ["b"] * 3)
    columns = searched(vault, TEXT)
    measured = columns.frequent_strings(PLACE, amount=HUNDREDTH)
    event = vault.ledger.to_json()["nodes"][-1]
    assert event["mechanism"] == "frequent-values"
    assert event["query"] == {"kind": "heavy hitters", "table": "t", "column": "a", "counts": "votes"}
    assert (event["sensitivity"], event["draws"]) == ("1/1", 1)
    assert Fraction(event["delta"]) == DELTA / 2 == vault.ledger.delta
    assert tail_probability(Fraction(event["scale"]), event["threshold"]) <= DELTA / 2
    assert columns.least_count(HUNDREDTH) == event["threshold"] < 100
    assert (measured.keys, measured.unit) == (("a",), 1)
    assert measured.counts[0] == pytest.approx(5_000, abs=80)
    assert measured.noise.scale == pytest.approx(10, abs=0.1)


def test_what_is_there_does_not_show_in_the_ledger() -> None:
    """Neither the number of different values nor that of rows is anywhere in an event."""
    few, many = (strings(values) for values in (["a"] * 500, [str(i) for i in range(500)]))
    for vault in (few, many):
        searched(vault, TEXT).frequent_strings(PLACE, amount=HUNDREDTH)
    assert few.ledger.to_json() == many.ledger.to_json()


def test_no_more_delta_than_there_is() -> None:
    vault = strings(["a"] * 500)
    columns = searched(vault, TEXT)
    for _ in range(2):
        columns.frequent_strings(PLACE, amount=HUNDREDTH)
    before = vault.ledger.to_json()
    with pytest.raises(BudgetError, match="would spend delta"):
        columns.frequent_strings(PLACE, amount=HUNDREDTH)
    assert (vault.ledger.to_json(), len(vault.answers)) == (before, 2)
    with pytest.raises(BudgetError, match="rho"):
        searched(strings(["a"] * 500), TEXT).frequent_strings(PLACE, amount=Fraction(2))


def test_only_frequent_values_cost_delta_in_a_batch() -> None:
    vault = strings(["a"] * 500)
    requests = [(queries_of(TEXT)[name], HUNDREDTH) for name in ("holders", "()")]
    vault.measure_all(requests, vault.ledger.root, delta=DELTA / 2)  # type: ignore[arg-type]
    assert vault.ledger.delta == DELTA / 2


def test_heavy_hitters_with_a_delta() -> None:
    values = [7] * 4_000 + [9] * 900 + list(range(100, 600))
    columns = searched(vault_of(engine_of(NUMBER, list(enumerate(values))), ledger=rho()))
    heavy = columns.heavy_hitters(PLACE, grid_of(NUMBER), low=0, high=10**6, false=20.0, amount=HUNDREDTH)
    assert heavy.keys == (7, 9)  # and no other, in a million
    assert heavy.counts.tolist() == pytest.approx([4_000, 900], abs=80)
    assert not searched(vault_of(sevens(), ledger=rho(thresholds=Fraction(0)))).finds_heavy_hitters


def test_frequent_strings_are_replayed() -> None:
    def told(vault: Vault) -> list[tuple[tuple[Any, ...], list[int]]]:
        columns = searched(vault, TEXT)
        measured = (
            columns.holders([PLACE], HUNDREDTH)[PLACE],
            columns.frequent_strings(PLACE, amount=HUNDREDTH),
            columns.frequent_strings(PLACE, without=("x",), amount=HUNDREDTH),
        )
        return [(m.keys, m.values.tolist()) for m in measured]

    first = strings(["x"] * 300 + ["", "é", 'q"'] * 200 + [None])
    before = told(first)
    assert [keys for keys, _ in before[1:]] == [("", 'q"', "x", "é"), ("", 'q"', "é")]
    assert not first.answers[1].flags.writeable
    assert told(strings((), tape=first.answers)) == before


def test_what_is_not_unicode_is_no_string() -> None:
    raw = pa.array([b"\xff\xfe"] * 500 + [b"ok"] * 500, pa.binary())
    broken = pa.Array.from_buffers(pa.string(), 1000, raw.buffers())
    table = CodedTable(codes={}, keys={}, entities=np.arange(1000))
    engine = NumpyEngine(one_part({"t": table}, {"t": {"a": broken}}), entropy=FixedEntropy(1))
    assert searched(vault_of(engine, ledger=rho()), TEXT).frequent_strings(PLACE, amount=HUNDREDTH).keys == ("ok",)


@pytest.mark.parametrize(
    "values", [[None] * 50, [str(i) for i in range(2_000)], []], ids=["NULLs", "all differ", "none"]
)
def test_nothing_at_all(values: list[str | None]) -> None:
    assert searched(strings(values), TEXT).frequent_strings(PLACE, amount=HUNDREDTH).keys == ()


@pytest.mark.slow
def test_the_audit_of_a_string_that_one_entity_alone_has() -> None:
    """It comes out no more often than its delta, here a large one; a lower threshold would be seen."""
    delta, tries, released = Fraction(1, 20), 400, 0
    entropy = FixedEntropy(5)
    engine = engine_of(TEXT, [(0, "own"), (0, "own"), (1, "a"), (2, "a"), (3, None)])
    for _ in range(tries):
        vault = Vault(engine, ledger=rho(thresholds=2 * delta), entropy=entropy)
        released += "own" in searched(vault, TEXT).frequent_strings(PLACE, amount=Fraction(1, 20)).keys
    expected = tries * float(delta)
    assert expected / 3 < released < expected + 4 * expected**0.5


def test_what_was_counted_before_columns_had_codes_is_counted_again() -> None:
    codes = {"a": np.zeros(3, np.uint8), "b": np.array([0, 1, 1], np.uint8)}
    table = CodedTable(codes=codes, keys={}, entities=np.arange(3))
    engine = NumpyEngine(
        one_part({"t": table}, {"t": {"a": pa.array([0, 1, 1], NUMBER.arrow)}}), entropy=FixedEntropy(1)
    )
    axes = tuple(whole_axis(features.own(name, ColumnFacts(size=2, ordered=True))) for name in "ab")
    pair = Histogram(table="t", axes=axes)
    before = np.asarray(engine.count([pair])[0]) // ENTITY_WEIGHT
    codec = compile_codec("t.a", NUMBER, nullable=False, domain=Range(range=(0, 1)))
    engine.encode({"t": {"a": codec, "b": codec}})
    after = np.asarray(engine.count([pair])[0]) // ENTITY_WEIGHT
    assert before.tolist() == [[1, 2], [0, 0]]
    assert after.tolist() == [[1, 0], [0, 2]]
