"""Connections to MySQL and MariaDB servers, and what their errors mean, in our words.

Every session speaks UTF-8 and UTC, and waits as long as we need between two batches.
"""

from typing import Any

from privbench.errors import PrivBenchError, first_line
from privbench.io.mysql.address import Address

EXTRA = "pip install 'privbench[mysql]'"
_PATIENCE = 86_400
"""Seconds that the server waits for us: a day, as fitting may take long between two batches."""
_GONE = (2006, 2013, 2055, 1053, 1927, 4031)
_REASONS = {
    1044: "the user has no rights on that database",
    1045: "the server refused the user or the password. The password may be in ~/.my.cnf, MYSQL_PWD or the URL",
    1049: "there is no such database",
    1142: "the user has no right to do that",
    1143: "the user has no right to read a column",
    1205: "another session kept a lock for too long",
    1412: "the table was altered while it was read. Read again when nobody alters it",
    2002: "no server answers there",
    2003: "no server answers there",
}
_SESSION = (
    "SET time_zone = '+00:00'",
    f"SET net_write_timeout = {_PATIENCE}, net_read_timeout = {_PATIENCE}, wait_timeout = {_PATIENCE}",
)


def quote_name(name: str) -> str:
    """Quote an identifier as MySQL takes it in every mode.

    >>> quote_name("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def connect(address: Address, *, failure: type[PrivBenchError], sql_mode: str = "", **options: Any) -> Any:
    """Open a session; raises `failure`, which shows no password."""
    try:
        import pymysql  # noqa: PLC0415  an extra
    except ImportError:
        raise failure(f"{address.shown}: a MySQL or MariaDB server needs PyMySQL. Install it: {EXTRA}") from None
    try:
        connection = pymysql.connect(
            database=address.database,
            charset="utf8mb4",
            autocommit=True,
            sql_mode=sql_mode,
            **address.connection,
            **options,
        )
        run(connection, *_SESSION)
    except (pymysql.MySQLError, OSError, RuntimeError) as error:  # RuntimeError: a way to log in that needs a package
        raise failure(f"{address.shown}: {explain(error)}.") from None
    return connection


def run(connection: Any, *statements: str | bytes) -> None:
    """Run statements that give no rows."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def fetch(connection: Any, query: str, *values: object) -> list[tuple[Any, ...]]:
    """Run a query and give all its rows; text comes as text, whatever the catalogue calls it."""
    with connection.cursor() as cursor:
        cursor.execute(query, values or None)
        rows = cursor.fetchall()
    return [tuple(v.decode() if isinstance(v, bytes) else v for v in row) for row in rows]


def failures() -> tuple[type[Exception], ...]:
    """What PyMySQL raises when the server refuses something or goes away."""
    import pymysql  # noqa: PLC0415  an extra

    return (pymysql.MySQLError, OSError)


def explain(error: Exception) -> str:
    """Say in our words what the server or the connection reports, with its own words behind."""
    code = error.args[0] if error.args else None
    words = str(error.args[1]) if len(error.args) > 1 else first_line(error)
    if code in _GONE or isinstance(error, BrokenPipeError | ConnectionError):
        return f"the server went away or ended the session ({words})"
    if code == 0 or not words:  # PyMySQL has nothing more to say of a closed session
        return "the session was closed"
    reason = _REASONS.get(code) if isinstance(code, int) else None
    return f"{reason} ({words})" if reason else words
