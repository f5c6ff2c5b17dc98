"""The schema in docs/receipt.md describes the receipts that the verifier accepts, and no others."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from privbench_verify.receipt import verify_receipt

from .receipts import AGES, Json, events, good, good_blocks
from .test_names import everything
from .test_receipt import built_on_earlier

DOCS = Path(__file__).parents[2] / "docs" / "receipt.md"
TYPES = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool, "null": type(None)}


def schema() -> Json:
    blocks = re.findall(r"```json\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)
    rules: Json = json.loads(blocks[-1])
    return rules


RULES = schema()


def fits(value: object, rule: Json) -> bool:
    """Whether a value is what a rule allows, for the few words of JSON Schema that the docs use."""
    if "$ref" in rule:
        return fits(value, RULES["$defs"][rule["$ref"].removeprefix("#/$defs/")])
    if "oneOf" in rule:
        return sum(fits(value, one) for one in rule["oneOf"]) == 1
    if "const" in rule or "enum" in rule:
        return any(type(value) is type(a) and value == a for a in rule.get("enum", [rule.get("const")]))
    types = rule["type"] if isinstance(rule["type"], list) else [rule["type"]]
    if type(value) not in [TYPES[name] for name in types]:
        return False
    if isinstance(value, str):
        return re.search(rule.get("pattern", ""), value) is not None
    if isinstance(value, list):
        return all(fits(item, rule["items"]) for item in value)
    return fits_object(value, rule) if isinstance(value, dict) else True


def fits_object(value: Json, rule: Json) -> bool:
    known, others = rule.get("properties", {}), rule.get("additionalProperties", False)
    if any(name not in value for name in rule.get("required", [])):
        return False
    return all((name in known or others) and fits(item, known.get(name, others)) for name, item in value.items())


@pytest.mark.parametrize("measure", ["epsilon", "rho"])
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
def test_the_schema_describes_every_kind_of_query(measure: str, neighbours: str) -> None:
    paper = everything(measure, neighbours)
    assert verify_receipt(paper).status == "verified"
    assert fits(paper, RULES)


def test_the_schema_describes_blocks_and_earlier_releases() -> None:
    for paper in (good_blocks(), built_on_earlier()):
        assert verify_receipt(paper).status in ("verified", "conditional")
        assert fits(paper, RULES)


@pytest.mark.parametrize(
    "change",
    [{"extra": 1}, {"epsilon": 3.2}, {"epsilon": "3.2"}, {"version": True}, {"version": 1}, {"neighbours": "bounded"}],
)
def test_the_schema_is_strict(change: Json) -> None:
    assert not fits({**good(), **change}, RULES)


def places(value: Any) -> list[Json]:
    """All objects in a value."""
    if isinstance(value, list):
        return [found for item in value for found in places(item)]
    if isinstance(value, dict):
        return [value, *(found for item in value.values() for found in places(item))]
    return []


@pytest.mark.parametrize("paper", [good_blocks(), built_on_earlier(), everything("rho", "replace")])
def test_schema_and_verifier_refuse_an_unknown_field_anywhere(paper: Json) -> None:
    open_ended = ("tables", "sizes", "parameters", "at")
    free = {id(holder[name]) for holder in places(paper) for name in open_ended if name in holder}
    for holder in places(paper):
        if id(holder) in free:
            continue
        holder["no such field"] = 1
        assert not fits(paper, RULES)
        assert verify_receipt(paper).status == "failed"
        del holder["no such field"]
    assert fits(paper, RULES)


def test_every_field_of_an_event_is_needed() -> None:
    for name in events(good(AGES))[-1]:
        paper = good(AGES)
        del events(paper)[-1][name]
        assert not fits(paper, RULES)
        assert verify_receipt(paper).status == "failed"
