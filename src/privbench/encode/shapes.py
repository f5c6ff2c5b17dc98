"""Shapes of made-up strings: e-mail addresses, names, codes. Which there are, and how a number becomes one.

Some shapes are spelled at any length (`spelling`). The others are put together from lists of words and digits: a form
is a row of such lists, and a number picks a word of each. Forms are kept in levels: the first holds what people would
write, later ones longer strings for more rows than that. Different numbers never give the same string, because the
words of a form are told apart by what stands between them, and no two forms look the same.

Addresses, numbers and hosts are from the ranges that are reserved for examples or private networks (RFC 2606, RFC
1918, the 555-01xx telephone numbers), so that none belongs to anybody.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from string import ascii_lowercase, ascii_uppercase, digits

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode import wordlists
from privbench.encode.spelling import (
    BITS,
    DIGITS,
    HEXADECIMAL,
    LETTERS,
    NAME,
    SENTENCE,
    SYLLABLES,
    TITLE,
    Spelling,
    enclosed,
    in_groups,
    in_pairs,
    mixed,
)
from privbench.errors import SpecError
from privbench.schema.types import SqlType

_Form = tuple[Sequence[str], ...]
_Levels = Sequence[Sequence[_Form]]

TRIES = 4
"""Of so many strings that a row could get, it gets the one whose length suits best."""
_SMALL = 2**16
"""Of no more strings than this, each cell of lengths gets those that suit it."""
_ENDLESS = 2**62
_ROUNDS = 2
_ODD = np.uint64(0x9E3779B97F4A7C15)
ROOMY = 20
"""From this length on syllables tell apart as many rows as any table has."""

PATTERN_LETTERS = {"A": ascii_uppercase, "a": ascii_lowercase, "9": digits}


def _numbers(places: int) -> Sequence[str]:
    return tuple(f"{n:0{places}d}" for n in range(10**places))


def _hex(places: int) -> Sequence[str]:
    return tuple(f"{n:0{places}x}" for n in range(16**places))


def _person() -> _Levels:
    first, last = wordlists.FIRST_NAMES, wordlists.LAST_NAMES
    initial = (first, (" ",), ascii_uppercase, (". ",), last)
    return [[(first, (" ",), last)], [initial], [(*initial, ("-",), last)]]


def _hyphened(names: Sequence[str]) -> Callable[[], _Levels]:
    joined = (names, ("-",), names)
    return lambda: [[(names,)], [joined], [(*joined, ("-",), names)]]


def _email() -> _Levels:
    first, last = (tuple(map(str.lower, names)) for names in (wordlists.FIRST_NAMES, wordlists.LAST_NAMES))
    host = (("@example.",), ("com", "org", "net"))
    dotted, scored = (first, (".",), last), (first, ("_",), last)
    return [
        [(*dotted, *host), (*scored, *host), (ascii_lowercase, (".",), last, _numbers(2), *host)],
        [(*dotted, _numbers(3), *host), (*scored, _numbers(3), *host)],
        [(*dotted, _numbers(4), _numbers(3), *host)],
        [(_numbers(1), ("@example.com",))],
    ]


def _phone() -> _Levels:
    area = tuple(f"{n}" for n in range(200, 1000) if n % 100 != 11 and n // 10 % 10 != 9)
    dashed = (area, ("-555-01",), _numbers(2))
    plain = (area, ("55501",), _numbers(2))
    return [[dashed], [(*dashed, (" x",), _numbers(4))], [plain], [(*plain, ("x",), _numbers(4))]]


def _url() -> _Levels:
    nouns, ends = wordlists.NOUNS, ("com", "org", "net")
    host, plain = (("https://www.example.",), ends, ("/",)), (("https://example.",), ends, ("/",))
    return [
        [(*host, nouns, ("/",), nouns), (*plain, nouns, ("-",), nouns)],
        [(*host, nouns, ("/",), nouns, ("/",), _numbers(4)), (*plain, nouns, ("-",), nouns, ("-",), _numbers(4))],
        [(*host, nouns, ("/",), _numbers(4), _numbers(4))],
    ]


def _uuid() -> _Levels:
    four, version = _hex(4), _hex(3)
    variant = tuple(f"{first}{rest}" for first in "89ab" for rest in version)
    dash = ("-",)
    return [[(four, four, dash, four, ("-4",), version, dash, variant, dash, four, four, four)]]


def _ip() -> _Levels:
    octets, hosts = tuple(map(str, range(256))), tuple(map(str, range(1, 255)))
    return [[(("10.",), octets, (".",), octets, (".",), hosts)]]


def _cidr() -> _Levels:
    octets = tuple(map(str, range(256)))
    return [
        [(("10.",), octets, (".",), octets, (".0/24",))],
        [(("10.",), octets, (".",), octets, (".",), octets, ("/32",))],
    ]


def _mac(pairs: int) -> Callable[[], _Levels]:
    """Addresses that a network gives out itself, by their second bit."""
    return lambda: [[(("02",), *(part for _ in range(pairs - 1) for part in ((":",), _hex(2))))]]


def _places(names: Sequence[str]) -> Callable[[], _Levels]:
    joined, directions = (names, ("-",), names), (wordlists.DIRECTIONS, (" ",))
    return lambda: [
        [(names,)],
        [(*directions, names)],
        [joined],
        [(*directions, *joined)],
        [(*directions, *joined, ("-",), names)],
    ]


def _postcode() -> _Levels:
    five = (_numbers(2), _numbers(3))
    return [[five], [(*five, ("-",), _numbers(4))], [(*five, ("-",), _numbers(4), _numbers(2))]]


def _address() -> _Levels:
    house = tuple(map(str, range(1, 1000)))
    street = (house, (" ",), wordlists.STREETS, (" ",), wordlists.STREET_KINDS)
    return [[street], [(*street, (" Apt ",), _numbers(2))], [(*street, (" Apt ",), _numbers(4))]]


def _company() -> _Levels:
    names, kinds = wordlists.LAST_NAMES, wordlists.COMPANY_KINDS
    both = (names, (" & ",), names)
    return [
        [(names, (" ",), kinds)],
        [both, (*both, (" ",), kinds)],
        [(names, (", ",), *both)],
        [(names, (", ",), *both, (" ",), kinds)],
    ]


_COMPOSED: dict[str, Callable[[], _Levels]] = {
    "email": _email,
    "phone": _phone,
    "url": _url,
    "uuid": _uuid,
    "ip": _ip,
    "cidr": _cidr,
    "mac": _mac(6),
    "mac8": _mac(8),
    "empty_array": lambda: [[(("{}",),)]],
    "person": _person,
    "first_name": _hyphened(wordlists.FIRST_NAMES),
    "last_name": _hyphened(wordlists.LAST_NAMES),
    "city": _places(wordlists.CITIES),
    "region": _places(wordlists.REGIONS),
    "country": _places(wordlists.COUNTRIES),
    "postcode": _postcode,
    "address": _address,
    "company": _company,
}
_SPELLED = {
    "hex": HEXADECIMAL,
    "word": SYLLABLES,
    "name": NAME,
    "title": TITLE,
    "sentence": SENTENCE,
    "json": enclosed('{"value": "', SYLLABLES, '"}', shortest="{}"),
    "xml": enclosed("<value>", SYLLABLES, "</value>", shortest="<value/>"),
    "bytes": enclosed("\\x", in_pairs(HEXADECIMAL), "", shortest="\\x"),
    "bits": BITS,
    "lexeme": enclosed("'", SYLLABLES, "'", shortest="''"),
    "text_array": enclosed("{", in_groups(SYLLABLES, 7), "}", shortest="{}"),
    "number_array": enclosed("{", in_groups(DIGITS, 5), "}", shortest="{}"),
}
SHAPES = (*_COMPOSED, *_SPELLED)
"""The names of all shapes; any other one is a pattern."""
SHARED = ("first_name", "last_name", "city", "region", "country", "postcode", "ip")
"""Shapes whose strings many rows have in common."""


class _Words:
    """One place of a form: the words that can stand there, and how long each is."""

    def __init__(self, strings: Sequence[str]) -> None:
        self.strings = pa.array(list(strings), pa.string())
        self.lengths = np.array([len(s) for s in strings], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Numbers that become strings of one form: where they stand, and which word each picks at each place."""

    rows: NDArray[np.int64]
    parts: tuple[_Words, ...]
    picks: list[NDArray[np.int64]]

    def lengths(self) -> NDArray[np.int64]:
        return np.asarray(sum(part.lengths[pick] for part, pick in zip(self.parts, self.picks, strict=True)))

    def strings(self) -> pa.Array:
        taken = [
            part.strings[0] if len(part) == 1 < len(self.parts) else part.strings.take(pa.array(pick))
            for part, pick in zip(self.parts, self.picks, strict=True)
        ]
        return pc.binary_join_element_wise(*taken, "") if len(taken) > 1 else taken[0]


class Composed:
    """A shape that is put together from words, in forms that all fit some length."""

    def __init__(self, levels: _Levels, *, limit: int | None) -> None:
        """Keep the forms that fit the limit, without the words that are too long for it."""
        fitting = [[f for form in level if (f := _fitted(form, limit))] for level in levels]
        self._levels = [[tuple(map(_Words, form)) for form in level] for level in fitting if level]
        rooms = [min(prod(map(len, form)) for form in level) for level in self._levels]
        self.ends = [min(sum(rooms[: at + 1]), _ENDLESS) for at in range(len(rooms))]
        self._orders: dict[tuple[object, ...], NDArray[np.int64]] = {}
        forms = [form for level in self._levels for form in level]
        self._shortest = min((sum(int(p.lengths.min()) for p in form) for form in forms), default=0)
        self._longest = max((sum(int(p.lengths.max()) for p in form) for form in forms), default=0)
        self._tries = 1 if self._shortest == self._longest else TRIES

    @property
    def size(self) -> int:
        """How many different strings there are; 0 if none fits."""
        return self.ends[-1] if self.ends else 0

    @property
    def usual(self) -> int:
        """How many strings there are that people would write."""
        return self.ends[0] if self.ends else 0

    def room(self, longest: int) -> int:
        """How many rows can get a string of their own; the length counts for nothing, since all strings fit."""
        del longest
        return self.size // self._tries

    @property
    def reach(self) -> tuple[int, int]:
        """The shortest and the longest length of the strings that people would write."""
        usual = self._levels[0]
        return (
            min(sum(int(p.lengths.min()) for p in form) for form in usual),
            max(sum(int(p.lengths.max()) for p in form) for form in usual),
        )

    def unique(
        self, numbers: NDArray[np.int64], shortest: NDArray[np.int64], longest: NDArray[np.int64], *, salt: int
    ) -> pa.Array:
        """Spell each number so that no two meet, of the strings that are its own the one whose length suits best."""
        chosen = numbers * self._tries
        if self._tries > 1:
            chosen = self._best(chosen, shortest, longest, tries=self._tries, salt=salt)
        return self._strings(chosen, salt=salt)

    def pooled(
        self, numbers: NDArray[np.int64], bounds: tuple[int, int], *, pool: int, cell: tuple[int, int], salt: int
    ) -> pa.Array:
        """Spell numbers of a pool; `cell` says for which cell of how many, so that cells do not share strings."""
        at, cells = cell
        if bounds[1] == 0:
            return pa.array([""] * len(numbers), pa.string())
        candidates = min(self.size, max(self.usual, TRIES * pool))
        if self._tries > 1 and candidates <= _SMALL:
            order = self._suiting(candidates, bounds, cell, salt=salt)
            return self._strings(order[numbers % len(order)], salt=salt)
        tries = max(1, min(self._tries, self.size // (pool * cells)))
        chosen = (numbers * cells + at) * tries
        if tries > 1:
            low, high = (np.full(len(numbers), bound, dtype=np.int64) for bound in bounds)
            chosen = self._best(chosen, low, high, tries=tries, salt=salt)
        return self._strings(chosen % self.size, salt=salt)

    def _suiting(
        self, candidates: int, bounds: tuple[int, int], cell: tuple[int, int], *, salt: int
    ) -> NDArray[np.int64]:
        """Return numbers in the order in which they suit a cell: all that fit, the usual first, then the nearest.

        Of those that do not fit, each cell has some for itself, so that cells without any do not share theirs.
        """
        key = (candidates, bounds, cell, salt)
        if key not in self._orders:
            at, cells = cell
            numbers = np.arange(candidates)
            misfit = _misfit(self._lengths(numbers, salt=salt), *bounds)
            foreign = (misfit > 0) & (numbers % cells != at)
            self._orders[key] = np.lexsort((numbers, misfit, foreign, misfit > 0))
        return self._orders[key]

    def _best(
        self,
        numbers: NDArray[np.int64],
        shortest: NDArray[np.int64],
        longest: NDArray[np.int64],
        *,
        tries: int,
        salt: int,
    ) -> NDArray[np.int64]:
        """Return, of each number and those after it, the one whose string suits the lengths best."""
        best = numbers.copy()
        misfit = _misfit(self._lengths(numbers, salt=salt), shortest, longest)
        for attempt in range(1, tries):
            rows = np.flatnonzero(misfit)
            tried = numbers[rows] + attempt
            lengths = self._lengths(tried, salt=salt)
            off = _misfit(lengths, shortest[rows], longest[rows])
            better = off < misfit[rows]
            best[rows[better]], misfit[rows[better]] = tried[better], off[better]
        return best

    def _lengths(self, numbers: NDArray[np.int64], *, salt: int) -> NDArray[np.int64]:
        lengths = np.empty(len(numbers), dtype=np.int64)
        for group in self._groups(numbers, salt=salt):
            lengths[group.rows] = group.lengths()
        return lengths

    def _strings(self, numbers: NDArray[np.int64], *, salt: int) -> pa.Array:
        groups = self._groups(numbers, salt=salt)
        if len(groups) == 1:
            return groups[0].strings()
        made = pa.concat_arrays([pa.array([], pa.string()), *(group.strings() for group in groups)])
        places = np.empty(len(numbers), dtype=np.int64)
        places[np.concatenate([np.empty(0, np.int64), *(group.rows for group in groups)])] = np.arange(len(numbers))
        return made.take(pa.array(places))

    def _groups(self, numbers: NDArray[np.int64], *, salt: int) -> list[_Group]:
        """Sort numbers by the form that they are written in, which follows from the number alone."""
        groups = []
        levels = np.searchsorted(self.ends, numbers, side="right")
        for at, forms in enumerate(self._levels):
            rows = np.flatnonzero(levels == at)
            own = numbers[rows] - (self.ends[at - 1] if at else 0)
            form = mixed(own, salt=salt) % np.uint64(len(forms))
            for which, parts in enumerate(forms):
                mine = np.flatnonzero(form == np.uint64(which))
                if len(mine):
                    picks = _picks(own[mine], [len(part) for part in parts], salt=salt + which)
                    groups.append(_Group(rows[mine], parts, picks))
        return groups


Shaping = Spelling | Composed
"""What turns numbers into strings."""


def shaping(where: str, shape: str | None, kind: SqlType) -> Shaping:
    """Return what makes strings of a shape that fit a type; SpecError if none does, or there is no such shape.

    Without a shape, strings have the syntax of the type, or are syllables, or letters and digits where there is little
    room.
    """
    if kind.syntax is not None and shape not in (None, kind.syntax):
        raise SpecError(f"{where}: values of {kind.sql} have the shape {kind.syntax!r}, not {shape!r}. Leave it out.")
    shape = shape or kind.syntax
    if shape is None:
        return SYLLABLES if kind.length is None or kind.length >= ROOMY else LETTERS
    if shape in _SPELLED:
        return _SPELLED[shape]
    composed = _composed(shape, kind.length)
    if composed is None:
        raise SpecError(
            f"{where}: {shape!r} is no shape. Write one of {', '.join(SHAPES)}, or a pattern such as AA-9999 (A is a "
            "capital letter, a a small one, 9 a digit, anything else stands as it is)."
        )
    if not composed.size:
        raise SpecError(
            f"{where}: no string of the shape {shape!r} fits {kind.sql}. Write another shape, or leave it out."
        )
    return composed


@cache
def _composed(shape: str, limit: int | None) -> Composed | None:
    if shape in _COMPOSED:
        return Composed(_COMPOSED[shape](), limit=limit)
    return Composed([[_pattern(shape)]], limit=limit) if is_pattern(shape) else None


def is_pattern(shape: str) -> bool:
    """Tell whether a text is a pattern rather than a misspelt shape: it has a 9 or an A, or no letter but a.

    >>> is_pattern("AA-9999"), is_pattern("aaa"), is_pattern("emial"), is_pattern("---")
    (True, True, False, False)
    """
    letters = {c for c in shape if c.isalpha()}
    return "9" in shape or "A" in shape or letters == {"a"}


def _pattern(pattern: str) -> _Form:
    return tuple(PATTERN_LETTERS.get(letter, (letter,)) for letter in pattern)


def _fitted(form: _Form, limit: int | None) -> _Form | None:
    """Leave the longest words out of a form until all of its strings fit; None if they never do."""
    words = [list(part) for part in form]
    while limit is not None and (excess := sum(max(map(len, part)) for part in words) - limit) > 0:
        spread = [max(map(len, part)) - min(map(len, part)) for part in words]
        widest = int(np.argmax(spread))
        if not spread[widest]:
            return None
        longest = max(map(len, words[widest]))
        words[widest] = [w for w in words[widest] if len(w) <= longest - min(1, excess)]
    return tuple(words)


def _misfit(
    lengths: NDArray[np.int64], shortest: NDArray[np.int64] | int, longest: NDArray[np.int64] | int
) -> NDArray[np.int64]:
    """By how many characters each length misses its bounds."""
    return np.asarray(np.maximum(np.maximum(shortest - lengths, lengths - longest), 0))


def _picks(numbers: NDArray[np.int64], sizes: Sequence[int], *, salt: int) -> list[NDArray[np.int64]]:
    """Turn each number into a digit per place, mixed so that neighbours look unrelated; no two numbers become the same.

    Each digit is shifted by a hash of all others, place by place, which can be undone in the opposite order. A form
    with a single list keeps its order: common words come first.
    """
    rest = numbers.astype(np.uint64)
    places = []
    for size in sizes:
        places.append(rest % np.uint64(size))
        rest = rest // np.uint64(size)
    free = [at for at, size in enumerate(sizes) if size > 1]
    factors = {at: np.uint64((2 * at + 1) * int(_ODD) % 2**64) for at in free}
    total = np.zeros(len(numbers), dtype=np.uint64)
    for at in free:
        total += places[at] * factors[at]
    for turn in range(_ROUNDS if len(free) > 1 else 0):
        for at in free:
            total -= places[at] * factors[at]
            shift = mixed(total, salt=salt + 31 * at + 1009 * turn)
            places[at] = (places[at] + shift) % np.uint64(sizes[at])
            total += places[at] * factors[at]
    return [place.astype(np.int64) for place in places]
