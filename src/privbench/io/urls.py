"""URLs of database servers: how one is recognised, and how it is shown without its password."""

import re
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

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
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise SpecError("the URL of the database cannot be read. Write scheme://user@host:port/database.") from None
    user, sign, host = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    words = [(key, value) for key, value in parse_qsl(parts.query) if key.lower() not in _SECRETS]
    netloc = f"{name}@{host}" if sign and name else host
    return urlunsplit((parts.scheme, netloc, parts.path, urlencode(words, safe="/", quote_via=quote), ""))
