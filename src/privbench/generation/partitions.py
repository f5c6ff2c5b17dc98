"""A bundle in partitions: each made by itself, here or elsewhere, and put together when all are there.

A partition is a function of model, scale, seed, format, and how many partitions there are: whoever makes it, wherever
and in whatever order, writes the same bytes. It appears as a whole, by one rename, as the folder `partitions/00007` of
the bundle to be, with a record of what it is and of the digests of its files. When all are there the files move to
`data/TABLE/part-00007.parquet`, and receipt, manifest and checksums are written beside; the checksums come last, and
only with them is the folder a bundle.
"""

import json
import os
import re
import secrets
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, wait
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Event, Lock
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from privbench import __version__
from privbench.errors import PrivBenchError, SpecError, TargetError
from privbench.generation.bundle import MANIFEST, PARTITIONS, scale_text, write_companions
from privbench.generation.draws import DrawRun
from privbench.generation.partition import Partition, hindrances, is_shared, rows_before
from privbench.generation.ruled import RuleCounts
from privbench.generation.run import Run, lost_lines
from privbench.io.base import Format
from privbench.io.files import FileSink
from privbench.io.staging import is_bundle, private_folder, remove, staged, target_error
from privbench.methods.method import Progress, silent
from privbench.model.arguments import format_of
from privbench.model.file import model_digest
from privbench.model.model import Model
from privbench.schema.original import OriginalUse
from privbench.threads import cores, pool_of
from privbench_verify.checksums import CHECKSUMS, sha256, wrong_checksums

RECORD = "partition.json"
MOST_PARTITIONS = 100_000
_PLACE = re.compile(r"data/.+/part-([0-9]{5})\.[a-z]+", re.DOTALL)
"""Where a file of a partition stands in a bundle."""


Workers = Callable[["PartitionJob", Sequence[int], Progress], None]
"""Make the partitions of these numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What all partitions of one bundle have in common."""

    model: str
    """The digest of the model."""
    scale: str
    seed: int
    partitions: int
    format: str
    software: str = f"privbench {__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A partition that was made: its rows, what it took to keep rules, and the digests of its files by their names."""

    request: Request
    partition: int
    rows: dict[str, int]
    rules: dict[str, RuleCounts]
    files: dict[str, str]


def make_partition(
    model: Model,
    folder: Path | str,
    *,
    scale: float = 1.0,
    seed: int,
    partitions: int,
    partition: int,
    format: str = Format.PARQUET,  # noqa: A002
    progress: Progress = silent,
) -> Record:
    """Write one partition to `folder/partitions/NNNNN`, and return its record. Nothing is left if it fails.

    The folder is that of the bundle to be, or any other: partitions may be made in many places and be copied together.
    """
    job = PartitionJob(model, Path(folder), scale=scale, seed=seed, partitions=partitions, form=format_of(format))
    job.make([partition], progress)
    return job.records()[partition]


def generate_partitions(
    model: Model,
    out: Path,
    *,
    partitions: int,
    only: Collection[int] | None,
    resume: bool,
    scale: float,
    seed: int | None,
    form: str,
    workers: Workers | None = None,
    original: OriginalUse = OriginalUse.CHECKED,
    progress: Progress,
) -> dict[str, int] | None:
    """Make the partitions that are not there yet, all or some; with all there, returns the rows of the bundle.

    Without `only` or `resume` the folder must not exist. A seed that is not given is that of the partitions there.
    """
    if not 1 <= partitions <= MOST_PARTITIONS:
        raise SpecError(f"--partitions is {partitions}: it must lie between 1 and {MOST_PARTITIONS:,}.")
    wrong = [number for number in only or () if not 0 <= number < partitions]
    if wrong:
        raise SpecError(
            f"--only names partition {wrong[0]}: with --partitions {partitions} they are 0..{partitions - 1}."
        )
    if not resume and only is None and os.path.lexists(out):
        raise TargetError(f"{out}: already exists. Choose another name, remove it, or go on with it by `--resume`.")
    _check_folder(out)
    if seed is None:
        seed = _seed_there(out)
    if seed is None and only is not None:
        raise SpecError("--only needs --seed: all partitions of a bundle have the same.")
    seed = secrets.randbits(32) if seed is None else seed
    job = PartitionJob(model, out, scale=scale, seed=seed, partitions=partitions, form=form, workers=workers)
    if is_bundle(out):
        return job.rows_of_bundle(progress)
    there = job.records()
    wanted = range(partitions) if only is None else sorted(set(only))
    job.make([number for number in wanted if number not in there], progress)
    return job.complete(progress, original) if only is None else None


class PartitionJob:
    """The partitions of one bundle in one folder. `workers` make them; without any, threads of this process do."""

    def __init__(
        self,
        model: Model,
        out: Path,
        *,
        scale: float,
        seed: int,
        partitions: int,
        form: str,
        workers: Workers | None = None,
    ) -> None:
        if form not in (Format.PARQUET, Format.CSV):
            raise SpecError(
                f"--partitions writes parquet or csv, one file per table and partition, and no {form} file."
            )
        self._model, self._out, self._scale, self._seed, self._form = model, out, scale, seed, Format(form)
        self._workers = workers or _in_threads
        self._count = partitions
        self._schema = model.protection.schema.published()
        self._request = Request(
            model=model_digest(model),
            scale=scale_text(scale),
            seed=seed,
            partitions=partitions,
            format=self._form.value,
        )
        self._totals = _planned(model, scale)
        self.hindrances = hindrances(model, self._totals, scale, partitions)
        """Why all partitions have to be made at once; empty if they can be made one by one."""

    @classmethod
    def of(cls, model: Model, out: Path, request: Request) -> "PartitionJob":
        """The job of a request, wherever it came from."""
        words: dict[str, Any] = {"scale": float(request.scale), "seed": request.seed, "form": request.format}
        return cls(model, out, partitions=request.partitions, **words)

    @property
    def model(self) -> Model:
        """What rows are drawn from."""
        return self._model

    @property
    def out(self) -> Path:
        """The folder of the bundle to be."""
        return self._out

    @property
    def request(self) -> Request:
        """What all partitions have in common."""
        return self._request

    # -- making --------------------------------------------------------------------------------------------------------

    def make(self, numbers: Sequence[int], progress: Progress) -> None:
        """Make some partitions."""
        if not numbers:
            return
        try:
            (self._out / PARTITIONS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise target_error(self._out, error) from error
        try:
            if self.hindrances:
                self._make_together(numbers, progress)
            else:
                self._workers(self, numbers, progress)
        except BaseException:
            with suppress(OSError):  # some partitions are there: they stay
                (self._out / PARTITIONS).rmdir()
                self._out.rmdir()
            raise

    def make_one(self, number: int, progress: Progress, *, threads: int) -> None:
        """Make one partition by itself."""
        partition = Partition(number=number, count=self._count)
        with staged(self._path(number), force=False) as folder, private_folder() as spool:
            folder.mkdir()
            run = Run(
                self._model, scale=self._scale, seed=self._seed, spool=spool, partition=partition, threads=threads
            )
            sink = self._sink(folder, number)
            with closing(run), sink:
                run.write(sink, progress)
            self._write_record(folder, number, {name: run.written[name] for name in sink.tables}, run.rule_counts)

    def _make_together(self, numbers: Sequence[int], progress: Progress) -> None:
        """Make the whole database, and write those of its rows that are of some partitions."""
        with ExitStack() as stack:
            folders = {n: stack.enter_context(staged(self._path(n), force=False)) for n in numbers}
            for folder in folders.values():
                folder.mkdir()
            spool = stack.enter_context(private_folder())
            run = Run(self._model, scale=self._scale, seed=self._seed, spool=spool)
            sinks = {n: self._sink(folder, n) for n, folder in folders.items()}
            with closing(run), _CutSink(sinks, self._starts()) as sink:
                run.write(sink, progress)
            for number, folder in folders.items():
                self._write_record(folder, number, sink.rows(number), run.rule_counts if number == 0 else {})

    def _sink(self, folder: Path, number: int) -> FileSink:
        """Files for the tables of a partition: the first has those that all share."""
        own = [t.name for t in self._schema.tables if number == 0 or not is_shared(self._model, t.name)]
        return FileSink(folder, schema=self._schema, format=self._form, only=own)

    def _starts(self) -> dict[str, list[int]]:
        """By table the row with which each partition begins; those that are shared are all in the first."""
        each = [Partition(number=number, count=self._count) for number in range(self._count)]
        before = [rows_before(self._model, self._totals, self._scale, partition) for partition in each]
        return {
            table.name: [0] if is_shared(self._model, table.name) else [rows[table.name] for rows in before]
            for table in self._schema.tables
        }

    def _write_record(
        self, folder: Path, number: int, rows: Mapping[str, int], rules: Mapping[str, RuleCounts]
    ) -> None:
        files = {path.name: sha256(path) for path in sorted(folder.iterdir())}
        record = Record(request=self._request, partition=number, rows=dict(rows), rules=dict(rules), files=files)
        (folder / RECORD).write_text(json.dumps(asdict(record), indent=1) + "\n", encoding="utf-8")

    # -- putting together ----------------------------------------------------------------------------------------------

    def records(self) -> dict[int, Record]:
        """The partitions that are there and whole; what is damaged is removed, and made again."""
        found: dict[int, Record] = {}
        for path in _folders(self._out):
            record = _read_record(path)
            if record is not None and record.request != self._request:
                raise TargetError(
                    f"{path}: is a partition of another bundle ({_difference(record.request, self._request)}). Choose "
                    "another folder, or remove it."
                )
            number = int(path.name)
            if record is not None and record.partition == number and self._is_whole(path, record):
                found[number] = record
            else:
                remove(path)
        return found

    def is_there(self, number: int) -> bool:
        """Whether a partition was made, and is whole."""
        record = _read_record(self._path(number))
        return record is not None and record.request == self._request and self._is_whole(self._path(number), record)

    def complete(self, progress: Progress, original: OriginalUse = OriginalUse.CHECKED) -> dict[str, int]:
        """Make a bundle of the partitions, which are all there."""
        there = self.records()
        records = [there[number] for number in range(self._count)]
        progress("putting partitions together", 0, self._count)
        for record in records:
            self._place(record)
            progress("putting partitions together", record.partition + 1, self._count)
        rows = {t.name: sum(r.rows.get(t.name, 0) for r in records) for t in self._schema.tables}
        rules = _added_up(record.rules for record in records)
        known = {
            self._placed(name, record.partition).relative_to(self._out).as_posix(): digest
            for record in records
            for name, digest in record.files.items()
        }
        write_companions(
            self._out,
            self._model,
            rows=rows,
            form=self._form,
            lost=lost_lines(self._model, self._totals, rows, rules),
            rules=rules,
            scale=self._scale,
            seed=self._seed,
            partitions=self._count,
            checksums=known,
            original=original,
        )
        remove(self._out / PARTITIONS)
        return rows

    def rows_of_bundle(self, progress: Progress) -> dict[str, int]:
        """The rows of a bundle that was completed; TargetError if it is another one than was asked for.

        Partitions of which files are missing or were changed since are made again.
        """
        remove(self._out / PARTITIONS)  # if the run that put it together was killed in the end
        manifest = json.loads((self._out / MANIFEST).read_bytes())
        there = {name: manifest.get(name) for name in ("model", "scale", "seed", "partitions", "format", "software")}
        if there != asdict(self._request):
            raise TargetError(f"{self._out}: is a bundle of another model or request. Choose another folder.")
        named = (_PLACE.fullmatch(name) for name in wrong_checksums(self._out))
        damaged = {int(place[1]) for place in named if place is not None}
        self.make(sorted(damaged & set(range(self._count))), progress)
        for record in self.records().values():
            self._place(record)
        remove(self._out / PARTITIONS)
        if wrong := wrong_checksums(self._out):
            raise TargetError(
                f"{self._out / wrong[0]}: is missing, was changed or added, and cannot be made again by itself. Make "
                "the bundle again in another folder."
            )
        return {name: table["rows"] for name, table in manifest["tables"].items()}

    def _place(self, record: Record) -> None:
        """Move the files of a partition to where they stand in the bundle."""
        for name in record.files:
            target = self._placed(name, record.partition)
            target.parent.mkdir(parents=True, exist_ok=True)
            if (source := self._path(record.partition) / name).exists():
                source.rename(target)

    def _is_whole(self, path: Path, record: Record) -> bool:
        """Whether all files of a partition are there, in its folder or already in their places, as they were made."""
        for name, digest in record.files.items():
            file = path / name
            file = file if file.exists() else self._placed(name, record.partition)
            if not file.is_file() or sha256(file) != digest:
                return False
        return True

    def _path(self, number: int) -> Path:
        return self._out / PARTITIONS / f"{number:05d}"

    def _placed(self, name: str, number: int) -> Path:
        """Where a file of a partition stands in the bundle."""
        stem, _, suffix = name.rpartition(".")
        return self._out / "data" / stem / f"part-{number:05d}.{suffix}"


class _CutSink:
    """Cuts the rows of tables into those of partitions, of which some are written."""

    def __init__(self, sinks: Mapping[int, FileSink], starts: Mapping[str, list[int]]) -> None:
        self._sinks = sinks
        self._starts = starts
        self._done = Counter[str]()
        self._written = {number: Counter[str]() for number in sinks}
        self._stack = ExitStack()

    def write(self, table: str, batch: pa.RecordBatch) -> None:
        """Write those rows that are of the partitions asked for."""
        starts = self._starts[table]
        while batch.num_rows:
            done = self._done[table]
            number = bisect_right(starts, done) - 1
            room = starts[number + 1] - done if number + 1 < len(starts) else batch.num_rows
            piece = batch.slice(0, room)
            if number in self._sinks:
                self._sinks[number].write(table, piece)
                self._written[number][table] += piece.num_rows
                if piece.num_rows == room and number + 1 < len(starts):
                    self._sinks[number].complete(table)
            self._done[table] += piece.num_rows
            batch = batch.slice(piece.num_rows)

    def rows(self, number: int) -> dict[str, int]:
        """The rows of a partition by table."""
        return {name: self._written[number][name] for name in self._sinks[number].tables}

    def __enter__(self) -> Self:
        for sink in self._sinks.values():
            self._stack.enter_context(sink)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, at)


def _check_folder(out: Path) -> None:
    """Refuse a folder that holds something else than partitions or a bundle: nothing in it is ours to replace."""
    if not out.parent.is_dir():
        raise TargetError(f"{out}: the folder {out.parent} does not exist. Make it first.")
    if not os.path.lexists(out) or (out.is_dir() and is_bundle(out)):
        return
    if not out.is_dir() or not _is_begun(out):
        raise TargetError(f"{out}: holds something else than partitions. Choose another folder.")


def _is_begun(out: Path) -> bool:
    """Whether a folder is empty, or one in which partitions were made, and perhaps begun to be put together."""
    folder = out / PARTITIONS
    inside = [p for p in folder.iterdir() if not p.name.startswith(".")] if folder.is_dir() else []
    if any(not path.name.isdigit() for path in inside):
        return False
    beside = [path for path in out.iterdir() if path != folder]
    if not any(_read_record(path) is not None for path in inside):
        return not beside
    ours = ("data", "load", f".{CHECKSUMS}")
    return all(path.name in ours or path.suffix in (".sql", ".json", ".md") for path in beside)


def _folders(out: Path) -> list[Path]:
    folder = out / PARTITIONS
    return sorted(p for p in folder.iterdir() if p.name.isdigit()) if folder.is_dir() else []


def why_together(model: Model, *, scale: float, partitions: int) -> list[str]:
    """Why partitions of a model are cut out of the whole database, with the columns to blame; empty if they are not.

    Then every run makes all rows, also where it writes one partition alone.
    """
    return hindrances(model, _planned(model, scale), scale, partitions)


def _planned(model: Model, scale: float) -> dict[str, int]:
    """How many rows each table is to have."""
    with private_folder() as folder:
        return DrawRun(model, scale=scale, seed=0, folder=folder).totals


def partitions_there(out: Path) -> list[int]:
    """The numbers of the partitions that were made in a folder, or of those of a bundle that is complete."""
    if is_bundle(out):
        return list(range(json.loads((out / MANIFEST).read_bytes()).get("partitions", 1)))
    return [int(path.name) for path in _folders(out)]


def _seed_there(out: Path) -> int | None:
    """The seed of the partitions, or of the bundle, that are there."""
    if is_bundle(out):
        return int(json.loads((out / MANIFEST).read_bytes())["seed"])
    records = (_read_record(path) for path in _folders(out))
    return next((record.request.seed for record in records if record is not None), None)


def _read_record(path: Path) -> Record | None:
    """The record of a partition; None if it cannot be read."""
    try:
        value: dict[str, Any] = json.loads((path / RECORD).read_bytes())
        rules = {name: RuleCounts(**counts) for name, counts in value["rules"].items()}
        request = Request(**value["request"])
        number, rows, files = value["partition"], value["rows"], value["files"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Record(request=request, partition=number, rows=rows, rules=rules, files=files)


def _difference(one: Request, other: Request) -> str:
    theirs, ours = asdict(one), asdict(other)
    return ", ".join(f"{name} {theirs[name]}, not {ours[name]}" for name in ours if theirs[name] != ours[name])


def _added_up(counts: Iterator[Mapping[str, RuleCounts]]) -> dict[str, RuleCounts]:
    summed: dict[str, RuleCounts] = {}
    for each in counts:
        for table, more in each.items():
            before = asdict(summed.get(table, RuleCounts()))
            summed[table] = RuleCounts(**{name: before[name] + value for name, value in asdict(more).items()})
    return summed


class _StoppedError(PrivBenchError):
    """Another partition failed, or the user interrupted."""


def _in_threads(job: PartitionJob, numbers: Sequence[int], progress: Progress) -> None:
    """Make partitions in as many threads as there are cores, in all. The first failure ends all."""
    stop, lock, done = Event(), Lock(), Counter[str]()
    at_once = min(cores(), len(numbers))

    def checked(_what: str, _done: int, _all: int) -> None:
        if stop.is_set():
            raise _StoppedError("stopped")

    def one(number: int) -> None:
        checked("", 0, 0)
        job.make_one(number, checked, threads=max(cores() // at_once, 1))
        with lock:
            done["partitions"] += 1
            progress("making partitions", done["partitions"], len(numbers))

    progress("making partitions", 0, len(numbers))
    with pool_of(at_once) as pool, _setting(stop):
        futures = [pool.submit(one, number) for number in numbers]
        finished, _ = wait(futures, return_when=FIRST_EXCEPTION)
        errors = [error for future in finished if (error := future.exception()) is not None]
        if errors:
            raise next((error for error in errors if not isinstance(error, _StoppedError)), errors[0])


@contextmanager
def _setting(stop: Event) -> Iterator[None]:
    """Threads end soon when the block fails, whatever they are at."""
    try:
        yield
    except BaseException:
        stop.set()
        raise
