"""Name the tests next to what changed since the main branch was left, for `make quick`.

A changed test file stands for itself. A changed module stands for its own examples and for the files in its room's
folder of tests that name it, or else for the whole folder. A changed page stands for the tests of the docs.
"""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAIN = ("origin/HEAD", "origin/main")
PAGES = ("tests/test_docs.py", "tests/test_api.py")
HABITS = "tests/test_habits.py"
FOLDERS = {"src/privbench_verify": "tests/verify"}
"""Folders of tests that are not called like the package."""


def changed_files(root: Path) -> list[str]:
    """Give the files that differ from where the branch left the main one (or else from HEAD), new ones included."""
    left = (_git(root, "merge-base", "HEAD", main) for main in MAIN)
    [base] = next((commit for commit in left if commit), ["HEAD"])
    changed = [*_git(root, "diff", "--name-only", base), *_git(root, "ls-files", "--others", "--exclude-standard")]
    return sorted({name for name in changed if (root / name).is_file()})


def nearby_tests(changed: Iterable[str], root: Path) -> list[str]:
    """Give the test files and folders to run, each once and none inside another."""
    targets = {target for name in changed for target in _tests_of_file(Path(name), root)}
    return sorted(t for t in targets if (root / t).exists() and not any(t.startswith(f"{o}/") for o in targets))


def _tests_of_file(path: Path, root: Path) -> Iterator[str]:
    match path.parts:
        case ("tests", *_, name) if name.startswith("test_"):
            yield str(path)
        case ("tests", _, *_, _):
            yield str(path.parent)
        case ("tests", _):
            yield from _that_name(f".{path.stem} import", root / "tests", root)
        case ("src", *_) if path.suffix == ".py":
            yield str(path)
            yield from _next_to(path, root)
        case ("docs", *_) | (_,) if path.suffix == ".md":
            yield from PAGES
        case ("bench" | ".ci" | ".github", *_) | (_,):
            yield HABITS


def _next_to(path: Path, root: Path) -> Iterator[str]:
    """The tests of a module: those that name it in its room's folder, or else the whole folder."""
    package = str(Path(*path.parts[:2]))
    folder = root / FOLDERS.get(package, "tests") / Path(*path.parts[2:-1])
    if folder == root / "tests":
        yield from PAGES
        return
    while not folder.is_dir():  # a room's inner folder may have its tests in the folder of the room
        folder = folder.parent
    module = ".".join(path.with_suffix("").parts[1:])
    named = list(_that_name(module, folder, root))
    yield from named or [str(folder.relative_to(root))]


def _that_name(text: str, folder: Path, root: Path) -> Iterator[str]:
    for file in sorted(folder.rglob("test_*.py")):
        if text in file.read_text("utf-8"):
            yield str(file.relative_to(root))


def _git(root: Path, *words: str) -> list[str]:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)  # noqa: S603, S607
    return done.stdout.splitlines() if done.returncode == 0 else []


if __name__ == "__main__":
    sys.stdout.write(" ".join(nearby_tests(changed_files(ROOT), ROOT)) + "\n")
