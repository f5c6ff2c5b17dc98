"""What `generate` and `synth` print: the rows of each table, and what to know of them."""

from collections.abc import Mapping
from pathlib import Path

from privbench.cli.output import echo, print_json, print_table, program, shell, shortened, warn
from privbench.fitting.warnings import fit_warnings
from privbench.generation.sizes import lost_rows, planned_rows
from privbench.model.model import Model


def show_bundle(out: Path, model: Model, rows: Mapping[str, int], *, scale: float, fitted: bool, as_json: bool) -> None:
    """Print the rows of a new bundle; warn of rows that were lost and, right after the fit, of conditions and noise."""
    warnings = [*(fit_warnings(model) if fitted else ()), *lost_rows(model, planned_rows(model, scale), rows)]
    if as_json:
        print_json({"bundle": str(out), "rows": rows, "warnings": warnings})
        return
    echo(f"Wrote {out}")
    print_table(("table", "rows"), rows.items())
    if fitted and model.receipt["condition"]:
        echo(shortened(model.receipt["condition"]))
    warn(warnings)
    echo(f"Next: {program()} verify {shell(out)}")
