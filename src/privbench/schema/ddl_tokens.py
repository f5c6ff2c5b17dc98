r"""Cut a statement of DDL into tokens that every reader of it cuts in the same way: servers, their clients, and we.

The text comes from a file that anyone may have written, and goes to a server or into a script. So what could be read in
two ways is refused: a second statement, comments (also MySQL's, which are run), client commands (`\!` of psql,
DELIMITER of mysql), variables of clients, strings that end elsewhere under other settings, brackets that do not match.
"""

import re
from dataclasses import dataclass
from enum import Enum

from privbench.errors import SchemaError

POSTGRES, MYSQL, FILE = "postgres", "mysql", "file"
"""The systems whose signs are known. FILE is DuckDB and SQLite, where a backslash is a letter."""


class DdlError(ValueError):
    """A text is not the one statement, or part of one, that it should be; the message says why."""


class TokenKind(Enum):
    """What a token is: `WORD` is without quotes, `NAME` in those of a name, `BODY` in dollar quotes."""

    WORD = "word"
    NAME = "name"
    STRING = "string"
    NUMBER = "number"
    SIGN = "sign"
    BODY = "body"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `text` is what stands there, of a `NAME` without its quotes."""

    kind: TokenKind
    text: str

    @property
    def word(self) -> str:
        """A word in capital letters; empty for anything else."""
        return self.text.upper() if self.kind is TokenKind.WORD else ""

    def is_sign(self, text: str) -> bool:
        """Whether it is this sign."""
        return self.kind is TokenKind.SIGN and self.text == text


Tokens = tuple[Token, ...]

# No string ends elsewhere if backslashes mean something: none stands alone before a quote.
_STRING = r"'(?:[^'\\]|''|\\[^'])*+'"
_SPACE = re.compile(r"[ \t\r\n]+")
_WORD = r"[A-Za-z_][A-Za-z0-9_]*+(?![\w$])"
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![\w$'\"`])"
_PATTERNS = {
    POSTGRES: (
        (TokenKind.STRING, rf"[eEbBxXnN]?{_STRING}"),
        (TokenKind.NAME, r'"(?:[^"]|"")++"'),
        (TokenKind.WORD, _WORD),
        (TokenKind.NUMBER, _NUMBER),
        (TokenKind.BODY, r"\$(?P<tag>(?:[A-Za-z_][A-Za-z0-9_]*)?)\$(?s:.*?)\$(?P=tag)\$"),
        (TokenKind.SIGN, r"::|:(?=[0-9 ])|\$[0-9]+(?![\w$])|[-+*/<>=~!@#%^&|?]+|[()\[\],.]"),
    ),
    MYSQL: (
        (TokenKind.STRING, rf"[bBxXnN]?{_STRING}"),
        (TokenKind.NAME, r"`(?:[^`]|``)++`"),
        (TokenKind.NUMBER, r"0[xX][0-9A-Fa-f]+(?![\w$'\"`])|0b[01]+(?![\w$'\"`])"),
        (TokenKind.WORD, _WORD),
        (TokenKind.NUMBER, _NUMBER),
        (TokenKind.SIGN, r"[-+*/<>=~!%^&|]+|[(),.]"),
    ),
    FILE: (
        (TokenKind.STRING, r"'(?:[^']|'')*+'"),
        (TokenKind.NAME, r'"(?:[^"]|"")++"'),
        (TokenKind.WORD, _WORD),
        (TokenKind.NUMBER, _NUMBER),
        (TokenKind.SIGN, r"::|[-+*/<>=~!%^&|]+|[()\[\],.]"),
    ),
}
_TOKEN = {
    dialect: re.compile("|".join(f"(?P<{kind.value}{at}>{pattern})" for at, (kind, pattern) in enumerate(patterns)))
    for dialect, patterns in _PATTERNS.items()
}
_KINDS = {kind.value: kind for kind in TokenKind}
_PAIRS = {")": "(", "]": "["}


def word_set(text: str) -> frozenset[str]:
    """A set of words from a text of them."""
    return frozenset(text.split())


_CLIENT_WORDS = word_set(
    """CLEAR CONNECT DELIMITER EDIT EGO EXIT GO HELP NOPAGER NOTEE NOWARNING PAGER PRINT PROMPT QUIT REHASH
    RESETCONNECTION SOURCE STATUS SYSTEM TEE USE"""
)
"""What the client of MySQL may take for a command at the start of a line; the server writes names in quotes."""


def read_tokens(sql: str, dialect: str) -> Tokens:
    r"""Cut one statement, without its semicolon, or part of one into tokens. Raises DdlError.

    >>> [token.text for token in read_tokens("a = 'b;'", "postgres")]
    ['a', '=', "'b;'"]
    >>> read_tokens("SELECT 1; \\! ls", "postgres")
    Traceback (most recent call last):
    privbench.schema.ddl_tokens.DdlError: `;` stands in it, outside quotes
    """
    tokens: list[Token] = []
    at = 0
    while at < len(sql):
        if space := _SPACE.match(sql, at):
            at = space.end()
            continue
        match = _TOKEN[dialect].match(sql, at)
        if match is None:
            raise DdlError(_refused(sql, at))
        tokens.append(_token(match))
        at = match.end()
        if tokens[-1].word == "U" and sql[at : at + 1] == "&":
            raise DdlError("a string or a name with `U&` stands in it")
    _check_brackets(tokens)
    if dialect == MYSQL and (command := next((t for t in tokens if t.word in _CLIENT_WORDS), None)):
        raise DdlError(f"{command.text}, which clients run, stands in it")
    return tuple(tokens)


def _token(match: re.Match[str]) -> Token:
    kind, text = _KINDS[(match.lastgroup or "").rstrip("0123456789")], match[0]
    if kind is TokenKind.SIGN and any(sign in text for sign in ("--", "/*", "*/")):
        raise DdlError("a comment stands in it")
    if kind is TokenKind.NAME:
        text = text[1:-1].replace(text[0] * 2, text[0])
    return Token(kind, text)


def _refused(sql: str, at: int) -> str:
    """Why no token starts there."""
    sign = sql[at]
    if sign in "'\"`$":
        return f"{sign} opens what does not end, or ends elsewhere under other settings"
    return f"`{sign if sign.isprintable() else ascii(sign)[1:-1]}` stands in it, outside quotes"


def _check_brackets(tokens: list[Token]) -> None:
    opened: list[str] = []
    for token in tokens:
        if token.kind is TokenKind.SIGN and token.text in "([":
            opened.append(token.text)
        elif (
            token.kind is TokenKind.SIGN and token.text in _PAIRS and (not opened or opened.pop() != _PAIRS[token.text])
        ):
            raise DdlError("a bracket closes that did not open")
    if opened:
        raise DdlError("a bracket does not close")


def is_one_text(sql: str, dialect: str) -> bool:
    """Whether a text is one statement, or part of one, for every reader of it."""
    try:
        return bool(read_tokens(sql, dialect))
    except DdlError:
        return False


def check_statement(sql: str, dialect: str, *, what: str) -> None:
    """Refuse what would not be one statement on a server or in a script. All that is run goes through here."""
    try:
        read_tokens(sql, dialect)
    except DdlError as error:
        raise SchemaError(f"{what}: cannot be written as one statement: {error}. Leave it out of the spec.") from None
