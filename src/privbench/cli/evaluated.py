"""What `evaluate` writes and prints: report.html, result.json, and its figures beside their floors."""

import json
from collections.abc import Iterator
from pathlib import Path

from privbench.cli.output import echo, print_json, print_table
from privbench.evaluation.metrics import distance_metrics, query_metrics
from privbench.evaluation.result import WARNING, Measure, Result, result_json
from privbench.io.staging import staged
from privbench.model.model import Model
from privbench.report.public import read_public
from privbench.report.report import render_public, render_report

Row = tuple[str, str, str]


def write_result(result: Result, folder: Path, *, model: Model | None, force: bool) -> None:
    """Write report.html and result.json into a new folder, whole or not at all."""
    with staged(folder, force=force) as temp:
        temp.mkdir(mode=0o700)  # exact facts of the private data
        text = json.dumps(result_json(result), indent=1, ensure_ascii=False, allow_nan=False)
        (temp / "result.json").write_text(text + "\n", encoding="utf-8")
        (temp / "report.html").write_text(render_report(result, model=model), encoding="utf-8")


def write_public(synthetic: str, model: Model, folder: Path, *, seed: int, force: bool, as_json: bool) -> None:
    """Write report.html of a bundle and its model into a new folder."""
    html = render_public(read_public(synthetic, model=model, seed=seed), model=model)
    with staged(folder, force=force) as temp:
        temp.mkdir()
        (temp / "report.html").write_text(html, encoding="utf-8")
    written = str(folder / "report.html")
    if as_json:
        print_json({"report": written})
    else:
        echo(f"Wrote {written}. It is made from the model and the synthetic data alone, so it may be published.")


def show_result(result: Result, folder: Path, *, as_json: bool) -> None:
    """Print the figures of the whole database."""
    if as_json:
        print_json(result_json(result))
        return
    echo(f"Wrote {folder / 'report.html'} and result.json. {WARNING}")
    print_table(("figure", "synthetic", "floor"), list(_rows(result)))
    for metric in query_metrics():
        if summary := result.workload.get(metric.name):
            answered = len(result.queries) - summary.failed
            echo(f"queries with a {metric.label}: {answered}, failed: {summary.failed}")
    for skip in result.skips:
        echo(f"skipped: {skip.what}: {skip.reason}")


def _rows(result: Result) -> Iterator[Row]:
    distances = distance_metrics()
    for ways, of_ways in result.marginals.items():
        for metric in distances:
            yield _row(f"{ways}-way {metric.label}, on codes", of_ways[metric.name].codes)
    for metric in distances:
        yield _row(f"parent-child {metric.label}, on codes", result.cross[metric.name].codes)
    for metric in distances:
        yield _row(f"fanout {metric.label}", result.fanouts[metric.name])
    for query_metric in query_metrics():
        summary = result.workload.get(query_metric.name)
        if summary is None or summary.all is None:
            continue
        errors, floor = summary.all.errors, summary.all.floor
        for name in ("mean", "median", "p95", "max"):
            best = None if floor is None else getattr(floor, name)
            yield _row(f"{query_metric.label} {name}", Measure(value=getattr(errors, name), floor=best))


def _row(name: str, measure: Measure) -> Row:
    return name, _figure(measure.value), _figure(measure.floor)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
