"""Figures in words: each is judged beside its floor, what a resample of the real data would score."""

from dataclasses import dataclass
from enum import Enum

from privbench.evaluation.result import Measure, Result, Summary, TableResult


class Grade(Enum):
    """How good a figure is; the value is a class of the style sheet."""

    FLOOR = "best"
    CLOSE = "good"
    FAIR = "fair"
    FAR = "poor"
    UNKNOWN = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A grade, its word, and the sentence that explains it."""

    grade: Grade
    word: str
    sentence: str


_WORDS = {
    Grade.FLOOR: "at its floor",
    Grade.CLOSE: "close",
    Grade.FAIR: "recognisable",
    Grade.FAR: "far off",
    Grade.UNKNOWN: "not measured",
}
_NEAR_FLOOR = 1.5
"""Up to this many times the floor, a figure cannot be told from sampling noise."""
_WORTH_A_WORD, _WORTH_A_FACTOR = 0.02, 2
"""Up to this share of rows too many or too few nothing is said of it; from this factor on, both numbers."""
_TVD_GRADES = ((0.05, Grade.CLOSE), (0.2, Grade.FAIR))
_Q_GRADES = ((1.5, Grade.CLOSE), (4.0, Grade.FAIR))
_ORDER = (Grade.UNKNOWN, Grade.FLOOR, Grade.CLOSE, Grade.FAIR, Grade.FAR)


def judge_table(table: TableResult) -> Verdict:
    """The verdict on one table: that of its pairs of columns, else of its columns."""
    if table.synthetic_rows is None:
        return Verdict(grade=Grade.FAR, word="missing", sentence="The synthetic database does not have this table.")
    if not table.private:
        return Verdict(grade=Grade.FLOOR, word="public", sentence="Copied as it is.")
    by_ways = {m.ways: m.distances.tvd_codes for m in table.marginals}
    found = [
        (name, by_ways[ways]) for ways, name in ((1, "single columns"), (2, "pairs of columns")) if ways in by_ways
    ]
    found = [(name, measure) for name, measure in found if measure.value is not None]
    if not found:
        return Verdict(grade=Grade.UNKNOWN, word=_WORDS[Grade.UNKNOWN], sentence="It has no columns to compare.")
    grade = max((grade_distance(m) for _, m in found), key=_ORDER.index)
    told = [_told(name, m) for name, m in found] + _told_rows(table.real_rows, table.synthetic_rows)
    return Verdict(grade=grade, word=_WORDS[grade], sentence=" ".join(told))


def judge_fanout(result: Result) -> Verdict | None:
    """The verdict on the numbers of children per parent; None without keys."""
    if result.fanout_tvd.value is None:
        return None
    grade = grade_distance(result.fanout_tvd)
    return Verdict(
        grade=grade, word=_WORDS[grade], sentence=_told("children per parent", result.fanout_tvd, what="parents")
    )


def judge_queries(summary: Summary) -> Verdict:
    """The verdict on a workload, by the median and the 95th percentile of its Q-errors."""
    errors, floor = summary.errors, summary.floor
    if floor is not None and errors.p95 <= 1 + _NEAR_FLOOR * (floor.p95 - 1):
        grade = Grade.FLOOR
    else:
        grade = next((g for limit, g in _Q_GRADES if errors.median <= limit and errors.p95 <= limit**3), Grade.FAR)
    best = "" if floor is None else f" (a resample: {times(floor.median)} and {times(floor.p95)})"
    return Verdict(
        grade=grade,
        word=_WORDS[grade],
        sentence=f"Half of the {errors.queries:,} queries are within a factor of {times(errors.median)} of the truth, "
        f"95 % within {times(errors.p95)}{best}. The worst is off by a factor of {times(errors.max)}.",
    )


def grade_distance(measure: Measure) -> Grade:
    """The grade of a TVD.

    >>> grade_distance(Measure(value=0.03, floor=0.001)), grade_distance(Measure(value=0.03, floor=0.025))
    (<Grade.CLOSE: 'good'>, <Grade.FLOOR: 'best'>)
    """
    if measure.value is None:
        return Grade.UNKNOWN
    if measure.floor is not None and measure.value <= _NEAR_FLOOR * measure.floor:
        return Grade.FLOOR
    return next((grade for limit, grade in _TVD_GRADES if measure.value <= limit), Grade.FAR)


def percent(share: float | None) -> str:
    """A share as people read it.

    >>> percent(0.1234), percent(0.00056), percent(0.0)
    ('12 %', '0.056 %', '0 %')
    """
    return "–" if share is None else f"{100 * share:.2g} %" if share < 0.0995 else f"{100 * share:.0f} %"


def times(factor: float) -> str:
    """A factor with as many digits as matter."""
    return f"{factor:.2f}" if factor < 10 else f"{factor:,.0f}"


def _told_rows(real: int, synthetic: int) -> list[str]:
    """How many rows there are too many or too few, if that is worth a word."""
    if abs(synthetic - real) <= _WORTH_A_WORD * real:
        return []
    if not real or not _WORTH_A_FACTOR > synthetic / real > 1 / _WORTH_A_FACTOR:
        return [f"It has {synthetic:,} rows instead of {real:,}."]
    return [f"It has {percent(abs(synthetic / real - 1))} {'more' if synthetic > real else 'fewer'} rows."]


def _told(name: str, measure: Measure, *, what: str = "rows") -> str:
    best = "" if measure.floor is None else f" ({percent(measure.floor)} in a resample)"
    return f"{name.capitalize()}: {percent(measure.value)} of {what} are in the wrong place{best}."
