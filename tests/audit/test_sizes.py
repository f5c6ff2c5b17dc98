"""Sizes that are declared public, never those of lookups, or counted, at limits that no private row chooses."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.methods.tree import method
from privbench.methods.tree.size_laws import FIRST_LIMIT, SizeLaws
from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.queries import Histogram
from privbench.privacy.vault import Vault
from privbench.schema.spec import Sizes
from privbench.schema.unit import Neighbours

from ..forging import write_shop
from ..opened import tables_of
from ..seeded import SeededEntropy
from .replay import Run, compare, replayed
from .worlds import Pair

DDL = """CREATE TABLE address (id INTEGER PRIMARY KEY, zone INTEGER NOT NULL CHECK (zone BETWEEN 0 AND 3));
CREATE TABLE client (id INTEGER PRIMARY KEY, age INTEGER NOT NULL CHECK (age BETWEEN 0 AND 9),
  home INTEGER REFERENCES address (id));"""


@pytest.mark.parametrize("method", ["tree", "paper", "independent"])
def test_where_an_entity_lives_does_not_show_in_a_public_size(method: str, tmp_path: Path) -> None:
    sizes = []
    for name, home in (("one", "1"), ("other", "")):
        clients = "".join(f"{i},{i % 10},{1 + i % 2}\n" for i in range(60)) + f"60,3,{home}\n"
        source = write_shop(tmp_path / name, DDL, address="id,zone\n1,0\n2,3\n", client="id,age,home\n" + clients)
        spec = draft(source, unit="client", lookups={"address": "client"}).model_copy(update={"sizes": Sizes.PUBLIC})
        model = fit(spec, epsilon="50", method=method, entropy=SeededEntropy(2))
        sizes.append(model.receipt["public"]["sizes"])
    assert sizes == [{"client": 61}] * 2


# -- counts of rows, at limits that earlier answers choose -------------------------------------------------------------

VISITS = """CREATE TABLE client (id INTEGER PRIMARY KEY, age INTEGER NOT NULL CHECK (age BETWEEN 0 AND 9));
CREATE TABLE visit (id INTEGER PRIMARY KEY, client INTEGER REFERENCES client (id),
  cost INTEGER NOT NULL CHECK (cost BETWEEN 0 AND 9));"""
CLIENTS, HEAVY = 90, (700, 260, 90, 40, 40, 8, 3, 1)
"""Few clients have visits, and many each, so that no bin of fanouts stands out."""
CASES = [
    (neighbours, delta, orphans)
    for neighbours, delta in ((Neighbours.REPLACE, "0"), (Neighbours.ADD_REMOVE, "1e-6"))
    for orphans in ("error", "null")
]


def write_visits(folder: Path, visits: dict[int, int]) -> Path:
    """Clients with so many visits, and 30 visits of nobody."""
    owners = [str(client) for client, rows in visits.items() for _ in range(rows)] + [""] * 30
    return write_shop(
        folder,
        VISITS,
        client="id,age\n" + "".join(f"{client},{client % 10}\n" for client in visits),
        visit="id,client,cost\n" + "".join(f"{at},{owner},{at % 10}\n" for at, owner in enumerate(owners)),
    )


def replay(folder: Path, neighbours: Neighbours, delta: str, orphans: str) -> tuple[Run, list[str]]:
    """A fit of a database, and of the same with its heaviest client replaced by one without visits, or gone."""
    visits = dict(enumerate([*HEAVY, *[0] * (CLIENTS - len(HEAVY))]))
    replaced = neighbours is Neighbours.REPLACE
    other = {0: 0, **{c: rows for c, rows in visits.items() if c}} if replaced else {c: visits[c] for c in visits if c}
    pair = Pair(one=write_visits(folder / "one", visits), other=write_visits(folder / "other", other))
    spec = draft(pair.one, unit="client", neighbours=neighbours, orphans=orphans)
    first, second = replayed(folder, pair, spec, epsilon="2", delta=delta)
    return first, compare(first, second, replaced=replaced)


def limits(run: Run) -> list[int]:
    queries = [asked.event.query for asked in run.asked if isinstance(asked.event.query, Histogram)]
    return [query.full_rows for query in queries if query.table == "visit" and not query.axes]


@pytest.mark.parametrize(("neighbours", "delta", "orphans"), CASES)
def test_counts_at_two_limits_tell_no_more_of_an_entity_than_was_charged(
    neighbours: Neighbours, delta: str, orphans: str, tmp_path: Path
) -> None:
    run, problems = replay(tmp_path, neighbours, delta, orphans)
    assert problems == []
    assert limits(run)[0] == FIRST_LIMIT
    assert len(limits(run)) == 2


def the_limit_is_the_most_rows_that_anybody_has(vault: Vault) -> int:
    rows = np.bincount(tables_of(vault._engine)["visit"].entities)
    return 2 ** int(np.log2(rows.max()))


def the_limit_is_high_if_anybody_needs_it(vault: Vault) -> int:
    rows = np.bincount(tables_of(vault._engine)["visit"].entities)
    return 1024 if (rows > FIRST_LIMIT * 30).any() else 2


@pytest.mark.parametrize("chosen", [the_limit_is_the_most_rows_that_anybody_has, the_limit_is_high_if_anybody_needs_it])
def test_replay_catches_a_limit_that_private_rows_choose(
    chosen: Callable[[Vault], int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = method._Database._count

    def peeking(database: Any, table: WeighedTable, link: Any, limit: int, amount: Any) -> Any:
        return count(database, table, link, limit if limit == FIRST_LIMIT else chosen(table.vault), amount)

    monkeypatch.setattr(method._Database, "_count", peeking)
    monkeypatch.setattr(SizeLaws, "second_limit", lambda *_: 64)
    _, problems = replay(tmp_path, *CASES[0])
    assert "other queries were asked" in problems
