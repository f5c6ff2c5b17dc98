"""The Python API: every example of docs/api.md runs, every function has one, and names are found."""

import doctest
import pydoc
from pathlib import Path

import pytest

import privbench

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
FUNCTIONS = [name for name in privbench.__all__ if name.islower()]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The database of the examples, in the working directory."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "schema.sql").write_text(
        "CREATE TABLE customer (id INTEGER PRIMARY KEY, city VARCHAR NOT NULL, born SMALLINT NOT NULL);"
        "CREATE TABLE product (sku INTEGER PRIMARY KEY, price SMALLINT);"
        "CREATE TABLE purchase (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customer (id),"
        " sku INTEGER NOT NULL REFERENCES product (sku), paid SMALLINT NOT NULL);"
        "CREATE TABLE log (line VARCHAR);"
    )
    customers = "".join(f"{i},{('Bern', 'Rome', 'Oslo')[i % 3]},{1950 + i % 60}\n" for i in range(200))
    purchases = "".join(f"{i},{i % 200 if i % 9 else ''},{i % 5},{i % 40}\n" for i in range(400))
    (folder / "customer.csv").write_text("id,city,born\n" + customers)
    (folder / "product.csv").write_text("sku,price\n" + "".join(f"{i},{i * 10}\n" for i in range(5)))
    (folder / "purchase.csv").write_text("id,customer_id,sku,paid\n" + purchases)
    (folder / "log.csv").write_text("line\nhello\n")
    return folder


def test_the_examples_run(shop: Path) -> None:
    text = PAGE.read_text("utf-8")
    test = doctest.DocTestParser().get_doctest(text.replace("```", ""), {}, "api.md", str(PAGE), 0)
    report: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert result.failed == 0, "".join(report)
    assert result.attempted > 15


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_an_example(name: str) -> None:
    assert f"privbench.{name}(" in PAGE.read_text("utf-8")
    words = getattr(privbench, name).__doc__
    assert "Example::" in words
    assert f"privbench.{name}(" in words


def test_names_are_found() -> None:
    assert set(privbench.__all__) <= set(dir(privbench))
    assert all(f"`{name}`" in PAGE.read_text("utf-8") for name in privbench.__all__ if not name.islower())
    assert "import_module" not in dir(privbench)
    assert "Learn a model" in pydoc.render_doc(privbench)
    with pytest.raises(AttributeError, match="no attribute 'fitt'"):
        _ = privbench.fitt


@pytest.mark.parametrize("word", ["public", "drop"])
def test_a_text_is_no_list_of_tables(word: str, shop: Path) -> None:
    choices: dict[str, str] = {word: "product"}
    with pytest.raises(privbench.PrivBenchError, match=rf"{word} is the text 'product', but a list"):
        privbench.draft(shop, unit="customer", domains="data", **choices)  # type: ignore[arg-type]


def test_a_format_that_is_not_there(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(privbench.PrivBenchError, match=r"format 'sqlight'.*Did you mean sqlite"):
        privbench.synth(shop, tmp_path / "b", unit="customer", epsilon=1, domains="data", format="sqlight")


def test_a_source_beside_its_spec(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = privbench.draft("shop", unit="customer", domains="data", public=["product"], drop=["log"])
    privbench.write_spec(spec, "spec.yaml")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert privbench.fit("../spec.yaml", epsilon=3).tables
    with pytest.raises(privbench.PrivBenchError, match="shop: does not exist"):
        privbench.fit(spec, epsilon=3)
    (elsewhere / "shop").mkdir()
    with pytest.raises(privbench.PrivBenchError, match=r"no \.parquet or \.csv file"):
        privbench.fit("../spec.yaml", epsilon=3)


def test_choices_by_the_words_of_the_command_line(shop: Path) -> None:
    words = {"unit": "customer", "domains": "data", "public": ["product"], "drop": ["log"]}
    spec = privbench.draft(shop, neighbours="add-remove", orphans="null", **words)  # type: ignore[arg-type]
    assert (spec.neighbours, spec.orphans) == (privbench.Neighbours.ADD_REMOVE, privbench.Orphans.NULL)
    assert privbench.draft(shop, sizes="public", **words).sizes is privbench.Sizes.PUBLIC  # type: ignore[arg-type]
    with pytest.raises(privbench.PrivBenchError, match=r"`sizes: public` publishes the number of entities"):
        privbench.draft(shop, sizes="public", neighbours="add-remove", **words)  # type: ignore[arg-type]
    with pytest.raises(privbench.PrivBenchError, match=r"orphans 'nul'.*Did you mean null\?"):
        privbench.draft(shop, orphans="nul", **words)  # type: ignore[arg-type]
