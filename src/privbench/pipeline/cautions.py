"""What to know of a model or a bundle before it is used: tables that are mostly noise, rows that were lost.

Everything is computed from what was released (the receipt's events, noisy sizes), so it costs no privacy and may
be published.
"""

from collections.abc import Iterator, Mapping
from fractions import Fraction
from statistics import median
from typing import Any

from privbench.pipeline.model import Model
from privbench.pipeline.order import colliding_keys
from privbench.pipeline.spans import most_rows_per_owner
from privbench.schema.model import Table
from privbench.schema.unit import Link, LinkKind
from privbench.spn.links import DegreeCounts

NOISY = 0.5
"""A table or key is worth a warning if the noise of its counts adds up to more than this share of its rows."""
MOST_EPSILON = 20
SMALL_SHARE = 0.01
"""An uncertainty of the share of NULL keys that nobody minds."""


def fit_cautions(model: Model) -> list[str]:
    """Say which tables and keys are in good part noise, with the ways out; and if epsilon protects little."""
    noise = _noise(model.receipt)
    said = [line for name in model.protection.order for line in _of_table(model, name, noise)]
    if said:
        said.append(f"Ways out of noise: {', '.join(_ways(model))}.")
    epsilon = Fraction(model.receipt["epsilon"])
    if epsilon > MOST_EPSILON:
        said.append(
            f"epsilon {float(epsilon):g} protects little: one entity may make an output e^{float(epsilon):g} times as "
            "likely. Usual values lie between 0.1 and 10."
        )
    return said


def lost_rows(model: Model, planned: Mapping[str, int], written: Mapping[str, int]) -> list[str]:
    """Say which private tables have fewer rows than their size asked for, with the key that is to blame."""
    protection, said = model.protection, []
    for name in protection.order:
        links = [link for link in protection.links if link.table == name]
        table = protection.schema.table(name)
        wanted = planned[name] or round(model.tables[name].rows)
        if written[name] < wanted:
            why = _why_lost(model, table, links, wanted, written)
            said.append(f"{name}: {written[name]:,} of {wanted:,} rows were made: {why}.")
    return said


def _noise(receipt: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """The expected sum of absolute noise of each query of each table, over all blocks of rows."""
    noise: dict[tuple[str, str], float] = {}
    for node in receipt["ledger"]["nodes"]:
        if node["kind"] == "event" and node["mechanism"] == "discrete-laplace":
            place = node["table"], node["query"]
            noise[place] = noise.get(place, 0.0) + float(Fraction(node["scale"])) * node["draws"]
    return noise


def _of_table(model: Model, name: str, noise: Mapping[tuple[str, str], float]) -> Iterator[str]:
    rows = model.tables[name].rows
    columns = [noise.get((name, f"histogram of {column}"), 0.0) for column in model.codecs[name]]
    typical = median(columns) if columns else 0.0
    if typical > NOISY * rows:
        much = "mostly" if typical > rows else "in good part"
        yield f"{name}: its columns are {much} noise: about {typical:,.0f} rows in a typical one, of {rows:,.0f}."
    for link in (k for k in model.protection.links if k.table == name):
        if found := _of_key(model, link, noise):
            yield f"{name}: {found}."


def _of_key(model: Model, link: Link, noise: Mapping[tuple[str, str], float]) -> str | None:
    counts, rows, target = model.tables[link.table].links[link.name], model.tables[link.table].rows, link.key.table
    key = ", ".join(link.key.columns)
    if not isinstance(counts, DegreeCounts):
        if noise.get((link.table, f"rows per key of {link.name}"), 0.0) > NOISY * rows:
            return f"how its rows are spread over {target} by the key {key} is in good part noise"
        return None
    if noise.get((link.table, f"rows of {target} by number of {link.name}"), 0.0) > NOISY * model.tables[target].rows:
        return f"how many rows name the same row of {target} by the key {key} is in good part noise"
    unsure = noise.get((link.table, f"NULL keys of {link.name}"), 0.0)
    if unsure > max(counts.null_share, SMALL_SHARE) * rows:
        return f"the share of NULL in the key {key} ({counts.null_share:.0%}) is within its noise"
    return None


def _ways(model: Model) -> list[str]:
    unit = model.receipt["unit"]["tables"]
    chosen = [name for name, said in unit.items() if said["rows_per_entity_from"] == "chosen"]
    ways = ["a larger epsilon", "fewer tables and columns (`drop`)", "domains with fewer cells"]
    return [*ways, f"a declared `rows_per_entity` ({', '.join(chosen)})"] if chosen else ways


def _why_lost(model: Model, table: Table, links: list[Link], wanted: int, written: Mapping[str, int]) -> str:
    for link in links:
        nullable = any(table.column(c).nullable for c in link.key.columns)
        if written[link.key.table] == 0 and not nullable:
            return (
                f"its NOT NULL key {', '.join(link.key.columns)} needs a row of {link.key.table}, which came out empty"
            )
    most = most_rows_per_owner(model, table.name, written)
    for link in (k for k in links if k.kind is LinkKind.OWNER):
        owners = written[link.key.table]
        if owners * most < wanted:
            key = ", ".join(link.key.columns)
            return f"its key {key} names one of {owners:,} rows of {link.key.table}, each at most {most:,} times"
    keys = " and ".join(f"({', '.join(key)})" for key in colliding_keys(model.spec, table))
    return f"the others repeated the key {keys}, also when drawn again" if keys else "the tables it names are too small"
