"""Check a receipt from nothing but its JSON: what was drawn must cost no more than what is promised.

Start reading here. `facts.py` reads who is protected and what is public, `queries.py` derives what one entity can move
each query, `costs.py` what noise costs, `tree.py` adds up. No sentence of a receipt is parsed. It is arithmetic: that
the program drew what the receipt says is left to the proofs and tests, and who wrote it to a signature.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Literal

from privbench_verify.costs import MAX_RHO, epsilon_of
from privbench_verify.facts import (
    DATA,
    DECLARED,
    EARLIER,
    FOUND,
    NEIGHBOURS,
    PRIVATE,
    SCHEMA,
    Facts,
    Link,
    Release,
    read_facts,
)
from privbench_verify.people import people_columns, with_bytes
from privbench_verify.read import (
    Json,
    Place,
    ReceiptError,
    brief,
    check_values,
    fields_of,
    identifier_of,
    listed,
    one_of,
    optional_text_of,
    positive_of,
    quoted_place,
    rational_of,
    shown,
    shown_place,
    text_of,
)
from privbench_verify.tree import Terms, Tree

VERSION = 2
MEANING = (
    "`verified` means that the arithmetic of the receipt adds up to what it promises and that the pieces belong "
    "together. It does not show that the publisher ran what the receipt says, nor who the publisher is."
)
_OLD = (
    "version 1: this receipt was written by an earlier alpha of PrivBench, which this verifier does not read any more; "
    "`privbench fit` of this version makes a new one"
)
_FIELDS = (
    "version",
    "id",
    "software",
    "condition",
    "stamp",
    "epsilon",
    "delta",
    "neighbours",
    "noise",
    "budget",
    "unit",
    "references",
    "inside",
    "public",
    "earlier",
    "computed",
    "relative",
    "ledger",
)
_CONDITION = "epsilon holds given that these {} are public: {}"
_DELTAS = Fraction(1, 10**30), Fraction(1, 10**3)
_ROUND_UP = Context(prec=12, rounding=ROUND_CEILING)
_MOST_PROBLEMS = 100
_LONGEST_PROBLEM = 500

Status = Literal["verified", "conditional", "unverified", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a receipt is worth.

    verified: it adds up (see MEANING). conditional: it adds up, given `condition`. unverified: it carries a stamp, or
    something in it cannot be checked. failed: it does not add up; `problems` says where. `spent` is recomputed, in the
    terms of the receipt's neighbours and delta, so that it compares with `epsilon`; None where it could not be read.
    `assumptions` are sentences on what the promise takes for granted.
    """

    status: Status
    epsilon: Fraction | None
    delta: Fraction | None
    spent: Fraction | None
    problems: tuple[str, ...]
    condition: str | None
    assumptions: tuple[str, ...] = ()


def verify_receipt(receipt: object) -> Verdict:
    """Check a receipt. Whatever the object is, the answer is a verdict, not an exception."""
    check = _Check()
    try:
        check.run(receipt)
    except ReceiptError as problem:
        check.problems.append(str(problem))
    return check.verdict()


def shortened(problems: list[str]) -> tuple[str, ...]:
    """Problems as people can read them: not too many, and none too long."""
    more = [f"and {len(problems) - _MOST_PROBLEMS} more problems"] if len(problems) > _MOST_PROBLEMS else []
    cut = (p if len(p) <= _LONGEST_PROBLEM else f"{p[:_LONGEST_PROBLEM]}..." for p in problems[:_MOST_PROBLEMS])
    return (*cut, *more)


class _Check:
    """One receipt under examination; problems are gathered where the rest can still be read."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.epsilon: Fraction | None = None
        self.delta: Fraction | None = None
        self.spent: Fraction | None = None
        self.facts: Facts | None = None
        self.unverified = False
        self.test_noise = False

    def run(self, value: object) -> None:
        check_values(value)
        receipt = _head(value)
        self.epsilon = positive_of(receipt["epsilon"], "epsilon")
        delta = self.delta = _delta(receipt["delta"])
        factor = NEIGHBOURS[one_of(receipt["neighbours"], "neighbours", NEIGHBOURS)]
        budget = _budget(receipt["budget"], delta)
        self._check_promise(budget, self.epsilon, delta, factor)
        self._check_stamp(receipt)
        facts = self.facts = read_facts(receipt)
        self._check_condition(receipt["condition"], facts)
        terms = Terms(measure="rho" if delta else "epsilon", replaces=factor == 2, facts=facts)
        ledger = fields_of(receipt["ledger"], "ledger", ("total", "delta", "nodes"))
        tree = Tree(ledger["nodes"], terms)
        try:
            total = tree.check()
        finally:
            self.problems += tree.problems
        self.problems += _claims_without_event(facts, tree)
        self.problems += _overspent(ledger, budget, total, tree.delta)
        self._check_published(receipt, facts, tree)
        self.spent = factor * total if delta == 0 else _rounded_up(_epsilon(total, delta - budget.thresholds))

    def verdict(self) -> Verdict:
        condition = None if self.facts is None else _full_condition(self.facts)
        status: Status = "verified" if condition is None else "conditional"
        if self.unverified or self.problems:
            status = "failed" if self.problems else "unverified"
        assumptions = [] if self.facts is None else list(_assumptions(self.facts))
        assumptions += self._total()
        if self.test_noise:
            assumptions.insert(0, "The noise came from a test source and can be repeated: nothing is private.")
        return Verdict(
            status=status,
            epsilon=self.epsilon,
            delta=self.delta,
            spent=self.spent,
            problems=shortened(self.problems),
            condition=condition,
            assumptions=tuple(assumptions),
        )

    def _total(self) -> Iterator[str]:
        """What this and earlier releases cost together, where they are about the same neighbours."""
        if self.facts is None or not self.facts.earlier or self.epsilon is None or self.delta is None:
            return
        if all(release.neighbours == self.facts.neighbours for release in self.facts.earlier):
            epsilon = _sum([self.epsilon, *(release.epsilon for release in self.facts.earlier)])
            delta = _sum([self.delta, *(release.delta for release in self.facts.earlier)])
            yield f"Together with these, epsilon is at most {epsilon} and delta at most {delta}."

    def _check_promise(self, budget: "_Budget", epsilon: Fraction, delta: Fraction, factor: int) -> None:
        """The whole budget must keep the promise."""
        if delta == 0:
            if budget.amount * factor > epsilon:
                self.problems.append(f"budget.amount, {factor} times for these neighbours, is more than epsilon")
        elif (implied := _epsilon(budget.amount, delta - budget.thresholds)) > epsilon:
            self.problems.append(f"budget.amount is a rho from which only epsilon {float(implied):.9g} follows")

    def _check_condition(self, condition: object, facts: Facts) -> None:
        """The condition names the domains and the rules that were taken from the data."""
        expected = "; ".join(_conditions(facts)) or None
        if condition != expected:
            asked = brief(expected)
            self.problems.append(f"condition is {brief(condition)}; what was taken from the data asks for {asked}")

    def _check_stamp(self, receipt: Json) -> None:
        stamp = optional_text_of(receipt["stamp"], "stamp")
        self.unverified = stamp is not None
        self.test_noise = one_of(receipt["noise"], "noise", ("operating system", "test")) == "test"
        if self.test_noise and stamp is None:
            self.problems.append("the noise came from a test source, but the receipt is not stamped")

    def _check_published(self, receipt: Json, facts: Facts, tree: Tree) -> None:
        says_so = facts.parameters.get("as_published", False) is not False
        if (tree.as_published or says_so) and receipt["stamp"] is None:
            self.problems.append("mechanisms were run as published, but the receipt is not stamped")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Budget:
    """What a ledger may spend: an amount of its measure, and a part of delta for thresholds."""

    amount: Fraction
    thresholds: Fraction


def _head(value: object) -> Json:
    """The receipt, if it is one of this version."""
    if not isinstance(value, dict):
        raise ReceiptError("the receipt is not a JSON object")
    version = value.get("version")
    if type(version) is int and version == 1:
        raise ReceiptError(_OLD)
    if type(version) is not int or version != VERSION:
        raise ReceiptError(f"version is {brief(version)}, not {VERSION}, which is the one that this verifier reads")
    receipt = fields_of(value, "receipt", _FIELDS)
    identifier_of(receipt["id"], "id")
    text_of(receipt["software"], "software")
    return receipt


def _delta(value: object) -> Fraction:
    delta, (least, most) = rational_of(value, "delta"), _DELTAS
    if delta != 0 and not least <= delta < most:
        raise ReceiptError(f"delta is neither 0/1 nor from {least} to below {most}")
    return delta


def _budget(value: object, delta: Fraction) -> _Budget:
    """Without a delta an epsilon for adding or removing one entity, else a rho for the receipt's own neighbours."""
    measure, more = ("rho", ("thresholds",)) if delta else ("epsilon", ())
    if not isinstance(value, dict) or value.get("measure") != measure:
        raise ReceiptError(f"budget.measure is not {measure}, which is what is counted with this delta")
    budget = fields_of(value, "budget", ("measure", "amount", *more))
    thresholds = rational_of(budget["thresholds"], "budget.thresholds") if delta else Fraction(0)
    if delta and thresholds >= delta:
        raise ReceiptError("budget.thresholds leaves nothing of delta")
    return _Budget(amount=positive_of(budget["amount"], "budget.amount"), thresholds=thresholds)


def _overspent(ledger: Json, budget: _Budget, total: Fraction, delta: Fraction) -> Iterator[str]:
    if rational_of(ledger["total"], "ledger.total") != total:
        yield f"ledger.total is {ledger['total']}, but the nodes add up to {total}"
    if total > budget.amount:
        yield f"the nodes add up to {total}, more than budget.amount"
    if rational_of(ledger["delta"], "ledger.delta") != delta:
        yield f"ledger.delta is {ledger['delta']}, but thresholds add up to {delta}"
    if delta > budget.thresholds:
        yield f"thresholds cost a delta of {delta}, more than budget.thresholds"


def _claims_without_event(facts: Facts, tree: Tree) -> Iterator[str]:
    """What was found or chosen with budget must have an event, and what has an event must not pass for public."""
    private = set(_from(facts, PRIVATE))
    for place in sorted(private - tree.begun):
        yield f"{shown_place(place)}: the origin of its domain is {PRIVATE}, but no event of the ledger searches for it"
    for place in sorted(tree.begun - private):
        yield f"{shown_place(place)}: an event searches for its domain, so the origin of the domain must be {PRIVATE}"
    for place in sorted(tree.looked_at - tree.begun - private):
        yield f"{shown_place(place)}: an event looks at its values, but the origin of its domain is not {PRIVATE}"
    for name, table in facts.tables.items():
        if (name in tree.chosen) != (table.limit_from == "chosen"):
            yield f"{shown(name)}: rows_per_entity is chosen if and only if an event chooses it"
    for place, computed in facts.computed.items():
        if computed.origin == FOUND and (place, computed.equals) not in tree.compared:
            yield f"{shown_place(place)}: has the origin {FOUND} as a computed column, but no event compares it"
    for place, relative in facts.relative.items():
        if relative.origin == FOUND and (place, relative.base) not in tree.related:
            yield f"{shown_place(place)}: has the origin {FOUND} as a difference, but no event asks for its base"


def _epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    if rho > MAX_RHO:
        raise ReceiptError("rho is so large that it protects nothing")
    return epsilon_of(rho, delta)


def _rounded_up(epsilon: Fraction) -> Fraction:
    """An epsilon, rounded up to twelve decimals."""
    return Fraction(math.ceil(epsilon * 10**12), 10**12)


# -- what is taken for granted -----------------------------------------------------------------------------------------


def decimal_text(value: Fraction) -> str:
    """A rational as a decimal number, rounded up to twelve digits.

    >>> decimal_text(Fraction(16, 5)), decimal_text(Fraction(1, 10**9))
    ('3.2', '1e-9')
    """
    rounded = _ROUND_UP.divide(Decimal(value.numerator), Decimal(value.denominator)).normalize(_ROUND_UP)
    return f"{rounded:f}" if -6 <= rounded.adjusted() <= 12 else f"{rounded:g}"


def _sum(values: list[Fraction]) -> str:
    """A sum, rounded up: of rationals with many denominators it would grow long."""
    total = Decimal(0)
    for value in values:
        total = _ROUND_UP.add(total, _ROUND_UP.divide(Decimal(value.numerator), Decimal(value.denominator)))
    return decimal_text(Fraction(total))


def _from(facts: Facts, origin: str) -> list[Place]:
    """The columns whose domain has this origin, in order."""
    return sorted(place for place, domain in facts.domains.items() if domain.origin == origin)


def _from_data(facts: Facts) -> list[Place]:
    """The columns of which something was taken from the data: their domain, or what they equal."""
    return sorted({*_from(facts, DATA), *_computed_from(facts, DATA)})


def _computed_from(facts: Facts, origin: str) -> list[Place]:
    return [place for place, column in facts.computed.items() if column.origin == origin]


def _conditions(facts: Facts) -> Iterator[str]:
    """What must be public for the promise to hold: domains and rules that were taken from the data."""
    for what, places in (("domains", _from_data(facts)), ("rules", sorted(facts.rules))):
        if places:
            yield _CONDITION.format(what, ", ".join(map(quoted_place, places)))


def _full_condition(facts: Facts) -> str | None:
    """What is from the data must be public, and what earlier releases cost is to be added."""
    clauses = list(_conditions(facts))
    if facts.earlier:
        digests = listed(release.receipt for release in facts.earlier)
        clauses.append(f"what it costs adds to what the earlier releases cost on which it builds: {digests}")
    return "; ".join(clauses) or None


def with_people(verdict: Verdict, copied: Mapping[str, Mapping[str, str]]) -> Verdict:
    """Add which public tables look like people, given the types of their columns, where the receipt does not say it."""
    found = {table: people_columns(table, columns) for table, columns in copied.items()}
    lines = _people_sentences({table: columns for table, columns in found.items() if columns})
    return replace(verdict, assumptions=tuple(dict.fromkeys((*verdict.assumptions, *lines))))


def _people_sentences(people: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Sentences on public tables that look like people, by table and column."""
    for table, columns in sorted(people.items()):
        names = listed(with_bytes(shown(name), kind) for name, kind in columns.items())
        yield f"Public table {shown(table)} has columns that look like people: {names}."


def _assumptions(facts: Facts) -> Iterator[str]:
    """Sentences on what the promise takes for granted."""
    yield "The schema is public, and real rows keep its keys, NOT NULL and rules: data that do not are refused."
    if facts.sizes:
        sizes = listed(f"{shown(table)} ({rows})" for table, rows in facts.sizes.items())
        yield f"The numbers of rows of these tables are public: {sizes}."
    if copied := [name for name in facts.public_tables if name not in facts.made_up]:
        yield f"These tables are public: {listed(map(shown, copied))}."
    yield from _people_sentences(facts.people)
    if facts.made_up:
        made = listed(f"{shown(table)} ({rows})" for table, rows in facts.made_up.items())
        yield f"No row of these tables was read; so many rows were made up from the schema: {made}."
    if facts.public_keys:
        keys = listed(f"{shown(table)}({', '.join(map(shown, columns))})" for table, columns in facts.public_keys)
        yield f"The values of these keys are public, as public tables reference them: {keys}."
    if facts.references:
        keys = listed(sorted(map(str, facts.references)))
        yield f"That rows of other entities reference an entity is not protected; the keys are: {keys}."
    if facts.implied:
        keys = listed(sorted(map(str, facts.implied)))
        yield f"These keys say whose a row is, before the owner key of its table, which may lead elsewhere: {keys}."
    if cut := {*map(str, facts.inside), *_cut_owner_keys(facts)}:
        keys = listed(sorted(cut))
        yield f"These keys count as NULL where they reference rows of another entity: {keys}."
    if facts.orphans == "null":
        yield "Keys to missing rows were counted as NULL; rows with the same missing owner are one entity together."
    for sentence, places in _column_assumptions(facts):
        if places:
            yield f"{sentence}: {listed(map(shown_place, places))}."
    taken: dict[str, set[Place]] = {release.receipt: set() for release in facts.earlier}
    for place, digest in facts.taken_from_releases():
        taken[digest].add(place)
    yield from (_release_sentence(release, sorted(taken[release.receipt])) for release in facts.earlier)


def _cut_owner_keys(facts: Facts) -> Iterator[str]:
    """The owner keys of tables in which another key says whose a row is."""
    for table in {link.table for link in facts.implied}:
        owner = facts.tables[table]
        if owner.owner is not None and owner.key is not None and owner.owner not in facts.lists:
            yield str(Link(table=table, columns=owner.key, target=owner.owner))


def _column_assumptions(facts: Facts) -> Iterator[tuple[str, list[Place]]]:
    """What is taken for granted of columns."""
    data = _from(facts, DATA)
    declared = [place for place, relative in facts.relative.items() if relative.origin == DECLARED]
    yield "The publisher declared these domains, which count as public", _from(facts, DECLARED)
    yield "The schema is public, and gives these domains", _from(facts, SCHEMA)
    yield "These domains were taken from the data and count as public", data
    computed = "The publisher declared these columns as computed, which counts as public"
    yield computed, _computed_from(facts, DECLARED)
    relative = "The publisher declared these columns as differences from others, which counts as public"
    yield relative, [place for place in declared if place not in data]
    yield "The schema is public, and says how these columns are computed", _computed_from(facts, SCHEMA)
    taken = "That these columns are computed was taken from the data and counts as public"
    yield taken, _computed_from(facts, DATA)


def _release_sentence(release: Release, places: list[Place]) -> str:
    taken = f"; {listed(map(shown_place, places))} come from there" if places else ""
    return (
        f"This release builds on an {EARLIER}, receipt {release.receipt}: epsilon {decimal_text(release.epsilon)}, "
        f"delta {decimal_text(release.delta)} for {release.neighbours} neighbours{taken}. The costs add up."
    )
