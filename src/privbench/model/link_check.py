"""The links of a model must fit their keys, and find their columns in the networks with the codes they expect."""

from collections.abc import Iterator

from privbench.errors import ModelError
from privbench.model.model import Model
from privbench.privacy.facts import SIZE_LIMIT
from privbench.schema.unit import Link
from privbench.spn.fanouts import RANK_EDGES, size_edges
from privbench.spn.feature_names import COMPONENT, RANK, STRATUM, first_column, owner_column, shown
from privbench.spn.link import LinkColumn
from privbench.spn.nodes import given_columns

MOST_OF_OWNER = 2**24
"""The rows of an owner are made in one block, so that their number must not fill the memory."""


def feature_sizes(model: Model, table: str) -> dict[str, int]:
    """The columns of a table's network beside those of the table, with their numbers of codes, as its links ask."""
    sizes: dict[str, int] = {}
    for column in _columns(model, table):
        if column.name in sizes or column.name in model.codecs[table]:
            raise ModelError(f"{table}: the network has two columns named {shown(column.name)}.")
        sizes[column.name] = column.codes
    return sizes


def check_links(model: Model, name: str) -> None:
    """Refuse links that are not those of the table's keys, or of a kind that their key cannot have."""
    links, keys = model.tables[name].links, model.protection.links_of(name)
    if set(links) != {key.name for key in keys}:
        raise ModelError(f"{name}: its links do not fit its keys.")
    for key in keys:
        if key.kind not in links[key.name].keys:
            raise ModelError(f"{name}: the link of {key.name} is not of the kind of its key.")
        if any(column.codes != _parts(model, name) for column in links[key.name].columns(key) if _is_part(column)):
            raise ModelError(f"{name}: the link of {key.name} has other parts than its network.")
        _check_children(model, key)


def check_counted(model: Model, name: str) -> None:
    """Refuse columns that count rows which do not come with their owner: their number is not known when it is made."""
    derived = [column.derived for column in model.protection.schema.table(name).columns]
    for child in (rule.rows for rule in derived if rule is not None and rule.rows is not None):
        owner = model.protection.owner_link(child)
        link = None if owner is None else model.tables[child].links.get(owner.name)
        if link is None or link.with_owner is None:
            raise ModelError(f"{name}: counts rows of {child}, which do not come with their owner.")


def _columns(model: Model, table: str) -> Iterator[LinkColumn]:
    """What links of the table's own keys, and of keys that reference it, need in its network."""
    for key in (k for k in model.protection.links if table in (k.table, k.target) and k.table in model.tables):
        link = model.tables[key.table].links.get(key.name)
        for column in () if link is None else link.columns(key):
            if (key.target if column.on_target else key.table) == table and not _is_part(column):
                yield column


def _is_part(column: LinkColumn) -> bool:
    """Whether it is the part of the table that a row is of: one column for all links, left out where there is one."""
    return column.name == COMPONENT


def _parts(model: Model, table: str) -> int:
    return model.tables[table].network.sizes.get(COMPONENT, 1)


def _check_children(model: Model, key: Link) -> None:
    """Rows that come with their owner are drawn by features of it and of its first row, with one code more."""
    children = model.tables[key.table].links[key.name].with_owner
    if children is None:
        return
    if not children.unowned <= SIZE_LIMIT:
        raise ModelError(f"{key.table}: has an impossible number of rows without an owner.")
    if children.edges[-1] > MOST_OF_OWNER:
        raise ModelError(f"{key.table}: an owner has more than {MOST_OF_OWNER:,} rows in it, too many for memory.")
    above, own = model.tables[key.target].network, model.tables[key.table].network
    sizes = {**above.sizes, **{given.column: len(given.bins) for given in given_columns(above)}}
    known = {owner_column(name): codes + 1 for name, codes in sizes.items()}
    known |= {first_column(name): codes + 1 for name, codes in own.sizes.items()}
    known |= {RANK: len(RANK_EDGES) - 1, STRATUM: len(size_edges()) - 1}
    for given in given_columns(own):
        if known.get(given.column) != len(given.bins):
            raise ModelError(f"{key.table}: its network asks for {shown(given.column)}, which its rows do not have.")
