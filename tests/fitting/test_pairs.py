"""Pairs of columns that the spec names, where the budget buys no choice of pairs: from the spec to synthetic rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

import privbench
from privbench.methods.forecast import Outlook
from privbench.model.file import load_model, save_model
from privbench.model.model import Model
from privbench.model.verify import verify
from privbench.privacy.queries import PairChoice
from privbench.schema.spec import Spec

from ..forging import MISSING, Header, assert_refused, events, forged, settle, take_out, write_shop
from ..seeded import SeededEntropy

DDL = """CREATE TABLE member (id INTEGER PRIMARY KEY, age SMALLINT NOT NULL);
CREATE TABLE vote (id INTEGER PRIMARY KEY, member_id INTEGER NOT NULL REFERENCES member (id), kind SMALLINT NOT NULL,
  size SMALLINT NOT NULL, mood SMALLINT NOT NULL, seen_by INTEGER REFERENCES member (id));"""
MEMBERS = 2000
POOR = "1.2"
"""Too little for a choice among the columns of votes, enough for a pair."""
PAIRS = {"own": ("kind", "size"), "null key": ("kind", "seen_by"), "owner": ("mood", "member.age")}
AGREE = {
    "own": "kind = size",
    "null key": "(kind = 0) = (seen_by IS NULL)",
    "owner": "mood = (SELECT age FROM member WHERE member.id = vote.member_id)",
}
"""What all real rows keep, and about half of the rows if columns are independent."""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    """Members with a vote or two, whose size is their kind, and whose mood is the member's age; some are seen."""
    rng = np.random.default_rng(4)
    ages = rng.integers(0, 2, MEMBERS)
    owners = np.sort(np.append(np.arange(MEMBERS), rng.integers(0, MEMBERS, MEMBERS // 2)))
    kinds = rng.integers(0, 2, len(owners))
    votes = [
        f"{i},{owner},{kind},{kind},{ages[owner]},{rng.integers(0, MEMBERS) if kind else ''}"
        for i, (owner, kind) in enumerate(zip(owners, kinds, strict=True))
    ]
    source = write_shop(
        tmp_path_factory.mktemp("pairs") / "source",
        DDL,
        member="\n".join(["id,age", *(f"{i},{age}" for i, age in enumerate(ages))]),
        vote="\n".join(["id,member_id,kind,size,mood,seen_by", *votes]),
    )
    spec = privbench.draft(source, unit="member", domains="data", owners={"vote": ("member_id",)}, find=False)
    return with_words(spec, "member", budget=4)


def with_words(spec: Spec, table: str, **words: Any) -> Spec:
    return spec.model_copy(update={"tables": {**spec.tables, table: spec.tables[table].model_copy(update=words)}})


def with_pairs(spec: Spec, *pairs: tuple[str, str]) -> Spec:
    return with_words(spec, "vote", pairs=pairs)


def fitted(spec: Spec, *pairs: tuple[str, str], epsilon: str = POOR) -> Model:
    return privbench.fit(with_pairs(spec, *pairs), epsilon=epsilon, method="tree", entropy=SeededEntropy())


def choices(model: Model) -> int:
    """How many choices were made among the columns of votes."""
    queries = [node["query"] for node in model.receipt["ledger"]["nodes"] if node["kind"] == "event"]
    return sum((query["kind"], query["table"]) == (PairChoice.kind, "vote") for query in queries)


def agreeing(model: Model, out: Path, condition: str) -> float:
    """The share of synthetic votes that keep a condition."""
    privbench.generate(model, out, seed=1)
    base = duckdb.connect()
    for table in ("member", "vote"):
        base.execute(f"CREATE TABLE {table} AS SELECT * FROM '{out}/data/{table}.parquet'")
    answer = base.execute(f"SELECT avg(({condition})::INT) FROM vote").fetchone()
    assert answer is not None
    return float(answer[0])


@pytest.mark.parametrize("which", PAIRS)
def test_a_pair_of_the_spec_is_learnt_without_a_choice(which: str, spec: Spec, tmp_path: Path) -> None:
    model = fitted(spec, PAIRS[which])
    assert choices(model) == 0
    assert verify_saved(model, tmp_path).spec.tables["vote"].pairs == (PAIRS[which],)
    assert agreeing(model, tmp_path / "named", AGREE[which]) > 0.75
    assert agreeing(fitted(spec), tmp_path / "plain", AGREE[which]) < 0.65


def verify_saved(model: Model, tmp_path: Path) -> Model:
    """The model as it is read again, verified."""
    save_model(model, tmp_path / "model")
    assert verify(tmp_path / "model").status == "conditional", "on the domains, which are from the data"
    return load_model(tmp_path / "model")


def test_pairs_stand_together(spec: Spec, tmp_path: Path) -> None:
    model = fitted(spec, *PAIRS.values(), epsilon="1.4")
    assert choices(model) == 0
    for which, condition in AGREE.items():
        assert agreeing(model, tmp_path / which, condition) > 0.7


def test_with_more_budget_other_pairs_are_chosen_too(spec: Spec, tmp_path: Path) -> None:
    named = fitted(spec, PAIRS["own"], PAIRS["null key"], epsilon="40")
    assert choices(named) > 0
    verify_saved(named, tmp_path)
    for which, condition in AGREE.items():
        assert agreeing(named, tmp_path / which, condition) > 0.95


def without_tables(*features: str) -> Callable[[Header], None]:
    """Take the tables of a pair out of a receipt; totals and budget are what is left."""

    def change(header: Header) -> None:
        receipt = header["receipt"]
        take_out(receipt["ledger"], events(header, "vote", *features))
        settle(receipt)
        receipt["budget"]["amount"] = receipt["ledger"]["total"]

    return change


def test_a_receipt_without_the_table_of_the_pair_is_refused(spec: Spec, tmp_path: Path) -> None:
    save_model(fitted(spec, PAIRS["own"]), tmp_path / "model")
    change = without_tables("column kind", "column size")
    assert_refused(forged(tmp_path / "model", tmp_path / "forged", change), MISSING)


def test_a_pair_that_the_spec_does_not_name_needs_a_choice(spec: Spec, tmp_path: Path) -> None:
    save_model(fitted(spec, PAIRS["own"]), tmp_path / "model")
    path = forged(tmp_path / "model", tmp_path / "forged", lambda h: h["spec"]["tables"]["vote"].update(pairs=[]))
    assert_refused(path, f"vote: 1 charges are missing in the receipt for: {PairChoice.kind}")


def test_the_plan_counts_them(spec: Spec) -> None:
    rows = {"member": MEMBERS, "vote": 3 * MEMBERS // 2}
    plain = privbench.plan(spec, epsilon=POOR, rows=rows, method="tree").tables[1]
    plan = privbench.plan(with_pairs(spec, *PAIRS.values()), epsilon=POOR, rows=rows, method="tree").tables[1]
    assert (plain.outlook, plain.pairs) == (Outlook.SINGLES, None)
    assert plan.outlook is Outlook.NAMED
    assert (plan.settings["pairs"], plan.settings["hinted"], plan.settings["single_share"]) == (0, 3, 0.7)
    assert plan.pairs is not None
    assert plan.pairs.most == 3


@pytest.mark.parametrize("method", ["paper", "independent"])
def test_other_methods_ignore_them(method: str, spec: Spec) -> None:
    spec = with_words(spec, "member", budget=None)
    model = privbench.fit(with_pairs(spec, PAIRS["own"]), epsilon=POOR, method=method, entropy=SeededEntropy())
    plain = privbench.fit(spec, epsilon=POOR, method=method, entropy=SeededEntropy())
    assert model.receipt["ledger"] == plain.receipt["ledger"]


def test_one_pair_in_two_spellings_is_one(spec: Spec) -> None:
    once = fitted(spec, PAIRS["own"])
    twice = fitted(spec, PAIRS["own"], ("kind", '"vote"."size"'))
    assert once.receipt["ledger"] == twice.receipt["ledger"]
