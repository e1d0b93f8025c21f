"""What can go wrong: one file for each diagnosis, found by walking this package; see `rule.py`.

Third parties add rules through the entry point group `torchferry.rules`: each names a module with a Rule, bad and good.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoints, entry_points
from types import ModuleType

from torchferry.catalogue.rule import Rule
from torchferry.errors import UsageError, did_you_mean
from torchferry.records import Job


@dataclass(frozen=True, slots=True)
class Entry:
    """A rule with the module it stands in, which also holds its bad and good examples."""

    rule: Rule
    module: ModuleType

    @property
    def code(self) -> str:
        return self.rule.code

    @property
    def slug(self) -> str:
        return self.rule.slug()

    def examples(self, kind: str) -> dict[str, Callable[[], Job]]:
        """Return the functions that make example Jobs: `bad`, `bad_nested`, ... or `good`, ..."""
        return {n: f for n, f in vars(self.module).items() if n == kind or n.startswith(kind + "_")}


def strangers() -> EntryPoints:
    """Return where third parties have rules."""
    return entry_points(group="torchferry.rules")


def _modules() -> list[ModuleType]:
    found = [
        importlib.import_module(info.name)
        for info in pkgutil.walk_packages(__path__, prefix=__name__ + ".")
        if not info.ispkg and info.name.count(".") == __name__.count(".") + 2
    ]
    return found + [importlib.import_module(point.value) for point in strangers()]


@cache
def load() -> tuple[Entry, ...]:
    """Return every rule, in the order of their codes. Imports neither torch nor onnx."""
    entries = []
    for module in _modules():
        rules = [
            c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Rule) and c.__module__ == module.__name__
        ]
        entries += [Entry(rule(), module) for rule in rules]
    return tuple(sorted(entries, key=lambda e: e.code))


def find(code_or_slug: str) -> Entry:
    """Return the entry of a code (`CAP003`) or slug (`branch-on-tensor-value`)."""
    wanted = code_or_slug.strip().lower().replace("_", "-")
    for entry in load():
        if wanted in (entry.code.lower(), entry.slug):
            return entry
    raise UsageError(f"no diagnosis is called `{code_or_slug}`{_near(wanted)}; `torchferry explain --list` shows them all")


def _near(wanted: str) -> str:
    """Return which codes may have been meant: those that lack a digit or have others, of the same stage; else a like slug."""
    if (told := re.fullmatch(r"([a-z]{2,4})-?(\d{1,4})", wanted)) is None:
        return did_you_mean(wanted, [e.slug for e in load()])
    codes = [e.code for e in load()]
    letters = next(iter(difflib.get_close_matches(told[1].upper(), sorted({c.rstrip("0123456789") for c in codes}), 1)), "")
    ours = [c for c in codes if c.startswith(letters)] if letters else []
    same_number = [c for c in ours if int(c[len(letters) :]) == int(told[2])]
    begun = [c for c in ours if c.startswith(letters + told[2])]
    near = list(dict.fromkeys(same_number + begun)) or difflib.get_close_matches(letters + told[2], ours, n=3, cutoff=0.6)
    return f" (did you mean {' or '.join(f'`{c}`' for c in near[:4])}?)" if near else ""
