"""A real Spark cluster for tests: two executors, each a process of its own, on this machine.

One session serves all tests of a worker of pytest, since it takes seconds to start. Without Java or PySpark a test is
skipped, or fails where PRIVBENCH_REQUIRE names `spark`; likewise `jdbc` for PostgreSQL's driver for Java.
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
JDBC_DRIVER = Path("/usr/share/java/postgresql.jar")
"""That of PostgreSQL, where Debian puts it (libpostgresql-jdbc-java)."""

QUIET = "FATAL"
"""The level of logs that the settings of the machine say; ours would be another."""


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
    (home / "conf").mkdir()
    (home / "conf" / "spark-defaults.conf").write_text("".join(f"{k} {v}\n" for k, v in _defaults().items()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(home))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        yield home


def _defaults() -> dict[str, str]:
    """Settings of the machine: Java lives in an odd zone, says little, and knows the driver if that is there."""
    zone = {f"spark.{side}.extraJavaOptions": "-Duser.timezone=Asia/Kolkata" for side in ("driver", "executor")}
    return zone | {"spark.log.level": QUIET} | ({"spark.jars": str(JDBC_DRIVER)} if JDBC_DRIVER.exists() else {})


@pytest.fixture
def jdbc_driver() -> None:
    """PostgreSQL's driver for Java, which sessions of tests load."""
    if not JDBC_DRIVER.exists():
        missing("jdbc", f"{JDBC_DRIVER} is not there: install libpostgresql-jdbc-java")


@pytest.fixture(scope="session")
def spark(spark_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """A session on a cluster of two executors. It is the running one, so that a fit finds it."""
    from privbench.spark.session import spark_session

    with spark_session(MASTER, tmp_path_factory.mktemp("scratch")) as session:
        yield session
