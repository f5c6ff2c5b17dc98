"""Verify what was published: a bundle, a model file or a receipt alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from privbench.errors import ModelError
from privbench.model.file import load_unverified
from privbench.model.receipt_check import verify_model
from privbench_verify.checksums import CHECKSUMS, RECEIPT, wrong_checksums
from privbench_verify.receipt import Verdict, verify_receipt
from privbench_verify.strict_json import read_json

MAX_RECEIPT = 2**28


def verify(path: Path | str) -> Verdict:
    """Add a receipt up again, and check a bundle's files against its checksums, a model against its receipt.

    This is arithmetic: it does not show who made the files. `path` is a bundle folder, a model file or a
    receipt.json. Raises ModelError if it is none of these.

    Example::

        assert privbench.verify("bundle").status in ("verified", "conditional")
    """
    path = Path(path)
    if not path.exists():
        raise ModelError(f"{path}: there is no such file or folder.")
    if not path.is_dir():
        return verify_receipt(read_receipt(path)) if path.suffix == ".json" else verify_model(load_unverified(path))
    if not (path / RECEIPT).is_file():
        raise ModelError(f"{path}: is not a bundle: it has no {RECEIPT}.")
    verdict = verify_receipt(read_receipt(path / RECEIPT))
    if not (path / CHECKSUMS).is_file():
        return _failed(verdict, [f"{CHECKSUMS} is missing"])
    wrong = wrong_checksums(path)
    problems = [f"{name}: is missing, was changed or added, or is a link" for name in wrong]
    return _failed(verdict, problems) if wrong else verdict


def _failed(verdict: Verdict, problems: list[str]) -> Verdict:
    return replace(verdict, status="failed", problems=(*verdict.problems, *problems))


def read_receipt(path: Path) -> Any:
    """Read a receipt.json; ModelError if it is none."""
    try:
        if path.stat().st_size > MAX_RECEIPT:
            raise ModelError(f"is larger than {MAX_RECEIPT // 2**20} MB, which no receipt is.")
        return read_json(path.read_text(encoding="utf-8"))
    except ModelError as error:
        raise ModelError(f"{path}: {error}") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"{path}: cannot be read as JSON ({type(error).__name__}).") from error
