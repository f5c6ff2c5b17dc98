"""Links of all kinds: they check themselves, come back from a file, say what they can do; blocks draw their slots."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.schema.tables import ForeignKey
from privbench.schema.unit import Link, LinkKind
from privbench.spn.block_link import BlockLink
from privbench.spn.count_links import DegreeLink, SlotLink
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.feature_names import in_degree_column, key_column, null_column, own_column, rows_column, shown
from privbench.spn.inside_link import InsideLink
from privbench.spn.link import LinkModel
from privbench.spn.links import KINDS, pack_link, read_link
from privbench.spn.reference_link import Rates, ReferenceLink

EDGES = np.array([0, 1, 2, 5])
KEY = Link(
    table="a",
    key=ForeignKey(columns=("b",), table="c", references=("id",)),
    kind=LinkKind.REFERENCE,
    nullable=True,
    unique=False,
)
LINKS: list[LinkModel] = [
    FanoutLink(column=rows_column("a.b"), edges=EDGES, exponent=1.5, unowned=3.5),
    ReferenceLink(column=in_degree_column("a.b"), edges=EDGES, exponent=-1.0, null=None),
    ReferenceLink(column=in_degree_column("a.b"), edges=EDGES, null=None, uncounted=Rates(shape=0.3, more=7.5)),
    ReferenceLink(column=None, null=null_column("a.b")),
    ReferenceLink(column=in_degree_column("a.b"), edges=EDGES, null=None, own=own_column("a.b")),
    InsideLink(column=in_degree_column("a.b"), edges=EDGES, exponent=1.0, null=null_column("a.b")),
    BlockLink(column=key_column("a.b"), blocks=3, slots=7),
    SlotLink(counts=np.array([[1.0, 2.0]])),
    DegreeLink(counts=np.array([1.0, 2.0]), null_share=0.25),
]


@pytest.mark.parametrize("link", LINKS, ids=lambda link: type(link).__name__)
def test_links_come_back_from_a_file(link: LinkModel) -> None:
    arrays: dict[str, NDArray[Any]] = {}
    header = pack_link("x", link, arrays)
    again = read_link(header, arrays.__getitem__)
    assert type(again) is type(link)
    more: dict[str, NDArray[Any]] = {}
    assert pack_link("x", again, more) == header
    assert all((more[name] == arrays[name]).all() for name in arrays)


@pytest.mark.parametrize(
    "edges",
    [[0], [1, 1], [2, 1], [-1, 2], [[0, 1]], [0, 2**41], [0.0, 1.0]],
)
def test_wrong_edges(edges: Any) -> None:
    with pytest.raises(ModelError, match="edges"):
        FanoutLink(column="a", edges=np.array(edges), exponent=1.0, unowned=0.0)
    with pytest.raises(ModelError, match="edges"):
        ReferenceLink(column="a", edges=np.array(edges), exponent=1.0, null=None)


@pytest.mark.parametrize("exponent", [np.nan, np.inf, 65.0, -65.0])
def test_wrong_exponents(exponent: float) -> None:
    with pytest.raises(ModelError, match="exponent"):
        FanoutLink(column="a", edges=EDGES, exponent=exponent, unowned=0.0)


@pytest.mark.parametrize("unowned", [np.nan, np.inf, -1.0])
def test_wrong_rows_without_an_owner(unowned: float) -> None:
    with pytest.raises(ModelError, match="without an owner"):
        FanoutLink(column="a", edges=EDGES, exponent=1.0, unowned=unowned)


@pytest.mark.parametrize(
    ("shape", "more"), [(0.0, 1.0), (np.nan, 1.0), (2e6, 1.0), (1.0, -1.0), (1.0, np.nan), (1.0, 2e6)]
)
def test_wrong_rates(shape: float, more: float) -> None:
    with pytest.raises(ModelError, match="rates"):
        Rates(shape=shape, more=more)


def test_two_columns_that_say_which_keys_are_null() -> None:
    with pytest.raises(ModelError, match="two columns"):
        ReferenceLink(column=None, null=null_column("a.b"), own=own_column("a.b"))


@pytest.mark.parametrize(("blocks", "slots"), [(-1, 4), (5, 4), (0, 4)])
def test_wrong_blocks(blocks: int, slots: int) -> None:
    with pytest.raises(ModelError):
        BlockLink(column="a", blocks=blocks, slots=slots)


@pytest.mark.parametrize(
    "header",
    [
        {"kind": "other"},
        {"kind": "blocks", "column": 3, "blocks": 1, "slots": 1},
        {"kind": "blocks", "column": "a", "blocks": True, "slots": 1},
        {"kind": "blocks", "column": "a", "blocks": 1.0, "slots": 1},
        {"kind": "blocks", "column": "a", "blocks": 1, "slots": 10**30},
        {"kind": 3},
        {"kind": "in-degrees", "array": "x", "column": [], "null": None, "exponent": 1.0},
    ],
)
def test_damaged_headers(header: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        read_link(header, {"x": EDGES}.__getitem__)


@given(st.integers(1, 12), st.integers(0, 30), st.integers(0, 200), st.integers(0, 99))
def test_slots_lie_evenly_in_their_block(blocks: int, more: int, rows: int, seed: int) -> None:
    link = BlockLink(column="a", blocks=blocks, slots=blocks + more)
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, blocks + 1, rows)
    slots = link.slots_of(codes, rng=rng)
    assert ((slots == -1) == (codes == blocks)).all()
    named = slots >= 0
    assert (slots[named] * blocks // link.slots == codes[named]).all()
    for block in range(blocks):
        inside = [s for s in range(link.slots) if s * blocks // link.slots == block]
        counts = np.bincount(slots[codes == block], minlength=link.slots)[inside] if (codes == block).any() else [0]
        assert max(counts) - min(counts) <= 1


def test_slots_of_an_empty_table() -> None:
    empty = BlockLink(column="a", blocks=0, slots=0)
    assert empty.slots_of(np.zeros(3, int), rng=np.random.default_rng(0)).tolist() == [-1, -1, -1]


def test_what_each_kind_can_do() -> None:
    """Whatever asks for a capability gets an object with its verbs, or None; so no caller needs to know the kind."""
    can = {link.kind: (link.with_owner, link.carries, link.shares) for link in LINKS}
    assert set(can) == set(KINDS)
    assert {kind for kind, (owner, _, _) in can.items() if owner is not None} == {"fanouts"}
    assert [link.kind for link in LINKS if link.within_entity] == ["inside"]
    assert {kind for kind, (_, _, shares) in can.items() if shares is not None} == {"slots", "degrees"}
    assert [link.carries is not None for link in LINKS] == [True, True, True, False, True, True, False, False, False]
    assert [link for link in LINKS if link.knows_above] == [LINKS[4]]


@pytest.mark.parametrize("link", LINKS, ids=lambda link: type(link).__name__)
def test_columns_by_network(link: LinkModel) -> None:
    wanted = {
        "fanouts": [("rows", 3, True)],
        "in-degrees": [("in-degree", 3, True), ("null", 2, False), ("own", 3, False)],
        "inside": [("in-degree", 3, True), ("null", 2, False)],
        "blocks": [("key", 4, False)],
        "slots": [("part", 1, False)],
        "degrees": [],
    }[link.kind]
    columns = [(shown(c.name).split()[0][1:], c.codes, c.on_target) for c in link.columns(KEY)]
    assert set(columns) <= set(wanted)
    assert columns or link.kind == "degrees"
