"""Between reading and learning: find columns that equal what the rows around them say, and take them out of the model.

Which columns are looked at follows from the schema. Whether a column agrees is worked out row by row from what was
read, and goes into a vault as a code, on the ledger that the method goes on with.
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privbench.encode.coded import CodedTable
from privbench.errors import SpecError
from privbench.fitting.method import Chosen
from privbench.fitting.reading import ReadDatabase
from privbench.methods.tree.derived import Claim, find_derived, prices
from privbench.methods.tree.method import TREE
from privbench.methods.tree.settings import TreeSettings
from privbench.model.order import generation_order, referenced_ahead
from privbench.privacy.agreement import compared, owners_values, ranks, rows_owned
from privbench.privacy.facts import ColumnFacts, Facts, TableFacts
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import Entropy
from privbench.privacy.vault import Vault
from privbench.schema.derivable import possible
from privbench.schema.derived import Derived
from privbench.schema.spec import Spec
from privbench.schema.types import Kind
from privbench.schema.unit import Neighbours, Protection, key_name

Place = tuple[str, str]


def derived_columns(protection: Protection) -> tuple[str, ...]:
    """Say which columns are derived, and what they equal."""
    columns = [(table.name, column) for table in protection.schema.tables for column in table.columns]
    return tuple(f"{table}.{c.name} = {c.derived}" for table, c in columns if c.derived is not None)


def check_counted(spec: Spec, protection: Protection) -> None:
    """Refuse columns that count rows of a table whose number is promised before its owners' are drawn."""
    columns = [(table.name, column) for table in protection.schema.tables for column in table.columns]
    counting = {(t, c.name): c.derived.rows for t, c in columns if c.derived is not None and c.derived.rows is not None}
    ahead = referenced_ahead(protection, generation_order(spec, protection, owners_first=True)) if counting else ()
    for (table, column), child in counting.items():
        if child in ahead:
            raise SpecError(
                f"tables.{table}.columns.{column}.derived: keys name rows of {child} before they are made, so that "
                "their number is fixed first. Take this out, and give the column a domain; or take such a key out of "
                "`foreign_keys`."
            )


def claims_to_test(spec: Spec, protection: Protection, chosen: Chosen) -> tuple[Claim, ...]:
    """What columns might equal, by the schema; none where the spec wants no tests, or entities may come and go."""
    tested = chosen.method is TREE and isinstance(chosen.settings, TreeSettings) and chosen.settings.derived
    if not tested or protection.neighbours is Neighbours.ADD_REMOVE:
        return ()
    ahead = referenced_ahead(protection, generation_order(spec, protection, owners_first=True))
    return tuple(
        Claim(table=table, column=column, derived=derived)
        for table in protection.order
        for column in protection.attributes(table)
        for derived in possible(protection, table, column)
        if derived.rows not in ahead and _is_likely(protection, table, column, derived)
    )


def places_of(protection: Protection, claims: Iterable[Claim]) -> set[Place]:
    """The columns whose values claims are about."""
    found = set()
    for claim in claims:
        found.add((claim.table, claim.column))
        if claim.derived.owner is not None:
            found.add((protection.owners[claim.table].table, claim.derived.owner))
    return found


def with_tested(
    spec: Spec,
    protection: Protection,
    claims: Sequence[Claim],
    read: ReadDatabase,
    *,
    ledger: Ledger,
    entropy: Entropy,
) -> Spec:
    """The spec in which the columns are derived whose claims hold. Sees noisy answers alone, beside the vault."""
    entities = read.rows[protection.entity]
    if prices(ledger.budget, ledger.currency, entities=entities) is None:
        return spec
    vault = Vault(claim_facts(protection, claims), _coded(protection, claims, read), ledger=ledger, entropy=entropy)
    held = find_derived(vault, claims, entities=entities)
    return spec.with_derived({(claim.table, claim.column): claim.derived for claim in held})


def claim_facts(protection: Protection, claims: Iterable[Claim]) -> Facts:
    """What is public of the codes of claims: how many there are."""
    columns: dict[str, dict[str, ColumnFacts]] = {table: {} for table in protection.order}
    for claim in claims:
        columns[claim.table][claim.feature.name] = ColumnFacts(size=claim.feature.size, ordered=False)
    tables = {t: TableFacts(name=t, columns=found, rows=None, cap=None) for t, found in columns.items()}
    return Facts(entity=protection.entity, neighbours=protection.neighbours, tables=tables, links=())


def _is_likely(protection: Protection, table: str, column: str, derived: Derived) -> bool:
    """Copies are looked for under the same name, ranks where owners may have several rows; in a key of one nothing."""
    said = protection.schema.table(table)
    if (column,) in said.keys:
        return False
    if derived.rank is not None:
        owner = protection.owners[table].columns
        return not any(set(key) <= set(owner) for key in said.keys)
    if derived.owner is None:
        return True
    return derived.owner == column and column in protection.attributes(protection.owners[table].table)


def _coded(protection: Protection, claims: Iterable[Claim], read: ReadDatabase) -> dict[str, CodedTable]:
    codes: dict[str, dict[str, NDArray[np.uint8]]] = {table: {} for table in protection.order}
    expected: dict[tuple[str, Derived], pa.Array] = {}
    for claim in claims:
        if (claim.table, claim.derived) not in expected:
            expected[claim.table, claim.derived] = _expected(protection, claim.table, claim.derived, read)
        plain = _plain(protection.schema.table(claim.table).column(claim.column).type.kind, claim.derived)
        codes[claim.table][claim.feature.name] = compared(
            read.raw[claim.table][claim.column], expected[claim.table, claim.derived], plain=plain
        )
    return {t: CodedTable(codes=found, keys={}, entities=read.private[t].entities) for t, found in codes.items()}


def _plain(kind: Kind, derived: Derived) -> int | None:
    """The number that a column may well equal by chance: the first rank, no rows, 0 or false in a copy."""
    if derived.rank is not None:
        return derived.rank
    return {Kind.INTEGER: 0, Kind.FLOAT: 0, Kind.BOOLEAN: False}.get(kind)


def _expected(protection: Protection, table: str, derived: Derived, read: ReadDatabase) -> pa.Array:
    if derived.rows is not None:
        return rows_owned(_owners(protection, derived.rows, read), len(read.private[table].entities))
    owners = _owners(protection, table, read)
    if derived.owner is not None:
        return owners_values(owners, read.raw[protection.owners[table].table][derived.owner])
    return ranks(owners, first=derived.rank or 0)


def _owners(protection: Protection, table: str, read: ReadDatabase) -> NDArray[np.int64]:
    return read.private[table].keys[key_name(table, protection.owners[table])]
