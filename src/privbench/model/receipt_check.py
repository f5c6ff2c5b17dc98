"""A model and its receipt must tell the same story: who is protected, what is public, and a charge for every array.

A receipt that adds up by itself could still be that of another model, or leave out what this one was made of.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from privbench.encode.magnitude import Magnitudes
from privbench.methods.registry import DEFAULT
from privbench.methods.tree.method import TREE
from privbench.model.model import Model
from privbench.model.tree_draws import tree_draws
from privbench.privacy.domain_vault import frequent_query, heavy_hitters_query, magnitudes_query, texts_query
from privbench.privacy.receipt import PublicFacts, claims
from privbench.schema.domain import Bins, Origin, Values
from privbench.schema.spec import Sizes
from privbench.schema.types import Kind
from privbench.schema.unit import Neighbours
from privbench.spn.clique import CliqueTree
from privbench.spn.feature_names import COMPONENT
from privbench.spn.links import DegreeLink, SlotLink
from privbench.spn.nodes import Leaf, Sum, walk
from privbench_verify.receipt import Verdict, verify_receipt

COUNTED = ("discrete-laplace", "discrete-gaussian", "frequent-values")
"""The mechanisms that put noise on counts."""
Draw = tuple[str, str, int, bool]
"""A table, a query as the ledger calls it, how many numbers it drew, and whether of weights instead of rows."""


def verify_model(model: Model) -> Verdict:
    """Verify the receipt of a model, and that it is the receipt of this model."""
    verdict = verify_receipt(model.receipt)
    if verdict.problems:
        return verdict
    if set(model.receipt["unit"]["tables"]) != set(model.tables):
        return replace(verdict, status="failed", problems=("the receipt is about other tables than the model",))
    problems = (*_other_claims(model), *(tuple(_foreign(model)) or _unpaid(model)))
    return replace(verdict, status="failed", problems=problems) if problems else verdict


def _other_claims(model: Model) -> Iterator[str]:
    """What the receipt says otherwise than the model's spec."""
    expected = claims(model.protection, _facts(model), model.receipt["ledger"]["nodes"])
    if "units_per_entity" not in model.receipt["unit"]:  # as in receipts from before rows had weights
        expected["unit"].pop("units_per_entity")
    for name, value in expected.items():
        found = model.receipt.get(name)
        if found != value:
            parts = [k for k in value if found.get(k) != value[k]] if isinstance(found, dict) else []
            yield f"{'.'.join([name, *parts[:1]])} is not what the model's spec says"


def _facts(model: Model) -> PublicFacts:
    """The public facts by the spec; numbers that a spec does not hold are taken from the receipt."""
    spec, protection, receipt = model.spec, model.protection, model.receipt
    as_published = spec.method.get("as_published", False)
    known = set(protection.order) if spec.sizes is Sizes.PUBLIC or as_published else set()
    if protection.neighbours is Neighbours.REPLACE:
        known.add(protection.entity)
    caps = {t: spec.tables[t].rows_per_entity for t in protection.order}
    tables = receipt["unit"]["tables"]
    return PublicFacts(
        domains=model.spec.origins(model.protection),
        sizes={t: receipt["public"]["sizes"].get(t) for t in known},
        rows_per_entity={t: _rows_per_entity(cap, tables[t]["rows_per_entity"]) for t, cap in caps.items()},
        declared_caps=[t for t, cap in caps.items() if cap],
        orphans=spec.orphans.value,
        parameters=_parameters(model),
    )


def _rows_per_entity(declared: int | None, said: int | None) -> int | None:
    """What a spec declares, else what the receipt says; none if the method left the rows as they are."""
    return None if said is None else declared or said


def _parameters(model: Model) -> dict[str, Any]:
    """The receipt's settings, with the method and the stamped setting, where it has one, as the spec says."""
    said, spec = model.receipt["public"]["parameters"], model.spec.method
    printed = {"as_published": spec.get("as_published", False)} if "as_published" in {*said, *spec} else {}
    return {**said, "method": spec.get("name", DEFAULT), **printed}


def _foreign(model: Model) -> Iterator[str]:
    """Tables that hold what the method of the spec does not make: nobody could say what it must have cost."""
    for name, table in model.tables.items():
        links = (link.shares is not None for link in table.links.values())
        other = Sum if _in_weights(model) else CliqueTree
        if _in_weights(model) in links or any(isinstance(node, other) for node in walk(table.network)):
            yield f"{name}: the model holds what the method of its spec does not make"


def _unpaid(model: Model) -> Iterator[str]:
    """Arrays of the model that no event of the ledger accounts for."""
    nodes: list[dict[str, Any]] = model.receipt["ledger"]["nodes"]
    counted = [n for n in nodes if n["kind"] == "event" and n["mechanism"] in COUNTED]
    paid = Counter((n["table"], n["query"], n["draws"], n.get("weighted", False)) for n in counted)
    for (table, query, draws, _), times in (Counter(_draws(model)) - paid).items():
        yield f"{table}: {times} events are missing for what the model holds: {query}, {draws} draws"


def _searches(model: Model) -> Iterator[Draw]:
    """The first query of each domain that was found with budget; for values of the data in it, that with a threshold.

    Without a delta heavy hitters are drawn among all ticks between bounds that the model does not keep.
    """
    with_delta = "rho" in model.receipt["budget"]
    for name in model.protection.order:
        table = model.protection.schema.table(name)
        for column in model.protection.attributes(name):
            said, kind = model.spec.column(name, column), table.column(column).type
            if said.origin is not Origin.PRIVATE:
                continue
            if kind.kind is not Kind.TEXT:
                yield name, magnitudes_query(column), Magnitudes(type=kind).size, True
                if with_delta and isinstance(said.domain, Bins) and said.domain.heavy_hitters:
                    yield name, heavy_hitters_query(column), 1, False
                continue
            yield name, texts_query(column), 1, True
            if isinstance(said.domain, Values):
                yield name, frequent_query(column), 1, False


def _in_weights(model: Model) -> bool:
    """Whether the method measures weights instead of rows."""
    return bool(model.spec.method.get("name", DEFAULT) == TREE.name)


def _draws(model: Model) -> Iterator[Draw]:
    targets = {link.name: link.key.table for link in model.protection.links}
    yield from _searches(model)
    for name, table in model.tables.items():
        if _in_weights(model):
            entity = name == model.protection.entity
            draws = tree_draws(table, entity=entity, neighbours=model.protection.neighbours)
            yield from ((name, query, count, True) for query, count in draws)
            continue
        if name not in model.receipt["public"]["sizes"]:
            yield name, "size", 1, False
        for node in walk(table.network):
            if isinstance(node, Leaf) and node.column != COMPONENT and not node.constant:
                yield name, f"histogram of {node.column}", len(node.counts), False
        for key, link in table.links.items():
            if isinstance(link, SlotLink):
                yield name, f"rows per key of {key}", link.counts.size, False
                continue
            if not isinstance(link, DegreeLink):
                continue
            yield name, f"rows of {targets[key]} by number of {key}", link.counts.size, False
            if link.null_share:
                yield name, f"NULL keys of {key}", 1, False
