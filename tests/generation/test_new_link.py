"""A new kind of link is one class and one line in the registry: nothing else knows which kinds there are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
from numpy.typing import NDArray

from privbench.encode.predicate import Between
from privbench.errors import ModelError
from privbench.estimation.estimate import cardinality
from privbench.generation.generate import generate
from privbench.io.open import open_source
from privbench.model.check import check_model
from privbench.model.file import load_unverified, save_model
from privbench.schema.unit import Link, LinkKind
from privbench.spn import links
from privbench.spn.clique import CliqueTree
from privbench.spn.feature_names import in_degree_column, null_column
from privbench.spn.link import Arrays, LinkColumn, LinkModel, Rng, RowBlock, TargetRows, Targets

from ..tree_models import made, tables


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyLink(LinkModel):
    """A reference key to the first rows of its target, which is made before."""

    kind: ClassVar[str] = "early"
    keys: ClassVar[frozenset[LinkKind]] = frozenset({LinkKind.REFERENCE})

    rows: int

    def columns(self, key: Link) -> tuple[LinkColumn, ...]:  # noqa: ARG002
        return ()

    def draw(self, block: RowBlock, targets: TargetRows, *, rng: Rng) -> Targets:
        return rng.integers(0, min(self.rows, targets.rows), block.rows)

    def to_json(self, where: str, arrays: Arrays) -> dict[str, Any]:  # noqa: ARG002
        return {"rows": self.rows}

    @classmethod
    def from_json(cls, header: Mapping[str, Any], array: Callable[[str], NDArray[Any]]) -> Self:  # noqa: ARG003
        return cls(rows=int(header["rows"]))


def _without(network: Any, column: str) -> CliqueTree:
    return replace(network, columns=tuple(c for c in network.columns if c.column != column))


def test_a_new_kind_of_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = tables()
    person, visit = models["person"], models["visit"]
    models["person"] = replace(person, network=_without(person.network, in_degree_column("visit.guest_id")))
    network = _without(visit.network, null_column("visit.guest_id"))
    models["visit"] = replace(visit, network=network, links=visit.links | {"visit.guest_id": EarlyLink(rows=7)})
    model = made(models=models)
    check_model(model)
    save_model(model, tmp_path / "a.model")
    with pytest.raises(ModelError):
        load_unverified(tmp_path / "a.model")
    monkeypatch.setitem(links.KINDS, EarlyLink.kind, EarlyLink)
    again = load_unverified(tmp_path / "a.model")
    generate(again, tmp_path / "out", seed=3)
    with open_source(tmp_path / "out") as source:
        guests = {row["guest_id"] for b in source.read(source.schema().table("visit")) for row in b.to_pylist()}
    assert len(guests) == 7
    joined = {"tables": {"v": "visit", "p": "person"}, "joins": [(("v", "guest_id"), ("p", "id"))]}
    everyone, old = (
        cardinality(again, **joined, filters=filters)  # type: ignore[arg-type]
        for filters in ([], [(("p", "id"), Between(low=max(guests) + 1000))])
    )
    assert everyone == pytest.approx(cardinality(again, tables={"v": "visit"}))
    assert old < 0.01 * everyone


def test_a_link_must_be_of_a_kind_that_its_key_can_have() -> None:
    models = tables()
    note = models["note"]
    models["note"] = replace(note, links={"note.visit_id": EarlyLink(rows=7)})
    with pytest.raises(ModelError):
        check_model(made(models=models))
