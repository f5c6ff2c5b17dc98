"""The panel of runtimes: a verdict by plans and buffers, a place for the plots, the figures, and plans that changed."""

from collections.abc import Callable, Iterator
from html import escape
from typing import Any

from privbench.report.page import rounded, section, table
from privbench.report.rules import exact
from privbench.report.summary import FAILED, WORST, Grade, Verdict, percent, times, verdict_card
from privbench.runtime.result import AGAIN, REAL, RESAMPLE, SYNTHETIC, Comparison, Runtime, RuntimeQuery, Spread
from privbench.runtime.session import Clock

NAMES = {SYNTHETIC: "synthetic", RESAMPLE: "resample", AGAIN: "real again"}
"""What readers call the variants, in the order of columns."""
_TITLE = "How fast do queries run?"
_CLOSE_PLANS, _FAIR_PLANS = 0.98, 0.9
_CLOSE_BUFFERS, _FAIR_BUFFERS = 0.05, 0.2
"""Up to here plans and buffers are close, and recognisable."""
_NEAR_FLOOR = 1.5
_CLOCKS = {Clock.CPU: "processor time of the server", Clock.CLIENT: "time until the answer was here"}


def runtime_section(runtime: Runtime | None) -> str:
    """The whole panel; without a measurement it says how to get one."""
    if runtime is None:
        lead = "Not measured. <code>--workload q.sql --runtime auto</code> measures queries on PostgreSQL."
        return section("runtime", _TITLE, lead, "")
    ran = len(runtime.queries) - len(runtime.failed)
    lead = (
        f"{ran:,} queries on {escape(runtime.system)}: {_CLOCKS[runtime.clock]}, "
        f"the least of {runtime.rounds} rounds. Beside it the same of a resample of the real data, and of the real "
        "database loaded a second time: what is left there is noise. Plans and buffers have none, so go by these."
    )
    verdict = judge_runtime(runtime)
    card = "" if verdict is None else verdict_card("Runtimes", _about(runtime), verdict)
    body = "".join(
        (
            f'<div class="tools runtime-legend"></div><div class="plots wide" id="runtime-plots">{card}</div>',
            table(("", *(NAMES[name] for name in _columns(runtime))), list(figure_rows(runtime))),
            _changed(runtime),
            _different(runtime),
            _failed(runtime),
            _notes(runtime),
        )
    )
    return section("runtime", _TITLE, lead, body)


def judge_runtime(runtime: Runtime) -> Verdict | None:
    """The verdict on the synthetic database, by plans and buffers; times are told, but do not change it."""
    found = runtime.comparisons.get(SYNTHETIC)
    if found is None:
        return None
    grade = _grade(found, runtime.comparisons.get(RESAMPLE))
    again = runtime.comparisons[AGAIN].discrepancy.mean
    pages = "" if found.buffers is None else f" Pages touched are off by {percent(found.buffers.mean)} on average."
    sentence = f"{exact(found.same_plans)} of the queries have the same plan.{pages} "
    sentence += f"Times are off by {percent(found.discrepancy.mean)} (the real database from itself: {percent(again)})."
    words = {Grade.FLOOR: "at its floor", Grade.CLOSE: "close", Grade.FAIR: "recognisable", Grade.FAR: "far off"}
    return Verdict(grade=grade, word=words[grade], sentence=sentence)


def figure_rows(runtime: Runtime) -> Iterator[tuple[str, ...]]:
    """The figures of all variants as text, a row each: its name, then a cell for each variant."""
    shown: tuple[tuple[str, Callable[[Comparison], float | None], Callable[[float], str]], ...] = (
        ("same plans", lambda c: c.same_plans, exact),
        *_spread_rows("buffers off by", lambda c: c.buffers),
        ("all buffers, times the real ones", lambda c: c.total_buffers, _factor),
        *_spread_rows("discrepancy of times", lambda c: c.discrepancy),
        ("discrepancy of times, same plan", lambda c: c.same_plan_discrepancy, percent),
        ("discrepancy of times, changed plan", lambda c: c.changed_plan_discrepancy, percent),
        ("all times, times the real ones", lambda c: c.total_time, _factor),
        ("cost off by a factor of", lambda c: c.cost_factor, _factor),
        ("estimated rows off by a factor of", lambda c: c.estimate_factor, _factor),
        ("pages of tables off by", lambda c: c.pages, percent),
    )
    compared = [runtime.comparisons[name] for name in _columns(runtime)]
    for label, find, show in shown:
        values = [find(each) for each in compared]
        if any(value is not None for value in values):
            yield (label, *("–" if value is None else show(value) for value in values))
    errors = [runtime.estimate_errors[name] for name in _columns(runtime)]
    own = runtime.estimate_errors[REAL]
    if own is not None:
        label = f"estimated against actual rows, a factor of (real: {times(own)})"
        yield (label, *("–" if value is None else times(value) for value in errors))


def runtime_data(runtime: Runtime | None) -> dict[str, Any]:
    """What the script draws: times and buffers of each query by variant."""
    if runtime is None:
        return {}
    ran = [query for query in runtime.queries if not query.errors]
    return {
        "runtime": {
            "variants": [{"name": name, "label": NAMES[name]} for name in reversed(_columns(runtime))],
            "queries": [
                {
                    "n": query.number,
                    "sql": query.sql,
                    "times": {name: rounded(value) for name, value in query.times.items()},
                    "buffers": dict(query.buffers),
                    "changed": [name for name in _columns(runtime) if query.changed(name)],
                }
                for query in ran
            ],
        }
    }


def _spread_rows(
    label: str, find: Callable[[Comparison], Spread | None]
) -> Iterator[tuple[str, Callable[[Comparison], float | None], Callable[[float], str]]]:
    for name, attribute in (("mean", "mean"), ("median", "median"), ("75 %", "p75"), ("max", "max")):

        def value(comparison: Comparison, attribute: str = attribute) -> float | None:
            found = find(comparison)
            return None if found is None else float(getattr(found, attribute))

        yield f"{label}, {name}", value, percent


def _grade(found: Comparison, resample: Comparison | None) -> Grade:
    buffers = 0.0 if found.buffers is None else found.buffers.mean
    if resample is not None and found.same_plans >= resample.same_plans:
        limit = 0.0 if resample.buffers is None else _NEAR_FLOOR * resample.buffers.mean
        if buffers <= limit:
            return Grade.FLOOR
    if found.same_plans >= _CLOSE_PLANS and buffers <= _CLOSE_BUFFERS:
        return Grade.CLOSE
    return Grade.FAIR if found.same_plans >= _FAIR_PLANS and buffers <= _FAIR_BUFFERS else Grade.FAR


def _columns(runtime: Runtime) -> list[str]:
    return [name for name in NAMES if name in runtime.comparisons]


def _about(runtime: Runtime) -> str:
    failed = f", {len(runtime.failed)} failed" if runtime.failed else ""
    return f"{len(runtime.queries) - len(runtime.failed):,} queries{failed}; load average {runtime.load_average:.1f}"


def _queries(count: int) -> str:
    return f"{count} query" if count == 1 else f"{count:,} queries"


def _factor(value: float) -> str:
    return f"{value:.3f}" if value < 10 else times(value)


def _changed(runtime: Runtime) -> str:
    changed = [query for query in runtime.queries if not query.errors and query.changed(SYNTHETIC)]
    if not changed:
        return ""
    rows = [
        (str(q.number), _both(q), f"<code>{escape(q.plans[REAL])}</code>", f"<code>{escape(q.plans[SYNTHETIC])}</code>")
        for q in changed[:WORST]
    ]
    more = f" ({WORST} are shown)" if len(changed) > WORST else ""
    inner = table(("#", "ms, real / synthetic", "plan of the real database", "of the synthetic"), rows, numbers=9)
    return f"<details><summary>{_queries(len(changed))} with another plan{more}</summary>{inner}</details>"


def _different(runtime: Runtime) -> str:
    """Columns that look different to the planner, which is where changed plans and buffers come from."""
    found = [(column, words) for column in runtime.columns if (words := column.differences(SYNTHETIC))]
    if not found:
        return ""
    rows = [(escape(f"{c.table}.{c.column}"), escape("; ".join(words))) for c, words in found]
    summary = f"{len(found)} of {len(runtime.columns)} columns look different to the planner"
    inner = table(("column", "real -> synthetic"), rows, numbers=9)
    return f"<details><summary>{summary}</summary>{inner}</details>"


def _both(query: RuntimeQuery) -> str:
    return f"{query.times[REAL]:.3g} / {query.times[SYNTHETIC]:.3g}"


def _failed(runtime: Runtime) -> str:
    if not runtime.failed:
        return ""
    rows = [
        (
            str(q.number),
            escape("; ".join(f"{name}: {why}" for name, why in q.errors.items())),
            f"<code>{escape(q.sql)}</code>",
        )
        for q in runtime.failed[:FAILED]
    ]
    more = f" ({FAILED} are shown)" if len(runtime.failed) > FAILED else ""
    inner = table(("#", "why", "query"), rows, numbers=9)
    return f"<details><summary>{_queries(len(runtime.failed))} that failed{more}</summary>{inner}</details>"


def _notes(runtime: Runtime) -> str:
    return "".join(f'<p class="note">{escape(note)}.</p>' for note in runtime.notes)
