"""Jobs on a cluster: work on Arrow batches, errors that cross from workers to the driver, and how far a job is."""

import base64
import json
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from privbench import errors
from privbench.errors import PrivBenchError, ServerError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batches = Iterator[pa.RecordBatch]
Report = Callable[[str, int, int], None]
"""What is done, how much of it, of how much."""
_TOLD = re.compile(r"privbench-error:([A-Za-z0-9+/=]+):")
_CAUSE = re.compile(r"Job aborted[^:]*: (.*)|(Job \d+ cancelled.*)")
_OFTEN = 2.0
"""Seconds between two looks at how far a job is: of shorter ones nothing is said."""


def map_batches(frame: "DataFrame", work: Callable[[Batches], Batches], schema: str) -> "DataFrame":
    """A frame of what some work makes of the batches of another; errors of ours reach the driver as they are."""
    with warnings.catch_warnings():  # of pandas, which PySpark asks for and which is not used here
        warnings.simplefilter("ignore")
        return frame.mapInArrow(_Telling(work), schema)


class _Telling:
    """Work that writes an error of ours where the driver can read it: Spark passes on texts alone."""

    def __init__(self, work: Callable[[Batches], Batches]) -> None:
        self._work = work

    def __call__(self, batches: Batches) -> Batches:
        try:
            yield from self._work(batches)
        except PrivBenchError as error:
            told = json.dumps([type(error).__name__, str(error)]).encode()
            raise RuntimeError(f"privbench-error:{base64.b64encode(told).decode()}:") from None


@contextmanager
def spark_job(session: "SparkSession", what: str, progress: Report | None = None) -> Iterator[None]:
    """Run what Spark is asked for as one job that has a name; its failures become errors of ours."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  heavy and optional, as PySpark is
    from pyspark.errors import PySparkException  # noqa: PLC0415

    context = session.sparkContext
    context.setJobGroup(what, what, interruptOnCancel=True)
    try:
        with warnings.catch_warnings(), _watched(session, what, progress):
            warnings.simplefilter("ignore")
            yield
    except (PySparkException, Py4JError) as error:
        raise _ours(str(error), what) from None


def _ours(text: str, what: str) -> PrivBenchError:
    """The error that a worker told, or what Spark says, as one of ours."""
    told = _TOLD.search(text)
    if told is not None:
        name, message = json.loads(base64.b64decode(told[1]))
        made: PrivBenchError = getattr(errors, name)(message)
        return made
    cause = _CAUSE.search(text)
    why = next((line for line in (cause.groups() if cause else ()) if line), text.strip().splitlines()[0])
    return ServerError(
        f"Spark could not finish {what}: {why} What was lost is tried again a few times (spark.task.maxFailures); the "
        "logs of the executors say more. Nothing was released: run it again when the cluster is well."
    )


@contextmanager
def _watched(session: "SparkSession", group: str, progress: Report | None) -> Iterator[None]:
    """Say how many tasks are done while a job runs."""
    if progress is None:
        yield
        return
    over = threading.Event()

    def look() -> None:
        tracker = session.sparkContext.statusTracker()
        while not over.wait(_OFTEN):
            done, of = _tasks(tracker, group)
            if of:
                progress(group, done, of)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _tasks(tracker: Any, group: str) -> tuple[int, int]:
    """The tasks that are done and all that are known, of the jobs of a group."""
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
    stages = [tracker.getStageInfo(stage) for job in jobs if job is not None for stage in job.stageIds]
    known = [stage for stage in stages if stage is not None]
    return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)
