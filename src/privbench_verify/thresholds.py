"""The delta of frequent values, computed again by the verifier and rounded up: docs/proofs/domains.md, section 7.

Like all of the verifier: the standard library, and no code of what wrote the receipt.
"""

from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction

from privbench_verify.read import Json, ReceiptError, flag_of, positive_of

FREQUENT = "frequent-values"
_LISTS = "frequent values of "
"""How queries begin that let out texts that are there: nothing but a threshold can pay for that."""
_VOTED = _LISTS, "heavy_hitters of "
"""How all queries begin in which each entity has one value."""
_DIGITS = Context(prec=80)
_MARGIN = 1 + Fraction(1, 10**70)
"""More than what so many digits can lose below, where division and exponential are correctly rounded."""
_ROOT = Fraction(250662827463, 10**11)
"""Just below the root of 2 pi."""
_FAR = 2000
"""For larger x, exp(-x) is taken for that of this one."""


def chance_of(scale: Fraction, threshold: int) -> Fraction:
    """A bound on the chance that a count of 1 with Gaussian noise of this scale reaches the threshold."""
    beyond = threshold - 1
    power = min(beyond**2 / (2 * scale**2), Fraction(_FAR))
    first = _DIGITS.exp(_DIGITS.divide(Decimal(-power.numerator), Decimal(power.denominator)))
    tail = Fraction(first) * _MARGIN * (1 + scale**2 / beyond)
    return tail / max(Fraction(1), _ROOT * scale)


def check_threshold(event: Json, where: str) -> Iterator[str]:
    """Find what is wrong with the threshold of an event, or with one where none belongs."""
    if event.get("mechanism") != FREQUENT:
        if "threshold" in event or "delta" in event:
            yield f"{where}: has a threshold or a delta, which only {FREQUENT} have"
        if event["query"].startswith(_LISTS):
            yield f"{where}: texts that are there are let out by {FREQUENT} alone, not by {event.get('mechanism')}"
        return
    if not event["query"].startswith(_VOTED):
        yield f"{where}: {event['query']!r} is no query in which each entity has one value"
    threshold, draws = event.get("threshold"), event.get("draws")
    if type(threshold) is not int or not 2 <= threshold <= 2**64:
        raise ReceiptError(f"{where}: threshold is {threshold!r}, not a whole number of at least 2")
    if positive_of(event, "sensitivity", where) != 1 or flag_of(event, "weighted", where) or draws != 1:
        yield f"{where}: frequent values are drawn at once, and each entity has one, which counts 1"
    scale, delta = positive_of(event, "scale", where), positive_of(event, "delta", where)
    if chance_of(scale, threshold) > delta:
        yield f"{where}: threshold {threshold} is too low for delta {delta} and noise of scale {scale}"
