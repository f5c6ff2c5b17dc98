"""Planning: bounds on nodes, and budgets that add up exactly."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench.errors import SpecError
from privbench.methods.paper.network import _column_children
from privbench.methods.paper.plan import Operation, Task, choose_halves, node_bound, plan
from privbench.methods.paper.settings import PaperSettings, paper_settings

from ..made import COLUMNS, cap, database, facts, vault_of

shares = st.fractions(min_value=Fraction(1, 1000), max_value=Fraction(999, 1000))
any_settings = st.builds(
    PaperSettings,
    min_rows=st.integers(1, 20_000),
    trial_share=shares,
    trial_split_share=shares,
    dependence_threshold=st.sampled_from([Fraction(-1), Fraction(1, 2), Fraction(10**6)]),
)
PERSON = tuple(COLUMNS["person"])


@given(st.integers(0, 10**9), st.integers(1, 500), any_settings)
def test_a_block_has_at_least_a_node_and_more_for_more_rows_or_columns(
    rows: int, columns: int, given: PaperSettings
) -> None:
    bound = node_bound(rows, columns, given)
    assert bound >= 1
    assert bound >= 2 * columns - 1
    assert node_bound(rows + 1, columns, given) >= bound
    assert node_bound(rows, columns + 1, given) > bound


@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 30), any_settings)
def test_halves_of_a_block_have_room_in_its_bound(rows: int, left: int, right: int, given: PaperSettings) -> None:
    halves = node_bound(rows, left, given) + node_bound(rows, right, given)
    assert halves + 1 == node_bound(rows, left + right, given)


@settings(max_examples=60)
@given(
    st.integers(1, 4),
    st.sampled_from([0, 1, 2, 300, 10**6]),
    st.fractions(min_value=Fraction(1, 10**9), max_value=2),
    any_settings,
)
def test_trial_operation_and_rest_add_up_to_the_budget(
    columns: int, rows: int, amount: Fraction, given: PaperSettings
) -> None:
    vault = vault_of(database(5, visits=10))
    cap(vault, {"person": 1})
    scope = vault.ledger.root.sequential("node")
    task = Task(block=vault.whole("person", scope), columns=PERSON[:columns], rows=rows, budget=amount)
    decided = plan(vault, facts(), task, given, np.random.default_rng(1))
    trial = amount - decided.budget - decided.rest
    assert min(decided.budget, decided.rest, trial) >= 0
    assert scope.total <= trial
    assert (decided.operation is Operation.LEAF) == (columns == 1)
    if decided.operation is not Operation.LEAF:
        own = amount / node_bound(rows, columns, given)
        assert trial + decided.budget <= own
        assert trial in (0, own * given.trial_share)
    if decided.tried is not None:
        children = _column_children(task, decided.tried, decided.rest, given)
        assert sum(child.budget for child in children) == decided.rest
        assert sorted(c for child in children for c in child.columns) == sorted(task.columns)


@pytest.mark.parametrize(("threshold", "operation"), [(Fraction(-1), Operation.SUM), (Fraction(9), Operation.PRODUCT)])
def test_the_threshold_decides_between_rows_and_columns(threshold: Fraction, operation: Operation) -> None:
    vault = vault_of(database(5))
    cap(vault, {"person": 1})
    block = vault.whole("person", vault.ledger.root)
    task = Task(block=block, columns=PERSON, rows=300, budget=Fraction(2))
    high_budget = PaperSettings(min_rows=100, dependence_threshold=threshold)
    assert plan(vault, facts(), task, high_budget, np.random.default_rng(1)).operation is operation


def test_small_blocks_are_not_tried() -> None:
    vault = vault_of(database(5))
    cap(vault, {"person": 1})
    task = Task(block=vault.whole("person", vault.ledger.root), columns=PERSON, rows=199, budget=Fraction(2))
    decided = plan(vault, facts(), task, PaperSettings(min_rows=100), np.random.default_rng(1))
    assert (decided.operation, decided.tried) == (Operation.PRODUCT, None)
    assert vault.ledger.total == 0


@pytest.mark.parametrize("rows", [0, 1, 10**6])
def test_a_budget_too_small_for_noise_is_left_to_the_children(rows: int) -> None:
    vault = vault_of(database(5))
    cap(vault, {"person": 1})
    task = Task(block=vault.whole("person", vault.ledger.root), columns=PERSON, rows=rows, budget=Fraction(1, 10**9))
    decided = plan(vault, facts(), task, PaperSettings(min_rows=1), np.random.default_rng(1))
    assert (decided.operation, decided.budget, decided.rest) == (Operation.PRODUCT, Fraction(0), task.budget)
    halves = choose_halves(vault, facts(), task.block, PERSON, amount=decided.budget, rng=np.random.default_rng(1))
    assert sorted(halves[0] + halves[1]) == sorted(PERSON)
    assert vault.ledger.total == 0


def test_settings_of_a_spec_are_read_exactly_or_refused() -> None:
    assert paper_settings({"network_share": 0.8, "as_published": True}).network_share == Fraction(4, 5)
    for bad in ({"min_rows": 0}, {"min_rows": 1.5}, {"trial_share": 1}, {"beta": 3}, {"as_published": 1}):
        with pytest.raises(SpecError, match="method"):
            paper_settings(bad)
