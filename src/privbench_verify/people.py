"""Columns that look like people, by their names and types: names, addresses, dates of birth, photos, national ids.

Whether rows are public is the publisher's word alone. Where the names of a table's columns speak against it, the reader
of a receipt is told. The last words of a name have to say it (`phone`, `phone_number`, but not `phone_type`). What
anything may have, such as a name or a picture, counts where the table itself or another of its columns is about people.
"""

import re
from collections.abc import Mapping, Sequence

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_COUNTERS = frozenset(["number", "no", "nr", "num", "1", "2", "3", "4"])
_ALWAYS = (
    "email",
    "e mail",
    "email address",
    "mail address",
    "phone",
    "telephone",
    "mobile",
    "cellphone",
    "fax",
    "first name",
    "given name",
    "forename",
    "middle name",
    "middle initial",
    "last name",
    "surname",
    "family name",
    "maiden name",
    "full name",
    "name first",
    "name last",
    "name given",
    "birth date",
    "birth day",
    "birthday",
    "birthdate",
    "date of birth",
    "birth year",
    "birth place",
    "dob",
    "ssn",
    "social security",
    "national id",
    "passport",
    "driver license",
    "driver licence",
    "drivers license",
    "personal id",
    "tax id",
)
"""Last words of names of columns that are about a person, whatever the table."""
_OF_PEOPLE = (
    "address",
    "street",
    "photo",
    "picture",
    "portrait",
    "avatar",
    "image",
    "signature",
    "fingerprint",
    "gender",
    "sex",
    "salary",
    "wage",
    "hire date",
    "login",
    "username",
    "password",
    "title of courtesy",
)
"""Last words that are about a person in a table that is about people."""
_PERSONS = {
    *re.findall(
        r"\w+",
        "person people employee staff worker customer client user member patient author actor player student pupil "
        "teacher doctor physician nurse contact driver agent manager owner guest passenger candidate applicant voter "
        "citizen resident tenant subscriber donor volunteer participant salesperson buyer director athlete lawyer",
    )
}
"""Last words of names of tables that are about people; before `name`, those whose name it is."""
_AROUND = frozenset(["tbl", "table", "dim", "tab", "list", "info", "data", "detail", "details", "address", "addresses"])
"""Words at the end of names of tables that say nothing of what the rows are."""
_BYTES = re.compile(r"(BLOB|BYTEA|(VAR)?BINARY)(\([0-9]{1,10}\))?", re.IGNORECASE)
_NO_DETAIL = re.compile(r"BOOL", re.IGNORECASE)


def people_columns(table: str, columns: Mapping[str, str]) -> dict[str, str]:
    """Find the columns of a table that look like people, given the SQL types of all.

    >>> people_columns("staff", {"id": "INTEGER", "first_name": "VARCHAR", "picture": "BLOB", "active": "BOOLEAN"})
    {'first_name': 'VARCHAR', 'picture': 'BLOB'}
    >>> people_columns("category", {"name": "VARCHAR", "picture": "BLOB"})
    {}
    """
    told = {name: kind for name, kind in columns.items() if not _NO_DETAIL.search(kind)}
    sure = [name for name in told if _ends_with(_words(name), _ALWAYS) or _is_name_of_person(_words(name))]
    if not sure and not _is_of_people(table):
        return {}
    found = (n for n in told if n in sure or _words(n) == ["name"] or _ends_with(_words(n), _OF_PEOPLE))
    return {name: told[name] for name in found}


def with_bytes(name: str, kind: str) -> str:
    """A name, with its type if that is one of bytes.

    >>> with_bytes("picture", "BLOB"), with_bytes("email", "VARCHAR")
    ('picture (BLOB)', 'email')
    """
    return f"{name} ({kind})" if _BYTES.fullmatch(kind) else name


def _words(name: str) -> list[str]:
    words = [word.lower() for word in _WORDS.findall(name)]
    while len(words) > 1 and words[-1] in _COUNTERS:
        words.pop()
    return words


def _ends_with(words: Sequence[str], endings: Sequence[str]) -> bool:
    """Whether words end so, also if they are written as one word."""
    joined = " ".join(words)
    alone = words[-1] if words else ""
    return any(f" {joined}".endswith(f" {ending}") or alone == ending.replace(" ", "") for ending in endings)


def _is_name_of_person(words: Sequence[str]) -> bool:
    """Whether it is the name of somebody: contact_name, but not product_name."""
    return len(words) > 1 and words[-1] == "name" and _singular(words[-2]) in _PERSONS


def _is_of_people(table: str) -> bool:
    words = _words(table)
    while len(words) > 1 and words[-1] in _AROUND:
        words.pop()
    return bool(words) and _singular(words[-1]) in _PERSONS


def _singular(word: str) -> str:
    return word[:-1] if word.endswith("s") and word not in _PERSONS else word
