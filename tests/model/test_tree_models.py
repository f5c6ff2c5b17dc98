"""Model files with links that stand in networks: they come back whole, and what does not fit together is refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from privbench.errors import ModelError
from privbench.generation.generate import generate
from privbench.methods.method import TableModel
from privbench.model.check import check_model
from privbench.model.file import load_unverified, save_model
from privbench.spn.block_link import BlockLink
from privbench.spn.count_links import SlotLink
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.fanouts import fanout_edges
from privbench.spn.feature_names import RANK, owner_column, rows_column
from privbench.spn.link import LinkModel
from privbench.spn.nodes import Node
from privbench.spn.reference_link import ReferenceLink

from ..tree_models import made, network, tables


def test_a_model_comes_back_from_its_file(tmp_path: Path) -> None:
    model = made()
    save_model(model, tmp_path / "a.model")
    again = load_unverified(tmp_path / "a.model")
    for name, table in model.tables.items():
        assert {k: type(v) for k, v in again.tables[name].links.items()} == {k: type(v) for k, v in table.links.items()}
    for out, source in (("a", model), ("b", again)):
        generate(source, tmp_path / out, seed=1)
    for file in (tmp_path / "a" / "data").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / "data" / file.name).read_bytes()


def changed(table: str, change: Callable[[TableModel], TableModel]) -> dict[str, TableModel]:
    models = tables()
    return models | {table: change(models[table])}


def link(table: str, name: str, new: LinkModel) -> dict[str, TableModel]:
    return changed(table, lambda t: replace(t, links={**t.links, name: new}))


def of_network(table: str, new: Node) -> dict[str, TableModel]:
    return changed(table, lambda t: replace(t, network=new))


WIDE = fanout_edges(99)
VISIT = FanoutLink(column=rows_column("visit.person_id"), edges=WIDE, exponent=1.0, unowned=0.0)
WRONG = {
    "more bins than codes": link("visit", "visit.person_id", VISIT),
    "another column": link("visit", "visit.person_id", replace(VISIT, column="age", edges=fanout_edges(4))),
    "no such column": link("visit", "visit.person_id", replace(VISIT, column=rows_column("x"), edges=fanout_edges(12))),
    "too many alone": link("note", "note.visit_id", replace(VISIT, column=rows_column("note.visit_id"), unowned=1e300)),
    "too many of one owner": link("visit", "visit.person_id", replace(VISIT, edges=np.append(fanout_edges(11), 2**30))),
    "a reference as an owner": link("visit", "visit.guest_id", VISIT),
    "an owner as a reference": link("visit", "visit.person_id", ReferenceLink(column=None, null=None)),
    "a public target that is private": link("visit", "visit.guest_id", BlockLink(column="cost", blocks=1, slots=3)),
    "blocks that are not there": link("person", "person.town_id", BlockLink(column="age", blocks=5, slots=6)),
    "a null that is a column": link("visit", "visit.guest_id", ReferenceLink(column=None, null="cost")),
    "parts that are not there": link("person", "person.town_id", SlotLink(counts=np.ones((2, 7)))),
    "an owner's column that is not there": of_network(
        "note", network([("stars", 3, owner_column("x"))], given={owner_column("x"): 4})
    ),
    "an owner's column with other codes": of_network(
        "note", network([("stars", 3, owner_column("cost"))], given={owner_column("cost"): 3})
    ),
    "ranks with other codes": of_network("note", network([("stars", 3, RANK)], given={RANK: 3})),
}


@pytest.mark.parametrize("models", WRONG.values(), ids=WRONG)
def test_what_does_not_fit_together_is_refused(models: dict[str, TableModel]) -> None:
    check_model(made())
    with pytest.raises(ModelError):
        check_model(made(models=models))
