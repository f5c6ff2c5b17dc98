"""A hook of mkdocs: README, CONTRIBUTING and CHANGELOG, at the root of the repository, are pages of the site too.

Their links are written for the repository (`docs/spec.md`), and those of pages in docs/ to them too; here they
become links of the site.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
ELSEWHERE = re.compile(r"\[([^\]]*)\]\((?:LICENSE|\.importlinter)\)")
"""Links to files of the repository that are no pages: only their words stay."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the navigation: all decision notes by number, and under Reference what mkdocs.yml does not list."""
    sections = {name: pages for entry in config.nav or [] for name, pages in entry.items()}
    sections["Decisions"] += sorted(f"decisions/{p.name}" for p in (ROOT / "docs/decisions").glob("0*.md"))
    sections["Reference"] += sorted({p.name for p in (ROOT / "docs").glob("*.md")} - set(_pages(config.nav)))
    return config


def _pages(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    else:
        for entry in nav.values() if isinstance(nav, dict) else nav or []:
            yield from _pages(entry)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text("utf-8").replace("](docs/", "](")
        for other, target in PAGES.items():
            text = text.replace(f"]({other}", f"]({target}")
        files.append(File.generated(config, page, content=ELSEWHERE.sub(r"\1", text)))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Lead links from docs/ to the root of the repository to the pages made above."""
    return re.sub(
        r"\]\(((?:\.\./)*)\.\./(README|CONTRIBUTING|CHANGELOG)\.md",
        lambda found: f"]({found[1]}{PAGES[f'{found[2]}.md']}",
        markdown,
    )
