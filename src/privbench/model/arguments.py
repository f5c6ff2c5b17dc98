"""What the functions of the API take: a value, or the path or the name of one."""

from collections.abc import Collection
from enum import Enum, StrEnum
from pathlib import Path
from typing import TypeVar

from privbench.errors import SpecError
from privbench.io.file_kind import MODEL, SPEC, kind_of
from privbench.io.sinks import server_kind, sink_kind
from privbench.model.file import load_model
from privbench.model.model import Model
from privbench.schema.choices import closest
from privbench.schema.spec import Spec, read_spec

Choice = TypeVar("Choice", bound=Enum)


class EngineName(StrEnum):
    """What `--engine` takes: where work is done."""

    LOCAL = "local"
    SPARK = "spark"


def spec_of(spec: Spec | Path | str) -> tuple[Spec, Path]:
    """The spec, and the folder from which its source is tried second: its own, if it was read from a file."""
    if isinstance(spec, Spec):
        return spec, Path()
    kind = kind_of(spec)
    if kind not in (None, SPEC):
        way = "`privbench generate` takes a model." if kind == MODEL else "`privbench synth` takes a database."
        raise SpecError(f"{spec}: is {kind}. A spec is wanted: the YAML file that `privbench draft` writes. {way}")
    return read_spec(spec), Path(spec).parent


def model_of(model: Model | Path | str) -> Model:
    """The model, read and checked if it is a path."""
    return model if isinstance(model, Model) else load_model(model)


def format_of(form: str) -> str:
    """The name of a format, checked: a member of `Format`, or any other name in `sinks.SINKS`.

    >>> format_of("duckdb")
    'duckdb'
    """
    if server_kind(form) is not None:
        raise SpecError(
            "only `generate --to URL` (`privbench.load_database` in Python) loads a database on a server, from a model."
        )
    return sink_kind(form).name


def find_source(location: Path | str, folder: Path) -> Path | str:
    """Where a source is: a relative path is tried from the working directory, then from the folder of the spec."""
    beside = folder / location
    return beside if not Path(location).exists() and beside.exists() else location


def member_of(kind: type[Choice], given: Choice | str) -> Choice:
    """A member of an enumeration, given as such or as the command line names it.

    >>> from privbench.schema.spec import Orphans
    >>> member_of(Orphans, "null")
    <Orphans.NULL: 'null'>
    """
    try:
        return kind(given)
    except ValueError:
        choices = [str(member.value) for member in kind]
        raise SpecError(
            f"{kind.__name__.lower()} {given!r}: there is no such choice. {closest(str(given), choices)}"
        ) from None


def check_lists(**lists: Collection[str]) -> None:
    """Refuse a text where a list of names is wanted: its letters would be taken for names.

    >>> check_lists(public="product")
    Traceback (most recent call last):
    privbench.errors.SpecError: public is the text 'product', but a list of names is wanted: public=['product'].
    """
    for name, value in lists.items():
        if isinstance(value, str):
            raise SpecError(f"{name} is the text {value!r}, but a list of names is wanted: {name}=[{value!r}].")
