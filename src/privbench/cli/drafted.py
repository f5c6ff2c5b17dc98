"""What `privbench draft` prints: what was drafted, what was left out and why, and what to review."""

from pathlib import Path

from privbench.cli.output import echo, print_json, program, shell
from privbench.io.open import open_source
from privbench.schema.domain import Origin
from privbench.schema.spec import Spec
from privbench.schema.types import Kind


def show_draft(spec: Spec, source: str, out: Path, *, as_json: bool) -> None:
    """Print what a drafted spec holds."""
    taken, left_out, lost = _of_origin(spec, Origin.DATA), _left_out(spec), _lost_keys(spec, source)
    wanted, texts = _wanted(spec)
    if as_json:
        found = {"domains_from_data": taken, "domains_to_find": wanted, "domains_to_declare": texts}
        words = {**found, "left_out": left_out, "left_out_with_dropped_tables": lost}
        print_json({"spec": str(out), "unit": spec.unit, **words})
        return
    echo(f"Wrote {out}: unit {spec.unit}, tables {', '.join(n for n, t in spec.tables.items() if not t.drop)}.")
    if left_out:
        listed = ", ".join(f"{column} ({kind})" for column, kind in left_out.items())
        echo(f"Left out, as `drop: true` in the spec: {listed}.")
    if lost:
        echo(f"Left out, since their key points at what is dropped: {', '.join(lost)}.")
    if taken:
        echo(f"{len(taken)} domains were taken from the data. By keeping them you declare them public: review them.")
    if wanted:
        echo(f"{len(wanted)} domains will be found with budget. To declare what is public knowledge costs nothing.")
    if texts:
        echo(f"Before you fit: say in {out}, under each of these, `domain: {{values: [..], other: true}}`, `domain:")
        echo(f"{{text: [0, 8, 16]}}` or `drop: true`: {', '.join(texts)}. Or fit with `--delta 1e-9`: the texts that")
        echo("many entities have are then found with budget, and published as they are.")
    echo(f"Next: {program()} fit {shell(out)} --epsilon 3.2 -o my.model")


def _of_origin(spec: Spec, origin: Origin) -> list[str]:
    return [
        f"{table}.{column}"
        for table, said in spec.tables.items()
        for column, words in said.columns.items()
        if words.origin is origin
    ]


def _wanted(spec: Spec) -> tuple[list[str], list[str]]:
    """The columns whose domain is to be found, and those that need one to be declared: text."""
    protection = spec.protection()
    texts = {(t, c): protection.schema.table(t).column(c).type.kind is Kind.TEXT for t, c in spec.wanted(protection)}
    found, declared = (
        [f"{t}.{c}" for (t, c), is_text in texts.items() if is_text is wanted] for wanted in (False, True)
    )
    return found, declared


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
