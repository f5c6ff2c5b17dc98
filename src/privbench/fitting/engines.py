"""Where the rows of a fit are read and counted: `local` on this machine, `spark` on a cluster.

Either gives the same parts of rows to the vault, so that all that follows is the same. PySpark is loaded with the
second alone.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from privbench.encode.codec import Codecs
from privbench.encode.relative import stand_ins
from privbench.errors import SpecError
from privbench.fitting.computed import tell_differing
from privbench.fitting.lists import SourceWithLists
from privbench.fitting.memory import parse_memory, plan_store
from privbench.fitting.prepare import Prepared
from privbench.fitting.reading import ReadDatabase, check_source, read_database
from privbench.io.base import Source
from privbench.io.given import CsvFolder, Located, name_of
from privbench.io.memory import Tables
from privbench.io.open import open_source
from privbench.io.staging import private_folder
from privbench.methods.method import Progress
from privbench.model.arguments import EngineName, member_of
from privbench.schema.spec import Orphans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Place(AbstractContextManager["Place"], Protocol):
    """A place where rows are counted; leaving it lets go of all that it holds of them."""

    def check(self, prepared: Prepared) -> None:
        """Refuse what cannot be counted there, before anything is started or read. Raises SpecError."""
        ...

    def open(self, located: Located) -> AbstractContextManager[Source]:
        """Open a source for reading there."""
        ...

    def read(self, source: Source, prepared: Prepared, codecs: Codecs, progress: Progress) -> ReadDatabase:
        """Read all tables into parts; raises DataError where the data are wrong."""
        ...


def place_of(engine: EngineName | str, *, master: str | None, memory: str | int | None) -> Place:
    """The place that an engine's name stands for. Raises SpecError for words that are not for it."""
    if member_of(EngineName, engine) is EngineName.LOCAL:
        if master is not None:
            raise SpecError(f"--master {master}: is for `--engine spark`.")
        return ThisMachine(parse_memory(memory))
    if memory is not None:
        raise SpecError("--memory is for `--engine local`: Spark has its own settings, such as spark.executor.memory.")
    return SparkCluster(master)


class ThisMachine(Place):
    """Parts in memory, or in files of a private folder if they are too many."""

    def __init__(self, memory: int | None) -> None:
        self._memory = memory
        self._held = ExitStack()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def check(self, prepared: Prepared) -> None:
        """All can be counted here."""

    def open(self, located: Located) -> AbstractContextManager[Source]:
        """Open any kind of source."""
        return open_source(located)

    def read(self, source: Source, prepared: Prepared, codecs: Codecs, progress: Progress) -> ReadDatabase:
        """Read all tables into parts."""
        protection = prepared.protection
        with_lists = SourceWithLists(source, protection)
        check_source(with_lists.schema(), protection.schema.published(), made_up=protection.made_up)
        tell_differing(with_lists, protection)
        in_one_part = not prepared.chosen.method.counts_in_parts
        plan = plan_store(with_lists, protection, codecs, memory=self._memory, in_one_part=in_one_part)
        progress(f"reading, {plan}", 0, 1)
        folder = self._held.enter_context(private_folder()) if plan.in_files else None
        words = _words(prepared)
        return read_database(with_lists, protection, codecs, plan=plan, folder=folder, progress=progress, **words)


class SparkCluster(Place):
    """Parts on the executors of a Spark cluster."""

    def __init__(self, master: str | None) -> None:
        self._master = master
        self._held = ExitStack()
        self._session: SparkSession | None = None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def check(self, prepared: Prepared) -> None:
        """Refuse methods and tables that need rows of all entities together."""
        from privbench.fitting.spark_reading import refuse_unsupported  # noqa: PLC0415

        method = prepared.chosen.method
        if not method.counts_in_parts:
            raise SpecError(
                f"method {method.name}: it looks at rows of all entities together, which no engine does in "
                "parts. Use `--engine local`, or the method tree."
            )
        refuse_unsupported(prepared.protection)

    @contextmanager
    def open(self, located: Located) -> Iterator[Source]:
        """Open a source that Spark reads."""
        from privbench.io.spark_source import SparkSource  # noqa: PLC0415

        if isinstance(located, Tables | CsvFolder):
            raise SpecError(
                f"{name_of(located)}: Spark reads folders of Parquet and tables of its catalogues, not these. Use "
                "`--engine local`."
            )
        with SparkSource(str(located), session=self._started()) as source:
            yield source

    def _started(self) -> "SparkSession":
        """The session, started when it is first needed."""
        from privbench.spark.session import spark_session  # noqa: PLC0415  with PySpark, which is optional

        if self._session is None:
            scratch = self._held.enter_context(private_folder())
            self._session = self._held.enter_context(spark_session(self._master, scratch))
        return self._session

    def read(self, source: Source, prepared: Prepared, codecs: Codecs, progress: Progress) -> ReadDatabase:
        """Read all tables into parts of the cluster; rows of private tables do not come here."""
        from privbench.fitting.spark_reading import read_parts  # noqa: PLC0415
        from privbench.io.spark_source import SparkSource  # noqa: PLC0415

        protection = prepared.protection
        if not isinstance(source, SparkSource):
            raise TypeError("Spark reads its own sources")
        published = protection.schema.published()
        source.look_for(table.name for table in published.tables if table.name not in protection.made_up)
        check_source(source.schema(), published, made_up=protection.made_up)
        read, parts = read_parts(source, protection, codecs, progress=progress, **_words(prepared))
        self._held.callback(parts.close)
        return read


def _words(prepared: Prepared) -> dict[str, Any]:
    """What a spec says of how rows are read."""
    spec = prepared.spec
    return {
        "orphans_as_null": spec.orphans is Orphans.NULL,
        "null_bases": stand_ins(spec, prepared.protection),
        "suggested": set(spec.rules_from_data()),
        "made_up": spec.made_up_domains(prepared.protection),
    }
