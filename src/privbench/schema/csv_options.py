"""How the CSV files of a folder are written, where that is not the usual way: the word `csv` of a spec.

An empty field is always NULL; `null` names other texts that are. Without a `delimiter` it is the comma, and a file that
seems to have another one is refused. A row that is shorter or longer than the first line is refused; with `ragged: pad`
a shorter one has NULL for its last values.
"""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from privbench.schema.table_spec import LONGEST_NAME, Words

DELIMITERS = {",": "','", ";": "';'", "\t": "tab", "|": "'|'"}
"""Usual delimiters, as one types them."""
_NO_DELIMITERS = '"\r\n\\'


class CsvOptions(Words):
    """What tells values, columns and NULLs apart in a CSV file."""

    null: Annotated[tuple[Annotated[str, Field(max_length=LONGEST_NAME)], ...], Field(max_length=100)] = ()
    delimiter: str | None = None
    ragged: Literal["error", "pad"] = "error"

    @field_validator("delimiter")
    @classmethod
    def _is_one_character(cls, given: str | None) -> str | None:
        read = {"tab": "\t", "\\t": "\t"}.get(given or "", given)
        if read is not None and (len(read) != 1 or not read.isascii() or read in _NO_DELIMITERS):
            raise ValueError(f"{given!r} is not one character, such as ';', '|' or tab")
        return read

    @property
    def separator(self) -> str:
        """The character between two columns."""
        return self.delimiter or ","
