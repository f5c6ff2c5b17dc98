"""A model and its receipt must agree: who is protected, what is public, and a charge for every array.

A receipt that adds up by itself could still be that of another model, or leave out what this one was made of.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from privbench import __version__
from privbench.encode.made_up import make_up_tables
from privbench.errors import BudgetError, PrivBenchError
from privbench.methods.domains.budget import mischarged_domains
from privbench.methods.method import Charge, Charges
from privbench.model.chosen import Chosen, method_settings
from privbench.model.facts import public_facts, sizes_are_public, stated_facts, tables_of_known_size
from privbench.model.model import Model
from privbench.model.public_counts import count_bins
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.facts import Facts
from privbench.privacy.features import magnitude, present, whole_axis
from privbench.privacy.queries import Counts, FrequentValues, Histogram
from privbench.privacy.receipt import PublicFacts, claims
from privbench.schema.domain import Bins, Origin, Values
from privbench.schema.people import copied_columns
from privbench.schema.types import Kind, difference_type
from privbench.schema.unit import Neighbours
from privbench_verify.read import shown
from privbench_verify.receipt import Verdict, verify_receipt, with_people

Query = Mapping[str, Any]
"""A query as the receipt describes it."""

SOFTWARE = f"privbench {__version__}"
"""What this program calls itself in a receipt."""


def verify_model(model: Model) -> Verdict:
    """Verify the receipt of a model, and that it is the receipt of this model."""
    verdict = verify_receipt(model.receipt)
    if verdict.problems:
        return verdict
    if set(model.receipt["unit"]["tables"]) != set(model.tables):
        return replace(verdict, status="failed", problems=("the receipt is about other tables than the model",))
    try:
        chosen = method_settings(model.spec)
        public_sizes = sizes_are_public(model.spec, chosen.settings)
    except PrivBenchError as error:
        unknown = f"the cost of the model cannot be checked, since its method cannot be used here: {error}"
        return replace(verdict, status="failed", problems=(unknown,))
    verdict = with_people(verdict, copied_columns(model.protection))
    problems = (
        *_other_rows(model),
        *_other_claims(model, chosen, public_sizes=public_sizes),
        *_unpaid(model, chosen, public_sizes=public_sizes),
    )
    if problems:
        return replace(verdict, status="failed", problems=problems)
    return replace(verdict, assumptions=(*verdict.assumptions, *_not_compared(model, chosen)))


def _not_compared(model: Model, chosen: Chosen) -> Iterator[str]:
    """What was not checked, in words."""
    if chosen.method.mischarged is not None and model.receipt["software"] != SOFTWARE:
        yield (
            f"The receipt says that {shown(model.receipt['software'])} wrote it, not {SOFTWARE}: what events cost is "
            "not compared with the plan of that version, which would tell if single ones are missing."
        )


def _other_rows(model: Model) -> Iterator[str]:
    """Tables that are said to be made up, but have other rows than those that follow from the spec."""
    protection = model.protection
    if not protection.made_up:
        return
    known = {name: model.public_table(name) for name in model.public if name not in protection.made_up}
    tables = [protection.schema.table(name) for name in protection.made_up]
    made = make_up_tables(tables, protection.made_up, domains=model.spec.made_up_domains(protection), known=known)
    for name, rows in made.items():
        if not rows.equals(model.public_table(name)):
            yield f"{name}: its rows are not those that are made up from the spec"


def _other_claims(model: Model, chosen: Chosen, *, public_sizes: bool) -> Iterator[str]:
    """What the receipt says otherwise than the model's spec."""
    facts = _facts(model, chosen, public_sizes=public_sizes)
    claimed = claims(model.protection, facts, model.receipt["ledger"]["nodes"])
    if "people" not in model.receipt["public"]:  # of a version that did not tell
        claimed["public"].pop("people", None)
    for name, value in claimed.items():
        stated = model.receipt.get(name)
        if stated != value:
            parts = [k for k in value if stated.get(k) != value[k]] if isinstance(stated, dict) else []
            yield f"{'.'.join([name, *parts[:1]])} is not what the model's spec says"


def _facts(model: Model, chosen: Chosen, *, public_sizes: bool) -> PublicFacts:
    """The public facts by the spec; numbers that a spec does not hold are taken from the receipt."""
    spec, protection, receipt = model.spec, model.protection, model.receipt
    known = tables_of_known_size(protection, public_sizes=public_sizes)
    caps = {t: spec.tables[t].rows_per_entity for t in protection.order}
    tables = receipt["unit"]["tables"]
    return PublicFacts(
        **stated_facts(spec, protection),
        sizes={t: receipt["public"]["sizes"].get(t) for t in known},
        rows_per_entity={t: _rows_per_entity(cap, tables[t]["rows_per_entity"]) for t, cap in caps.items()},
        declared_caps=[t for t, cap in caps.items() if cap],
        parameters=_parameters(model, chosen),
    )


def _rows_per_entity(declared: int | None, stated: int | None) -> int | None:
    """What a spec declares, else what the receipt states; none if the method left the rows as they are."""
    return None if stated is None else declared or stated


def _parameters(model: Model, chosen: Chosen) -> dict[str, Any]:
    """The method and its settings as the spec says; of another version, which may have others, those of the receipt."""
    if model.receipt["software"] == SOFTWARE:
        return {"method": chosen.method.name, **chosen.stated()}
    stated = model.receipt["public"]["parameters"]
    stamped = {"as_published": chosen.settings.as_published} if "as_published" in {*stated, *model.spec.method} else {}
    return {**stated, "method": chosen.method.name, **stamped}


def _unpaid(model: Model, chosen: Chosen, *, public_sizes: bool) -> Iterator[str]:
    """What the model holds that no event of the ledger accounts for."""
    sizes = model.receipt["public"]["sizes"]
    rows = {name: sizes.get(name, 0) for name in model.protection.order} | model.public_rows
    facts = public_facts(
        model.spec,
        model.protection,
        model.codecs,
        rows,
        public_sizes=public_sizes,
        public_counts=count_bins(model.protection, model.public, model.entity_keys),
    )
    yield from _other_numbers(model)
    implied = chosen.method.implied(facts, model.tables, chosen.settings)
    for name in implied.foreign:
        yield f"{name}: the model contains parts that method {chosen.method.name} never produces"
    events = [node["query"] for node in model.receipt["ledger"]["nodes"] if node["kind"] == "event"]
    yield from _mischarged(model, chosen, facts)
    yield from _missing((*implied.queries, *_searches(model)), implied.in_any_bins, events)
    yield from _heavy_hitters(model, events)
    nodes = model.receipt["ledger"]["nodes"]
    charged = Counter(n["table"] for n in nodes if n["kind"] == "partition" and n["total"] != "0/1")
    for table, times in (charged - implied.partitions).items():
        yield f"{table}: {times} more partitions are charged in parallel than the model has splits of rows"
    kinds = Counter((query["kind"], query["table"]) for query in events)
    for (kind, table), times in (implied.kinds - kinds).items():
        yield f"{table}: {times} charges are missing in the receipt for: {kind}"


def _mischarged(model: Model, chosen: Chosen, facts: Facts) -> Iterator[str]:
    """What events cost otherwise than such a fit charges: where some are missing, the others do not fit the budget."""
    if model.receipt["software"] != SOFTWARE:
        return
    charges = _charges(model)
    try:
        if chosen.method.mischarged is not None:
            yield from chosen.method.mischarged(facts, chosen.settings, charges)
    except (BudgetError, ArithmeticError, ValueError):
        yield f"the budget of the receipt is none that method {chosen.method.name} could have planned with"
    modelled = sum(len(model.protection.attributes(table)) for table in model.protection.order)
    maps = sum("map" in column["equals"] and column["origin"] == "found" for column in model.receipt["computed"])
    yield from mischarged_domains(charges, modelled=modelled + maps)


def _charges(model: Model) -> Charges:
    """What the receipt charges."""
    receipt, scopes, names = model.receipt, dict[str, list[Charge]](), dict[int, str]()
    word = receipt["budget"]["measure"]
    for at, node in enumerate(receipt["ledger"]["nodes"][1:], start=1):
        names[at] = names[node["parent"]] if node["parent"] else node.get("label", "")
        if node["kind"] == "event":
            scopes.setdefault(names[at], []).append(Charge(query=node["query"], amount=Fraction(node[word])))
    replaces = model.protection.neighbours is Neighbours.REPLACE
    rho = PrivacyMeasure.RHO_REPLACE if replaces else PrivacyMeasure.RHO
    measure = PrivacyMeasure.EPSILON if word == PrivacyMeasure.EPSILON.word else rho
    return Charges(measure=measure, budget=Fraction(receipt["budget"]["amount"]), scopes=scopes)


def _missing(queries: Sequence[Query], in_any_bins: Sequence[Query], events: Sequence[Query]) -> Iterator[str]:
    """Queries that no event accounts for; an event accounts for one of them."""
    paid = Counter(_text(_as_implied(query)) for query in events)
    exactly = Counter(_text(_as_implied(query)) for query in queries)
    left = Counter(_text(_without_bins(json.loads(query))) for query in (paid - exactly).elements())
    for query, times in (exactly - paid + (Counter(_text(_without_bins(q)) for q in in_any_bins) - left)).items():
        yield f"{times} charges are missing in the receipt for: {query}"


def _without_bins(query: Query) -> Query:
    """A query without the numbers of bins of its axes."""
    return {**query, "axes": [axis["feature"] for axis in query["axes"]]} if "axes" in query else query


def _other_numbers(model: Model) -> Iterator[str]:
    """Numbers that follow from others: limits of rows said to be derived, and sizes that are public."""
    for name, stated in model.receipt["unit"]["tables"].items():
        link = model.protection.owner_link(name)
        shared = name in model.protection.lookups or (link is not None and link.unique)
        if stated["rows_per_entity_from"] == "derived" and name != model.protection.entity and not shared:
            yield f"{name}: rows_per_entity is said to be its owner's, but an owner may have several rows there"
    for name, public in model.receipt["public"]["sizes"].items():
        if name in model.tables and round(model.tables[name].rows) != public:
            yield f"{name}: the model has another number of rows than the receipt"


def _heavy_hitters(model: Model, events: Sequence[Query]) -> Iterator[str]:
    """Single values in bins that were found with budget, without an event that looked for any."""
    asked = {(query["table"], query["column"]) for query in events if query["kind"] == "heavy hitters"}
    for name in model.protection.order:
        for column in model.protection.attributes(name):
            spec = model.spec.column(name, column)
            found_here = spec.origin is Origin.PRIVATE and isinstance(spec.domain, Bins) and spec.domain.heavy_hitters
            if found_here and (name, column) not in asked:
                yield f"{name}.{column}: has heavy hitters, but no event looked for any"


def _as_implied(query: Query) -> Query:
    """A charged query as the model implies it: how entities of few rows weighed it does not keep, nor does it cost."""
    return {name: value for name, value in query.items() if name != "full_rows"}


def _text(query: Query) -> str:
    return json.dumps(query, sort_keys=True, ensure_ascii=False)


def _searches(model: Model) -> Iterator[Query]:
    """The first query of each domain that was found with budget; for values of the data in it, that with a threshold.

    Without a delta heavy hitters are drawn among all ticks between bounds that the model does not keep.
    """
    with_delta = model.receipt["budget"]["measure"] == "rho"
    for name in model.protection.order:
        table = model.protection.schema.table(name)
        for column in model.protection.attributes(name):
            spec, kind = model.spec.column(name, column), table.column(column).type
            if spec.relative_to is not None:
                kind = difference_type(kind)
            if spec.origin is not Origin.PRIVATE:
                continue
            frequent = FrequentValues(table=name, column=column).to_json()
            if kind.kind is Kind.TEXT:
                axes = (whole_axis(present(column)),)
                yield Histogram(table=name, axes=axes, counts=Counts.VOTES).to_json()
                if isinstance(spec.domain, Values):
                    yield frequent
            else:
                yield Histogram(table=name, axes=(whole_axis(magnitude(column, kind)),)).to_json()
                if with_delta and isinstance(spec.domain, Bins) and spec.domain.heavy_hitters:
                    yield frequent
