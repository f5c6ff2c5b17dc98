"""All kinds of links, and links to and from a model file.

To add a kind, write its class in a file of its own (`link.LinkModel` says what it must do) and list it in `KINDS`.
Reading trusts nothing: whatever a file holds, the result is a checked link or an error that the reader of
model files knows as damage.
"""

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.block_link import BlockLink
from privbench.spn.count_links import DegreeLink, SlotLink
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.inside_link import InsideLink
from privbench.spn.link import Arrays, LinkModel
from privbench.spn.reference_link import Rates, ReferenceLink

__all__ = [
    "KINDS",
    "BlockLink",
    "DegreeLink",
    "FanoutLink",
    "InsideLink",
    "LinkModel",
    "Rates",
    "ReferenceLink",
    "SlotLink",
]

KINDS: dict[str, type[LinkModel]] = {
    kind.kind: kind for kind in (SlotLink, DegreeLink, FanoutLink, ReferenceLink, InsideLink, BlockLink)
}
"""The kinds of links by what model files call them."""


def pack_link(where: str, link: LinkModel, arrays: Arrays) -> dict[str, Any]:
    """The header of a link; its numbers go to `arrays[where]`.

    >>> pack_link("0", BlockLink(column="key", blocks=2, slots=5), {})
    {'kind': 'blocks', 'column': 'key', 'blocks': 2, 'slots': 5}
    """
    return {"kind": link.kind, **link.to_json(where, arrays)}


def read_link(header: Mapping[str, Any], array: Callable[[str], NDArray[Any]]) -> LinkModel:
    """Rebuild the link that `pack_link` was given; `array` finds an array by its name."""
    kind = header["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelError(f"a link is of the unknown kind {str(kind)[:20]!r}: use the release that wrote it.")
    return KINDS[kind].from_json(header, array)
