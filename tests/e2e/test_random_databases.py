"""Random databases from draft to evaluate: no traceback, nothing fails after budget was spent, few are refused.

`PRIVBENCH_RANDOM_DATABASES=200 pytest tests/e2e/test_random_databases.py` walks all of them; `make test` walks the
first 20 (decision 0064).
"""

import os
from pathlib import Path

import pytest

from privbench.errors import BudgetError, SchemaError, SpecError

from .random_databases import random_database
from .walk import MODES, Refused, walk

pytestmark = pytest.mark.slow

WALKED = int(os.environ.get("PRIVBENCH_RANDOM_DATABASES", "20"))
TOGETHER = 10
MOST_REFUSED = 0.15


@pytest.mark.parametrize("first", range(0, WALKED, TOGETHER))
def test_walk(first: int, tmp_path: Path) -> None:
    refused = []
    for number in range(first, min(first + TOGETHER, WALKED)):
        for mode in MODES:
            why = walk(random_database(number), tmp_path / str(number), mode, seed=number)
            if why is not None:
                _check_refusal(why, number, mode, tmp_path / str(number))
                refused.append((number, mode, why))
    assert len(refused) <= MOST_REFUSED * TOGETHER * len(MODES), refused


def _check_refusal(why: Refused, number: int, mode: str, folder: Path) -> None:
    """What a rehearsal refuses would have failed after budget was spent; all else is told by its kind."""
    if "rehearsal" not in str(why.error):
        assert isinstance(why.error, SchemaError | SpecError | BudgetError), f"{number} {mode}: {why}"
        return
    with pytest.raises(Exception):  # noqa: B017, PT011  any: the rehearsal foretold some failure
        walk(random_database(number), folder, mode, seed=number, rehearse=False)
