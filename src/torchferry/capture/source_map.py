"""From an exception, a guard or an fx node to the line of the user's own source."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from torchferry.records import Fault, Frame, Location
from torchferry.whose_code import innermost, is_users, lies_nowhere

_OURS = str(Path(__file__).parents[1])
# torch writes the user's stack into its messages, in the form of a traceback
_IN_MESSAGE = re.compile(r'File "([^"\n]+)", line (\d+), in (\S+)')


def locate(fault: Fault) -> Location | None:
    """Return the innermost line of the user's code that a fault speaks of; of a package's code when there is none."""
    frames = [frame for link in fault.chain() for frame in (*below_us(link.frames), *frames_in(link.text))]
    frame = nearest(frames)
    return Location(file=frame.file, line=frame.line) if frame else None


def nearest(frames: Iterable[Frame]) -> Frame | None:
    """Return the innermost frame in the user's files, else in a model's package, else in code without a file, else None."""
    known = list(frames)
    place = innermost([f.file for f in known])
    return next((f for f in reversed(known) if lies_nowhere(f.file)), None) if place is None else known[place]


def frames_in(text: str) -> tuple[Frame, ...]:
    """Return the frames that a message of torch spells out, outermost first."""
    return below_us([Frame(file, int(line), function.rstrip(",")) for file, line, function in _IN_MESSAGE.findall(text)])


def below_us(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Return the frames of a stack that torchferry called: the script that calls torchferry is no part of the model."""
    ours = [n for n, frame in enumerate(frames) if frame.file.startswith(_OURS) and not is_users(frame.file)]
    return tuple(frames[ours[0] + 1 :] if ours else frames)


def of_node(node: Any) -> Location | None:
    """Return where in the user's source an fx node came from."""
    frame = nearest(frames_in(node.meta.get("stack_trace") or ""))
    stack = node.meta.get("nn_module_stack") or {}
    path = next((entry[0] for entry in reversed(list(stack.values())) if entry and entry[0]), None)
    if frame is None:
        return Location(module_path=path, op=str(node.target)) if path else None
    return Location(file=frame.file, line=frame.line, module_path=path, op=str(node.target))
