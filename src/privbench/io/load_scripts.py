"""The scripts in a bundle that load it with the client of a system alone: `pre-data.sql`, `post-data.sql` and `load/`.

`pre-data.sql` and `post-data.sql` are in the words of PostgreSQL; those of the source, where that is its system. What
`load/` has depends on the data: CSV is read by psql, mysql, sqlite3 and duckdb, Parquet by duckdb alone. A `.sh` file
takes what its client takes, and runs the `.sql` file beside it from the folder of the bundle.
"""

from collections.abc import Iterator, Mapping

from privbench.io.base import Format
from privbench.io.duckdb_file import written_column
from privbench.io.mysql.load_script import load_script
from privbench.io.names import file_stems, quote_sql, sql_comment
from privbench.io.render import Dialect, create_indexes, create_tables, plan
from privbench.io.database_script import POSTGRES, DatabaseNames, script_text, write_script
from privbench.io.stored import is_array, is_bytes
from privbench.schema.original import left_out_lines
from privbench.schema.tables import Column, Schema, Table
from privbench.schema.types import Kind

PRE_DATA, POST_DATA = "pre-data.sql", "post-data.sql"
_POSTGRES_HEAD = """\\set ON_ERROR_STOP on
BEGIN;
SET LOCAL check_function_bodies = off;
SET LOCAL TimeZone = 'UTC';
SET LOCAL DateStyle = 'ISO, YMD';
"""
_POSTGRES_TAIL = """-- What the rows do not keep of the source is told and left out; they keep all keys.
\\set ON_ERROR_STOP off
\\set ON_ERROR_ROLLBACK on
\\i post-data.sql
COMMIT;
"""
_MYSQL = '"$(command -v mariadb || command -v mysql)" "$@" --local-infile=1 --binary-mode --force < load/mysql.sql'


def load_files(schema: Schema, form: str) -> dict[str, str]:
    """The texts of the scripts of a bundle by their paths in it; `form` is the format of its data."""
    script = write_script(schema, POSTGRES)
    files = {
        PRE_DATA: "".join(f"{sql_comment(f'left out: {line}')}\n" for line in left_out_lines(script.left_out))
        + script_text(script.before),
        POST_DATA: script_text(script.after),
    }
    if form in (Format.CSV, Format.PARQUET):
        files |= _pair("duckdb", _duckdb(schema, form), 'duckdb "$@" < load/duckdb.sql', "new.duckdb")
    if form == Format.CSV:
        files |= _pair("postgres", _postgres(schema), 'psql -X -q "$@" -f load/postgres.sql', '-d "$URL"')
        files |= _pair("mysql", load_script(schema, _files(schema, form)), _MYSQL, "--user=ann database")
        files |= _pair("sqlite", _sqlite(schema), 'sqlite3 -bail "$@" < load/sqlite.sql', "new.sqlite")
    return files


def _pair(name: str, sql: Iterator[str], command: str, example: str) -> dict[str, str]:
    shell = (
        "#!/bin/sh",
        f"# Load this bundle: load/{name}.sh {example}",
        "set -eu",
        'cd "$(dirname "$0")/.."',
        f"exec {command}",
    )
    return {f"load/{name}.sh": "\n".join(shell) + "\n", f"load/{name}.sql": "\n".join(sql) + "\n"}


def _files(schema: Schema, form: str) -> dict[str, str]:
    stems = file_stems(t.name for t in schema.tables)
    return {name: f"data/{stem}.{form}" for name, stem in stems.items()}


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


def _postgres(schema: Schema) -> Iterator[str]:
    names, files = DatabaseNames(schema, POSTGRES), _files(schema, Format.CSV)
    yield _POSTGRES_HEAD + f"\\i {PRE_DATA}"
    for table in schema.tables:
        yield from _postgres_copy(table, names, files[table.name])
    yield from _sequences(schema, names)
    yield _POSTGRES_TAIL
    yield f"ANALYZE {', '.join(names.table(t.name) for t in schema.tables)};"


def _postgres_copy(table: Table, names: DatabaseNames, file: str) -> Iterator[str]:
    """Read a file; by way of a temporary table where the database fills columns itself, or a name has several lines.

    What psql runs ends with the line, so that no name that could end it may stand there.
    """
    own = names.own.get(table.name)
    generated = own.generated if own else ()
    target = names.table(table.name)
    every = names.columns(table.name, tuple(c.name for c in table.columns))
    options = f"FROM {_literal(file)} WITH (FORMAT csv, HEADER true)"
    if not generated and f"{target}{every}".isprintable():
        yield f"\\copy {target} ({every}) {options}"
        return
    columns = names.columns(table.name, tuple(c.name for c in table.columns if c.name not in generated))
    yield f"CREATE TEMP TABLE loading AS SELECT {every} FROM {target} WITH NO DATA;"
    yield f"\\copy loading {options}"
    yield f"INSERT INTO {target} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM loading;"
    yield "DROP TABLE loading;"


def _sequences(schema: Schema, names: DatabaseNames) -> Iterator[str]:
    for sequence, places in names.sequences(schema).items():
        yield f"{past_largest(places, sequence)};"


def past_largest(places: list[tuple[str, str]], sequence: str) -> str:
    """Set a sequence to the largest number in the columns, each with its table, so that the next one is free."""
    numbers = " UNION ALL ".join(f"SELECT max({column}) AS n FROM {table}" for table, column in places)
    [(table, column), *_] = places
    bare = _literal(column[1:-1].replace('""', '"'))
    found = f"COALESCE(to_regclass({_literal(sequence)}), pg_get_serial_sequence({_literal(table)}, {bare})::regclass)"
    largest = f"SELECT max(n) AS largest FROM ({numbers}) AS numbers"
    return f"SELECT setval({found}, largest)::text FROM ({largest}) AS past WHERE largest > 0"


# -- DuckDB and SQLite -------------------------------------------------------------------------------------------------


def _duckdb(schema: Schema, form: str) -> Iterator[str]:
    files = _files(schema, form)
    yield ".bail on"
    yield "BEGIN;"
    yield from create_tables(schema, Dialect.DUCKDB)
    for table in plan(schema)[0]:
        names = ", ".join(quote_sql(c.name) for c in table.columns)
        values = ", ".join(_csv_value(c) if form == Format.CSV else written_column(c) for c in table.columns)
        rows = _duckdb_rows(table, files[table.name], form)
        yield f"INSERT INTO {quote_sql(table.name)} ({names}) SELECT {values} FROM {rows};"
    yield from create_indexes(schema)
    yield "COMMIT;"


def _duckdb_rows(table: Table, file: str, form: str) -> str:
    if form == Format.PARQUET:
        return f"read_parquet({_literal(file)})"
    columns = ", ".join(f"{_literal(c.name)}: 'VARCHAR'" for c in table.columns)
    options = "header = true, delim = ',', quote = '\"', escape = '\"', allow_quoted_nulls = false, auto_detect = false"
    return f"read_csv({_literal(file)}, {options}, columns = {{{columns}}})"


def _csv_value(column: Column) -> str:
    """How DuckDB reads a column from its text in a CSV file."""
    name = quote_sql(column.name)
    if is_bytes(column.type):
        return f"unhex(substr({name}, 3))"
    return written_column(column) if is_array(column.type) else name


def _sqlite(schema: Schema) -> Iterator[str]:
    files = _files(schema, Format.CSV)
    yield "PRAGMA foreign_keys = OFF;"
    yield "BEGIN;"
    yield from create_tables(schema, Dialect.SQLITE)
    yield ".mode csv"
    for at, table in enumerate(schema.tables):
        yield from _sqlite_import(table, files[table.name], f"loading{at}")
    yield from create_indexes(schema)
    yield "COMMIT;"
    yield "PRAGMA foreign_key_check;"


def _sqlite_import(table: Table, file: str, loading: str) -> Iterator[str]:
    """Read a file as text. For sqlite3 an empty field and an empty string are the same: NULL where that may be."""
    columns = ", ".join(f"{quote_sql(c.name)} TEXT" for c in table.columns)
    yield f"CREATE TEMP TABLE {loading} ({columns});"
    yield f'.import --skip 1 "{file}" {loading}'
    values = ", ".join(_sqlite_value(quote_sql(c.name), kind=c.type.kind, nullable=c.nullable) for c in table.columns)
    yield f"INSERT INTO main.{quote_sql(table.name)} SELECT {values} FROM {loading};"
    yield f"DROP TABLE {loading};"


def _sqlite_value(name: str, *, kind: Kind, nullable: bool) -> str:
    value = f"NULLIF({name}, '')" if nullable else name
    return f"({value} = 'true')" if kind is Kind.BOOLEAN else value


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def readme_lines(files: Mapping[str, str]) -> list[str]:
    """How to load a bundle with the scripts that it has."""
    lines = [line for name, line in _LOADING.items() if f"load/{name}.sh" in files]
    if "load/postgres.sh" not in files:
        lines.append(
            "psql, mysql and sqlite3 read no Parquet: write CSV (`privbench generate --to csv`), or load a server "
            "directly (`--to postgresql://..`)."
        )
    return lines


_LOADING = {
    "mysql": "MySQL or MariaDB: `sh load/mysql.sh --user=ann database`, into an empty database; the server must allow "
    "`local_infile`. An empty string is NULL there where that may be.",
    "postgres": "PostgreSQL: `sh load/postgres.sh -d postgresql://user@host/database`, into an empty database.",
    "duckdb": "DuckDB: `sh load/duckdb.sh new.duckdb`.",
    "sqlite": "SQLite: `sh load/sqlite.sh new.sqlite`; an empty string is NULL there, as sqlite3 reads CSV.",
}
