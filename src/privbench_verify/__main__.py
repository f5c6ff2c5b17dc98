"""`python -m privbench_verify PATH [--json]`: check a bundle folder or a receipt.json.

Exit code 0: verified, perhaps given a condition. 1: failed, or not verified. 2: there is nothing here to check.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path

from privbench_verify.bundle import verify_bundle, verify_file
from privbench_verify.checksums import CHECKSUMS, RECEIPT
from privbench_verify.receipt import MEANING, Verdict, decimal_text


def main(arguments: Sequence[str] | None = None) -> int:
    """Check what the arguments name, print the verdict and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m privbench_verify", description="Check a PrivBench bundle.")
    parser.add_argument("path", type=Path, help=f"a bundle folder, or a {RECEIPT}")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    chosen = parser.parse_args(arguments)
    path: Path = chosen.path
    if wrong := _cannot_check(path):
        print(json.dumps({"error": wrong}) if chosen.json else f"error: {_plain(wrong)}", file=sys.stderr)
        return 2
    verdict = verify_bundle(path) if path.is_dir() else verify_file(path)
    lines = [json.dumps(verdict_json(verdict), indent=1)] if chosen.json else list(map(_plain, _lines(verdict)))
    print("\n".join(lines))
    return 0 if verdict.status in ("verified", "conditional") else 1


def verdict_json(verdict: Verdict) -> dict[str, object]:
    """A verdict as JSON: rationals as texts p/q."""
    return {
        "status": verdict.status,
        "epsilon": _rational(verdict.epsilon),
        "delta": _rational(verdict.delta),
        "spent": _rational(verdict.spent),
        "condition": verdict.condition,
        "problems": list(verdict.problems),
        "assumptions": list(verdict.assumptions),
        "meaning": MEANING,
    }


def _cannot_check(path: Path) -> str | None:
    if path.is_dir():
        bundle = (path / RECEIPT).exists() or (path / CHECKSUMS).exists()
        return None if bundle else f"{path}: is not a bundle: it has no {RECEIPT}."
    if not path.is_file():
        return f"{path}: there is no such file or folder."
    return None if path.suffix == ".json" else f"{path}: is no receipt. `privbench verify` checks models."


def _lines(verdict: Verdict) -> Iterator[str]:
    yield f"status: {verdict.status}"
    yield from (f"problem: {problem}" for problem in verdict.problems)
    if verdict.epsilon is not None and verdict.spent is not None:
        delta = f" with delta {decimal_text(verdict.delta)}" if verdict.delta else ""
        yield f"epsilon promised {decimal_text(verdict.epsilon)}{delta}, spent {decimal_text(verdict.spent)}"
    if verdict.condition:
        yield f"condition: {verdict.condition}"
    yield from (f"assumption: {assumption}" for assumption in verdict.assumptions)
    yield f"meaning: {MEANING}"


def _rational(value: Fraction | None) -> str | None:
    return None if value is None else f"{value.numerator}/{value.denominator}"


def _plain(text: str) -> str:
    """Text that cannot steer a terminal, and that any terminal can print."""
    encoding = sys.stdout.encoding or "ascii"
    printable = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return printable.encode(encoding, "backslashreplace").decode(encoding)


if __name__ == "__main__":
    sys.exit(main())
