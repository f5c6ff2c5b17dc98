"""Guess the shape of a text column: from its name, its table's name and its type; from its values only where asked.

A guess by name is careful: the last word of the name has to say it (`phone`, `phone_number`, but not `phone_type`), in
English and a few abbreviations that everybody uses. It never suggests a shape that does not fit the type.
"""

import re
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from privbench.encode.shapes import PATTERN_LETTERS, ROOMY, SHARED, is_pattern, shaping
from privbench.errors import SpecError
from privbench.schema.types import Kind, SqlType

PERSONAL = ("email", "phone", "url", "uuid", "ip", "person", "first_name", "last_name", "address", "hex")
"""Shapes of which hardly any value is shared by many entities, or should be published: to look for these is in vain."""

_ROOM = 100_000_000
"""A shape for a column without repeats has room for at least so many rows."""
_SHARED_ROOM = 5000
"""A shape for a column whose values repeat has more strings than a list of others beside them may have."""
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_COUNTERS = frozenset(["number", "no", "nr", "num", "1", "2", "3", "4"])
_ENDINGS: dict[str, tuple[str, ...]] = {
    "email": ("email", "e mail", "email address", "e mail address", "emailaddress", "email addr"),
    "phone": ("phone", "telephone", "fax", "mobile phone", "cell phone", "cellphone", "phonenumber", "tel"),
    "url": ("url", "uri", "website", "web site", "homepage", "home page", "web page"),
    "uuid": ("uuid", "guid"),
    "ip": ("ip", "ip address", "ipaddress", "ip addr", "ipaddr"),
    "first_name": ("first name", "firstname", "given name", "givenname", "forename", "name first", "name given"),
    "last_name": ("last name", "lastname", "surname", "family name", "familyname", "name last"),
    "person": ("full name", "fullname", "contact name", "person name", "author name", "employee name", "patient name"),
    "city": ("city", "town", "city name"),
    "address": ("address", "street", "street address", "address line", "addr"),
    "company": ("company", "company name", "companyname", "employer", "organisation", "organization", "manufacturer"),
    "sentence": ("description", "comment", "comments", "note", "notes", "remark", "remarks", "biography", "summary"),
    "title": ("title", "headline", "subject"),
    "country": ("country", "country name", "nation"),
    "region": ("state", "province", "region", "district", "county"),
    "postcode": ("postcode", "post code", "postal code", "postalcode", "zip", "zip code", "zipcode"),
    "hex": ("md5", "sha1", "sha256", "hash", "checksum", "digest"),
}
_NOT_BEFORE = {"address": ("mac", "wallet", "bitcoin", "memory", "web", "ip", "mail"), "title": ("job", "courtesy")}
_NAMED_AFTER = {
    "person": (
        "person",
        "people",
        "employee",
        "employees",
        "author",
        "authors",
        "actor",
        "actors",
        "patient",
        "patients",
    ),
    "city": ("city", "cities", "town", "towns"),
    "company": ("company", "companies", "supplier", "suppliers", "manufacturer", "manufacturers"),
}
"""Tables whose column `name` is of a shape."""
_TITLES = (frozenset(["title", "subject"]), 16)
"""Short columns of these names hold how people are addressed, or a category."""
_HEX_LENGTHS = (32, 40, 56, 64, 96, 128)

_CAPITALISED = r"^\p{Lu}[^0-9]*\p{Ll}"
_MATCHING = {
    "email": r"^[^@\s]+@[^@\s]+\.[^@\s]+$",
    "url": r"^(?i:https?|ftp)://\S+$",
    "uuid": r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$",
    "ip": r"^\d{1,3}(\.\d{1,3}){3}$",
    "phone": r"^[-+()./ 0-9xX]{6,}$",
    "hex": r"^[0-9a-fA-F]{8,}$",
    "postcode": r"^[ 0-9A-Za-z-]*[0-9][ 0-9A-Za-z-]*$",
    "name": _CAPITALISED,
    "region": _CAPITALISED,
    "country": _CAPITALISED,
}
"""What nearly all values look like where a shape is right."""
_SURE = ("uuid", "email", "url", "ip")
"""Shapes that are told by the values alone."""
_LETTERED = ("person", "first_name", "last_name", "city", "company", "address", "title", "sentence")
_LETTERS = r"\pL"
_MOST_OFF = 0.02
_MOST_OFF_NAMES = 0.2
"""More of the values of names may look otherwise: there are countries like the USA."""
_NAMES = ("name", "region", "country")
_LONGEST_PATTERN = 40
_CLASSES = (("A", "A", "Z"), ("a", "a", "z"), ("9", "0", "9"))


def guess_shape(column: str, kind: SqlType, *, table: str = "", unique: bool = False) -> str | None:
    """Guess the shape of a column from public facts; None if nothing says it, or there is too little room.

    >>> from privbench.schema.types import parse_type
    >>> text = parse_type("VARCHAR(60)")
    >>> [guess_shape(name, text) for name in ("e_mail", "BillingCity", "phone_type", "nameFirst", "Fax2")]
    ['email', 'city', None, 'first_name', 'phone']
    >>> guess_shape("name", text, table="authors"), guess_shape("email", parse_type("CHAR(5)"))
    ('person', None)
    """
    if kind.kind is not Kind.TEXT:
        return None
    if kind.syntax is not None or kind.labels:
        return kind.syntax
    shape = _by_name(column, table)
    if shape is None or not _suits(shape, column, kind):
        return None
    rows = _SHARED_ROOM if shape in SHARED and not unique else _ROOM
    return shape if fits(shape, kind, rows=rows) else None


def fits(shape: str, kind: SqlType, *, rows: int) -> bool:
    """Tell whether strings of a shape fit the type, enough of them for so many different rows."""
    try:
        made = shaping("", shape, kind)
    except SpecError:
        return False
    return made.room(64 if kind.length is None else kind.length) >= rows


def shape_of_values(guess: str | None, kind: SqlType, values: pa.Array, *, unique: bool) -> str | None:
    """Choose a shape that agrees with different values: the guess, one that they all have, or a pattern of theirs."""
    if kind.syntax is not None or kind.labels:
        return kind.syntax
    rows = 100 * len(values) if unique else len(values)
    if guess is not None and _agrees(guess, values) and fits(guess, kind, rows=rows):
        return guess
    for shape in _SURE:
        if _share(values, _MATCHING[shape]) == 1 and fits(shape, kind, rows=rows):
            return shape
    named = "name" if _agrees("name", values) else None
    candidates = (common_pattern(values), named)
    return next((shape for shape in candidates if shape is not None and fits(shape, kind, rows=rows)), None)


def common_pattern(values: pa.Array) -> str | None:
    """Return the pattern that all values have, with the letters that are the same in all of them; None if none.

    A text that has no digit is more likely a word than a code.

    >>> common_pattern(pa.array(["AB-1234", "CD-1235", "EF-1300"]))
    'AA-9999'
    """
    lengths = pc.min_max(pc.utf8_length(values)).as_py() if len(values) > 1 else {"min": 0, "max": 0}
    if lengths["min"] != lengths["max"] or not 2 <= lengths["max"] <= _LONGEST_PATTERN:
        return None
    marks = [_mark(pc.utf8_slice_codeunits(values, at, at + 1).unique().to_pylist()) for at in range(lengths["max"])]
    pattern = "".join(mark or "" for mark in marks)
    return pattern if all(marks) and "9" in pattern and is_pattern(pattern) else None


def _mark(letters: Sequence[str]) -> str | None:
    """What a pattern says of a place where these characters stand."""
    if len(letters) == 1 and letters[0] not in PATTERN_LETTERS and not letters[0].isdigit():
        return letters[0]
    return next((mark for mark, low, high in _CLASSES if all(low <= letter <= high for letter in letters)), None)


def _agrees(shape: str, values: pa.Array) -> bool:
    if shape in _MATCHING:
        return _share(values, _MATCHING[shape]) >= 1 - (_MOST_OFF_NAMES if shape in _NAMES else _MOST_OFF)
    return shape not in _LETTERED or _share(values, _LETTERS) >= 1 - _MOST_OFF


def _share(values: pa.Array, pattern: str) -> float:
    return float(pc.mean(pc.match_substring_regex(values, pattern)).as_py() or 0.0)


def _by_name(column: str, table: str) -> str | None:
    words = [word.lower() for word in _WORDS.findall(column)]
    while len(words) > 1 and words[-1] in _COUNTERS:
        words.pop()
    if words == ["name"]:
        named = "".join(_WORDS.findall(table)).lower()
        return next((shape for shape, tables in _NAMED_AFTER.items() if named in tables), None)
    for shape, endings in _ENDINGS.items():
        for ending in (e.split() for e in endings):
            if words[-len(ending) :] == ending and not {*words[: -len(ending)]} & {*_NOT_BEFORE.get(shape, ())}:
                return shape
    return None


def _suits(shape: str, column: str, kind: SqlType) -> bool:
    """Tell whether the type leaves a shape that a name suggests any sense."""
    if shape == "hex":
        return kind.length in _HEX_LENGTHS
    if shape in ("country", "region"):
        return kind.length is None or kind.length >= ROOMY
    names, short = _TITLES
    return column.lower() not in names or kind.length is None or kind.length >= short
