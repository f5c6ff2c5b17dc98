"""Nothing half-written is ever left, and what stood there before is only replaced at the end."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from privbench.errors import TargetError
from privbench.io import files, staging
from privbench.io.base import Format
from privbench.io.ddl import parse_ddl
from privbench.io.sinks import open_sink
from privbench.io.staging import private_folder, remove_leftovers, staged

SCHEMA = parse_ddl("CREATE TABLE t (a BIGINT)", where="test")
BATCH = pa.record_batch([pa.array([1])], names=["a"])


def _names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def _bundle(folder: Path) -> None:
    (folder / "data").mkdir(parents=True)
    for name in ("schema.sql", "receipt.json", "SHA256SUMS"):
        (folder / name).write_text("old")


def test_a_file_and_a_folder_appear_only_at_the_end(tmp_path: Path) -> None:
    with staged(tmp_path / "file", force=False) as temp:
        temp.write_text("x")
        assert not (tmp_path / "file").exists()
        assert temp.parent == tmp_path
        assert temp.name.startswith(".")
    with staged(tmp_path / "folder", force=False) as temp:
        (temp / "data").mkdir(parents=True)
    assert (tmp_path / "file").read_text() == "x"
    assert _names(tmp_path) == ["file", "folder"]


@pytest.mark.parametrize("error", [ValueError("x"), KeyboardInterrupt(), SystemExit(1)])
@pytest.mark.parametrize("to", list(Format), ids=lambda f: f.value)
def test_any_exception_removes_everything(error: BaseException, to: Format, tmp_path: Path) -> None:
    def run() -> None:
        with staged(tmp_path / "out", force=False) as temp, open_sink(temp / "data", schema=SCHEMA, format=to) as sink:
            sink.write("t", BATCH)
            raise error

    with pytest.raises(type(error)):
        run()
    assert _names(tmp_path) == []


def test_a_full_disk_is_a_target_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write_batch(self, _: pa.RecordBatch) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "_open_writer", lambda *_, **__: Full())

    def run(*, write: bool) -> None:
        with staged(tmp_path / "out", force=False) as temp, open_sink(temp, schema=SCHEMA, format=Format.CSV) as sink:
            if write:
                sink.write("t", BATCH)

    for write in (True, False):
        with pytest.raises(TargetError, match=r"t\.csv: the disk is full"):
            run(write=write)
    assert _names(tmp_path) == []


@pytest.mark.parametrize(
    ("number", "words"), [(errno.ENOSPC, "disk is full"), (errno.EACCES, "no permission"), (errno.EIO, "could not")]
)
def test_an_os_error_in_the_block_is_a_target_error(number: int, words: str, tmp_path: Path) -> None:
    def run() -> None:
        with staged(tmp_path / "out", force=False) as temp:
            temp.write_text("half")
            raise OSError(number, "reason")

    with pytest.raises(TargetError, match=words):
        run()
    assert _names(tmp_path) == []


def test_an_existing_target_is_refused_without_force(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("old")
    with pytest.raises(TargetError, match="--force"), staged(tmp_path / "out", force=False):
        pytest.fail("the block must not run")
    assert (tmp_path / "out").read_text() == "old"


def test_force_replaces_only_at_the_end(tmp_path: Path) -> None:
    _bundle(tmp_path / "out")

    def fail() -> None:
        with staged(tmp_path / "out", force=True) as temp:
            temp.mkdir()
            raise ValueError("stop")

    with pytest.raises(ValueError, match="stop"):
        fail()
    assert (tmp_path / "out" / "schema.sql").read_text() == "old"
    with staged(tmp_path / "out", force=True) as temp:
        temp.mkdir()
        (temp / "schema.sql").write_text("new")
        assert (tmp_path / "out" / "schema.sql").read_text() == "old"
    assert (tmp_path / "out" / "schema.sql").read_text() == "new"
    assert _names(tmp_path) == ["out"]


def test_force_never_replaces_a_folder_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years")
    with pytest.raises(TargetError, match="not ours"), staged(tmp_path / "home", force=True):
        pytest.fail("the block must not run")
    assert (tmp_path / "home" / "thesis.tex").read_text() == "years"


def test_what_stood_there_comes_back_if_the_rename_fails(tmp_path: Path) -> None:
    _bundle(tmp_path / "out")
    with pytest.raises(TargetError), staged(tmp_path / "out", force=True):
        pass  # nothing was written, so there is nothing to rename
    assert (tmp_path / "out" / "schema.sql").read_text() == "old"
    assert _names(tmp_path) == ["out"]


def test_a_target_that_appears_meanwhile_is_refused(tmp_path: Path) -> None:
    def race() -> None:
        with staged(tmp_path / "out", force=False) as temp:
            temp.write_text("ours")
            (tmp_path / "out").write_text("theirs")

    with pytest.raises(TargetError, match="already exists"):
        race()
    assert (tmp_path / "out").read_text() == "theirs"
    assert _names(tmp_path) == ["out"]


def test_a_missing_parent_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(TargetError, match="no-such-folder does not exist"),
        staged(tmp_path / "no-such-folder" / "x", force=False),
    ):
        pytest.fail("the block must not run")


def test_data_in_the_layout_of_a_bundle_is_not_ours(tmp_path: Path) -> None:
    """A folder of real data may look like a bundle, or hold a file of a common name: it is never replaced."""
    real = tmp_path / "real"
    (real / "data").mkdir(parents=True)
    (real / "data" / "t.parquet").write_text("precious")
    (real / "schema.sql").write_text("")
    other = tmp_path / "other"
    other.mkdir()
    (other / "result.json").write_text("{}")
    (other / "thesis.txt").write_text("precious")
    for folder in (real, other):
        with pytest.raises(TargetError, match="not ours"), staged(folder, force=True) as temp:
            temp.mkdir()
    assert (real / "data" / "t.parquet").read_text() == (other / "thesis.txt").read_text() == "precious"


def test_a_folder_is_not_replaced_by_a_file(tmp_path: Path) -> None:
    old = tmp_path / "report"
    old.mkdir()
    (old / "result.json").write_text("{}")
    with pytest.raises(TargetError, match="is a folder"), staged(old, force=True) as temp:
        temp.write_text("select 1")
    assert (old / "result.json").read_text() == "{}"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for temporary files of this test alone."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


PRIVATE = """
from privbench.io.staging import private_folder
with private_folder() as folder:
    (folder / "rows").write_text("private")
    print(folder, flush=True)
    input()
"""
STAGED = """
import sys
from pathlib import Path
from privbench.io import staging
if sys.argv[2] == "moved":
    staging.remove = lambda path: (print(path, flush=True), input())
with staging.staged(Path(sys.argv[1]), force=True) as temp:
    (temp / "data").mkdir(parents=True)
    if sys.argv[2] == "writing":
        print(temp, flush=True)
        input()
    if sys.argv[2] == "renaming":
        rename = Path.rename
        def stop(path, to):
            rename(path, to)
            print(to, flush=True)
            input()
        Path.rename = stop
"""


def _started(code: str, *arguments: object, temporary: Path) -> tuple["subprocess.Popen[str]", Path]:
    """Start a program that prints a path and then waits; returns it with the path."""
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(temporary)},
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def _kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    assert process.wait(timeout=60) == -signal.SIGKILL
    for stream in (process.stdin, process.stdout):
        assert stream is not None
        stream.close()


def test_a_private_folder_is_for_this_user_alone_and_goes(temporary: Path) -> None:
    with private_folder() as folder, private_folder() as other:
        assert folder != other
        assert folder.parent.parent == temporary
        assert [p.stat().st_mode & 0o777 for p in (folder, folder.parent)] == [0o700, 0o700]
        assert _names(folder) == []
    assert _names(temporary) == []


def test_the_next_run_removes_the_private_folder_of_a_killed_one_and_no_other(temporary: Path) -> None:
    killed, left = _started(PRIVATE, temporary=temporary)
    living, kept = _started(PRIVATE, temporary=temporary)
    _kill(killed)
    assert (left / "rows").read_text() == "private"
    remove_leftovers()
    assert not left.exists()
    assert (kept / "rows").read_text() == "private"
    _kill(living)
    with private_folder() as folder:
        assert _names(folder.parent) == sorted([folder.name, f"{folder.name}.lock"])
    assert _names(temporary) == []


@pytest.mark.parametrize(("when", "kept"), [("writing", True), ("renaming", True), ("moved", False)])
def test_the_next_run_removes_what_a_killed_one_had_staged(
    when: str, kept: bool, temporary: Path, tmp_path: Path
) -> None:
    """Killed while it writes, between the two renames, or before it removes the old one: one whole bundle is there."""
    _bundle(tmp_path / "out")
    process, path = _started(STAGED, tmp_path / "out", when, temporary=temporary)
    _kill(process)
    assert path.exists()
    assert path.name.startswith(".out.")
    remove_leftovers()
    assert _names(tmp_path) == ["out", "temporary"]
    assert (tmp_path / "out" / "schema.sql").exists() is kept
    assert _names(temporary) == []


@pytest.mark.parametrize("what", ["link", "file", "another user's folder"])
def test_a_folder_of_another_user_is_refused(
    what: str, temporary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = staging._parent()
    if what == "link":
        (tmp_path / "elsewhere").mkdir()
        parent.symlink_to(tmp_path / "elsewhere")
    elif what == "file":
        parent.write_text("x")
    else:
        parent.mkdir()
        monkeypatch.setattr(staging, "_parent", lambda: parent)
        monkeypatch.setattr(os, "getuid", lambda: parent.stat().st_uid + 1)
    for call in (remove_leftovers, private_folder().__enter__, staged(tmp_path / "out", force=False).__enter__):
        with pytest.raises(TargetError, match="TMPDIR"):
            call()
    assert not (tmp_path / "out").exists()
