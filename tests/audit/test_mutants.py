"""Leaks built into whole fits on purpose: differential replay must catch each."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from privbench.encode import relative as encoded
from privbench.errors import BudgetError
from privbench.fitting import fit as fit_module
from privbench.fitting import relative
from privbench.methods import registry
from privbench.methods.tree.method import TREE
from privbench.privacy import exact, vault
from privbench.privacy.events import Event
from privbench.privacy.queries import Histogram
from privbench.privacy.vault import Vault
from privbench.schema.unit import Neighbours

from ..opened import tables_of
from .test_replay import check

Mutant = Callable[[pytest.MonkeyPatch], None]


def _drawn_with(patch: pytest.MonkeyPatch, change: Callable[[Event], Event]) -> None:
    """Noise that is drawn for another event than the one that was charged."""
    draw = vault.draw

    def careless(event: Event, *arguments: Any) -> Any:
        return draw(change(event), *arguments)

    patch.setattr(vault, "draw", careless)


def _unchecked(event: Event, **changes: Any) -> Event:
    """A copy of an event that does not check itself."""
    copy = object.__new__(Event)
    for name in Event.__dataclass_fields__:
        object.__setattr__(copy, name, changes.get(name, getattr(event, name)))
    return copy


def half_the_noise_of_choices(patch: pytest.MonkeyPatch) -> None:
    _drawn_with(patch, lambda e: _unchecked(e, scale=e.scale / 2) if e.mechanism.chooses else e)


def half_the_noise_of_domain_searches(patch: pytest.MonkeyPatch) -> None:
    def searches(event: Event) -> bool:
        query = event.query
        return isinstance(query, Histogram) and any(a.feature.source.kind == "magnitude" for a in query.axes)

    _drawn_with(patch, lambda e: _unchecked(e, scale=e.scale / 2) if searches(e) else e)


def a_lower_threshold(patch: pytest.MonkeyPatch) -> None:
    _drawn_with(patch, lambda e: _unchecked(e, threshold=e.threshold - 1) if e.threshold else e)


def weights_rounded_up(patch: pytest.MonkeyPatch) -> None:
    """Without the allowance for rounding, the rows of an entity weigh more than an entity."""

    def rounded(entities: Any, units: int, full_rows: int) -> Any:
        rows = np.maximum(exact.rows_of_entity(entities), full_rows)
        return None if rows.max(initial=full_rows) == 1 else -(-units // rows)

    patch.setattr(exact, "row_weights", rounded)


def _with_learner(patch: pytest.MonkeyPatch, tell: Callable[[Any, Any], None]) -> None:
    """Method `tree`, but for what it does with the engine first."""

    def learn(opened: Vault, facts: Any, settings: Any, progress: Any) -> Any:
        tell(opened._engine, progress)
        return TREE.learn(opened, facts, settings, progress)

    patch.setitem(registry.BUILT_IN, "tree", replace(TREE, learn=learn))


def a_progress_line_of_exact_counts(patch: pytest.MonkeyPatch) -> None:
    def tell(engine: Any, progress: Any) -> None:
        progress("learning", 0, len(tables_of(engine)["purchase"].entities))

    _with_learner(patch, tell)


def a_progress_line_of_missing_owners(patch: pytest.MonkeyPatch) -> None:
    def tell(engine: Any, progress: Any) -> None:
        keys = tables_of(engine)["purchase"].keys["purchase.helper"]
        progress(f"{(keys < 0).sum()} keys are NULL", 0, 1)

    _with_learner(patch, tell)


def a_budget_check_of_exact_counts(patch: pytest.MonkeyPatch) -> None:
    def tell(engine: Any, _progress: Any) -> None:
        if len(tables_of(engine)["purchase"].entities) % 2:
            raise BudgetError("too few orders for this budget")

    _with_learner(patch, tell)


def coding_that_raises(patch: pytest.MonkeyPatch) -> None:
    compile_codecs = fit_module.compile_codecs

    class Strict:
        def __init__(self, codec: Any) -> None:
            self._codec = codec

        def __getattr__(self, name: str) -> Any:
            return getattr(self._codec, name)

        def encode(self, values: pa.Array) -> Any:
            if len(values) % 2:
                raise ValueError("a value is outside of its domain")
            return self._codec.encode(values)

    def strict(*arguments: Any, **options: Any) -> Any:
        codecs = compile_codecs(*arguments, **options)
        if options.get("without"):
            return codecs
        return {**codecs, "purchase": {name: Strict(codec) for name, codec in codecs["purchase"].items()}}

    patch.setattr(fit_module, "compile_codecs", strict)


CASES: dict[Mutant, tuple[str, str]] = {
    half_the_noise_of_choices: ("tree", "1e-6"),
    half_the_noise_of_domain_searches: ("tree", "0"),
    a_lower_threshold: ("tree", "1e-6"),
    weights_rounded_up: ("tree", "0"),
    a_progress_line_of_exact_counts: ("tree", "0"),
    a_progress_line_of_missing_owners: ("tree", "0"),
}
ODD = 4
"""The seed of a small pair of databases whose tables differ by odd numbers of rows."""


@pytest.mark.parametrize("mutant", [a_budget_check_of_exact_counts, coding_that_raises], ids=lambda m: m.__name__)
def test_replay_catches_refusals_and_errors_by_private_rows(
    mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    with pytest.raises((ValueError, pytest.fail.Exception), match=r"outside of its domain|DID NOT RAISE"):
        check(tmp_path, "tree", Neighbours.REPLACE, "0", seed=ODD)


def test_nothing_is_refused_and_nothing_raises_by_private_rows(tmp_path: Path) -> None:
    assert check(tmp_path, "tree", Neighbours.REPLACE, "0", seed=ODD).asked


@pytest.mark.slow
@pytest.mark.parametrize("mutant", CASES, ids=lambda m: m.__name__)
def test_replay_catches(mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method, delta = CASES[mutant]
    mutant(monkeypatch)
    caught = 0
    for seed in (4, 7, 8, 13):
        try:
            check(tmp_path, method, Neighbours.REPLACE, delta, seed=seed)
        except (AssertionError, ValueError, BudgetError, pytest.fail.Exception):
            caught += 1
            break
    assert caught


def bases_of_other_entities(patch: pytest.MonkeyPatch) -> None:
    """A difference from the row above that the next row has, which may be another entity's."""
    rows_above = relative._rows_above
    patch.setattr(relative, "_rows_above", lambda *arguments: np.roll(rows_above(*arguments), 1))


def sequences_across_entities(patch: pytest.MonkeyPatch) -> None:
    """Only the first row of the table starts a sequence: the row before may be another entity's."""
    patch.setattr(encoded, "sequence_starts", lambda owners: np.arange(len(owners)) == 0)


@pytest.mark.slow
@pytest.mark.parametrize("mutant", [bases_of_other_entities, sequences_across_entities], ids=lambda m: m.__name__)
def test_replay_catches_differences_from_rows_of_others(
    mutant: Mutant, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)

    def all_pass() -> None:
        for seed in (4, 7, 8, 13):
            check(tmp_path, "tree", Neighbours.ADD_REMOVE, "0", seed=seed, relative=True)

    with pytest.raises((AssertionError, pytest.fail.Exception)):
        all_pass()


@pytest.mark.slow
def test_without_a_mutant_nothing_is_caught(tmp_path: Path) -> None:
    for seed, delta in ((4, "0"), (7, "1e-6"), (8, "0"), (13, "0")):
        run = check(tmp_path, "tree", Neighbours.REPLACE, delta, seed=seed)
        assert all(isinstance(answer, np.ndarray) for answer in run.answers)
