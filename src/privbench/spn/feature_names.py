"""How a network calls its columns that are not columns of the table: all begin with NUL, which no real name holds.

Learner, generator and the checks of a model take these names from here, so that all of them mean the same. The feature
of a key is named by the key, as in `#rows visit.person_id`: that is how `shown` writes it for people to read.
"""

MARK = "\0"
"""The first character of every such name. A schema refuses it in the names of tables and columns."""

OWNER = f"{MARK}owner "
"""A given column: the feature of the owner row whose name follows."""
FIRST = f"{MARK}first "
"""A given column: the column whose name follows, in the first row of the same owner."""
PUBLIC = f"{MARK}public "
"""A given column of the entity table: how many rows of a public table reference the entity, by the key that follows."""
RANK = f"{MARK}rank"
"""A given column: the place of a row among the rows of its owner."""
STRATUM = f"{MARK}size"
"""A given column: how many rows the entity has in the table."""
ACTIVITY = f"{MARK}activity"
"""A column of an owner row: how many rows it owns through owner keys, at all levels together."""
COMPONENT = f"{MARK}part"
"""Which part of the table a row comes from, in networks that divide the rows."""


def shown(name: str) -> str:
    """The name of a column as people read it. Two columns may look the same: compare names, not what is shown.

    >>> shown(owner_column(rows_column("visit.person_id")))
    '#owner #rows visit.person_id'
    >>> shown(ACTIVITY)
    '#activity'
    """
    return name.replace(MARK, "#")


def owner_column(feature: str) -> str:
    """The given column that holds a feature of the owner row."""
    return f"{OWNER}{feature}"


def first_column(feature: str) -> str:
    """The given column that holds a feature of the first row of the same owner."""
    return f"{FIRST}{feature}"


def public_column(link: str) -> str:
    """The given column that says how many rows of a public table reference an entity by that key."""
    return f"{PUBLIC}{link}"


def rows_column(link: str) -> str:
    """The column of an owner row that says how many rows it has through an owner key."""
    return f"{MARK}rows {link}"


def in_degree_column(link: str) -> str:
    """The column of a row that says how many reference keys point at it."""
    return f"{MARK}in-degree {link}"


def null_column(link: str) -> str:
    """The column that says whether a row's key is NULL."""
    return f"{MARK}null {link}"


def own_column(link: str) -> str:
    """The column that says whether a row's key references another row (0), the one above it (1) or is NULL (2)."""
    return f"{MARK}own {link}"


def key_column(link: str) -> str:
    """The column that says which block of public rows a row's key references."""
    return f"{MARK}key {link}"
