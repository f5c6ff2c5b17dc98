"""URLs of database servers: how one is recognised, and how it is shown without its password."""

import re
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

from privbench.errors import SpecError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SECRETS = frozenset({"password", "passwd", "pwd", "sslpassword"})


def scheme_of(location: str) -> str | None:
    """The scheme of a URL, in lower case; None for a path or the name of a format.

    >>> scheme_of("postgresql://host/shop"), scheme_of("parquet")
    ('postgresql', None)
    """
    match = _SCHEME.match(location)
    return match[1].lower() if match else None


def without_password(url: str) -> str:
    """The URL as it may be shown, logged and written down.

    >>> without_password("postgresql://ann:secret@host:5433/shop?sslmode=require&password=x")
    'postgresql://ann@host:5433/shop?sslmode=require'
    >>> without_password("postgresql://ann:se?cret@host/shop")
    'postgresql://ann'
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise SpecError("the URL of the database cannot be read. Write scheme://user@host:port/database.") from None
    user, sign, host = parts.netloc.rpartition("@")
    name_of_host, _, port = host.rpartition(":")
    if not sign and name_of_host and not port.rstrip("]").isdigit():  # a password with a `?` or `#` that is not escaped
        host = name_of_host
    name = user.partition(":")[0]
    words = [(key, value) for key, value in parse_qsl(parts.query) if key.lower() not in _SECRETS]
    netloc = f"{name}@{host}" if sign and name else host
    return urlunsplit((parts.scheme, netloc, parts.path, urlencode(words, safe="/", quote_via=quote), ""))


def shown(location: str) -> str:
    """A path as it is, a URL without its password.

    >>> shown("shop.duckdb"), shown("mysql://ann:secret@host/shop")
    ('shop.duckdb', 'mysql://ann@host/shop')
    """
    return location if scheme_of(location) is None else without_password(location)


def hide_secrets(message: str, url: str) -> str:
    """A message of a driver without the passwords of the URL, should it quote them.

    >>> hide_secrets("bad option s%20t or s t", "postgresql://ann:s%20t@host/shop")
    'bad option *** or ***'
    """
    user = url.partition("://")[2].partition("/")[0].rpartition("@")[0]
    options = [part.partition("=") for part in url.partition("?")[2].split("&")]
    secrets = {user.partition(":")[2], *(value for key, _, value in options if key.lower() in _SECRETS)}
    spelled = {text for secret in secrets if secret for text in (secret, unquote(secret))}
    for secret in sorted(spelled, key=len, reverse=True):
        message = message.replace(secret, "***")
    return message
