"""What a receipt that was tampered with must lead to."""

from privbench_verify.receipt import Verdict


def assert_fails(verdict: Verdict, message: str) -> None:
    """The verdict is `failed`, and one of its problems says so."""
    assert verdict.status == "failed"
    assert any(message in problem for problem in verdict.problems), verdict.problems
