"""Parts of the private database on a Spark cluster: work goes to them, what it counts comes back.

A part is a row of a frame, its bytes in pieces; the frame stays on the disks of the executors. What an executor takes
with it is worked out again by Spark from the source. Should that have changed meanwhile, rows of an entity would be
counted in two states; so a part begins with a digest of its rows, which must be the one that it had at first. Charges,
noise and answers stay with the driver: workers see tallies to count and nothing of the ledger.
"""

import pickle
from collections.abc import Callable, Generator, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import pyarrow as pa

from privbench.encode.coded import CodedTable
from privbench.errors import SourceError
from privbench.privacy.part import Part
from privbench.privacy.part_counter import PartCounter
from privbench.spark.jobs import Batches, Report, map_batches, spark_job

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
PIECE = 2**23
"""Bytes of one piece: a value that Spark moves has at most 2 GiB, and smaller ones fit into less memory."""
PIECES = pa.schema([("part", pa.int32()), ("piece", pa.int32()), ("bytes", pa.binary())])
DIGEST_BYTES = 16
"""Of the digest that a part begins with."""
SQL_PIECES = "part int, piece int, bytes binary"


class SparkParts:
    """Parts in a frame, with the digests that they had when they were first made; `close` lets go of them."""

    def __init__(
        self, session: "SparkSession", frame: "DataFrame", digests: Mapping[int, bytes], progress: Report | None = None
    ) -> None:
        self._session, self._frame, self._digests, self._progress = session, frame, digests, progress

    def __repr__(self) -> str:
        return "<private tables>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("private data cannot be pickled")

    def __len__(self) -> int:
        return len(self._digests)

    def map(self, work: Callable[[PartCounter], T]) -> Generator[T, None, None]:
        """What some work gives for each part."""
        results = map_batches(self._pieces, _Counting(work, self._digests), SQL_PIECES)
        with spark_job(self._session, "counting", self._progress):
            found = results.toArrow()
        for _, result in _whole(iter(found.sort_by([("part", "ascending"), ("piece", "ascending")]).to_batches())):
            yield pickle.loads(result)  # noqa: S301  made by our own workers

    def rewrite(self, work: Callable[[Part], Part]) -> None:
        """Put another part in the place of each."""
        self.replace(map_batches(self._pieces, _Rewriting(work, self._digests), SQL_PIECES))

    def replace(self, frame: "DataFrame") -> None:
        """Hold another frame, all of which is worked out before the old one is let go."""
        with spark_job(self._session, "rewriting parts", self._progress):
            kept = kept_on_disk(frame)
            kept.count()
        self.close()
        self._frame = kept

    @property
    def _pieces(self) -> "DataFrame":
        """The pieces of parts; others say what was to be checked of these."""
        return self._frame.filter("piece >= 0")

    def close(self) -> None:
        """Let go of the parts."""
        self._frame.unpersist()


def kept_on_disk(frame: "DataFrame") -> "DataFrame":
    """A frame whose rows are kept on the disks of executors once they are worked out, encrypted there."""
    from pyspark import StorageLevel  # noqa: PLC0415  heavy and optional

    return frame.persist(StorageLevel.DISK_ONLY)


def pieces_of(part: int, content: bytes) -> Batches:
    """The bytes of a part as rows of a frame."""
    for piece, start in enumerate(range(0, max(len(content), 1), PIECE)):
        row = {"part": part, "piece": piece, "bytes": content[start : start + PIECE]}
        yield pa.RecordBatch.from_pylist([row], schema=PIECES)


def bytes_of(part: Part) -> bytes:
    """A part as bytes, which only another worker of the same session reads."""
    tables = {n: (t.codes, t.keys, t.entities, t.numbers) for n, t in part.tables.items()}
    return pickle.dumps((tables, {n: dict(values) for n, values in part.raw.items()}), protocol=5)


def part_of(content: bytes) -> Part:
    """The part that was made into bytes."""
    tables, raw = pickle.loads(content)  # noqa: S301  made by our own workers
    coded = {n: CodedTable(codes=c, keys=k, entities=e, numbers=m) for n, (c, k, e, m) in tables.items()}
    return Part(tables=coded, raw=raw)


class _Counting:
    """Work on each part that a worker has: its result, pickled."""

    def __init__(self, work: Callable[[PartCounter], Any], digests: Mapping[int, bytes]) -> None:
        self._work, self._digests = work, digests

    def __call__(self, batches: Batches) -> Batches:
        for number, content in _unchanged(batches, self._digests):
            yield from pieces_of(number, pickle.dumps(self._work(PartCounter(part_of(content))), protocol=5))


class _Rewriting:
    """Another part for each that a worker has."""

    def __init__(self, work: Callable[[Part], Part], digests: Mapping[int, bytes]) -> None:
        self._work, self._digests = work, digests

    def __call__(self, batches: Batches) -> Batches:
        for number, content in _unchanged(batches, self._digests):
            yield from pieces_of(number, self._digests[number] + bytes_of(self._work(part_of(content))))


def _unchanged(batches: Batches, digests: Mapping[int, bytes]) -> Iterator[tuple[int, bytes]]:
    """Parts without their digests; SourceError for one that was made again of other rows than at first."""
    for number, content in _whole(batches):
        if content[:DIGEST_BYTES] != digests[number]:
            raise SourceError(
                "the source changed while it was read: rows that Spark lost were read again, and are not those that "
                "were counted. No model was written, nothing was released. Fit again when nobody writes to the source, "
                "or read a copy of it."
            )
        yield number, content[DIGEST_BYTES:]


def _whole(batches: Batches) -> Iterator[tuple[int, bytes]]:
    """Parts put together from their pieces, which come one after the other."""
    rows = (row for batch in batches for row in zip(*(c.to_pylist() for c in batch.columns), strict=True))
    for number, pieces in groupby(rows, key=lambda row: row[0]):
        yield number, b"".join(content for _, _, content in pieces)
