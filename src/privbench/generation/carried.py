"""What tables made later need of the rows of an earlier one, on disk: codes, fanouts, in-degrees, entities.

An owner carries on the features that its children's networks ask for, its fanouts and its entity; a row that reference
keys point at carries on its in-degree. Numbers are drawn inside their bins here, once, when the row is made.

One raw file per column, appended block by block, and read by ranges or mapped into memory: memory does not grow
with the scale.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from privbench.generation.members import moved_to
from privbench.methods.method import TableModel
from privbench.model.model import Model
from privbench.schema.unit import Link
from privbench.spn.feature_names import OWNER
from privbench.spn.link import LinkModel
from privbench.spn.nodes import given_columns

ENTITY = "entity"
"""The column of the entity that a row belongs to; rows stand in the order of entities."""
OWNER_ROW = "owner"
"""The column of the row that owns a row, -1 for none."""
LONE = 2**62
"""Rows without an owner come last: their entities are numbered from here on."""


def feature(name: str) -> str:
    """The carried column of a feature."""
    return f"code {name}"


def number(link: Link) -> str:
    """The carried column of a link: fanouts, or in-degrees added up to each row."""
    return f"number {link.name}"


class Carried:
    """Columns of one table, written once from first to last row, then read."""

    def __init__(self, folder: Path, types: Mapping[str, type[np.generic]]) -> None:
        self._types = {name: np.dtype(kind) for name, kind in types.items()}
        self._paths = {name: folder / f"{i}.column" for i, name in enumerate(types)}
        self._files: dict[str, BinaryIO] = {}
        self.rows = 0
        folder.mkdir(parents=True)

    def write(self, columns: Mapping[str, NDArray[Any]], rows: int) -> None:
        """Append rows."""
        for name, kind in self._types.items():
            if name not in self._files:
                self._files[name] = self._paths[name].open("wb")
            self._files[name].write(np.ascontiguousarray(columns[name], kind).tobytes())
        self.rows += rows

    def finish(self) -> None:
        """Make everything written readable."""
        for file in self._files.values():
            file.close()

    def read(self, name: str, first: int, last: int) -> NDArray[Any]:
        """Rows first .. last-1 of a column, in memory."""
        kind = self._types[name]
        if last <= first:
            return np.empty(0, kind)
        return np.fromfile(self._paths[name], kind, last - first, offset=first * kind.itemsize)

    def mapped(self, name: str) -> NDArray[Any]:
        """A whole column, of which only what is looked at comes into memory."""
        if self.rows == 0:
            return np.empty(0, self._types[name])
        return np.memmap(self._paths[name], self._types[name], mode="r")


class Spools:
    """The carried columns of all tables of one run, in a folder that the caller removes."""

    def __init__(self, model: Model, folder: Path) -> None:
        self._model = model
        self._folder = folder
        self._made: dict[str, Carried] = {}
        self._sums: dict[str, float] = {}  # by link: of the numbers so far

    def of(self, table: str) -> Carried:
        """What is carried of a table, made or being made."""
        if table not in self._made:
            self._made[table] = Carried(self._folder / f"{len(self._made)}", self._types(table))
        return self._made[table]

    def carries(self, table: str) -> bool:
        """Whether anything of the rows of a table must be carried on."""
        return bool(self._types(table))

    def is_made(self, table: str) -> bool:
        """Whether the table is there to be looked at."""
        return table in self._made

    def features(self, table: str) -> set[str]:
        """The features of a table's rows that must be known to carry them."""
        network = self._model.tables[table].network
        features: set[str] = set()
        for key, link in self._into(table):
            if link.carries is not None:
                features |= link.carries.features(network)
            if link.with_owner is not None:
                features |= _asked(self._model.tables[key.table])
        return features

    def carry(
        self,
        table: str,
        *,
        codes: Mapping[str, NDArray[np.integer]],
        counts: Mapping[str, NDArray[np.int64]],
        entities: NDArray[np.int64],
        owners: NDArray[np.int64] | None,
        rng: np.random.Generator,
        able: Mapping[str, NDArray[np.bool_]] | None = None,
    ) -> None:
        """Append rows of a table: the codes of their features, fanouts drawn already, their entities and owners.

        `able` says of tables which rows can have rows of theirs, where not all can.
        """
        columns: dict[str, NDArray[np.generic]] = {feature(name): own for name, own in codes.items()}
        columns[ENTITY] = entities
        if owners is not None:
            columns[OWNER_ROW] = owners
        network = self._model.tables[table].network
        for key, link in self._into(table):
            if key.name in counts:
                columns[number(key)] = counts[key.name]
            elif link.carries is not None:
                numbers = link.carries.numbers(network, codes, rng=rng)
                if able and key.table in able and link.with_owner is not None:
                    numbers = moved_to(able[key.table], numbers)
                columns[number(key)] = self._summed(key, numbers) if link.carries.cumulated else numbers
        self.of(table).write(columns, len(entities))

    def finish(self, table: str) -> None:
        """Make what a table carries ready to be read."""
        self.of(table).finish()

    def close(self) -> None:
        """Let go of all files, also of those of a table that was not finished."""
        for carried in self._made.values():
            carried.finish()

    def _summed(self, key: Link, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        before = self._sums.get(key.name, 0.0)
        summed = before + np.cumsum(numbers)
        self._sums[key.name] = float(summed[-1]) if len(summed) else before
        return summed

    def _types(self, table: str) -> dict[str, type[np.generic]]:
        types: dict[str, type[np.generic]] = {}
        for key, link in self._into(table):
            if link.with_owner is not None:
                types |= {feature(name): np.uint16 for name in _asked(self._model.tables[key.table])}
                types[ENTITY] = np.int64
            if link.within_entity:
                types[ENTITY] = np.int64
            if link.carries is not None:
                types[number(key)] = np.float64 if link.carries.cumulated else np.int64
        return types | ({OWNER_ROW: np.int64} if self._is_between(table) else {})

    def _is_between(self, table: str) -> bool:
        """Whether keys of rows below reference rows above: it says which these are."""
        protection = self._model.protection
        return any(
            table in protection.up_to(name, link.target)[1:]
            for name, model in self._model.tables.items()
            for link in protection.links_of(name)
            if model.links[link.name].knows_above
        )

    def rows_above(self, table: str, rows: NDArray[np.int64], above: str) -> NDArray[np.int64]:
        """The rows of a table above that owner keys lead to from some rows of a table; -1 where there is none."""
        for name in self._model.protection.up_to(table, above):
            owners = self.of(name).mapped(OWNER_ROW)
            rows = np.where(rows >= 0, owners[np.maximum(rows, 0)], -1) if len(owners) else rows
        return rows

    def _into(self, table: str) -> list[tuple[Link, LinkModel]]:
        """The keys of other private tables that reference this one."""
        keys = [k for k in self._model.protection.links_to(table) if k.table != table and k.table in self._model.tables]
        return [(key, self._model.tables[key.table].links[key.name]) for key in keys]


def _asked(child: TableModel) -> set[str]:
    """The features of its owner that a table's rows are drawn by."""
    names = (given.column for given in given_columns(child.network))
    return {name.removeprefix(OWNER) for name in names if name.startswith(OWNER)}
