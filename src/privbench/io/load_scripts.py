"""The scripts in a bundle that load it with the client of a system alone: `pre-data.sql`, `post-data.sql` and `load/`.

`pre-data.sql` and `post-data.sql` are in the words of the source's system, where that is a server, else PostgreSQL's.
What `load/` has depends on the data: CSV is read by psql, mysql, sqlite3 and duckdb, Parquet by duckdb alone. A `.sh`
file takes what its client takes, and runs the `.sql` file beside it from the folder of the bundle.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from privbench.errors import SchemaError
from privbench.io.base import Format
from privbench.io.mysql.connection import quote_name
from privbench.io.mysql.ddl import NewColumn
from privbench.io.mysql.ddl import write_script as mysql_script
from privbench.io.names import file_stems, quote_sql, quote_text, sql_comment, terminal
from privbench.io.postgres.ddl import DatabaseNames, past_largest, script_text
from privbench.io.postgres.ddl import write_script as postgres_script
from privbench.io.render import (
    Dialect,
    computed_notes,
    create_indexes,
    create_tables,
    omitted_keys,
    plan,
    render_ddl,
    written_column,
)
from privbench.io.stored import is_array, is_bytes
from privbench.schema.literals import by_kind, literal_holders
from privbench.schema.original import LeftOut, OwnDdl, SourceDialect, left_out_lines
from privbench.schema.tables import Column, Schema, Table
from privbench.schema.types import Kind

Files = Mapping[str, Sequence[str]]
"""The paths in a bundle of the files of each table."""
PRE_DATA, POST_DATA = "pre-data.sql", "post-data.sql"
_PATH = re.compile(r"data/[A-Za-z0-9_.%/ -]+")
_PSQL = 'PGCLIENTENCODING=UTF8 psql -X -q -o /dev/null -v ON_ERROR_STOP=1 "$@" -f load/postgres.sql'
_POSTGRES_HEAD = """\\set ON_ERROR_STOP on
\\encoding UTF8
BEGIN;
SET LOCAL standard_conforming_strings = on;
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


def load_files(schema: Schema, form: str, data: Files | None = None) -> dict[str, str]:
    """The texts of the scripts of a bundle by their paths in it; `form` is the format of its data.

    `data` are the files of each table, if not one each.
    """
    data = data or {name: [f"data/{stem}.{form}"] for name, stem in file_stems(t.name for t in schema.tables).items()}
    _check_paths(data)
    before, after = _own_words(schema)
    missing = [sql_comment(f"left out: {line}") for line in left_out_lines(left_out(schema))]
    files = {PRE_DATA: "".join(f"{line}\n" for line in (*_told(schema), *missing)) + before, POST_DATA: after}
    if form in (Format.CSV, Format.PARQUET):
        files |= _pair("duckdb", _duckdb(schema, form, data), 'duckdb "$@" < load/duckdb.sql', "new.duckdb")
    if form == Format.CSV:
        own = [] if _is_mysql(schema) else _shell_told(schema)
        files |= _pair("postgres", _postgres(schema, data), _PSQL, '-d "$URL"', own)
        own = _shell_told(schema) if _is_mysql(schema) else []
        files |= _pair("mysql", _mysql(schema, data), _MYSQL_COMMANDS, "--host=HOST --user=USER DATABASE", own)
        files["load/mysql-rest.sql"] = _statements(s.sql for s in mysql_script(schema).after if not s.key)
        files |= _pair("sqlite", _sqlite(schema, data), 'sqlite3 -bail "$@" < load/sqlite.sql', "new.sqlite")
    return files


def left_out(schema: Schema) -> tuple[LeftOut, ...]:
    """What of the source the scripts go without."""
    return mysql_script(schema).left_out if _is_mysql(schema) else postgres_script(schema).left_out


def script_files(schema: Schema, form: str, data: Files | None = None) -> dict[str, str]:
    """The texts of all files of a bundle that a system runs: `load_files`, and the schema for DuckDB and in general."""
    return {
        "schema.sql": "\n".join([*_notes(schema), render_ddl(schema, Dialect.ANSI)]) + "\n",
        "schema.duckdb.sql": _duckdb_schema(schema) + "\n",
        **load_files(schema, form, data),
    }


def _notes(schema: Schema) -> list[str]:
    notes = computed_notes(schema)
    return [sql_comment("These columns follow from others, and hold the values:"), *notes, ""] if notes else []


def _duckdb_schema(schema: Schema) -> str:
    missing = [sql_comment(f"left out: {table} {key}") for table, key in omitted_keys(schema, Dialect.DUCKDB)]
    note = [sql_comment("DuckDB cannot hold foreign keys in cycles or to the same table:"), *missing, ""]
    return "\n".join([*_notes(schema), *(note if missing else ()), render_ddl(schema, Dialect.DUCKDB)])


def _check_paths(data: Files) -> None:
    """Refuse paths that no bundle has: they stand in scripts, some of which have no quotes that hold everything."""
    for name, path in ((name, path) for name, paths in data.items() for path in paths):
        if not _PATH.fullmatch(path) or ".." in path:
            raise SchemaError(f"{name}: {path[:100]!r} is no path of a file in a bundle.")


def own_ddl(schema: Schema) -> OwnDdl:
    """What of the source's own DDL the scripts run."""
    return schema.original.runs(schema) if schema.original is not None else OwnDdl()


def definition_counts(schema: Schema) -> dict[str, dict[str, int]]:
    """What a manifest says of the source's definitions: which run, which are code, and which hold literals, by kind."""
    own = own_ddl(schema)
    literals = {kind: len(holders) for kind, holders in by_kind(literal_holders(schema)).items()}
    return {"run": dict(own.runs), "code": dict(own.code), "held": dict(own.held), "literals": literals}


def _told(schema: Schema) -> list[str]:
    """What the scripts say that they run."""
    own = own_ddl(schema)
    return [sql_comment(own.line())] if own.runs or own.held else []


def _shell_told(schema: Schema) -> list[str]:
    """The same for a shell; where code is among it, on the screen. Kinds are plain words."""
    own = own_ddl(schema)
    lines = [f"# {terminal(own.line())}."] if own.runs else []
    told = f'echo "This runs CODE of the source: {sum(own.code.values())} definitions." >&2'
    return [*lines, told] if own.code else lines


def _is_mysql(schema: Schema) -> bool:
    return schema.original is not None and schema.original.dialect is SourceDialect.MYSQL


def _own_words(schema: Schema) -> tuple[str, str]:
    """What to run before the rows and after, in the words of the source's system; else in PostgreSQL's."""
    if not _is_mysql(schema):
        script = postgres_script(schema)
        return script_text(script.before), script_text(script.after)
    own = mysql_script(schema)
    before = [*(table.create for table in own.tables), *(s.sql for s in own.before)]
    return _statements(before), _statements(s.sql for s in own.after)


def _statements(texts: Iterable[str]) -> str:
    return "".join(f"{text};\n" for text in texts)


def _pair(name: str, sql: Iterator[str], command: str, example: str, told: Sequence[str] = ()) -> dict[str, str]:
    shell = (
        "#!/bin/sh",
        f"# Load this bundle: load/{name}.sh {example}",
        *told,
        "set -eu",
        'cd "$(dirname "$0")/.."',
        command,
    )
    return {f"load/{name}.sh": "\n".join(shell) + "\n", f"load/{name}.sql": "\n".join(sql) + "\n"}


# -- PostgreSQL --------------------------------------------------------------------------------------------------------


def _postgres(schema: Schema, files: Files) -> Iterator[str]:
    names = DatabaseNames(schema)
    yield _POSTGRES_HEAD + f"\\i {PRE_DATA}"
    for table in schema.tables:
        for file in files[table.name]:
            yield from _postgres_copy(table, names, file)
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
    options = f"FROM {quote_text(file)} WITH (FORMAT csv, HEADER true)"
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


# -- MySQL -------------------------------------------------------------------------------------------------------------

_MYSQL_FLAGS = "--binary-mode --default-character-set=utf8mb4"
"""No name in a statement can be a command of the client."""
_MYSQL_COMMANDS = (
    'client="$(command -v mariadb || command -v mysql)"\n'
    f'"$client" "$@" --local-infile=1 {_MYSQL_FLAGS} < load/mysql.sql\n'
    "# What the rows do not keep of the source is told and left out; they keep all keys.\n"
    f'"$client" "$@" --force {_MYSQL_FLAGS} < load/mysql-rest.sql'
)
_MYSQL_CSV = "CHARACTER SET utf8mb4 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' ESCAPED BY ''"


def _mysql(schema: Schema, files: Files) -> Iterator[str]:
    """Tables, rows and keys. The system has no transaction around them: after a failure, drop what was made."""
    script = mysql_script(schema)
    yield "SET sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO';"
    yield "SET foreign_key_checks = 0, unique_checks = 0, time_zone = '+00:00';"
    yield from (f"{table.create};" for table in script.tables)
    yield from (f"{statement.sql};" for statement in script.before)
    for table, new in zip(schema.tables, script.tables, strict=True):
        variables = ", ".join(f"@v{i}" for i in range(len(new.columns)))
        pairs = enumerate(zip(table.columns, new.columns, strict=True))
        values = ", ".join(
            f"{quote_name(n.name)} = {_mysql_value(c, n, f'@v{i}')}" for i, (c, n) in pairs if not n.generated
        )
        head = 1 + sum(c.name.count("\n") for c in table.columns)  # the lines of the names of columns
        for file in files[table.name]:
            load = f"LOAD DATA LOCAL INFILE {quote_text(file)} INTO TABLE {quote_name(table.name)}"
            yield f"{load} {_MYSQL_CSV} IGNORE {head} LINES ({variables}) SET {values};"
    yield "SET foreign_key_checks = 1;"
    yield from (f"{statement.sql};" for statement in script.after if statement.key)


def _mysql_value(column: Column, new: NewColumn, variable: str) -> str:
    """A value of the stored type; the server does not tell an empty field from an empty string."""
    value = f"NULLIF({variable}, '')" if column.nullable or column.type.kind is not Kind.TEXT else variable
    if column.type.kind is Kind.BOOLEAN:
        return f"{value} = 'true'"
    if column.type.kind is Kind.TIMESTAMP and column.type.timezone:
        value = f"TRIM(TRAILING 'Z' FROM {value})"
    return new.stored.of_text(value)


# -- DuckDB and SQLite -------------------------------------------------------------------------------------------------


def _duckdb(schema: Schema, form: str, files: Files) -> Iterator[str]:
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


def _duckdb_rows(table: Table, files: Sequence[str], form: str) -> str:
    file = quote_text(files[0]) if len(files) == 1 else f"[{', '.join(map(quote_text, files))}]"
    if form == Format.PARQUET:
        return f"read_parquet({file})"
    columns = ", ".join(f"{quote_text(c.name)}: 'VARCHAR'" for c in table.columns)
    options = "header = true, delim = ',', quote = '\"', escape = '\"', allow_quoted_nulls = false, auto_detect = false"
    return f"read_csv({file}, {options}, columns = {{{columns}}})"


def _csv_value(column: Column) -> str:
    """How DuckDB reads a column from its text in a CSV file."""
    name = quote_sql(column.name)
    if is_bytes(column.type):
        return f"unhex(substr({name}, 3))"
    return written_column(column) if is_array(column.type) else name


def _sqlite(schema: Schema, files: Files) -> Iterator[str]:
    yield "PRAGMA foreign_keys = OFF;"
    yield "BEGIN;"
    yield from create_tables(schema, Dialect.SQLITE)
    yield ".mode csv"
    for at, table in enumerate(schema.tables):
        yield from _sqlite_import(table, files[table.name], f"loading{at}")
    yield from create_indexes(schema)
    yield "COMMIT;"
    yield "PRAGMA foreign_key_check;"


def _sqlite_import(table: Table, files: Sequence[str], loading: str) -> Iterator[str]:
    """Read a file as text. For sqlite3 an empty field and an empty string are the same: NULL where that may be."""
    columns = ", ".join(f"{quote_sql(c.name)} TEXT" for c in table.columns)
    yield f"CREATE TEMP TABLE {loading} ({columns});"
    yield from (f'.import --skip 1 "{file}" {loading}' for file in files)
    values = ", ".join(_sqlite_value(quote_sql(c.name), kind=c.type.kind, nullable=c.nullable) for c in table.columns)
    yield f"INSERT INTO main.{quote_sql(table.name)} SELECT {values} FROM {loading};"
    yield f"DROP TABLE {loading};"


def _sqlite_value(name: str, *, kind: Kind, nullable: bool) -> str:
    value = f"NULLIF({name}, '')" if nullable else name
    return f"({value} = 'true')" if kind is Kind.BOOLEAN else value


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
    "mysql": "MySQL, MariaDB: `sh load/mysql.sh --host=HOST --user=USER DATABASE`; the server must allow "
    "`local_infile`, and an empty string is NULL there.",
    "postgres": "PostgreSQL: `sh load/postgres.sh -d postgresql://user@host/database`, into an empty database.",
    "duckdb": "DuckDB: `sh load/duckdb.sh new.duckdb`.",
    "sqlite": "SQLite: `sh load/sqlite.sh new.sqlite`; an empty string is NULL there, as sqlite3 reads CSV.",
}
