"""Earlier releases: what a spec builds on that an earlier fit of the same data found and paid for.

A domain or a computed column that came out of one fit is not public knowledge in the next: it holds given what that
fit spent. A spec names such a fit by the digest of its receipt, together with what it cost.
"""

import hashlib
import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from privbench.schema.unit import Neighbours

MOST_RELEASES = 10_000
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 of a receipt, in hexadecimal digits."""
Rational = Annotated[str, Field(pattern=r"^[0-9]{1,1000}/[0-9]{1,1000}$")]
"""A number as a receipt writes it: "p/q" in lowest terms."""


class Release(BaseModel):
    """A finished fit: the digest of its receipt, and what it promised."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    receipt: Digest
    epsilon: Rational
    delta: Rational = "0/1"
    neighbours: Neighbours

    @field_validator("epsilon", "delta")
    @classmethod
    def _lowest_terms(cls, text: str) -> str:
        numerator, denominator = map(int, text.split("/"))
        if denominator == 0:
            raise ValueError("the denominator is 0")
        exact = Fraction(numerator, denominator)
        if text != f"{exact.numerator}/{exact.denominator}":
            raise ValueError(f"write it in lowest terms: {exact.numerator}/{exact.denominator}")
        return text

    @model_validator(mode="after")
    def _in_bounds(self) -> "Release":
        if Fraction(self.epsilon) <= 0 or Fraction(self.delta) >= 1:
            raise ValueError("epsilon must be above 0, and delta below 1")
        return self


def receipt_digest(receipt: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a receipt in canonical JSON: sorted keys, no spaces, UTF-8.

    >>> receipt_digest({"b": 1, "a": "é"}) == hashlib.sha256('{"a":"é","b":1}'.encode()).hexdigest()
    True
    """
    text = json.dumps(receipt, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def release_of(receipt: Mapping[str, Any]) -> Release:
    """Name the fit that a receipt is of."""
    return Release(
        receipt=receipt_digest(receipt),
        epsilon=receipt["epsilon"],
        delta=receipt["delta"],
        neighbours=Neighbours(receipt["neighbours"]),
    )
