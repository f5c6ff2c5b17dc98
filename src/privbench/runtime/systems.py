"""The systems that `--runtime` can name. To add one, write a module with a `System` and name it here."""

from privbench.errors import ServerError, SpecError
from privbench.io.postgres.connection import SCHEMES as POSTGRES_SCHEMES
from privbench.io.urls import scheme_of
from privbench.runtime.session import System

AUTO, DUCKDB = "auto", "duckdb"


def find_system(name: str) -> System:
    """Find a system: `auto` for a PostgreSQL of our own, the URL of one, or `duckdb`.

    >>> type(find_system("duckdb")).__name__
    'DuckdbSystem'
    """
    if name == DUCKDB:
        from privbench.runtime.duckdb import DuckdbSystem  # noqa: PLC0415  only what is asked for is loaded

        return DuckdbSystem()
    url = None if name == AUTO else name
    if url is not None and scheme_of(url) not in POSTGRES_SCHEMES:
        raise SpecError("runtime: is none of `auto`, `duckdb` and a URL that begins with postgresql://.")
    try:
        from privbench.runtime.postgres import PostgresSystem  # noqa: PLC0415  an extra
    except ImportError:
        raise ServerError("Runtimes on PostgreSQL need its client: pip install 'privbench[postgres]'.") from None
    return PostgresSystem(url=url)
