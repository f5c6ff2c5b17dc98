"""Comparisons: any synthesizer by one protocol, medians over runs, one floor, and errors that are shown."""

import csv
import io
import json
import shutil
import subprocess
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import pytest

from privbench.errors import PrivBenchError, SpecError
from privbench.evaluation import compare as module
from privbench.evaluation.compare import Comparison, compare, compared_figures, comparison_csv, comparison_json
from privbench.evaluation.measured_run import Cost, OwnMethod
from privbench.fitting.draft import draft
from privbench.schema.spec import Spec

from .conftest import REAL, SYNTHETIC, Make

pytestmark = pytest.mark.slow

CHOICES = {"unit": "customer", "domains": "data"}


@dataclass(frozen=True)
class Copier:
    """Copies a database; the run with that number fails."""

    database: Path
    name: str = "copier"
    fails: int = 0
    seeds: list[int] = field(default_factory=list)
    deltas: list[Fraction] = field(default_factory=list)

    def __call__(
        self,
        spec: Spec,  # noqa: ARG002
        *,
        source: str,  # noqa: ARG002
        epsilon: Fraction,  # noqa: ARG002
        delta: Fraction = Fraction(0),
        out: Path,
        seed: int,
    ) -> Cost:
        self.deltas.append(delta)
        self.seeds.append(seed)
        if len(self.seeds) == self.fails:
            raise ValueError("out of\nluck")
        shutil.copy(self.database, out)
        return Cost(cpu_seconds=float(len(self.seeds)), peak_bytes=1000)


@pytest.fixture
def real(make: Make) -> Path:
    return make("real", REAL)


@pytest.fixture
def found(real: Path, make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Comparison:
    """Two synthesizers, one of which copies the real data and fails once, at two budgets."""
    floors: list[bool] = []
    evaluate = module.evaluate

    def watched(*arguments: object, floor: bool, **options: object) -> object:
        floors.append(floor)
        return evaluate(*arguments, floor=floor, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "evaluate", watched)
    queries = tmp_path / "q.sql"
    queries.write_text("SELECT COUNT(*) FROM customer WHERE age < 3;\nSELECT COUNT(*) FROM sale WHERE kind = 'a';\n")
    methods = [Copier(real, fails=2), Copier(make("other", SYNTHETIC), name="other")]
    compared = compare(real, methods=methods, epsilons=["0.4", "3.2"], runs=3, workload=queries, **CHOICES)
    assert floors == [True] + [False] * 10
    assert len(set(methods[0].seeds[:3])) == 3
    return compared


def test_settings_are_medians_of_the_runs_that_worked(found: Comparison) -> None:
    first, second, other, _ = found.settings()
    assert (first.method, first.epsilon, first.runs, first.errors) == ("copier", "0.4", 2, ("out of luck",))
    assert (second.runs, second.errors) == (3, ())
    assert first.figures["cpu_seconds"] == 2
    assert second.figures["cpu_seconds"] == 5
    assert first.figures["kld_2"] == pytest.approx(0, abs=1e-6)
    assert first.figures["q_mean"] == 1
    assert set(first.figures) == {figure.name for figure in compared_figures()}
    assert {"kld_1", "tvd_3", "cross_kld", "fanout_tvd", "q_median", "peak_bytes"} <= set(first.figures)
    for name in ("kld_2", "tvd_1", "cross_tvd", "q_mean"):
        assert (other.figures[name] or 0) > (first.figures[name] or 0)
        assert found.floor[name] is not None
    assert len(found.runs) == 12


def test_files_hold_the_table(found: Comparison) -> None:
    written = json.loads(json.dumps(comparison_json(found), allow_nan=False))
    assert "not for publishing" in written["warning"]
    assert "its own epsilon" in written["spending"]
    assert [s["method"] for s in written["settings"]] == ["copier", "copier", "other", "other"]
    assert len(written["runs"]) == 12
    rows = list(csv.DictReader(io.StringIO(comparison_csv(found))))
    assert [row["method"] for row in rows] == ["floor", "copier", "copier", "other", "other"]
    assert float(rows[3]["tvd_2"]) == pytest.approx(written["settings"][2]["figures"]["tvd_2"])
    assert rows[1]["errors"] == "out of luck"


def test_where_all_runs_fail_there_are_no_figures(real: Path) -> None:
    found = compare(real, methods=[Copier(real, fails=1)], epsilons=[1], runs=1, **CHOICES)
    (setting,) = found.settings()
    assert (setting.runs, set(setting.figures.values()), found.floor) == (0, {None}, {})


def test_arguments_that_cannot_be_used_are_refused_before_a_run(real: Path, tmp_path: Path) -> None:
    copier = Copier(real)
    with pytest.raises(SpecError, match="no such method"):
        compare(real, methods=["papre"], epsilons=[1], **CHOICES)
    with pytest.raises(SpecError, match="above 0"):
        compare(real, methods=[copier], epsilons=["-1"], **CHOICES)
    with pytest.raises(SpecError, match="delta"):
        compare(real, methods=[copier], epsilons=[1], delta="0.5", **CHOICES)
    with pytest.raises(SpecError, match="at least 1"):
        compare(real, methods=[copier], epsilons=[1], runs=0, **CHOICES)
    with pytest.raises(PrivBenchError, match=r"gone\.sql"):
        compare(real, methods=[copier], epsilons=[1], workload=tmp_path / "gone.sql", **CHOICES)
    assert copier.seeds == []


def test_an_own_method_runs_in_a_process_that_is_measured(real: Path, tmp_path: Path) -> None:
    spec = draft(real, **CHOICES)
    method = OwnMethod(name="independent")
    cost = method(spec, source=str(real), epsilon=Fraction(16, 5), out=tmp_path / "out", seed=1)
    assert (tmp_path / "out" / "receipt.json").exists()
    assert 0 < cost.cpu_seconds < 300
    assert 10**7 < cost.peak_bytes < 10**10


def test_a_delta_reaches_every_run_and_the_files(real: Path) -> None:
    copier = Copier(real)
    found = compare(real, methods=[copier], epsilons=[1, 2], delta="1e-9", runs=1, **CHOICES)
    assert copier.deltas == [Fraction(1, 10**9)] * 2
    assert comparison_json(found)["delta"] == "1e-9"


@pytest.mark.parametrize(("method", "delta"), [("independent", "1/1000000000"), ("paper", "0/1")])
def test_a_method_that_takes_no_delta_runs_without(real: Path, tmp_path: Path, method: str, delta: str) -> None:
    spec = draft(real, **CHOICES)
    run = OwnMethod(name=method)
    run(spec, source=str(real), epsilon=Fraction(16, 5), delta=Fraction(1, 10**9), out=tmp_path / "out", seed=1)
    receipt = json.loads((tmp_path / "out" / "receipt.json").read_text())
    assert receipt["delta"] == delta


def test_what_an_own_method_says_is_raised(real: Path, tmp_path: Path) -> None:
    spec = draft(real, **CHOICES)
    with pytest.raises(PrivBenchError, match="gone"):
        OwnMethod(name="paper")(spec, source=str(tmp_path / "gone"), epsilon=Fraction(1), out=tmp_path / "o", seed=1)


def test_an_address_is_no_argument_of_a_process(real: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody can read the arguments of a process, and an address may hold a password."""
    seen: list[list[str]] = []

    def run(arguments: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        seen.append(arguments)
        return subprocess.CompletedProcess(arguments, 1, "", "no server")

    monkeypatch.setattr(subprocess, "run", run)
    url = "postgresql://ann:hush@host/shop"
    with pytest.raises(PrivBenchError, match="no server"):
        OwnMethod(name="tree")(draft(real, **CHOICES), source=url, epsilon=Fraction(1), out=tmp_path / "o", seed=1)
    assert "hush" not in " ".join(seen[0])
