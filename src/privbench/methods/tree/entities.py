"""How many entities there are, where that is private, and how many rows have no owner: each is an entity of its own."""

from fractions import Fraction

from privbench.privacy.events import UNITS
from privbench.privacy.facts import LinkFacts
from privbench.privacy.features import null_key, whole_axis
from privbench.privacy.vault import Vault
from privbench.privacy.weighted import WeightedQueries

COUNT_SHARE = Fraction(1, 100)
"""Share of the budget for the number of entities, where entities may come and go."""
CLEAR = 3.0
"""A number of rows without owner below this many noise scales is taken as none."""


def count_entities(vault: Vault) -> float:
    """The number of entities: public under `replace`, else measured."""
    table = vault.facts.tables[vault.facts.entity]
    if table.rows is not None:
        return float(table.rows)
    queries = WeightedQueries(vault, table.name, vault.ledger.root.sequential("number of entities"))
    everyone = queries.total(amount=(vault.ledger.budget - vault.ledger.total) * COUNT_SHARE)
    return max(everyone / UNITS, 1.0)


def unowned_rows(link: LinkFacts, queries: WeightedQueries, amount: Fraction) -> float:
    """About how many rows have no owner; nothing is measured for no amount."""
    if not amount:
        return 0.0
    feature = null_key(link)
    count = float(queries.histogram([whole_axis(feature)], amount=amount)[1] / UNITS)
    return count if count > CLEAR * queries.noise([feature], amount).scale else 0.0
