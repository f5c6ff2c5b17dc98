import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

from privbench.privacy.noise import TestEntropy
from privbench.privacy.receipt import AS_PUBLISHED, NOT_PRIVATE, ORPHANS, REFERENCES, add_remove_budget
from privbench.schema.domain import Origin
from privbench.schema.unit import Neighbours

from .trees import EPSILON, good, receipt, spent_ledger

DOCS = Path(__file__).parents[2] / "docs" / "receipt.md"


def test_replace_halves_the_budget() -> None:
    assert add_remove_budget(Fraction(16, 5), Neighbours.REPLACE) == Fraction(8, 5)
    assert add_remove_budget(Fraction(16, 5), Neighbours.ADD_REMOVE) == Fraction(16, 5)


def test_the_condition_comes_first() -> None:
    paper = good(origin=Origin.DATA)
    assert next(iter(paper)) == "condition"
    assert paper["condition"] == "epsilon holds given that these domains are public: visit.cost"
    assert paper["public"]["domains"]["data"] == ["visit.cost"]
    assert good()["condition"] is None


def test_who_is_protected() -> None:
    paper = good()
    assert paper["unit"]["entity"] == "person"
    assert paper["unit"]["tables"] == {
        "person": {
            "role": "entity",
            "owner": None,
            "key": None,
            "rows_per_entity": 1,
            "rows_per_entity_from": "derived",
        },
        "visit": {
            "role": "owned",
            "owner": "person",
            "key": ["person"],
            "rows_per_entity": 3,
            "rows_per_entity_from": "chosen",
        },
    }
    assert paper["references"] == {"note": REFERENCES, "keys": ["visit(guest) -> person(id)"]}
    assert paper["public"]["tables"] == ["town"]
    assert paper["budget"] == {"add_remove": "8/5", "factor": 2}


def test_what_orphans_mean() -> None:
    assert (good()["public"]["orphans"], good()["public"]["orphans_note"]) == ("error", None)
    public = good(orphans="null")["public"]
    assert (public["orphans"], public["orphans_note"]) == ("null", ORPHANS)


def test_stamps() -> None:
    assert good()["stamp"] is None
    assert good(entropy=TestEntropy(3))["stamp"] == NOT_PRIVATE
    assert NOT_PRIVATE.startswith("not private: ")
    assert AS_PUBLISHED == "as published: the claim was not verified"


def test_there_is_no_float_and_json_keeps_it_all() -> None:
    made = receipt(spent_ledger(), epsilon=EPSILON)
    text = json.dumps(made)
    assert json.loads(text) == made
    assert json.loads(text, parse_float=lambda x: f"float {x}") == made
    assert made["public"]["parameters"] == {"method": "paper", "alpha": "0.5", "beta": 10_000}


def schema() -> dict[str, Any]:
    found = re.findall(r"```json\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)
    return json.loads(found[-1])  # type: ignore[no-any-return]


def described(value: object, rule: dict[str, Any], rules: dict[str, Any], where: str = "receipt") -> list[str]:
    """What of a value the schema does not allow, for the few words of JSON Schema that the docs use."""
    if "$ref" in rule:
        rule = rules[rule["$ref"].removeprefix("#/$defs/")]
    if "oneOf" in rule:
        tries = [described(value, one, rules, where) for one in rule["oneOf"]]
        return [] if sum(not found for found in tries) == 1 else [f"{where} fits {tries}"]
    if "const" in rule or "enum" in rule:
        allowed = rule.get("enum", [rule.get("const")])
        return [] if any(type(value) is type(a) and value == a for a in allowed) else [f"{where} is {value!r}"]
    names = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}
    types = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    if type(value) not in [names[name] for name in types]:
        return [f"{where} is {value!r}"]
    if isinstance(value, str) and "pattern" in rule and not re.search(rule["pattern"], value):
        return [f"{where} is {value!r}"]
    if isinstance(value, list):
        return [p for i, item in enumerate(value) for p in described(item, rule["items"], rules, f"{where}[{i}]")]
    return _object_problems(value, rule, rules, where) if isinstance(value, dict) else []


def _object_problems(value: dict[str, Any], rule: dict[str, Any], rules: dict[str, Any], where: str) -> list[str]:
    known, others = rule.get("properties", {}), rule.get("additionalProperties", False)
    problems = [f"{where}.{name} is missing" for name in rule.get("required", []) if name not in value]
    for name, item in value.items():
        if name in known or others:
            problems += described(item, known.get(name, others), rules, f"{where}.{name}")
        else:
            problems.append(f"{where}.{name} is not described")
    return problems


def test_the_schema_in_the_docs_describes_the_receipt() -> None:
    rules = schema()
    for paper in (good(), good(origin=Origin.DATA), good(orphans="null"), good(entropy=TestEntropy(1))):
        assert described(paper, rules, rules["$defs"]) == []


def test_the_schema_in_the_docs_is_strict() -> None:
    rules = schema()
    for change in ({"extra": 1}, {"epsilon": 3.2}, {"epsilon": "3.2"}, {"version": True}, {"neighbours": "bounded"}):
        assert described({**good(), **change}, rules, rules["$defs"])
    nodes = good()
    del nodes["ledger"]["nodes"][1]["scale"]
    assert described(nodes, rules, rules["$defs"])
