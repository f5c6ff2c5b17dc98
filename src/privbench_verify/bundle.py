"""Check a bundle: its receipt, its checksums, and that manifest, receipt and files belong together.

The rows of CSV files are counted here. Other formats need a library: whoever has one passes a check of the data.
"""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import cast

from privbench_verify.checksums import CHECKSUMS, RECEIPT, is_plain_file, sha256, wrong_checksums
from privbench_verify.facts import Facts, read_facts
from privbench_verify.read import (
    MAX_RATIONAL,
    Json,
    ReceiptError,
    brief,
    check_values,
    digest_of,
    fields_of,
    flag_of,
    integer_of,
    list_of,
    names_of,
    object_of,
    one_of,
    rational_of,
    shown,
    shown_place,
    text_of,
)
from privbench_verify.receipt import Verdict, shortened, verify_receipt, with_people
from privbench_verify.strict_json import MAX_BYTES, read_json

MANIFEST = "manifest.json"
DATA_FOLDER = "data"
COMPANIONS = ("schema.sql", "README.md", MANIFEST)
"""What must stand in a bundle beside its receipt, its checksums and its data."""
SCRIPTS = (
    "schema.sql",
    "schema.duckdb.sql",
    "pre-data.sql",
    "post-data.sql",
    "load/mysql-rest.sql",
    *(f"load/{system}.{suffix}" for system in ("duckdb", "mysql", "postgres", "sqlite") for suffix in ("sh", "sql")),
)
"""What a system runs. Which of them a bundle has depends on its format."""
_FILES = (*COMPANIONS, *SCRIPTS, "schema.json", RECEIPT, CHECKSUMS)
_DEFINITIONS = ("run", "code", "held", "literals")
_ROLES = ("entity", "owned", "lookup", "public", "made up")
_SCALE = re.compile(r"[0-9]{1,100}(?:\.[0-9]{1,100})?(?:e[+-]?[0-9]{1,2})?")
_LONGEST_FIELD = 2**31 - 1


_RULE_COUNTS = ("drawn_again", "copied", "left_out")
"""What a manifest says of the rules of a table: how many rows it took to keep them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestColumn:
    """A column as the manifest describes it."""

    name: str
    type: str
    nullable: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestTable:
    """A table as the manifest describes it; `files` are paths in the bundle."""

    role: str
    rows: int
    columns: tuple[ManifestColumn, ...]
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a bundle holds according to its manifest: its tables, and the digests of its model and receipt."""

    format: str
    scale: Fraction
    tables: Mapping[str, ManifestTable]
    model: str
    receipt: str
    software: str = ""
    definitions: Mapping[str, Mapping[str, int]] = field(default_factory=lambda: {key: {} for key in _DEFINITIONS})
    """Of the source's own definitions how many run, are code, are held back as code, and hold literals, by kind."""


DataCheck = Callable[[Path, Manifest], Iterable[str]]
"""Compares the data of a bundle with its manifest, rows and columns of every table, and says what differs."""


ScriptCheck = Callable[[Path, Manifest], tuple[str, ...]]
"""Makes the scripts of a bundle again from its schema, and says what differs."""


def verify_bundle(
    folder: Path | str,
    data_checks: Mapping[str, DataCheck] | None = None,
    script_check: ScriptCheck | None = None,
) -> Verdict:
    """Check a bundle. Whatever is in the folder, the answer is a verdict, not an exception.

    `data_checks` are by format, for those that this package cannot read; without one, the verdict says among its
    assumptions that rows were not counted. Nor can it write scripts: without a `script_check` the verdict says that
    they were not compared.
    """
    folder = Path(folder)
    receipt, unreadable = _read(folder / RECEIPT)
    verdict = verify_receipt(receipt)
    if unreadable:
        return replace(verdict, problems=(unreadable,))
    problems = [f"{name}: is missing, was changed or added, or is a link" for name in wrong_checksums(folder)]
    if problems or verdict.status == "failed":
        return _failed(verdict, problems)
    try:
        manifest = read_manifest(folder)
        problems += _ties(folder, manifest, cast(Json, receipt))
        check = {"csv": csv_problems, **(data_checks or {})}.get(manifest.format)
        problems += check(folder, manifest) if check and not problems else ()
        problems += script_check(folder, manifest) if script_check and not problems else ()
    except (ReceiptError, OSError) as error:
        return _failed(verdict, [*problems, str(error)])
    copied = {name: table.columns for name, table in manifest.tables.items() if table.role == "public"}
    verdict = with_people(verdict, {name: {c.name: c.type for c in columns} for name, columns in copied.items()})
    told = (*definition_lines(manifest.definitions), *([] if script_check else [_UNCOMPARED]), _UNREAD)
    verdict = replace(verdict, assumptions=(*verdict.assumptions, *told))
    if check is None:
        there = "files" if any(table.files for table in manifest.tables.values()) else "database, not in this folder,"
        uncounted = f"The rows in the {manifest.format} {there} are those that {MANIFEST} says: they were not counted."
        verdict = replace(verdict, assumptions=(*verdict.assumptions, uncounted))
    return _failed(verdict, problems)


_UNCOMPARED = (
    "The scripts (schema.sql, pre-data.sql, post-data.sql, load/) are those that the schema gives: they were not "
    "compared. `privbench verify` makes them again. Do not run them before."
)
_UNREAD = "README.md is for people: nothing in it was checked."


def definition_lines(definitions: Mapping[str, Mapping[str, int]]) -> list[str]:
    """What to know of the source's own definitions, which a bundle or a model holds word by word."""
    lines = []
    if run := definitions["run"]:
        lines.append(f"{sum(run.values())} statements of the source's own DDL run with it: {_counts(run)}.")
    if code := definitions["code"]:
        lines.append(f"CODE of the source is among what runs: {_counts(code)}. Read it before you load anything.")
    if held := definitions["held"]:
        lines.append(f"Code of the source is held back: {_counts(held)}.")
    if literals := definitions["literals"]:
        lines.append(
            f"{sum(literals.values())} definitions of the source hold literals and are published word by word, outside "
            f"the promise: {_counts(literals)}. They are taken to tell nothing of anyone."
        )
    return lines


def _counts(kinds: Mapping[str, int]) -> str:
    return ", ".join(f"{shown(kind)} {count}" for kind, count in kinds.items())


def verify_file(path: Path | str) -> Verdict:
    """Check a receipt.json on its own. Whatever the file is, the answer is a verdict, not an exception."""
    receipt, unreadable = _read(Path(path))
    verdict = verify_receipt(receipt)
    return replace(verdict, problems=(unreadable,)) if unreadable else verdict


def read_manifest(folder: Path | str) -> Manifest:
    """Read the manifest of a bundle; ReceiptError if there is none, or it cannot be read."""
    value, unreadable = _read(Path(folder) / MANIFEST)
    if unreadable:
        raise ReceiptError(unreadable)
    check_values(value)
    names = ("version", "software", "scale", "seed", "format", "tables", "model", "receipt")
    manifest = fields_of(value, MANIFEST, names, optional=("left_out", "partitions", "definitions"))
    names_of(manifest.get("left_out", []), f"{MANIFEST}: left_out")
    if type(manifest["version"]) is not int or manifest["version"] != 1:
        raise ReceiptError(f"{MANIFEST}: version is {brief(manifest['version'])}, not 1")
    integer_of(manifest["seed"], f"{MANIFEST}: seed", least=-(2**64))
    integer_of(manifest.get("partitions", 1), f"{MANIFEST}: partitions", least=1)
    return Manifest(
        format=text_of(manifest["format"], f"{MANIFEST}: format"),
        scale=_scale(manifest["scale"]),
        tables=object_of(manifest["tables"], f"{MANIFEST}: tables", _table),
        model=digest_of(manifest["model"], f"{MANIFEST}: model"),
        receipt=digest_of(manifest["receipt"], f"{MANIFEST}: receipt"),
        software=text_of(manifest["software"], f"{MANIFEST}: software"),
        definitions=_definitions(manifest.get("definitions", {key: {} for key in _DEFINITIONS})),
    )


def _definitions(value: object) -> Mapping[str, Mapping[str, int]]:
    where = f"{MANIFEST}: definitions"
    kinds = fields_of(value, where, _DEFINITIONS)
    return {name: object_of(kinds[name], f"{where}.{name}", integer_of) for name in _DEFINITIONS}


def csv_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """What CSV files hold otherwise than the manifest says."""
    for name, table in manifest.tables.items():
        header = [column.name for column in table.columns]
        try:
            rows = sum(_count_csv(folder / file, header) for file in table.files)
        except (csv.Error, ReceiptError) as error:
            yield f"{shown(name)}: its CSV file cannot be counted: {error}"
            continue
        if rows != table.rows:
            yield f"{shown(name)}: has {rows} rows, but {MANIFEST} says {table.rows}"


def _failed(verdict: Verdict, problems: list[str]) -> Verdict:
    if not problems:
        return verdict
    return replace(verdict, status="failed", problems=shortened([*verdict.problems, *problems]))


def _read(path: Path) -> tuple[object, str]:
    """The JSON of a file, and why it cannot be read; one of the two is empty."""
    try:
        if not path.is_file():
            return None, f"{path.name}: is missing, or is no file"
        if path.stat().st_size > MAX_BYTES:
            return None, f"{path.name}: is larger than {MAX_BYTES // 2**20} MB"
        return read_json(path.read_bytes()), ""
    except (OSError, ValueError) as error:
        return None, f"{path.name}: cannot be read as JSON: {str(error)[:200]}"


def _scale(value: object) -> Fraction:
    where = f"{MANIFEST}: scale"
    if not isinstance(value, str) or len(value) > MAX_RATIONAL:
        raise ReceiptError(f"{where} is {brief(value)}, not a text")
    scale = Fraction(value) if _SCALE.fullmatch(value) else rational_of(value, where)
    if scale == 0:
        raise ReceiptError(f"{where} is 0")
    return scale


def _table(value: object, where: str) -> ManifestTable:
    table = fields_of(value, where, ("role", "rows", "columns", "files"), optional=("rules",))
    if "rules" in table:
        for name, count in fields_of(table["rules"], f"{where}.rules", _RULE_COUNTS).items():
            integer_of(count, f"{where}.rules.{name}")
    columns = list_of(table["columns"], f"{where}.columns", _column)
    if len({column.name for column in columns}) < len(columns):
        raise ReceiptError(f"{where}: a column stands twice")
    return ManifestTable(
        role=one_of(table["role"], f"{where}.role", _ROLES),
        rows=integer_of(table["rows"], f"{where}.rows"),
        columns=tuple(columns),
        files=names_of(table["files"], f"{where}.files"),
    )


def _column(value: object, where: str) -> ManifestColumn:
    column = fields_of(value, where, ("name", "type", "nullable"))
    return ManifestColumn(
        name=text_of(column["name"], f"{where}.name"),
        type=text_of(column["type"], f"{where}.type"),
        nullable=flag_of(column["nullable"], f"{where}.nullable"),
    )


# -- what belongs together ---------------------------------------------------------------------------------------------


def _ties(folder: Path, manifest: Manifest, receipt: Json) -> Iterator[str]:
    """What of a bundle does not belong to the rest; the receipt is one that was verified."""
    facts = read_facts(receipt)
    yield from (f"{name}: is missing" for name in COMPANIONS if not is_plain_file(folder / name))
    present = (p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*")) if p.is_symlink() or not p.is_dir())
    others = [name for name in present if not name.startswith(f"{DATA_FOLDER}/") and name not in _FILES]
    yield from (f"{shown(name)}: is no file of a bundle" for name in others)
    if manifest.receipt != sha256(folder / RECEIPT):
        yield f"{MANIFEST} belongs to another receipt"
    roles = {
        **{name: table.role for name, table in facts.tables.items() if name not in facts.lists},
        **dict.fromkeys(facts.public_tables, "public"),
        **dict.fromkeys(facts.made_up, "made up"),
    }
    for name in sorted(roles.keys() | manifest.tables.keys()):
        role = manifest.tables[name].role if name in manifest.tables else None
        if role != roles.get(name):
            yield f"{shown(name)}: is {role} in {MANIFEST}, but {roles.get(name)} in the receipt"
    for name, rows in facts.made_up.items():
        if name in manifest.tables and manifest.tables[name].rows != rows:
            yield f"{shown(name)}: has {manifest.tables[name].rows} rows, but {rows} were made up by the receipt"
    yield from _file_problems(folder, manifest)
    yield from _column_problems(manifest, facts)
    entity, size = manifest.tables.get(facts.entity), facts.sizes.get(facts.entity)
    if manifest.scale == 1 and entity is not None and size is not None and entity.rows > size:
        # fewer are there where keys that must be unique would repeat
        yield f"{shown(facts.entity)}: has {entity.rows} rows at scale 1, but the receipt says {size}"


def _file_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Every file is that of a table, and every table has its files."""
    present = {p.relative_to(folder).as_posix() for p in (folder / DATA_FOLDER).rglob("*") if not p.is_dir()}
    users = [file for table in manifest.tables.values() for file in table.files]
    if users:
        yield from (f"{shown(name)}: has no file" for name, table in manifest.tables.items() if not table.files)
    for file in sorted(present ^ set(users)):
        where = "is listed, but is no file" if file not in present else "is not listed"
        yield f"{shown(file)}: {where} under {DATA_FOLDER}/ ({MANIFEST})"
    if 1 < len(set(users)) < len(users):
        yield f"{MANIFEST}: a file is listed for two tables, but not all tables are in one file"


def _column_problems(manifest: Manifest, facts: Facts) -> Iterator[str]:
    """Every column that the receipt names is a column of the bundle, but for those of lists, which are not in it."""
    present = {(name, column.name) for name, table in manifest.tables.items() for column in table.columns}
    places = {*facts.domains, *facts.computed, *facts.relative}
    places |= {column.base for column in facts.relative.values() if column.base is not None}
    for name, table in facts.tables.items():
        holder = table.owner if table.role == "lookup" else name
        places |= {(holder or name, column) for column in table.key or ()}
    links = (*facts.references, *facts.inside, *facts.implied)
    places |= {(link.table, column) for link in links for column in link.columns}
    places |= {(table, column) for table, columns in facts.public_keys for column in columns}
    for place in sorted(p for p in places - present if p[0] not in facts.lists):
        yield f"{shown_place(place)}: is in the receipt, but {MANIFEST} has no such column"


def _count_csv(path: Path, header: list[str]) -> int:
    """The rows of a CSV file, all as long as its header; of a single column an empty line is a row, a NULL."""
    limit = csv.field_size_limit(_LONGEST_FIELD)
    try:
        with path.open(encoding="utf-8", errors="surrogateescape", newline="") as file:
            rows = csv.reader(file)
            if next(rows, None) != header:
                raise ReceiptError("its first line does not name the columns of the manifest")
            return sum(_checked(row, len(header)) for row in rows)
    finally:
        csv.field_size_limit(limit)


def _checked(row: list[str], columns: int) -> int:
    if len(row) != columns and (row or columns != 1):
        raise ReceiptError(f"a row has {len(row)} fields, not {columns}")
    return 1
