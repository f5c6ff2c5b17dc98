"""`privbench evaluate`: a synthetic database beside the real one, as report.html, result.json and a table."""

# ruff: noqa: D301  (click reads the \b in docstrings as a character, which a raw string has not)

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from privbench.cli.flags import csv_flags, force_flag, json_flag, out_flag
from privbench.cli.output import echo, print_json, print_table

if TYPE_CHECKING:
    from privbench.evaluation.result import Measure, Result
    from privbench.model.model import Model
    from privbench.runtime.result import Runtime


@click.command()
@click.option("--real", help="The private database: a folder, a DuckDB or a SQLite file, a URL.")
@click.option("--synthetic", required=True, help="The bundle, or any other database of the same tables.")
@click.option("--workload", "queries", type=click.Path(path_type=Path), help="Queries to compare cardinalities on.")
@click.option("--model", "model_path", type=click.Path(path_type=Path), help="The model: says who owns what.")
@click.option(
    "--runtime",
    metavar="auto|URL|duckdb",
    help="Also measure how fast the queries run: on a PostgreSQL of our own (auto), at a URL, or on DuckDB.",
)
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
@csv_flags
@out_flag("A folder for report.html and result.json.")
@force_flag
@json_flag
def evaluate(
    real: str | None,
    synthetic: str,
    queries: Path | None,
    model_path: Path | None,
    runtime: str | None,
    floor: bool,
    cache: Path,
    seed: int,
    publishable: bool,
    null: tuple[str, ...],
    delimiter: str | None,
    ragged: str,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Compare a synthetic database with the real one. The result holds exact facts of the real data: keep it private.

    \b
    Example: privbench evaluate --real shop/ --synthetic bundle --workload q.sql -o report
             privbench evaluate --real shop/ --synthetic bundle --workload q.sql --runtime auto -o report
             privbench evaluate --publishable --synthetic bundle --model shop.model -o page
    """
    from privbench.cli.progress import progress_line
    from privbench.evaluation.evaluate import evaluate as evaluate_pair
    from privbench.io.staging import check_target
    from privbench.model.file import load_model
    from privbench.report.write import write_report

    check_target(out, force=force)
    model = None if model_path is None else load_model(model_path)
    if publishable:
        if model is None or real is not None or queries is not None or runtime is not None:
            raise click.UsageError(
                "--publishable takes --synthetic and --model, and neither --real nor --workload nor --runtime."
            )
        _write_public(synthetic, model, out, seed=seed, force=force, as_json=as_json)
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
            runtime=runtime,
            cache=cache,
            seed=seed,
            null=null,
            delimiter=delimiter,
            ragged=ragged,
            progress=progress,
        )
    write_report(result, out, model=model, force=force)
    _show_result(result, out, as_json=as_json)


def _write_public(synthetic: str, model: "Model", folder: Path, *, seed: int, force: bool, as_json: bool) -> None:
    """Write report.html of a bundle and its model into a new folder, and say where."""
    from privbench.report.write import write_public_report

    write_public_report(synthetic, folder, model=model, seed=seed, force=force)
    written = str(folder / "report.html")
    if as_json:
        print_json({"report": written})
    else:
        echo(f"Wrote {written}. It is made from the model and the synthetic data alone, so it may be published.")


def _show_result(result: "Result", folder: Path, *, as_json: bool) -> None:
    """Print the figures of the whole database."""
    from privbench.evaluation.metrics import query_metrics
    from privbench.evaluation.result import WARNING, result_json

    if as_json:
        print_json(result_json(result))
        return
    echo(f"Wrote {folder / 'report.html'} and result.json. {WARNING}")
    print_table(("figure", "synthetic", "floor"), list(_rows(result)))
    for metric in query_metrics():
        if summary := result.workload.get(metric.name):
            answered = len(result.queries) - summary.failed
            echo(f"queries with a {metric.label}: {answered}, failed: {summary.failed}")
    if result.runtime is not None:
        _show_runtime(result.runtime)
    if result.skips:
        echo("Left out, or good to know:")
    for skip in result.skips:
        echo(f"  {skip.what}: {skip.reason}")


def _show_runtime(runtime: "Runtime") -> None:
    """Print the figures of runtimes, beside those of a resample and of the real database again."""
    from privbench.report.runtime import NAMES, figure_rows

    columns = [label for name, label in NAMES.items() if name in runtime.comparisons]
    print_table((f"runtime, {runtime.system}", *columns), list(figure_rows(runtime)))
    for query in runtime.failed:
        echo(f"query {query.number} failed on {'; '.join(f'{name}: {why}' for name, why in query.errors.items())}")
    for note in runtime.notes:
        echo(f"runtime: {note}.")


def _rows(result: "Result") -> Iterator[tuple[str, str, str]]:
    for name, measure in result.figures():
        yield _row(name, measure)


def _row(name: str, measure: "Measure") -> tuple[str, str, str]:
    return name, _figure(measure.value), _figure(measure.floor)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
