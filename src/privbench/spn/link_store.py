"""Links to and from named arrays and a small JSON-able header, for the model file.

Reading trusts nothing: whatever a stranger's file holds, the result is a checked link or an error that the reader of
model files knows as damage.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.errors import ModelError
from privbench.spn.links import DegreeCounts, SlotCounts
from privbench.spn.tree_links import Blocks, Fanouts, LinkModel, Named, Rates

Arrays = dict[str, NDArray[Any]]


def pack_link(where: str, link: LinkModel, arrays: Arrays) -> dict[str, Any]:
    """The header of a link; its numbers go to `arrays[where]`.

    >>> pack_link("0", Blocks(column="#key a.b", blocks=2, slots=5), {})
    {'kind': 'blocks', 'column': '#key a.b', 'blocks': 2, 'slots': 5}
    """
    if isinstance(link, Blocks):
        return {"kind": "blocks", "column": link.column, "blocks": link.blocks, "slots": link.slots}
    if isinstance(link, SlotCounts | DegreeCounts):
        arrays[where] = link.counts
        return {"array": where, "null_share": link.null_share if isinstance(link, DegreeCounts) else None}
    arrays[where] = link.edges
    bins = {"array": where, "column": link.column, "exponent": link.exponent}
    if isinstance(link, Fanouts):
        return {"kind": "fanouts", **bins, "unowned": link.unowned}
    rates = {"shape": link.uncounted.shape, "more": link.uncounted.more}
    return {"kind": "named", **bins, "null": link.null, "uncounted": rates}


def read_link(header: dict[str, Any], array: Callable[[str], NDArray[Any]]) -> LinkModel:
    """Rebuild the link that `pack_link` was given; `array` finds an array by its name."""
    kind = header.get("kind")
    if kind is None:
        counts, share = array(header["array"]), header["null_share"]
        return SlotCounts(counts=counts) if share is None else DegreeCounts(counts=counts, null_share=share)
    if kind == "blocks":
        return Blocks(column=_text(header["column"]), blocks=_whole(header["blocks"]), slots=_whole(header["slots"]))
    if kind not in ("fanouts", "named"):
        raise ModelError(f"a link is of the unknown kind {str(kind)[:20]!r}: use the release that wrote it.")
    edges, exponent = array(header["array"]), float(header["exponent"])
    if kind == "fanouts":
        return Fanouts(column=_text(header["column"]), edges=edges, exponent=exponent, unowned=float(header["unowned"]))
    column, null = (None if header[name] is None else _text(header[name]) for name in ("column", "null"))
    rates = Rates(**{name: float(header["uncounted"][name]) for name in ("shape", "more")})
    return Named(column=column, edges=edges, exponent=exponent, null=null, uncounted=rates)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ModelError("a link names a column by something that is not a text.")
    return value


def _whole(value: object) -> int:
    if type(value) is not int or abs(value) > np.iinfo(np.int64).max // 2**20:
        raise ModelError("a link has a number that no table has rows for.")
    return value
