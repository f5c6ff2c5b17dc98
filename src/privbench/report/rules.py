"""The panel of rules: each rule, and the share of real and synthetic rows that keep it."""

from html import escape

from privbench.evaluation.result import Result, RuleResult
from privbench.report.page import section, table
from privbench.report.summary import Grade

_CLOSE = 0.01
"""A rule that the data do not keep in every row is close if its shares differ by no more than this."""
_ORIGINS = {"declared": "schema or spec", "data": "suggested by the data"}


def rules_section(result: Result) -> str:
    """The rules, those that synthetic rows break first."""
    broken = [rule for rule in result.rules if rule.synthetic is not None and rule.synthetic < 1]
    lead = f"{len(result.rules)} rules, by the share of rows that keep them. A row in which a rule is NULL keeps it. "
    lead += f"{len(broken)} of them are broken by synthetic rows." if broken else "No synthetic row breaks one."
    order = sorted(result.rules, key=lambda rule: (rule not in broken, rule.table))
    rows = [
        (escape(r.table), f"<code>{escape(r.rule)}</code>", _ORIGINS[r.origin], exact(r.real), _graded(r))
        for r in order
    ]
    return section(
        "rules", "Do rows keep the rules?", lead, table(("table", "rule", "from", "real", "synthetic"), rows, numbers=3)
    )


def _graded(rule: RuleResult) -> str:
    return f'<span class="chip {grade_rule(rule).value}">{exact(rule.synthetic)}</span>'


def grade_rule(rule: RuleResult) -> Grade:
    """How well synthetic rows keep a rule: all of them, about as many as real ones, or fewer."""
    if rule.synthetic is None:
        return Grade.UNKNOWN
    if rule.synthetic == 1:
        return Grade.FLOOR
    if rule.real is not None and rule.real < 1 and rule.synthetic >= rule.real - _CLOSE:
        return Grade.CLOSE
    return Grade.FAR


def exact(share: float | None) -> str:
    """A share of rows as people read it; only all of them are 100 %.

    >>> exact(1.0), exact(0.99999), exact(0.64), exact(0.00001), exact(None)
    ('100 %', '99.99 %', '64 %', '0.001 %', '–')
    """
    if share is None:
        return "–"
    shown = f"{min(100 * share, 99.99):.4g}" if share < 1 else "100"
    return f"{shown if share == 0 or float(shown) >= 0.001 else '0.001'} %"
