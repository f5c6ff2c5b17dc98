"""What stands beside the data in a bundle: schema, receipt, how to load it, and checksums."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from privbench.fitting.found_lists import found_lists
from privbench.generation.keys import keeps_entity_keys
from privbench.io.render import Dialect, omitted_keys, render_ddl
from privbench.io.sinks import sink_kind
from privbench.io.staging import is_bundle
from privbench.model.model import Model
from privbench.schema.tables import Schema
from privbench_verify.checksums import CHECKSUMS, RECEIPT, sha256, wrong_checksums


def write_companions(
    folder: Path,
    model: Model,
    *,
    rows: Mapping[str, int],
    form: str,
    lost: Sequence[str],
    scale: float,
    seed: int,
) -> None:
    """Write everything of a bundle but the data. `lost` is what to say of tables smaller than planned."""
    schema = model.protection.schema
    (folder / "schema.sql").write_text(render_ddl(schema, Dialect.ANSI) + "\n", encoding="utf-8")
    (folder / "schema.duckdb.sql").write_text(_duckdb_script(schema) + "\n", encoding="utf-8")
    write_receipt(folder / RECEIPT, model.receipt)
    kept = keeps_entity_keys(model, scale)
    text = _readme(model, rows=rows, form=form, lost=lost, scale=scale, seed=seed, kept_ids=kept)
    (folder / "README.md").write_text(text, encoding="utf-8")
    _write_checksums(folder)


def write_receipt(path: Path, receipt: Mapping[str, Any]) -> None:
    """Write a receipt as JSON that people can read."""
    path.write_text(json.dumps(receipt, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def is_untouched_bundle(folder: Path) -> bool:
    """Tell whether a folder is a bundle whose files are those that `generate` wrote."""
    return folder.is_dir() and is_bundle(folder) and not wrong_checksums(folder)


def _write_checksums(folder: Path) -> None:
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    lines = [f"{sha256(p)}  {p.relative_to(folder).as_posix()}\n" for p in files]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def _duckdb_script(schema: Schema) -> str:
    left_out = [f"-- left out: {table} {key}" for table, key in omitted_keys(schema, Dialect.DUCKDB)]
    note = ["-- DuckDB cannot hold foreign keys in cycles or to the same table:", *left_out, ""] if left_out else []
    return "\n".join([*note, render_ddl(schema, Dialect.DUCKDB)])


def _readme(
    model: Model,
    *,
    rows: Mapping[str, int],
    form: str,
    lost: Sequence[str],
    scale: float,
    seed: int,
    kept_ids: bool,
) -> str:
    first, protection = next(iter(rows)), model.protection
    omitted = [f"{t} {k}" for t, k in omitted_keys(protection.schema, Dialect.DUCKDB)]
    return "\n".join(
        [
            "# A synthetic database made by PrivBench",
            "",
            "The rows of private tables were drawn from a model that was learnt under differential privacy; public",
            "tables are copies. `receipt.json` says what was promised and what the budget was spent on.",
            "",
            *_promise(model.receipt, kept_ids=kept_ids, lists=list(found_lists(model))),
            "",
            "## Load it",
            "",
            sink_kind(form).loading.format(table=first),
            "",
            *([f"DuckDB goes without these keys, which it cannot hold: {'; '.join(omitted)}.", ""] if omitted else []),
            f"## Tables (scale factor {scale:g}, seed {seed})",
            "",
            "| table | role | rows |",
            "|---|---|---|",
            *(f"| {name} | {protection.roles[name].value} | {count} |" for name, count in rows.items()),
            "",
            *([*(f"- {line}" for line in lost), ""] if lost else []),
            "## Check it",
            "",
            "`sha256sum -c SHA256SUMS` checks the files; `privbench verify .` adds the receipt up again.",
            "Both are arithmetic: who made this bundle only a signature, or checksums from elsewhere, can show.",
            "",
        ]
    )


def _promise(receipt: Mapping[str, Any], *, kept_ids: bool, lists: Sequence[str]) -> list[str]:
    relation = {"replace": "replacing", "add-remove": "adding or removing"}[receipt["neighbours"]]
    delta = _decimal(receipt["delta"])
    chance = "" if delta == "0" else f", delta = {delta}"
    lines = [
        "## What is promised",
        "",
        f"epsilon = {_decimal(receipt['epsilon'])}{chance} for {relation} one entity: a row of "
        f"`{receipt['unit']['entity']}` with every row that belongs to it.",
    ]
    if receipt["stamp"]:
        lines += ["", f"**{receipt['stamp']}**"]
    if receipt["condition"]:
        lines += ["", f"Condition: {receipt['condition']}."]
    if receipt["references"]["note"]:
        lines += ["", f"{receipt['references']['note']} Keys: {'; '.join(receipt['references']['keys'])}."]
    if receipt["public"]["orphans_note"]:
        lines += ["", receipt["public"]["orphans_note"]]
    if lists:
        lines += [
            "",
            f"These columns hold texts of the source that many entities have, found within this promise: "
            f"{', '.join(f'`{name}`' for name in lists)}. Others there are made up.",
        ]
    if kept_ids:
        entity = receipt["unit"]["entity"]
        lines += [
            "",
            f"The ids of `{entity}` are those of the source: public tables name them, so they count as public.",
        ]
    return lines


def _decimal(rational: str) -> str:
    numerator, denominator = rational.split("/")
    return f"{int(numerator) / int(denominator):g}"
