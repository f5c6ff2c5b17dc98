"""Differential replay of a whole fit: fit a database, then a neighbour on the answers that the first one got.

On the same answers both must ask the same queries and end in the same model, down to the bytes. Then every exact answer
is compared: it may move by no more than its event says, and the noise that was really drawn must pay for that.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from privbench.fitting import fit as fit_module
from privbench.fitting.warnings import fit_warnings
from privbench.model.file import save_model
from privbench.privacy import engine
from privbench.privacy import vault as vault_module
from privbench.privacy.engine import Exact
from privbench.privacy.events import Event, PrivacyMeasure
from privbench.privacy.part_counter import ValueCounts
from privbench.privacy.vault import Answer, Vault
from privbench.schema.spec import Spec

from ..seeded import SeededEntropy
from .worlds import Pair

SAMPLERS = ("discrete_laplace", "discrete_gaussian", "permute_and_flip", "exponential_mechanism", "passing")
"""What draws noise for the vault; heavy hitters draw theirs in `sparse_histogram`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An event, its exact answer and what the sampler was told."""

    event: Event
    exact: Exact
    drawn: dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Run:
    """All that can be seen of one fit: what was asked and answered, what was told on the way, and the model's bytes."""

    asked: list[Asked] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)
    model: bytes = b""


def run_fit(folder: Path, spec: Spec, source: Path, *, tape: Run | None = None, **options: Any) -> Run:
    """Fit a source; with a tape, its answers are those of another run, though its own rows are counted as well."""
    run = Run()
    with pytest.MonkeyPatch.context() as patch, _watched_samplers(patch) as drawn:
        patch.setattr(engine, "random_order", lambda size, _: np.arange(size))  # coupled: the same in both runs

        class Watched(Vault):
            def _release(self, event: Event, exact: Exact | None) -> Answer:
                drawn.clear()
                answer = super()._release(event, exact)
                assert exact is not None
                run.asked.append(Asked(event=event, exact=exact, drawn=dict(drawn)))
                return answer

            def _recorded(self, answer: Answer | None) -> Answer:
                if tape is not None:
                    answer = tape.answers[len(run.answers)]
                found = super()._recorded(answer)
                run.answers.append(found)
                return found

        def told(what: str, done: int, of: int) -> None:
            if not what.startswith(("reading", "checking")):  # before anything is spent, for the publisher alone
                run.told.append((what, done, of))

        patch.setattr(fit_module, "Vault", Watched)
        model = fit_module.fit(spec, source=source, entropy=SeededEntropy(7), progress=told, **options)
    run.told += fit_warnings(model)
    save_model(model, folder, force=True)
    run.model = folder.read_bytes()
    return run


def replayed(folder: Path, pair: Pair, spec: Spec, **options: Any) -> tuple[Run, Run]:
    """Fits of both databases of a pair, the second with the noise of the first."""
    first = run_fit(folder / "model", spec, pair.one, **options)
    return first, run_fit(folder / "model", spec, pair.other, tape=first, **options)


@contextmanager
def _watched_samplers(patch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What the samplers are told: the scale, and the threshold of frequent values."""
    drawn: dict[str, Any] = {}
    for name in (*SAMPLERS, "sparse_histogram"):
        sampler = getattr(vault_module, name)

        def watched(*arguments: Any, _sampler: Any = sampler, **options: Any) -> Any:
            scale = options.get("scale", arguments[1] if len(arguments) > 1 else None)
            drawn.update(scale=scale, threshold=options.get("threshold", 0))
            return _sampler(*arguments, **options)

        patch.setattr(vault_module, name, watched)
    yield drawn


def compare(one: Run, other: Run, *, replaced: bool) -> list[str]:
    """What two runs on neighbours show that one alone does not; nothing, if the promise holds."""
    problems = []
    if one.told != other.told:
        problems.append(
            f"what was told differs: {[p for p in zip(one.told, other.told, strict=False) if p[0] != p[1]][:1]}"
        )
    if one.model != other.model:
        problems.append("the models differ")
    if [a.event.to_json() for a in one.asked] != [a.event.to_json() for a in other.asked]:
        return [*problems, "other queries were asked"]
    for first, second in zip(one.asked, other.asked, strict=True):
        problems += [f"{first.event}: {problem}" for problem in _moved(first, second, replaced=replaced)]
    return problems


def _moved(first: Asked, second: Asked, *, replaced: bool) -> Iterator[str]:
    """Whether an exact answer moved by more than was charged, or less noise was drawn than was paid for."""
    event, change = first.event, _difference(first.exact, second.exact)
    times, sensitivity = (2 if replaced else 1), event.sensitivity
    size = np.abs(change).max(initial=0) if event.mechanism.chooses else np.abs(change).sum()
    if size > times * sensitivity:
        yield f"moved by {size}, but {times * sensitivity} was charged"
    same_way = bool((change >= 0).all() or (change <= 0).all())
    if not replaced and (event.additive or event.monotone) and not same_way:
        yield "is said to move one way only, but moved both ways"
    if replaced and event.additive and float((change.astype(object) ** 2).sum()) > 2 * sensitivity**2:
        yield "is said to be additive, but moved by more in L2"
    if event.mechanism.value != "as-published" and _cost(event, first.drawn["scale"]) > event.amount:
        yield f"noise of scale {first.drawn['scale']} was drawn, which costs more than the {event.amount} charged"
    if event.threshold and first.drawn["threshold"] != event.threshold:
        yield f"the threshold was {first.drawn['threshold']}, but {event.threshold} was charged"


def _cost(event: Event, scale: Fraction) -> Fraction:
    """What noise of the scale that was really drawn costs; written again here, apart from `Event.cost`."""
    ratio = Fraction(event.sensitivity) / scale
    if event.mechanism.chooses and not event.monotone:
        ratio *= 2
    if event.measure is PrivacyMeasure.EPSILON:
        return ratio
    multiple = 1
    if event.measure is PrivacyMeasure.RHO_REPLACE:
        multiple = 2 if event.additive else 4
    return multiple * ratio**2 / (8 if event.mechanism.chooses else 2)


def _difference(first: Exact, second: Exact) -> NDArray[np.int64]:
    if isinstance(first, ValueCounts) and isinstance(second, ValueCounts):
        one, other = (dict(zip(_plain(c.values), c.counts.tolist(), strict=True)) for c in (first, second))
        return np.array([one.get(value, 0) - other.get(value, 0) for value in {*one, *other}], np.int64)
    assert isinstance(first, np.ndarray)
    assert isinstance(second, np.ndarray)
    return (first - second).ravel()


def _plain(values: Any) -> list[Any]:
    return values.tolist() if isinstance(values, np.ndarray) else values.to_pylist()
