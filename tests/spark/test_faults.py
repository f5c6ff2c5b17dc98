"""Executors and workers that are lost in the middle: the fit ends as if nothing had been, or says why it cannot."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import privbench
from privbench.errors import ServerError
from privbench.fitting import spark_reading
from privbench.privacy import spark_parts

from ..e2e.shapes import SHAPES
from .fits import content, fitted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

Work = Callable[[Iterator[Any]], Iterator[Any]]
STEPS = {"reading": spark_reading, "counting": spark_parts}


def _killing(work: Work, marker: Path, *, victim: str, times: int) -> Work:
    """Work that kills the process that does it, or the executor above that, the first times that it is asked."""
    place = str(marker)

    def killed(batches: Iterator[Any]) -> Iterator[Any]:
        for attempt in range(times):
            try:
                os.close(os.open(f"{place}-{attempt}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            whom = os.getpid()
            if victim == "executor":
                for _ in range(2):  # above a worker is the daemon that forked it, above that the executor
                    with open(f"/proc/{whom}/stat") as file:
                        whom = int(file.read().rsplit(")", 1)[1].split()[1])
            os.kill(whom, signal.SIGKILL)
        yield from work(batches)

    return killed


@pytest.fixture
def shop(tmp_path: Path) -> tuple[Any, Path]:
    shape = SHAPES["partly_null"]
    folder = shape.write(tmp_path / "source")
    return privbench.draft(folder, domains="data", **shape.choices), folder


@pytest.mark.parametrize("victim", ["worker", "executor"])
@pytest.mark.parametrize("step", STEPS)
def test_what_is_lost_is_worked_out_again(
    step: str,
    victim: str,
    shop: tuple[Any, Path],
    spark: "SparkSession",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, model = fitted(*shop, engine="local")
    module = STEPS[step]
    plain = module.map_batches
    calls: list[Any] = []

    def map_batches(frame: Any, work: Any, schema: str) -> Any:
        calls.append(work)
        once = len(calls) == 3
        return plain(frame, _killing(work, tmp_path / "dead", victim=victim, times=1) if once else work, schema)

    monkeypatch.setattr(module, "map_batches", map_batches)
    there, same = fitted(*shop, engine="spark")
    assert list(tmp_path.glob("dead-*"))
    assert here == there
    assert content(model, tmp_path) == content(same, tmp_path)


def test_a_worker_that_always_dies_ends_the_fit(
    shop: tuple[Any, Path], spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = spark_parts.map_batches

    def map_batches(frame: Any, work: Any, schema: str) -> Any:
        return plain(frame, _killing(work, tmp_path / "dead", victim="worker", times=100), schema)

    monkeypatch.setattr(spark_parts, "map_batches", map_batches)
    before = privbench.budget().sources
    with pytest.raises(ServerError, match="Spark could not finish") as told:
        fitted(*shop, engine="spark")
    assert "Nothing was released" in str(told.value)
    assert privbench.budget().sources == before
