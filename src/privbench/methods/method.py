"""What a method is: from a vault and settings to one model per private table. All methods share these values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from privbench.methods.forecast import Forecast, PlanInput
from privbench.methods.size import Size
from privbench.privacy.partition import Block
from privbench.privacy.vault import Vault
from privbench.spn.links import LinkModel
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
    links: Mapping[str, LinkModel] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Learnt:
    """A network, the estimate of its rows, and the blocks of its parts (the rows behind each COMPONENT code)."""

    network: Node
    size: Size
    parts: tuple[Block, ...]


class Settings(Protocol):
    """What the settings of every method say; the fields of a method's own settings stand in the receipt."""

    @property
    def as_published(self) -> bool:
        """Whether a step is not differentially private as claimed."""


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(Generic[S]):
    """A way to learn all private tables, spending at most the ledger's budget."""

    name: str
    read_settings: Callable[[Mapping[str, Any]], S]
    """The settings that a spec declares; SpecError for one that the method does not have."""
    learn: Callable[[Vault, S, Progress], dict[str, TableModel]]
    parts_rows: bool = False
    """Whether it charges disjoint blocks of rows in parallel, which only pure epsilon allows."""
    forecast: Callable[[PlanInput, S], Forecast] | None = None
    """How it is going to divide a budget, and what will come of it; None: it decides while it spends."""
