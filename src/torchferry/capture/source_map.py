"""From an exception, a guard or an fx node to the line of the user's own source."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import torch

from torchferry.records import Fault, Frame, Location

_TORCH = f"{Path(torch.__file__).parent}/"  # with its end: torchvision is not torch
_OURS = str(Path(__file__).parents[1])
_EXAMPLES = str(Path(__file__).parents[1] / "catalogue")  # the catalogue's example models stand for a user's own
_LIBRARIES = tuple({sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")})
# torch writes the user's stack into its messages, in the form of a traceback
_IN_MESSAGE = re.compile(r'File "([^"\n]+)", line (\d+), in (\S+)')


def is_user_file(file: str) -> bool:
    """Say whether a file is the user's own: no part of Python, of an installed package, or of torchferry."""
    if not file or file.startswith("<"):
        return False
    if file.startswith(_EXAMPLES):
        return True
    return not file.startswith((_OURS, *_LIBRARIES)) and "site-packages" not in file and "dist-packages" not in file


def is_model_file(file: str) -> bool:
    """Say whether a file may hold a model's code: the user's own, or an installed package other than torch."""
    inside = file.startswith((_TORCH, _OURS)) and not file.startswith(_EXAMPLES)
    return (
        not inside
        and bool(file)
        and not file.startswith("<")
        and ("site-packages" in file or "dist-packages" in file or is_user_file(file))
    )


def locate(fault: Fault) -> Location | None:
    """Return the innermost line of the user's code that a fault speaks of; of a package's code when there is none."""
    frames = [frame for link in fault.chain() for frame in (*below_us(link.frames), *frames_in(link.text))]
    frame = nearest(frames)
    return Location(file=frame.file, line=frame.line) if frame else None


def nearest(frames: Iterable[Frame]) -> Frame | None:
    """Return the innermost frame in the user's files, else in a model's package, else None."""
    known = list(frames)
    for wanted in (is_user_file, is_model_file):
        found = [f for f in known if wanted(f.file)]
        if found:
            return found[-1]
    return None


def frames_in(text: str) -> tuple[Frame, ...]:
    """Return the frames that a message of torch spells out, outermost first."""
    return below_us([Frame(file, int(line), function.rstrip(",")) for file, line, function in _IN_MESSAGE.findall(text)])


def below_us(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the frames of a stack that torchferry called: the script that calls torchferry is no part of the model."""
    ours = [n for n, frame in enumerate(frames) if frame.file.startswith(_OURS) and not frame.file.startswith(_EXAMPLES)]
    return tuple(frames[ours[0] + 1 :] if ours else frames)


def of_node(node: Any) -> Location | None:
    """Return where in the user's source an fx node came from."""
    frame = nearest(frames_in(node.meta.get("stack_trace") or ""))
    stack = node.meta.get("nn_module_stack") or {}
    path = next((entry[0] for entry in reversed(list(stack.values())) if entry and entry[0]), None)
    if frame is None:
        return Location(module_path=path, op=str(node.target)) if path else None
    return Location(file=frame.file, line=frame.line, module_path=path, op=str(node.target))
