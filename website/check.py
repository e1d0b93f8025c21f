"""Read every page of the built site: `python website/check.py build/site` names each dead link and each thing that is fetched."""

from __future__ import annotations

import os
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FETCHED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}
NAMED_ONLY = {"canonical", "next", "prev", "alternate"}  # what a browser does not fetch


class Page(HTMLParser):
    """The names that a page can be entered at, where it links to, and what a browser fetches for it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.names: set[str] = {""}
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the names and addresses in a tag."""
        told = dict(attrs)
        self.names |= {told["id"]} if told.get("id") else set()
        for name, value in attrs:
            if (tag, name) in FETCHED and value and told.get("rel") not in NAMED_ONLY:
                self.fetched.append(value)
            elif name == "href" and value:
                self.links.append(value)


def faults(site: Path) -> list[str]:
    """Return what is wrong with the site, a line each."""
    files = {path for path in site.resolve().rglob("*") if path.is_file()}
    pages = {path: Page(path) for path in sorted(files) if path.suffix == ".html" and path.name != "404.html"}  # in no folder
    found = []
    for path, page in pages.items():
        for address in (*page.links, *page.fetched):
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if address in page.fetched and parts.scheme != "data":
                    found.append(f"{path}: fetches {address}")
                continue
            target = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            if target not in files:
                found.append(f"{path}: there is no {address}")
            elif target in pages and unquote(parts.fragment) not in pages[target].names:
                found.append(f"{path}: nothing is called {address}")
    styles = (
        p for p in site.rglob("*.css") if re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", p.read_text(encoding="utf-8"))
    )
    return found + [f"{path}: fetches something" for path in styles]


if __name__ == "__main__":
    wrong = faults(Path(sys.argv[1]).resolve())
    print("\n".join(wrong) or f"{sys.argv[1]}: no dead link, and nothing is fetched from elsewhere")
    sys.exit(bool(wrong))
