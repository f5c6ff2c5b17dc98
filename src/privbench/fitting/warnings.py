"""What to know of a model or a bundle before it is used: tables that are mostly noise, rows that were lost.

Everything is computed from what was released (the receipt's events, noisy sizes), so it costs no privacy and may
be published.
"""

import json
from collections.abc import Iterator, Mapping
from fractions import Fraction
from statistics import median
from typing import Any

from privbench.fitting.plan import forecast_of
from privbench.methods.domains.budget import POOR, SEEN, poor_domains_line
from privbench.methods.forecast import remedies_line
from privbench.model.model import Model
from privbench.model.notes import list_warnings, published_literals, size_warnings
from privbench.privacy.features import Fanout, InDegree, KeySlot, Magnitude, NullKey, Own
from privbench.privacy.queries import Counts
from privbench.privacy.receipt import display_name, link_json
from privbench.schema.literals import by_kind
from privbench.schema.unit import Link, LinkKind

NOISY = 0.5
"""A table or key is worth a warning if the noise of its counts adds up to more than this share of its rows."""
MOST_EPSILON = 20
MEAN_NOISE = {"discrete-laplace": 1.0, "discrete-gaussian": 0.8}
"""The size of the noise on a count, without its sign, in scales of its law."""
SMALL_SHARE = 0.01
"""An uncertainty of the share of NULL keys that is not worth a warning."""


def fit_warnings(model: Model) -> list[str]:
    """Say which tables, keys and sizes are in good part noise, with the remedies; and if epsilon protects little."""
    noise = _row_noise(model.receipt)
    forecast = forecast_of(model)
    lines = [line for name in model.protection.order for line in _of_table(model, name, noise)]
    lines += forecast.warnings if forecast is not None else ()
    if lines:
        lines.append(remedies_line(*_more_remedies(model)))
    lines += size_warnings(model)
    lines += _of_domains(model)
    lines += list_warnings(model)
    lines += _of_words(model)
    epsilon = Fraction(model.receipt["epsilon"])
    if epsilon > MOST_EPSILON:
        lines.append(
            f"epsilon {float(epsilon):g} protects little: one entity may make an output e^{float(epsilon):g} times as "
            "likely. Usual values lie between 0.1 and 10."
        )
    entities, delta = round(model.tables[model.protection.entity].rows), Fraction(model.receipt["delta"])
    if delta * entities > 1:
        lines.append(
            f"delta {float(delta):g} is above 1/{entities:,}, one over the number of entities: a delta this large "
            "would allow publishing one entity unprotected. Choose one far below, such as 1e-9."
        )
    return lines


def _of_words(model: Model) -> list[str]:
    """Say that literals in the source's definitions are published: `synth` shows no spec to review."""
    kinds = by_kind(published_literals(model.spec))
    if not kinds:
        return []
    counted = ", ".join(f"{kind} {len(holders)}" for kind, holders in kinds.items())
    where = "`original` and `rules`" if model.spec.original is not None else "`rules` and types"
    return [
        f"definitions that hold literals are published word by word: {counted}. Read them ({where} in the spec; "
        "schema.sql of a bundle) and take out of the spec what says more than it should."
    ]


def _of_domains(model: Model) -> list[str]:
    """Say which domains were found with noise so large that good parts of a column may lie outside."""
    entities, unit = model.tables[model.protection.entity].rows, model.receipt["unit"]["weight"]
    unseen: dict[str, float] = {}
    for event in _events(model.receipt):
        query = event["query"]
        for axis in query.get("axes", ()):
            if axis["feature"]["kind"] == Magnitude.kind:
                name = display_name(query["table"], axis["feature"]["column"])
                unseen[name] = SEEN * float(Fraction(event["scale"]) / unit)
    poor = {name: most for name, most in unseen.items() if most > POOR * entities}
    if not poor:
        return []
    return [poor_domains_line(poor, unseen=max(poor.values()), entities=entities, verb="were")]


def _events(receipt: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    return (node for node in receipt["ledger"]["nodes"] if node["kind"] == "event")


def _row_noise(receipt: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """The expected sum of absolute noise of histograms of rows, by table and the last of their features."""
    noise: dict[tuple[str, str], float] = {}
    for event in _events(receipt):
        query = event["query"]
        if query["kind"] == "histogram" and query["counts"] == Counts.ROWS.value and query["axes"]:
            place = query["table"], json.dumps(query["axes"][-1]["feature"], sort_keys=True)
            mean = MEAN_NOISE[event["mechanism"]] * float(Fraction(event["scale"]))
            noise[place] = noise.get(place, 0.0) + mean * event["draws"]
    return noise


def _of_table(model: Model, name: str, noise: Mapping[tuple[str, str], float]) -> Iterator[str]:
    rows = model.tables[name].rows
    columns = [_noise_of(noise, name, {"kind": Own.kind, "column": column}) for column in model.codecs[name]]
    typical = median(columns) if columns else 0.0
    if typical > NOISY * rows:
        much = "mostly" if typical > rows else "in good part"
        yield f"{name}: its columns are {much} noise: about {typical:,.0f} rows in a typical one, of {rows:,.0f}."
    for link in model.protection.links_of(name):
        if problem := _of_key(model, link, noise):
            yield f"{name}: {problem}."


def _of_key(model: Model, link: Link, noise: Mapping[tuple[str, str], float]) -> str | None:
    shares, rows, target = model.tables[link.table].links[link.name].shares, model.tables[link.table].rows, link.target
    key, described = ", ".join(link.key.columns), {"link": link_json(link)}
    if _noise_of(noise, link.table, {"kind": KeySlot.kind, **described}) > NOISY * rows:
        return f"how its rows are spread over {target} by the key {key} is in good part noise"
    degrees = Fanout.kind if link.kind is LinkKind.OWNER else InDegree.kind
    if target in model.tables and (
        _noise_of(noise, target, {"kind": degrees, **described}) > NOISY * model.tables[target].rows
    ):
        return f"how many rows reference the same row of {target} by the key {key} is in good part noise"
    unsure = _noise_of(noise, link.table, {"kind": NullKey.kind, **described})
    if shares is not None and unsure > max(shares.null_share, SMALL_SHARE) * rows:
        return f"the share of NULL in the key {key} ({shares.null_share:.0%}) is within its noise"
    return None


def _noise_of(noise: Mapping[tuple[str, str], float], table: str, feature: Mapping[str, Any]) -> float:
    return noise.get((table, json.dumps(feature, sort_keys=True)), 0.0)


def _more_remedies(model: Model) -> list[str]:
    unit = model.receipt["unit"]["tables"]
    chosen = [name for name, limits in unit.items() if limits["rows_per_entity_from"] == "chosen"]
    return [f"a declared `rows_per_entity` ({', '.join(chosen)})"] if chosen else []
