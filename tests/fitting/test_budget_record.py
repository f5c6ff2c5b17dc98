"""The budget record: a line per release, sums per source, limits that refuse before anything is spent."""

import json
import os
import stat
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privbench.errors import BudgetError, SpecError, TargetError
from privbench.fitting import budget_record
from privbench.fitting.budget_record import VARIABLE, Account, budget, check_limit, open_account, record_path
from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.schema.release import receipt_digest
from privbench.schema.spec import Spec
from privbench.schema.tables import Column, Schema, Table
from privbench.schema.types import parse_type
from privbench.schema.unit import Neighbours

ONE = Fraction(1)


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state" / "privbench" / "budget.jsonl"
    monkeypatch.setenv(VARIABLE, str(path))
    return path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    folder = tmp_path / "secret-shop"
    folder.mkdir()
    (folder / "schema.sql").write_text("CREATE TABLE person (id INTEGER PRIMARY KEY, age SMALLINT);")
    (folder / "person.csv").write_text("id,age\n" + "".join(f"{i},{i % 50}\n" for i in range(60)))
    return folder


def receipt(epsilon: str = "1/1", delta: str = "0/1", neighbours: str = "replace", **more: Any) -> dict[str, Any]:
    unit = {"entity": "person"}
    return {"epsilon": epsilon, "delta": delta, "neighbours": neighbours, "unit": unit, "noise": "os", **more}


def schema(column: str = "age") -> Schema:
    return Schema(tables=(Table(name="person", columns=(Column(name=column, type=parse_type("SMALLINT")),)),))


def account(source: Path | str = "shop", limit: Fraction | None = None) -> Account:
    return open_account(source, schema(), limit=limit)


def spend(spec: Spec, **flags: Any) -> Any:
    return fit(spec, epsilon="3.2", method="independent", **flags)


def test_a_fit_is_recorded_without_names_of_the_source(record: Path, shop: Path, tmp_path: Path) -> None:
    model = spend(draft(shop), out=tmp_path / "shop.model")
    [line] = record.read_text().splitlines()
    entry = json.loads(line)
    assert (entry["epsilon"], entry["delta"], entry["neighbours"]) == ("16/5", "0/1", "replace")
    assert (entry["unit"], entry["receipt"]) == ("person", receipt_digest(model.receipt))
    assert entry["out"] == str(tmp_path / "shop.model")
    assert "secret-shop" not in line
    assert "age" not in line


def test_a_model_is_not_given_away_unless_it_is_recorded(
    record: Path, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    spec = draft(shop)
    monkeypatch.setattr(budget_record, "_write", full)
    with pytest.raises(TargetError, match="No space left"):
        spend(spec)
    assert record.read_bytes() == b""
    assert [path.name for path in record.parent.iterdir()] == [record.name], "no salt, or a loss would be told"


def test_a_line_that_did_not_fit_the_disk_leaves_no_torn_one(record: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    account().append(receipt(), out=None)
    before, whole = record.read_bytes(), os.write
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda handle, content: whole(handle, content[:40]))
        with pytest.raises(TargetError, match="No space left"):
            account().append(receipt(), out=None)
    assert record.read_bytes() == before
    account(limit=Fraction(2)).append(receipt(), out=None)


def test_a_record_that_cannot_be_read_is_refused_with_or_without_a_limit(record: Path) -> None:
    record.mkdir(parents=True)
    for limit in (None, ONE):
        with pytest.raises(TargetError, match=VARIABLE):
            check_limit("shop", epsilon=ONE, neighbours=Neighbours.REPLACE, limit=limit)


@pytest.mark.parametrize("damage", [b"", b"{}\n"])
def test_a_loss_while_a_fit_runs_refuses_its_release(record: Path, damage: bytes) -> None:
    account().append(receipt(), out=None)
    running = account(limit=Fraction(9))
    record.write_bytes(damage)
    with pytest.raises(BudgetError, match="--accept-loss"):
        running.append(receipt(), out=None)
    account().append(receipt(), out=None)
    assert budget().damaged == (1,)
    assert budget_record.accept_loss() is not None
    assert (budget().damaged, budget().loss, budget_record.accept_loss()) == ((), None, None)


def test_two_first_fits_at_the_same_time_share_a_salt(record: Path) -> None:
    first, second = account(limit=Fraction(3, 2)), account(limit=Fraction(3, 2))
    first.append(receipt(), out=None)
    with pytest.raises(BudgetError):
        second.append(receipt(), out=None)
    account("other").append(receipt(), out=None)
    assert len(budget().sources) == 2
    assert record.exists()


def test_a_record_that_cannot_be_written_stops_a_fit_before_it_reads(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = draft(shop)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(VARIABLE, str(tmp_path / "file" / "budget.jsonl"))
    monkeypatch.setattr("privbench.fitting.engines.read_database", lambda *_, **__: pytest.fail("the source was read"))
    with pytest.raises(TargetError, match=VARIABLE):
        spend(spec)


def test_only_the_user_can_read_the_record(record: Path) -> None:
    account().append(receipt(), out=None)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (record.parent, *record.parent.iterdir())}
    assert modes == {"privbench": 0o700, "budget.jsonl": 0o600, "budget.jsonl.salt": 0o600}


def test_a_source_is_the_same_by_any_name(record: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "link").symlink_to("shop")
    monkeypatch.chdir(tmp_path)
    names = ["shop", "./shop/", tmp_path / "shop", "link", "other/../shop"]
    assert len({str(account(name).location) for name in names}) == 1
    assert account("other").location != account("shop").location
    assert len({str(account(name).tables) for name in names}) == 1
    assert open_account("shop", schema("height")).tables != account("shop").tables
    assert record.exists()


def test_another_salt_gives_other_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = set()
    for name in ("one", "two"):
        monkeypatch.setenv(VARIABLE, str(tmp_path / name / "budget.jsonl"))
        account().append(receipt(), out=None)
        [spent] = budget().sources
        hashes |= {spent.source, spent.entries[0].tables}
    assert len(hashes) == 4


def test_passwords_and_users_are_no_part_of_a_source(record: Path) -> None:
    named = account("postgresql://me:secret@Host/shop?sslmode=require")
    assert named == account("postgresql://host/shop")
    assert record.exists()


def test_sums_are_apart_for_sources_neighbours_and_units(record: Path) -> None:
    shop, other = account("shop"), account("other")
    shop.append(receipt("1/2", "1/1000000000"), out=None)
    shop.append(receipt("1/3", "1/1000000000"), out=None)
    shop.append(receipt("2/1", neighbours="add-remove"), out=None)
    shop.append(receipt("5/1", unit={"entity": "home"}), out=None)
    shop.append(receipt("9/1", noise="test"), out=None)
    other.append(receipt("7/1"), out=None)
    first, second = budget().sources
    assert [(t.neighbours, t.unit, t.epsilon, t.delta, t.releases) for t in first.totals()] == [
        (Neighbours.REPLACE, "person", Fraction(5, 6), Fraction(2, 10**9), 2),
        (Neighbours.ADD_REMOVE, "person", Fraction(2), Fraction(0), 1),
        (Neighbours.REPLACE, "home", Fraction(5), Fraction(0), 1),
    ]
    assert [t.epsilon for t in second.totals()] == [Fraction(7)]
    assert budget("other").sources == (second,)
    assert budget("nowhere").sources == ()
    assert record.read_bytes().count(b"\n") == 6


def test_reading_makes_no_record(record: Path) -> None:
    assert budget("shop").sources == budget().sources == ()
    check_limit("shop", epsilon=ONE, neighbours=Neighbours.REPLACE, limit=ONE)
    assert not record.parent.exists()


@pytest.mark.parametrize("line", [b"{}", b"not JSON", b"\xff\xfe", b"[1]", b"{" * 5000])
def test_a_damaged_line_is_reported_and_the_others_count(record: Path, line: bytes) -> None:
    account().append(receipt(), out=None)
    with record.open("ab") as file:
        file.write(line)  # torn: without its end
    account().append(receipt("2/1"), out=None)
    read = budget()
    assert read.damaged == (2,)
    assert [total.epsilon for spent in read.sources for total in spent.totals()] == [Fraction(3)]


def test_a_line_with_other_words_or_numbers_is_damaged(record: Path) -> None:
    account().append(receipt(), out=None)
    entry = json.loads(record.read_text())
    changes: list[dict[str, Any]] = [{"epsilon": 1.0}, {"epsilon": "-1/1"}, {"more": 1}, {"private": "yes"}]
    changes += [{"receipt": "0"}, {"version": 2}, {"neighbours": "none"}, {"time": "now"}]
    record.write_text("".join(json.dumps(entry | change) + "\n" for change in changes))
    assert budget().damaged == tuple(range(1, len(changes) + 1))


def test_a_lost_salt_is_not_made_anew(record: Path) -> None:
    account().append(receipt(), out=None)
    (record.parent / "budget.jsonl.salt").unlink()
    with pytest.raises(TargetError, match="is missing"):
        account()


def test_a_limit_refuses_before_anything_is_read(record: Path, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = draft(shop)
    spend(spec, budget_limit="3.2")
    monkeypatch.setattr("privbench.fitting.engines.read_database", lambda *_, **__: pytest.fail("the source was read"))
    with pytest.raises(BudgetError, match=r"1 releases of this source have spent epsilon 3\.2, and epsilon 3\.2 more"):
        spend(spec, budget_limit="6.3")
    assert record.read_bytes().count(b"\n") == 1


def test_a_limit_holds_exactly_and_for_one_source(record: Path) -> None:
    account("shop").append(receipt("1/3"), out=None)
    check_limit("shop", epsilon=Fraction(2, 3), neighbours=Neighbours.REPLACE, limit=ONE)
    check_limit("other", epsilon=ONE, neighbours=Neighbours.REPLACE, limit=ONE)
    with pytest.raises(BudgetError):
        check_limit("shop", epsilon=Fraction(2, 3) + Fraction(1, 10**9), neighbours=Neighbours.REPLACE, limit=ONE)
    assert record.exists()


@pytest.mark.parametrize(
    ("before", "now", "most"), [("replace", "add-remove", 3), ("add-remove", "replace", 3), ("replace", "replace", 2)]
)
def test_adding_or_removing_counts_twice_beside_replacing(record: Path, before: str, now: str, most: int) -> None:
    account().append(receipt(neighbours=before), out=None)
    check_limit("shop", epsilon=ONE, neighbours=Neighbours(now), limit=Fraction(most))
    with pytest.raises(BudgetError):
        check_limit("shop", epsilon=ONE, neighbours=Neighbours(now), limit=Fraction(most) - Fraction(1, 100))
    assert record.exists()


def test_a_limit_that_another_fit_used_up_in_the_meantime_refuses_the_release(record: Path) -> None:
    first, other = account(limit=ONE), account(limit=ONE)
    other.append(receipt(), out=None)
    with pytest.raises(BudgetError):
        first.append(receipt(), out=None)
    assert record.read_bytes().count(b"\n") == 1


@pytest.mark.parametrize("limit", ["0", "-1", "much", "nan"])
def test_a_limit_is_a_positive_number(shop: Path, limit: str) -> None:
    with pytest.raises(SpecError, match=f"the budget limit is {limit}"):
        spend(draft(shop), budget_limit=limit)


def test_lines_of_fits_at_the_same_time_stay_whole(record: Path) -> None:
    def append() -> None:
        for _ in range(20):
            account().append(receipt(), out="x" * 5000)

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = budget("shop")
    assert read.damaged == ()
    assert read.sources[0].totals()[0].releases == 80
    assert record.exists()


def test_noise_from_a_test_is_recorded_as_such(record: Path, shop: Path) -> None:
    spend(draft(shop), entropy=FixedEntropy(1))
    [spent] = budget(shop).sources
    assert [entry.private for entry in spent.entries] == [False]
    assert spent.totals() == ()
    assert record.exists()


def test_the_record_is_in_the_folder_for_state(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert record_path() == tmp_path / "privbench" / "budget.jsonl"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert record_path() == tmp_path / ".local" / "state" / "privbench" / "budget.jsonl"


def test_tests_do_not_write_where_users_do() -> None:
    assert "PRIVBENCH_BUDGET_RECORD" in os.environ
    assert not record_path().is_relative_to(Path.home() / ".local")
