"""Every error PrivBench raises on purpose, as one tree.

    PrivBenchError                what a caller may catch; the command line prints it and exits 2
    ├── SpecError                 the spec file or a flag is wrong: says where and what to write instead
    ├── SchemaError               the schema cannot be protected or written as it stands
    ├── DataError                 the private data break the schema; for the publisher's eyes only
    ├── SourceError               a database or file could not be read
    ├── TargetError               the output could not be written; nothing half-written is left
    ├── StoreError                work files of a fit could not be written, or were changed by somebody
    ├── ServerError               a database server could not be found, started or used
    ├── BudgetError               a query would spend more privacy than there is; nothing was drawn
    ├── RehearsalError            the walk fails on made-up rows, as it would on real ones; nothing was drawn
    └── ModelError                a model or bundle file is not one of ours, or is damaged

A failed check of a receipt is a result, not an error: see `privbench_verify.receipt`. Any other exception is a mistake
of ours: see `mistakes`.
"""


class PrivBenchError(Exception):
    """Say what was found, where, and what to do about it."""


class SpecError(PrivBenchError):
    """The spec file or a flag is wrong."""


class SchemaError(PrivBenchError):
    """The schema cannot be protected or written as it stands."""


class DataError(PrivBenchError):
    """The private data break the schema. Its text never enters a published file."""


class SourceError(PrivBenchError):
    """A database or file could not be read."""


class TargetError(PrivBenchError):
    """The output could not be written; nothing half-written is left."""


class StoreError(PrivBenchError):
    """Work files of a fit could not be written, or were changed by somebody."""


class ServerError(PrivBenchError):
    """A database server could not be found, started or used."""


class BudgetError(PrivBenchError):
    """A query would spend more privacy than there is; nothing was drawn."""


class RehearsalError(PrivBenchError):
    """The walk fails on made-up rows, as it would on real ones; nothing was drawn."""


class ModelError(PrivBenchError):
    """A model or bundle file is not one of ours, or is damaged."""


def first_line(error: Exception) -> str:
    r"""Quote another library's error inside one of ours, without its hints and traces.

    >>> first_line(ValueError("no such table\nLINE 1: SELECT ..")), first_line(ValueError())
    ('no such table', 'ValueError')
    """
    return next(iter(str(error).splitlines()), type(error).__name__)
