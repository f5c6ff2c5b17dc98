"""The bars of the budget: what a ledger counts, and queries in English."""

from fractions import Fraction
from typing import Any

import pytest

from privbench.privacy.describe import describe
from privbench.report.ledger import budget_bars, ledger_section

from ..privacy.trees import good, good_rho


def test_the_picture_counts_what_the_ledger_counts() -> None:
    page = ledger_section(good_rho())
    assert "ε = 3.2, δ = 1e-09" in page
    assert "It follows from ρ = 0.1361 (zCDP)" in page
    assert '<th class="n">ρ</th>' in page
    assert "in parallel" not in page
    pure = ledger_section(good())
    assert '<th class="n">ε</th>' in pure
    assert "δ" not in pure
    assert "ρ" not in pure


def test_bars_add_up_to_rho() -> None:
    root = budget_bars(good_rho())
    assert root.cost == sum(bar.cost for bar in root.below) > 0


LINK = {"table": "visit", "columns": ["person"], "target": "person"}


def column(name: str) -> dict[str, Any]:
    return {"kind": "column", "column": name}


def axis(feature: dict[str, Any]) -> dict[str, Any]:
    return {"bins": 4, "feature": feature}


QUERIES = {
    "number of rows": {"kind": "histogram", "table": "person", "counts": "rows", "axes": []},
    "weights by cost and the owner's age": {
        "kind": "histogram",
        "table": "visit",
        "counts": "weights",
        "axes": [
            {"bins": 4, "feature": {"kind": "column", "column": "cost"}},
            {"bins": 4, "feature": {"kind": "owner", "feature": {"kind": "column", "column": "age"}}},
        ],
    },
    "weights by number of visit rows and place among siblings and magnitude of age": {
        "kind": "histogram",
        "table": "person",
        "counts": "weights",
        "axes": [
            {
                "bins": 4,
                "feature": {"kind": "fanout", "link": {"table": "visit", "columns": ["person"], "target": "person"}},
            },
            {"bins": 4, "feature": {"kind": "rank"}},
            {"bins": 4, "feature": {"kind": "magnitude", "column": "age"}},
        ],
    },
    "weights by number of rows owned at all levels, entities of fewer than 8 rows count in proportion": {
        "kind": "histogram",
        "table": "person",
        "counts": "weights",
        "axes": [{"bins": 4, "feature": {"kind": "activity"}}],
        "full_rows": 8,
    },
    "sums of cost by part": {
        "kind": "sums",
        "table": "visit",
        "axes": [{"bins": 4, "feature": {"kind": "part"}}],
        "column": "cost",
    },
    "dependence of 2 and 1 columns": {"kind": "dependence", "table": "visit", "left": ["a", "b"], "right": ["c"]},
    "frequent values of cost": {"kind": "heavy hitters", "table": "visit", "column": "cost", "counts": "votes"},
    "choice of one of 9 limits on rows per entity": {"kind": "choice of cap", "table": "visit", "candidates": 9},
    "row split as published, 3 rounds": {
        "kind": "published row split",
        "table": "visit",
        "columns": ["a", "b"],
        "rounds": 3,
    },
    'rows by "x × y\\n"': {
        "kind": "histogram",
        "table": 'a"b',
        "counts": "rows",
        "axes": [{"bins": 4, "feature": {"kind": "column", "column": "x × y\n"}}],
    },
}


@pytest.mark.parametrize(("text", "query"), QUERIES.items())
def test_queries_in_english(text: str, query: dict[str, Any]) -> None:
    assert describe(query) == text


def receipt(budget: dict[str, str], nodes: list[dict[str, Any]], *, neighbours: str = "replace") -> dict[str, Any]:
    return {
        "version": 2,
        "condition": None,
        "stamp": None,
        "epsilon": "16/5",
        "delta": "0/1",
        "neighbours": neighbours,
        "budget": budget,
        "ledger": {"total": "8/5", "delta": "0/1", "nodes": nodes},
    }


def nodes(**cost: str) -> list[dict[str, Any]]:
    return [
        {"kind": "sequence", "parent": None, "label": "database", "total": "8/5"},
        {"kind": "sequence", "parent": 0, "label": "table person", "total": "8/5"},
        *({"kind": "event", "parent": 1, "query": query, **cost} for query in QUERIES.values()),
    ]


def test_a_ledger_of_queries() -> None:
    page = ledger_section(receipt({"measure": "epsilon", "amount": "8/5"}, nodes(epsilon="8/45")))
    assert "ε = 3.2" in page
    assert "100 % of it was spent" in page
    assert '<td class="n">3.2</td>' in page  # of the table person: what it adds to epsilon
    assert ">cost and the owner&#x27;s age <" in page
    assert "visit: weights by cost and the owner&#x27;s age: 11.1 % of what was spent" in page
    once = ledger_section(
        receipt({"measure": "epsilon", "amount": "8/5"}, nodes(epsilon="8/45"), neighbours="add-remove")
    )
    assert '<td class="n">1.6</td>' in once


def test_a_ledger_in_rho() -> None:
    made = receipt({"measure": "rho", "amount": "8/5", "thresholds": "0/1"}, nodes(rho="8/45"))
    assert '<th class="n">ρ</th>' in ledger_section(made)
    assert '<td class="n">1.6</td>' in ledger_section(made)


def test_draws_of_one_kind_are_one_bar() -> None:
    event = {"kind": "event", "parent": 0, "query": QUERIES["number of rows"], "epsilon": "1/5"}
    root = budget_bars({"ledger": {"nodes": [nodes()[0], event, event]}})
    assert [(bar.label, bar.short, bar.cost) for bar in root.below] == [
        ("person: number of rows × 2", "number of rows × 2", Fraction(2, 5))
    ]
