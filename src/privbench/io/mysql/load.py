"""Rows into MySQL and MariaDB: a batch is written as text column by column, and sent as a file or as one statement.

LOAD DATA LOCAL is the faster way, where the server allows it; else rows are literals of INSERT statements. Both read
the same text but for the sign around strings.
"""

import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from privbench.io.mysql.connection import quote_name, run
from privbench.io.mysql.ddl import NewColumn, NewTable
from privbench.io.mysql.show_create import quoted_list
from privbench.io.stored import clock_text
from privbench.schema.tables import Column, Table
from privbench.schema.types import Kind

_STATEMENT_BYTES = 1 << 20
"""An INSERT statement is about so long: servers refuse one that is longer than max_allowed_packet."""


def load_file(connection: Any, table: Table, new: NewTable, batch: pa.RecordBatch) -> None:
    """Send a batch with LOAD DATA LOCAL."""
    kept = _kept(table, new)
    names = quoted_list(new_column.name for _, new_column in kept)
    variables = ", ".join(f"@v{i}" for i in range(len(kept)))
    values = ", ".join(f"{quote_name(n.name)} = {n.stored.of_text(f'@v{i}')}" for i, (_, n) in enumerate(kept))
    plain = all(n.stored.of_text("v") == "v" for _, n in kept)
    fields = [_text(batch.column(c.name), c, n, '"') for c, n in kept]
    with tempfile.NamedTemporaryFile(prefix="privbench-") as file:
        for piece in _pieces(_joined(fields), "\n"):
            file.write(piece)
            file.write(b"\n")
        file.flush()
        run(
            connection,
            f"LOAD DATA LOCAL INFILE '{file.name}' INTO TABLE {quote_name(table.name)} CHARACTER SET utf8mb4 "
            "FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' "
            + (names if plain else f"({variables}) SET {values}"),
        )


def insert_rows(connection: Any, table: Table, new: NewTable, batch: pa.RecordBatch) -> None:
    """Send a batch as INSERT statements."""
    kept = _kept(table, new)
    into = f"INSERT INTO {quote_name(table.name)} {quoted_list(n.name for _, n in kept)} VALUES "
    fields = [_stored(_text(batch.column(c.name), c, n, "'"), n) for c, n in kept]
    rows = pc.binary_join_element_wise("(", _joined(fields), ")", "")
    for piece in _pieces(rows, ","):
        run(connection, into.encode() + piece)


def _kept(table: Table, new: NewTable) -> list[tuple[Column, NewColumn]]:
    """The columns that rows come with."""
    return [(c, n) for c, n in zip(table.columns, new.columns, strict=True) if not n.generated]


def _text(array: pa.Array, column: Column, new: NewColumn, sign: str) -> pa.Array:
    """Values as text, in quotes where they are no plain numbers; NULL is the word."""
    kind = column.type.kind
    if kind is Kind.FLOAT:  # MySQL has neither NaN nor infinity
        array = pc.if_else(pc.is_finite(array), array, pa.scalar(None, array.type))
    if kind is Kind.BOOLEAN:
        array = array.cast(pa.int8())
    if kind is Kind.TIMESTAMP:
        array = array.cast(pa.timestamp("us"))
    for bound, nearest in zip(new.stored.bounds or (), (pc.max_element_wise, pc.min_element_wise), strict=False):
        if bound is not None:  # made-up values may lie beyond what the stored type holds
            array = nearest(array, pa.scalar(bound, array.type), skip_nulls=False)
    text = clock_text(array) if kind is Kind.DURATION else array.cast(pa.string())
    if kind is Kind.TEXT:
        special = (sign,) if sign == '"' else ("\\", sign)  # in a file a backslash is a letter
        for letter in special:
            text = pc.replace_substring(text, letter, letter * 2)
    if kind not in (Kind.INTEGER, Kind.BOOLEAN, Kind.FLOAT):
        text = pc.binary_join_element_wise(sign, text, sign, "")
    return pc.fill_null(text, "NULL")


def _stored(text: pa.Array, new: NewColumn) -> pa.Array:
    """Literals as the expressions that make values of the stored type from them."""
    parts = new.stored.of_text("\0").split("\0")
    if parts == ["", ""]:
        return text
    pieces = [piece for part in parts for piece in (part, text)][:-1]
    made = pc.binary_join_element_wise(*pieces, "")
    return pc.if_else(pc.equal(text, "NULL"), "NULL", made)


def _joined(fields: Sequence[pa.Array]) -> pa.Array:
    return pc.binary_join_element_wise(*fields, ",")


def _pieces(rows: pa.Array, sign: str) -> Iterator[bytes]:
    """The rows as texts of about the length of a statement."""
    step = max(1, len(rows) * _STATEMENT_BYTES // (rows.nbytes + 1))
    for start in range(0, len(rows), step):
        part = rows.slice(start, step)
        whole = pa.ListArray.from_arrays(pa.array([0, len(part)], pa.int32()), part)
        yield pc.binary_join(whole, sign)[0].as_buffer().to_pybytes()
