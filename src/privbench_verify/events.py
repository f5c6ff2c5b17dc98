"""The events of a receipt: whether the noise that was drawn pays for what is charged.

Read by `verify_tree.py` alone, and like it: the standard library, and no code of what wrote the receipt.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from privbench_verify.read import Json, ReceiptError, flag_of, positive_of
from privbench_verify.thresholds import FREQUENT, check_threshold

_NOISE = {"epsilon": "discrete-laplace", "rho": "discrete-gaussian"}
_CHOICES = {"epsilon": "permute-and-flip", "rho": "exponential"}
_CAP_CHOICE = "rows per entity"
"""The one query that an entity moves by 1 whatever its rows, and all scores in the same direction."""
_NAMED = "#in-degree "
"""In the name of weights that other entities' keys move, too: an entity's own rows once, each key of it twice."""
_SEARCHES = "magnitudes of ", "texts of "
"""How the first query for the domain of a column begins."""
_SPIKES = "heavy_hitters of "
_WEIGHED = ("weights of ", "weight of all rows", "one of ", *_SEARCHES, "steps of ", "cells of ", _SPIKES)
"""How queries that count units instead of rows begin; only frequent values count entities instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the events of a receipt are judged by."""

    currency: str
    """What is charged: epsilon (one entity added or removed) or rho (for the receipt's neighbours)."""
    replaces: bool
    """Whether neighbours differ by an entity that is replaced."""
    units: int | None
    """What all rows of an entity in a table weigh together, in weighted events."""
    tables: Json
    """The tables of the unit."""


def is_cap_choice(event: Json) -> bool:
    """Whether an event chooses the rows per entity of its table."""
    return event.get("mechanism") in _CHOICES.values() and event.get("query") == _CAP_CHOICE


def searched_column(event: Json) -> str | None:
    """The `table.column` whose domain an event begins to look for, if it does."""
    query, counted = event["query"], event.get("mechanism") in _NOISE.values()
    begun = next((first for first in _SEARCHES if query.startswith(first)), None)
    return f"{event['table']}.{query.removeprefix(begun)}" if counted and begun else None


def rows_per_entity(tables: Json, table: str) -> int:
    """The most rows that an entity has in a table."""
    found = tables[table]
    rows = found.get("rows_per_entity") if isinstance(found, dict) else None
    if type(rows) is not int or rows < 1:
        raise ReceiptError(f"{table}: the unit limits no entity's rows there, so that only weights can be counted")
    return rows


def check_event(event: Json, terms: Terms, where: str) -> Iterator[str]:
    """Find what is wrong with an event wherever it stands; raise where it cannot be read."""
    mechanism, table, draws = event.get("mechanism"), event.get("table"), event.get("draws")
    noise, choice = _NOISE[terms.currency], _CHOICES[terms.currency]
    more = "as-published" if terms.currency == "epsilon" else FREQUENT
    if mechanism not in (noise, choice, more):
        raise ReceiptError(f"{where}: unknown mechanism {mechanism!r}, or not one that {terms.currency} pays for")
    if not isinstance(event.get("query"), str) or not isinstance(table, str) or table not in terms.tables:
        raise ReceiptError(f"{where}: query or table is missing, or {table!r} is no table of the unit")
    if type(draws) is not int or draws < 1 or (mechanism == choice and draws != 1):
        raise ReceiptError(f"{where}: draws is {draws!r}; noisy counts draw at least once, a choice once")
    yield from check_threshold(event, where)
    yield from _check_sensitivity(event, terms, where)
    if mechanism == _NOISE["rho"] and event["query"].startswith(_SPIKES):
        yield f"{where}: the zeros between heavy_hitters are drawn for Laplace noise alone, not for {mechanism}"
    scale, charged = positive_of(event, "scale", where), positive_of(event, terms.currency, where)
    if mechanism != "as-published" and _cost(event, terms, where) > charged:
        yield f"{where}: scale {scale} is too small for {terms.currency} {charged}"


def _cost(event: Json, terms: Terms, where: str) -> Fraction:
    """What the noise costs: docs/proofs/composition.md, sections 3 and 9."""
    ratio = positive_of(event, "sensitivity", where) / positive_of(event, "scale", where)
    chooses = event["mechanism"] == _CHOICES[terms.currency]
    if chooses and event.get("monotone") is not True:
        ratio *= 2
    if terms.currency == "epsilon":
        return ratio
    additive = not chooses and flag_of(event, "additive", where)
    multiple = (2 if additive else 4) if terms.replaces else 1
    return multiple * ratio**2 / (8 if chooses else 2)


def _check_sensitivity(event: Json, terms: Terms, where: str) -> Iterator[str]:
    """Counts are whole, and every row of an entity may count, or its weight; a choice of caps counts entities."""
    sensitivity = positive_of(event, "sensitivity", where)
    monotone, weighted = event.get("monotone"), flag_of(event, "weighted", where, default=False)
    if type(monotone) is not bool or (monotone and not is_cap_choice(event)):
        yield f"{where}: monotone is {monotone!r}; only a choice of {_CAP_CHOICE} can be so"
    if weighted and terms.units is None:
        raise ReceiptError(f"{where}: is weighted, but the unit does not say how much an entity weighs")
    voted = event["mechanism"] == FREQUENT
    if not weighted and not voted and event["query"].startswith(_WEIGHED):
        yield f"{where}: its query counts weights, but it is not weighted"
    shared = _NAMED in event["query"] if weighted else _by_keys_of_others(event, terms.tables)
    if shared and event.get("additive", False) is not False:
        yield f"{where}: is said to be additive, but an entity moves what others add"
    least = 1
    if weighted:
        least = (terms.units or 0) * (1 + 2 * event["query"].count(_NAMED))
    elif not voted and not (is_cap_choice(event) and monotone is True):
        least = _least_rows(event, terms.tables, shared=shared)
    if sensitivity.denominator != 1 or sensitivity < least:
        yield f"{where}: sensitivity is {sensitivity}, not a whole number of at least {least}"


def _least_rows(event: Json, tables: Json, *, shared: bool) -> int:
    """The rows of an entity; for rows by how many keys name them, those named, and the ends of keys to others."""
    rows, target = rows_per_entity(tables, event["table"]), _counted_by_keys(event, tables)
    return rows if target is None else rows_per_entity(tables, target) + (2 * rows if shared else 0)


def _counted_by_keys(event: Json, tables: Json) -> str | None:
    """The table whose rows are counted by how many keys name them, if that is what the event does."""
    query = event["query"]
    return next((t for t in tables if query.startswith(f"rows of {t} by number of ")), None)


def _by_keys_of_others(event: Json, tables: Json) -> bool:
    """Whether rows are counted by keys that may be of other entities: by any but the owner key."""
    target, table = _counted_by_keys(event, tables), event["table"]
    if target is None:
        return False
    holder = tables[table] if isinstance(tables[table], dict) else {}
    owned = holder.get("role") == "owned" and holder.get("owner") == target
    return not (owned and event["query"].endswith(f" by number of {table}.{_joined(holder.get('key'))}"))


def _joined(names: object) -> str:
    return ",".join(map(str, names)) if isinstance(names, list) else ""
