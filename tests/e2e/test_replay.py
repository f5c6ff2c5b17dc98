"""Non-interference of the whole product: from the recorded noisy answers alone the same model file comes out."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from privbench.fitting import engines
from privbench.fitting import fit as fit_module
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.fitting.reading import ReadDatabase
from privbench.generation.generate import generate
from privbench.methods.registry import BUILT_IN
from privbench.model.file import save_model
from privbench.model.verify import verify
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.parts import MemoryParts
from privbench.privacy.vault import Answer, Vault
from privbench.schema.spec import Spec

from .shapes import SHAPES

EPSILON = "3.2"


def _fit(spec: Spec, out: Path, *, tape: Sequence[Answer] | None = None, **options: Any) -> list[Answer]:
    """Fit and write the model. With a tape nothing private is there: no rows, no engine, and no entropy is drawn."""
    vaults: list[Vault] = []

    class Recording(Vault):
        def __init__(self, engine: Any, **kept: Any) -> None:
            super().__init__(engine if tape is None else None, **kept, tape=tape)
            vaults.append(self)

    def read_public(*arguments: Any, **more: Any) -> ReadDatabase:
        read = read_database(*arguments, **more)
        known = {spec.protection().entity, *read.public}
        return replace(read, parts=MemoryParts([]), rows={t: n if t in known else -1 for t, n in read.rows.items()})

    read_database = engines.read_database
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit_module, "Vault", Recording)
        if tape is not None:
            patch.setattr(engines, "read_database", read_public)
            patch.setattr(FixedEntropy, "words", lambda *_: pytest.fail("noise was drawn"))
        save_model(fit(spec, epsilon=EPSILON, entropy=FixedEntropy(4), **options), out)
    [vault] = vaults
    return vault.answers


def _replayed(spec: Spec, folder: Path, **options: Any) -> int:
    """How many answers there were, of a fit whose model comes out of them alone."""
    answers = _fit(spec, folder / "recorded", **options)
    assert len(_fit(spec, folder / "replayed", tape=answers, **options)) == len(answers)
    assert (folder / "replayed").read_bytes() == (folder / "recorded").read_bytes()
    return len(answers)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.parametrize("name", sorted(SHAPES))
def test_the_model_is_a_function_of_the_noisy_answers(name: str, method: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    spec = draft(shape.write(tmp_path / "source"), domains="data", **shape.choices)
    assert _replayed(spec, tmp_path, method=method) > 0


def test_so_are_domains_that_were_found(tmp_path: Path) -> None:
    shape = SHAPES["parent_child"]
    spec = draft(shape.write(tmp_path / "source"), **shape.choices)
    assert spec.wanted(spec.protection())
    assert _replayed(spec, tmp_path, delta="1e-6") > 0


def test_other_answers_give_another_model(tmp_path: Path) -> None:
    shape = SHAPES["parent_child"]
    spec = draft(shape.write(tmp_path / "source"), domains="data", **shape.choices)
    answers = _fit(spec, tmp_path / "recorded")
    _fit(spec, tmp_path / "changed", tape=[*answers[:-1], answers[-1] + 1])
    assert (tmp_path / "changed").read_bytes() != (tmp_path / "recorded").read_bytes()


def test_a_tape_that_is_too_short_is_refused(tmp_path: Path) -> None:
    shape = SHAPES["parent_child"]
    spec = draft(shape.write(tmp_path / "source"), domains="data", **shape.choices)
    answers = _fit(spec, tmp_path / "recorded")
    with pytest.raises(RuntimeError, match="fewer answers"):
        _fit(spec, tmp_path / "replayed", tape=answers[:-1])


def test_a_model_with_test_noise_says_so_everywhere(tmp_path: Path) -> None:
    shape = SHAPES["parent_child"]
    spec = draft(shape.write(tmp_path / "source"), domains="data", **shape.choices)
    model = fit(spec, epsilon=EPSILON, entropy=FixedEntropy(1))
    generate(model, tmp_path / "bundle", seed=1)
    assert model.receipt["stamp"].startswith("not private")
    assert "not private" in (tmp_path / "bundle" / "README.md").read_text()
    assert verify(tmp_path / "bundle").status == "unverified"
