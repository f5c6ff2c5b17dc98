"""`privbench fit --dry-run`: the plan of a fit, for people or as JSON."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from enum import Enum
from fractions import Fraction
from typing import Any

import click

from privbench.cli.output import REPLACING, echo, error_json, few, print_json, print_table, warn
from privbench.errors import BudgetError
from privbench.fitting.plan import Plan
from privbench.methods.forecast import TableForecast


def show_plan(plan: Plan, *, as_json: bool) -> None:
    """Print a plan. If a fit would be refused, that is an error: after the plan, or in its JSON."""
    if as_json:
        error = {} if plan.refusal is None else error_json(BudgetError.__name__, plan.refusal, 2)
        print_json({**_plain(asdict(plan)), **error})
        sys.exit(2 if error else 0)
    _print_plan(plan)
    warn(plan.warnings)
    if plan.refusal is not None:
        raise BudgetError(plan.refusal)


def _print_plan(plan: Plan) -> None:
    chance = f", delta {float(plan.delta):g}" if plan.delta else ""
    what = f"{REPLACING[plan.neighbours]} one entity of {plan.entity}"
    echo(f"Plan for epsilon {float(plan.epsilon):g}{chance} for {what}, method {plan.method}.")
    echo(f"No data were read and nothing was spent. To spend: {plan.measure} {float(plan.budget):.4g}{_halved(plan)}.")
    if plan.assumed:
        assumed = few([f"{name}={plan.rows[name]}" for name in plan.assumed])
        echo(f"Assumed rows: {assumed}. Say better with --rows {plan.assumed[0]}=N.")
    if plan.computed:
        echo(f"Computed, at no cost: {few(list(plan.computed))}.")
    if plan.finding is not None:
        shares = (float(100 * amount / plan.budget) for amount in (plan.finding.least, plan.finding.most))
        echo(
            f"Finding what {len(plan.finding.columns)} columns equal or lie near to, by the rows around them, takes "
            "{:.2g} % of the budget if nothing is found, {:.2g} % at most.".format(*shares)
        )
    if plan.maps:
        share = float(100 * plan.maps / plan.budget)
        echo(f"Maps of columns that others determine take {share:.3g} % of the budget. Declared maps cost nothing.")
    if plan.domains is not None:
        share = float(100 * plan.domains.amount / plan.budget)
        outside = f"; what fewer than about {plan.domains.seen:,.0f} entities have may lie outside"
        echo(
            f"Finding domains takes up to {share:.3g} % of the budget ({few(list(plan.domains.columns))})"
            f"{outside if plan.domains.seen else ''}. Declared domains cost nothing."
        )
        if plan.domains.strings:
            least = "none" if plan.domains.listed is None else f"those that about {plan.domains.listed:,} entities have"
            echo(
                f"Strings that will be listed, and published as they are: {least} ({few(list(plan.domains.strings))})."
            )
    click.echo()
    head: tuple[str, ...] = ("table", "share %", plan.measure, "rows", "columns", "forecast")
    print_table(head, (_table(plan, table) for table in plan.tables))
    click.echo("\nHow: r is entities per unit of noise")
    head = ("table", "given", "r", "parents", "bins", "pairs", "hinted", "single %", "choice %")
    print_table(head, map(_how, plan.tables))
    click.echo(
        "\nEntities needed, and the weakest dependence between two columns that will be found (total variation, %)"
    )
    head = ("table", "singles from", "pairs from", "cell noise", "2 x 2 codes %", "typical %")
    print_table(head, map(_needs, plan.tables))
    click.echo("\nSingle columns, in entities; a code stands out at 4 standard deviations of the noise")
    head = ("table", "column", "codes", "noise", "stands out", "codes visible")
    print_table(head, (row for table in plan.tables for row in _columns(table)))
    click.echo(f"\nRoughly {plan.seconds:,.1f} CPU-seconds and {plan.megabytes:,.0f} MB.")


def _halved(plan: Plan) -> str:
    """Why that is not the epsilon of the promise."""
    if plan.budget == plan.epsilon:
        return ""
    if plan.delta:
        return " (it implies epsilon and delta)"
    return " (half of epsilon: replacing an entity counts as removing one and adding one)"


def _table(plan: Plan, table: TableForecast) -> tuple[object, ...]:
    share = float(100 * table.amount / plan.budget)
    return table.table, share, float(table.amount), plan.rows[table.table], len(table.columns), table.outlook.value


def _how(table: TableForecast) -> tuple[object, ...]:
    plan = table.settings
    shares = 100 * plan["single_share"], 100 * plan["choice_share"]
    numbers = (plan[name] for name in ("parents", "bins", "pairs", "hinted"))
    return table.table, len(table.given), table.ratio, *numbers, *shares


def _needs(table: TableForecast) -> tuple[object, ...]:
    if table.pairs is None:
        return table.table, table.singles_from, table.pairs_from, "-", "-", "-"
    pairs = table.pairs
    seen = pairs.noise, 100 * pairs.least_dependence, 100 * pairs.dependence
    return table.table, table.singles_from, table.pairs_from, *(f"{number:,.3g}" for number in seen)


def _columns(table: TableForecast) -> Iterable[tuple[object, ...]]:
    for column in table.columns:
        yield table.table, column.column, column.codes, column.noise, column.stands_out, column.visible


def _plain(value: Any) -> Any:
    """A plan in the words of JSON; rationals as the receipt writes them."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Fraction) else value
