"""The documentation names what there is: commands, flags, words of the spec, settings; and its links lead somewhere."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import click
import pytest

from privbench.cli.commands import cli
from privbench.methods.independent import IndependentSettings
from privbench.methods.paper.settings import PaperSettings
from privbench.methods.tree.settings import TreeSettings
from privbench.model.model import compile_codecs
from privbench.schema.spec import Spec, read_spec
from privbench.schema.table_spec import ColumnSpec, TableSpec

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)", page.read_text("utf-8")):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_lists_and_tables_follow_an_empty_line(page: Path) -> None:
    """Else the site shows them as one paragraph."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    first = r"^(?!\s|[-*] |\d+\. |\||#|$).*\n(?:[-*] |\d+\. |\|)"
    assert re.findall(first, text, re.MULTILINE) == []


def _commands(group: click.Group, before: str = "privbench") -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from _commands(command, f"{before} {name}")
        else:
            yield f"{before} {name}", command


def test_the_readme_names_every_command_and_the_docs_every_flag() -> None:
    readme = (ROOT / "README.md").read_text("utf-8")
    words = {word for page in PAGES for word in re.findall(r"--[a-z-]+", page.read_text("utf-8"))}
    for name, command in _commands(cli):
        assert name in readme
        long = {o for option in command.params for o in option.opts if o.startswith("--")}
        assert long - {"--out"} <= words, name


def test_every_word_of_the_spec_is_described() -> None:
    text = (ROOT / "docs/spec.md").read_text("utf-8")
    fields_of_spec = {**Spec.model_fields, **TableSpec.model_fields, **ColumnSpec.model_fields}
    for name, field in fields_of_spec.items():
        assert f"| `{field.validation_alias or name}` |" in text, name
    for setting in fields(PaperSettings):
        assert f"  {setting.name}:" in text, setting.name
        assert f"`{setting.name}" in (ROOT / "docs/method-paper.md").read_text("utf-8"), setting.name
    for setting in fields(IndependentSettings):
        assert f"`{setting.name}" in (ROOT / "docs/method-independent.md").read_text("utf-8"), setting.name
    for setting in fields(TreeSettings):
        assert f"| `{setting.name}` |" in (ROOT / "docs/method-tree.md").read_text("utf-8"), setting.name


def test_the_example_spec_is_one(tmp_path: Path) -> None:
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/spec.md").read_text("utf-8"), re.DOTALL)
    example = tmp_path / "spec.yaml"
    example.write_text(blocks[-1], "utf-8")
    spec = read_spec(example)
    protection = spec.protection()
    assert protection.order == ("customer", "purchase")
    assert compile_codecs(spec, protection)["customer"]["born"].size == 122


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs/decisions"
    listed = re.findall(r"\(([0-9]{4}-[^)]+)\)", (folder / "README.md").read_text("utf-8"))
    assert listed == sorted(p.name for p in folder.glob("0*.md"))
