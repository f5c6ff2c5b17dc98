"""Non-interference of the whole product: from the recorded noisy answers alone the same model file comes out."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit, receipt_of
from privbench.fitting.reading import ReadDatabase, read_database
from privbench.generation.generate import generate
from privbench.io.open import open_source
from privbench.methods.method import silent
from privbench.methods.registry import BUILT_IN
from privbench.model.chosen import method_settings, with_method
from privbench.model.facts import public_facts
from privbench.model.file import save_model
from privbench.model.model import Model, compile_codecs
from privbench.model.public_counts import count_bins
from privbench.model.verify import verify
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.receipt import open_ledger
from privbench.privacy.vault import Vault
from privbench.schema.spec import Spec

from .shapes import SHAPES

EPSILON = Fraction(16, 5)


def _read(spec: Spec) -> ReadDatabase:
    protection = spec.protection()
    assert spec.source is not None
    with open_source(spec.source) as source:
        codecs = compile_codecs(spec, protection)
        return read_database(source, protection, codecs, orphans_as_null=False, progress=silent)


def _release(spec: Spec, read: ReadDatabase, *, data: Any, tape: Any, out: Path) -> Vault:
    """The lower half of `fit`, with the vault kept."""
    protection = spec.protection()
    counts = count_bins(protection, read.public, read.entity_keys)
    facts = public_facts(
        spec, protection, compile_codecs(spec, protection), read.rows, public_sizes=False, public_counts=counts
    )
    ledger, entropy = open_ledger(EPSILON, Fraction(0), protection.neighbours), FixedEntropy(4)
    engine = None if data is None else NumpyEngine(data, entropy=entropy)
    vault = Vault(engine, ledger=ledger, entropy=entropy, tape=tape)
    chosen = method_settings(spec)
    tables = chosen.method.learn(vault, facts, chosen.settings, silent)
    model = Model(
        spec=spec.published(),
        tables=tables,
        public=read.public,
        entity_keys=read.entity_keys,
        receipt=receipt_of(vault, facts, spec, chosen=chosen, epsilon=EPSILON, delta=Fraction(0)),
    )
    save_model(model, out)
    return vault


@pytest.mark.mostly_slow
@pytest.mark.parametrize("method", BUILT_IN)
@pytest.mark.parametrize("name", sorted(SHAPES))
def test_the_model_is_a_function_of_the_noisy_answers(name: str, method: str, tmp_path: Path) -> None:
    shape = SHAPES[name]
    spec = with_method(draft(shape.write(tmp_path / "source"), domains="data", **shape.choices), method)
    read = _read(spec)
    recorded = _release(spec, read, data=read.private, tape=None, out=tmp_path / "recorded")

    protection = spec.protection()
    known = {protection.entity, *read.public}
    public = replace(read, private={}, rows={t: n if t in known else -1 for t, n in read.rows.items()})
    replayed = _release(spec, public, data=None, tape=recorded.answers, out=tmp_path / "replayed")

    assert len(replayed.answers) == len(recorded.answers) > 0
    assert (tmp_path / "replayed").read_bytes() == (tmp_path / "recorded").read_bytes()


def test_other_answers_give_another_model(tmp_path: Path) -> None:
    shape = SHAPES["parent_child"]
    spec = draft(shape.write(tmp_path / "source"), domains="data", **shape.choices)
    read = _read(spec)
    recorded = _release(spec, read, data=read.private, tape=None, out=tmp_path / "recorded")
    changed = [*recorded.answers[:-1], recorded.answers[-1] + 1]
    _release(spec, read, data=None, tape=changed, out=tmp_path / "changed")
    assert (tmp_path / "changed").read_bytes() != (tmp_path / "recorded").read_bytes()


def test_a_model_with_test_noise_says_so_everywhere(tmp_path: Path) -> None:
    shape = SHAPES["parent_child"]
    spec = draft(shape.write(tmp_path / "source"), domains="data", **shape.choices)
    model = fit(spec, epsilon=EPSILON, entropy=FixedEntropy(1))
    generate(model, tmp_path / "bundle", seed=1)
    assert model.receipt["stamp"].startswith("not private")
    assert "not private" in (tmp_path / "bundle" / "README.md").read_text()
    assert verify(tmp_path / "bundle").status == "unverified"
