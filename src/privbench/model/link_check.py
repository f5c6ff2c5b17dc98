"""The links of a model that stand in networks must find their columns there, with the codes they expect."""

from collections.abc import Iterator

from privbench.errors import ModelError
from privbench.model.model import Model
from privbench.privacy.facts import SIZE_LIMIT
from privbench.schema.unit import Link, LinkKind
from privbench.spn.fanouts import RANK_EDGES, size_edges
from privbench.spn.feature_names import FIRST, OWNER, RANK, STRATUM
from privbench.spn.nodes import given_columns
from privbench.spn.tree_links import Blocks, Fanouts, Named

MOST_OF_OWNER = 2**24
"""The rows of an owner are made in one block, so that their number must not fill the memory."""
KINDS: dict[type, LinkKind] = {Fanouts: LinkKind.OWNER, Named: LinkKind.REFERENCE, Blocks: LinkKind.CATEGORY}
"""Which keys a link can be of; counts of its own can be of any."""


def feature_sizes(model: Model, table: str) -> dict[str, int]:
    """The columns that links want in the network of a table, beside the table's own, with their numbers of codes."""
    sizes: dict[str, int] = {}
    for column, codes in _features(model, table):
        if column in sizes or column in model.codecs[table]:
            raise ModelError(f"{table}: two things are called {column} in its network.")
        sizes[column] = codes
    return sizes


def check_links(model: Model, name: str) -> None:
    """Refuse links of a kind that their key cannot have, and given columns that its rows do not have."""
    for link in (k for k in model.protection.links if k.table == name):
        found = model.tables[name].links[link.name]
        if KINDS.get(type(found), link.kind) is not link.kind:
            raise ModelError(f"{name}: the link of {link.name} is not of the kind of its key.")
        if isinstance(found, Fanouts):
            if not found.unowned <= SIZE_LIMIT:
                raise ModelError(f"{name}: has an impossible number of rows without an owner.")
            if found.edges[-1] > MOST_OF_OWNER:
                raise ModelError(f"{name}: an owner has more than {MOST_OF_OWNER:,} rows in it, too many for memory.")
            _check_given(model, link)


def _features(model: Model, table: str) -> Iterator[tuple[str, int]]:
    for link in model.protection.links:
        found = model.tables[link.table].links.get(link.name) if link.table in model.tables else None
        if isinstance(found, Fanouts | Named) and link.key.table == table and found.column is not None:
            yield found.column, len(found.edges) - 1
        if isinstance(found, Named) and link.table == table and found.null is not None:
            yield found.null, 2
        if isinstance(found, Blocks) and link.table == table:
            nullable = link.nullable
            yield found.column, max(found.blocks + nullable, 1)


def _check_given(model: Model, owner: Link) -> None:
    """Rows that are born with their owner are drawn by features of it and of its first row, with one code more."""
    above = model.tables[owner.key.table].network
    sizes = {**above.sizes, **{given.column: len(given.bins) for given in given_columns(above)}}
    known = {f"{OWNER}{name}": codes + 1 for name, codes in sizes.items()}
    known |= {f"{FIRST}{name}": codes + 1 for name, codes in model.tables[owner.table].network.sizes.items()}
    known |= {RANK: len(RANK_EDGES) - 1, STRATUM: len(size_edges()) - 1}
    for given in given_columns(model.tables[owner.table].network):
        if known.get(given.column) != len(given.bins):
            raise ModelError(f"{owner.table}: its network asks for {given.column}, which its rows do not have.")
