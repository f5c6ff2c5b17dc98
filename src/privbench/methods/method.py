"""What a method is: from a vault and settings to one model per private table. All methods share these values.

A method is a value with capabilities: what generic code needs to know of it is a field, so that a method may come from
anywhere (`registry.py`).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Generic, Protocol, TypeVar

from privbench.methods.forecast import Forecast, PlanInput
from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.facts import Facts
from privbench.privacy.vault import Vault
from privbench.spn.link import LinkModel
from privbench.spn.nodes import Node

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is done, and how much there is; none of it private."""


DEVIATIONS = 1.645
"""A range of 90 % goes so many standard deviations up and down."""


def silent(_what: str, _done: int, _all: int) -> None:
    """Report no progress."""


def in_percent(progress: Progress, what: str, whole: int) -> Callable[[int], None]:
    """Report parts of a whole that is private, such as the rows of a table, as percent: each once, in order.

    >>> add = in_percent(lambda *told: print(*told), "reading", 400)
    reading 0 100
    >>> add(1), add(9), add(390)
    reading 2 100
    reading 100 100
    (None, None, None)
    """
    done = told = 0
    progress(what, 0, 100)

    def add(part: int) -> None:
        nonlocal done, told
        done += part
        now = min(100 * done // max(whole, 1), 100)
        if now > told:
            told = now
            progress(what, now, 100)

    return add


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableModel:
    """What is released of one private table: its network, its (noisy) size and the links of its keys by name."""

    network: Node
    rows: float
    rows_error: float | None = None
    """The expected relative standard error of `rows`: 0 where the size is public, None where it is not known."""
    rows_low: float | None = None
    rows_high: float | None = None
    """Between these the size is expected with 90 %; None where that is not known."""
    links: Mapping[str, LinkModel] = field(default_factory=dict)


def range_of(rows: float, deviation: float) -> tuple[float, float]:
    """Between which numbers a size is with 90 %, if it is off by noise of that standard deviation.

    >>> [round(number, 1) for number in range_of(100, 10)]
    [83.5, 116.5]
    """
    return max(rows - DEVIATIONS * deviation, 0.0), rows + DEVIATIONS * deviation


class Settings(Protocol):
    """What the settings of every method say; the fields of a method's own settings stand in the receipt."""

    @property
    def as_published(self) -> bool:
        """Whether a step is not differentially private as claimed."""


S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Implied:
    """What the tables of a model must have cost at least: queries as the receipt describes them, repeated as asked."""

    queries: tuple[Mapping[str, Any], ...]
    """Noisy counts without which the model could not have come out as it did."""
    in_any_bins: tuple[Mapping[str, Any], ...] = ()
    """The same, where the model does not keep into how many bins each axis was divided."""
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By kind of query and table, for choices and the like: how many there were at least."""
    partitions: Counter[str] = field(default_factory=Counter)
    """By table: how many partitions may have been charged at most; none where a method does not split rows."""
    foreign: tuple[str, ...] = ()
    """Tables that contain parts that the method never produces, whose cost is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """An event of a receipt: its query as the receipt describes it, and what it cost."""

    query: Mapping[str, Any]
    amount: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Charges:
    """All that a receipt charges, by the names of the root's scopes, and what it says there was to spend."""

    measure: PrivacyMeasure
    budget: Fraction
    scopes: Mapping[str, Sequence[Charge]]

    def total(self, scope: str) -> Fraction:
        """What a scope cost."""
        return sum((charge.amount for charge in self.scopes.get(scope, ())), Fraction(0))

    def agree(self, charged: Fraction, planned: Fraction, *, events: int = 1) -> bool:
        """Whether a charge is what was planned, up to rounding: a share, and a step of the grid for each event."""
        return abs(charged - planned) <= planned * ROUNDED + Fraction(events + 1, self.measure.grid)


ROUNDED = Fraction(1, 10**9)
"""Amounts are rounded by less than this share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Method(Generic[S]):
    """A way to learn all private tables, spending at most the ledger's budget."""

    name: str
    read_settings: Callable[[Mapping[str, Any]], S]
    """The settings that a spec declares; SpecError for one that the method does not have."""
    learn: Callable[[Vault, Facts, S, Progress], dict[str, TableModel]]
    implied: Callable[[Facts, Mapping[str, TableModel], S], Implied]
    """What released tables must have cost: the verifier of models holds it against the receipt."""
    mischarged: Callable[[Facts, S, Charges], Iterator[str]] | None = None
    """What a receipt charges otherwise than the method's plan does for its budget, as sentences. None where the method
    decides while it spends: then an event of which the released tables do not tell can be left out."""
    forecast: Callable[[PlanInput, S], Forecast] | None = None
    """How it is going to divide a budget, and what will come of it; None: it decides while it spends."""
    parallel_composition: bool = False
    """Whether it charges disjoint blocks of rows in parallel, which only pure epsilon allows: it takes no delta."""
    children_with_owner: bool = False
    """Whether child rows are made with their owner row, which must then be made first."""
    computes_columns: bool = False
    """Whether it works out computed columns from the rows around them, and looks for them if its settings say so."""
    counts_in_parts: bool = False
    """Whether all that it asks adds up over parts of the rows: it never asks for dependences or for splits of rows."""
