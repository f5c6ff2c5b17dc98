"""Model files that are damaged or made by a stranger: refused with a message, never run, never trusted."""

import io
import json
import resource
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privbench.model import file as model_file

from .conftest import DDL, DRAFT, Refused, Run


def test_a_file_that_is_no_model(run: Run, refused: Refused, tmp_path: Path) -> None:
    assert "there is no such file" in refused("generate", tmp_path / "no", "-o", tmp_path / "b")
    (tmp_path / "m").write_text("hello")
    assert "is not a model file" in refused("generate", tmp_path / "m", "-o", tmp_path / "b")
    assert "is not a model file" in refused("verify", tmp_path / "m")
    (tmp_path / "r.json").write_text("[" * 100_000)
    verdict = run("verify", tmp_path / "r.json")
    assert (verdict.code, "problem: r.json: cannot be read as JSON" in verdict.out) == (1, True)


def test_something_else_than_a_model(spec: Path, bundle: Path, shop: Path, refused: Refused, tmp_path: Path) -> None:
    for path, kind in (
        (spec, "a spec"),
        (bundle, "a bundle"),
        (shop, "a folder"),
        (shop / "person.csv", "not a model"),
    ):
        for command in (("show", path), ("generate", path, "-o", tmp_path / "b")):
            message = refused(*command)
            assert f"{path}: is {kind}" in message
            assert "Fit again" not in message
    assert "Run `privbench fit` on this spec first." in refused("verify", spec)
    assert "has no receipt.json" in refused("verify", shop)


def test_something_else_than_a_spec(model: Path, bundle: Path, shop: Path, refused: Refused, tmp_path: Path) -> None:
    for path, kind in ((model, "a model file"), (bundle, "a bundle"), (shop, "a folder")):
        message = refused("fit", path, "--epsilon", "3", "-o", tmp_path / "m")
        assert f"{path}: is {kind}. A spec is wanted" in message
    assert "a JSON file. A spec is wanted" in refused(
        "fit", bundle / "receipt.json", "--epsilon", "3", "-o", tmp_path / "m"
    )


def _rewritten(model: Path, change: Callable[[dict[str, bytes]], None]) -> Path:
    with zipfile.ZipFile(model) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    change(entries)
    out = model.with_name("changed.model")
    with zipfile.ZipFile(out, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return out


def _with_header(change: Callable[[dict[str, object]], None]) -> Callable[[dict[str, bytes]], None]:
    def rewrite(entries: dict[str, bytes]) -> None:
        header = json.loads(entries["model.json"])
        change(header)
        entries["model.json"] = json.dumps(header).encode()

    return rewrite


def _set(*path: object, to: object) -> Callable[[dict[str, bytes]], None]:
    def change(header: object) -> None:
        for step in path[:-1]:
            header = header[step]  # type: ignore[index]
        header[path[-1]] = to  # type: ignore[index]

    return _with_header(change)


def _pickled(entries: dict[str, bytes]) -> None:
    name = next(n for n in entries if n.endswith(".npy"))
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    entries[name] = buffer.getvalue()


def _huge_array(entries: dict[str, bytes]) -> None:
    name = next(n for n in entries if n.endswith(".npy"))
    entries[name] = entries[name].replace(b"'shape': (", b"'shape': (9999999,")


def _cut_array(entries: dict[str, bytes]) -> None:
    name = next(n for n in entries if n.endswith(".npy"))
    entries[name] = entries[name][:-3]


def _no_array(entries: dict[str, bytes]) -> None:
    del entries[next(n for n in entries if n.endswith(".npy"))]


def _deep(entries: dict[str, bytes]) -> None:
    entries["model.json"] = b"[" * 200_000


SPOILT: dict[str, Callable[[dict[str, bytes]], None]] = {
    "pickle": _pickled,
    "huge array": _huge_array,
    "cut array": _cut_array,
    "no array": _no_array,
    "deep header": _deep,
    "no header": lambda entries: entries.pop("model.json") and None,
    "newer version": _set("version", to=99),
    "no version": _set("version", to="1"),
    "other format": _set("format", to="zip"),
    "no spec": _set("spec", to={}),
    "spec without unit": _set("spec", "unit", to="visit"),
    "tables gone": _set("tables", to={}),
    "tables a list": _set("tables", to=[]),
    "rows infinite": _set("tables", "visit", "rows", to=1e300),
    "rows NaN": _set("tables", "visit", "rows", to=float("nan")),
    "size error negative": _set("tables", "visit", "rows_error", to=-0.1),
    "size error infinite": _set("tables", "visit", "rows_error", to=float("inf")),
    "size error NaN": _set("tables", "visit", "rows_error", to=float("nan")),
    "size error a word": _set("tables", "visit", "rows_error", to="much"),
    "size range negative": _set("tables", "visit", "rows_low", to=-1.0),
    "size range NaN": _set("tables", "visit", "rows_high", to=float("nan")),
    "size above its range": _set("tables", "visit", "rows_high", to=0.0),
    "half a size range": _set("tables", "visit", "rows_low", to=None),
    "no links": _set("tables", "visit", "links", to={}),
    "array outside": _set("tables", "visit", "links", "visit.person_id", "array", to="../../etc/passwd"),
    "no receipt": _set("receipt", to={}),
    "receipt of another": _set("receipt", "unit", "tables", to={}),
    "promise lowered": _set("receipt", "epsilon", to="1/100"),
    "public table": _set("public", to=["person"]),
    "entity keys": _set("entity_keys", to=True),
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_model_from_a_stranger(how: str, model: Path, refused: Refused, tmp_path: Path) -> None:
    changed = _rewritten(model, SPOILT[how])
    for command in (("generate", changed, "-o", tmp_path / "b"), ("show", changed)):
        message = refused(*command)
        assert "changed.model" in message
        assert "is damaged" in message


def test_odd_names_in_the_zip_are_refused(model: Path, refused: Refused, tmp_path: Path) -> None:
    changed = _rewritten(model, lambda entries: entries.update({"../evil": b"x", "/etc/evil": b"x"}))
    assert "which no model does" in refused("generate", changed, "-o", tmp_path / "b")
    assert not list(tmp_path.parent.glob("evil"))


def test_a_damaged_zip(model: Path, run: Run, refused: Refused, tmp_path: Path) -> None:
    """A wrong byte is found, or is one that says nothing (a date in the directory of the zip)."""
    sound = run("show", model).out
    content = bytearray(model.read_bytes())
    found = 0
    for at in range(0, len(content), max(1, len(content) // 60)):
        damaged = content.copy()
        damaged[at] ^= 0xFF
        (tmp_path / "damaged").write_bytes(damaged)
        result = run("show", tmp_path / "damaged")
        assert (result.code == 2 and "damaged" in result.err) or result.out == sound
        found += result.code == 2
    assert found > 30
    (tmp_path / "damaged").write_bytes(content[: len(content) // 2])
    assert "damaged" in refused("show", tmp_path / "damaged")


def test_a_file_that_declares_too_much(model: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "MAX_HEADER", 2**10)
    assert "its header is larger than" in refused("show", model)
    monkeypatch.setattr(model_file, "MAX_CONTENT", 2**10)
    assert "it unpacks to" in refused("show", model)


@pytest.fixture
def with_public(shop: Path, run: Run, tmp_path: Path) -> Path:
    """A model with a public table of an id and a text."""
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), "name": ["a", "b"]}), shop / "kind.parquet")
    (shop / "schema.sql").write_text(DDL + "CREATE TABLE kind (id INTEGER PRIMARY KEY, name VARCHAR);")
    assert run("draft", shop, *DRAFT, "--public", "kind", "-o", tmp_path / "s").code == 0
    assert run("fit", tmp_path / "s", "--epsilon", "3", "-o", tmp_path / "m").code == 0
    return tmp_path / "m"


def _parquet(ids: pa.Array, names: pa.Array, **how: object) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"id": ids, "name": names}), buffer, **{"compression": "none", **how})
    return buffer.getvalue()


def _texts(text: str, rows: int) -> bytes:
    """Parquet in which one text stands once and is used in every row."""
    names = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([text]))
    buffer = io.BytesIO()
    schema = pa.schema([("id", pa.int32()), ("name", pa.string())])
    table = pa.table({"id": pa.array(np.arange(rows), pa.int32()), "name": names})
    pq.write_table(table, buffer, compression="none", store_schema=False)
    assert pq.read_schema(io.BytesIO(buffer.getvalue())).equals(schema)
    return buffer.getvalue()


def _claiming(content: bytes, rows: int, claimed: int) -> bytes:
    """Parquet whose metadata say that it has another number of rows; both take as many bytes to write."""

    def variable(number: int) -> bytes:
        """A number as the metadata write it, in groups of seven bits."""
        number, out = number << 1, bytearray()
        while number >= 128:
            out.append(number & 127 | 128)
            number >>= 7
        return bytes([*out, number])

    assert len(variable(rows)) == len(variable(claimed))
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    assert variable(rows) in content[start:]
    return content[:start] + content[start:].replace(variable(rows), variable(claimed))


ONES = np.zeros(2**22, np.int32)
ONE_PAGE = {"row_group_size": 2**24, "data_page_size": 2**30, "write_batch_size": 2**24, "max_rows_per_page": 2**30}
PARQUET: dict[str, Callable[[], bytes]] = {
    "other columns": lambda: _parquet(pa.array([1], pa.int32()), pa.array([2])),
    "other rows": lambda: _parquet(pa.array([1, 2, 3], pa.int32()), pa.array(["a", "b", "c"])),
    "compressed": lambda: _parquet(pa.array([1, 2], pa.int32()), pa.array(["a", "b"]), compression="zstd"),
    "one value so often": lambda: _parquet(pa.array(ONES), pa.nulls(len(ONES), pa.string()), **ONE_PAGE),
    "claims": lambda: _claiming(_parquet(pa.array(ONES[:70_001]), pa.nulls(70_001, pa.string())), 70_001, 1_000_003),
    "one text so often": lambda: _texts("x" * 2**20, 5000),
}


@pytest.mark.parametrize("how", PARQUET)
def test_parquet_of_a_stranger_in_a_model(how: str, with_public: Path, refused: Refused, tmp_path: Path) -> None:
    content = PARQUET[how]()
    assert len(content) < 2**22

    def change(entries: dict[str, bytes]) -> None:
        entries["public/0.parquet"] = content
        if how != "other rows":
            _set("public", "kind", to=pq.read_metadata(io.BytesIO(content)).num_rows)(entries)

    changed = _rewritten(with_public, change)
    before = _peak()
    message = refused("generate", changed, "-o", tmp_path / "b")
    assert "is damaged, or not a model file: kind: " in message
    assert _peak() - before < 2**26


def _peak() -> int:
    """The most memory that this process has taken, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def test_an_entry_that_unpacks_to_a_thousand_times_its_size(
    with_public: Path, refused: Refused, tmp_path: Path
) -> None:
    changed = tmp_path / "changed.model"
    with zipfile.ZipFile(with_public) as old, zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.namelist():
            new.writestr(entry, old.read(entry))
        with new.open("bomb", "w", force_zip64=True) as stream:
            for _ in range(2**6):
                stream.write(bytes(2**22))
    content = changed.read_bytes()
    assert len(content) < 2**20
    before, began = _peak(), time.monotonic()
    assert "it unpacks to" in refused("show", changed)
    assert _peak() - before < 2**24
    assert time.monotonic() - began < 5


def test_a_model_of_the_version_before(model: Path, refused: Refused) -> None:
    message = refused("show", _rewritten(model, _set("version", to=1)))
    assert "is a model file of version 1" in message
    assert "privbench fit SPEC --epsilon E -o MODEL" in message
    assert "damaged" not in message
