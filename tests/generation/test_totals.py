"""Tables come out with as many rows as planned, at any scale, whatever fanouts were drawn; and stay alike otherwise."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.generation import blocks
from privbench.generation.generate import generate
from privbench.generation.sizes import planned_rows
from privbench.generation.totals import scaling, tally
from privbench.methods.method import TableModel
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.schema.computed import ComputedOrigin
from privbench.schema.expression import Expression
from privbench.schema.spec import Sizes
from privbench.spn.fanout_link import FanoutLink
from privbench.spn.fanouts import fanout_edges
from privbench.spn.feature_names import rows_column

from ..computed_shop import COMPUTED, check, rows_of, write_source
from ..forging import assert_refused, forged
from ..seeded import SeededEntropy
from ..tree_models import made, network, tables
from .test_tree_rows import number, opened

SCALES = (0.1, 1, 2.5, 10)
HEAVY = fanout_edges(800)


def scaled(
    parts: list[list[int]], *, wanted: int, most: int = 2**40, seed: int = 0
) -> tuple[list[list[int]], list[int]]:
    """The numbers of blocks after scaling, and the parts of a row left after each."""
    drawn = sum((tally(np.array(part, np.int64)) for part in parts), Counter[int]())
    law = scaling(drawn, wanted=wanted, most=most)
    left, after, lefts = law.start, [], []
    for place, part in enumerate(parts):
        rng = np.random.default_rng((seed, place))
        numbers, left = law.scaled(np.array(part, np.int64), left, rng=rng)
        after.append(numbers.tolist())
        lefts.append(left)
    return after, lefts


@given(
    parts=st.lists(st.lists(st.integers(0, 9) | st.integers(0, 10**6), max_size=30), max_size=6),
    wanted=st.integers(0, 200) | st.integers(0, 10**9),
    most=st.integers(1, 12) | st.just(2**40),
)
def test_numbers_add_up_and_keep_their_shape(parts: list[list[int]], wanted: int, most: int) -> None:
    before = [min(n, most) for part in parts for n in part]
    capped = [[min(n, most) for n in part] for part in parts]
    found, lefts = scaled(capped, wanted=wanted, most=most)
    after = [n for part in found for n in part]
    assert sum(after) == min(wanted, most * len(before))
    assert all(0 <= n <= most for n in after)
    by_number = sorted(zip(before, after, strict=True))
    largest = 0
    for number_before in sorted(set(before)):
        own = [n for b, n in by_number if b == number_before]
        assert max(own) - min(own) <= 1
        assert min(own) >= largest - 1
        largest = max(own)
    if sum(before) > 0 and wanted <= most * sum(n > 0 for n in before):
        assert all(n == 0 for b, n in by_number if b == 0)
    other, same = scaled(capped, wanted=wanted, most=most, seed=1)
    assert ([sum(p) for p in other], same) == ([sum(p) for p in found], lefts)  # whoever is rounded up


@given(numbers=st.lists(st.integers(0, 50), max_size=30))
def test_numbers_that_add_up_already_stay(numbers: list[int]) -> None:
    assert scaled([numbers], wanted=sum(numbers))[0] == [numbers]


def test_heavy_blocks_stay_heavy() -> None:
    light, heavy = [1] * 50, [1] * 49 + [951]
    (first, second), _ = scaled([light, heavy], wanted=2100)
    assert (sum(first), sum(second)) == (100, 2000)


def test_who_is_rounded_up_does_not_depend_on_the_place_among_owners() -> None:
    """Two owners of each entity share one row: it is not always the second that has it."""
    (after,), _ = scaled([[1] * 2000], wanted=1000)
    assert 400 < sum(after[::2]) < 600


def chain(*, visits: float, notes: float, unowned: float = 0.0) -> Model:
    """Persons, visits and notes with heavy tails, of which the model expects these rows."""
    models = tables(500, unowned=unowned)
    bins = len(HEAVY) - 1
    own = [(c.column, len(c.counts), (c.parents or (None,))[0]) for c in models["person"].network.columns]  # type: ignore[union-attr]
    own = [(name, bins if name == rows_column("visit.person_id") else codes, parent) for name, codes, parent in own]
    heavy = FanoutLink(column=rows_column("visit.person_id"), edges=HEAVY, exponent=2.0, unowned=0.0)
    models["person"] = replace(models["person"], network=network(own))
    models["visit"] = replace(models["visit"], links={**models["visit"].links, "visit.person_id": heavy})
    sizes = {"visit": visits, "note": notes}
    return made(models={name: replace(table, rows=sizes.get(name, table.rows)) for name, table in models.items()})


def check_sizes(model: Model, rows: Mapping[str, int], scale: float) -> None:
    assert {name: rows[name] for name in model.tables} == {
        name: planned for name, planned in planned_rows(model, scale).items() if name in model.tables
    }


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("block", [250, 65_536])
def test_sizes_of_a_chain_with_heavy_tails(
    scale: float, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_ROWS", block)
    model = chain(visits=9000, notes=7777, unowned=40)
    base = opened(model, tmp_path / "out", scale=scale)
    sizes = {name: number(base, f"SELECT count(*) FROM {name}") for name in model.tables}
    check_sizes(model, sizes, scale)
    assert number(base, "SELECT count(*) FROM note WHERE visit_id IS NULL") == round(40 * scale)
    per_person = "SELECT count(*) AS n FROM visit GROUP BY person_id"
    assert number(base, f"SELECT max(n) / avg(n) FROM ({per_person})") > 5


@pytest.mark.parametrize("factor", [1 / 30, 1 / 3, 3, 30])
def test_fanouts_that_are_far_off_still_give_the_sizes(factor: float, tmp_path: Path) -> None:
    drawn = opened(made(), tmp_path / "drawn")
    visits, notes = (number(drawn, f"SELECT count(*) FROM {name}") for name in ("visit", "note"))
    models = tables(500)
    models["visit"] = replace(models["visit"], rows=visits * factor)
    models["note"] = replace(models["note"], rows=notes * 2.0)
    base = opened(made(models=models), tmp_path / "out")
    assert number(base, "SELECT count(*) FROM visit") == round(visits * factor)
    assert number(base, "SELECT count(*) FROM note") == 2 * notes
    childless = "SELECT count(*) FROM person WHERE id NOT IN (SELECT person_id FROM visit)"
    if factor > 1:
        assert number(base, childless) == number(drawn, childless)


def with_rows(**rows: float) -> Model:
    models = tables(500)
    return made(models={name: replace(table, rows=rows.get(name, table.rows)) for name, table in models.items()})


@pytest.mark.parametrize("rows", [1, 77, 400, 500])
def test_unique_child_keys(rows: int, tmp_path: Path) -> None:
    base = opened(with_rows(passport=rows), tmp_path / "out")
    assert number(base, "SELECT count(DISTINCT person_id) FROM passport") == rows
    assert number(base, "SELECT count(*) FROM passport") == rows


@pytest.mark.parametrize("seasons", [100, 1990, 2000, 2500])
def test_no_owner_has_more_rows_than_keys_can_tell_apart(seasons: int, tmp_path: Path) -> None:
    base = opened(with_rows(season=seasons, game=3000), tmp_path / "out")
    assert number(base, "SELECT count(*) FROM season") == min(seasons, 500 * 4)
    assert number(base, "SELECT count(*) FROM game") == 3000


def test_caps_hold(tmp_path: Path) -> None:
    model = with_rows(visit=1400)
    model.receipt["unit"]["tables"]["visit"]["rows_per_entity"] = 3
    base = opened(model, tmp_path / "out")
    assert number(base, "SELECT count(*) FROM visit") == 1400
    assert number(base, "SELECT max(n) FROM (SELECT count(*) n FROM visit GROUP BY person_id)") == 3


@pytest.mark.parametrize("scale", [0.01, 1, 10])
def test_tables_without_rows_and_with_one(scale: float, tmp_path: Path) -> None:
    model = with_rows(visit=0, note=30, passport=1, season=1, game=1)
    rows = generate(model, tmp_path / "out", scale=scale, seed=1)
    check_sizes(model, rows, scale)
    assert (rows["visit"], rows["note"]) == (0, max(round(30 * scale), 1))  # all notes without a visit


def test_one_entity(tmp_path: Path) -> None:
    one: dict[str, TableModel] = {n: replace(t, rows=1.0) for n, t in tables(1, unowned=0).items()}
    rows = generate(made(models=one), tmp_path / "out", seed=1)
    assert {rows[name] for name in one} == {1}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_source(tmp_path_factory.mktemp("sizes") / "source")


@pytest.mark.parametrize("epsilon", ["2", "50"])
@pytest.mark.parametrize("sizes", Sizes)
def test_sizes_that_are_public_or_learnt(
    sizes: Sizes, epsilon: str, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where columns count the rows: these columns know."""
    monkeypatch.setattr(blocks, "BLOCK_ROWS", 97)
    spec = draft(source, unit="shop", domains="data").model_copy(update={"sizes": sizes})
    found = {place: Expression(sql=sql) for place, sql in COMPUTED.items()}
    model = fit(spec.with_computed(found, ComputedOrigin.DECLARED), epsilon=epsilon, entropy=SeededEntropy())
    if sizes is Sizes.PUBLIC:
        real = {name: len(rows) for name, rows in rows_of(source).items()}
        assert {name: table.rows for name, table in model.tables.items()} == real
    for scale in SCALES:
        check_sizes(model, generate(model, tmp_path / f"{scale}", scale=scale, seed=1), scale)
        check(rows_of(tmp_path / f"{scale}"))


OTHER = {"rows": 7.0, "rows_low": 7.0, "rows_high": 7.0}


@pytest.mark.parametrize("method", ["tree", "paper", "independent"])
def test_a_model_with_other_sizes_than_the_public_ones_is_refused(method: str, source: Path, tmp_path: Path) -> None:
    spec = draft(source, unit="shop", domains="data").model_copy(update={"sizes": Sizes.PUBLIC})
    save_model(fit(spec, epsilon="20", method=method, entropy=SeededEntropy()), tmp_path / "model")
    load_model(tmp_path / "model")
    other = forged(tmp_path / "model", tmp_path / "forged", lambda h: h["tables"]["visit"].update(OTHER))
    assert_refused(other, "visit: the model has another number of rows than the receipt")
