"""The folder stands alone: the standard library, no code of PrivBench, and a command that runs from a copy of it."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import privbench_verify
from privbench_verify.__main__ import main
from privbench_verify.receipt import MEANING

from .receipts import Json, good
from .test_bundle import bundle, change_receipt, seal

__all__ = ["bundle"]

FOLDER = Path(str(privbench_verify.__file__)).parent


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_the_verifier_imports_the_standard_library_alone(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert all(node.level == 0 for node in imports if isinstance(node, ast.ImportFrom))
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in imports if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names | {"privbench_verify"}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    assert not called & {"__import__", "eval", "exec", "compile"}


def run(path: Path, where: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", "-m", "privbench_verify", str(path), *options]
    paths = {"PYTHONPATH": str(where), "PYTHONIOENCODING": "ascii"}
    return subprocess.run(command, check=False, cwd=where, env=paths, capture_output=True, text=True)  # noqa: S603


def test_a_copy_of_the_folder_is_enough(tmp_path: Path, bundle: Path) -> None:
    where = tmp_path / "auditor"
    shutil.copytree(FOLDER, where / "privbench_verify", ignore=shutil.ignore_patterns("__pycache__"))
    done = run(bundle, where)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "status: verified"
    assert MEANING in done.stdout
    told = json.loads(run(bundle, where, "--json").stdout)
    assert (told["status"], told["epsilon"], told["meaning"]) == ("verified", "16/5", MEANING)


def output(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(arguments)
    return code, capsys.readouterr().out


def test_exit_codes(tmp_path: Path, bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, str(bundle))[0] == 0
    assert output(capsys, str(bundle / "receipt.json"))[0] == 0
    (bundle / "README.md").write_text("other")
    assert output(capsys, str(bundle))[0] == 1
    empty = tmp_path / "empty"
    empty.mkdir()
    model = tmp_path / "model.pbm"
    model.write_bytes(b"PK")
    for path in (tmp_path / "none", empty, model):
        assert main([str(path), "--json"]) == 2
        assert "error" in json.loads(capsys.readouterr().err)


def test_everything_is_told(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, text = output(capsys, str(bundle))
    assert "epsilon promised 3.2, spent 0.005859375" in text
    assert "assumption: These tables are public: town, prize." in text
    assert f"meaning: {MEANING}" in text


def test_names_cannot_steer_the_terminal(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def rename(receipt: Json) -> None:
        receipt["public"]["tables"] = ["\x1b[2J\u202e\n\ud800x"]

    change_receipt(bundle, rename)
    seal(bundle)
    _, text = output(capsys, str(bundle / "receipt.json"))
    assert not any(c in text for c in "\x1b\u202e\ud800")
    assert output(capsys, str(bundle))[0] == 1


def test_an_old_receipt_is_told_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps({**good(), "version": 1}))
    code, text = output(capsys, str(path))
    assert code == 1
    assert "`privbench fit` of this version makes a new one" in text
