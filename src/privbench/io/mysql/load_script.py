"""The script in a bundle of CSV files that loads it with the client of MySQL or MariaDB alone."""

from collections.abc import Iterator, Mapping

from privbench.io.mysql.connection import quote_name
from privbench.io.mysql.ddl import NewColumn, write_script
from privbench.io.mysql.types import quoted_text
from privbench.io.names import sql_comment
from privbench.schema.original import left_out_lines
from privbench.schema.tables import Column, Schema, Table
from privbench.schema.types import Kind


def load_script(schema: Schema, files: Mapping[str, str]) -> Iterator[str]:
    """Statements that make the tables, read their files and make the rest; `files` are paths by table.

    What the rows need not keep (CHECKs, views, indexes of the source) comes last: a client that goes on after errors
    leaves out what it cannot make.
    """
    script = write_script(schema)
    yield from (sql_comment(f"left out: {line}") for line in left_out_lines(script.left_out))
    yield "SET NAMES utf8mb4, time_zone = '+00:00', foreign_key_checks = 0, unique_checks = 0;"
    yield "SET sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO,NO_ENGINE_SUBSTITUTION';"
    yield from (f"{table.create};" for table in script.tables)
    yield from (f"{statement.sql};" for statement in script.before)
    for table, new in zip(schema.tables, script.tables, strict=True):
        yield _load(table, new.columns, files[table.name])
    yield "SET foreign_key_checks = 1;"
    yield from (f"{statement.sql};" for statement in sorted(script.after, key=lambda s: not s.key))
    yield f"ANALYZE TABLE {', '.join(quote_name(table.name) for table in schema.tables)};"


def _load(table: Table, columns: tuple[NewColumn, ...], file: str) -> str:
    """Read a file. An empty field and an empty string are the same there: NULL where that may be."""
    variables = ", ".join(f"@v{i}" for i in range(len(columns)))
    pairs = [(f"@v{i}", c, n) for i, (c, n) in enumerate(zip(table.columns, columns, strict=True)) if not n.generated]
    values = ", ".join(f"{quote_name(c.name)} = {_value(variable, c, n)}" for variable, c, n in pairs)
    head = 1 + sum(c.name.count("\n") for c in table.columns)  # the lines of the names of columns
    return (
        f"LOAD DATA LOCAL INFILE {quoted_text(file)} INTO TABLE {quote_name(table.name)} CHARACTER SET utf8mb4 "
        f"FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY '' IGNORE {head} LINES ({variables}) "
        f"SET {values};"
    )


def _value(variable: str, column: Column, new: NewColumn) -> str:
    text = f"NULLIF({variable}, '')" if column.nullable else variable
    if column.type.kind is Kind.BOOLEAN:
        return f"({text} = 'true')"
    if column.type.kind is Kind.TIMESTAMP and column.type.timezone:
        return f"TRIM(TRAILING 'Z' FROM {text})"
    return new.stored.of_text(text)
