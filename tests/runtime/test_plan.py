"""Plans: what makes two of them the same, and what is read of them."""

import copy
from typing import Any

from privbench.runtime.plan import Node, duckdb_plan, postgres_plan

SCAN = {
    "Node Type": "Index Scan",
    "Relation Name": "person",
    "Index Name": "by_age",
    "Plan Rows": 7,
    "Actual Rows": 5,
    "Actual Loops": 3,
}
PLAN: dict[str, Any] = {
    "Plan": {
        "Node Type": "Nested Loop",
        "Join Type": "Inner",
        "Plan Rows": 21,
        "Actual Rows": 15,
        "Actual Loops": 1,
        "Total Cost": 33.5,
        "Shared Hit Blocks": 40,
        "Shared Read Blocks": 2,
        "Plans": [
            {"Node Type": "Seq Scan", "Relation Name": "home", "Plan Rows": 3, "Actual Rows": 3, "Actual Loops": 1},
            SCAN,
        ],
    }
}


def test_what_is_read() -> None:
    plan = postgres_plan(PLAN)
    assert plan.shape == "Nested Loop Inner (Seq Scan home, Index Scan person using by_age)"
    assert (plan.cost, plan.buffers) == (33.5, 42)
    assert plan.nodes == (Node(estimated=21, actual=15), Node(estimated=3, actual=3), Node(estimated=7, actual=5))


def test_numbers_do_not_change_a_shape_but_structure_does() -> None:
    def shape(**changes: object) -> str:
        changed = copy.deepcopy(PLAN)
        changed["Plan"]["Plans"][1] |= changes
        return postgres_plan(changed).shape

    assert shape() == shape(**{"Plan Rows": 1000, "Actual Rows": 0})
    for name, value in (
        ("Node Type", "Seq Scan"),
        ("Index Name", "other"),
        ("Relation Name", "x"),
        ("Join Type", "Left"),
    ):
        assert shape(**{name: value}) != shape(), name
    assert shape(Plans=[SCAN]) != shape()


def test_a_step_that_never_ran_met_no_rows() -> None:
    idle = copy.deepcopy(PLAN)
    idle["Plan"]["Plans"][1]["Actual Loops"] = 0
    assert len(postgres_plan(idle).nodes) == 2


def test_operators_of_duckdb() -> None:
    scan = {"name": "SEQ_SCAN ", "children": [], "extra_info": {"Table": "data.main.t", "Estimated Cardinality": "5"}}
    join = {"name": "HASH_JOIN", "children": [scan, scan], "extra_info": {"Join Type": "INNER"}}
    assert duckdb_plan(join).shape == "HASH_JOIN INNER (SEQ_SCAN data.main.t, SEQ_SCAN data.main.t)"
