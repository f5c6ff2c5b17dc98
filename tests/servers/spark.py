"""A real Spark cluster for tests: two executors, each a process of its own, on this machine.

One session serves all tests of a worker of pytest, since it takes seconds to start. Without Java or PySpark a test is
skipped, or fails where PRIVBENCH_REQUIRE names `spark`.
"""

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ..required import missing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local-cluster[2,1,1024]"
"""Two executors with a core and a GiB each."""


@pytest.fixture(scope="session")
def spark_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The programs of Spark, in a folder that workers may write to: such a cluster leaves logs beside its programs."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        missing("spark", "PySpark is not installed")
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        missing("spark", "Java is not installed")
    home = tmp_path_factory.mktemp("spark")
    for path in Path(found.origin).parent.iterdir():
        (home / path.name).symlink_to(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(home))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        yield home


@pytest.fixture(scope="session")
def spark(spark_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A session on a cluster of two executors. It is the running one, so that a fit finds it."""
    from privbench.spark.session import spark_session

    with spark_session(MASTER, tmp_path_factory.mktemp("scratch")) as session:
        yield session
