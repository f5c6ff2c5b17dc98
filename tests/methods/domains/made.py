"""Vaults on columns without codes, one table, each row an entity of its own unless said otherwise."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.coded import CodedTable
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import TestEntropy as FixedEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.vault import Vault
from privbench.schema.types import SqlType

Place = tuple[str, str]
PLACE = ("t", "a")


def vault_on(
    kind: SqlType,
    columns: Mapping[str, Sequence[Any]],
    *,
    ledger: Ledger,
    seed: int = 0,
    entities: NDArray[np.int64] | None = None,
) -> Vault:
    """A vault on columns of one type in table `t`."""
    entropy = FixedEntropy(seed)
    rows = np.arange(len(next(iter(columns.values())))) if entities is None else entities
    raw = {"t": {name: pa.array(values, kind.arrow) for name, values in columns.items()}}
    table = CodedTable(codes={}, keys={}, entities=rows)
    return Vault(NumpyEngine(one_part({"t": table}, raw), entropy=entropy), ledger=ledger, entropy=entropy)


def replaying(first: Vault, *, seed: int = 9) -> Vault:
    """A vault that repeats the answers of another one, without its rows."""
    before = first.ledger
    ledger = Ledger(before.budget, before.measure, thresholds=before.thresholds)
    return Vault(None, ledger=ledger, entropy=FixedEntropy(seed), tape=first.answers)


def costs(vault: Vault, kind: str, column: str) -> list[Fraction]:
    """What was paid for queries of a kind about a column."""
    events = [n for n in vault.ledger.to_json()["nodes"] if n["kind"] == "event" and n["query"]["kind"] == kind]
    return [Fraction(n.get("epsilon") or n["rho"]) for n in events if n["query"].get("column") == column]
