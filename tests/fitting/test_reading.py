"""Reading: what is too large to be held as it was read is refused by name, before anything is spent."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from privbench.errors import DataError
from privbench.fitting.draft import draft
from privbench.fitting.reading import read_database
from privbench.io.files import FolderSource
from privbench.io.open import open_source
from privbench.methods.method import silent


def test_more_text_than_fits_in_one_piece_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "note.csv").write_text("words\nx\n")
    (tmp_path / "schema.sql").write_text("CREATE TABLE note (words VARCHAR)")
    long = pa.record_batch({"words": pa.array(["x" * (1 << 20)])})

    def read(*_: object) -> Iterator[pa.RecordBatch]:
        yield from [long] * 2100

    monkeypatch.setattr(FolderSource, "read", read)
    monkeypatch.setattr(FolderSource, "rows", lambda *_: 2100)
    protection = draft(tmp_path).protection()
    with open_source(tmp_path) as source, pytest.raises(DataError, match=r"note\.words: holds more than 2 GiB"):
        read_database(source, protection, {"note": {}}, orphans_as_null=False, progress=silent)


def test_progress_tells_percent_and_no_number_of_rows(tmp_path: Path) -> None:
    (tmp_path / "note.csv").write_text("words\n" + "x\n" * 1234)
    (tmp_path / "schema.sql").write_text("CREATE TABLE note (words VARCHAR)")
    told: list[tuple[str, int, int]] = []
    with open_source(tmp_path) as source:
        protection = draft(tmp_path).protection()

        read_database(source, protection, {"note": {}}, orphans_as_null=False, progress=lambda *step: told.append(step))
    assert {(done <= 100, whole) for what, done, whole in told if what.startswith("reading ")} == {(True, 100)}
