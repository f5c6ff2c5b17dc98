"""Small receipts of version 2, built by hand: what they state is written down here, not derived by the code they test.

Persons have visits and visits have items; a visit may have a guest, who is a person; a person has a job, a lookup, and
lives in a public town; public prizes reference persons.
"""

import copy
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Json = dict[str, Any]

W = 2**20
EPSILON = Fraction(16, 5)
DELTA = Fraction(1, 10**9)
THRESHOLDS = DELTA / 4
RHO = Fraction(136, 1000)
"""A little less than what implies EPSILON with DELTA, less a quarter for thresholds, would allow."""
TAIL = Fraction(1, 10**11)
THRESHOLD = 7500
"""With noise of scale 1024 a count of 1 passes this with a probability below TAIL."""
CAP = 3
"""Rows per entity in visit."""

OWNER = {"table": "visit", "columns": ["person"], "target": "person"}
ITEM_OWNER = {"table": "item", "columns": ["visit"], "target": "visit"}
GUEST = {"table": "visit", "columns": ["guest"], "target": "person"}
PREVIOUS = {"table": "visit", "columns": ["previous"], "target": "visit"}
PAYER = {"table": "item", "columns": ["payer"], "target": "person"}
AFTER = {"table": "item", "columns": ["after"], "target": "item"}
JOB = {"table": "person", "columns": ["job"], "target": "job"}
TOWN = {"table": "person", "columns": ["town"], "target": "town"}
PRIZE = {"table": "prize", "columns": ["winner"], "target": "person"}


def rational(value: Fraction | int) -> str:
    value = Fraction(value)
    return f"{value.numerator}/{value.denominator}"


def axis(kind: str, bins: int = 4, **fields: Any) -> Json:
    return {"bins": bins, "feature": {"kind": kind, **fields}}


def histogram(table: str, *axes: Json, counts: str = "weights") -> Json:
    return {"kind": "histogram", "table": table, "counts": counts, "axes": list(axes)}


def choice(kind: str, table: str) -> Json:
    return {"kind": f"choice of {kind}", "table": table, "candidates": 5}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query with what must follow from it."""

    query: Json
    sensitivity: int
    draws: int = 1
    additive: bool = False
    monotone: bool = False
    measures: tuple[str, ...] = ("epsilon", "rho")
    neighbours: tuple[str, ...] = ("replace", "add-remove")

    @property
    def mechanism(self) -> dict[str, str]:
        """By measure."""
        if self.query["kind"].startswith("choice"):
            return {"epsilon": "permute-and-flip", "rho": "exponential"}
        if self.query["kind"] == "published row split":
            return {"epsilon": "as-published"}
        if self.query["kind"] == "heavy hitters":
            return {"epsilon": "discrete-laplace", "rho": "frequent-values"}
        return {"epsilon": "discrete-laplace", "rho": "discrete-gaussian"}

    def cost(self, measure: str, neighbours: str) -> Fraction:
        """What noise of 1024 times the sensitivity costs."""
        chooses, replaces = self.query["kind"].startswith("choice"), neighbours == "replace"
        ratio = Fraction(2 if chooses and not self.monotone else 1, 1024)
        if measure == "epsilon":
            return ratio
        if chooses:
            return (4 if replaces else 1) * ratio**2 / 8
        return ((2 if self.additive else 4) if replaces else 1) * ratio**2 / 2

    def event(self, measure: str, neighbours: str) -> Json:
        event = {
            "kind": "event",
            "mechanism": self.mechanism[measure],
            "query": copy.deepcopy(self.query),
            "sensitivity": f"{self.sensitivity}/1",
            "scale": f"{1024 * self.sensitivity}/1",
            "draws": self.draws,
            measure: rational(self.cost(measure, neighbours)),
        }
        if event["mechanism"] == "frequent-values":
            event |= {"threshold": THRESHOLD, "delta": rational(TAIL)}
        return event


CAP_CHOICE = Asked(query=choice("cap", "visit"), sensitivity=1, monotone=True)
WAGES = Asked(query=histogram("person", axis("magnitude", 70, column="wage")), sensitivity=W, draws=70, additive=True)
CITIES = Asked(
    query=histogram("person", axis("present", 1, column="city"), counts="votes"), sensitivity=1, additive=True
)
FOUNDATION = (CAP_CHOICE, WAGES, CITIES)
"""What every receipt here has: the cap of visits is chosen, the domains of wages and cities are found."""


@dataclass(slots=True)
class Nodes:
    """The tree of charges while it is built; totals are worked out at the end."""

    measure: str = "epsilon"
    neighbours: str = "replace"
    nodes: list[Json] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.nodes.append({"kind": "sequence", "parent": None, "label": "database"})
        for asked in FOUNDATION:
            self.event(asked)

    def add(self, kind: str, parent: int, **fields: Any) -> int:
        self.nodes.append({"kind": kind, "parent": parent, **fields})
        return len(self.nodes) - 1

    def event(self, asked: Asked, parent: int = 0) -> int:
        self.nodes.append({**asked.event(self.measure, self.neighbours), "parent": parent})
        return len(self.nodes) - 1

    def centres(self, parent: int, table: str, *centres: Json, rows: int = CAP) -> list[int]:
        listed = [{"label": str(i), "at": at} for i, at in enumerate(centres)]
        facts = {"table": table, "rows_per_entity": rows, "by": "centres", "centres": listed}
        at = self.add("partition", parent, label="by centres", **facts)
        return [self.add("part", at, centre=str(i)) for i in range(len(centres))]

    def ledger(self) -> Json:
        add_up(self.nodes, self.measure)
        deltas = sum((Fraction(node["delta"]) for node in self.nodes if "delta" in node), Fraction(0))
        return {"total": self.nodes[0]["total"], "delta": rational(deltas), "nodes": self.nodes}


def add_up(nodes: list[Json], measure: str) -> None:
    """Write the totals of all nodes."""
    costs = [Fraction(node.get(measure, 0)) for node in nodes]
    for at in range(len(nodes) - 1, 0, -1):
        parent = nodes[at]["parent"]
        parallel = nodes[parent]["kind"] == "partition"
        costs[parent] = max(costs[parent], costs[at]) if parallel else costs[parent] + costs[at]
    for node, cost in zip(nodes, costs, strict=True):
        if node["kind"] != "event":
            node["total"] = rational(cost)


def receipt(nodes: Nodes) -> Json:
    """The receipt around a tree of charges."""
    replaces = nodes.neighbours == "replace"
    budget = {"measure": "epsilon", "amount": rational(EPSILON / 2 if replaces else EPSILON)}
    if nodes.measure == "rho":
        budget = {"measure": "rho", "amount": rational(RHO - Fraction(1, 100)), "thresholds": rational(THRESHOLDS)}
    return {
        "version": 2,
        "id": "0123456789abcdef" * 2,
        "software": "privbench 0.2.0",
        "condition": None,
        "stamp": None,
        "epsilon": rational(EPSILON),
        "delta": rational(DELTA if nodes.measure == "rho" else 0),
        "neighbours": nodes.neighbours,
        "noise": "operating system",
        "budget": budget,
        "unit": unit(),
        "references": {"note": "Being referenced is not protected.", "keys": [GUEST, PREVIOUS, JOB]},
        "inside": {
            "note": "Rows of the same entity.",
            "keys": [{**PAYER, "role": "implied"}, {**AFTER, "role": "inside"}],
        },
        "public": {
            "domains": [
                *(domain("person", column, "schema") for column in ("age", "sex")),
                *(domain("visit", column, "declared") for column in ("cost", "age")),
                *(domain("person", column, "private") for column in ("wage", "city")),
            ],
            "sizes": {"person": 120} if replaces else {},
            "tables": ["town", "prize"],
            "keys": [{"table": "person", "columns": ["id"]}] if replaces else [],
            "orphans": "error",
            "orphans_note": None,
            "parameters": {"method": "tree", "alpha": "0.5", "beta": 10_000, "flag": True},
        },
        "earlier": [],
        "computed": [],
        "relative": [],
        "ledger": nodes.ledger(),
    }


def domain(table: str, column: str, origin: str, **release: str) -> Json:
    return {"table": table, "column": column, "origin": origin, **release}


def unit() -> Json:
    def table(role: str, owner: str | None, key: list[str] | None, rows: int | None, origin: str) -> Json:
        return {
            "role": role,
            "owner": owner,
            "key": key,
            "rows_per_entity": rows,
            "rows_per_entity_from": origin,
        }

    return {
        "entity": "person",
        "weight": W,
        "lists": [],
        "tables": {
            "person": table("entity", None, None, 1, "derived"),
            "visit": table("owned", "person", ["person"], CAP, "chosen"),
            "item": table("owned", "visit", ["visit"], None, "none"),
            "job": table("lookup", "person", ["job"], 1, "derived"),
        },
    }


def good(*more: Asked, measure: str = "epsilon", neighbours: str = "replace") -> Json:
    """An honest receipt with some more queries, one after the other."""
    nodes = Nodes(measure, neighbours)
    below = nodes.add("sequence", 0, label="more")
    for asked in more:
        nodes.event(asked, below)
    return copy.deepcopy(receipt(nodes))


def good_blocks() -> Json:
    """An honest receipt with blocks of two tables, some inside others."""
    nodes = Nodes()
    young, old = nodes.centres(0, "person", {"age": [2]}, {"age": [7]}, rows=1)
    nodes.event(AGES, young)
    inner = nodes.add("sequence", old, label="old")
    low, high = nodes.centres(inner, "person", {"age": [5], "sex": [1, 0]}, {"age": [9], "sex": [0, 1]}, rows=1)
    nodes.event(AGES, low)
    nodes.event(AGES, high)
    nodes.event(SEXES, high)
    cheap, _ = nodes.centres(0, "visit", {"cost": [-3]}, {"cost": [7]})
    nodes.event(COSTS, cheap)
    return copy.deepcopy(receipt(nodes))


AGES = Asked(
    query=histogram("person", axis("column", 9, column="age"), counts="rows"), sensitivity=1, draws=9, additive=True
)
SEXES = Asked(
    query=histogram("person", axis("column", 2, column="sex"), counts="rows"), sensitivity=1, draws=2, additive=True
)
COSTS = Asked(
    query=histogram("visit", axis("column", 6, column="cost"), counts="rows"), sensitivity=CAP, draws=6, additive=True
)


def events(paper: Json) -> list[Json]:
    return [node for node in paper["ledger"]["nodes"] if node["kind"] == "event"]


def kinds(paper: Json, kind: str) -> list[Json]:
    return [node for node in paper["ledger"]["nodes"] if node["kind"] == kind]


def settle(paper: Json) -> Json:
    """Make all totals right again."""
    measure = paper["budget"]["measure"]
    add_up(paper["ledger"]["nodes"], measure)
    paper["ledger"]["total"] = paper["ledger"]["nodes"][0]["total"]
    return paper
