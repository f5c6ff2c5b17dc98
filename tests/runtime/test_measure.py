"""The protocol with a made-up system, and the figures of what it measured."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from privbench.methods.method import silent
from privbench.runtime.figures import find_figures
from privbench.runtime.measure import Measurement, measure
from privbench.runtime.plan import Node, Plan
from privbench.runtime.session import Clock, FailedQueryError, Loaded, Variant
from privbench.runtime.statistics import ColumnStatistics
from privbench.schema.tables import Schema
from privbench.workload.query import Statement

NAMES = ("real", "again", "synthetic")
STATEMENTS = [Statement(number=n, sql=f"q{n}") for n in range(1, 5)]


@dataclass(kw_only=True)
class MadeUp:
    """A system whose queries take what `times` says, visit by visit; it keeps a diary of all visits."""

    times: dict[tuple[str, str], list[float]]
    plans: dict[tuple[str, str], Plan] = field(default_factory=dict)
    fails: dict[tuple[str, str, str], str] = field(default_factory=dict)
    """By verb, variant and query."""
    diary: list[tuple[str, str, str]] = field(default_factory=list)
    open: bool = False

    def check(self) -> None:
        pass

    def translate(self, sql: str, schema: Schema) -> str:  # noqa: ARG002
        return sql

    @contextmanager
    def load(self, schema: Schema, variants: tuple[Variant, ...], **_: object) -> Iterator[Loaded]:  # noqa: ARG002
        self.open = True
        try:
            sessions = {v.name: MadeUpSession(self, v.name) for v in variants}
            pages = {v.name: {"t": 100 if v.name != "synthetic" else 110} for v in variants}
            yield Loaded(system="Made 1", clock=Clock.CPU, sessions=sessions, pages=pages, statistics=KNOWN)
        finally:
            self.open = False


@dataclass
class MadeUpSession:
    system: MadeUp
    name: str

    def explain(self, sql: str) -> Plan:
        self._visit("explain", sql)
        return self.system.plans.get((self.name, sql), PLAN)

    def run(self, sql: str) -> float:
        self._visit("run", sql)
        left = self.system.times[self.name, sql]
        return left.pop(0) if len(left) > 1 else left[0]

    def _visit(self, verb: str, sql: str) -> None:
        assert self.system.open
        self.system.diary.append((verb, self.name, sql))
        if (verb, self.name, sql) in self.system.fails:
            raise FailedQueryError(self.system.fails[verb, self.name, sql])


KNOWN = {
    name: {("t", "x"): ColumnStatistics(nulls=0, width=4, distinct=9, correlation=None if name == "real" else 0.4)}
    for name in NAMES
}
PLAN = Plan(shape="Seq Scan t", cost=10.0, buffers=100, nodes=(Node(estimated=4, actual=2),))


def measured(system: MadeUp, *, seed: int = 0) -> Measurement:
    variants = [Variant(name=name, read=lambda _: iter(())) for name in NAMES]
    return measure(system, Schema(), variants, STATEMENTS, timeout=1, seed=seed, progress=silent, rounds=5)


def constant(**by_variant: float) -> dict[tuple[str, str], list[float]]:
    return {(name, s.sql): [time] for name, time in by_variant.items() for s in STATEMENTS}


def test_rounds_visit_all_in_random_order() -> None:
    system = MadeUp(times=constant(real=1, again=1, synthetic=1))
    measured(system)
    plans, runs = system.diary[:12], system.diary[12:]
    assert {verb for verb, *_ in plans} == {"explain"}
    assert {verb for verb, *_ in runs} == {"run"}
    rounds = [runs[at : at + 12] for at in range(0, 60, 12)]
    everything = {("run", name, s.sql) for name in NAMES for s in STATEMENTS}
    assert all(set(part) == everything for part in rounds)
    queries_first = [part[0][2] for part in rounds]
    assert len(set(queries_first)) > 1
    for part in rounds:  # the variants of a query follow each other, so that they meet the same machine
        assert all(len({sql for _, _, sql in part[at : at + 3]}) == 1 for at in range(0, 12, 3))
    assert len({tuple(name for _, name, _ in part[:3]) for part in rounds}) > 1


def test_the_least_time_counts() -> None:
    system = MadeUp(times=constant(real=1, again=1) | {("synthetic", s.sql): [9, 2.5, 7, 8, 9] for s in STATEMENTS})
    times = [query.visits["synthetic"].time for query in measured(system).queries]
    assert times == [2.5] * 4


def test_a_query_that_fails_is_named_and_left_out_of_figures() -> None:
    fails = {("explain", "synthetic", "q1"): "no such column", ("run", "again", "q2"): "stopped after 1 s"}
    system = MadeUp(times=constant(real=1, again=1, synthetic=3), fails=fails)
    found = find_figures(measured(system))
    assert [(q.number, dict(q.errors)) for q in found.failed] == [
        (1, {"synthetic": "no such column"}),
        (2, {"again": "stopped after 1 s"}),
    ]
    assert ("run", "real", "q1") not in system.diary
    assert system.diary.count(("run", "again", "q2")) == 1
    assert found.comparisons["synthetic"].discrepancy.max == 2
    assert found.to_json()["failed"] == 2


def test_no_query_that_ran() -> None:
    fails = {("explain", "real", s.sql): "no" for s in STATEMENTS}
    found = find_figures(measured(MadeUp(times={}, fails=fails)))
    assert found.comparisons == {}
    assert len(found.failed) == 4


def test_figures() -> None:
    other = Plan(shape="Index Scan t", cost=40.0, buffers=50, nodes=(Node(estimated=2, actual=2),))
    near = Plan(shape="Seq Scan t", cost=20.0, buffers=110, nodes=(Node(estimated=8, actual=2),))
    plans = {("synthetic", "q1"): other} | {("synthetic", f"q{n}"): near for n in (2, 3, 4)}
    times = constant(real=10, again=11) | {("synthetic", f"q{n}"): [t] for n, t in enumerate((20, 5, 10, 11), 1)}
    found = find_figures(measured(MadeUp(times=times, plans=plans)))
    again, synthetic = found.comparisons["again"], found.comparisons["synthetic"]
    assert (again.same_plans, synthetic.same_plans) == (1, 0.75)
    assert again.discrepancy.mean == pytest.approx(0.1)
    assert synthetic.discrepancy.mean == pytest.approx((1 + 0.5 + 0 + 0.1) / 4)
    assert synthetic.discrepancy.median == pytest.approx(0.3)
    assert synthetic.discrepancy.max == pytest.approx(1)
    assert synthetic.interval[0] < synthetic.discrepancy.mean < synthetic.interval[1]
    assert synthetic.changed_plan_discrepancy == pytest.approx(1)
    assert synthetic.same_plan_discrepancy == pytest.approx(0.2)
    assert again.changed_plan_discrepancy is None
    assert synthetic.total_time == pytest.approx(46 / 40)
    assert synthetic.buffers is not None
    assert synthetic.buffers.mean == pytest.approx((0.5 + 3 * 0.1) / 4)
    assert synthetic.total_buffers == pytest.approx(380 / 400)
    assert synthetic.cost_factor == pytest.approx((4 * 2**3) ** 0.25)
    assert synthetic.estimate_factor == pytest.approx(2)  # of the three with the same plan
    assert synthetic.pages == pytest.approx(0.1)
    assert found.estimate_errors["real"] == pytest.approx(2)
    assert found.estimate_errors["synthetic"] == pytest.approx(4 ** (3 / 4))
    assert [column.differences("synthetic") for column in found.columns] == [("correlation 0.00 -> 0.40",)]
    assert ["noisy" in note for note in found.notes] == [True]  # 10 % between the real database and itself


def test_a_quiet_machine_gets_no_note() -> None:
    assert find_figures(measured(MadeUp(times=constant(real=10, again=10.2, synthetic=10)))).notes == ()
