"""Door to what torch says where it refuses, as far as its errors have no type or field for it.

Relies on the wording of `torch/csrc/autograd` (a gradient of what has none), of `aten` (an index past the rows of a table,
another number of channels), of `torch._export` and `torch.fx.experimental.symbolic_shapes` (sizes that were fixed, values that
were asked for), of `torch._dynamo.side_effects` (an attribute that a loop's body changed) and of TorchScript's interpreter.
Should they move: the test beside this door provokes each of them, and has the new words.
"""

from __future__ import annotations

import re

_NO_GRADIENT = "does not require grad and does not have a grad_fn"
_FIXED = (
    "specialized it to be a constant",
    "conflicts between user-specified ranges and inferred ranges",
    "Constraints violated",
)
_VALUES = (
    "unhashable type: non-nested SymInt",
    "unsupported format string passed to FakeTensor",
    "data-dependent",
    "Data-dependent",
    "data dependent",
    "DataDependentOutputException",
    "GuardOnDataDependentSymNode",
    "are valid indices (got SymInt)",  # in the body of a loop that the user wrote as torch's own
)
_CHANGED = re.compile(r"Attribute '(\w+)' on an outer-scope object was changed")
_CHANGED_AT = re.compile(r"Attempted to mutate .*\n +[\w.]+\.(\w+) *[^\w\s=(]{0,3}= ", re.DOTALL)  # torch 2.12 shows its line


def needs_gradients(text: str) -> bool:
    """Say whether a call failed because it takes a gradient where none is recorded."""
    return _NO_GRADIENT in text


def fixes_a_size(text: str) -> bool:
    """Say whether a capture failed because a size that should move was fixed."""
    return any(phrase in text for phrase in _FIXED)


def needs_values(type_name: str, text: str) -> bool:
    """Say whether a capture failed because Python asked for the value of a tensor."""
    return any(phrase in text or phrase == type_name for phrase in _VALUES)


def changed_attribute(text: str) -> str | None:
    """Return the attribute that the body of a loop or a branch was found to change; it is found at its end, with no line."""
    match = _CHANGED.search(text) or _CHANGED_AT.search(text)
    return match[1] if match else None


def past_the_rows(text: str) -> bool:
    """Say whether an index went past the rows of a table."""
    return "index out of range in self" in text


def wants_channels(text: str) -> bool:
    """Say whether a convolution was given another number of channels than it has weights for."""
    return re.search(r"to have \d+ channels, but got \d+ channels instead", text) is not None


def telling_line(text: str) -> str:
    """Return the line of a message that says what was wrong: TorchScript's interpreter tells where it was before that."""
    lines = [line for line in text.splitlines() if line.strip()] or [""]
    return lines[-1 if "The following operation failed in the TorchScript interpreter" in lines[0] else 0]
