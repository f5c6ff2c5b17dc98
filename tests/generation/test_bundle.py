"""What stands beside the data: a manifest that ties the pieces, and names that can add neither SQL nor markup."""

import hashlib
import json
from pathlib import Path

import duckdb
import pytest

import privbench
from privbench.io.files import read_schema
from privbench.io.names import file_stems, markdown, sql_comment, terminal
from privbench.model.file import load_model, model_digest

EVIL = 'a"\n); CREATE TABLE injected (x INT); -- [x](http://y)\r\n\n# Verified | <script>`*_'
BOSS = "boss\nCREATE TABLE injected (x INT);\n--"


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of two tables whose names are made to break out; one key of theirs DuckDB cannot hold."""
    folder = tmp_path_factory.mktemp("evil")
    source = folder / "source"
    source.mkdir()
    names = [EVIL, EVIL + " kind"]
    stems = file_stems(names)
    quoted = [f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names]
    (source / "schema.sql").write_bytes(
        f'CREATE TABLE {quoted[0]} (id INTEGER PRIMARY KEY, "{BOSS}" INTEGER REFERENCES {quoted[0]} (id), '
        '"j|\n" INT4MULTIRANGE);'
        f"CREATE TABLE {quoted[1]} (id INTEGER PRIMARY KEY, who INTEGER REFERENCES {quoted[0]} (id));".encode()
    )
    rows = "".join(f"{i},{i // 2 or ''},x\n" for i in range(1, 50))
    (source / f"{stems[names[0]]}.csv").write_bytes(f'id,"{BOSS}","j|\n"\n{rows}'.encode())
    (source / f"{stems[names[1]]}.csv").write_text("id,who\n" + "".join(f"{i},{i}\n" for i in range(1, 20)))
    privbench.synth(source, folder / "bundle", unit=EVIL, epsilon=5, domains="data", public=[names[1]], scale=2, seed=7)
    return folder / "bundle"


@pytest.mark.parametrize("script", ["schema.sql", "schema.duckdb.sql"])
def test_no_name_adds_sql(script: str, bundle: Path) -> None:
    text = (bundle / script).read_bytes().decode()
    assert {t.name for t in read_schema(bundle / script).tables} == {EVIL, EVIL + " kind"}
    if script == "schema.sql":
        return  # DuckDB cannot hold every key of it
    assert "-- left out: " in text
    with duckdb.connect() as base:
        base.execute(text)
        assert {name for (name,) in base.execute("SELECT table_name FROM duckdb_tables()").fetchall()} == {
            EVIL,
            EVIL + " kind",
        }


def test_no_name_adds_markup(bundle: Path) -> None:
    text = (bundle / "README.md").read_bytes().decode()
    lines = text.split("\n")
    assert [line for line in lines if line.startswith("#")] == [
        "# A synthetic database made by PrivBench",
        "## What is promised",
        "## Load it",
        "## Tables (scale factor 2, seed 7)",
        "## Columns that are not as in the source",
        "## Check it",
    ]
    assert "\r" not in text
    assert "<script>" not in text.replace("\\<script\\>", "")
    assert all(line.replace("\\|", "").count("|") == 5 for line in lines if line.startswith("|"))
    assert "[x]" not in text


def test_public_keys_that_are_drawn_again_are_named(bundle: Path, tmp_path: Path) -> None:
    assert "but for these keys, which are drawn again" in (bundle / "README.md").read_text()
    privbench.generate(f"{bundle}.model", tmp_path / "b", scale=1, seed=1)
    assert "drawn again" not in (tmp_path / "b" / "README.md").read_text()


def test_the_manifest(bundle: Path) -> None:
    manifest = json.loads((bundle / "manifest.json").read_text())
    stem = file_stems([EVIL])[EVIL]
    assert manifest["tables"][EVIL] == {
        "role": "entity",
        "rows": 98,
        "columns": [
            {"name": "id", "type": "INTEGER", "nullable": False},
            {"name": BOSS, "type": "INTEGER", "nullable": True},
        ],
        "files": [f"data/{stem}.parquet"],
    }
    assert manifest["tables"][EVIL + " kind"]["role"] == "public"
    assert {k: manifest[k] for k in ("version", "software", "scale", "seed", "format")} == {
        "version": 1,
        "software": f"privbench {privbench.__version__}",
        "scale": "2",
        "seed": 7,
        "format": "parquet",
    }
    assert manifest["receipt"] == hashlib.sha256((bundle / "receipt.json").read_bytes()).hexdigest()
    assert manifest["model"] == model_digest(load_model(f"{bundle}.model"))
    assert "  manifest.json\n" in (bundle / "SHA256SUMS").read_text()


@pytest.mark.parametrize(("scale", "text"), [(1, "1"), (1.0, "1"), (0.01, "0.01"), (1000, "1000"), (2.5, "2.5")])
def test_the_scale_is_decimal_text(scale: float, text: str, bundle: Path, tmp_path: Path) -> None:
    privbench.generate(f"{bundle}.model", tmp_path / "b", scale=scale, seed=1, format="sqlite")
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text())
    assert (manifest["scale"], manifest["tables"][EVIL]["files"]) == (text, ["data/database.sqlite"])
    assert "Parquet" not in (tmp_path / "b" / "README.md").read_text()


def test_each_medium() -> None:
    assert terminal("a\n\x1b[2J\u202e\u2028[red]") == "a\\n\\x1b[2J\\u202e\\u2028[red]"
    assert sql_comment("a\r\nb") == "-- a\\r\\nb"
    assert markdown("snake_case _x_ 1.5") == "snake_case \\_x\\_ 1.5"
    assert markdown("1. x") == "1\\. x"
    assert markdown("https://a www.b") == "https\\://a www\\.b"
