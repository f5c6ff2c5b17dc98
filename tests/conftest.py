"""Settings of all tests: nothing random that does not repeat.

Hypothesis tries the same examples in every run, however slow the machine is: a few with `--hypothesis-profile few`,
as `make check` does, others with `--hypothesis-profile search`. `fit` draws the same noise whenever a test, a command
or an example passes none: only what the package starts as a process of its own still draws from the operating system.
"""

from collections import defaultdict
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from privbench.privacy.noise import OsEntropy

from .seeded import SeededEntropy
from .servers.mariadb import mariadb, mariadb_server  # noqa: F401  fixtures of any test
from .servers.postgres import postgres, postgres_server  # noqa: F401  fixtures of any test
from .servers.spark import jdbc_driver, spark, spark_home  # noqa: F401  fixtures of any test

settings.register_profile("privbench", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", settings.get_profile("privbench"), derandomize=False)
settings.register_profile("few", settings.get_profile("privbench"), max_examples=20)
settings.load_profile("privbench")

FAST_CASES = 3
"""So many cases of a test that is marked `mostly_slow` are fast ones."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of `mostly_slow` tests as slow, but for a few that are spread evenly over all."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("mostly_slow"):
            cases[item.nodeid.split("[")[0]].append(item)
    for found in cases.values():
        fast = {at * len(found) // FAST_CASES for at in range(FAST_CASES)}
        for at, item in enumerate(found):
            if at not in fast:
                item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="session")
def own_budget_record(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What tests spend is not recorded where the user's spending is."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PRIVBENCH_BUDGET_RECORD", str(tmp_path_factory.mktemp("state") / "privbench" / "budget.jsonl"))
        yield


@pytest.fixture(autouse=True, scope="session")
def seeded_noise() -> Iterator[None]:
    """Every fit starts the same stream, so that no test depends on those before it."""
    try:
        from privbench.fitting import fit
    except ImportError:  # then nothing can be fitted, and its own tests say why: those of lower layers still run
        yield
        return
    assert fit.OsEntropy is OsEntropy
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "OsEntropy", SeededEntropy)
        yield
