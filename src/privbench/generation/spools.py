"""Which columns of which tables are carried to tables made later, and how they are written.

An owner carries the features that its children's networks ask for, its fanouts and its entity; a row that reference
keys name carries how often. Numbers are drawn inside their bins here, once, when the row is made.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privbench.generation.carried import ROW, Carried
from privbench.methods.method import TableModel
from privbench.model.model import Model
from privbench.model.order import declared_order
from privbench.schema.unit import Link
from privbench.spn.fanouts import draw_numbers
from privbench.spn.feature_names import OWNER
from privbench.spn.named import columns_near, draw_named
from privbench.spn.nodes import given_columns
from privbench.spn.tree_links import FLOOR, Fanouts, Named

ENTITY = "entity"


def feature(name: str) -> str:
    """The carried column of a feature."""
    return f"code {name}"


def number(link: Link) -> str:
    """The carried column of a link: fanouts, or how often rows up to each one are named."""
    return f"number {link.name}"


class Spools:
    """The carried columns of all tables of one run, in a folder that the caller removes."""

    def __init__(self, model: Model, folder: Path) -> None:
        self._model = model
        self._folder = folder
        self._made: dict[str, Carried] = {}
        self._named: dict[str, float] = {}  # by carried column: the sum so far

    def of(self, table: str) -> Carried:
        """What is carried of a table, made or being made."""
        if table not in self._made:
            self._made[table] = Carried(self._folder / f"{len(self._made)}", self._types(table))
        return self._made[table]

    def is_made(self, table: str) -> bool:
        """Whether the table is there to be looked at."""
        return table in self._made

    def features(self, table: str) -> set[str]:
        """The features of a table's rows that must be known to carry them."""
        found: set[str] = set()
        for link in self._into(table):
            model = self._model.tables[link.table].links[link.name]
            if isinstance(model, Fanouts | Named) and model.column is not None:
                found.add(model.column)
            if isinstance(model, Named) and model.uncounted.more and model.column is not None:
                found |= set(columns_near(self._model.tables[table].network, model.column))
            if isinstance(model, Fanouts):
                found |= _asked(self._model.tables[link.table])
        return found

    def carry(
        self,
        table: str,
        *,
        codes: Mapping[str, NDArray[np.integer]],
        counts: Mapping[str, NDArray[np.int64]],
        entities: NDArray[np.int64],
        rows: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> None:
        """Append rows of a table: the codes of their features, fanouts drawn already, their entities, their numbers."""
        columns: dict[str, NDArray[np.generic]] = {feature(name): found for name, found in codes.items()}
        columns |= {ENTITY: entities, ROW: rows}
        for link in self._into(table):
            model = self._model.tables[link.table].links[link.name]
            if link.name in counts:
                columns[number(link)] = counts[link.name]
            elif isinstance(model, Fanouts):
                columns[number(link)] = draw_numbers(codes[model.column], model.edges, model.exponent, rng=rng)
            elif isinstance(model, Named) and model.column is not None:
                numbers = draw_named(model, self._model.tables[table].network, codes, rng=rng)
                columns[number(link)] = self._summed(link, numbers)
        self.of(table).write(columns, len(rows))

    def finish(self, table: str) -> None:
        """Make what a table carries ready to be read."""
        self.of(table).finish()

    def close(self) -> None:
        """Let go of all files, also of those of a table that was not finished."""
        for carried in self._made.values():
            carried.finish()

    def _summed(self, link: Link, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        before = self._named.get(link.name, 0.0)
        summed = before + np.cumsum(numbers + FLOOR)
        self._named[link.name] = float(summed[-1]) if len(summed) else before
        return summed

    def _types(self, table: str) -> dict[str, type[np.generic]]:
        types: dict[str, type[np.generic]] = {}
        for link in self._into(table):
            model = self._model.tables[link.table].links[link.name]
            if isinstance(model, Fanouts):
                types |= {feature(name): np.uint16 for name in _asked(self._model.tables[link.table])}
                types |= {ENTITY: np.int64, number(link): np.int64}
            elif isinstance(model, Named) and model.column is not None:
                types[number(link)] = np.float64
        if types and declared_order(self._model.spec, self._model.protection.schema.table(table)):
            types[ROW] = np.int64
        return types

    def _into(self, table: str) -> list[Link]:
        """The keys of other private tables that name this one."""
        private = self._model.tables
        return [k for k in self._model.protection.links if k.key.table == table != k.table and k.table in private]


def _asked(child: TableModel) -> set[str]:
    """The features of its owner that a table's rows are drawn by."""
    names = (given.column for given in given_columns(child.network))
    return {name.removeprefix(OWNER) for name in names if name.startswith(OWNER)}
