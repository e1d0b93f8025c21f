"""Door to what onnxruntime says where it refuses: the node, the tensor and the kind of trouble that its words name.

Relies on the wording of its C++ sources: `[ShapeInferenceError]` and `[TypeInferenceError]` of graph.cc and of onnx's inference,
`Could not find an implementation for Op(version) node with name '...'` of session_state.cc, `Non-zero status code returned while
running Op node. Name:'...'` of sequential_executor.cc, `Failed to allocate memory for requested buffer of size N` of
bfc_arena.cc. No error has a field for any of it.
Should they move: what is not recognised is told in onnxruntime's own words, without a place.
"""

from __future__ import annotations

import re

# (pattern, which group is the node's name, which its operator)
_NODES = (
    (r"Node \(([^()]*)\) Op \((\w+)\)", 1, 2),
    (r"Node:\s*([^\s,]+)\s", 1, None),
    (r"running (\w+) node\. Name:'([^']*)'", 2, 1),
    (r"implementation for (\w+)\(\d+\) node with name '([^']*)'", 2, 1),
    (r'In Node, \("([^"]*)", (\w+)', 1, 2),
    (r"(?:in|of) node \(([^()]*)\)", 1, None),
)
_TENSORS = (
    r"initializer: (\S+?)\.? ",
    r"Deserialize tensor (\S+) failed",
    r"Initializer '([^']+)'",
    r"initializer[: ]+'?([^\s']+)'?",
    r"tensor[: ]+'([^\s']+)'",
)
_MEMORY = re.compile(r"(?:buffer of size|allocate (?:memory of )?) ?(\d+)|bad_alloc|bad allocation")


def node(text: str) -> tuple[str, str] | None:
    """Return the node that a message names, and its operator; the innermost, where graphs are nested."""
    for pattern, name, op in _NODES:
        if found := list(re.finditer(pattern, text)):
            return found[-1][name], found[-1][op] if op else ""
    return None


def tensor(text: str) -> str | None:
    """Return the tensor of the file that a message names."""
    return next((match[1] for pattern in _TENSORS if (match := re.search(pattern, text))), None)


def lacks_kernel(text: str) -> bool:
    """Say whether a message is that there is no implementation of a node."""
    return "Could not find an implementation for" in text


def refuses_type(text: str) -> bool:
    """Say whether a message is that an operator does not take a float type which hardly any kernel is for."""
    return re.search(r"Type 'tensor\((bfloat16|double)\)' of input parameter", text) is not None


def about_shapes(text: str) -> bool:
    """Say whether a message is that the shapes or types of a node's operands do not go together."""
    return "[ShapeInferenceError]" in text or "[TypeInferenceError]" in text


def arena_refuses(text: str) -> bool:
    """Say whether a message is that a buffer is larger than the memory that may be had."""
    return "Failed to allocate memory for requested buffer of size" in text


def memory_refused(text: str) -> tuple[int | None] | None:
    """Return how many bytes a message says could not be had, (None,) where it does not say how many; None for other messages."""
    match = _MEMORY.search(text)
    return None if match is None else (int(match[1]) if match[1] else None,)
