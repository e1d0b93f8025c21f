"""Where the page of a diagnosis can be read: said once, for reports, SARIF logs, `explain` and the site.

The documentation has no public address yet. Until `project.urls` in pyproject.toml names one as `Documentation`, an address is
relative to the built site; `TORCHFERRY_DOCS` names a copy of it, as in `https://docs.example.org/torchferry` or `file:///opt/docs`.
"""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

SETTING = "TORCHFERRY_DOCS"
# what may become a link: reports are read back from files of others, and a browser runs `javascript:`
_LINK = re.compile(r"(?:https?|file)://[\w.~:/?#@%&=+,;-]+")


def of(code: str) -> str:
    """Return the address of a diagnosis; empty for a code that is not ours. It hangs on the code alone, which is for ever."""
    return f"{base()}diagnoses/{code}.html" if code in _ours() else ""


def link(address: str) -> str:
    """Return the address where it is one that a reader can follow from anywhere; empty where it is not."""
    return address if _LINK.fullmatch(address) else ""


def base() -> str:
    """Return what every address begins with: the setting, or where the package says that it is documented; else nothing."""
    given = os.environ.get(SETTING, "") or _documented()
    return f"{given.rstrip('/')}/" if given else ""


@cache
def _documented() -> str:
    try:
        urls = metadata("torchferry").get_all("Project-URL") or ()
    except PackageNotFoundError:  # run from its source, without being installed
        return ""
    named = dict(str(url).split(", ", 1) for url in urls)
    return named.get("Documentation", "")


@cache
def _ours() -> frozenset[str]:
    from torchferry.catalogue import load

    return frozenset(e.code for e in load() if e.module.__name__.startswith("torchferry."))
