"""Partitions made by the workers of a Spark cluster, in a folder that all of them see.

The model goes to the workers, which is public; each task makes one partition and puts it into its place by a rename. A
task that is tried again finds what was made before. The driver puts the bundle together.
"""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow as pa

from privbench.errors import TargetError
from privbench.generation.bundle import PARTITIONS
from privbench.generation.partitions import PartitionJob, Request
from privbench.io.staging import private_folder, remove
from privbench.methods.method import Progress, silent
from privbench.model.file import load_unverified, save_model
from privbench.model.model import Model
from privbench.spark.jobs import Batches, map_batches, spark_job
from privbench.spark.session import spark_session

_SEEN = ".seen-by-workers"
"""An empty file by which a worker knows the folder of the driver."""
_RESULT = pa.schema([("number", pa.int32())])


def on_spark(master: str | None) -> Callable[[PartitionJob, Sequence[int], Progress], None]:
    """Have the partitions of a job made on a cluster."""

    def make(job: PartitionJob, numbers: Sequence[int], progress: Progress) -> None:
        folder = job.out.absolute() / PARTITIONS
        making = _Making(
            model=_model_bytes(job.model), out=str(job.out.absolute()), request=job.request, numbers=tuple(numbers)
        )
        try:
            (folder / _SEEN).touch()
            with private_folder() as scratch, spark_session(master, scratch) as session:
                tasks = session.range(len(numbers), numPartitions=len(numbers))
                with spark_job(session, "making partitions", progress):
                    map_batches(tasks, making, "number int").count()
        finally:
            for path in folder.glob(".*"):  # what workers left that were killed
                remove(path)

    return make


@dataclass(frozen=True, slots=True)
class _Making:
    """Makes the partitions whose places a worker gets."""

    model: bytes
    out: str
    request: Request
    numbers: tuple[int, ...]

    def __call__(self, batches: Batches) -> Batches:
        for batch in batches:
            for place in batch.column(0).to_pylist():
                self._make(self.numbers[place])
            yield pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows, pa.int32())], schema=_RESULT)

    def _make(self, number: int) -> None:
        out = Path(self.out)
        if not (out / PARTITIONS / _SEEN).exists():
            raise TargetError(
                f"{out}: the executors do not see this folder. Choose one on storage that all machines share, or make "
                "partitions on each machine with `--only` and copy them together."
            )
        job = PartitionJob.of(_loaded(self.model), out, self.request)
        if not job.is_there(number):
            job.make([number], silent)


@cache
def _loaded(content: bytes) -> Model:
    """The model, read once in every worker."""
    with tempfile.NamedTemporaryFile(suffix=".model") as file:
        file.write(content)
        file.flush()
        return load_unverified(file.name)


def _model_bytes(model: Model) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "it.model")
        save_model(model, path)
        return path.read_bytes()
