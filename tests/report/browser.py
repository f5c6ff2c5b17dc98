"""A real headless Chromium: a page after its script and some more script of the test have run."""

import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

from ..required import missing

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# Runs before the page: whatever goes wrong is written into the page itself. That includes what the policy blocks.
HOOK = """<script>
window.problems = [];
addEventListener("error", (e) => problems.push("error: " + (e.message || e.target.outerHTML)), true);
addEventListener("unhandledrejection", (e) => problems.push("rejection: " + e.reason));
addEventListener("securitypolicyviolation", (e) => problems.push("blocked: " + e.blockedURI));
for (const level of ["error", "warn"]) console[level] = (...words) => problems.push(level + ": " + words.join(" "));
</script>"""
LAST = """<script>
(() => {{ try {{ {script} }} catch (problem) {{ problems.push("test: " + problem); }} }})();
addEventListener("load", () => {{
  const note = document.createElement("pre");
  note.id = "problems";
  note.textContent = problems.join("\\n") + "|" + performance.getEntriesByType("resource").map((r) => r.name).join();
  document.body.appendChild(note);
}});
</script>"""


def find_browser() -> str:
    """The browser; without one the test is skipped, or fails where PRIVBENCH_REQUIRE names `browser`."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        missing("browser", f"no browser: none of {', '.join(NAMES)} is on the PATH")
    return found


def open_page(html: str, folder: Path, script: str = "") -> str:
    """The page as it stands after `script`; fails if anything was loaded, blocked or wrong on the way."""
    watched = html.replace("<head>", f"<head>{HOOK}", 1)
    body, end = watched.rsplit("</body>", 1)
    path = folder / "page.html"
    path.write_text(f"{body}{LAST.format(script=script)}</body>{end}", encoding="utf-8")
    profile = folder / "profile"
    command = [find_browser(), *FLAGS, f"--user-data-dir={profile}", "--virtual-time-budget=5000", "--dump-dom"]
    done = subprocess.run(  # noqa: S603  our own page
        [*command, path.as_uri()], capture_output=True, text=True, timeout=120, check=True
    )
    shutil.rmtree(profile, ignore_errors=True)
    found = re.search(r'<pre id="problems">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr
    problems, loaded = unescape(found[1]).rsplit("|", 1)
    assert problems == ""
    assert loaded == ""
    return done.stdout
