"""Siblings from data to bundle: children of a family stay alike, keys stay valid, a forged model is refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privbench.errors import ModelError
from privbench.estimation.estimate import cardinality
from privbench.estimation.sample import sampled
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation import blocks
from privbench.generation.generate import generate
from privbench.model.check import check_model
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.verify import verify
from privbench.schema.spec import Spec
from privbench.spn.clique import CliqueTree, Given
from privbench.spn.feature_names import first_column
from privbench.spn.nodes import Product, given_columns, walk

from ..forging import write_shop
from ..seeded import SeededEntropy

DDL = """CREATE TABLE family (id INTEGER PRIMARY KEY, rooms SMALLINT);
CREATE TABLE child (family_id INTEGER REFERENCES family (id), number SMALLINT, eyes VARCHAR,
  UNIQUE (family_id, number));
CREATE TABLE toy (id INTEGER PRIMARY KEY, family_id INTEGER REFERENCES family (id), hue SMALLINT);"""
FAMILIES = 1500
EYES = ("blue", "brown", "green", "grey")
SHARES = (0.4, 0.3, 0.2, 0.1)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    """Families with up to five children, all with the same eyes; every tenth child is of nobody. Toys have any hue."""
    rng = np.random.default_rng(3)
    children = [
        f"{family if rng.random() < 0.9 else ''},{number},{eyes}"
        for family, eyes in enumerate(rng.choice(EYES, FAMILIES, p=SHARES))
        for number in range(rng.integers(0, 6))
    ]
    toys = [f"{i},{rng.integers(0, FAMILIES)},{rng.integers(0, 4)}" for i in range(2000)]
    source = write_shop(
        tmp_path_factory.mktemp("siblings") / "source",
        DDL,
        family="\n".join(["id,rooms", *(f"{i},{rng.integers(1, 7)}" for i in range(FAMILIES))]),
        child="\n".join(["family_id,number,eyes", *children]),
        toy="\n".join(["id,family_id,hue", *toys]),
    )
    return draft(source, unit="family", domains="data")


def fitted(spec: Spec, **settings: bool) -> Model:
    wanted = spec.model_copy(update={"method": {"name": "tree", **settings}})
    return fit(wanted, epsilon="60", entropy=SeededEntropy())


@pytest.fixture(scope="module")
def model(spec: Spec) -> Model:
    return fitted(spec, siblings=True)


def alike(children: pa.Table) -> float:
    """The share of later children with the eyes of the first of their family."""
    firsts: dict[int, str] = {}
    same, all_later = 0, 0
    for row in children.filter(children["family_id"].is_valid()).to_pylist():
        if row["family_id"] in firsts:
            same += row["eyes"] == firsts[row["family_id"]]
            all_later += 1
        firsts.setdefault(row["family_id"], row["eyes"])
    return same / all_later


def test_children_of_a_family_are_alike(model: Model, spec: Spec, tmp_path: Path) -> None:
    generate(model, tmp_path / "on", seed=1)
    generate(fitted(spec), tmp_path / "off", seed=1)
    on, off = (pq.read_table(tmp_path / name / "data" / "child.parquet") for name in ("on", "off"))
    assert alike(on) > 0.9
    assert alike(off) < 0.5
    assert on.num_rows == pytest.approx(off.num_rows, rel=0.1)
    eyes = {found["values"]: found["counts"] / on.num_rows for found in on["eyes"].value_counts().to_pylist()}
    assert [eyes[colour] for colour in EYES] == pytest.approx(SHARES, abs=0.05)  # over fits they deviate by .012


def test_keys_are_valid_and_the_same_seed_gives_the_same_bytes(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 512)
    for name in ("one", "two"):
        generate(model, tmp_path / name, seed=5)
    for file in sorted((tmp_path / "one" / "data").iterdir()):
        assert file.read_bytes() == (tmp_path / "two" / "data" / file.name).read_bytes()
    families = set(pq.read_table(tmp_path / "one" / "data" / "family.parquet")["id"].to_pylist())
    children = pq.read_table(tmp_path / "one" / "data" / "child.parquet")
    owners = children["family_id"].to_pylist()
    assert None in owners
    assert set(owners) - {None} <= families
    keys = [pair for pair in zip(owners, children["number"].to_pylist(), strict=True) if None not in pair]
    assert len(set(keys)) == len(keys)
    assert alike(children) > 0.85


def test_the_model_is_kept_and_verified(model: Model, spec: Spec, tmp_path: Path) -> None:
    assert model.receipt["public"]["parameters"]["siblings"] is True
    assert "siblings" not in fitted(spec).receipt["public"]["parameters"]
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert not verify(tmp_path / "model").problems
    for name in ("a", "b"):
        generate(model if name == "a" else again, tmp_path / name, seed=2)
    assert (tmp_path / "a/data/child.parquet").read_bytes() == (tmp_path / "b/data/child.parquet").read_bytes()


def test_estimates_draw_siblings_alike(model: Model) -> None:
    child = sampled(model).tables["child"]
    owners, eyes = child.targets["child.family_id"], child.codes["eyes"]
    together = (owners[1:] == owners[:-1]) & (owners[1:] >= 0)
    assert (eyes[1:] == eyes[:-1])[together].mean() > 0.85
    joined = cardinality(
        model, tables={"f": "family", "c": "child"}, joins=[(("c", "family_id"), ("f", "id"))], filters=[]
    )
    assert joined == pytest.approx(0.9 * FAMILIES * 2.5, rel=0.1)


def test_a_column_of_first_rows_of_the_wrong_size_is_refused(model: Model) -> None:
    table = model.tables["child"]
    assert any(given.column == first_column("eyes") for given in given_columns(table.network))
    tree = next(node for node in walk(table.network) if isinstance(node, CliqueTree))
    leaves = [node for node in walk(table.network) if node is not tree and not isinstance(node, Product)]
    for wrong in (
        lambda g: Given(column=g.column, bins=np.append(g.bins, g.bins[-1])),
        lambda g: Given(column=first_column("hair"), bins=g.bins),
    ):
        given = tuple(wrong(g) if g.column == first_column("eyes") else g for g in tree.given)
        renamed = {old.column: new.column for old, new in zip(tree.given, given, strict=True)}
        columns = tuple(replace(c, parents=tuple(renamed.get(p, p) for p in c.parents)) for c in tree.columns)
        forged = CliqueTree(columns=columns, given=given, contexts=tree.contexts, weights=tree.weights)
        network = Product(children=(forged, *leaves))
        with pytest.raises(ModelError, match="its network asks for #first"):
            check_model(replace(model, tables={**model.tables, "child": replace(table, network=network)}))
