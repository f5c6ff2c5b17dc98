"""Found domains: what a person would declare where the budget allows, valid and harmless where it does not."""

from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.encode.codec import compile_codec
from privbench.methods.domains.find import Found, find_domains
from privbench.privacy.ledger import Ledger
from privbench.schema.domain import Bins, Range
from privbench.schema.types import parse_type

from .made import PLACE, costs, replaying, vault_on

RICH = Fraction(2)
"""Enough for some thousand entities to be seen clearly."""
TYPES = [
    "TINYINT",
    "SMALLINT",
    "BIGINT",
    "UINTEGER",
    "REAL",
    "DOUBLE",
    "DECIMAL(4,2)",
    "DECIMAL(18,0)",
    "DECIMAL(38,0)",
    "DECIMAL(38,30)",
    "DATE",
    "TIME",
    "TIMESTAMP",
    "TIMESTAMPTZ",
]
ODD: dict[str, list[Any]] = {
    "TINYINT": [-128, 127, 0],
    "SMALLINT": [-(2**15), 2**15 - 1],
    "BIGINT": [-(2**63), 2**63 - 1, 0, 1],
    "UINTEGER": [0, 2**32 - 1],
    "REAL": [0.0, float("nan"), float("inf"), float("-inf"), 3e38, -1e-40],
    "DOUBLE": [0.0, float("nan"), float("inf"), float("-inf"), 1.7e308, -5e-324],
    "DECIMAL(4,2)": [Decimal("99.99"), Decimal("-99.99")],
    "DECIMAL(18,0)": [Decimal(10**18 - 1), Decimal(0)],
    "DECIMAL(38,0)": [Decimal(10**38 - 1), Decimal(-(10**37))],
    "DECIMAL(38,30)": [Decimal("1E-30"), Decimal("9999999.5")],
    "DATE": [date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1)],
    "TIME": [time(0, 0), time(23, 59, 59, 999_999)],
    "TIMESTAMP": [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999_999)],
    "TIMESTAMPTZ": [datetime(1969, 12, 31, 23, 59), datetime(2200, 1, 1)],
}


def found(name: str, values: Sequence[Any], *, budget: Fraction = RICH, seed: int = 0) -> Found:
    """The domain of one column whose rows are entities of their own."""
    kind = parse_type(name)
    vault = vault_on(kind, {"a": values}, ledger=Ledger(budget), seed=seed)
    answer = find_domains(vault, {PLACE: kind}, modelled=1)[PLACE]
    assert vault.ledger.total <= budget * 3 / 10
    compile_codec("t.a", kind, nullable=True, domain=answer.domain)
    return answer


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("budget", [Fraction(2), Fraction(1, 100), Fraction(1, 10**7)])
@pytest.mark.parametrize("rows", [0, 1, 50])
def test_any_column_gets_a_valid_domain(name: str, budget: Fraction, rows: int) -> None:
    kind = parse_type(name)
    for values in ([None] * rows, ODD[name] * rows):
        domain = found(name, values, budget=budget).domain
        codec = compile_codec("t.a", kind, nullable=True, domain=domain)
        codes = codec.encode(pa.array(values, kind.arrow))
        assert codes.max(initial=0) < codec.size
        assert len(codec.decode(np.arange(codec.size, dtype=np.uint16), np.random.default_rng(0), first_row=0))


@given(st.sampled_from(TYPES), st.integers(0, 30), st.data())
@settings(max_examples=60, deadline=None)
def test_whatever_the_noise_is(name: str, seed: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.sampled_from(ODD[name]), max_size=5)) * 40
    assert found(name, values, seed=seed, budget=Fraction(100)).paid


def test_narrow_integers_get_a_cell_each() -> None:
    ages = np.random.default_rng(0).integers(17, 91, 20_000).tolist()
    assert found("INTEGER", ages).domain == Range(range=(0, 127))
    years = np.random.default_rng(0).integers(1900, 2010, 20_000).tolist()
    domain = found("SMALLINT", years).domain
    assert isinstance(domain, Range)
    low, high = domain.range
    assert 1850 <= int(low) <= 1900
    assert 2009 <= int(high) < 2048


def test_what_is_spread_too_thinly_to_be_seen_is_not_piled_up_at_an_edge() -> None:
    """A core that shows and wide flanks that do not: no value gets more than it has."""
    rng = np.random.default_rng(3)
    zones = np.concatenate([rng.integers(3_260, 3_600, 9_000), rng.integers(3_093, 3_850, 2_000)])
    for seed in range(5):
        domain = found("SMALLINT", zones.tolist(), budget=Fraction(1, 20), seed=seed).domain
        codec = compile_codec("t.a", parse_type("SMALLINT"), nullable=False, domain=domain)
        codes = codec.encode(pa.array(zones, pa.int16()))
        back = codec.decode(codes.astype(np.uint16), np.random.default_rng(0), first_row=0).to_numpy()
        assert np.bincount(back).max() < 0.02 * len(zones)


def test_heavy_hitters_are_found_and_the_rest_is_cut_by_depth() -> None:
    rng = np.random.default_rng(1)
    gains = [0] * 18_000 + [15_024] * 1_500 + rng.integers(2_000, 40_000, 3_000).tolist()
    domain = found("INTEGER", gains).domain
    assert isinstance(domain, Bins)
    assert {0, 15_024} <= set(domain.heavy_hitters)
    inner = [int(e) for e in domain.bins if 2_000 <= int(e) <= 40_000]
    assert len(inner) >= 8
    assert int(domain.bins[-1]) >= 2**19  # four powers of two beyond


def test_mostly_zero_keeps_room_for_the_rest() -> None:
    domain = found("INTEGER", [0] * 5_000 + [70_000] * 3, budget=Fraction(1, 10)).domain
    assert isinstance(domain, Bins)
    codec = compile_codec("t.a", parse_type("INTEGER"), nullable=False, domain=domain)
    zero, large = codec.encode(pa.array([0, 70_000], pa.int32())).tolist()
    assert codec.labels()[zero] == "0"
    assert codec.labels()[large] == "65536 .. 131071"


def test_steps_are_found() -> None:
    rng = np.random.default_rng(2)
    days = [datetime(2020, 1, 1) + timedelta(days=int(d)) for d in rng.integers(0, 700, 20_000)]
    assert found("TIMESTAMP", days).domain.model_dump()["step"] == "1d"
    prices = (rng.integers(100, 99_999, 20_000) / 100).tolist()
    assert found("DOUBLE", prices).domain.model_dump()["step"] == 0.01
    salaries = (rng.integers(200, 2_000, 20_000) * 100).tolist()
    assert found("INTEGER", salaries).domain.model_dump()["step"] == 100
    odd = (rng.integers(200, 2_000, 20_000) * 100 + rng.integers(0, 2, 20_000)).tolist()
    assert found("INTEGER", odd).domain.model_dump()["step"] is None
    noise = rng.normal(0, 1, 20_000).tolist()
    step = found("DOUBLE", noise).domain.model_dump()["step"]
    assert step <= 0.001


def test_dates_are_looked_for_where_they_are() -> None:
    days = [date(2019, 3, 1) + timedelta(days=d % 600) for d in range(20_000)]
    domain = found("DATE", days).domain
    assert isinstance(domain, Range)
    first, last = (date.fromisoformat(str(end)) for end in domain.range)
    assert date(2018, 3, 1) <= first <= date(2019, 3, 1)
    assert date(2020, 10, 20) <= last <= date(2021, 10, 20)


def test_what_cannot_be_seen_is_not_made_up() -> None:
    """All NULL, or too little budget: cells from the type alone, the same for all data."""
    for budget in (Fraction(2), Fraction(1, 10**3)):
        assert found("DATE", [None] * 100, budget=budget).domain == found("DATE", [], budget=budget).domain
    unpaid = found("INTEGER", [5] * 1000, budget=Fraction(1, 10**7))
    assert not unpaid.paid
    assert unpaid.domain == found("INTEGER", [10**6] * 1000, budget=Fraction(1, 10**7)).domain


@pytest.mark.parametrize("seed", range(4))
def test_a_second_look_finds_what_the_first_does_not(seed: int) -> None:
    """Noise of 10 scales per 1000 entities at first: years are seen to be between 1024 and 2047, not anywhere."""
    years = found("INTEGER", [1984, 1985, 1986, 1987] * 250, budget=Fraction(6, 100), seed=seed).domain
    assert years == Range(range=(1024, 2047))
    schooling = found("DOUBLE", [9.0, 10.5, 11.0, 12.5] * 250, budget=Fraction(6, 100), seed=seed).domain
    assert schooling == Range(range=(0.0, 16.0), step=0.1)


@pytest.mark.parametrize("name", ["INTEGER", "DOUBLE", "DECIMAL(9,2)", "DATE"])
def test_what_only_a_second_look_shows_is_coarse_but_not_far_off(name: str) -> None:
    """Decoded again, values stay within a third of their size, days within three years."""
    kind = parse_type(name)
    values: list[Any] = [2**power * 1.5 for power in range(10, 16)] * 400
    if name != "DOUBLE":
        values = [Decimal(int(v)) if kind.scale else int(v) for v in values]
    if name == "DATE":
        values = [date(2005, 1, 1) + timedelta(days=v % 1000) for v in range(1400)]
    domain = found(name, values, budget=Fraction(4, 100), seed=1).domain
    assert domain != found(name, [], budget=Fraction(4, 100)).domain
    codec = compile_codec("t.a", kind, nullable=True, domain=domain)
    codes = codec.encode(pa.array(values, kind.arrow))
    back = codec.decode(codes, np.random.default_rng(0), first_row=0).to_pylist()
    if name == "DATE":
        assert max(abs((b - v).days) for b, v in zip(back, values, strict=True)) < 3 * 365
    else:
        near = [abs(float(b) - float(v)) <= float(v) / 3 for b, v in zip(back, values, strict=True)]
        assert np.mean(near) > 0.8


def test_floats_near_each_other_are_narrow_unless_noise_tells_that_they_lie_off_the_step() -> None:
    unclear = found("DOUBLE", [9.0, 10.5, 11.0, 12.5] * 250, budget=Fraction(3, 10), seed=2).domain
    assert unclear == Range(range=(0.0, 16.0), step=0.1)
    rng = np.random.default_rng(0)
    clear = found("DOUBLE", rng.uniform(8, 15.9, 4000).tolist(), budget=Fraction(50)).domain
    assert isinstance(clear, Bins)


@pytest.mark.parametrize("copies", [1, 40])
def test_an_entity_counts_once_however_many_rows_it_has(copies: int) -> None:
    """One entity with most of the rows does not get its value into the domain."""
    rng = np.random.default_rng(3)
    kind = parse_type("BIGINT")
    values = rng.integers(0, 60, 4_000).tolist() + [2**50 + 12_345] * (1_000 * copies)
    entities = np.concatenate([np.arange(4_000), np.full(1_000 * copies, 4_000)])
    vault = vault_on(kind, {"a": values}, ledger=Ledger(RICH), seed=1, entities=entities)
    assert find_domains(vault, {PLACE: kind}, modelled=1)[PLACE].domain == Range(range=(0, 127))


def test_what_narrow_columns_leave_over_goes_to_wide_ones() -> None:
    rng = np.random.default_rng(4)
    kind = parse_type("INTEGER")
    wide, narrow = rng.integers(0, 10**6, 5_000).tolist(), rng.integers(0, 9, 5_000).tolist()

    def spent(*columns: list[int]) -> Fraction:
        named = {str(at): column for at, column in enumerate(columns)}
        vault = vault_on(kind, named, ledger=Ledger(Fraction(10)))
        find_domains(vault, {("t", name): kind for name in named}, modelled=10)
        return sum(costs(vault, "heavy hitters", "0"), Fraction(0))

    assert spent(wide, narrow) > spent(wide, wide) > 0
    assert spent(narrow, narrow) == 0


def test_the_search_is_a_function_of_the_noisy_answers() -> None:
    kind = parse_type("INTEGER")
    values = np.random.default_rng(5).integers(0, 10**6, 5_000).tolist()
    first = vault_on(kind, {"a": values}, ledger=Ledger(RICH))
    domain = find_domains(first, {PLACE: kind}, modelled=1)[PLACE].domain
    second = replaying(first)
    assert find_domains(second, {PLACE: kind}, modelled=1)[PLACE].domain == domain
    assert len(second.answers) == len(first.answers) == 5
    assert second.ledger.to_json() == first.ledger.to_json()
