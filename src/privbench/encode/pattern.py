"""Made-up text in the pattern of a LIKE: the letters that the pattern fixes stand, wildcards are made up."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privbench.encode.layout import Codes
from privbench.encode.predicate import All, OfValues, Predicate, conjunction
from privbench.encode.text import LengthCodec

_SAMPLE = 256
_FEW = 32
ANY, ONE = "%", "_"


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of LIKE: `%` stands for any text, `_` for one letter."""

    like: str

    @property
    def wildcards(self) -> int:
        """How many letters are any."""
        return self.like.count(ONE)

    @property
    def fixed(self) -> int:
        """How many letters are given."""
        return len(self.like) - self.wildcards - self.like.count(ANY)

    @property
    def lengths(self) -> tuple[int, int | None]:
        """The shortest and the longest text in the pattern."""
        shortest = self.fixed + self.wildcards
        return shortest, None if ANY in self.like else shortest

    def filled(self, texts: pa.Array) -> pa.Array:
        """Texts of at least as many letters as wildcards, written into the pattern.

        >>> Pattern("A_-%.c").filled(pa.array(["xyz", None])).to_pylist()
        ['Ax-yz.c', None]
        """
        last, used, parts = self.like.rfind(ANY), 0, []
        for at, letter in enumerate(self.like):
            if letter == ONE:
                parts.append(pc.utf8_slice_codeunits(texts, used, used + 1))
                used += 1
            elif letter != ANY:
                parts.append(pa.scalar(letter))
            elif at == last:
                parts.append(pc.utf8_slice_codeunits(texts, self.wildcards))
        parts += [pc.utf8_slice_codeunits(texts, 0, 0)]  # a pattern without wildcards has the rows of the texts, too
        return pc.binary_join_element_wise(*parts, "")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PatternCodec:
    """Text by its length, as `whole` codes it, made up in a pattern."""

    whole: LengthCodec
    pattern: Pattern
    ordered: bool = True

    @property
    def size(self) -> int:
        return self.whole.size

    @property
    def null_code(self) -> int | None:
        return self.whole.null_code

    @property
    def other_code(self) -> int | None:
        return self.whole.other_code

    def encode(self, values: pa.Array | pa.ChunkedArray) -> Codes:
        """Return the code of each string's length."""
        return self.whole.encode(values)

    def decode(self, codes: Codes, rng: np.random.Generator, *, first_row: int) -> pa.Array:
        """Make up what stands for the wildcards, as long as makes the whole string of a fitting length.

        Strings of a shape that keeps the pattern anyway, as e-mail addresses keep `%@%`, stand as they are.
        """
        if self._fits_anyway:
            return self.whole.decode(codes, rng, first_row=first_row)
        return self.pattern.filled(self._rest.decode(codes, rng, first_row=first_row))

    def coverage(self, predicate: Predicate | All) -> NDArray[np.float64]:
        """Return the share of each cell's made-up strings that satisfies the predicate, from a fixed sample of them."""
        return self.whole.layout.coverage(predicate, self._shares)

    def labels(self) -> tuple[str, ...]:
        """Return the lengths of each cell."""
        return self.whole.labels()

    @property
    def room(self) -> int | None:
        """How many rows can get a string of their own; None if any number can."""
        return (self.whole if self._fits_anyway else self._rest).room

    @property
    def _fits_anyway(self) -> bool:
        """Whether all strings of a fixed sample are in the pattern as they are made."""
        codes = np.repeat(np.arange(self.whole.layout.cells, dtype=np.uint16), _FEW)
        made = self.whole.decode(codes, np.random.default_rng(0), first_row=0)
        return bool(pc.all(pc.match_like(made, self.pattern.like)).as_py())

    @property
    def _rest(self) -> LengthCodec:
        fixed, least = self.pattern.fixed, self.pattern.wildcards
        return replace(
            self.whole,
            shortest=np.maximum(self.whole.shortest - fixed, least),
            longest=np.maximum(self.whole.longest - fixed, least),
            limit=None if self.whole.limit is None else self.whole.limit - fixed,
        )

    def _shares(self, parts: tuple[OfValues, ...]) -> NDArray[np.float64]:
        holds, layout = conjunction(parts, str), self.whole.layout
        codes = np.repeat(np.arange(layout.cells, dtype=np.uint16), _SAMPLE)
        made = self.decode(codes, np.random.default_rng(0), first_row=0).to_pylist()
        satisfied = np.array([holds(text) for text in made], dtype=np.float64)
        return layout.spread(satisfied.reshape(-1, _SAMPLE).mean(axis=1))
