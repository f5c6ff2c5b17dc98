"""What is shown while a command works: steps, shares, times left; on a terminal, in a log, and not at all."""

import io
import sys

import pytest

from privbench.cli.progress import FIRST_GUESS, Line, Step, progress_line
from privbench.methods.method import in_percent, silent


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def lines_of(reports: list[tuple[float, str, int, int]], *, over: bool = False) -> list[str]:
    """What is shown right after each report, which comes at a time."""
    clock, shown = Clock(), []
    for_all = io.StringIO()
    line = Line(stream=for_all, over=over, clock=clock)
    for now, what, done, of in reports:
        clock.now = now
        line.report(what, done, of)
        before = for_all.tell()
        line.show()
        shown.append(for_all.getvalue()[before:])
    return shown


def test_the_time_left_follows_from_what_is_done() -> None:
    shown = lines_of([(0, "learning a", 0, 4), (10, "learning b", 1, 4), (20, "learning c", 2, 4)])
    assert shown == [
        "learning a: 0 %, 0 s\n",
        "learning b: 25 %, 10 s, about 30 s left\n",
        "learning c: 50 %, 20 s, about 20 s left\n",
    ]


def test_a_guess_comes_neither_at_once_nor_of_little() -> None:
    early = lines_of([(0, "reading", 0, 100), (FIRST_GUESS / 2, "reading", 50, 100)])
    little = lines_of([(0, "reading", 0, 1000), (60, "reading", 1, 1000)])
    assert not any("left" in line for line in early + little)


def test_the_time_left_does_not_jump() -> None:
    """A slow stretch in the middle moves the end by less than half of what it alone would say."""
    steady = [(float(at), "reading", at, 100) for at in range(41)]
    step = Step(what="reading", of=100, began=0.0)
    for now, what, done, of in steady:
        step.advance(what, done, of, now)
    assert step.end == pytest.approx(100)
    step.advance("reading", 41, 100, 61.0)
    assert step.end is not None
    assert 100 < step.end < 100 + 0.5 * (61 / 0.41 - 100)


def test_a_step_of_unknown_length_shows_its_time() -> None:
    clock, stream = Clock(), io.StringIO()
    line = Line(stream=stream, over=False, clock=clock)
    line.report("checking keys", 0, 1)
    clock.now = 75.0
    line.show()
    assert stream.getvalue() == "checking keys: 1:15 min\n"


def test_another_step_starts_anew() -> None:
    shown = lines_of([(0, "reading a", 0, 100), (50, "reading a", 100, 100), (50, "learning a", 0, 100)])
    again = lines_of([(0, "reading a", 0, 100), (50, "reading a", 60, 100), (50, "reading b", 0, 100)])
    assert shown[-1] == "learning a: 0 %, 0 s\n"
    assert again[-1] == "reading b: 0 %, 0 s\n"


def test_sizes_are_not_shown() -> None:
    shown = "".join(lines_of([(0, "writing person", 0, 48_843), (9, "writing person", 31_337, 48_843)]))
    assert not any(number in shown for number in ("48", "31", "843"))


def test_a_table_that_looks_like_markup() -> None:
    (shown,) = lines_of([(0, "learning [red]\x1b[2J", 1, 2)], over=True)
    assert "learning [red]\\x1b[2J" in shown
    assert "\x1b[2J" not in shown


def test_short_commands_write_nothing_to_a_log(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_line() as report:
        report("learning a", 1, 2)
    assert capsys.readouterr().err == ""


def test_programs_are_told_nothing() -> None:
    with progress_line(quiet=True) as report:
        assert report is silent


def test_the_line_on_a_terminal_is_cleared_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_line() as report:
        report("learning a", 1, 2)
    assert terminal.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize("rows", [1, 99, 65_536])
def test_a_table_of_one_batch_tells_nothing_of_its_size(rows: int) -> None:
    told: list[tuple[str, int, int]] = []
    in_percent(lambda *report: told.append(report), "reading", rows)(rows)
    assert told == [("reading", 0, 100), ("reading", 100, 100)]
