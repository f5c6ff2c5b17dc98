"""Check that no page of the built site loads anything from elsewhere: `python .ci/check_site.py build/site`.

A link that a reader may follow can lead anywhere. What a page loads by itself (scripts, styles, images, fonts, frames)
must be in the site.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

EXTERNAL = re.compile(r"^\s*(?:[a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
IN_STYLE = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)", re.IGNORECASE)


class _Loads(HTMLParser):
    """Collects the addresses that a page loads."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (name in ("src", "srcset", "poster", "data") or (name == "href" and tag != "a")):
                self.addresses.append(value)


def external_loads(site: Path) -> list[str]:
    """Name every address outside the site that a page or a style of it loads."""
    problems = []
    for file in sorted(site.rglob("*")):
        if file.suffix == ".html":
            page = _Loads()
            text = file.read_text("utf-8")
            page.feed(text)
            loads = [*(a for a in page.addresses if EXTERNAL.match(a)), *IN_STYLE.findall(text)]
        elif file.suffix == ".css":
            loads = IN_STYLE.findall(file.read_text("utf-8"))
        else:
            continue
        problems += [f"{file.relative_to(site)}: loads {address}" for address in loads]
    return problems


if __name__ == "__main__":
    site = Path(sys.argv[1])
    if not (site / "index.html").is_file():
        sys.exit(f"{site}: has no index.html. Build it with `make docs`.")
    if problems := external_loads(site):
        sys.exit("\n".join(problems))
