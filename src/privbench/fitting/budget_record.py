"""The budget record: what was spent on which source, on this computer, so that releases can be added up.

One line of JSON per release, appended by `fit` when the model is learnt and before it is given away. A source is known
by a hash of its location, and of its tables and columns, keyed with a random salt that lies beside the record: the
record holds no name of a file and nothing of the data. Epsilons and deltas of releases add up (basic composition).
"""

import errno
import hashlib
import hmac
import json
import logging
import os
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, StrictBool, ValidationError

from privbench.errors import BudgetError, SpecError, TargetError
from privbench.fitting.promise import Number, parse_epsilon
from privbench.io.given import Given, path_of, source_of
from privbench.io.memory import Tables
from privbench.schema.release import Digest, Release, release_of
from privbench.schema.tables import Schema
from privbench.schema.unit import Neighbours

try:
    import fcntl
except ImportError:  # no such locks on this system: lines are still appended whole
    fcntl = None  # type: ignore[assignment]

VARIABLE = "PRIVBENCH_BUDGET_RECORD"
"""The variable of the environment that names another file for the record."""
MOST_BYTES = 2**26
SALT_BYTES = 32
ACCEPT = "privbench budget --accept-loss"
_logger = logging.getLogger(__name__)
_OWNER_ONLY_FILE, _OWNER_ONLY_FOLDER = 0o600, 0o700


Time = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\+00:00$")]


class Entry(Release):
    """One line of the record: a release, the source it was made from, and where it went."""

    version: Literal[1] = 1
    time: Time
    source: Digest
    tables: Digest
    """The hash of the names and types of the source's tables and columns."""
    unit: str
    out: str | None
    private: StrictBool
    """Whether the noise came from the operating system; a model with noise from a test promises nothing."""


class Acceptance(BaseModel):
    """A line by which the user goes on without others that cannot be read; these are named by their SHA-256."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    version: Literal[1] = 1
    time: Time
    accepted: tuple[Digest, ...]


_SCHEMES = {"postgres": "postgresql", "mariadb": "mysql"}
_PORTS = {"postgresql": "5432", "mysql": "3306"}
"""Where a server listens if the address does not say it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """The sum over releases that promise the same thing: to the same unit, for the same neighbours."""

    neighbours: Neighbours
    unit: str
    epsilon: Fraction
    delta: Fraction
    releases: int

    def __str__(self) -> str:
        """Say it in words, without the neighbours and the unit."""
        delta = f" and delta {float(self.delta):g}" if self.delta else ""
        return f"{self.releases} releases, epsilon {float(self.epsilon):g}{delta} in sum"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBudget:
    """All releases from one source, in their order."""

    source: str
    entries: tuple[Entry, ...]

    def totals(self) -> tuple[Total, ...]:
        """Add up the releases, apart for each unit and relation of neighbours. Those without privacy are left out."""
        kinds = dict.fromkeys((entry.neighbours, entry.unit) for entry in self.entries if entry.private)
        return tuple(_total(self.entries, neighbours, unit) for neighbours, unit in kinds)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRecord:
    """What stands in the record, the numbers of the lines that cannot be read, and whether all of it is gone."""

    path: Path
    sources: tuple[SourceBudget, ...]
    damaged: tuple[int, ...]
    missing: bool
    """Whether there is no line, though the salt beside it says that there were some."""

    @property
    def loss(self) -> str | None:
        """What was recorded and is in no sum, in words."""
        if self.missing:
            return f"{self.path}: the record of earlier releases is gone, though its salt is there."
        if not self.damaged:
            return None
        lines = ", ".join(map(str, self.damaged))
        return f"{self.path}: line {lines} cannot be read, so that what it recorded is in no sum."


def budget(source: Given | None = None) -> BudgetRecord:
    """Read what was spent on each source, or on one.

    Example::

        for spent in privbench.budget("shop").sources:
            print(spent.totals())
    """
    path = record_path()
    salt, content = _read_salt(path), _content(path)
    entries, damaged = _parse(content)
    if source is not None:
        wanted = None if salt is None else _keyed_hash(salt, _location(source))
        entries = [entry for entry in entries if entry.source == wanted]
    names = dict.fromkeys(entry.source for entry in entries)
    sources = (
        SourceBudget(source=name, entries=tuple(entry for entry in entries if entry.source == name)) for name in names
    )
    missing = salt is not None and not content
    return BudgetRecord(path=path, sources=tuple(sources), damaged=tuple(damaged), missing=missing)


def accept_loss() -> str | None:
    """Go on without what the record has lost, which it says in a line of its own; returns what that is, if anything."""
    path = record_path()
    loss = budget().loss
    if loss is not None:
        with _locked(path) as handle:
            content = _content(path)
            lost = {number: _digest(line) for number, line in _lines(content)}
            accepted = tuple(lost[number] for number in _parse(content)[1])
            _append(handle, content, Acceptance(time=_now(), accepted=accepted))
    return loss


def total_with(receipt: Mapping[str, Any]) -> Total | None:
    """What a recorded release and those of its source before it add up to, for the same unit and neighbours."""
    digest, entries = release_of(receipt).receipt, _parse(_content(record_path()))[0]
    at = max((number for number, entry in enumerate(entries) if entry.receipt == digest), default=None)
    if at is None or not entries[at].private:
        return None
    alike = [entry for entry in entries[: at + 1] if entry.source == entries[at].source]
    return _total(alike, entries[at].neighbours, entries[at].unit)


def tell_total(receipt: Mapping[str, Any]) -> None:
    """Warn of what a recorded release adds up to with others of its source; never fails, for it is spent."""
    with suppress(TargetError):
        total = total_with(receipt)
        if total is not None and total.releases > 1:
            _logger.warning("This source: %s with this one. `privbench budget` lists them.", total)


def parse_limit(limit: Number | None) -> Fraction | None:
    """Read a limit exactly; SpecError unless it is a positive number."""
    try:
        return None if limit is None else parse_epsilon(limit)
    except SpecError:
        raise SpecError(f"the budget limit is {limit}: it must be a number above 0, such as 10.") from None


def check_limit(source: Given, *, epsilon: Fraction, neighbours: Neighbours, limit: Fraction | None) -> None:
    """Refuse to spend epsilon on a source if that and its recorded releases add up to more than the limit.

    Where releases have different neighbours, those for adding or removing an entity count twice, since replacing
    an entity is both. What the record has lost cannot be added up: with a limit that is refused, else warned of.
    Raises BudgetError.
    """
    record = budget(source)
    if limit is None:
        if record.loss is not None:
            _logger.warning("%s Put it back as it was, or go on without it: `%s`.", record.loss, ACCEPT)
        return
    _refuse_loss(record.loss)
    entries = [entry for spent in record.sources for entry in spent.entries]
    _refuse_excess(entries, epsilon=epsilon, neighbours=neighbours, limit=limit)


def check_planned(
    source: Given, epsilons: Iterable[Number], *, times: int, neighbours: Neighbours, limit: Number | None
) -> None:
    """Refuse to spend each of several epsilons a number of times, like `check_limit`."""
    total = times * sum((parse_epsilon(epsilon) for epsilon in epsilons), Fraction(0))
    check_limit(source, epsilon=total, neighbours=neighbours, limit=parse_limit(limit))


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A source that is about to be spent on: where that will be recorded, what names it, and the limit, if any."""

    path: Path
    location: Any
    tables: Any
    limit: Fraction | None

    def append(self, receipt: Mapping[str, Any], *, out: Path | str | None) -> None:
        """Record the release that a receipt is of. BudgetError if others have used up the limit in the meantime."""
        with _locked(self.path) as handle:
            salt, content = _salt(self.path), _content(self.path)
            if salt is not None and not content:
                content = _append(handle, content, f"The record was gone at {_now()}, though its salt was there.")
            known = salt or secrets.token_bytes(SALT_BYTES)
            entry = Entry(
                **release_of(receipt).model_dump(),
                time=_now(),
                source=_keyed_hash(known, self.location),
                tables=_keyed_hash(known, self.tables),
                unit=receipt["unit"]["entity"],
                out=None if out is None else os.fsencode(os.path.abspath(out)).decode("utf-8", "replace"),
                private=receipt["noise"] != "test",
            )
            if self.limit is not None:
                others, damaged = _parse(content)
                _refuse_loss(BudgetRecord(path=self.path, sources=(), damaged=tuple(damaged), missing=False).loss)
                others = [other for other in others if other.source == entry.source]
                _refuse_excess(others, epsilon=Fraction(entry.epsilon), neighbours=entry.neighbours, limit=self.limit)
            if salt is None:
                _write_salt(self.path, known)
            try:
                _append(handle, content, entry)
            except OSError:
                if salt is None:
                    _salt_path(self.path).unlink(missing_ok=True)
                raise


def open_account(source: Given, schema: Schema, *, limit: Fraction | None = None) -> Account:
    """Name a source as the record does. Raises TargetError if the record could not be written later."""
    path = record_path()
    with _locked(path):
        _salt(path)
    tables = sorted([table.name, sorted([c.name, c.type.sql] for c in table.columns)] for table in schema.tables)
    return Account(path=path, location=_location(source), tables=["tables", tables], limit=limit)


def _salt(path: Path) -> bytes | None:
    """The salt; None where there is no record yet."""
    salt = _read_salt(path)
    if salt is None and _content(path):
        raise TargetError(
            f"{_salt_path(path)}: is missing, so that sources in {path} cannot be told apart. Put it back, or "
            f"move the record away to begin a new one."
        )
    return salt


def record_path() -> Path:
    """Where the record is: in the user's folder for state, unless the environment names another file."""
    if given_path := os.environ.get(VARIABLE):
        return Path(os.path.abspath(given_path))
    state = os.environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(os.path.abspath(state)) / "privbench" / "budget.jsonl"


def _total(entries: Iterable[Entry], neighbours: Neighbours, unit: str) -> Total:
    alike = [e for e in entries if e.private and (e.neighbours, e.unit) == (neighbours, unit)]
    return Total(
        neighbours=neighbours,
        unit=unit,
        epsilon=sum((Fraction(e.epsilon) for e in alike), Fraction(0)),
        delta=sum((Fraction(e.delta) for e in alike), Fraction(0)),
        releases=len(alike),
    )


def _refuse_excess(entries: Iterable[Entry], *, epsilon: Fraction, neighbours: Neighbours, limit: Fraction) -> None:
    spent = [(Fraction(entry.epsilon), entry.neighbours) for entry in entries]
    mixed = any(other is not neighbours for _, other in spent)
    costs = [e * 2 if mixed and kind is Neighbours.ADD_REMOVE else e for e, kind in [*spent, (epsilon, neighbours)]]
    if sum(costs) > limit:
        before = float(sum(costs[:-1], Fraction(0)))
        raise BudgetError(
            f"{len(spent)} releases of this source have spent epsilon {before:g}, and epsilon {float(costs[-1]):g} "
            f"more would go beyond the limit of {float(limit):g}. Nothing was released. Spend less, raise the limit "
            "(`--budget-limit`), or build on a model that is there: `privbench generate` costs nothing."
        )


def _refuse_loss(loss: str | None) -> None:
    if loss is not None:
        raise BudgetError(
            f"{loss} No limit can be kept on sums that are not known, so that nothing was released. Put it back as it "
            f"was, such as from a backup; or go on without it, with a limit that is lower by what it held: `{ACCEPT}`."
        )


def _lines(content: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that are not empty, with their numbers."""
    return ((number, line) for number, line in enumerate(content.split(b"\n"), start=1) if line.strip())


def _parse(content: bytes) -> tuple[list[Entry], list[int]]:
    """The entries, and the numbers of the lines that are none and that nobody has accepted as lost."""
    entries, damaged, accepted = list[Entry](), dict[int, str](), set[str]()
    for number, line in _lines(content):
        try:
            entries.append(Entry.model_validate_json(line))
        except ValidationError:
            try:
                accepted.update(Acceptance.model_validate_json(line).accepted)
            except ValidationError:
                damaged[number] = _digest(line)
    return entries, [number for number, digest in damaged.items() if digest not in accepted]


def _digest(line: bytes) -> str:
    return hashlib.sha256(line).hexdigest()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _content(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise _unusable(path, error) from None
    if len(content) > MOST_BYTES:
        raise TargetError(f"{path}: larger than {MOST_BYTES // 2**20} MB, which no budget record is. Move it away.")
    return content


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open the record for appending, made where it is missing; no other process writes in the meantime."""
    try:
        if not path.parent.is_dir():
            path.parent.parent.mkdir(parents=True, exist_ok=True)
            with suppress(FileExistsError):
                path.parent.mkdir(mode=_OWNER_ONLY_FOLDER)
        handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, _OWNER_ONLY_FILE)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)
    except OSError as error:
        raise _unusable(path, error) from None


def _append(handle: int, content: bytes, line: BaseModel | str) -> bytes:
    """Append a line to the content of the record, whole or not at all; returns what it holds then. OSError if full."""
    torn = content and not content.endswith(b"\n")  # by a crash: the new line must stay whole
    text = line if isinstance(line, str) else json.dumps(line.model_dump(mode="json"), ensure_ascii=False)
    added = (b"\n" if torn else b"") + text.encode() + b"\n"
    try:
        _write(handle, added)
    except OSError:
        os.ftruncate(handle, len(content))
        raise
    return content + added


def _write(handle: int, content: bytes) -> None:
    """Write all of it, to the disk; OSError otherwise."""
    if os.write(handle, content) < len(content):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(handle)


def _unusable(path: Path, error: OSError) -> TargetError:
    return TargetError(
        f"{path}: the record of what was spent cannot be used: {error.strerror or error}. Make it writable, or name "
        f"another file in {VARIABLE}."
    )


def _salt_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.salt")


def _read_salt(path: Path) -> bytes | None:
    try:
        salt = _salt_path(path).read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable(_salt_path(path), error) from None
    if len(salt) != SALT_BYTES:
        raise TargetError(f"{_salt_path(path)}: is damaged. Put it back, or move it and {path} away.")
    return salt


def _write_salt(path: Path, salt: bytes) -> None:
    """Write the salt whole or not at all. The record is locked."""
    temporary = _salt_path(path).with_name(f".{path.name}.{secrets.token_hex(4)}.partial")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ONLY_FILE)
    try:
        _write(handle, salt)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    finally:
        os.close(handle)
    temporary.replace(_salt_path(path))


def _location(source: Given) -> Any:
    """What a source is known by. Tables in memory have no place: those with the same names count as one source."""
    located = source_of(source)
    if isinstance(located, Tables):
        return ["memory", sorted([name, sorted(columns)] for name, columns in located.columns().items())]
    return ["location", _normalised(path_of(located) or "")]


def _normalised(location: Path | str) -> str:
    """The same text for the same place: an absolute path without links, or an address without user and password.

    >>> _normalised("postgres://me:secret@Host/shop?sslmode=require")
    'postgresql://host:5432/shop'
    >>> _normalised("postgresql:///shop?host=/run/pg&port=5433")
    'postgresql:///run/pg:5433/shop'
    >>> _normalised("mariadb://me@localhost/shop?unix_socket=/run/my.sock")
    'mysql:///run/my.sock:3306/shop'
    """
    text = os.fspath(location)
    if "\0" in text or text.startswith("spark:"):  # no such place, as whoever opens it will say; or a name
        return text
    if "://" not in text:
        return os.path.realpath(os.path.expanduser(text))
    parts = urlsplit(text)
    scheme = _SCHEMES.get(parts.scheme.lower(), parts.scheme.lower())
    options = dict(parse_qsl(parts.query))
    host, port = _host_and_port(parts.netloc.rpartition("@")[2].lower())
    host = options.get("host", options.get("unix_socket", host))
    port = options.get("port", port) or _PORTS.get(scheme, "")
    database = f"/{options['dbname']}" if "dbname" in options else unquote(parts.path)
    service = f"?service={options['service']}" if "service" in options else ""
    return f"{scheme}://{host}{':' if port else ''}{port}{database}{service}"


def _host_and_port(place: str) -> tuple[str, str]:
    """The two parts of a place; an address of IPv6 has colons of its own, in brackets.

    >>> _host_and_port("[::1]:5432"), _host_and_port("[::1]"), _host_and_port("host")
    (('[::1]', '5432'), ('[::1]', ''), ('host', ''))
    """
    host, colon, port = place.rpartition(":")
    return (host, port) if colon and not port.endswith("]") else (place, "")


def _keyed_hash(salt: bytes, what: Any) -> str:
    return hmac.new(salt, json.dumps(what).encode(), hashlib.sha256).hexdigest()
