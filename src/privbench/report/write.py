"""Write what evaluations found to a folder: a page to look at, and JSON (and CSV) for programs. Whole or not at all."""

import json
import os
from pathlib import Path
from typing import Any

from privbench.evaluation.compare import Comparison, comparison_csv, comparison_json
from privbench.evaluation.result import Result, result_json
from privbench.io.staging import staged
from privbench.model.arguments import model_of
from privbench.model.model import Model
from privbench.report.compare_page import render_comparison
from privbench.report.public import read_public
from privbench.report.report import render_public, render_report

_PRIVATE = 0o700
"""Who may look at exact facts of the private data: their owner."""


def write_report(
    result: Result, out: Path | str, *, model: Model | Path | str | None = None, force: bool = False
) -> None:
    """Write report.html and result.json of an evaluation into a new folder; with the model, the page shows it, too.

    Both hold exact facts of the real data: keep them private.

    Example::

        privbench.write_report(privbench.evaluate("shop", "bundle"), "report")
    """
    known = None if model is None else model_of(model)
    with staged(Path(out), force=force) as folder:
        folder.mkdir(mode=_PRIVATE)
        (folder / "result.json").write_text(_json(result_json(result)), encoding="utf-8")
        (folder / "report.html").write_text(render_report(result, model=known), encoding="utf-8")


def write_public_report(
    synthetic: str | os.PathLike[str], out: Path | str, *, model: Model | Path | str, seed: int = 0, force: bool = False
) -> None:
    """Write report.html of a bundle and its model into a new folder; no private data are read, so it may be published.

    Example::

        privbench.write_public_report("bundle", "page", model="shop.model")
    """
    known = model_of(model)
    html = render_public(read_public(Path(synthetic), model=known, seed=seed), model=known)
    with staged(Path(out), force=force) as folder:
        folder.mkdir()
        (folder / "report.html").write_text(html, encoding="utf-8")


def write_comparison(comparison: Comparison, out: Path | str, *, force: bool = False) -> None:
    """Write compare.html, compare.json and compare.csv into a new folder: they are for the publisher alone.

    Example::

        privbench.write_comparison(privbench.compare("shop", unit="customer", epsilons=[3.2]), "compare")
    """
    with staged(Path(out), force=force) as folder:
        folder.mkdir(mode=_PRIVATE)
        (folder / "compare.json").write_text(_json(comparison_json(comparison)), encoding="utf-8")
        (folder / "compare.csv").write_text(comparison_csv(comparison), encoding="utf-8")
        (folder / "compare.html").write_text(render_comparison(comparison), encoding="utf-8")


def _json(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
