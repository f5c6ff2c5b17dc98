"""A made database of persons, visits and notes with keys of every kind, and runs of the paper's method on it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privbench.encode.coded import CodedDatabase, CodedTable
from privbench.encode.keys import NULL, entities_by_owner, own_entities
from privbench.methods.method import TableModel, silent
from privbench.methods.paper.method import learn
from privbench.methods.paper.settings import PaperSettings
from privbench.privacy.engine import NumpyEngine
from privbench.privacy.facts import ColumnFacts, Facts, LinkFacts, TableFacts
from privbench.privacy.noise import Entropy, TestEntropy
from privbench.privacy.parts import one_part
from privbench.privacy.receipt import PublicFacts, make_receipt, open_ledger
from privbench.privacy.vault import Answer, Vault
from privbench.schema.domain import Origin
from privbench.schema.tables import Column, ForeignKey, Schema, Table
from privbench.schema.types import parse_type
from privbench.schema.unit import LinkKind, Neighbours, Protection, protect
from privbench.spn.store import pack

EPSILON = Fraction(4)
PERSONS, TOWNS = 300, 7
SETTINGS = PaperSettings(min_rows=60, dependence_threshold=Fraction(1, 20))
"""Small enough blocks, and a low enough threshold, for sums and products on made data."""

COLUMNS: dict[str, dict[str, ColumnFacts]] = {
    "person": {
        "age": ColumnFacts(size=20, ordered=True),
        "sex": ColumnFacts(size=2, ordered=False),
        "city": ColumnFacts(size=300, ordered=False),
        "income": ColumnFacts(size=40, ordered=True),
    },
    "visit": {
        "cost": ColumnFacts(size=30, ordered=True),
        "kind": ColumnFacts(size=4, ordered=False),
        "one": ColumnFacts(size=1, ordered=True),
    },
    "note": {},
}
KEYS: dict[str, dict[str, tuple[str, LinkKind]]] = {
    "person": {"boss": ("person", LinkKind.REFERENCE)},
    "visit": {
        "person": ("person", LinkKind.OWNER),
        "guest": ("person", LinkKind.REFERENCE),
        "town": ("town", LinkKind.CATEGORY),
        "previous": ("visit", LinkKind.REFERENCE),
    },
    "note": {"visit": ("visit", LinkKind.OWNER), "about": ("visit", LinkKind.REFERENCE)},
}


def facts(neighbours: Neighbours = Neighbours.REPLACE, *, caps: Mapping[str, int] | None = None) -> Facts:
    """What is public of it."""
    replace = neighbours is Neighbours.REPLACE
    slots = {"town": TOWNS, **({"person": PERSONS} if replace else {})}
    return Facts(
        entity="person",
        neighbours=neighbours,
        tables={
            t: TableFacts(
                name=t, columns=columns, rows=PERSONS if t == "person" and replace else None, cap=(caps or {}).get(t)
            )
            for t, columns in COLUMNS.items()
        },
        links=tuple(
            LinkFacts(
                name=f"{t}.{name}",
                table=t,
                columns=(name,),
                target=target,
                kind=kind,
                slots=slots.get(target),
                nullable=name != "town",
                unique=False,
            )
            for t, keys in KEYS.items()
            for name, (target, kind) in keys.items()
        ),
    )


def database(seed: int, *, persons: int = PERSONS, visits: int = 700, extreme: bool = False) -> dict[str, CodedTable]:
    """Two sorts of persons, visits of random persons or nobody, notes on random visits; or all codes at their end."""
    rng = np.random.default_rng(seed)
    rows = {"person": persons, "visit": visits, "note": visits // 2}
    sort = {t: rng.integers(0, 2, n) for t, n in rows.items()}
    codes = {
        t: {c: _codes(f.size, sort[t], rng, extreme=extreme) for c, f in columns.items()}
        for t, columns in COLUMNS.items()
    }
    targets = {**rows, "town": TOWNS}
    keys = {
        t: {
            f"{t}.{k}": _key(rows[t], targets[to], rng, nulls=k != "town", extreme=extreme) for k, (to, _) in of.items()
        }
        for t, of in KEYS.items()
    }
    owner = own_entities(persons)
    visitors, free = entities_by_owner(keys["visit"]["visit.person"], owner, next_entity=persons)
    writers, _ = entities_by_owner(keys["note"]["note.visit"], visitors, next_entity=free)
    entities = {"person": owner, "visit": visitors, "note": writers}
    return {t: CodedTable(codes=codes[t], keys=keys[t], entities=entities[t]) for t in rows}


def _codes(
    size: int, sort: NDArray[np.int64], rng: np.random.Generator, *, extreme: bool
) -> NDArray[np.unsignedinteger]:
    kind = np.uint8 if size <= 256 else np.uint16
    if extreme:
        return np.full(len(sort), size - 1, kind)
    half = max(size // 2, 1)
    return ((sort * (size - half) + rng.integers(0, half, len(sort))) % size).astype(kind)


def _key(rows: int, targets: int, rng: np.random.Generator, *, nulls: bool, extreme: bool) -> NDArray[np.int64]:
    if targets == 0:
        return np.full(rows, NULL)
    if extreme:
        return np.full(rows, targets - 1)
    found = rng.integers(0, targets, rows)
    return np.where(rng.random(rows) < 0.1, NULL, found) if nulls else found


class Overruled(Vault):
    """A vault that measures its own data but answers from the tape of another run."""

    def __init__(self, *arguments: Any, answers: Sequence[Answer], **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._others = iter(answers)

    def _recorded(self, answer: Answer | None) -> Answer:
        super()._recorded(answer)
        self.answers[-1] = next(self._others)
        return self.answers[-1]


def vault_of(
    data: CodedDatabase | None,
    *,
    public: Facts | None = None,
    seed: int = 1,
    tape: Sequence[Answer] | None = None,
    entropy: Entropy | None = None,
) -> Vault:
    """A vault on data, on a tape, or on data that a tape overrules."""
    ledger = open_ledger(EPSILON, Fraction(0), (public or facts()).neighbours)
    entropy = entropy or TestEntropy(seed)
    engine = None if data is None else NumpyEngine(one_part(data), entropy=entropy)
    if engine is not None and tape is not None:
        return Overruled(engine, ledger=ledger, entropy=entropy, answers=tape)
    return Vault(engine, ledger=ledger, entropy=entropy, tape=tape)


def cap(vault: Vault, caps: Mapping[str, int]) -> None:
    """Cap the rows of some tables, owners first."""
    for table, most in caps.items():
        vault.cap_rows(table, most, facts().owner_link(table))


def run(vault: Vault, settings: PaperSettings = SETTINGS, *, public: Facts | None = None) -> dict[str, TableModel]:
    """Learn all tables."""
    return learn(vault, public or facts(), settings, silent)


def released(models: Mapping[str, TableModel]) -> dict[str, object]:
    """All that is published of the models, down to the bytes."""
    out: dict[str, object] = {}
    for name, model in models.items():
        header, arrays = pack(model.network)
        links = {key: plain(link) for key, link in model.links.items()}
        out[name] = (
            json.dumps(header),
            {k: a.tobytes() for k, a in arrays.items()},
            model.rows,
            model.rows_error,
            links,
        )
    return out


def plain(value: Any) -> object:
    """A value down to bytes and names of types, so that two of them can be compared whatever they are."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if is_dataclass(value):
        return type(value).__name__, {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(found) for key, found in value.items()}
    return [plain(found) for found in value] if isinstance(value, list | tuple) else value


def protection(neighbours: Neighbours = Neighbours.REPLACE) -> Protection:
    """Who is protected in this database."""
    integer = parse_type("INTEGER")
    ids = ("person", "visit", "town")

    def table(name: str) -> Table:
        keys = KEYS.get(name, {})
        names = [*(["id"] if name in ids else []), *COLUMNS.get(name, {}), *keys]
        return Table(
            name=name,
            columns=tuple(Column(name=c, type=integer) for c in names),
            primary_key=("id",) if name in ids else (),
            foreign_keys=tuple(ForeignKey(columns=(k,), table=to, references=("id",)) for k, (to, _) in keys.items()),
        )

    return protect(
        Schema(tables=tuple(table(name) for name in (*COLUMNS, "town"))),
        entity="person",
        neighbours=neighbours,
        owners={"visit": ("person",), "note": ("visit",)},
        public=["town"],
    )


def receipt(vault: Vault, *, public: Facts | None = None) -> dict[str, Any]:
    """The receipt of a run, as it comes back from a file."""
    public = public or facts()
    made = make_receipt(
        protection=protection(public.neighbours),
        facts=PublicFacts(
            domains={(t, c): Origin.DECLARED for t, columns in COLUMNS.items() for c in columns},
            sizes={t: f.rows for t, f in public.tables.items() if f.rows is not None},
            rows_per_entity={t: vault.cap_or_none(t) for t in public.tables},
            declared_caps=[t for t in public.tables if t != public.entity],
            orphans="error",
            parameters={"method": "paper"},
        ),
        epsilon=EPSILON,
        ledger=vault.ledger,
        private_noise=vault.noise_is_private,
        software="privbench 0",
        coins=(1, 2),
    )
    read: dict[str, Any] = json.loads(json.dumps(made))
    return read
