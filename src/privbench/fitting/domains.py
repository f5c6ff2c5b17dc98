"""Between reading and learning: find the domains that the spec leaves to the budget, and code their columns.

What comes out is a spec in which every domain is known, with its origin, and the tables with all of their codes.
"""

from collections.abc import Mapping
from fractions import Fraction

from privbench.encode.narrow import narrowed, rules_about, widest_domain
from privbench.errors import SpecError
from privbench.methods.domains.coarse import coarse_domain
from privbench.privacy.vault import Vault
from privbench.schema.domain import Domain, Origin
from privbench.schema.spec import Spec
from privbench.schema.tables import Place
from privbench.schema.types import Kind, SqlType, difference_type
from privbench.schema.unit import Protection

THRESHOLDS = Fraction(1, 4)
"""The part of delta that goes to thresholds: less would raise them by a few percent, more would cost all else rho."""

_NO_LIST = """a list of strings cannot be found without a delta. Choose for each column, in a spec by `privbench draft`:
- `domain: {values: [..], other: true}`: the list, as far as it is public knowledge;
- `domain: {text: [0, 8, 16, 32]}` to have strings made up, or `drop: true` to leave the column out;
- `--domains data` to read the lists from the data, and review them;
- `--delta 1e-9` to find the strings that many entities have, which are then published as they are."""


def threshold_part(delta: Fraction, spec: Spec, protection: Protection) -> Fraction:
    """The part of delta that is kept for the thresholds of frequent values, if any may be looked for."""
    return delta * THRESHOLDS if spec.wanted(protection) else Fraction(0)


def check_wanted(spec: Spec, protection: Protection, delta: Fraction = Fraction(0)) -> None:
    """Refuse strings whose list is to be found without a delta: each published string would be that of an entity."""
    if delta:
        return
    strings = [f"{t}.{c}" for (t, c), kind in wanted_types(spec, protection).items() if kind.kind is Kind.TEXT]
    if strings:
        raise SpecError(f"no domain for {', '.join(strings)}: {_NO_LIST}")


def wanted_types(spec: Spec, protection: Protection) -> dict[Place, SqlType]:
    """The columns whose domain is to be found, and their types; of relative columns those of the differences."""
    columns = {(t, c): protection.schema.table(t).column(c) for t, c in spec.wanted(protection)}
    return {p: c.type if c.relative_to is None else difference_type(c.type) for p, c in columns.items()}


def with_found(spec: Spec, protection: Protection, vault: Vault, types: Mapping[Place, SqlType]) -> Spec:
    """The spec with every domain that was to be found. Sees noisy answers alone."""
    from privbench.methods.domains.find import find_domains  # noqa: PLC0415  not every fit finds domains

    modelled = sum(len(protection.attributes(table)) for table in protection.order)
    domains = find_domains(vault, types, modelled=modelled)
    return spec.with_domains(
        {
            place: (inside_rules(protection, place, f.domain), Origin.PRIVATE if f.paid else Origin.SCHEMA)
            for place, f in domains.items()
        }
    )


def inside_rules(protection: Protection, place: Place, found: Domain) -> Domain:
    """A domain that was found, as far as rules leave it, which are public; that of the type where they leave nothing.

    Noise may find what no row has. That the rules leave something of the type was checked before anything was spent.
    """
    table = protection.schema.table(place[0])
    kind, rules = table.column(place[1]).type, rules_about(table, place[1])
    choices = [found, coarse_domain(kind), *(() if kind.kind is Kind.TEXT else (widest_domain(kind),))]
    inside = (narrowed(".".join(place), kind, domain, rules) for domain in choices)
    return next((domain for domain in inside if domain is not None), found)
