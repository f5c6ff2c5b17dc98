"""How a network calls its columns that are no columns of the table: all begin with "#".

Learner, generator and the checks of a model take these names from here, so that all of them mean the same. The link of
a key is named by the key, as in `#rows visit.person_id`.
"""

OWNER = "#owner "
"""A given column: the feature of the owner row whose name follows."""
FIRST = "#first "
"""A given column: the column whose name follows, in the first row of the same owner."""
PUBLIC = "#public "
"""A given column of the entity table: how many rows of a public table name the entity, by the key that follows."""
RANK = "#rank"
"""A given column: the place of a row among the rows of its owner."""
STRATUM = "#size"
"""A given column: how many rows the entity has in the table."""


def rows_column(link: str) -> str:
    """The column of an owner row that says how many rows it has through an owner key.

    >>> rows_column("visit.person_id")
    '#rows visit.person_id'
    """
    return f"#rows {link}"


def in_degree_column(link: str) -> str:
    """The column of a row that says how many reference keys name it."""
    return f"#in-degree {link}"


def null_column(link: str) -> str:
    """The column that says whether a row's key is NULL."""
    return f"#null {link}"


def key_column(link: str) -> str:
    """The column that says which block of public rows a row's key names."""
    return f"#key {link}"
