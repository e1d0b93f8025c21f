"""The HTML report in a real browser. Skipped where no Chromium is installed: the other tests still read its markup."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from stories import STORIES

from torchferry.report import render

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")


def _browse(*options: str) -> str:
    assert BROWSER is not None
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
    return subprocess.run([BROWSER, *quiet, *options], check=True, capture_output=True, text=True, timeout=120).stdout


def _measured(story: str, measure: str) -> str:
    """Return the page with a script that measures it; its own policy, which runs none, is left out."""
    page = render(STORIES[story](), "html").replace("</body>", f"<script>document.title = {measure}</script></body>")
    return re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page, flags=re.IGNORECASE)


def test_the_page_shows_its_parts_and_does_not_overflow(tmp_path: Path) -> None:
    facts = "document.documentElement.scrollWidth, innerWidth, document.querySelectorAll('circle').length"
    page = tmp_path / "report.html"
    page.write_text(_measured("different-file", f"[{facts}]"), encoding="utf-8")
    shown = _browse("--window-size=500,900", "--dump-dom", page.as_uri())
    found = re.search(r"<title>(\d+),(\d+),(\d+)</title>", shown)
    assert found is not None
    scrolled, window, dots = map(int, found.groups())
    assert scrolled <= window
    assert dots == 7


@pytest.mark.parametrize("scheme", [("light", 1), ("dark", 0)])
def test_the_page_paints_in_light_and_dark(tmp_path: Path, scheme: tuple[str, int]) -> None:
    measure = "getComputedStyle(document.body).backgroundColor"
    page = tmp_path / "report.html"
    page.write_text(_measured("verified", measure), encoding="utf-8")
    shown = _browse(f"--blink-settings=preferredColorScheme={scheme[1]}", "--dump-dom", page.as_uri())
    found = re.search(r"<title>rgb\((\d+), \d+, \d+\)</title>", shown)
    assert found is not None
    assert (int(found[1]) < 128) == (scheme[0] == "dark")
