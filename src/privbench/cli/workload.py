"""Commands about queries: make a workload, translate it for publishing, estimate it by the model, evaluate with it."""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

from pathlib import Path

import click

from privbench.cli.flags import force_flag, json_flag, out_flag

dialect_flag = click.option(
    "--dialect",
    type=click.Choice(["duckdb", "postgres", "sqlite", "mysql"]),
    default="duckdb",
    show_default=True,
    help="Whose SQL the queries are written in.",
)


@click.group()
def workload() -> None:
    """Make or translate a workload of queries.

    \b
    Example: privbench workload generate shop.model -n 400 -o q.sql
    """


@workload.command(
    "generate", epilog="SOURCE is a model file, a bundle, or a private database: a folder, a DuckDB or a SQLite file."
)
@click.argument("source")
@click.option(
    "-n", "count", type=click.IntRange(1, 1_000_000), default=400, show_default=True, help="How many queries."
)
@click.option(
    "--style",
    type=click.Choice(["sam", "mscn"]),
    default="mscn",
    show_default=True,
    help="sam: one table, literals of one row; mscn: up to 4 joins along foreign keys.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same queries.")
@out_flag("Where to write the queries, such as q.sql.")
@force_flag
@json_flag
def generate(source: str, count: int, style: str, seed: int, out: Path, force: bool, as_json: bool) -> None:
    """Make COUNT(*) queries with literals from SOURCE.

    From a model or a bundle no private data are read. From a private database the file is private, too: its first
    line says `literals=real`.

    \b
    Examples: privbench workload generate shop.model -n 400 -o q.sql
              privbench workload generate bundle -n 400 --style sam -o q.sql
    Private:  privbench workload generate shop/ -n 400 -o private.sql
    """
    from privbench.cli.workload_tables import show_generated
    from privbench.io.staging import check_target
    from privbench.workload.generate import Style, generate_workload
    from privbench.workload.sql import write_workload

    check_target(out, force=force)
    made = generate_workload(source, n=count, seed=seed, style=Style(style))
    write_workload(made, out, force=force)
    show_generated(made, out, as_json=as_json)


@workload.command("translate")
@click.argument("queries", type=click.Path(path_type=Path))
@click.option("--model", "model_path", required=True, type=click.Path(path_type=Path), help="The fitted model.")
@click.option(
    "--literals-are-public",
    is_flag=True,
    help="You say that no literal of the file comes from private data: those of declared domains are kept.",
)
@dialect_flag
@out_flag("Where to write the translated queries.")
@force_flag
@json_flag
def translate(
    queries: Path,
    model_path: Path,
    literals_are_public: bool,
    dialect: str,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Put literals drawn from the model in the place of those of QUERIES.

    What cannot be translated is left out and listed. `--json` prints the original literals as well: it is for you
    alone.

    \b
    Example: privbench workload translate private.sql --model shop.model -o q.sql
    """
    from privbench.cli.workload_tables import show_translation
    from privbench.io.staging import check_target
    from privbench.model.file import load_model
    from privbench.workload.literal import QueryDialect
    from privbench.workload.sql import read_workload, write_workload
    from privbench.workload.translate import translate as translate_workload

    check_target(out, force=force)
    spoken = QueryDialect(dialect)
    model = load_model(model_path)
    original = read_workload(queries, dialect=spoken, schema=model.protection.schema)
    translation = translate_workload(original, model, literals_are_public=literals_are_public, dialect=spoken)
    write_workload(translation.workload, out, force=force)
    show_translation(original, translation, model, out, dialect=spoken, as_json=as_json)


@click.command()
@click.argument("model_path", metavar="MODEL", type=click.Path(path_type=Path))
@click.argument("queries", type=click.Path(path_type=Path))
@dialect_flag
@json_flag
def estimate(model_path: Path, queries: Path, dialect: str, as_json: bool) -> None:
    """Estimate the cardinality of QUERIES straight from MODEL. Exit 2 if it can answer none of them.

    \b
    Example: privbench estimate shop.model q.sql
    """
    from privbench.cli.workload_tables import show_estimates
    from privbench.errors import SpecError
    from privbench.model.file import load_model
    from privbench.workload.estimate import estimate_statements
    from privbench.workload.literal import QueryDialect
    from privbench.workload.sql import read_workload

    spoken = QueryDialect(dialect)
    model = load_model(model_path)
    original = read_workload(queries, dialect=spoken, schema=model.protection.schema)
    estimates = estimate_statements(model, original.statements)
    if all(e.rows is None for e in estimates):
        first = estimates[0]
        raise SpecError(
            f"{queries}: the model can answer none of its {len(estimates)} queries. Query {first.statement.number}: "
            f"{str(first.reason).rstrip('.')}. A model answers SELECT COUNT(*) with joins along foreign keys and "
            "conditions on single columns, joined by AND."
        )
    show_estimates(estimates, dialect=spoken, as_json=as_json)


@click.command()
@click.option("--real", help="The private database: a folder, a DuckDB or a SQLite file.")
@click.option("--synthetic", required=True, help="The bundle, or any other database of the same tables.")
@click.option("--workload", "queries", type=click.Path(path_type=Path), help="Queries to compare cardinalities on.")
@click.option("--model", "model_path", type=click.Path(path_type=Path), help="The model: says who owns what.")
@click.option(
    "--floor/--no-floor", default=True, help="Also score a resample of the real data, the best that one can do."
)
@click.option(
    "--cache",
    type=click.Path(path_type=Path),
    default=Path.home() / ".cache" / "privbench",
    show_default="~/.cache/privbench",
    help="Where floors are kept, so that they are computed once. They are figures of the real data.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="For samples of marginals and the floor.")
@click.option(
    "--publishable",
    is_flag=True,
    help="Only a report.html of the model and the synthetic data, which may be published.",
)
@out_flag("A folder for report.html and result.json.")
@force_flag
@json_flag
def evaluate(
    real: str | None,
    synthetic: str,
    queries: Path | None,
    model_path: Path | None,
    floor: bool,
    cache: Path,
    seed: int,
    publishable: bool,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Compare a synthetic database with the real one. The result holds exact facts of the real data: keep it private.

    \b
    Example: privbench evaluate --real shop/ --synthetic bundle --workload q.sql -o report
             privbench evaluate --publishable --synthetic bundle --model shop.model -o page
    """
    from privbench.cli.evaluated import show_result, write_public, write_result
    from privbench.cli.progress import progress_line
    from privbench.evaluation.evaluate import evaluate as evaluate_pair
    from privbench.io.staging import check_target
    from privbench.model.file import load_model

    check_target(out, force=force)
    model = None if model_path is None else load_model(model_path)
    if publishable:
        if model is None or real is not None or queries is not None:
            raise click.UsageError("--publishable takes --synthetic and --model, and neither --real nor --workload.")
        write_public(synthetic, model, out, seed=seed, force=force, as_json=as_json)
        return
    if real is None:
        raise click.UsageError("Missing option '--real'.")
    with progress_line(quiet=as_json) as progress:
        result = evaluate_pair(
            real,
            synthetic,
            workload=queries,
            model=model,
            floor=floor,
            cache=cache,
            seed=seed,
            progress=progress,
        )
    write_result(result, out, model=model, force=force)
    show_result(result, out, as_json=as_json)
