"""Blocks of a table: their rows add up, their owners do not overlap, and no owner can get too many rows."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from privbench.generation import blocks as blocks_module
from privbench.generation.blocks import spans
from privbench.methods.method import TableModel
from privbench.schema.tables import Column, ForeignKey, Table
from privbench.schema.types import parse_type
from privbench.schema.unit import Link, LinkKind
from privbench.spn.count_links import SlotLink
from privbench.spn.feature_names import COMPONENT
from privbench.spn.nodes import Leaf

KEY = ForeignKey(columns=("owner",), table="person", references=("id",))
OWNER = Link(table="visit", key=KEY, kind=LinkKind.OWNER, nullable=True, unique=False)
VISIT = Table(name="visit", columns=(Column(name="owner", type=parse_type("INTEGER")),), foreign_keys=(KEY,))


@given(
    st.lists(st.floats(0, 9), min_size=1, max_size=8),
    st.integers(0, 500),
    st.integers(0, 40),
    st.integers(1, 4),
    st.integers(1, 64),
)
def test_blocks_cover_owners_once(counts: list[float], rows: int, owners: int, most: int, block: int) -> None:
    network = Leaf(column=COMPONENT, counts=np.ones(1))
    links = {OWNER.name: SlotLink(counts=np.array([[1.0, *counts]]))}
    model = TableModel(network=network, rows=rows, links=links)
    before, blocks_module.BLOCK_ROWS = blocks_module.BLOCK_ROWS, block
    try:
        found = list(spans(model, OWNER, rows, {"person": owners}, most=most))
    finally:
        blocks_module.BLOCK_ROWS = before
    owned = [s for s in found if s.owners is not None]
    assert [s.owners[0] for s in owned] == [0, *(s.owners[1] for s in owned[:-1])][: len(owned)]
    assert all(0 <= s.rows <= (s.owners[1] - s.owners[0]) * most for s in owned)
    assert [s.first_row for s in found] == np.cumsum([0, *(s.rows for s in found)])[:-1].tolist()
    assert sum(s.rows for s in found) <= rows
    if owners == 0:
        assert sum(s.rows for s in found) == rows, "without owners, rows of a nullable key have none"
