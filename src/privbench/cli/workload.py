"""Commands about queries: make a workload, translate it for publishing, estimate it by the model, evaluate with it."""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

from pathlib import Path

import click

from privbench.cli.flags import SOURCE_HELP, force_flag, json_flag, out_flag

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
    Example: privbench workload generate shop/ -n 400 -o q.sql
    """


@workload.command("generate", epilog=SOURCE_HELP)
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
def generate(source: str, count: int, style: str, seed: int, out: Path, force: bool) -> None:
    """Make COUNT(*) queries with literals from SOURCE.

    The file says whether the literals are real, and stay with you, or synthetic (SOURCE is a bundle).

    \b
    Example: privbench workload generate shop/ -n 400 -o q.sql
    """
    from privbench.workload.generate import Style, generate_workload
    from privbench.workload.sql import write_workload

    made = generate_workload(source, n=count, seed=seed, style=Style(style))
    write_workload(made, out, force=force)
    literals = made.literals.value if made.literals else "unknown"
    click.echo(f"Wrote {out}: {len(made.statements)} queries, literals: {literals}.")


@workload.command("translate")
@click.argument("queries", type=click.Path(path_type=Path))
@click.option("--model", "model_path", required=True, type=click.Path(path_type=Path), help="The fitted model.")
@dialect_flag
@out_flag("Where to write the translated queries.")
@force_flag
@json_flag
def translate(queries: Path, model_path: Path, dialect: str, out: Path, force: bool, as_json: bool) -> None:
    """Map the literals of QUERIES into the synthetic domain, so that they may be published.

    The list of changes shows the original literals: it is printed for you alone.

    \b
    Example: privbench workload translate q.sql --model shop.model -o published.sql
    """
    from privbench.cli.output import print_json, print_table
    from privbench.model.file import load_model
    from privbench.workload.literal import QueryDialect
    from privbench.workload.sql import read_workload, write_workload
    from privbench.workload.translate import translate as translate_workload

    spoken = QueryDialect(dialect)
    model = load_model(model_path)
    given = read_workload(queries, dialect=spoken, schema=model.protection.schema)
    translated, changes = translate_workload(given, model, dialect=spoken)
    write_workload(translated, out, force=force)
    rows = [
        (c.statement, c.outcome.value, c.column or "", c.before or "", c.after or "", c.reason or "") for c in changes
    ]
    if as_json:
        head = ("statement", "outcome", "column", "before", "after", "reason")
        print_json({"queries": str(out), "changes": [dict(zip(head, row, strict=True)) for row in rows]})
        return
    print_table(("query", "outcome", "column", "before", "after", "reason"), rows)
    click.echo(f"Wrote {out}: {len(translated.statements)} queries. Keep the list above: it shows real literals.")


@click.command()
@click.argument("model_path", metavar="MODEL", type=click.Path(path_type=Path))
@click.argument("queries", type=click.Path(path_type=Path))
@dialect_flag
@json_flag
def estimate(model_path: Path, queries: Path, dialect: str, as_json: bool) -> None:
    """Estimate the cardinality of QUERIES straight from MODEL.

    \b
    Example: privbench estimate shop.model q.sql
    """
    from privbench.cli.output import print_json, print_table
    from privbench.errors import SpecError
    from privbench.model.file import load_model
    from privbench.workload.estimate import estimate_cardinality
    from privbench.workload.literal import QueryDialect
    from privbench.workload.sql import read_workload

    model = load_model(model_path)
    found = []
    given = read_workload(queries, dialect=QueryDialect(dialect), schema=model.protection.schema)
    for statement in given.statements:
        estimated, reason = None, statement.reason
        if statement.query is not None:
            try:
                estimated = estimate_cardinality(model, statement.query)
            except SpecError as error:
                reason = str(error)
        found.append({"query": statement.number, "estimate": estimated, "reason": reason, "sql": statement.sql})
    if as_json:
        print_json({"estimates": found})
        return
    rows = [
        (f["query"], "" if f["estimate"] is None else f"{f['estimate']:,.1f}", f["reason"] or "", f["sql"])
        for f in found
    ]
    print_table(("query", "estimate", "left out because", "sql"), rows)


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
