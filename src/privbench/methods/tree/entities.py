"""How many entities there are, where that is private, and how many rows have no owner: each is an entity of its own."""

from fractions import Fraction

from privbench.methods.tree.weighed import WeighedTable
from privbench.privacy.facts import Facts, LinkFacts
from privbench.privacy.features import null_key, whole_axis
from privbench.privacy.vault import Vault

COUNT_SHARE = Fraction(1, 100)
"""Share of the budget for the number of entities, where entities may come and go."""
CLEAR_UNOWNED = 3.0
"""A number of rows without owner below this many noise scales is taken as none."""


def count_entities(vault: Vault, facts: Facts) -> float:
    """The number of entities: public under `replace`, else measured."""
    known = facts.tables[facts.entity].rows
    if known is not None:
        return float(known)
    amount = (vault.ledger.budget - vault.ledger.total) * COUNT_SHARE
    table = WeighedTable(vault=vault, table=facts.entity, scope=vault.ledger.root.sequential("number of entities"))
    return max(table.measure([], amount).total, 1.0)


def unowned_rows(link: LinkFacts, table: WeighedTable, amount: Fraction) -> float:
    """About how many rows have no owner; nothing is measured for no amount."""
    if not amount:
        return 0.0
    measured = table.measure([whole_axis(null_key(link))], amount)
    count = float(measured.counts[1])
    return count if count > CLEAR_UNOWNED * measured.noise.scale else 0.0
