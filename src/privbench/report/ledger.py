"""Where the budget went: the ledger's tree as bars, each as wide as what it cost.

Parts of a partition cost their maximum, so of several parts the costliest stands for all. Draws of one kind in
one scope are joined. All of it is published in the receipt.
"""

from dataclasses import dataclass
from fractions import Fraction
from html import escape
from typing import Any

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


def ledger_section(receipt: dict[str, Any]) -> str:
    """The picture of the budget."""
    root, said = budget_bars(receipt), receipt["budget"]
    counts_rho, factor = "rho" in said, int(said.get("factor", 1))
    budget, delta = Fraction(said["rho" if counts_rho else "add_remove"]), float(Fraction(receipt["delta"]))
    chance = f", δ = {delta:g}" if delta else ""
    lead = (
        f"The promise is <b>ε = {float(Fraction(receipt['epsilon'])):g}{chance}</b> for "
        f"{escape(receipt['neighbours'])} neighbours; {_share(root.cost, budget)} of it was spent. "
        + (f"It follows from ρ = {float(budget):.4g} (zCDP), which adds up. " if counts_rho else "")
        + "Each bar is as wide as its share; below it stands what it was spent on. "
        + (PARALLEL if any(node["kind"] == "partition" for node in receipt["ledger"]["nodes"]) else "")
    )
    for note in (receipt["stamp"], receipt["condition"]):
        lead += f'<br><span class="note">{escape(note)}</span>' if note else ""
    body = "".join(
        f'<tr><td>{escape(bar.label)}</td><td class="n">{float(bar.cost * factor):.3g}</td>'
        f'<td class="n">{_share(bar.cost, root.cost)}</td></tr>'
        for bar in sorted(root.below, key=lambda b: -b.cost)
    )
    listed = (
        '<details><summary>As a table</summary><table><thead><tr><th>scope</th><th class="n">'
        f'{"ρ" if counts_rho else "ε"}</th><th class="n">share</th></tr></thead><tbody>{body}</tbody></table></details>'
    )
    picture = f'<div class="icicle">{_drawn(root, root.cost or Fraction(1), root.cost * factor, 0)}</div>'
    return section("ledger", "Where the privacy budget went", lead, picture + listed)


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
        return Bar(label=node["query"], cost=Fraction(node["rho"] if "rho" in node else node["epsilon"]))
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
            cost=sum((b.cost for b in same), Fraction(0)),
            below=_joined([b for one in same for b in one.below]),
        )
        for label, same in by_label.items()
    )


def _drawn(bar: Bar, whole: Fraction, epsilon: Fraction, depth: int) -> str:
    parts = [b for b in bar.below if b.cost >= whole * THINNEST] if depth < MAX_DEPTH else []
    shown = bar.label.removeprefix("histogram of ").removeprefix("weights of ")
    title = f"{bar.label}: {_share(bar.cost, whole)} of what was spent"
    inner = "".join(
        f'<div style="width:{float(100 * part.cost / bar.cost):.3f}%">{_drawn(part, whole, epsilon, depth + 1)}</div>'
        for part in parts
    )
    return (
        f'<div class="bar d{depth % 4}" tabindex="0" data-tip="{escape(title)}">{escape(shown)} '
        f"<small>{_share(bar.cost, whole)}</small></div>" + (f'<div class="row">{inner}</div>' if inner else "")
    )


def _share(part: Fraction, whole: Fraction) -> str:
    return f"{float(100 * part / whole) if whole else 0:.3g} %"
