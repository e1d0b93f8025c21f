"""Rewrites that only one thread sees: a function whose code was replaced runs as the user wrote it in every other thread.

A model may serve requests in one thread while another exports it. The code of a function is the same for all of them, so
rewritten code begins with a question: is there an original, for whoever runs this?
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator
from itertools import count
from types import FunctionType
from typing import Any

import torch

from torchferry.capture.rewrites.syntax_tree import FunctionNode

_keys = count()
_originals: dict[int, tuple[int, Any]] = {}  # by the key in the rewritten code: who runs that code, and what all others run
KEPT = 256  # more than stand in code at one time: a call that had begun when its rewrite ended still finds its original


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]  # a capture need not look into it
def original_for_others(key: int) -> Any:
    """Return what this thread is to run instead of rewritten code; nothing for the thread that made it."""
    owner, original = _originals.get(key, (threading.get_ident(), None))
    return None if owner == threading.get_ident() else original


def ask_first(node: FunctionNode) -> int:
    """Let rewritten code ask, before anything else, whether to run as it was written; return the key that it asks with."""
    key, given = next(_keys), node.args
    names = [a.arg for a in (*given.posonlyargs, *given.args)] + ([f"*{given.vararg.arg}"] if given.vararg else [])
    names += [f"{a.arg}={a.arg}" for a in given.kwonlyargs] + ([f"**{given.kwarg.arg}"] if given.kwarg else [])
    call = f"torchferry_original({', '.join(names)})"
    if isinstance(node, ast.AsyncFunctionDef):
        call = f"await {call}"
    elif any(isinstance(n, ast.Yield | ast.YieldFrom) for n in _own(node)):
        call = f"(yield from {call})"
    asked = ast.parse(
        f"from {__name__} import original_for_others as torchferry_original\n"
        f"torchferry_original = torchferry_original({key})\n"
        f"if torchferry_original is not None: return {call}\n"
    ).body
    for statement in asked:
        for part in ast.walk(statement):
            if hasattr(part, "lineno"):
                ast.copy_location(part, node.body[0])
    at = 1 if ast.get_docstring(node, clean=False) is not None else 0
    node.body[at:at] = asked
    return key


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what belongs to a function itself, and to no other one inside of it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from _own(child)


def keep_original(key: int, function: FunctionType) -> None:
    """Let other threads run a function as it is now wherever code asks with this key."""
    twin = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    _originals[key] = threading.get_ident(), twin
    while len(_originals) > KEPT:
        del _originals[next(iter(_originals))]
