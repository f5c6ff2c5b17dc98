"""A Spark session for private rows: found or started, set up, and stopped if it was started here.

PySpark is loaded here and only when a session is asked for. What is set here can be set otherwise in the ways of Spark
(`spark-submit --conf`, `spark-defaults.conf`), but for what makes answers the same everywhere.
"""

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from privbench.errors import ServerError, SpecError, first_line

if TYPE_CHECKING:
    from pyspark.conf import SparkConf
    from pyspark.sql import SparkSession

HERE = "local[*]"
"""The master where none is named: this machine, all of its cores."""
ARROW_ROWS = 65_536
"""Rows of one batch between Spark and Python."""

_USUAL = {
    "spark.io.encryption.enabled": "true",  # with a key in memory alone: what a crash leaves on disks cannot be read
    "spark.log.level": "ERROR",
    "spark.ui.showConsoleProgress": "false",
}
"""Set where nobody else did."""
_ON_THIS_MACHINE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
}
"""Set likewise where nothing of Spark runs elsewhere."""
_BEFORE_JAVA = {
    "SPARK_DRIVER_MEMORY": "2g",
    "PYSPARK_SUBMIT_ARGS": "--name privbench --conf spark.ui.showConsoleProgress=false pyspark-shell",
}
"""Set likewise, in the environment: what must be known when Java starts. With `spark-submit` it runs already."""
_FIXED = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "true",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.timeType.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(ARROW_ROWS),
    "spark.sql.execution.arrow.maxBytesPerBatch": str(2**26),
}
"""Set for the own view of a session: what is counted must not depend on them."""


@contextmanager
def spark_session(master: str | None, scratch: Path) -> Iterator["SparkSession"]:
    """A session on a master: that of `spark-submit` or of a notebook where there is one, else one that is started.

    `scratch` is a folder that nobody else may look into, for what Spark keeps on this machine; the caller removes it.
    Raises SpecError where PySpark is missing or another master is in use, ServerError where Spark does not start.
    """
    _check_installed()
    from pyspark.sql import SparkSession  # noqa: PLC0415  heavy and optional

    running = SparkSession.getActiveSession()
    if running is not None:
        there = running.sparkContext.master
        if master is not None and master != there:
            raise SpecError(f"--master {master}: Spark runs already, on {there}. Leave `--master` out, or stop it.")
        yield _own_view(running)
        return
    session = _start(master, scratch)
    try:
        yield _own_view(session)
    finally:
        session.sparkContext.cancelAllJobs()
        session.stop()


def _check_installed() -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pyspark.sql  # noqa: F401, PLC0415  heavy and optional
    except ImportError as error:
        raise SpecError(
            f"`--engine spark` needs PySpark 4 ({first_line(error)}). Run `pip install 'privbench[spark]'`."
        ) from None


def _start(master: str | None, scratch: Path) -> "SparkSession":
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name, value in _BEFORE_JAVA.items():
        os.environ.setdefault(name, value)
    try:
        with warnings.catch_warnings(), _own_interrupts():
            warnings.simplefilter("ignore")
            return SparkSession.builder.config(conf=_settings(master, scratch)).getOrCreate()
    except (PySparkException, _java_error()) as error:
        raise ServerError(
            f"Spark did not start on {master or 'its master'}: {first_line(error)} It needs Java 17 or later (java on "
            "the PATH, or JAVA_HOME), and a master that can be reached, such as spark://host:7077, yarn or local[4]."
        ) from None


def _settings(master: str | None, scratch: Path) -> "SparkConf":
    """The settings of spark-submit and of `spark-defaults.conf`, which Java knows, and ours where they say nothing."""
    from pyspark.conf import SparkConf  # noqa: PLC0415
    from pyspark.core.context import SparkContext  # noqa: PLC0415

    SparkContext._ensure_initialized()  # else settings would be empty here, and ours would win over all others
    conf = SparkConf()
    if master is not None:
        conf.setMaster(master)
    conf.setIfMissing("spark.master", HERE)
    settings = {**_USUAL, "spark.sql.warehouse.dir": str(scratch)}
    if str(conf.get("spark.master")).startswith("local"):
        settings |= {**_ON_THIS_MACHINE, "spark.local.dir": str(scratch)}
    for name, value in settings.items():
        conf.setIfMissing(name, value)
    return conf


def _own_view(session: "SparkSession") -> "SparkSession":
    """The same cluster and catalogues with settings of its own."""
    own = session.newSession()
    cores = str(own.sparkContext.defaultParallelism)
    for name, value in {**_catalogues(session), **_FIXED, "spark.sql.shuffle.partitions": cores}.items():
        own.conf.set(name, value)
    return own


def _catalogues(session: "SparkSession") -> dict[str, str]:
    """The catalogues of a session, which a notebook may have named while it ran.

    Those of JDBC give timestamps without a zone as they are: else Java would read them in the zone of its machine.
    """
    named = {name: value for name, value in session.conf.getAll.items() if name.startswith("spark.sql.catalog.")}
    of_jdbc = [name for name, value in named.items() if value.endswith(".JDBCTableCatalog")]
    return named | {f"{name}.preferTimestampNTZ": "true" for name in of_jdbc}


def _java_error() -> type[Exception]:
    from py4j.protocol import Py4JError  # noqa: PLC0415  comes with PySpark

    return Py4JError  # type: ignore[no-any-return]


@contextmanager
def _own_interrupts() -> Iterator[None]:
    """Keep what an interrupt does: PySpark sets a handler of its own."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
