"""What `evaluate` writes and prints: report.html, result.json, and its figures beside their floors."""

import json
from collections.abc import Iterator
from pathlib import Path

from privbench.cli.output import echo, print_json, print_table
from privbench.evaluation.result import Result
from privbench.evaluation.result_json import WARNING, result_json
from privbench.io.staging import staged
from privbench.model.model import Model
from privbench.report.public import read_public
from privbench.report.report import render_public, render_report

Row = tuple[str, str, str]


def write_result(result: Result, folder: Path, *, model: Model | None, force: bool) -> None:
    """Write report.html and result.json into a new folder, whole or not at all."""
    with staged(folder, force=force) as temp:
        temp.mkdir()
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
    if result.q_errors is not None:
        answered = sum(query.q_error is not None for query in result.queries)
        echo(f"queries answered on both sides: {answered}, failed: {result.q_errors.failed}")
    for skip in result.skips:
        echo(f"skipped: {skip.what}: {skip.reason}")


def _rows(result: Result) -> Iterator[Row]:
    for ways, found in result.marginals.items():
        yield f"{ways}-way KLD, on codes", _figure(found.kld_codes.value), _figure(found.kld_codes.floor)
        yield f"{ways}-way TVD, on codes", _figure(found.tvd_codes.value), _figure(found.tvd_codes.floor)
    yield "parent-child KLD, on codes", _figure(result.cross.kld_codes.value), _figure(result.cross.kld_codes.floor)
    yield "fanout TVD", _figure(result.fanout_tvd.value), _figure(result.fanout_tvd.floor)
    if result.q_errors is not None and result.q_errors.all is not None:
        errors, floor = result.q_errors.all.errors, result.q_errors.all.floor
        for name in ("mean", "median", "p95", "max"):
            best = None if floor is None else getattr(floor, name)
            yield f"Q-error {name}", _figure(getattr(errors, name)), _figure(best)


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
