"""The paper's method: what all methods share (`database.py`), with a network per table by PrivSPN."""

from fractions import Fraction

import numpy as np

from privbench.methods.database import learn_database
from privbench.methods.method import Learnt, Method, Progress, TableModel
from privbench.methods.paper.plan import Task
from privbench.methods.paper.settings import PaperSettings, paper_settings
from privbench.methods.paper.tree import learn_network
from privbench.methods.size import Size
from privbench.privacy.partition import Block
from privbench.privacy.vault import Vault


def learn(vault: Vault, settings: PaperSettings, progress: Progress) -> dict[str, TableModel]:
    """Learn every private table, spending at most the ledger's budget."""
    rng = np.random.default_rng(vault.entropy.words(4))

    def learn_table(block: Block, size: Size, epsilon: Fraction) -> Learnt:
        columns = tuple(vault.facts.tables[block.table].columns)
        task = Task(block=block, columns=columns, rows=round(size.rows), epsilon=epsilon)
        return learn_network(vault, task, settings, rng=rng, progress=progress)

    return learn_database(vault, learn_table, network_share=settings.network_share, progress=progress)


PAPER = Method(name="paper", read_settings=paper_settings, learn=learn, parts_rows=True)
