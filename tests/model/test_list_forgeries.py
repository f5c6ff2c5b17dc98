"""Receipts of models with a hidden list: an honest one is accepted, one that says something else of it is not."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from privbench import fit, generate, load_model, save_model, verify
from privbench.privacy.noise import TestEntropy
from privbench.schema.unit import Neighbours

from ..audit.test_lists import DDL, spec_of
from ..failing import assert_fails
from ..forging import assert_refused, forged

Json = dict[str, Any]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 60 players with up to three seasons each."""
    folder = tmp_path_factory.mktemp("lists")
    (folder / "source").mkdir()
    (folder / "source" / "schema.sql").write_text(DDL)
    rows = [(p, y, p % 7, (p + y) % 10) for p in range(60) for y in range(p % 4)]
    player, year, team, number = (pa.array(column, pa.int64()) for column in zip(*rows, strict=True))
    tables = {
        "player": {"id": pa.array(range(60), pa.int64()), "height": pa.array([p % 10 for p in range(60)], pa.int64())},
        "bat": {"player": player, "year": year, "team": team, "hits": number},
        "pitch": {"player": player, "year": year, "team": team, "wins": number},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), folder / "source" / f"{name}.parquet")
    fitted = fit(spec_of(Neighbours.REPLACE), source=folder / "source", epsilon="40", entropy=TestEntropy(1))
    save_model(fitted, folder / "model")
    return folder / "model"


def _no_list(receipt: Json) -> None:
    receipt["unit"]["lists"] = []


def _a_member_hidden(receipt: Json) -> None:
    receipt["unit"]["lists"] = ["bat"]


def _the_unit_hidden(receipt: Json) -> None:
    receipt["unit"]["lists"] = ["player"]


def _a_public_size(receipt: Json) -> None:
    receipt["public"]["sizes"]["season"] = 90


def _not_of_the_player(receipt: Json) -> None:
    receipt["inside"]["keys"] = [k for k in receipt["inside"]["keys"] if k["table"] != "bat"]


def _by_another_column(receipt: Json) -> None:
    for key in receipt["inside"]["keys"]:
        key["columns"] = ["batter"]


def _with_orphans(receipt: Json) -> None:
    receipt["public"] |= {"orphans": "null", "orphans_note": "Missing rows are NULL."}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_a_member_hidden, "no rows are owned by rows of bat"),
        (_the_unit_hidden, "player is no owned table of the unit"),
        (_a_public_size, "season is a list, whose rows an entity moves"),
        (_not_of_the_player, "whose a row of bat is does not follow from its key into season"),
        (_by_another_column, "whose a row of bat is does not follow from its key into season"),
        (_with_orphans, "season has rows of owners that do not exist"),
    ],
)
def test_what_cannot_be_said_of_a_list_is_refused(
    model: Path, change: Callable[[Json], None], message: str, tmp_path: Path
) -> None:
    assert_refused(forged(model, tmp_path / "forged", lambda header: change(header["receipt"])), message)


def test_a_list_that_the_receipt_does_not_name_is_refused(model: Path, tmp_path: Path) -> None:
    path = forged(model, tmp_path / "forged", lambda header: _no_list(header["receipt"]))
    assert_fails(verify(path), "unit")


def test_an_honest_receipt_is_accepted(model: Path, tmp_path: Path) -> None:
    loaded = load_model(model)
    assert loaded.receipt["unit"]["lists"] == ["season"]
    assert not [p for p in verify(model).problems if "list" in p]
    generate(loaded, tmp_path / "bundle", seed=1)
    assert not (tmp_path / "bundle" / "data" / "season.parquet").exists()
    assert not [p for p in verify(tmp_path / "bundle").problems if "list" in p]
