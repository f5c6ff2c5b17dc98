"""What the networks of method `tree` must have cost: an event for each column, pair and count of unowned rows."""

from collections.abc import Iterator

from privbench.methods.method import TableModel
from privbench.privacy.weighted import weights_query
from privbench.schema.unit import Neighbours
from privbench.spn.clique import CliqueTree, number_of_bins
from privbench.spn.feature_names import STRATUM, null_column
from privbench.spn.nodes import Leaf, walk

Query = tuple[str, int]
"""A query as the ledger calls it, and how many numbers it drew."""


def tree_draws(table: TableModel, *, entity: bool, neighbours: Neighbours) -> Iterator[Query]:
    """The draws without which a table could not have come out as it did."""
    if entity and neighbours is Neighbours.ADD_REMOVE:
        yield "weight of all rows", 1
    for node in walk(table.network):
        if isinstance(node, Leaf) and not node.constant:
            yield weights_query([node.column]), len(node.counts)
        if isinstance(node, CliqueTree):
            yield from _clique_draws(node)
    for name, link in table.links.items():
        if link.with_owner is not None and link.with_owner.unowned:
            yield weights_query([null_column(name)]), 2


def _clique_draws(tree: CliqueTree) -> Iterator[Query]:
    bins = {given.column: number_of_bins(given) for given in tree.given}
    bins |= {column.column: number_of_bins(column) for column in tree.columns}
    for column in tree.columns:
        strata = [STRATUM] if STRATUM in column.parents else []
        yield weights_query([*strata, column.column]), len(column.counts) * bins.get(STRATUM, 1)
        for parent in column.parents:
            if parent != STRATUM:
                yield weights_query([parent, column.column]), bins[parent] * bins[column.column]
