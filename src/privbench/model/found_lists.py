"""The columns of texts that were left to the budget: whose lists were found and are published, and whose were not."""

from collections.abc import Iterator

from privbench.methods.domains.budget import STRING_REMEDIES
from privbench.model.model import Model
from privbench.schema.domain import Domain, Origin, Values
from privbench.schema.types import Kind
from privbench.spn.infer import marginal

MISSED = 0.1
"""A list is worth a warning if a larger share of the texts is not in it."""


def found_lists(model: Model) -> dict[str, int]:
    """How many texts each list has (by `table.column`) that was found with budget, and is published as it is."""
    return {f"{t}.{c}": len(domain.values) for t, c, domain in _texts(model) if isinstance(domain, Values)}


def list_warnings(model: Model) -> list[str]:
    """Say for which columns no list was found, and which lists leave out a good part."""
    made_up = [f"{t}.{c}" for t, c, domain in _texts(model) if not isinstance(domain, Values)]
    shares = {f"{t}.{c}": _unlisted(model, t, c) for t, c, domain in _texts(model) if isinstance(domain, Values)}
    poor = [f"{name} ({share:.0%} of its texts)" for name, share in shares.items() if share > MISSED]
    lines = []
    if made_up:
        lines.append(f"Too few entities share a text for a list of {', '.join(made_up)}: texts there are made up.")
    if poor:
        lines.append(f"Lists that were found leave out a good part, for which texts are made up: {', '.join(poor)}.")
    return [*lines, STRING_REMEDIES] if lines else []


def _texts(model: Model) -> Iterator[tuple[str, str, Domain]]:
    """Table, column and domain of the texts whose domain was found with budget."""
    for table in model.protection.order:
        for column in model.protection.attributes(table):
            column_spec, kind = (
                model.spec.column(table, column),
                model.protection.schema.table(table).column(column).type.kind,
            )
            if kind is Kind.TEXT and column_spec.origin is Origin.PRIVATE and column_spec.domain is not None:
                yield table, column, column_spec.domain


def _unlisted(model: Model, table: str, column: str) -> float:
    """The share of OTHER among texts, by the model."""
    codec, shares = model.codecs[table][column], marginal(model.tables[table].network, column)
    if codec.other_code is None:
        return 0.0
    nulls = 0.0 if codec.null_code is None else float(shares[codec.null_code])
    return float(shares[codec.other_code]) / max(1 - nulls, 1e-9)
