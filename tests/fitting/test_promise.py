"""Promises with a delta, from the flag to the verdict."""

from fractions import Fraction
from pathlib import Path

import pytest

from privbench.errors import SpecError
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.fitting.promise import check_method, parse_delta, parse_epsilon
from privbench.fitting.warnings import fit_warnings
from privbench.generation.generate import generate
from privbench.methods.registry import find_method
from privbench.model.file import load_model, save_model
from privbench.model.verify import verify
from privbench.schema.spec import Spec
from privbench.schema.unit import Neighbours

from ..seeded import SeededEntropy

SCHEMA = """
CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT);
CREATE TABLE visit (id INTEGER PRIMARY KEY, person_id INTEGER REFERENCES person (id), cost SMALLINT,
  before INTEGER REFERENCES visit (id));
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("clinic")
    (found / "schema.sql").write_text(SCHEMA)
    (found / "person.csv").write_text("id,age\n" + "".join(f"{i},{20 + i % 50}\n" for i in range(2000)))
    rows = (f"{i},{i % 1500},{i % 7},{i - 1 if i % 3 else ''}\n" for i in range(3000))
    (found / "visit.csv").write_text("id,person_id,cost,before\n" + "".join(rows))
    return found


@pytest.fixture(scope="module", params=Neighbours)
def spec(folder: Path, request: pytest.FixtureRequest) -> Spec:
    return draft(folder, unit="person", domains="data", neighbours=request.param)


def test_a_fit_with_a_delta_is_verified(spec: Spec, tmp_path: Path) -> None:
    model = fit(spec, epsilon="3.2", delta="1e-9", method="independent", entropy=SeededEntropy())
    assert (model.receipt["epsilon"], model.receipt["delta"]) == ("16/5", "1/1000000000")
    assert float(Fraction(model.receipt["budget"]["amount"])) == pytest.approx(0.13608, abs=1e-5)
    events = [n for n in model.receipt["ledger"]["nodes"] if n["kind"] == "event"]
    assert {n["mechanism"] for n in events} == {"discrete-gaussian", "exponential"}
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    generate(loaded, tmp_path / "bundle", seed=1)
    for what in ("m", "bundle"):
        verdict = verify(tmp_path / what)
        assert (verdict.status, verdict.problems) == ("conditional", ())
        assert verdict.spent is not None
        assert Fraction(31, 10) < verdict.spent <= Fraction(16, 5)
    assert "epsilon = 3.2, delta = 1e-09" in (tmp_path / "bundle" / "README.md").read_text()
    assert model.tables["visit"].rows == pytest.approx(3000, rel=0.2)


def test_a_method_that_parts_rows_takes_no_delta(spec: Spec) -> None:
    with pytest.raises(SpecError, match=r"method paper takes no delta.*`--method independent`"):
        fit(spec, epsilon=1, delta="1e-9", method="paper")
    check_method(find_method("paper"), Fraction(0))


def test_a_delta_that_allows_to_publish_somebody_is_told(folder: Path) -> None:
    spec = draft(folder, unit="person", domains="data")
    for delta, told in (("9e-4", True), ("1e-4", False)):
        model = fit(spec, epsilon=9, delta=delta, method="independent", entropy=SeededEntropy())
        assert any("one over the number of entities" in line for line in fit_warnings(model)) == told


@pytest.mark.parametrize("delta", ["0.001", "1", "-1e-9", "1e-31", "nan", "inf", "small", 0.5])
def test_deltas_that_promise_nothing_are_refused(delta: str | float) -> None:
    with pytest.raises(SpecError, match=r"far below 1/\(number of entities\)"):
        parse_delta(delta)


def test_numbers_are_read_exactly() -> None:
    assert parse_delta("1e-9") == parse_delta(1e-9) == parse_delta(Fraction(1, 10**9)) == Fraction(1, 10**9)
    assert parse_delta(0) == parse_delta("0") == parse_delta("0.0") == 0
    assert parse_epsilon(3.2) == Fraction(16, 5)
    for epsilon in ("0", "-1", "nan", "one", "1e-7", "1e400"):
        with pytest.raises(SpecError, match="epsilon is"):
            parse_epsilon(epsilon)
