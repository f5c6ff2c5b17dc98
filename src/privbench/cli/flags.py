"""Flags that several commands share, and how their values are read.

The choices of a flag are written out here, though enumerations have them, since `--help` loads no such module.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from privbench.errors import SpecError

Command = TypeVar("Command", bound=Callable[..., Any])

SOURCE_HELP = (
    "SOURCE is a folder with one Parquet or CSV file (also .csv.gz, .csv.zip) per table (and schema.sql), a DuckDB or "
    "a SQLite file, or the URL of a server: postgresql://user@host/database, mysql://user@host/database. Names of "
    "tables and columns match without regard to case, if only one does."
)

json_flag = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
force_flag = click.option("--force", is_flag=True, help="Replace what is there.")
epsilon_flag = click.option("--epsilon", required=True, metavar="E", help="The privacy budget, such as 3.2.")
delta_flag = click.option(
    "--delta",
    default="0",
    metavar="D",
    help="The chance that epsilon may fail, such as 1e-9: well below one over the number of entities. Less noise.",
)
METHODS = ("tree", "paper", "independent")
"""The methods of PrivBench, for help texts: the registry of methods takes longer to load than help should."""
method_flag = click.option(
    "--method",
    metavar=f"[{'|'.join(METHODS)}]",
    help="How to learn the model. Other packages may offer further methods (entry point `privbench.methods`).",
)
memory_flag = click.option(
    "--memory",
    metavar="SIZE",
    help="About how much memory the fit may take, such as 2GB. Coded rows that do not fit are kept in private "
    "temporary files meanwhile (see TMPDIR). A container's limit is kept in any case.  [default: half of what is free]",
)
rehearsal_flag = click.option(
    "--no-rehearsal",
    "rehearse",
    flag_value=False,
    default=True,
    help="Do not walk the whole way on made-up rows first. They are there so that nothing is spent in vain.",
)
seed_flag = click.option("--seed", type=int, help="The same seed gives the same data; noise has none.")
scale_flag = click.option("--scale", type=float, default=1.0, show_default=True, help="Scale factor, 0.01 to 1000.")
FORMATS = ("parquet", "csv", "duckdb", "sqlite")
"""The names in `io.sinks.SINKS`, for help texts."""
to_flag = click.option(
    "--to",
    "format_",
    metavar=f"[{'|'.join(FORMATS)}]",
    default="parquet",
    show_default=True,
    help="What to write the tables as.",
)
to_server_flag = click.option(
    "--to",
    "format_",
    metavar=f"[{'|'.join(FORMATS)}|URL]",
    default="parquet",
    show_default=True,
    help="What to write the tables as; or the server to load them into: postgresql://user@host:port/database "
    "or mysql://user@host:port/database. Passwords come from the usual places (~/.pgpass, ~/.my.cnf, PGPASSWORD, "
    "MYSQL_PWD).",
)


def original_flags(command: Callable[..., Any]) -> Callable[..., Any]:
    """What of the source's own DDL is run."""
    for flag in (
        click.option(
            "--original-code",
            is_flag=True,
            help="Run also the code in the source's own DDL: functions, extensions, and what calls functions that are "
            "in no closed list. Only if you trust whoever made the model as you trust a program.",
        ),
        click.option(
            "--no-original", is_flag=True, help="Run nothing of the source's own DDL: tables, keys and indexes alone."
        ),
    ):
        command = flag(command)
    return command


ENGINES = ("local", "spark")
"""The members of `EngineName`, for help texts."""


def engine_flags(command: Command) -> Command:
    """Where the work is done."""
    for flag in (
        click.option(
            "--master",
            metavar="URL",
            help="With `--engine spark`: the cluster, such as spark://host:7077, yarn or local[4].  "
            "[default: that of spark-submit, else this machine]",
        ),
        click.option(
            "--engine",
            type=click.Choice(ENGINES),
            default="local",
            show_default=True,
            help="Where the work is done: on this machine, or on a Spark cluster (pip install 'privbench[spark]').",
        ),
    ):
        command = flag(command)
    return command


def out_flag(what: str, *, required: bool = True) -> Callable[[Command], Command]:
    """`-o`."""
    return click.option("-o", "--out", required=required, type=click.Path(path_type=Path), metavar="PATH", help=what)


dry_run_flag = click.option(
    "--dry-run", is_flag=True, help="Only show the plan: who gets how much, what will be noise. Reads no data."
)
rows_flag = click.option(
    "--rows",
    multiple=True,
    metavar="T=N",
    help="With --dry-run: about how many rows table T has. Repeat for each table.",
)


def guessed_rows(arguments: Iterable[str]) -> dict[str, int]:
    """The values of `--rows`.

    >>> guessed_rows(["customer=50_000", "a=b=3"])
    {'customer': 50000, 'a=b': 3}
    """
    rows = {}
    for text in arguments:
        table, _, count = text.rpartition("=")
        if not table or not count.strip().isascii() or not count.strip().replace("_", "").isdigit():
            raise SpecError(f"--rows {text}: write T=N, a table and a number of rows, such as customer=50000.")
        rows[table] = int(count.replace("_", ""))
    return rows


def csv_flags(command: Command) -> Command:
    """How the CSV files of a folder are written."""
    for flag in (
        click.option(
            "--ragged",
            type=click.Choice(["error", "pad"]),
            default="error",
            show_default=True,
            help="What a row of a CSV file is that is shorter than the first line: an error, or padded with NULL.",
        ),
        click.option(
            "--delimiter",
            metavar="C",
            help="What stands between the columns of CSV files, such as ';' or tab.  [default: a comma]",
        ),
        click.option(
            "--null",
            multiple=True,
            metavar="TEXT",
            help="A text that means NULL in CSV files, such as NA, beside the empty field. Repeat for several.",
        ),
    ):
        command = flag(command)
    return command


def draft_flags(command: Command) -> Command:
    """Who is protected, what is public and how CSV files are written, as `draft` and `synth` take it."""
    command = csv_flags(command)
    for flag in (
        click.option(
            "--orphans",
            type=click.Choice(["error", "null"]),
            default="error",
            show_default=True,
            help="What a key to a missing row is.",
        ),
        click.option(
            "--neighbours",
            type=click.Choice(["replace", "add-remove"]),
            default="replace",
            show_default=True,
            help="What epsilon compares: one entity replaced, or one more or less.",
        ),
        click.option(
            "--sizes",
            type=click.Choice(["measured", "public"]),
            default="measured",
            show_default=True,
            help="Whether the numbers of rows of private tables are measured with noise, or public: then synthetic "
            "tables have as many, and the promise holds given that they are no secret. With --neighbours replace "
            "alone.",
        ),
        click.option(
            "--owned-by",
            "lookups",
            multiple=True,
            metavar="T=OWNER",
            help="Rows of T belong to the rows of OWNER that reference them.",
        ),
        click.option(
            "--owner", "owners", multiple=True, metavar="T.COLUMN", help="The key of T that says whose rows these are."
        ),
        click.option(
            "--drop",
            multiple=True,
            metavar="T[.COLUMN]",
            help="Leave table T out, with the keys into it; or one column of T. Several with commas.",
        ),
        click.option(
            "--public",
            multiple=True,
            metavar="T[,T..]",
            help="These tables are public and are copied unchanged. Only keys into private tables are drawn again.",
        ),
        click.option(
            "--made-up",
            multiple=True,
            metavar="T[=N]",
            help="Read no row of T: N rows (100 if you do not say) are made up from the schema alone, and keys into T "
            "reference these.",
        ),
        click.option(
            "--domains",
            type=click.Choice(["private", "data"]),
            default="private",
            show_default=True,
            help="Where ranges and lists of values come from that the schema does not give. `private`: found with "
            "budget when the model is fitted (lists of strings only with --delta). `data`: read from the data, without "
            "noise; the promise then holds given that they are public, so review them in the drafted spec.",
        ),
        click.option(
            "--no-find",
            is_flag=True,
            help="Do not look for columns that follow from others, rules, numbering, which rows lie together, "
            "and keys and lists inside the entity: not in the data with `--domains data`, nor with budget when the "
            "model is fitted.",
        ),
        click.option("--unit", metavar="T", help="The table with one row for each entity to protect."),
    ):
        command = flag(command)
    return command


def draft_choices(
    source: str,
    *,
    public: Iterable[str],
    made_up: Iterable[str],
    drop: Iterable[str],
    owners: Iterable[str],
    lookups: Iterable[str],
    neighbours: str,
    sizes: str,
    orphans: str,
    no_find: bool,
    null: tuple[str, ...],
    delimiter: str | None,
    ragged: str,
) -> dict[str, Any]:
    """The values of `draft_flags` as the API takes them. Several tables may be given to a flag, with commas."""
    from privbench.schema.spec import Orphans, Sizes
    from privbench.schema.unit import Neighbours

    public, drop, owners = tuple(public), tuple(drop), tuple(owners)
    plain = not owners and not any(sign in text for text in (*public, *drop) for sign in ",.")
    names = (
        {}
        if plain
        else {name.casefold(): name for name in _table_names(source, null=null, delimiter=delimiter, ragged=ragged)}
    )
    dropped = _listed(drop, names)
    places = [place for text in dropped if text.casefold() not in names and (place := _place(text, names))]
    return {
        "public": _listed(public, names),
        "made_up": dict(map(_made_up, made_up)),
        "drop": tuple(text for text in dropped if text.casefold() in names or not _place(text, names)),
        "drop_columns": tuple(places),
        "owners": dict(_owner_key(text, names) for text in owners),
        "lookups": dict(_lookup(text) for text in lookups),
        "neighbours": Neighbours(neighbours),
        "sizes": Sizes(sizes),
        "orphans": Orphans(orphans),
        "find": not no_find,
        "null": null,
        "delimiter": delimiter,
        "ragged": ragged,
    }


KnownTables = Mapping[str, str]
"""Tables of a source by their name without case."""


def _listed(arguments: Iterable[str], names: KnownTables) -> tuple[str, ...]:
    """Split at commas, unless a table has that name."""
    return tuple(
        part.strip() for text in arguments for part in ([text] if text.casefold() in names else text.split(","))
    )


def _table_names(source: str, **csv: Any) -> list[str]:
    from privbench.io.given import source_of
    from privbench.io.open import open_source

    with open_source(source_of(source, **csv)) as opened:
        return [t.name for t in opened.schema().tables]


def _place(text: str, names: KnownTables) -> tuple[str, str] | None:
    """Split T.COLUMN where T is a table; names may hold dots."""
    dots = (i for i, c in enumerate(text) if c == ".")
    return next(((text[:at], text[at + 1 :]) for at in dots if text[:at].casefold() in names), None)


def _owner_key(text: str, names: KnownTables) -> tuple[str, tuple[str, ...]]:
    """Split T.COLUMN[,COLUMN]."""
    place = _place(text, names)
    if place is None:
        from privbench.schema.choices import closest

        table = text.partition(".")[0]
        raise SpecError(f"--owner {text}: write T.COLUMN, with T a table. {closest(table, names.values())}")
    return place[0], tuple(place[1].split(","))


def _made_up(text: str) -> tuple[str, int]:
    """Split T[=N]."""
    from privbench.schema.choices import MADE_UP_ROWS
    from privbench.schema.table_spec import MOST_MADE_UP

    table, sign, count = text.rpartition("=")
    if not sign:
        return text, MADE_UP_ROWS
    if not table or not count.isascii() or not count.isdigit() or not 0 < int(count[:20]) <= MOST_MADE_UP:
        raise SpecError(
            f"--made-up {text}: write T, or T=N with a number of rows from 1 to {MOST_MADE_UP:,}, such as staff=20."
        )
    return table, int(count)


def _lookup(text: str) -> tuple[str, str]:
    table, sign, owner = text.partition("=")
    if not sign:
        raise SpecError(f"--owned-by {text}: write T=OWNER, both names of tables.")
    return table, owner
