"""What a method is: from a vault to one model per private table. All methods share these values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from privbench.privacy.vault import Vault
from privbench.spn.links import LinkCounts
from privbench.spn.nodes import Node

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is; none of it private."""


def silent(_what: str, _done: int, _all: int) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableModel:
    """What is released of one private table: its network, its (noisy) size and the links of its keys by name."""

    network: Node
    rows: float
    links: Mapping[str, LinkCounts] = field(default_factory=dict)


Method = Callable[[Vault, Progress], dict[str, TableModel]]
"""Learn all private tables, spending at most the ledger's budget."""
