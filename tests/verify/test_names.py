"""Tables and columns may have any name: names are compared, never looked into."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privbench_verify.receipt import verify_receipt
from privbench_verify.strict_json import read_json

from ..failing import assert_fails
from .receipts import AGES, COSTS, Json, domain, good, good_blocks
from .test_queries import QUERIES

NAMES = [
    "city #named after",
    "a x b",
    "rows of t by number of",
    "rows of person by number of visit.guest",
    "frequent values of city",
    "weights of #in-degree visit.guest",
    'quote " and \\ backslash',
    "line\nbreak\r\n\t",
    "\x1b[31mred\x00",
    "naïve ✓ 漢字 \u202e",
    "it's; DROP TABLE person; --",
    "a.b, c.d",
    "",
    " ",
    "kind",
    "1/2",
    "node 3",
]
WORDS = ("person", "visit", "item", "job", "town", "prize", "age", "sex", "cost", "wage", "city", "guest", "previous")
ALL = (*QUERIES.values(), AGES, COSTS)


def renamed(value: Any, names: dict[str, str], *, field: str = "") -> Any:
    """A receipt in which tables and columns have other names, and nothing else is changed."""
    if isinstance(value, dict):
        keyed = field in ("tables", "sizes", "at")
        return {names.get(k, k) if keyed else k: renamed(v, names, field=k) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(item, names, field=field) for item in value]
    named = ("entity", "owner", "key", "table", "column", "columns", "target", "tables", "left", "right", "rows")
    return names.get(value, value) if isinstance(value, str) and field in named else value


def everything(measure: str, neighbours: str) -> Json:
    fitting = [q for q in ALL if measure in q.measures and neighbours in q.neighbours]
    return good(*fitting, measure=measure, neighbours=neighbours)


def outcome(paper: Json) -> tuple[object, ...]:
    verdict = verify_receipt(paper)
    assert verdict.problems == ()
    return verdict.status, verdict.spent


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("shift", range(0, len(NAMES), 4))
def test_any_names_change_nothing(measure: str, neighbours: str, shift: int) -> None:
    names = dict(zip(WORDS, NAMES[shift:] + NAMES[:shift], strict=False))
    paper = everything(measure, neighbours)
    other = renamed(paper, names)
    assert other != paper
    assert outcome(read_json(json.dumps(other))) == outcome(paper)


def test_blocks_may_be_of_any_names() -> None:
    names = dict(zip(WORDS, NAMES, strict=False))
    assert outcome(renamed(good_blocks(), names)) == outcome(good_blocks())


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=12), min_size=len(WORDS), max_size=len(WORDS), unique=True))
def test_random_names_change_nothing(texts: list[str]) -> None:
    paper = everything("epsilon", "replace")
    spare = {name: f"{name} {i}" for i, name in enumerate(("id", "id2")) if name in texts}
    other = renamed(paper, dict(zip(WORDS, texts, strict=True)) | spare)
    assert outcome(other) == outcome(paper)


@pytest.mark.parametrize("name", NAMES)
def test_the_condition_names_columns_without_doubt(name: str) -> None:
    paper = good()
    paper["public"]["domains"].append(domain("visit", name, "data"))
    plain = bool(name) and all(c.isalnum() or c in "_ -" for c in name)
    shown = name if plain else json.dumps(name, ensure_ascii=False)
    paper["condition"] = f"epsilon holds given that these domains are public: visit.{shown}"
    assert verify_receipt(paper).status == "conditional"
    paper["condition"] += ", visit.other"
    assert_fails(verify_receipt(paper), "what was taken from the data asks for")


def test_a_name_cannot_stand_for_two_columns() -> None:
    """`a.b` of `t` is not `b` of `t.a`: names are never joined."""
    paper = copy.deepcopy(good())
    paper["public"]["domains"] += [domain("visit", "x.y", "schema")]
    paper["unit"]["tables"]["visit.x"] = {**paper["unit"]["tables"]["item"]}
    assert verify_receipt(paper).status == "verified"
    query = {"kind": "histogram", "table": "visit.x", "counts": "weights", "axes": []}
    query["axes"] = [{"bins": 2, "feature": {"kind": "column", "column": "y"}}]
    paper["ledger"]["nodes"][-2]["query"] = query
    assert_fails(verify_receipt(paper), "has no domain")


def test_the_condition_names_rules_that_were_taken_from_the_data() -> None:
    paper = good()
    paper["public"]["rules"] = [{"table": "visit", "rule": "cost >= 0"}]
    assert_fails(verify_receipt(paper), "what was taken from the data asks for")
    paper["condition"] = 'epsilon holds given that these rules are public: visit."cost >= 0"'
    assert verify_receipt(paper).status == "conditional"
