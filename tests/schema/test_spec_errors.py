from pathlib import Path

import pytest

from privbench.errors import SpecError
from privbench.schema.spec import read_spec
from privbench.schema.yaml_file import MAX_BYTES

WANTED = "domain: a domain is `private`, or a mapping with one of these words: range, bins, values, text, serial"
HEAD = "version: 1\ntables:\n  t:\n"


def refused(tmp_path: Path, text: str | bytes) -> str:
    path = tmp_path / "spec.yaml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SpecError) as caught:
        read_spec(path)
    message = str(caught.value)
    assert "spec.yaml" in message
    assert "pydantic" not in message
    return message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 2\ntables: {}", "line 1, version: Input should be 1; found 2."),
        ("version: 1", "line 1, tables: is missing."),
        ("- a", "line 1, the file: a mapping is wanted"),
        ("tables: 3", "line 1, tables: a mapping is wanted (`name: value`, indented below); found 3."),
        ("a: 1\ntables: {}\nunt: x", "line 3, unt: not a word of the spec here. Did you mean unit? Allowed: version, "),
        ("tables: {}\nneighbours: add", "line 2, neighbours: Input should be 'replace' or 'add-remove'; found 'add'."),
        ("tables: {}\norphans: null", 'with "null" in quotes; found nothing (null).'),
        ("tables: {}\nstrict_references: yes", "strict_references: true or false is wanted; found 'yes'."),
        ("tables: {}\nunit: 7", "line 2, unit: text is wanted; put it in quotes; found 7."),
        ("tables: {}\nmethod: {a: [1]}", "method.a: a single value is wanted"),
        (HEAD + "    columns: {}", "line 3, tables.t: a table needs `columns`"),
        (
            HEAD + "    key: a\n    columns: {a: {type: DATE}}",
            "line 4, tables.t.key: a list is wanted, in brackets: [a, b]; found 'a'.",
        ),
        (HEAD + "    public: true\n    drop: true", "line 3, tables.t: public and drop exclude each other"),
        (HEAD + "    drop: true\n    rows_per_entity: 3", "rows_per_entity has no meaning beside drop"),
        (HEAD + "    drop: true\n    order: [a]", "order has no meaning beside drop"),
        (HEAD + "    drop: true\n    numbered_by: a", "numbered_by has no meaning beside drop"),
        (
            HEAD + "    numbered_by: b\n    columns: {a: {type: DATE}}",
            "line 4, tables.t.numbered_by: t has no column 'b'.",
        ),
        (HEAD + "    public: true\n    clustered_by: [a]", "clustered_by has no meaning beside public: take it out"),
        (
            HEAD + "    clustered_by: [a, {column: b, run: 9}]\n    columns: {a: {type: DATE}}",
            "line 4, tables.t.clustered_by.1: t has no column 'b'.",
        ),
        (
            HEAD + "    clustered_by: [a, a]\n    columns: {a: {type: DATE}}",
            "line 4, tables.t.clustered_by.1: 'a' is listed twice.",
        ),
        (
            HEAD + "    clustered_by: [{column: a, share: 1.5}]\n    columns: {a: {type: DATE}}",
            "line 4, tables.t.clustered_by.0.share",
        ),
        (
            HEAD + "    clustered_by: [{column: a, run: 1}]\n    columns: {a: {type: DATE}}",
            "line 4, tables.t.clustered_by.0.run",
        ),
        (
            HEAD + "    clustered_by: [{column: a, from: private}]\n    columns: {a: {type: DATE}}",
            "line 4, tables.t.clustered_by.0: `from` can be `declared`, `schema` or `data` here",
        ),
        (
            HEAD + "    clustered_by: a\n    columns: {a: {type: DATE}}",
            "line 4, tables.t.clustered_by: a list is wanted",
        ),
        (HEAD + "    public: true\n    pairs: [[a, b]]", "pairs have no meaning beside public: take them out"),
        (
            HEAD + "    pairs:\n      - [a, c]\n      - [s.d, a]\n    columns: {a: {type: DATE}, b: {type: DATE}}",
            "line 5, tables.t.pairs.0.1: there is no column 'c'. Choices: a, b.",
        ),
        (
            HEAD + "    pairs:\n      - [a, b]\n      - [b, a]\n    columns: {a: {type: DATE}, b: {type: DATE}}",
            "line 6, tables.t.pairs.1: this pair is listed twice. Take one of them out.",
        ),
        (HEAD + "    pairs: [[a]]\n    columns: {a: {type: DATE}}", "line 4, tables.t.pairs.0.1: is missing."),
        (HEAD + "    pairs: [[a, b, c]]\n    columns: {a: {type: DATE}}", "the list is too long: at most 2"),
        (HEAD + f"    pairs: [{'[a, b], ' * 1001}]\n    columns: {{a: {{type: DATE}}}}", "too long: at most 1000"),
        (HEAD + "    columns:\n      a: {typ: DATE}", "line 5, tables.t.columns.a.typ: not a word"),
        (HEAD + "    columns:\n      a: {typ: DATE}", "line 5, tables.t.columns.a.type: is missing."),
        (
            HEAD + "    columns:\n      a: {typ: DATE}",
            "Did you mean type? Allowed: type, null, domain, from, drop, ",
        ),
        (
            HEAD + "    columns:\n      a:\n        type: DAT",
            "line 6, tables.t.columns.a.type: t.a: type 'DAT' has no codec",
        ),
    ],
)
def test_the_shape_of_the_file(tmp_path: Path, text: str, message: str) -> None:
    assert message in refused(tmp_path, text)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("from: nowhere", "from: Input should be 'declared', 'schema', 'private', 'data' or 'earlier release'"),
        (
            "domain: {}",
            WANTED + "; found a mapping of nothing.",
        ),
        (
            "domain: {bns: [1]}",
            WANTED + "; found a mapping of bns.",
        ),
        ("domain: {bins: [1]}", "domain.bins: the list is too short: at least 2; found a list of 1."),
        (
            "domain: {bins: [1, 2], stp: 1}",
            "domain.stp: not a word of the spec here. Did you mean step? Allowed: bins, heavy_hitters, step, ",
        ),
        ("domain: {bins: [1, {}]}", "domain.bins.1: a single value is wanted"),
        ("domain: {values: [1, 1]}", "domain: a value is listed twice."),
        ("domain: {serial: false}", "domain.serial: Input should be True"),
    ],
)
def test_the_words_of_a_column(tmp_path: Path, words: str, message: str) -> None:
    found = refused(tmp_path, f"{HEAD}    columns:\n      a: {{type: DATE, {words}}}")
    assert f"line 5, tables.t.columns.a.{message}" in found


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("key: [aa]", "line 8, tables.t.key.0: t has no column 'aa'. Did you mean a? Choices: a, b."),
        ("key: [a, a]", "line 8, tables.t.key.1: 'a' is listed twice."),
        ("unique: [[a], [c]]", "tables.t.unique.1.0: t has no column 'c'."),
        ("indexes: {i: {columns: [x]}}", "tables.t.indexes.i.columns.0: t has no column 'x'."),
        ("indexes: {i: {columns: []}}", "tables.t.indexes.i.columns: the list is too short: at least 1"),
        ("indexes: {i: {column: [a]}}", "Did you mean columns? Allowed: columns, unique."),
        (
            "foreign_keys: [{columns: [a], table: U, references: [id]}]",
            "foreign_keys.0.table: there is no table 'U'. Did you mean u?",
        ),
        ("foreign_keys: [{columns: [a], table: u, references: [x]}]", "foreign_keys.0.references: not a key of u"),
        ("foreign_keys: [{columns: [a, b], table: u, references: [id]}]", "2 columns reference 1."),
        ("foreign_keys: [{columns: [a], tables: u}]", "Allowed: columns, table, references, inside, from."),
        ("owner: [a]", "tables.t.owner: these are not the columns of a foreign key of t. Its foreign keys: none."),
        ("owned_by: w", "tables.t.owned_by: there is no table 'w'."),
    ],
)
def test_names_that_are_not_there(tmp_path: Path, words: str, message: str) -> None:
    text = f"unit: u\ntables:\n  u:\n    key: [id]\n    columns: {{id: {{type: DATE}}}}\n\n  t:\n    {words}\n"
    assert message in refused(tmp_path, text + "    columns: {a: {type: DATE}, b: {type: DATE}}\n")


def test_the_unit(tmp_path: Path) -> None:
    table = "    columns: {a: {type: DATE}}\n"
    assert "line 4, unit: there is no table 'T'. Did you mean t?" in refused(tmp_path, HEAD[11:] + table + "unit: T")
    text = f"unit: t\n{HEAD}    rows_per_entity: 2\n{table}"
    assert "line 5, tables.t.rows_per_entity: the unit table has one row per entity" in refused(tmp_path, text)


def test_many_mistakes_are_shown_in_order_and_cut(tmp_path: Path) -> None:
    columns = "".join(f"      c{i}: {{type: X}}\n" for i in range(20))
    lines = refused(tmp_path, HEAD + "    columns:\n" + columns).splitlines()
    assert [line.split(",")[0] for line in lines[1:4]] == ["line 5", "line 6", "line 7"]
    assert lines[-1] == ".. and 8 more"


def test_syntax_errors_have_a_line(tmp_path: Path) -> None:
    assert "spec.yaml, line 3: not valid YAML" in refused(tmp_path, "a: 1\nb: [1\nc: 2\n")
    assert "line 2: 'a' is there twice" in refused(tmp_path, "a: 1\na: 2\n")
    assert "line 2: not UTF-8 text" in refused(tmp_path, b"a: 1\nb: \xff\n")


def test_files_that_are_no_spec(tmp_path: Path) -> None:
    assert "larger than 16 MB" in refused(tmp_path, b" " * (MAX_BYTES + 1))
    for path in (tmp_path / "missing.yaml", tmp_path, Path("nul\x00")):
        with pytest.raises(SpecError, match="cannot be read"):
            read_spec(path)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(b"\xef\xbb\xbftables: {t: {columns: {a: {type: BOOLEAN}}}}")
    assert list(read_spec(path).tables) == ["t"]


def test_a_strangers_file_runs_nothing(tmp_path: Path) -> None:
    target = tmp_path / "ran"
    attack = (
        f"version: 1\ntables: !!python/object/apply:pathlib.Path.touch [!!python/object:pathlib.PosixPath ['{target}']]"
    )
    assert "line 2: the tag" in refused(tmp_path, attack)
    assert not target.exists()


def test_a_long_value_is_not_echoed_in_full(tmp_path: Path) -> None:
    long = "x" * 100_000
    for text in (f"tables: {{}}\nneighbours: {long}", f"unit: {long}\ntables: {{}}", f"tables:\n  ? {long}\n  : {{}}"):
        assert len(refused(tmp_path, text)) < 700


def test_a_file_of_mistakes_is_not_listed(tmp_path: Path) -> None:
    text = "".join(f"k{i}: 1\n" for i in range(21_000))
    assert "the file: 21001 mistakes; this is no spec." in refused(tmp_path, text)
