"""The vault believes no value that claims too much: other tables, other keys, parts that were never split off."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from privbench.encode.coded import CodedTable
from privbench.privacy import features
from privbench.privacy.blocks import Block, Side
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import ColumnFacts
from privbench.privacy.features import Axis, whole_axis
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.queries import ENTITY_WEIGHT, Counts, Histogram, Pair, PairChoice

from .tiny import CENTRES, COLUMNS, database, open_vault
from .weighted_tiny import LINKS, own

CAPS = {"person": 1, "visit": 2, "note": 2}


def test_what_leads_to_other_rows_of_an_entity_is_an_owner_key() -> None:
    for make in (features.of_owner, features.of_first):
        with pytest.raises(ValueError, match="no owner key"):
            make(own("person"), LINKS["visit.guest"])
    with pytest.raises(ValueError, match="no owner key"):
        features.rank(LINKS["visit.previous"])
    with pytest.raises(ValueError, match="no owner key"):
        features.fanout(LINKS["visit.guest"], np.arange(3))


@pytest.mark.parametrize(
    "feature",
    [
        features.null_key(LINKS["note.about"]),
        features.in_degree(LINKS["note.about"], np.arange(3)),
        features.fanout(LINKS["note.visit"], np.arange(3)),
        features.of_owner(own("visit"), LINKS["note.visit"]),
        features.rank(LINKS["visit.person"]),
    ],
    ids=lambda f: f.source.kind,
)
def test_a_feature_is_counted_in_its_own_table_alone(feature: features.Feature) -> None:
    with pytest.raises(ValueError, match="is not a feature of rows of person"):
        Histogram(table="person", axes=(whole_axis(feature),))


def test_every_code_has_a_bin() -> None:
    with pytest.raises(ValueError, match="has 2 codes, but bins for 1"):
        Axis(own("person"), np.zeros(1, np.int64))


def test_a_part_is_one_that_the_vault_has_split_off() -> None:
    vault = open_vault(database([{}, {}], [{"person": 0}]), CAPS)
    left, right = vault.split(vault.whole("visit", vault.ledger.root), dict(COLUMNS["visit"]), CENTRES)
    whole = Block(table="visit", cap=2, scope=left.scope)
    other = Block(table="visit", cap=2, scope=left.scope, path=right.path)
    made_up = Block(table="visit", cap=2, scope=left.scope, path=(Side(split=9, right=True),))
    for block in (whole, other, made_up):
        with pytest.raises(ValueError, match="charged"):
            vault.measure(Histogram(table="visit", axes=(), counts=Counts.ROWS, block=block), Fraction(1))
    assert vault.ledger.total == 0


@pytest.mark.parametrize("rows", [8190, 8192, 8200, 16_384])
def test_a_pair_is_counted_as_if_it_were_alone(rows: int) -> None:
    """Rows that have no bin in one axis are still counted in the pairs of others."""
    rng = np.random.default_rng(3)
    sizes = {"a": 32, "b": 32, "c": 2}
    codes = {name: rng.integers(0, size, rows).astype(np.uint8) for name, size in sizes.items()}
    data = {"t": CodedTable(codes=codes, keys={}, entities=np.arange(rows))}
    axes = {name: whole_axis(features.own(name, ColumnFacts(size=size, ordered=True))) for name, size in sizes.items()}
    axes["c"] = Axis(axes["c"].feature, np.array([-1, 0]))
    names = [(a, b) for a, b in product("ab", "bc") if a < b]
    pairs = [Pair(axes[a], axes[b], np.zeros((axes[a].size, axes[b].size), np.int64), 0) for a, b in names]

    def scores(*candidates: Pair) -> list[int]:
        engine = NumpyEngine(one_part(data), entropy=FixedEntropy(1))
        [found] = engine.count([PairChoice(table="t", candidates=candidates)])
        assert isinstance(found, np.ndarray)
        return [int(score) for score in found[:-1]]

    assert scores(*pairs) == [score for pair in pairs for score in scores(pair)]
    assert scores(*pairs)[0] == rows * ENTITY_WEIGHT


def test_as_many_codes_as_a_small_integer_has_values() -> None:
    """65,535 rows and NULL, by a single part: as many codes as 16 bits tell apart."""
    one, many = (whole_axis(features.own(n, ColumnFacts(size=s, ordered=True))) for n, s in (("p", 1), ("x", 65_536)))
    codes = {"p": np.zeros(2, np.uint8), "x": np.array([0, 65_535], np.uint16)}
    engine = NumpyEngine(
        one_part({"t": CodedTable(codes=codes, keys={}, entities=np.arange(2))}), entropy=FixedEntropy(1)
    )
    [cells] = engine.count([Histogram(table="t", axes=(one, many))])
    assert isinstance(cells, np.ndarray)
    assert cells[0, [0, -1]].tolist() == [ENTITY_WEIGHT, ENTITY_WEIGHT]
