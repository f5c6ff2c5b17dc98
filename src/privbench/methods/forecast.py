"""What a method says before it spends: values of a plan, table by table. Nothing here has seen any data."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from privbench.privacy.events import PrivacyMeasure
from privbench.privacy.facts import Facts

REMEDIES = ("a larger epsilon", "fewer tables and columns (`drop`)", "domains with fewer cells")
"""What to do about noise."""


def remedies_line(*more: str) -> str:
    """Say what to do about noise; `more` are remedies beside those that always help."""
    return f"Remedies for noise: {', '.join((*REMEDIES, *more))}."


class Outlook(Enum):
    """What will be signal, in plain words."""

    PAIRS = "pairs of columns will be learnt"
    STRONGEST = "only the strongest pairs of columns will be learnt"
    NAMED = "only single columns and the pairs of the spec will be learnt"
    SINGLES = "only single columns will be learnt"
    NOISE = "mostly noise"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanInput:
    """What is known before a fit: public facts, what may be spent, and numbers of rows, known or guessed."""

    facts: Facts
    budget: Fraction
    measure: PrivacyMeasure
    rows: Mapping[str, int]
    """Tables that are left out are taken to be as large as the entity table."""

    @property
    def entities(self) -> int:
        """Rows of the entity table."""
        return self.rows[self.facts.entity]

    def rows_of(self, table: str) -> int:
        """Rows of a private table."""
        return self.rows.get(table, self.entities)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnForecast:
    """A histogram of one column, counted in entities."""

    column: str
    codes: int
    noise: float
    """Standard deviation of each count."""
    stands_out: float
    """The number of entities that have to share a code for it to stand out of the noise."""
    visible: int
    """The most codes that can stand out, if they are about even."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairForecast:
    """Tables of pairs of columns, counted in entities."""

    most: int
    """The most pairs that are measured."""
    cells: int
    """Cells of the table of two typical columns."""
    noise: float
    """Standard deviation of each cell if all pairs are measured."""
    dependence: float
    """The smallest dependence of two typical columns that will be seen: the share of entities (total variation) by
    which their table differs from that of independent columns."""
    least_dependence: float
    """The same for columns of two codes each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableForecast:
    """How a table will be learnt, and what will come of it."""

    table: str
    amount: Fraction
    """What it may spend, in the privacy measure of the ledger."""
    entities: int
    """The most entities that have rows here."""
    given: tuple[str, ...]
    """Columns of the owner row and the like, on which own ones may depend."""
    ratio: float
    """Entities per unit of noise, if the columns shared the amount evenly."""
    settings: Mapping[str, float]
    """The method's settings for this table."""
    columns: tuple[ColumnForecast, ...]
    pairs: PairForecast | None
    outlook: Outlook
    singles_from: int
    """The number of entities that is needed for most single columns."""
    pairs_from: int
    """The number of entities that is needed for a whole tree of pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """All tables that have something to learn, owners first, and roughly how long it takes."""

    tables: tuple[TableForecast, ...]
    seconds: float
    refusal: str | None = None
    """Why a fit will be refused, if it will."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Say which tables will be mostly noise."""
        return tuple(_warning(table) for table in self.tables if table.outlook is Outlook.NOISE)


def _warning(table: TableForecast) -> str:
    needed = sorted(column.stands_out for column in table.columns)[len(table.columns) // 2]
    return (
        f"{table.table}: its columns are mostly noise: about {needed:,.0f} entities would have to share a value for it "
        f"to stand out in a typical one, and there are {table.entities:,}."
    )
