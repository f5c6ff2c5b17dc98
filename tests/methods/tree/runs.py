"""Runs of method `tree` on the made database, in every privacy measure, and all that a run publishes."""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from privbench.encode.coded import CodedDatabase, CodedTable
from privbench.encode.keys import NULL
from privbench.methods.method import TableModel, silent
from privbench.methods.tree.method import learn
from privbench.methods.tree.settings import TreeSettings
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import Facts
from privbench.privacy.noise import TestEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.receipt import open_ledger
from privbench.privacy.vault import Answer, Vault
from privbench.schema.unit import Neighbours

from ..made import Overruled, database, facts, released

__all__ = ["TableModel", "released"]

DELTA = Fraction(1, 10**6)
RICH = Fraction(400)
"""Enough for pairs of columns to be chosen in a small database."""


def vault_of(
    data: CodedDatabase | None,
    *,
    public: Facts | None = None,
    epsilon: Fraction = RICH,
    delta: Fraction = Fraction(0),
    seed: int = 1,
    tape: Sequence[Answer] | None = None,
) -> Vault:
    """A vault on data, on a tape, or on data that a tape overrules."""
    ledger, entropy = open_ledger(epsilon, delta, (public or facts()).neighbours), TestEntropy(seed)
    engine = None if data is None else NumpyEngine(one_part(data), entropy=entropy)
    if engine is not None and tape is not None:
        return Overruled(engine, ledger=ledger, entropy=entropy, answers=tape)
    return Vault(engine, ledger=ledger, entropy=entropy, tape=tape)


def run(vault: Vault, settings: TreeSettings | None = None, *, public: Facts | None = None) -> dict[str, TableModel]:
    """Learn all tables."""
    return learn(vault, public or facts(), settings or TreeSettings(), silent)


def facts_for(persons: int, neighbours: Neighbours = Neighbours.REPLACE) -> Facts:
    """What is public of the made database with so many persons."""
    public = facts(neighbours)
    if neighbours is Neighbours.ADD_REMOVE:
        return public
    tables = {**public.tables, "person": replace(public.tables["person"], rows=persons)}
    links = tuple(replace(k, slots=persons) if k.target == "person" else k for k in public.links)
    return replace(public, tables=tables, links=links)


def neighbour(data: dict[str, CodedTable]) -> dict[str, CodedTable]:
    """One person's codes changed, and all keys of their visits moved."""
    for coded in data.values():
        mine = coded.entities == 17
        for codes in coded.codes.values():
            codes[mine] = 0
    visit = data["visit"]
    visit.keys["visit.guest"][visit.entities == 17] = 3
    return data


def without_keys(data: dict[str, CodedTable]) -> dict[str, CodedTable]:
    """All keys NULL: every row of an owned table is an entity of its own."""
    free = len(data["person"].entities)
    for name, coded in data.items():
        for key in coded.keys.values():
            key[:] = NULL
        if name != "person":
            coded.entities[:] = free + np.arange(len(coded.entities))
            free += len(coded.entities)
    return data


def one_owner(data: dict[str, CodedTable]) -> dict[str, CodedTable]:
    """One entity has every visit and note."""
    for coded in (data["visit"], data["note"]):
        coded.entities[:] = 0
        for key in coded.keys.values():
            key[:] = 0
    return data


WEIRD = {
    "neighbour": lambda: neighbour(database(5)),
    "unrelated": lambda: database(99, visits=1200),
    "constant": lambda: database(8, visits=500, extreme=True),
    "all keys NULL": lambda: without_keys(database(5)),
    "no visits": lambda: database(7, visits=0),
    "one visit": lambda: database(7, visits=1),
    "one entity has it all": lambda: one_owner(database(5)),
    "one person": lambda: database(3, persons=1, visits=5),
    "one person and nothing else": lambda: database(3, persons=1, visits=0),
}
