"""What stands beside the data in a bundle: schema, receipt, manifest, how to load it, and checksums.

Names of tables and columns come from the publisher's database. They are quoted in SQL and escaped in comments and in
the README, so that they can end no comment and add no markup.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from privbench import __version__
from privbench.generation.keys import keeps_entity_keys
from privbench.generation.ruled import RuleCounts
from privbench.io.load_scripts import POST_DATA, PRE_DATA, definition_counts, own_ddl, readme_lines, script_files
from privbench.io.load_scripts import left_out as scripts_left_out
from privbench.io.names import file_stems, markdown
from privbench.io.render import Dialect, omitted_keys
from privbench.io.sinks import server_of, sink_kind
from privbench.io.staging import is_bundle
from privbench.model.file import model_digest
from privbench.model.model import Model
from privbench.model.notes import change_lines, found_lists, size_words, unkept_checks
from privbench.model.order import redrawn_links
from privbench.schema.original import LeftOut, OriginalUse, OwnDdl, left_out_lines
from privbench.schema.schema_file import SCHEMA_FILE, BundleSchema, schema_text
from privbench.schema.tables import Schema
from privbench.schema.unit import LinkKind
from privbench_verify.checksums import CHECKSUMS, RECEIPT, sha256, wrong_checksums

MANIFEST = "manifest.json"
PARTITIONS = "partitions"
"""The folder of partitions in a bundle to be; it goes when they are put together."""


def published_schema(model: Model, use: OriginalUse = OriginalUse.CHECKED) -> Schema:
    """The schema of a database made from a model, with as much of the source's own DDL as is asked for."""
    schema = model.protection.schema.published()
    if use is OriginalUse.CHECKED:
        return schema
    return replace(schema, original=model.spec.original if use is OriginalUse.CODE else None)


def write_companions(
    folder: Path,
    model: Model,
    *,
    rows: Mapping[str, int],
    form: str,
    lost: Sequence[str],
    rules: Mapping[str, RuleCounts],
    scale: float,
    seed: int,
    left_out: Sequence[LeftOut] | None = None,
    partitions: int | None = None,
    checksums: Mapping[str, str] | None = None,
    original: OriginalUse = OriginalUse.CHECKED,
) -> None:
    """Write everything of a bundle but the data. `lost` is what to say of tables smaller than planned.

    `rules` says by table what it took to keep its rules, `left_out` what of the source a database on a server goes
    without; then `form` is its system, and there are no files of data. With `partitions`, each table is a folder of so
    many files, or of one. `checksums` are those of files that are known already.
    """
    schema = published_schema(model, original)
    stems = file_stems(t.name for t in schema.tables)
    files = {name: _files(folder, stem) for name, stem in stems.items()}
    scripts = script_files(schema, form, files)
    if left_out is None:
        left_out = scripts_left_out(schema)
    code = original is OriginalUse.CODE
    _write(folder / SCHEMA_FILE, schema_text(BundleSchema(schema=schema, original_code=code)))
    for name, text in scripts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        _write(folder / name, text)
    write_receipt(folder / RECEIPT, model.receipt)
    manifest = _manifest(folder, model, rows=rows, rules=rules, form=form, scale=scale, seed=seed, files=files)
    manifest |= {"partitions": partitions} if partitions is not None else {}
    manifest |= {"definitions": definition_counts(schema)}
    manifest |= {"left_out": left_out_lines(left_out)} if left_out else {}
    _write(folder / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    first = stems[next(iter(rows))]
    loading = list(_loading(scripts, form, stem=first if partitions is None else f"{first}/*"))
    readme = _readme(
        model,
        rows=rows,
        rules=rules,
        loading=loading,
        lost=lost,
        left_out=left_out,
        scale=scale,
        seed=seed,
        own=own_ddl(schema),
    )
    _write(folder / "README.md", "\n".join(readme))
    _write_checksums(folder, checksums or {})


def write_receipt(path: Path, receipt: Mapping[str, Any]) -> None:
    """Write a receipt as JSON that people can read."""
    _write(path, json.dumps(receipt, indent=1, ensure_ascii=False) + "\n")


def is_untouched_bundle(folder: Path) -> bool:
    """Tell whether a folder is a bundle whose files are those that `generate` wrote."""
    return folder.is_dir() and is_bundle(folder) and not wrong_checksums(folder)


def redrawn_keys(model: Model, scale: float) -> tuple[str, ...]:
    """Name the keys of public tables whose values are drawn again at this scale, since what they reference is."""
    links = redrawn_links(model.protection, keep_entity_keys=keeps_entity_keys(model, scale))
    return tuple(link.name for link in links)


def _write(path: Path, text: str) -> None:
    """Write text with its line ends as they are: a name may hold one."""
    path.write_bytes(text.encode())


def _write_checksums(folder: Path, known: Mapping[str, str]) -> None:
    """Write the digests of all files; only with them is a folder a bundle, so that they appear at once."""
    partial = folder / f".{CHECKSUMS}"
    partial.unlink(missing_ok=True)  # of a run that was killed
    paths = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
    listed = {n: p for n, p in paths.items() if n != CHECKSUMS and not n.startswith(f"{PARTITIONS}/")}
    lines = [f"{known.get(name) or sha256(path)}  {name}\n" for name, path in listed.items()]
    _write(partial, "".join(lines))
    partial.rename(folder / CHECKSUMS)


def _manifest(
    folder: Path,
    model: Model,
    *,
    rows: Mapping[str, int],
    rules: Mapping[str, RuleCounts],
    form: str,
    scale: float,
    seed: int,
    files: Mapping[str, list[str]],
) -> dict[str, Any]:
    """What the bundle holds, and of which model and receipt it is."""
    protection = model.protection
    tables = {
        table.name: {
            "role": protection.role_words(table.name),
            "rows": rows[table.name],
            "columns": [{"name": c.name, "type": c.type.sql, "nullable": c.nullable} for c in table.columns],
            "files": files[table.name],
            **({"rules": asdict(rules[table.name])} if table.name in rules else {}),
        }
        for table in protection.schema.published().tables
    }
    return {
        "version": 1,
        "software": f"privbench {__version__}",
        "scale": scale_text(scale),
        "seed": seed,
        "format": str(form),
        "tables": tables,
        "model": model_digest(model),
        "receipt": sha256(folder / RECEIPT),
    }


def scale_text(scale: float) -> str:
    """A scale factor as a manifest has it.

    >>> scale_text(1e-2), scale_text(1000.0)
    ('0.01', '1000')
    """
    return f"{Decimal(repr(scale)).normalize():f}"


def _files(folder: Path, stem: str) -> list[str]:
    """The files that hold a table: those of its folder, or of its name, or all where tables share them."""
    if (folder / "data" / stem).is_dir():
        return sorted(f"data/{stem}/{path.name}" for path in (folder / "data" / stem).iterdir())
    names = sorted(path.name for path in (folder / "data").iterdir())
    return [f"data/{name}" for name in names if name.partition(".")[0] == stem] or [f"data/{name}" for name in names]


# -- README.md ---------------------------------------------------------------------------------------------------------


def _readme(
    model: Model,
    *,
    rows: Mapping[str, int],
    rules: Mapping[str, RuleCounts],
    loading: Sequence[str],
    lost: Sequence[str],
    left_out: Sequence[LeftOut],
    scale: float,
    seed: int,
    own: OwnDdl,
) -> Iterator[str]:
    """The lines of the README. Whatever holds a name goes through `markdown`."""
    protection = model.protection
    yield from (
        "# A synthetic database made by PrivBench",
        "",
        "The rows of private tables were drawn from a model that was learnt under differential privacy; public",
        "tables are copies. `receipt.json` says what was promised and what the budget was spent on.",
        "",
    )
    yield from _promise(model)
    if keeps_entity_keys(model, scale):
        entity = markdown(protection.entity)
        yield f"The ids of {entity} are those of the source: public tables reference them, so they count as public."
        yield ""
    yield from ("## Load it", "", *loading, "")
    if own.runs or own.held:
        yield from (f"{markdown(own.line())}. Read `{PRE_DATA}` and `{POST_DATA}` before you run them.", "")
    if omitted := [markdown(f"{t} {k}") for t, k in omitted_keys(protection.schema.published(), Dialect.DUCKDB)]:
        yield from (f"DuckDB goes without these keys, which it cannot hold: {'; '.join(omitted)}.", "")
    yield from (f"## Tables (scale factor {scale:g}, seed {seed})", "")
    yield from ("| table | role | rows | size in the source |", "|---|---|---|---|")
    for name, count in rows.items():
        copied = "not read" if name in protection.made_up else "copied"
        table = model.tables.get(name)
        sure = size_words(table.rows_error, table.rows_low, table.rows_high) if table else copied
        yield f"| {markdown(name)} | {protection.role_words(name)} | {count} | {sure} |"
    yield ""
    if any(table.rows_error for table in model.tables.values()):
        yield "Private sizes are learnt with noise. `+-` is how far the rows, divided by the scale factor, are expected"
        yield "to be from the size of the table in the source (standard error). Where that says too little there is"
        yield "the range that the source's size is in with 90 %."
        yield ""
    if made_up := ", ".join(map(markdown, protection.made_up)):
        yield f"No row of these tables was read; their rows are made up from the schema alone: {made_up}."
        yield "What keys into them, and queries over them, say of the source ends there."
        yield ""
    if redrawn := redrawn_keys(model, scale):
        yield "Public tables are copied as they are, but for these keys, which are drawn again since the rows that they"
        yield f"reference are made anew: {', '.join(map(markdown, redrawn))}."
        yield ""
    yield from _list(lost)
    if left_out:
        yield from ("## Objects of the source that are not here", "")
        yield from _list(left_out_lines(left_out))
    yield from _rules(model, rules)
    if changes := change_lines(model.spec):
        yield from ("## Columns that are not as in the source", "")
        yield from _list(changes)
    yield from (
        "## Check it",
        "",
        "`sha256sum -c SHA256SUMS` checks the files; `privbench verify .` adds the receipt up again.",
        "Both are arithmetic: who made this bundle only a signature, or checksums from elsewhere, can show.",
        "",
    )


def _loading(scripts: Mapping[str, str], form: str, *, stem: str) -> Iterator[str]:
    """How to load the tables."""
    if server_of(form) is not None:
        yield f"The tables were loaded into a database ({form}); they are not in this folder. `{PRE_DATA}` and"
        yield f"`{POST_DATA}` say how they were made. The same model, scale and seed give the same rows as files."
        return
    yield sink_kind(form).loading.format(table=stem)
    yield ""
    if not any(name.startswith("load/") for name in scripts):
        yield f"For another system write files (`privbench generate --to csv`); `{PRE_DATA}` and `{POST_DATA}` have the"
        yield "definitions that would stand around their rows."
        return
    yield from (f"- {line}" for line in readme_lines(scripts))
    yield f"- `{PRE_DATA}` is to be run before the rows are loaded and `{POST_DATA}` after."


def _rules(model: Model, counts: Mapping[str, RuleCounts]) -> Iterator[str]:
    """The rules that every row keeps, what that took, and the CHECKs of the source that rows may break."""
    tables = [table for table in model.protection.schema.tables if table.checks]
    if tables:
        yield from ("## Rules", "", "Every row keeps these; those over one row stand in `schema.sql` as CHECKs.", "")
        yield from _list([f"{table.name}: {check}" for table in tables for check in table.checks])
    yield from _list(rule_lines({name: asdict(each) for name, each in counts.items()}))
    if unkept := unkept_checks(model.spec):
        yield from ("Generated rows may break these CHECKs of the source:", "")
        yield from _list(unkept)


def rule_lines(counts: Mapping[str, Mapping[str, int]]) -> list[str]:
    """Say by table how many rows had to be drawn again to keep its rules, and how many are not there.

    >>> rule_lines({"a": {"drawn_again": 1200, "copied": 3, "left_out": 0}, "b": {"drawn_again": 0}})
    ['a: 1,200 rows broke a rule and were drawn again; 3 of them have columns of other rows']
    """
    lines = []
    for table, rows in counts.items():
        parts = (
            [f"{table}: {rows['drawn_again']:,} rows broke a rule and were drawn again"] if rows["drawn_again"] else []
        )
        parts += [f"{rows['copied']:,} of them have columns of other rows"] if rows.get("copied") else []
        parts += [f"{rows['left_out']:,} were left out, since nothing helped"] if rows.get("left_out") else []
        lines += ["; ".join(parts)] if parts else []
    return lines


def read_rule_counts(bundle: Path) -> dict[str, dict[str, int]]:
    """What it took to keep the rules of each table of a bundle, as its manifest says."""
    tables = json.loads((bundle / MANIFEST).read_bytes())["tables"]
    return {name: table["rules"] for name, table in tables.items() if "rules" in table}


def _list(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from (f"- {markdown(line)}" for line in lines)
        yield ""


def _promise(model: Model) -> Iterator[str]:
    receipt, protection = model.receipt, model.protection
    relation = {"replace": "replacing", "add-remove": "adding or removing"}[receipt["neighbours"]]
    delta = _decimal(receipt["delta"])
    chance = "" if delta == "0" else f", delta = {delta}"
    yield from ("## What is promised", "")
    yield (
        f"epsilon = {_decimal(receipt['epsilon'])}{chance} for {relation} one entity: a row of "
        f"{markdown(protection.entity)} with every row that belongs to it."
    )
    yield ""
    if receipt["stamp"]:
        yield from (f"**{markdown(receipt['stamp'])}**", "")
    if receipt["condition"]:
        yield from (f"Condition: {markdown(receipt['condition'])}.", "")
    if receipt["references"]["note"]:
        keys = [f"{k.table} {k.key}" for k in protection.links if k.kind is LinkKind.REFERENCE]
        yield from (f"{markdown(receipt['references']['note'])} Keys: {'; '.join(map(markdown, keys))}.", "")
    if receipt["public"]["orphans_note"]:
        yield from (markdown(receipt["public"]["orphans_note"]), "")
    if lists := list(found_lists(model)):
        yield "These columns hold texts of the source that many entities have, found within this promise:"
        yield f"{', '.join(map(markdown, lists))}. Other texts there are made up."
        yield ""


def _decimal(rational: str) -> str:
    numerator, denominator = rational.split("/")
    return f"{int(numerator) / int(denominator):g}"
