"""Where the budget went: the ledger's tree as bars, each as wide as what it cost.

Parts of a partition cost their maximum, so of several parts the costliest stands for all. Draws of one kind in
one scope are joined. All of it is published in the receipt, whose queries are values.
"""

from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any

from privbench.privacy.describe import describe, describe_axes
from privbench.privacy.receipt import display_name
from privbench.report.page import section

MAX_DEPTH = 7
THINNEST = Fraction(1, 400)
"""Bars below this share of the whole are not drawn; their names could not be read."""

PARALLEL = "Blocks of disjoint rows run in parallel and cost as much as the costliest of them, which is shown."


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """What one scope, or all draws of one kind in it, cost."""

    label: str
    cost: Fraction
    below: tuple["Bar", ...] = ()
    short: str = ""
    """What stands on the bar, where that is less than the label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Budget:
    """What was to be spent: `factor` times the amount is epsilon, unless it is counted in rho."""

    rho: bool
    amount: Fraction
    factor: int


def ledger_section(receipt: dict[str, Any]) -> str:
    """The picture of the budget."""
    root, budget = budget_bars(receipt), _budget(receipt)
    delta = float(Fraction(receipt["delta"]))
    with_delta = f", δ = {delta:g}" if delta else ""
    lead = (
        f"The promise is <b>ε = {float(Fraction(receipt['epsilon'])):g}{with_delta}</b> for "
        f"{escape(receipt['neighbours'])} neighbours; {_share(root.cost, budget.amount)} of it was spent. "
        + (f"It follows from ρ = {float(budget.amount):.4g} (zCDP), which adds up. " if budget.rho else "")
        + "Each bar is as wide as its share; below it stands what it was spent on. "
        + (PARALLEL if any(node["kind"] == "partition" for node in receipt["ledger"]["nodes"]) else "")
    )
    for note in (receipt["stamp"], receipt["condition"]):
        lead += f'<br><span class="note">{escape(note)}</span>' if note else ""
    body = "".join(
        f'<tr><td>{escape(bar.label)}</td><td class="n">{float(bar.cost * budget.factor):.3g}</td>'
        f'<td class="n">{_share(bar.cost, root.cost)}</td></tr>'
        for bar in sorted(root.below, key=lambda b: -b.cost)
    )
    listed = (
        '<details><summary>As a table</summary><table><thead><tr><th>scope</th><th class="n">'
        f'{"ρ" if budget.rho else "ε"}</th><th class="n">share</th></tr></thead><tbody>{body}</tbody></table></details>'
    )
    picture = f'<div class="icicle">{_drawn(root, root.cost or Fraction(1), 0)}</div>'
    return section("ledger", "Where the privacy budget went", lead, picture + listed)


def _budget(receipt: dict[str, Any]) -> _Budget:
    budget = receipt["budget"]
    rho = budget["measure"] == "rho"
    factor = 2 if receipt["neighbours"] == "replace" and not rho else 1
    return _Budget(rho=rho, amount=Fraction(budget["amount"]), factor=factor)


def budget_bars(receipt: dict[str, Any]) -> Bar:
    """The tree of a receipt's ledger."""
    nodes = receipt["ledger"]["nodes"]
    below: list[list[Bar]] = [[] for _ in nodes]
    for at in range(len(nodes) - 1, 0, -1):
        # Parents come before their children, so that from the end all children of a node are done.
        below[nodes[at]["parent"]].insert(0, _bar(nodes[at], below[at]))
    return _bar(nodes[0], below[0])


def _bar(node: dict[str, Any], below: list[Bar]) -> Bar:
    if node["kind"] == "event":
        cost = Fraction(node["rho"] if "rho" in node else node["epsilon"])
        query = node["query"]
        return Bar(label=f"{display_name(query['table'])}: {describe(query)}", cost=cost, short=describe_axes(query))
    cost = Fraction(node["total"])
    if node["kind"] == "partition":
        worst = max(below, key=lambda bar: bar.cost, default=None)
        label = f"{len(below)} blocks in parallel"
        return Bar(label=label, cost=cost, below=() if worst is None else worst.below)
    return Bar(label=node.get("label") or node["kind"], cost=cost, below=_joined(below))


def _joined(bars: list[Bar]) -> tuple[Bar, ...]:
    """Draws of the same kind as one bar."""
    by_label: dict[str, list[Bar]] = {}
    for bar in bars:
        by_label.setdefault(bar.label, []).append(bar)
    return tuple(
        same[0]
        if len(same) == 1
        else Bar(
            label=f"{label} × {len(same)}",
            short=f"{same[0].short or label} × {len(same)}",
            cost=sum((b.cost for b in same), Fraction(0)),
            below=_joined([b for one in same for b in one.below]),
        )
        for label, same in by_label.items()
    )


def _drawn(bar: Bar, whole: Fraction, depth: int) -> str:
    parts = [b for b in bar.below if b.cost >= whole * THINNEST] if depth < MAX_DEPTH else []
    title = f"{bar.label}: {_share(bar.cost, whole)} of what was spent"
    inner = "".join(
        f'<div style="width:{float(100 * part.cost / bar.cost):.3f}%">{_drawn(part, whole, depth + 1)}</div>'
        for part in parts
    )
    return (
        f'<div class="bar d{depth % 4}" tabindex="0" data-tip="{escape(title)}">{escape(bar.short or bar.label)} '
        f"<small>{_share(bar.cost, whole)}</small></div>" + (f'<div class="row">{inner}</div>' if inner else "")
    )


def _share(part: Fraction, whole: Fraction) -> str:
    return f"{float(100 * part / whole) if whole else 0:.3g} %"
