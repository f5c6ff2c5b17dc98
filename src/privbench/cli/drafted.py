"""What `privbench draft` prints: what was drafted, what was left out and why, and what to review."""

from pathlib import Path

from privbench.cli.output import echo, print_json, program, shell
from privbench.io.open import open_source
from privbench.schema.domain import Origin
from privbench.schema.spec import Spec


def show_draft(spec: Spec, source: str, out: Path, *, as_json: bool) -> None:
    """Print what a drafted spec holds."""
    taken, left_out, lost = _from_data(spec), _left_out(spec), _lost_keys(spec, source)
    if as_json:
        words = {"domains_from_data": taken, "left_out": left_out, "left_out_with_dropped_tables": lost}
        print_json({"spec": str(out), "unit": spec.unit, **words})
        return
    echo(f"Wrote {out}: unit {spec.unit}, tables {', '.join(n for n, t in spec.tables.items() if not t.drop)}.")
    if left_out:
        listed = ", ".join(f"{column} ({kind})" for column, kind in left_out.items())
        echo(f"Left out, as `drop: true` in the spec: {listed}.")
    if lost:
        echo(f"Left out, since their key points at what is dropped: {', '.join(lost)}.")
    echo(f"{len(taken)} domains were taken from the data. By keeping them you declare them public: review them.")
    echo(f"Next: {program()} fit {shell(out)} --epsilon 3.2 -o my.model")


def _from_data(spec: Spec) -> list[str]:
    return [
        f"{table}.{column}"
        for table, said in spec.tables.items()
        for column, words in said.columns.items()
        if words.origin is Origin.DATA
    ]


def _left_out(spec: Spec) -> dict[str, str]:
    """The columns that are left out, with their types."""
    return {
        f"{table}.{column}": words.type
        for table, said in spec.tables.items()
        for column, words in said.columns.items()
        if words.drop
    }


def _lost_keys(spec: Spec, source: str) -> list[str]:
    """The columns of tables that are kept which the spec does not have."""
    with open_source(source) as opened:
        tables = opened.schema().tables
    return [
        f"{table.name}.{column.name}"
        for table in tables
        if not spec.tables[table.name].drop
        for column in table.columns
        if column.name not in spec.tables[table.name].columns
    ]
