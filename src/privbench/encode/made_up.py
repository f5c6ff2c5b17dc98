"""The domain of a UNIQUE column, from its type alone: its values are made up, so none needs to be looked at."""

from privbench.schema.domain import Domain, Serial, Text
from privbench.schema.types import Kind, SqlType

_LENGTHS = (0, 8, 16, 32, 64, 128)


def made_up_domain(kind: SqlType) -> Domain:
    """Return new numbers, or new texts of lengths that the type allows.

    >>> from privbench.schema.types import parse_type
    >>> made_up_domain(parse_type("VARCHAR(40)")).text, made_up_domain(parse_type("CHAR(2)")).text
    ((0, 8, 16, 32, 40), (2, 3))
    """
    if kind.kind is not Kind.TEXT:
        return Serial()
    if kind.length is None:
        return Text(text=_LENGTHS)
    if kind.sql.startswith("CHAR"):
        return Text(text=(kind.length, kind.length + 1))
    return Text(text=(*(edge for edge in _LENGTHS if edge < kind.length), kind.length))
