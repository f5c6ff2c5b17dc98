"""Which generated tables have fewer rows than planned, and which key is to blame. Computed from the model alone."""

from collections.abc import Mapping

from privbench.generation.spans import most_rows_per_owner
from privbench.model.model import Model
from privbench.model.order import colliding_keys
from privbench.schema.tables import Table
from privbench.schema.unit import Link, LinkKind
from privbench.spn.tree_links import Fanouts

BORN = 0.8
"""A table whose rows are born with their owners is worth a word if it has a smaller share of the rows expected."""


def lost_rows(model: Model, planned: Mapping[str, int], written: Mapping[str, int]) -> list[str]:
    """Say which private tables have fewer rows than their size asked for, with the key that is to blame."""
    protection, said = model.protection, []
    for name in protection.order:
        links = [link for link in protection.links if link.table == name]
        table = protection.schema.table(name)
        wanted = planned[name] or round(model.tables[name].rows)
        if written[name] < _fewest(model, table, links, wanted, written):
            why = _why_lost(model, table, links, wanted, written)
            said.append(f"{name}: {written[name]:,} of {wanted:,} rows were made: {why}.")
    return said


def _fewest(model: Model, table: Table, links: list[Link], wanted: int, written: Mapping[str, int]) -> float:
    """The fewest rows of a table of which none was lost. Where rows are born with their owners, any number may be."""
    if not any(isinstance(link, Fanouts) for link in model.tables[table.name].links.values()):
        return wanted
    at_risk = colliding_keys(model.spec, table) or any(_is_stuck(link, written) for link in links)
    return BORN * wanted - 3 * wanted**0.5 if at_risk else 0.0


def _is_stuck(link: Link, written: Mapping[str, int]) -> bool:
    """Whether a key must name a row of a table that has none."""
    return written[link.key.table] == 0 and not link.nullable


def _why_lost(model: Model, table: Table, links: list[Link], wanted: int, written: Mapping[str, int]) -> str:
    for link in links:
        if _is_stuck(link, written):
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
