"""Whose code a source file is: the user's own, an installed package's, or machinery that says nothing about a model.

Told by where the file lies, here or on the machine that a stack trace was written on.
"""

from __future__ import annotations

import importlib.util
import re
import sysconfig
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal

Owner = Literal["user", "package", "machinery"]
# what runs a model, rather than being one: as installed anywhere, and as torch writes its own files into stack traces
_RUNS_MODELS = re.compile(r"(^|[/\\](site|dist)-packages[/\\])(torch|onnxscript|onnx|torchferry)[/\\]")
_INSTALLED = re.compile(r"[/\\](site|dist)-packages[/\\]")
_PYTHON = re.compile(r"[/\\]lib[/\\]python3(\.\d+)?[/\\](?!.*(site|dist)-packages)")
_GENERATED = re.compile(r"<(frozen|eval_with_key|__array|attrs|lambdify|decorator|unknown|template)")  # by Python and packages
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_HERE = f"{Path(__file__).parent}/"
_AS_USERS = tuple(f"{_HERE}{name}" for name in ("catalogue/", "demo"))  # models in there are written as users write them


@cache
def owner(file: str) -> Owner:
    """Return whose a file is; code that lies in no file is machinery."""
    if file.startswith(_AS_USERS):
        return "user"
    if not file or file.startswith(("<", _HERE, _torch())) or _RUNS_MODELS.search(file):
        return "machinery"
    if _INSTALLED.search(file) or file.startswith((_path("purelib"), _path("platlib"))):
        return "package"
    return "machinery" if file.startswith(_path("stdlib")) or _PYTHON.search(file) else "user"


def is_users(file: str) -> bool:
    """Return whether a file is the user's own."""
    return owner(file) == "user"


def may_be_a_models(file: str) -> bool:
    """Return whether a file may hold a model's code: the user's own, or that of a package other than torch."""
    return owner(file) != "machinery"


def lies_nowhere(file: str) -> bool:
    """Return whether code may be the user's though it lies in no file: given by `python -c`, at a prompt, or as a string."""
    return file.startswith("<") and not _GENERATED.match(file)


def innermost(files: Sequence[str]) -> int | None:
    """Return which of a stack's files, outermost first, to show: the last of the user's, else of a package; None for neither."""
    owners = [owner(file) for file in files]
    wanted: Owner = "user" if "user" in owners else "package"
    return max((n for n, found in enumerate(owners) if found == wanted), default=None)


def users_lines(stack: str) -> list[tuple[str, int]]:
    """Return the lines of the user's own (file, number) in a stack as Python writes one down, in its order."""
    return [(file, int(line)) for file, line in _FRAME.findall(stack) if is_users(file)]


@lru_cache(maxsize=4096)
def line_in(stack: str) -> tuple[str | None, int | None]:
    """Return file and line of the frame to show of a stack, as Python writes one down; None for either where there is none."""
    frames = _FRAME.findall(stack)
    place = innermost([file for file, _ in frames])
    return (None, None) if place is None else (frames[place][0], int(frames[place][1]))


@cache
def _path(name: str) -> str:
    return f"{sysconfig.get_paths()[name]}/"


@cache
def _torch() -> str:
    """Return torch's folder, with its end: torchvision is not torch. Torch itself is not loaded for that."""
    found = importlib.util.find_spec("torch")
    return f"{Path(found.origin).parent}/" if found is not None and found.origin else "<no torch>"
