"""Sizes that a publisher declares public: never those of lookups, whose rows are copied."""

from pathlib import Path

import pytest

from privbench.fitting.draft import draft
from privbench.fitting.fit import fit
from privbench.schema.spec import Sizes

from ..forging import write_shop
from ..seeded import SeededEntropy

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
