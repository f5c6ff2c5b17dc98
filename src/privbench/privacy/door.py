"""The door to private codes: nothing leaves but integers with noise, each charged to the ledger before it is drawn.

With a tape of recorded answers and no data the door replays a run: whatever a method makes must come out the same,
which is how the tests show that nothing flows past the ledger. The currency of the ledger picks the mechanism.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from privbench.encode.coded import CodedDatabase
from privbench.privacy.events import UNITS, Event
from privbench.privacy.facts import Facts
from privbench.privacy.gaussian import discrete_gaussian
from privbench.privacy.ledger import Ledger, Scope
from privbench.privacy.noise import Entropy, discrete_laplace
from privbench.privacy.price import Noise, choice_noise, drawable, noise_of, price_choice, price_noise
from privbench.privacy.sealed import Sealed
from privbench.privacy.select import exponential_mechanism, permute_and_flip

Answer = NDArray[np.int64]
Exact = Callable[[Sealed], Answer]


class Door:
    """Private tables, and the ledger that every look at them is charged to. One of `data` and `tape` is given."""

    def __init__(
        self,
        facts: Facts,
        data: CodedDatabase | None,
        *,
        ledger: Ledger,
        entropy: Entropy,
        tape: Sequence[Answer] | None = None,
    ) -> None:
        if (data is None) == (tape is None):
            raise ValueError("give the vault either data or a tape")
        self.facts = facts
        self.ledger = ledger
        self.entropy = entropy
        self.answers: list[Answer] = []
        self._sealed = None if data is None else Sealed(facts, data, entropy)
        self._tape = iter(tape or ())

    def __reduce__(self) -> NoReturn:
        raise TypeError("a vault cannot be pickled")

    # -- what an amount buys -----------------------------------------------------------------------------------

    def drawable(self, sensitivity: int, epsilon: Fraction) -> bool:
        """Whether noise for so much sensitivity and so little budget can be drawn at all."""
        return drawable(self.ledger.currency, epsilon, sensitivity=sensitivity)

    def noise(self, amount: Fraction, *, sensitivity: int = UNITS, additive: bool = False, unit: int = UNITS) -> Noise:
        """The noise that an amount of budget buys for counts, in entities; with `unit` 1 in counts as they are."""
        return noise_of(self.ledger.currency, amount, sensitivity=sensitivity, additive=additive, unit=unit)

    def choice_noise(
        self, amount: Fraction, *, sensitivity: int = UNITS, monotone: bool = False, unit: int = UNITS
    ) -> float:
        """The scale of a choice that an amount of budget buys, in entities."""
        return choice_noise(self.ledger.currency, amount, sensitivity=sensitivity, monotone=monotone, unit=unit)

    # -- behind the door ---------------------------------------------------------------------------------------

    def _measure(
        self,
        scope: Scope,
        table: str,
        query: str,
        exact: Exact,
        *,
        draws: int,
        sensitivity: int,
        epsilon: Fraction,
        weighted: bool = False,
        additive: bool = False,
    ) -> Answer:
        """Counts with noise, for so much epsilon or rho, as the ledger counts.

        `weighted`: they are in units, of which an entity has at most UNITS in a table. `additive`: an entity adds to
        them and lowers none, as in any histogram of what its own rows say; a rho then buys less noise.
        """
        event = price_noise(
            self.ledger.currency,
            table,
            query,
            sensitivity=sensitivity,
            amount=epsilon,
            draws=draws,
            weighted=weighted,
            additive=additive,
        )
        scope.charge(event)

        def noisy(sealed: Sealed) -> Answer:
            counts = exact(sealed)
            return counts + self._noise(counts.size, event).reshape(counts.shape)

        return self._answer(noisy)

    def _select(
        self,
        scope: Scope,
        table: str,
        query: str,
        scores: Exact,
        *,
        sensitivity: int,
        monotone: bool = False,
        epsilon: Fraction,
        weighted: bool = False,
    ) -> int:
        """The index of a high score, for so much epsilon or rho; `weighted` if scores are in units."""
        event = price_choice(
            self.ledger.currency,
            table,
            query,
            sensitivity=sensitivity,
            amount=epsilon,
            monotone=monotone,
            weighted=weighted,
        )
        scope.charge(event)

        def chosen(sealed: Sealed) -> Answer:
            choose = exponential_mechanism if event.mechanism.concentrated else permute_and_flip
            return one(choose(scores(sealed), scale=event.scale, entropy=self.entropy))

        return int(self._answer(chosen)[0])

    def _noise(self, size: int, event: Event) -> Answer:
        draw = discrete_gaussian if event.mechanism.concentrated else discrete_laplace
        return draw(size, event.scale, self.entropy)

    def _answer(self, noisy: Exact) -> Answer:
        """A noisy answer, or the one on the tape; recorded, and locked so that the record stays what it was."""
        answer = noisy(self._sealed) if self._sealed is not None else next(self._tape, None)
        if answer is None:
            raise RuntimeError("the tape has fewer answers than the run that replays it asks for")
        answer.setflags(write=False)
        self.answers.append(answer)
        return answer


def one(count: int) -> Answer:
    """A single count as an answer."""
    return np.array([count], np.int64)
