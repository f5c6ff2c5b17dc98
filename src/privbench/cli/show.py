"""`privbench show` and `verify`: what a model holds, where its budget went, the network of a table, a verdict."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import click

from privbench.cli.output import decimal, echo, print_json, print_table, shortened, warn
from privbench.errors import SpecError
from privbench.fitting.derived import derived_columns
from privbench.fitting.found_lists import found_lists
from privbench.fitting.warnings import fit_warnings
from privbench.model.model import Model
from privbench.schema.choices import closest
from privbench.spn.clique import CliqueTree
from privbench.spn.draw import tree_text
from privbench.spn.feature_names import COMPONENT, shown
from privbench.spn.nodes import Leaf, Product, Sum, walk
from privbench_verify.receipt import Verdict

NODES = ("sums", "leaves", "in_cliques")
"""What a line of the table tells of a network."""


def show_model(model: Model, *, as_json: bool) -> None:
    """Print the tables of a model, what it promises, and warnings."""
    promise = {key: model.receipt[key] for key in ("epsilon", "delta", "neighbours", "condition", "stamp")}
    tables = [{"table": name, **_summary(model, name)} for name in model.protection.order]
    warnings = fit_warnings(model)
    lists, derived = found_lists(model), derived_columns(model.protection)
    if as_json:
        words = {"unit": model.protection.entity, "tables": tables, "public": list(model.public), "lists_found": lists}
        words["derived"] = list(derived)
        print_json({**promise, **words, "warnings": warnings})
        return
    what = {"replace": "replacing", "add-remove": "adding or removing"}[promise["neighbours"]]
    echo(f"{_promised(model.receipt)} for {what} one entity of {model.protection.entity}")
    if promise["stamp"]:
        echo(promise["stamp"])
    if promise["condition"]:
        echo(shortened(promise["condition"]))
    click.echo()
    print_table(("table", "role", "rows", "per entity", "columns", "keys", "network"), map(_cells, tables))
    if model.public:
        echo(f"public, copied: {', '.join(model.public)}")
    if derived:
        echo(f"derived: {', '.join(derived)}")
    if lists:
        listed = ", ".join(f"{column} ({count})" for column, count in lists.items())
        echo(f"texts found with budget, published as they are: {listed}")
    warn(warnings)


def show_tree(model: Model, table: str, *, as_json: bool) -> None:
    """Print the network of a table."""
    if table not in model.tables:
        raise SpecError(f"--tree {table}: the model has no network of it. {closest(table, model.tables)}")
    labels = {column: codec.labels() for column, codec in model.codecs[table].items()}
    text = tree_text(model.tables[table].network, labels=labels)
    if as_json:
        print_json({"table": table, "tree": text.splitlines()})
        return
    echo(text)
    if shown(COMPONENT) in text:
        echo(f"{shown(COMPONENT)}: which part of the table a row is of. The rows of a part have keys drawn together.")


def show_ledger(receipt: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what the budget was spent on."""
    ledger = receipt["ledger"]
    if as_json:
        print_json(ledger)
        return
    if "rho" in receipt["budget"]:
        currency, budget = "rho", Fraction(receipt["budget"]["rho"])
        click.echo(f"{_promised(receipt)}: follows from rho {float(budget):.6g} (zCDP, {receipt['neighbours']})")
        if thresholds := receipt["budget"].get("thresholds"):
            spent = f"{float(Fraction(ledger['delta'])):.3g} of {float(Fraction(thresholds)):.3g}"
            click.echo(f"of delta, thresholds of frequent values spent {spent}; rho implies epsilon with the rest")
    else:
        currency, budget = "epsilon", Fraction(receipt["budget"]["add_remove"])
        factor = receipt["budget"]["factor"]
        click.echo(f"{_promised(receipt)} = {factor} x {float(budget):g} (adding or removing an entity)")
    print_table(("spent on", "draws", currency, "share %"), _spending(ledger["nodes"], currency, budget))


def show_verdict(verdict: Verdict, *, as_json: bool) -> None:
    """Print what a receipt is worth, problems first."""
    if as_json:
        print_json(
            {
                "status": verdict.status,
                "epsilon": None if verdict.epsilon is None else str(verdict.epsilon),
                "delta": None if verdict.delta is None else str(verdict.delta),
                "spent": None if verdict.spent is None else str(verdict.spent),
                "condition": verdict.condition,
                "problems": list(verdict.problems),
            }
        )
        return
    click.echo(f"status: {verdict.status}")
    for problem in verdict.problems:
        echo(f"problem: {problem}")
    if verdict.epsilon is not None and verdict.spent is not None:
        chance = f" with delta {float(verdict.delta):g}" if verdict.delta else ""
        click.echo(f"epsilon promised {float(verdict.epsilon):g}{chance}, spent {float(verdict.spent):.6g}")
    if verdict.condition:
        echo(shortened(verdict.condition))


def _promised(receipt: Mapping[str, Any]) -> str:
    """Epsilon, and delta where there is one."""
    delta = decimal(receipt["delta"])
    return f"epsilon {decimal(receipt['epsilon']):g}" + (f", delta {delta:g}" if delta else "")


def _spending(nodes: list[dict[str, Any]], currency: str, budget: Fraction) -> Iterator[tuple[str, int, float, float]]:
    """The scopes and queries right below the root, with what each cost and how many draws it took."""
    draws = [node.get("draws", 0) for node in nodes]
    for at in range(len(nodes) - 1, 0, -1):
        draws[nodes[at]["parent"]] += draws[at]
    for at, node in enumerate(nodes):
        if node["parent"] == 0:
            cost = Fraction(node[currency] if node["kind"] == "event" else node["total"])
            what = f"{node['table']}: {node['query']}" if node["kind"] == "event" else node["label"]
            if cost:
                yield what, draws[at], float(cost), float(100 * cost / budget)


def _cells(summary: Mapping[str, Any]) -> tuple[object, ...]:
    """A line of the table: counts of nodes in words."""
    network = ", ".join(f"{name.replace('_', ' ')} {summary[name]}" for name in NODES if summary[name])
    limit = "any" if summary["per_entity"] is None else summary["per_entity"]
    return (*(summary[name] for name in ("table", "role", "rows")), limit, summary["columns"], summary["keys"], network)


def _summary(model: Model, name: str) -> dict[str, Any]:
    nodes = list(walk(model.tables[name].network))
    unit = model.receipt["unit"]["tables"][name]
    return {
        "role": unit["role"],
        "rows": round(model.tables[name].rows),
        "per_entity": unit["rows_per_entity"],
        "columns": len(model.codecs[name]),
        "sums": sum(isinstance(n, Sum) for n in nodes),
        "products": sum(isinstance(n, Product) for n in nodes),
        "leaves": sum(isinstance(n, Leaf) and n.column != COMPONENT for n in nodes),
        "in_cliques": sum(len(n.columns) for n in nodes if isinstance(n, CliqueTree)),
        "keys": len(model.tables[name].links),
    }
