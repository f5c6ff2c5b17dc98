"""CSV files that are not written in the usual way: texts for NULL, other delimiters, packed files, and damage."""

import gzip
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from privbench.errors import DataError, PrivBenchError, SourceError, SpecError
from privbench.io import csv_padding
from privbench.io.base import Source
from privbench.io.given import source_of
from privbench.io.open import open_source


def _rows(source: Source, table: str = "t") -> list[dict[str, object]]:
    with source:
        return [row for batch in source.read(source.schema().table(table)) for row in batch.to_pylist()]


def _open(folder: Path, *null: str, delimiter: str | None = None) -> Source:
    return open_source(source_of(folder, null=null, delimiter=delimiter))


def _zip(path: Path, **members: str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(f"{name}.csv", text)


def test_texts_for_null_quoted_or_not(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('a,b\n1,NA\nNA,"NA"\n\\N,""\n,x\n')
    assert _rows(_open(tmp_path, "NA", "\\N")) == [
        {"a": 1, "b": None},
        {"a": None, "b": None},
        {"a": None, "b": ""},
        {"a": None, "b": "x"},
    ]


def test_without_the_option_they_are_text(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\nNA\n")
    assert _rows(open_source(tmp_path)) == [{"a": "1"}, {"a": "NA"}]


def test_a_value_that_looks_like_null_says_so(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a\n1\nNA\n")
    (tmp_path / "schema.sql").write_text("CREATE TABLE t (a INTEGER)")
    with pytest.raises(DataError, match=r"t\.a: 'NA' is not a value of type INTEGER.*say `--null NA`"):
        _rows(open_source(tmp_path))


@pytest.mark.parametrize(("written", "sign"), [(";", ";"), ("tab", "\t"), ("\\t", "\t"), ("\t", "\t"), ("|", "|")])
def test_delimiters(tmp_path: Path, written: str, sign: str) -> None:
    (tmp_path / "t.csv").write_text(f'a{sign}b\n1{sign}"x{sign}, y"\n')
    assert _rows(_open(tmp_path, delimiter=written)) == [{"a": 1, "b": f"x{sign}, y"}]


@pytest.mark.parametrize(
    ("text", "delimiter", "words"),
    [
        ("a;b;c\n1;2;3\n", None, r"t\.csv: its first line is one column, 'a;b;c'.*`--delimiter ';'`"),
        ("a\tb\n1\t2\n", None, "seems to be tab: say `--delimiter tab`"),
        ("a|b\n1|2\n", None, r"say `--delimiter '\|'`"),
        ("a,b\n1,2\n", ";", "say `--delimiter ','`"),
        (f"{'a' * 100};b\n", None, r"a\.\.\.'. Its delimiter"),
    ],
)
def test_a_wrong_delimiter_is_told(tmp_path: Path, text: str, delimiter: str | None, words: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(SourceError, match=words):
        _open(tmp_path, delimiter=delimiter).schema()


def test_a_quoted_name_may_hold_any_delimiter(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text('"a;b"\n1\n')
    assert _rows(open_source(tmp_path)) == [{"a;b": 1}]


@pytest.mark.parametrize("delimiter", [";;", "", '"', "\n", "é", "\\"])
def test_what_is_no_delimiter(tmp_path: Path, delimiter: str) -> None:
    with pytest.raises(SpecError, match=r"delimiter: .* is not one character, such as"):
        source_of(tmp_path, delimiter=delimiter)


def test_a_text_is_no_list_of_texts(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"null is the text 'NA', but a list.*null=\['NA'\]"):
        source_of(tmp_path, null="NA")


def test_options_are_for_csv_files(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"a": [1]}), tmp_path / "t.parquet")
    with pytest.raises(SourceError, match="has no CSV file, and `--null`, `--delimiter` and `--ragged` are for these"):
        _open(tmp_path, "NA")
    (tmp_path / "db").write_bytes(b"SQLite format 3\0")
    with pytest.raises(PrivBenchError):
        _open(tmp_path / "db", "NA")
    with pytest.raises(SourceError, match="nowhere: does not exist"):
        _open(tmp_path / "nowhere", "NA")
    with pytest.raises(SpecError, match="null, delimiter and ragged are for folders with CSV files"):
        source_of({"t": pa.table({"a": [1]})}, null=["NA"])


def test_a_very_long_header_is_not_cut(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(",".join(f"column{i}" for i in range(200_000)) + "\n")
    with pytest.raises(SourceError, match="its first line, the names of its columns, is longer than 1 MB"):
        open_source(tmp_path).schema()


# -- ragged rows -------------------------------------------------------------------------------------------------------


def _padded(folder: Path, text: str, *, delimiter: str | None = None) -> list[dict[str, object]]:
    (folder / "t.csv").write_bytes(text.encode())
    return _rows(open_source(source_of(folder, delimiter=delimiter, ragged="pad")))


def test_short_rows_are_padded_with_null(tmp_path: Path) -> None:
    made = _padded(tmp_path, 'a,b,c\n1\n2,x\n\n3,"",z\n4,"p, ""q""\nr"\n5,6" pipe,\n"7"')
    assert made == [
        {"a": 1, "b": None, "c": None},
        {"a": 2, "b": "x", "c": None},
        {"a": 3, "b": "", "c": "z"},
        {"a": 4, "b": 'p, "q"\nr', "c": None},
        {"a": 5, "b": '6" pipe', "c": None},
        {"a": 7, "b": None, "c": None},
    ]


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_rows_are_padded_whatever_ends_their_lines_and_wherever_blocks_are_cut(
    tmp_path: Path, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_padding, "_READ", 7)
    made = _padded(tmp_path, end.join(["a;b", "1", '"2"', "3;x", ""]), delimiter=";")
    assert [tuple(row.values()) for row in made] == [(1, None), (2, None), (3, "x")]


@pytest.mark.parametrize("ragged", ["error", "pad"])
def test_a_long_row_is_refused_and_named(tmp_path: Path, ragged: str) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1\n2,x,y\n" if ragged == "pad" else "a,b\n1,z\n2,x,y\n")
    with pytest.raises(DataError, match=r"Row #3: Expected 2 columns, got 3.*Correct that row"):
        _rows(open_source(source_of(tmp_path, ragged=ragged)))


def test_a_short_row_says_how_to_pad_it(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n1\n")
    with pytest.raises(DataError, match=r"Row #2.*say `--ragged pad`"):
        _rows(open_source(tmp_path))


@pytest.mark.parametrize(
    "text",
    [
        '1,"x\n2,y\n',
        '1,x"\n2,"y""z"\n',
        '"1"2,"a"b"\n',
        '1,"a\r\nb"\r\n"2","c,d"',
        '1,""""\n2,"",\n',
        "1,\n,\n",
        '1,"a"",\nb"\n',
    ],
)
def test_rows_that_are_not_short_read_as_without_padding(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_bytes(f"a,b\n{text}".encode())
    results = []
    for ragged in ("error", "pad"):
        try:
            results.append(_rows(open_source(source_of(tmp_path, ragged=ragged))))
        except DataError:
            results.append([])
    assert results[0] == results[1]


def test_what_else_ragged_rows_may_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="ragged"):
        source_of(tmp_path, ragged="cut")


# -- packed files ------------------------------------------------------------------------------------------------------


def test_packed_and_plain_files_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x\n1\n")
    (tmp_path / "B.CSV.GZ").write_bytes(
        gzip.compress(b"x\n2\n") + gzip.compress(b"3\n")
    )  # two parts, as cat makes them
    _zip(tmp_path / "c.csv.zip", c="x\n4\n")
    _zip(tmp_path / "d.zip", other="x\n5\n")
    with open_source(tmp_path) as source:
        assert {t.name for t in source.schema().tables} == {"a", "B", "c", "d"}
    assert [_rows(open_source(tmp_path), name) for name in "aBcd"] == [
        [{"x": 1}],
        [{"x": 2}, {"x": 3}],
        [{"x": 4}],
        [{"x": 5}],
    ]


def test_one_table_in_two_files(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"x\n1\n"))
    with pytest.raises(SourceError, match=r"t\.csv and t\.csv\.gz are both table t"):
        open_source(tmp_path)


@pytest.mark.parametrize("count", [0, 2])
def test_an_archive_of_none_or_several_files(tmp_path: Path, count: int) -> None:
    _zip(tmp_path / "t.zip", **{f"m{i}": "x\n1\n" for i in range(count)})
    with pytest.raises(SourceError, match=rf"t\.zip: holds {count} files.*unpack it"):
        open_source(tmp_path).schema()


@pytest.mark.parametrize(
    "damage",
    [lambda b: b[:-6], lambda b: b[: len(b) // 2], lambda b: b[:40] + b"\xff" * 40 + b[80:], lambda _: b"x\n1\n"],
)
@pytest.mark.parametrize("suffix", ["csv.gz", "csv.zip"])
def test_a_damaged_file_is_named(tmp_path: Path, suffix: str, damage: object) -> None:
    text = "x,y\n" + "".join(f"{i},{i * 7919 % 1000}\n" for i in range(5000))
    path = tmp_path / f"t.{suffix}"
    if suffix == "csv.gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        _zip(path, t=text)
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(SourceError, match=rf"t\.{suffix}: is damaged, or not packed as its name says"):
        open_source(tmp_path).schema()


def test_an_archive_with_a_password(tmp_path: Path) -> None:
    _zip(tmp_path / "t.zip", t="x\n1\n")
    content = bytearray((tmp_path / "t.zip").read_bytes())
    for at in (6, content.index(b"PK\1\2") + 8):  # the flag "encrypted" of the member and of the directory
        content[at] |= 1
    (tmp_path / "t.zip").write_bytes(content)
    with pytest.raises(SourceError, match=r"t\.zip: is damaged.*password"):
        open_source(tmp_path).schema()


@pytest.mark.parametrize("suffix", ["csv.gz", "csv.zip"])
def test_what_unpacks_to_very_much_takes_little_memory(tmp_path: Path, suffix: str) -> None:
    """200 MB without a line end, from 200 kB: the header is not there within a block, or a row is too long."""
    for name, start in (("header", b""), ("row", b"x\n")):
        folder = tmp_path / name
        folder.mkdir()
        big = start + b"0" * 200_000_000
        if suffix == "csv.gz":
            (folder / "t.csv.gz").write_bytes(gzip.compress(big, 1))
        else:
            with zipfile.ZipFile(folder / "t.csv.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
                archive.writestr("t.csv", big)
        del big
        tracemalloc.start()
        with pytest.raises(PrivBenchError, match=r"cannot be read as CSV|longer than 1 MB"):
            open_source(folder).schema()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 40_000_000
