"""`privbench show`: what a model holds, where its budget went, and the network of a table."""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import click

from privbench.cli.output import decimal, echo, print_json, print_table
from privbench.errors import SpecError
from privbench.pipeline.model import Model
from privbench.schema.choices import closest
from privbench.spn.draw import tree_text
from privbench.spn.links import COMPONENT
from privbench.spn.nodes import Leaf, Product, Sum, walk


def show_model(model: Model, *, as_json: bool) -> None:
    """Print the tables of a model and what it promises."""
    promise = {key: model.receipt[key] for key in ("epsilon", "neighbours", "condition", "stamp")}
    tables = [{"table": name, **_summary(model, name)} for name in model.protection.order]
    if as_json:
        print_json({**promise, "unit": model.protection.entity, "tables": tables, "public": list(model.public)})
        return
    what = {"replace": "replacing", "add-remove": "adding or removing"}[promise["neighbours"]]
    echo(f"epsilon {decimal(promise['epsilon']):g} for {what} one entity of {model.protection.entity}")
    for key in ("stamp", "condition"):
        if promise[key]:
            echo(promise[key])
    click.echo()
    print_table([name.replace("_", " ") for name in tables[0]], [list(t.values()) for t in tables])
    if model.public:
        echo(f"public, copied: {', '.join(model.public)}")


def show_tree(model: Model, table: str) -> None:
    """Print the network of a table."""
    if table not in model.tables:
        raise SpecError(f"--tree {table}: the model has no network of it. {closest(table, model.tables)}")
    labels = {column: codec.labels() for column, codec in model.codecs[table].items()}
    echo(tree_text(model.tables[table].network, labels=labels))


def show_ledger(receipt: Mapping[str, Any], *, as_json: bool) -> None:
    """Print what the budget was spent on."""
    ledger = receipt["ledger"]
    if as_json:
        print_json(ledger)
        return
    budget = Fraction(receipt["budget"]["add_remove"])
    rows = list(_spending(ledger["nodes"], budget))
    factor = receipt["budget"]["factor"]
    click.echo(f"epsilon {decimal(receipt['epsilon']):g} = {factor} x {float(budget):g} (adding or removing an entity)")
    print_table(("spent on", "draws", "epsilon", "share %"), rows)


def _spending(nodes: list[dict[str, Any]], budget: Fraction) -> Iterator[tuple[str, int, float, float]]:
    """The scopes and queries right below the root, with what each cost and how many draws it took."""
    draws = [node.get("draws", 0) for node in nodes]
    for at in range(len(nodes) - 1, 0, -1):
        draws[nodes[at]["parent"]] += draws[at]
    for at, node in enumerate(nodes):
        if node["parent"] == 0:
            cost = Fraction(node["epsilon"] if node["kind"] == "event" else node["total"])
            what = f"{node['table']}: {node['query']}" if node["kind"] == "event" else node["label"]
            if cost:
                yield what, draws[at], float(cost), float(100 * cost / budget)


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
        "keys": len(model.tables[name].links),
    }
