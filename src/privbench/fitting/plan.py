"""The plan of a fit: who gets how much, what will be signal and what noise. From the spec and guesses alone.

Nothing here opens the data. A fit makes the same forecast from the sizes that are public before it spends anything,
and is refused if nothing could be learnt; what `show` says of a model comes from the same forecast again.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from privbench.errors import BudgetError, SpecError
from privbench.fitting.computed import computed_columns
from privbench.fitting.determined import SCOPE as MAPS
from privbench.fitting.determined import cost_of_maps
from privbench.fitting.domains import threshold_part, wanted_types
from privbench.fitting.finding import candidates_to_test
from privbench.fitting.lists import with_lists_that_pay
from privbench.fitting.memory import needed_memory
from privbench.fitting.prepare import prepare
from privbench.fitting.promise import Number, parse_delta, parse_epsilon
from privbench.methods.domains.budget import POOR, STRING_REMEDIES, DomainForecast, forecast_domains, poor_domains_line
from privbench.methods.domains.coarse import coarse_domain
from privbench.methods.domains.columns import SCOPE as DOMAINS
from privbench.methods.forecast import Forecast, PlanInput, TableForecast, remedies_line
from privbench.methods.registry import BUILT_IN, find_method
from privbench.methods.tree.finding import SCOPE as FINDING
from privbench.methods.tree.finding import FindingForecast, forecast_finding
from privbench.model.arguments import spec_of
from privbench.model.chosen import Chosen, method_settings
from privbench.model.facts import public_facts, sizes_are_public
from privbench.model.model import Model, compile_codecs
from privbench.privacy.ledger import Ledger
from privbench.privacy.receipt import open_ledger
from privbench.schema.choices import closest, spelled_like
from privbench.schema.domain import Origin
from privbench.schema.notebook import page
from privbench.schema.spec import Spec
from privbench.schema.unit import Protection, Role

ASSUMED_ENTITIES = 10_000
"""Rows of the entity table where the caller does not state them."""
ASSUMED_PUBLIC = 1_000
"""Rows of a public table where the caller does not state them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a fit is going to do. Amounts are in its privacy measure: epsilon, or rho where there is a delta."""

    method: str
    epsilon: Fraction
    delta: Fraction
    neighbours: str
    entity: str
    measure: str
    """What the budget counts: epsilon, or rho where there is a delta."""
    budget: Fraction
    """What the ledger may spend: under `replace` half of epsilon, since replacing is removing and adding."""
    rows: Mapping[str, int]
    """Rows of every table, as the caller states them or as assumed."""
    assumed: tuple[str, ...]
    """The tables whose rows are assumed."""
    computed: tuple[str, ...]
    """Columns that are worked out from the rows around them, by the spec, and what they equal."""
    finding: FindingForecast | None
    """What may be spent on finding what columns depend on; None if nothing is."""
    domains: DomainForecast | None
    maps: Fraction
    """What is spent on maps of determined columns."""
    tables: tuple[TableForecast, ...]
    seconds: float
    """CPU-seconds of the fit, roughly."""
    megabytes: float
    """Memory that it takes, roughly, if it has as much: with less, rows go to files."""
    warnings: tuple[str, ...]
    refusal: str | None
    """Why the fit will be refused; None where it will not, or where the number of entities is only assumed."""

    def __repr__(self) -> str:
        tables = ", ".join(f"{t.table} {float(100 * t.amount / self.budget):.0f} %" for t in self.tables)
        return f"<Plan: epsilon {float(self.epsilon):g} by method {self.method}; {tables}>"

    def _repr_html_(self) -> str:
        rows = [
            (t.table, float(100 * t.amount / self.budget), self.rows[t.table], len(t.columns), t.outlook.value)
            for t in self.tables
        ]
        assumed = [f"Assumed, since nobody said: rows of {', '.join(self.assumed)}."] if self.assumed else []
        refused = [f"Will be refused: {self.refusal}"] if self.refusal else []
        title = f"Plan: epsilon {float(self.epsilon):g} by method {self.method}"
        head = ["table", "share of the budget, %", "rows", "columns", "outlook"]
        return page(title, head, rows, notes=[*refused, *assumed, *self.warnings])


def plan(
    spec: Spec | Path | str,
    *,
    epsilon: Number,
    delta: Number = 0,
    method: str | None = None,
    rows: Mapping[str, int] | None = None,
) -> Plan:
    """Say what `fit` would do with a budget: who gets how much, what will be signal and what noise. Reads no data.

    `rows` says how many rows tables have, as far as you know; guesses will do. Only method `tree` plans ahead.

    Example::

        for table in privbench.plan("spec.yaml", epsilon="3.2", rows={"customer": 50_000}).tables:
            print(table.table, table.outlook.value)
    """
    budget, chance = parse_epsilon(epsilon), parse_delta(delta)
    given = spec_of(spec)[0]
    guesses = {spelled_like(name, given.tables, option="--rows"): count for name, count in (rows or {}).items()}
    if given.drafted_lists():
        entities = guesses.get(given.protection().entity, ASSUMED_ENTITIES)
        given = with_lists_that_pay(given, entities=entities, epsilon=budget)
    prepared = prepare(given, method=method, delta=chance)
    spec, chosen, protection = prepared.spec, prepared.chosen, prepared.protection
    known = _checked(guesses, protection)
    every = _with_assumed(known, protection)
    thresholds = threshold_part(chance, spec, protection)
    ledger = open_ledger(budget, chance, protection.neighbours, thresholds=thresholds)
    domains, finding = _domains(spec, protection, ledger), _finding(spec, protection, chosen, ledger, rows=every)
    maps = cost_of_maps(protection, ledger.budget)
    left = ledger.budget - (domains.amount if domains else 0) - (finding.least if finding else 0) - maps
    forecast = _forecast(spec, protection, chosen, ledger, left=left, rows=every)
    if forecast is None:
        planning = ", ".join(f"`--method {name}`" for name in BUILT_IN if find_method(name).forecast)
        raise SpecError(
            f"method {chosen.method.name} cannot show a plan: it divides the budget while it runs. "
            f"Only {planning} plans ahead."
        )
    codecs = compile_codecs(spec, protection, without=wanted_types(spec, protection))
    memory = needed_memory(every, protection, codecs, in_one_part=not chosen.method.counts_in_parts)
    sure = protection.entity in known
    remedies = (remedies_line(),) if forecast.warnings else ()
    warnings = (*forecast.warnings, *remedies, *_of_domains(domains, every[protection.entity]))
    return Plan(
        method=chosen.method.name,
        epsilon=budget,
        delta=chance,
        neighbours=protection.neighbours.value,
        entity=protection.entity,
        measure=ledger.measure.word,
        budget=ledger.budget,
        rows=every,
        assumed=tuple(name for name in every if name not in known),
        computed=computed_columns(protection),
        finding=finding,
        domains=domains,
        maps=maps,
        tables=forecast.tables,
        seconds=forecast.seconds,
        megabytes=memory.in_memory / 1e6,
        warnings=warnings,
        refusal=forecast.refusal if sure else None,
    )


def check_budget(spec: Spec, protection: Protection, chosen: Chosen, ledger: Ledger, known: Mapping[str, int]) -> None:
    """Refuse a fit of which nothing would come, as far as public sizes tell. Spends nothing."""
    if protection.entity not in known:
        return
    domains = _domains(spec, protection, ledger)
    left = ledger.budget - (domains.amount if domains else 0) - cost_of_maps(protection, ledger.budget)
    forecast = _forecast(spec, protection, chosen, ledger, left=left, rows=_with_assumed(known, protection))
    if forecast is not None and forecast.refusal is not None:
        raise BudgetError(forecast.refusal)


def forecast_of(model: Model) -> Forecast | None:
    """The forecast for what a model was fitted with, from what was released; None if its method makes none."""
    receipt, protection = model.receipt, model.protection
    ledger = open_ledger(
        Fraction(receipt["epsilon"]),
        Fraction(receipt["delta"]),
        protection.neighbours,
        thresholds=Fraction(receipt["budget"].get("thresholds", 0)),
    )
    nodes = receipt["ledger"]["nodes"]
    searches = [n for n in nodes if n["parent"] == 0 and n.get("label") in (DOMAINS, FINDING, MAPS)]
    before = sum((Fraction(node["total"]) for node in searches), Fraction(0))
    rows = {name: round(table.rows) for name, table in model.tables.items()}
    return _forecast(
        model.spec,
        protection,
        method_settings(model.spec),
        ledger,
        left=ledger.budget - before,
        rows=_with_assumed(rows, protection),
    )


def _forecast(
    spec: Spec, protection: Protection, chosen: Chosen, ledger: Ledger, *, left: Fraction, rows: Mapping[str, int]
) -> Forecast | None:
    """The forecast of the method for what is left of the budget. Domains yet to be found are taken from the types."""
    if chosen.method.forecast is None:
        return None
    wanted = wanted_types(spec, protection)
    spec = spec.with_domains({place: (coarse_domain(kind), Origin.PRIVATE) for place, kind in wanted.items()})
    codecs = compile_codecs(spec, protection)
    facts = public_facts(spec, protection, codecs, rows, public_sizes=sizes_are_public(spec, chosen.settings))
    plan_input = PlanInput(facts=facts, budget=left, measure=ledger.measure, rows=rows)
    return chosen.method.forecast(plan_input, chosen.settings)


def _domains(spec: Spec, protection: Protection, ledger: Ledger) -> DomainForecast | None:
    modelled = sum(len(protection.attributes(table)) for table in protection.order)
    return forecast_domains(wanted_types(spec, protection), modelled=modelled, ledger=ledger)


def _finding(
    spec: Spec, protection: Protection, chosen: Chosen, ledger: Ledger, *, rows: Mapping[str, int]
) -> FindingForecast | None:
    candidates = candidates_to_test(spec, protection, chosen)
    return forecast_finding(candidates, ledger.budget, ledger.measure, entities=rows[protection.entity])


def _of_domains(domains: DomainForecast | None, entities: int) -> tuple[str, ...]:
    if domains is None:
        return ()
    lines = []
    if domains.strings and (domains.listed is None or domains.listed > POOR * entities):
        lines.append(
            f"Hardly any list will be found for {', '.join(domains.strings)}: a string is only listed if about "
            f"{domains.listed or entities:,} of {entities:,} entities have it. {STRING_REMEDIES}"
        )
    if domains.seen <= POOR * entities:
        return tuple(lines)
    numbers = [name for name in domains.columns if name not in domains.strings]
    return (*lines, poor_domains_line(numbers, unseen=domains.seen, entities=entities, verb="will be"))


def _checked(rows: Mapping[str, int], protection: Protection) -> dict[str, int]:
    names = [table.name for table in protection.schema.tables]
    for name, count in rows.items():
        if name not in names:
            raise SpecError(f"rows of {name!r}: the spec has no such table. {closest(name, names)}")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise SpecError(f"rows of {name} are {count!r}: a whole number of rows is wanted, such as 50000.")
    return dict(rows)


def _with_assumed(rows: Mapping[str, int], protection: Protection) -> dict[str, int]:
    """Rows of every table: private ones that the caller does not state are taken to be as many as entities."""
    entities = rows.get(protection.entity, ASSUMED_ENTITIES)
    public = (name for name, role in protection.roles.items() if role is Role.PUBLIC)
    assumed = dict.fromkeys(protection.order, entities) | dict.fromkeys(public, ASSUMED_PUBLIC)
    return assumed | dict(protection.made_up) | dict(rows)
