"""Check a receipt from nothing but its JSON: what was drawn must cost no more than what is promised.

Shares no code with what wrote the receipt and needs the standard library alone, so that a reviewer can read this file
and the other `verify_*.py` (and docs/receipt.md) and trust no other. It is arithmetic: that queries are what they are
called and that the code drew what it says is left to the proofs and the tests, who wrote the receipt to a signature.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from privbench_verify.events import Terms
from privbench_verify.read import Json, ReceiptError, object_of, positive_of, rational_of
from privbench_verify.tree import Tree
from privbench_verify.zcdp import epsilon_of

_FACTORS = {"replace": 2, "add-remove": 1}
_CONDITION = "epsilon holds given that these domains are public: "

_ORIGINS = ("declared", "chosen", "derived")
_DELTAS = Fraction(1, 10**30), Fraction(1, 10**3)
_LARGEST_RHO = 10**12
_UNITS = 2**20
_UNLIMITED = (None, "none")
"""Rows per entity, and where the number comes from, in a table that is counted by weight alone."""

Status = Literal["verified", "conditional", "unverified", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a receipt is worth.

    verified: it adds up. conditional: it adds up, given `condition`. unverified: it carries a stamp, or claims that
    nobody checked. failed: it does not add up; `problems` says where. `spent` is recomputed, in the terms of the
    receipt's neighbours and delta, so that it compares with `epsilon`; None where it could not be read.
    """

    status: Status
    epsilon: Fraction | None
    delta: Fraction | None
    spent: Fraction | None
    problems: tuple[str, ...]
    condition: str | None


def verify_receipt(receipt: object) -> Verdict:
    """Check a receipt. Whatever the object is, the answer is a verdict, not an exception."""
    if not isinstance(receipt, dict):
        return _Check({}).verdict("not a JSON object")
    check = _Check(receipt)
    check.run()
    return check.verdict()


class _Check:
    """One receipt under examination; problems are gathered, not raised, so that all are seen."""

    def __init__(self, receipt: Json) -> None:
        self.receipt = receipt
        self.problems: list[str] = []
        self.epsilon: Fraction | None = None
        self.delta: Fraction | None = None
        self.spent: Fraction | None = None
        self.unverified = False

    def run(self) -> None:
        for step in (self._numbers, self._head, self._public, self._unit, self._tree, self._stamp):
            try:
                step()
            except ReceiptError as problem:
                self.problems.append(str(problem))

    def verdict(self, *problems: str) -> Verdict:
        self.problems += problems
        condition = self.receipt.get("condition")
        status: Status = "verified" if condition is None else "conditional"
        if self.unverified or self.problems:
            status = "failed" if self.problems else "unverified"
        return Verdict(
            status=status,
            epsilon=self.epsilon,
            delta=self.delta,
            spent=self.spent,
            problems=tuple(self.problems),
            condition=condition if isinstance(condition, str) else None,
        )

    def _numbers(self) -> None:
        """No float anywhere: a rounded number proves nothing."""
        stack: list[object] = [self.receipt]
        while stack:
            value = stack.pop()
            if isinstance(value, float):
                raise ReceiptError(f"{value!r} is a float; numbers are integers or rationals written as p/q")
            if isinstance(value, dict | list):
                stack.extend(value.values() if isinstance(value, dict) else value)

    def _head(self) -> None:
        version = self.receipt.get("version")
        if type(version) is not int or version != 1:
            raise ReceiptError(f"version {version!r} is not one this verifier knows (1)")
        self.epsilon = positive_of(self.receipt, "epsilon", "receipt")
        self.delta = rational_of(self.receipt, "delta", "receipt")
        budget = object_of(self.receipt, "budget", "receipt")
        if self.delta == 0:
            self._pure(budget, self.epsilon)
        else:
            self._concentrated(budget, self.epsilon, self.delta)

    def _pure(self, budget: Json, epsilon: Fraction) -> None:
        """Without a delta the budget is an epsilon for adding or removing one entity."""
        factor, wanted = budget.get("factor"), _factor(self.receipt)
        if type(factor) is not int or factor != wanted:
            raise ReceiptError(f"budget.factor is {factor!r}; for these neighbours it is {wanted}")
        if positive_of(budget, "add_remove", "budget") * wanted > epsilon:
            raise ReceiptError("budget: add_remove times factor is more than epsilon")

    def _concentrated(self, budget: Json, epsilon: Fraction, delta: Fraction) -> None:
        """With a delta the budget is a rho for the receipt's own neighbours, from which the promise must follow."""
        _factor(self.receipt)
        least, most = _DELTAS
        if not least <= delta < most:
            self.delta = None
            raise ReceiptError(f"delta is {self.receipt['delta']}, neither 0/1 nor from {least} to below {most}")
        rho = positive_of(budget, "rho", "budget")
        if (found := _epsilon(rho, _rest_of_delta(budget, delta))) > epsilon:
            raise ReceiptError(f"budget.rho is {rho}, from which only epsilon {float(found):.9g} follows")

    def _public(self) -> None:
        """The condition names the domains taken from the data; who may come and go cannot be counted in public."""
        public = object_of(self.receipt, "public", "receipt")
        domains = _domains(self.receipt)
        from_data, listed = domains["data"], [name for names in domains.values() for name in names]
        if len(set(listed)) < len(listed):
            self.problems.append("public.domains lists a column twice")
        condition = self.receipt.get("condition")
        expected = _CONDITION + ", ".join(from_data) if from_data else None
        if condition != expected:
            raise ReceiptError(f"condition is {condition!r}; the domains taken from the data ask for {expected!r}")
        sizes = object_of(public, "sizes", "public")
        if not all(type(rows) is int and rows >= 0 for rows in sizes.values()):
            raise ReceiptError("public.sizes holds something else than numbers of rows")
        if self.receipt.get("neighbours") == "add-remove" and (sizes or public.get("keys") != []):
            raise ReceiptError("public: sizes and keys must be empty, for add-remove protects which entities there are")

    def _unit(self) -> None:
        """Every table says how many rows an entity has in it, and where that number comes from; or that it has any."""
        unit = object_of(self.receipt, "unit", "receipt")
        tables, entity = object_of(unit, "tables", "unit"), unit.get("entity")
        if not isinstance(entity, str) or entity not in tables:
            raise ReceiptError(f"unit.entity is {entity!r}, which is no table of the unit")
        for name in tables:
            table = object_of(tables, name, "unit.tables")
            rows, origin = table.get("rows_per_entity"), table.get("rows_per_entity_from")
            if (rows, origin) != _UNLIMITED and (type(rows) is not int or rows < 1 or origin not in _ORIGINS):
                raise ReceiptError(
                    f"{name}: rows_per_entity is {rows!r} ({origin!r}), not a positive integer (its origin)"
                )
            if (name == entity) != (table.get("role") == "entity"):
                raise ReceiptError(f"{name}: its role is {table.get('role')!r}, but the entity table is {entity}")
            if name == entity and (rows, origin) != (1, "derived"):
                raise ReceiptError(f"{name}: an entity has one row in its own table, which is derived")
            if name != entity and origin == "derived" and rows != _owner(tables, table).get("rows_per_entity"):
                raise ReceiptError(f"{name}: rows_per_entity {rows} is said to be derived, but is not its owner's")

    def _tree(self) -> None:
        ledger = object_of(self.receipt, "ledger", "receipt")
        nodes = ledger.get("nodes")
        if not isinstance(nodes, list) or not nodes or not all(isinstance(node, dict) for node in nodes):
            raise ReceiptError("ledger.nodes is not a list of nodes")
        tables = object_of(object_of(self.receipt, "unit", "receipt"), "tables", "unit")
        domains = _domains(self.receipt)
        tree = Tree(nodes, {name for names in domains.values() for name in names}, self._terms(tables))
        total = tree.check()
        self.problems += tree.problems
        self.unverified |= tree.as_published
        if tree.as_published and not self.receipt.get("stamp"):
            self.problems.append("events run as published, but the receipt is not stamped")
        for name in sorted(tree.searched ^ set(domains["private"])):
            self.problems.append(f"{name}: its domain is found with budget if and only if an event looks for it")
        for name, table in tables.items():
            said = isinstance(table, dict) and table.get("rows_per_entity_from") == "chosen"
            if (name in tree.chosen) != said:
                self.problems.append(f"{name}: rows_per_entity is chosen if and only if an event pays for it")
        if rational_of(ledger, "total", "ledger") != total:
            raise ReceiptError(f"ledger.total is {ledger['total']}, but the nodes add up to {total}")
        key, budget = "rho" if self.delta else "add_remove", object_of(self.receipt, "budget", "receipt")
        if total > positive_of(budget, key, "budget"):
            raise ReceiptError(f"the nodes add up to {total}, more than budget.{key}")
        self._check_thresholds(ledger, budget, tree.delta)
        self.spent = total * _factor(self.receipt)
        if self.delta:
            self.spent = _rounded_up(_epsilon(total, _rest_of_delta(budget, self.delta)))

    def _check_thresholds(self, ledger: Json, budget: Json, spent: Fraction) -> None:
        """The deltas of thresholds add up to what is said, and fit into what is kept for them."""
        if (rational_of(ledger, "delta", "ledger") if "delta" in ledger else 0) != spent:
            self.problems.append(f"ledger.delta is {ledger.get('delta')!r}, but thresholds add up to {spent}")
        if spent > _thresholds(budget):
            self.problems.append(f"thresholds cost a delta of {spent}, more than budget.thresholds")

    def _terms(self, tables: Json) -> Terms:
        if self.delta is None:
            raise ReceiptError("the charges cannot be judged without epsilon and delta")
        return Terms(
            currency="rho" if self.delta else "epsilon",
            replaces=_factor(self.receipt) == 2,
            units=_units(self.receipt),
            tables=tables,
        )

    def _stamp(self) -> None:
        stamp, noise = self.receipt.get("stamp"), self.receipt.get("noise")
        self.unverified |= stamp is not None
        if stamp is not None and not (isinstance(stamp, str) and stamp):
            raise ReceiptError(f"stamp is {stamp!r}, neither null nor a text")
        parameters = object_of(object_of(self.receipt, "public", "receipt"), "parameters", "public")
        if parameters.get("as_published", False) is not False and stamp is None:
            raise ReceiptError("public.parameters says as_published, but the receipt is not stamped")
        if noise not in ("operating system", "test"):
            raise ReceiptError(f"noise is {noise!r}, neither 'operating system' nor 'test'")
        if noise == "test" and not str(stamp).startswith("not private"):
            raise ReceiptError("the noise came from a test source, but the receipt is not stamped so")


def _factor(receipt: Json) -> int:
    neighbours = receipt.get("neighbours")
    if not isinstance(neighbours, str) or neighbours not in _FACTORS:
        raise ReceiptError(f"neighbours is {neighbours!r}, neither 'replace' nor 'add-remove'")
    return _FACTORS[neighbours]


def _epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    if rho > _LARGEST_RHO:
        raise ReceiptError(f"rho is {rho}, which protects nothing")
    return epsilon_of(rho, delta)


def _thresholds(budget: Json) -> Fraction:
    """The part of delta that thresholds may spend; receipts without thresholds need not say it."""
    return positive_of(budget, "thresholds", "budget") if "thresholds" in budget else Fraction(0)


def _rest_of_delta(budget: Json, delta: Fraction) -> Fraction:
    """What thresholds leave of delta, with which epsilon follows from rho."""
    if (thresholds := _thresholds(budget)) >= delta:
        raise ReceiptError(f"budget.thresholds is {thresholds}, which leaves nothing of delta")
    return delta - thresholds


def _rounded_up(epsilon: Fraction) -> Fraction:
    """An epsilon with so many digits as anybody reads."""
    return Fraction(math.ceil(epsilon * 10**12), 10**12)


def _units(receipt: Json) -> int | None:
    """What an entity weighs in a table; receipts without weights need not say it."""
    units = object_of(receipt, "unit", "receipt").get("units_per_entity")
    if units is not None and (type(units) is not int or units != _UNITS):
        raise ReceiptError(f"unit.units_per_entity is {units!r}, not {_UNITS}")
    return units


def _owner(tables: Json, table: Json) -> Json:
    owner = table.get("owner")
    return object_of(tables, owner if isinstance(owner, str) else "", "unit.tables")


def _domains(receipt: Json) -> dict[str, list[str]]:
    """The names of columns by where their domain comes from."""
    domains = object_of(object_of(receipt, "public", "receipt"), "domains", "public")
    found = {origin: domains.get(origin) for origin in ("declared", "schema", "data")}
    found["private"] = domains.get("private", [])  # not there in receipts from before domains were found with budget
    for origin, names in found.items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ReceiptError(f"public.domains.{origin} is not a list of names")
    return found  # type: ignore[return-value]
