"""One COPY for all batches of a table, fed while the next rows are made: client and server work at the same time.

The COPY runs in a thread of its own, which alone uses the connection until the stream ends. An error of the server
comes out of the next `put`, or of `end`.
"""

import queue
import threading
from collections.abc import Callable, Iterator

import pyarrow as pa

_AHEAD = 2
"""Batches that wait at most."""
_PATIENCE = 0.1
"""Seconds after which it is looked whether the COPY still runs."""


class _AbandonedError(Exception):
    """What ends a COPY that is not to be completed."""


class RowStream:
    """Batches on their way into a table; `load` reads them until there are no more."""

    def __init__(self, schema: pa.Schema, load: Callable[[pa.RecordBatchReader], None]) -> None:
        self._waiting: queue.Queue[pa.RecordBatch | BaseException | None] = queue.Queue(_AHEAD)
        self._load = load
        self._error: BaseException | None = None
        reader = pa.RecordBatchReader.from_batches(schema, self._batches())
        self._thread = threading.Thread(target=self._run, args=(reader,), daemon=True)
        self._thread.start()

    def put(self, batch: pa.RecordBatch) -> None:
        """Add rows; waits while enough others wait. Raises what the COPY raised."""
        self._hand_over(batch)
        if self._error is not None:
            raise self._error

    def end(self) -> None:
        """Complete the COPY. Raises what it raised."""
        self._hand_over(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def abandon(self) -> None:
        """Break the COPY off."""
        self._hand_over(_AbandonedError())
        self._thread.join()

    def _hand_over(self, item: pa.RecordBatch | BaseException | None) -> None:
        while self._thread.is_alive():
            try:
                self._waiting.put(item, timeout=_PATIENCE)
            except queue.Full:
                continue
            return

    def _batches(self) -> Iterator[pa.RecordBatch]:
        while (item := self._waiting.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def _run(self, reader: pa.RecordBatchReader) -> None:
        try:
            self._load(reader)
        except Exception as error:  # raised again by put or end
            self._error = error
