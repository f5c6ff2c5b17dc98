"""What functions take for a source: where a database is, tables in memory, or a folder of CSV files with options."""

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from privbench.errors import SpecError
from privbench.io.memory import Tables
from privbench.io.urls import shown
from privbench.schema.csv_options import CsvOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFolder:
    """A folder whose CSV files are not written in the usual way."""

    path: str
    options: CsvOptions

    def __str__(self) -> str:
        return self.path


Located = str | os.PathLike[str] | CsvFolder | Tables
"""A source that can be opened."""
Given = Located | Mapping[str, Any]
"""A source as callers give it; a mapping has the tables by name."""


def source_of(
    source: Given,
    *,
    schema: str | os.PathLike[str] | None = None,
    null: Collection[str] = (),
    delimiter: str | None = None,
    ragged: str = "error",
) -> Located:
    """Put a source and what is said of it together. Raises SpecError for words that it does not take.

    `schema` is for tables in memory, `null`, `delimiter` and `ragged` for folders with CSV files.
    """
    if isinstance(null, str):
        raise SpecError(f"null is the text {null!r}, but a list of texts is wanted: null=[{null!r}].")
    options = _options(null, delimiter, ragged)
    if isinstance(source, Tables | Mapping):
        if options is not None:
            raise SpecError(
                "null, delimiter and ragged are for folders with CSV files, and the source is tables in memory."
            )
        if isinstance(source, Mapping):
            return Tables(source, schema=schema)
    elif not isinstance(source, str | os.PathLike | CsvFolder):
        raise SpecError(
            f"the source is a {type(source).__name__}: it must be a path, or a dict with the tables by name, such as "
            '{"customer": df}.'
        )
    if schema is not None:
        raise SpecError("schema is for tables in memory: put a schema.sql into the folder, a database has its own.")
    if options is None or isinstance(source, Tables | CsvFolder):
        return source
    return CsvFolder(path=os.fspath(source), options=options)


def with_options(source: Given, options: CsvOptions | None) -> Located:
    """Read a place as a spec says that its CSV files are written; tables in memory are as they are."""
    located = source_of(source)
    if options is None or isinstance(located, Tables | CsvFolder):
        return located
    return CsvFolder(path=os.fspath(located), options=options)


def csv_options(source: Located) -> CsvOptions | None:
    """The options of a folder with CSV files, where there are any."""
    return source.options if isinstance(source, CsvFolder) else None


def path_of(source: Located) -> str | None:
    """Where a source is; None for tables in memory."""
    if isinstance(source, Tables):
        return None
    return source.path if isinstance(source, CsvFolder) else os.fspath(source)


def kept_place(source: Located) -> str | None:
    """Where a source is, as it may be shown and written down: without a password; None for tables in memory."""
    path = path_of(source)
    return None if path is None else shown(path)


def name_of(source: Located) -> str:
    """What to call a source in a message or a result."""
    return kept_place(source) or str(source)


def _options(null: Collection[str], delimiter: str | None, ragged: str) -> CsvOptions | None:
    try:
        options = CsvOptions.model_validate({"null": tuple(null), "delimiter": delimiter, "ragged": ragged})
    except ValidationError as error:
        first = error.errors()[0]
        raise SpecError(f"{first['loc'][0]}: {first['msg'].removeprefix('Value error, ')}.") from None
    return None if options == CsvOptions() else options
