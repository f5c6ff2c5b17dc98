"""Parts in files, for databases that do not fit into memory: read back part by part, whenever something is counted.

The files lie in a folder that only this user can read, and whoever made the folder removes it.
"""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from privbench.encode.coded import CodedTable
from privbench.encode.columns_file import Columns, ColumnsFile
from privbench.privacy.part import Part
from privbench.privacy.part_counter import PartCounter
from privbench.threads import cores, in_order

T = TypeVar("T")
_CODES, _KEYS, _VALUES, _ENTITIES, _NUMBERS = "codes.", "keys.", "values.", "entities", "numbers"


@dataclass(frozen=True, slots=True, eq=False)
class _TableFile:
    """A table of a part: its file, and the keys that are the entities themselves, which are written once."""

    file: ColumnsFile
    same: tuple[str, ...]


class FileParts:
    """Parts in files of a folder. Any number of threads may write and read different parts."""

    def __init__(self, folder: Path, parts: int) -> None:
        self._folder = folder
        self._files: list[Mapping[str, _TableFile]] = [{} for _ in range(parts)]

    def __repr__(self) -> str:
        return "<private tables>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")

    def __len__(self) -> int:
        return len(self._files)

    def write(self, number: int, part: Part) -> None:
        """Write a part, in place of the one of that number. Raises StoreError where that fails."""
        for old in self._files[number].values():
            old.file.remove()
        self._files[number] = {
            name: self._written(self._folder / f"part-{number}-{at}.arrow", table, part.raw.get(name, {}))
            for at, (name, table) in enumerate(part.tables.items())
        }

    def read(self, number: int) -> Part:
        """Read a part. Raises StoreError if one of its files is not as it was written."""
        tables, raw = {}, {}
        for name, written in self._files[number].items():
            (columns,) = written.file.read()
            tables[name] = _table(columns, written.same)
            raw[name] = _named(columns, _VALUES)
        return Part(tables=tables, raw=raw)

    def map(self, work: Callable[[PartCounter], T]) -> Generator[T, None, None]:
        """What some work gives for each part, of which there are as many in memory as there are cores."""
        yield from in_order(lambda number: work(PartCounter(self.read(number))), range(len(self)), threads=cores())

    def rewrite(self, work: Callable[[Part], Part]) -> None:
        """Put another part in the place of each."""
        list(in_order(lambda number: self.write(number, work(self.read(number))), range(len(self)), threads=cores()))

    def _written(self, path: Path, table: CodedTable, raw: Columns) -> _TableFile:
        same = tuple(name for name, rows in table.keys.items() if rows is table.entities)
        keys = {name: rows for name, rows in table.keys.items() if name not in same}
        numbers = {} if table.numbers is None else {_NUMBERS: table.numbers}
        file = ColumnsFile(path)
        file.append(
            {_ENTITIES: table.entities}
            | numbers
            | {_CODES + name: codes for name, codes in table.codes.items()}
            | {_KEYS + name: rows for name, rows in keys.items()}
            | {_VALUES + name: values for name, values in raw.items()}
        )
        return _TableFile(file, same)


def _table(columns: Columns, same: tuple[str, ...]) -> CodedTable:
    entities = columns[_ENTITIES]
    return CodedTable(
        codes=_named(columns, _CODES),
        keys=_named(columns, _KEYS) | dict.fromkeys(same, entities),
        entities=entities,
        numbers=columns.get(_NUMBERS),
    )


def _named(columns: Columns, prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): column for name, column in columns.items() if name.startswith(prefix)}
