"""Parts of a machine that some tests need: a browser, a database server."""

import os
from typing import NoReturn

import pytest


def missing(part: str, reason: str) -> NoReturn:
    """Skip a test that needs a part, or fail it where PRIVBENCH_REQUIRE names the part."""
    if part in os.environ.get("PRIVBENCH_REQUIRE", "").split(","):
        pytest.fail(reason)
    pytest.skip(reason)
