"""URLs of database servers: how one is recognised, and how it is shown without its password."""

import re
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from privbench.errors import SpecError

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_SECRETS = ("password", "passwd", "pwd", "secret", "token", "scram_")
"""Parts of the names of options that hold a password or a key."""
_ENDS = re.compile("[/?#]")
_WITH_AT = re.compile(r"(?<=[?&])(user|password)=[^&]*")
"""Options in which libpq takes an @ that is not escaped."""


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
    'postgresql://host/shop'
    >>> without_password("postgresql://ann:se/cret@host/shop")
    'postgresql://host/shop'
    """
    try:
        parts = urlsplit(url.replace(f"{user}@", "", 1) if _ENDS.search(user := _credentials(url)) else url)
    except ValueError:
        raise SpecError("the URL of the database cannot be read. Write scheme://user@host:port/database.") from None
    user, sign, host = parts.netloc.rpartition("@")
    name_of_host, _, port = host.rpartition(":")
    if not sign and name_of_host and not port.rstrip("]").isdigit():  # a password with a `?` or `#` that is not escaped
        host = name_of_host
    name = user.partition(":")[0]
    words = [(key, value) for key, value in parse_qsl(parts.query) if not _is_secret(key)]
    netloc = f"{name}@{host}" if sign and name else host
    query = urlencode(words, safe="/", quote_via=quote)
    return f"{parts.scheme}://{netloc}{parts.path}{'?' if query else ''}{query}"


def _credentials(url: str) -> str:
    """What stands before the @ of a URL. A password may hold a `/`, `?` or `#` that is not escaped."""
    rest = url.partition("://")[2]
    authority = _ENDS.split(rest, maxsplit=1)[0]
    if "@" in authority:
        return authority.rpartition("@")[0]
    is_torn = ":" in authority and "@" in _WITH_AT.sub("", rest)
    return rest.rpartition("@")[0] if is_torn else ""


def _is_secret(option: str) -> bool:
    return any(word in option.lower() for word in _SECRETS)


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
    password = _credentials(url).partition(":")[2]
    options = [part.partition("=") for part in url.partition("?")[2].split("&")]
    secrets = {password, *(value for key, _, value in options if _is_secret(key))}
    # A client takes parts of a password that is not escaped for a port or a host. Shorter ones would tear messages up.
    secrets |= {part for part in re.split("[/?#&=@:]", password) if len(part) > 2}
    spelled = {text for secret in secrets if secret for text in (secret, unquote(secret))}
    for secret in sorted(spelled, key=len, reverse=True):
        message = message.replace(secret, "***")
    return message
