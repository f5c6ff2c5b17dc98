"""Between reading and learning: find the domains that the spec leaves to the budget, and code their columns.

Raw values go into a vault of their own, on the ledger that the method goes on with. What comes out is a spec in which
every domain is known, with its origin, and the tables with all of their codes.
"""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa

from privbench.encode.codec import Codec
from privbench.encode.coded import CodedTable
from privbench.errors import SpecError
from privbench.fitting.reading import Codecs, ReadDatabase
from privbench.methods.domains.find import find_domains
from privbench.privacy.domain_vault import DomainVault, Place
from privbench.privacy.ledger import Ledger
from privbench.privacy.noise import Entropy
from privbench.privacy.raw import RawColumn
from privbench.schema.domain import Origin
from privbench.schema.spec import Spec
from privbench.schema.types import Kind, SqlType
from privbench.schema.unit import Protection

THRESHOLDS = Fraction(1, 4)
"""The part of delta that goes to thresholds: less would raise them by a few percent, more would cost all else rho."""


def threshold_part(delta: Fraction, spec: Spec, protection: Protection) -> Fraction:
    """The part of delta that is kept for the thresholds of frequent values, if any may be looked for."""
    return delta * THRESHOLDS if spec.wanted(protection) else Fraction(0)


def check_wanted(spec: Spec, protection: Protection, delta: Fraction = Fraction(0)) -> None:
    """Refuse text whose values are to be found without a delta: whatever is published of it is somebody's text."""
    if delta:
        return
    texts = [f"{t}.{c}" for (t, c), kind in wanted_types(spec, protection).items() if kind.kind is Kind.TEXT]
    if texts:
        raise SpecError(
            f"no domain for {', '.join(texts)}: a list of texts cannot be found without a delta. Write a spec with "
            "`privbench draft` and say under each of them in the spec `domain: {values: [..], other: true}` (the list, "
            "as far as it is public knowledge), `domain: {text: [0, 8, 16, 32]}` (texts are made up) or `drop: true`; "
            "or let `--domains data` read the lists from the data, and review them; or find with `--delta 1e-9` the "
            "texts that many entities have, which are then published as they are."
        )


def wanted_types(spec: Spec, protection: Protection) -> dict[Place, SqlType]:
    """The columns whose domain is to be found, and their types."""
    return {(t, c): protection.schema.table(t).column(c).type for t, c in spec.wanted(protection)}


def open_domain_vault(
    types: Mapping[Place, SqlType], read: ReadDatabase, *, ledger: Ledger, entropy: Entropy
) -> DomainVault:
    """Lock the raw columns away."""
    data = {(t, c): RawColumn(kind, read.raw[t][c], read.private[t].entities) for (t, c), kind in types.items()}
    return DomainVault(types, data, ledger=ledger, entropy=entropy)


def with_found(spec: Spec, protection: Protection, vault: DomainVault) -> Spec:
    """The spec with every domain that was to be found. Sees noisy answers alone."""
    found = find_domains(vault, modelled=sum(len(protection.attributes(table)) for table in protection.order))
    return spec.with_domains(
        {place: (f.domain, Origin.PRIVATE if f.paid else Origin.SCHEMA) for place, f in found.items()}
    )


def with_codes(read: ReadDatabase, codecs: Codecs) -> ReadDatabase:
    """What was read, with raw columns in codes."""
    private = {name: _coded(table, read.raw[name], codecs[name]) for name, table in read.private.items()}
    return replace(read, private=private, raw={})


def _coded(table: CodedTable, raw: Mapping[str, pa.Array], codecs: Mapping[str, Codec]) -> CodedTable:
    """A table with all of its codes, in the order of its columns."""
    codes = {name: codec.encode(raw[name]) if name in raw else table.codes[name] for name, codec in codecs.items()}
    return CodedTable(codes=codes, keys=table.keys, entities=table.entities)
