"""Where a MySQL or MariaDB server is and who asks: the URL, the user's option file, and the environment.

What the URL leaves out is taken from the section `[client]` of the option file (`~/.my.cnf`, or the file that
`?option_file=` names), as the server's own client does; a password may also be in `MYSQL_PWD`. The password is in no
text that is made from an address.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from privbench.errors import SpecError
from privbench.io.urls import scheme_of, without_password

SCHEMES = ("mysql", "mariadb")
_FORM = (
    "Write mysql://user@host:port/database, with signs such as @ / ? # as %40 %2F %3F %23. The password may be in "
    "~/.my.cnf or MYSQL_PWD."
)
_IN_URL = ("unix_socket", "option_file", "ssl_ca", "ssl_cert", "ssl_key")
_IN_FILE = {
    "user": "user",
    "password": "password",
    "host": "host",
    "port": "port",
    "socket": "unix_socket",
    "ssl-ca": "ssl_ca",
    "ssl-cert": "ssl_cert",
    "ssl-key": "ssl_key",
}
"""The lines of an option file that we read, and how PyMySQL calls them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One database of a server; `shown` is its URL without the password."""

    shown: str
    database: str
    connection: Mapping[str, Any] = field(repr=False)
    """How to connect, as PyMySQL takes it; it may hold a password."""


def is_address(location: str) -> bool:
    """Tell whether a location is a URL of ours.

    >>> is_address("mariadb://me@host/shop"), is_address("shop.duckdb")
    (True, False)
    """
    return scheme_of(location) in SCHEMES


def read_address(url: str, *, environment: Mapping[str, str] = os.environ) -> Address:
    """Read a URL such as `mysql://user@host:3306/database?unix_socket=/path`.

    >>> read_address("mysql://me:secret@db.example/shop?ssl_ca=ca.pem", environment={}).shown
    'mysql://me@db.example/shop?ssl_ca=ca.pem'
    """
    parts, port = _split(url)
    database, shown = unquote(parts.path[1:]), without_password(url)
    asked = dict(parse_qsl(parts.query))
    if unknown := sorted(set(asked) - set(_IN_URL)):
        raise SpecError(f"{shown}: `{unknown[0]}` is no option of such a URL. Options: {', '.join(_IN_URL)}.")
    own = {
        "user": unquote(parts.username or ""),
        "password": unquote(parts.password or ""),
        "host": parts.hostname or "",
        "port": port or 0,
        **{name: value for name, value in asked.items() if name != "option_file"},
    }
    path = Path(asked.get("option_file", "~/.my.cnf"))
    from_file = _read_options(path, wanted="option_file" in asked)
    if own["host"] and own["host"] != "localhost":  # a socket is of this computer
        from_file.pop("unix_socket", None)
    elif "unix_socket" in own:
        from_file.pop("host", None)
    merged = {**from_file, **{name: value for name, value in own.items() if value}}
    merged.setdefault("password", environment.get("MYSQL_PWD", ""))
    merged["password"] = str(merged["password"]).encode()  # PyMySQL would write it in Latin-1
    return Address(shown=shown, database=database, connection=merged)


def _split(url: str) -> tuple[SplitResult, int | None]:
    """Take a URL apart. What cannot be read is not shown: any part of it may be of a password."""
    scheme, _, rest = url.partition("://")
    hidden = f"{scheme}://{'..@' if '@' in rest else ''}{rest.rpartition('@')[2]}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise SpecError(f"{hidden}: the port is no number. {_FORM}") from None
    if "@" in parts.path + parts.query + parts.fragment:
        raise SpecError(f"{hidden}: more than one @ or a sign that means something in URLs. {_FORM}")
    if not parts.path[1:] or "/" in parts.path[1:]:
        raise SpecError(f"{hidden}: names no database. {_FORM}")
    return parts, port


def _read_options(path: Path, *, wanted: bool) -> dict[str, Any]:
    """Read the section `[client]` of an option file. A line that is not understood is passed over, never shown."""
    try:
        lines = path.expanduser().read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        if wanted:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise SpecError(f"{path}: the option file cannot be read ({reason}).") from None
        return {}
    options: dict[str, Any] = {}
    section = ""
    for line in map(str.strip, lines):
        if line.startswith("["):
            section = line.strip("[] ").lower()
        elif section == "client" and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            option = _IN_FILE.get(name.strip().lower().replace("_", "-"))
            if option is not None:
                options[option] = _unquoted(value.strip())
    if "port" in options:
        options["port"] = int(options["port"]) if options["port"].isdigit() else 0
    return options


def _unquoted(value: str) -> str:
    return value[1:-1] if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"" else value
