"""Tables and columns of any name walk from draft to verdict: no name is ever taken apart, whatever it looks like."""

import json
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest

import privbench
from privbench.io.names import quote_sql

from .seeded import SeededEntropy

NAMES: dict[str, Sequence[str]] = {
    "words of receipts": (
        "rows of t by number of",
        "city #named after",
        "a x b",
        "weights of #rows",
        "frequent values of",
    ),
    "quotes": ('say "x"', "it's", '"', "`tick`", '"."'),
    "line breaks and blanks": ("two\nlines", "tab\there", " ", "\r\n", "x \x1b[31m"),
    "dots and commas": ("a.b", "b", "a", "a.b.c", "a,b"),
    "unicode": ("größe", "名前", "\u202eright", "e\u0301", "🙂"),
    "SQL": ("x; DROP TABLE person; --", "select", "1=1", "/* */", "NULL"),
    "names of features": ("#rank", "#size", "#owner #rank", "#part", "#rows visit.person"),
    "fields of receipts": ("kind", "table", "total", "node 3", "1/2"),
}
"""Names of two tables, of a key and of two columns, all of which stand in both tables."""


def made(path: Path, names: Sequence[str], *, people: int = 500) -> Path:
    """Entities with child rows that reference other entities; one column is a copy of the owner's."""
    entity, child, key, number, word = map(quote_sql, names)
    with duckdb.connect(str(path)) as base:
        base.execute(
            f"CREATE TABLE {entity} (id INTEGER PRIMARY KEY, {number} SMALLINT NOT NULL, {word} VARCHAR NOT NULL, "
            f"{key} INTEGER REFERENCES {entity} (id))"
        )
        base.execute(
            f"CREATE TABLE {child} (id INTEGER PRIMARY KEY, {key} INTEGER NOT NULL REFERENCES {entity} (id), "
            f"{entity} INTEGER REFERENCES {entity} (id), {number} SMALLINT NOT NULL, {word} VARCHAR NOT NULL)"
        )
        for odd in (0, 1):  # those that are referenced first
            base.execute(
                f"INSERT INTO {entity} SELECT i, i % 5, CASE WHEN i % 3 > 0 THEN 'most' ELSE 'some' END, "
                f"CASE WHEN i % 2 > 0 THEN i - 1 END FROM range({people}) t(i) WHERE i % 2 = {odd}"
            )
        base.execute(
            f"INSERT INTO {child} SELECT i, i % {people}, CASE WHEN i % 4 > 0 THEN i % 60 END, i % {people} % 5, "
            f"'only' FROM range({3 * people}) t(i)"
        )
    return path


def drafted(path: Path, names: Sequence[str], domains: str) -> privbench.Spec:
    entity, child, key, *_ = names
    return privbench.draft(path, unit=entity, domains=domains, owners={child: (key,)})


def walked(spec: privbench.Spec, folder: Path, **promise: object) -> privbench.Model:
    """Written, read, fitted, saved, loaded, generated and verified."""
    privbench.write_spec(spec, folder / "spec.yaml")
    assert privbench.read_spec(folder / "spec.yaml") == spec
    fitted = privbench.fit(folder / "spec.yaml", entropy=SeededEntropy(), **promise)  # type: ignore[arg-type]
    privbench.save_model(fitted, folder / "model")
    model = privbench.load_model(folder / "model")
    assert model.receipt == fitted.receipt == json.loads(json.dumps(model.receipt))
    privbench.generate(model, folder / "bundle", seed=1)
    for what in ("model", "bundle", "bundle/receipt.json"):
        verdict = privbench.verify(folder / what)
        assert verdict.problems == (), what
        assert verdict.status == ("conditional" if fitted.receipt["condition"] else "verified")
    return model


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    ("method", "delta"),
    [("tree", "0"), ("tree", "1e-9"), ("paper", "0"), ("independent", "0"), ("independent", "1e-9")],
)
@pytest.mark.parametrize("kind", NAMES)
def test_any_names_walk_from_draft_to_verdict(kind: str, method: str, delta: str, tmp_path: Path) -> None:
    names = NAMES[kind]
    spec = drafted(made(tmp_path / "source.duckdb", names), names, "data")
    model = walked(spec, tmp_path, epsilon=100, delta=delta, method=method)
    domains = {(d["table"], d["column"]) for d in model.receipt["public"]["domains"]}
    assert {(names[0], names[3]), (names[1], names[4])} <= domains
    tables = {n["query"]["table"] for n in model.receipt["ledger"]["nodes"] if n["kind"] == "event"}
    assert tables == {names[0], names[1]}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", NAMES)
def test_domains_of_any_names_are_found_and_verified(kind: str, tmp_path: Path) -> None:
    names = NAMES[kind]
    spec = drafted(made(tmp_path / "source.duckdb", names, people=2000), names, "private")
    model = walked(spec, tmp_path, epsilon=40, delta="1e-9", method="independent")
    private = {(d["table"], d["column"]) for d in model.receipt["public"]["domains"] if d["origin"] == "private"}
    assert {(names[0], names[3]), (names[0], names[4])} <= private


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", NAMES)
def test_columns_of_any_names_are_found_to_be_copies(kind: str, tmp_path: Path) -> None:
    names = NAMES[kind]
    spec = drafted(made(tmp_path / "source.duckdb", names, people=1500), names, "data")
    model = walked(spec, tmp_path, epsilon=400, method="tree")
    found = [(d["table"], d["column"], d["equals"]) for d in model.receipt["computed"]]
    assert (names[1], names[3], {"owner": names[3]}) in found


def test_a_renamed_column_is_another_one(tmp_path: Path) -> None:
    """Names that look alike in a sentence are told apart: a receipt of one does not fit a model of the other."""
    names = NAMES["dots and commas"]
    model = walked(drafted(made(tmp_path / "s.duckdb", names), names, "data"), tmp_path, epsilon=100, method="tree")
    text = json.dumps(model.receipt["ledger"]).replace('"column": "a.b.c"', '"column": "a.b"')
    forged = privbench.Model(
        spec=model.spec,
        tables=model.tables,
        public=model.public,
        entity_keys=model.entity_keys,
        receipt={**model.receipt, "ledger": json.loads(text)},
    )
    assert forged.receipt != model.receipt
    privbench.save_model(forged, tmp_path / "forged")
    assert privbench.verify(tmp_path / "forged").status == "failed"
