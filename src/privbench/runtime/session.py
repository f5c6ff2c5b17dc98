"""The seam between the protocol of measuring and a system: who is measured, and one connection to each of them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import pyarrow as pa

from privbench.methods.method import Progress
from privbench.runtime.plan import Plan
from privbench.runtime.statistics import Statistics
from privbench.schema.tables import Schema, Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A database to measure, and how to read its tables; a table that it has not gives no batch."""

    name: str
    read: Callable[[Table], Iterator[pa.RecordBatch]]


class Clock(Enum):
    """What the time of a query is."""

    CPU = "cpu"
    """Processor time of the process that answered it."""
    CLIENT = "client"
    """Time until the answer was here, which everything else on the machine and the network delays."""


class FailedQueryError(Exception):
    """One query failed, or took too long, on one variant; its text says why. It becomes part of the result."""


class Session(Protocol):
    """A connection to one variant."""

    def explain(self, sql: str) -> Plan:
        """Run a query once and give its plan. Raises FailedQueryError."""

    def run(self, sql: str) -> float:
        """Run a query and give the milliseconds that it took. Raises FailedQueryError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """All variants loaded into one system, ready to be measured."""

    system: str
    """Its name and version, for readers."""
    clock: Clock
    sessions: Mapping[str, Session]
    pages: Mapping[str, Mapping[str, int]]
    """The pages of each table, by variant; empty where a system does not tell."""
    statistics: Mapping[str, Statistics]
    """What the planner knows of columns, by variant; likewise."""
    notes: tuple[str, ...] = ()
    """What is not the same for all variants."""


class System(Protocol):
    """A database system that queries are measured on."""

    def check(self) -> None:
        """Raise ServerError if it cannot be used, before any work is done for it."""

    def load(
        self, schema: Schema, variants: tuple[Variant, ...], *, timeout: float, progress: Progress
    ) -> AbstractContextManager[Loaded]:
        """Load all variants with the same tables, keys and indexes; all is removed at the end of the block."""

    def translate(self, sql: str, schema: Schema) -> str:
        """Write a query of the workload in the system's words."""
