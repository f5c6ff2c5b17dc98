"""Queries in plain words, for people: made from their description in the receipt, and never read back."""

from collections.abc import Mapping
from typing import Any

from privbench.privacy.receipt import display_name

Described = Mapping[str, Any]


def describe(query: Described) -> str:
    """Say in a few words what was asked.

    >>> column = {"kind": "column", "column": "age"}
    >>> rows = {"kind": "histogram", "table": "t", "counts": "rows", "axes": [{"bins": 9, "feature": column}]}
    >>> describe(rows), describe({**rows, "axes": []}), describe({"kind": "choice of pair", "candidates": 3})
    ('rows by age', 'number of rows', 'choice of one of 3 pairs of columns, or none')
    """
    kind = query["kind"]
    if kind == "histogram":
        return _histogram(query)
    if kind == "sums":
        return f"sums of {display_name(query['column'])} by {_axes(query)}"
    if kind == "dependence":
        return f"dependence of {len(query['left'])} and {len(query['right'])} columns"
    if kind == "heavy hitters":
        return f"frequent values of {display_name(query['column'])}"
    if kind == "votes on dependencies":
        return f"votes on {len(query['candidates'])} candidate dependencies"
    if kind == "published row split":
        return f"row split as published, {query['rounds']} rounds"
    candidates = {
        "choice of cap": "{} limits on rows per entity",
        "choice of column split": "{} splits of columns",
        "choice of pair": "{} pairs of columns, or none",
        "choice of dependency": "{} candidate dependencies, or none",
    }
    return f"choice of one of {candidates[kind].format(query['candidates'])}"


def describe_feature(feature: Described) -> str:
    """Say in a few words what rows are counted by.

    >>> link = {"table": "visit", "columns": ["person"], "target": "person"}
    >>> describe_feature({"kind": "owner", "feature": {"kind": "fanout", "link": link}})
    "the owner's number of visit rows"
    """
    kind = feature["kind"]
    if kind in ("owner", "first"):
        whose = "the owner's" if kind == "owner" else "the first sibling's"
        return f"{whose} {describe_feature(feature['feature'])}"
    if "link" in feature:
        return _by_key(kind, feature["link"])
    if kind == "agreement":
        return f"whether {display_name(feature['column'])} equals {_equals(feature['equals'])}"
    if kind == "nearness":
        base = display_name(feature["base"]["column"])
        return f"whether {display_name(feature['column'])} is within {feature['days']} days of {base}"
    if kind == "present":
        return f"whether {display_name(feature['column'])} has a value"
    if "column" in feature:
        name = display_name(feature["column"])
        return name if kind == "column" else f"{kind} of {name}"
    words: dict[str, str] = {
        "rank": "place among siblings",
        "entity rows": "rows of the entity",
        "activity": "number of rows owned at all levels",
    }
    return words.get(kind, str(kind))


def _histogram(query: Described) -> str:
    counted = {"rows": "rows", "weights": "weights", "votes": "entities"}[query["counts"]]
    asked = f"{counted} by {_axes(query)}" if query["axes"] else f"number of {counted}"
    full_rows = query.get("full_rows")
    return asked if full_rows is None else f"{asked}, entities of fewer than {full_rows} rows count in proportion"


def describe_axes(query: Described) -> str:
    """Say only what rows were counted by, where they were; else what was asked."""
    return _axes(query) if query.get("axes") else describe(query)


def _axes(query: Described) -> str:
    return " and ".join(describe_feature(axis["feature"]) for axis in query["axes"])


def _by_key(kind: str, link: Described) -> str:
    key = display_name(link["table"], *link["columns"])
    words = {
        "fanout": f"number of {display_name(link['table'])} rows",
        "public rows": f"number of {display_name(link['table'])} rows",
        "in-degree": f"references by {key}",
        "null key": f"whether {key} is NULL",
        "own key": f"whether {key} references the row above, or another",
        "key block": f"what {key} references",
        "key slot": f"what {key} references",
    }
    return words[kind]


def _equals(equals: Described) -> str:
    if "rows" in equals:
        return f"the number of {display_name(equals['rows'])} rows"
    return f"the owner's {display_name(equals['owner'])}" if "owner" in equals else "the place among siblings"
