"""Door to torch.export: the guards of a program, its graph, and the conversion of TorchScript.

Relies on ExportedProgram's `_guards_code` and `_graph_module`, on `torch._export.non_strict_utils`
(`_NonStrictTorchFunctionHandler._override`), on `torch._export.converter.TS2EPConverter` (since torch 2.5), and on the hooks
that check a program's inputs (`_forward_pre_hooks`).
Should they move: `ExportedProgram.module(check_guards=True)` has the guards as code in its graph; a program with another graph
can be had by `run_decompositions`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from torchferry.foreign.moved import relying_on
from torchferry.foreign.replaced import replaced

with relying_on("torch", "the inside of torch.export"):
    from torch._export.non_strict_utils import _NonStrictTorchFunctionHandler

    _override = _NonStrictTorchFunctionHandler._override

__all__ = [
    "LOGGERS",
    "calls_changed_by",
    "from_script",
    "guards_of",
    "keep_guards",
    "shape_env_of",
    "unchecked",
    "with_graph_module",
]

# a failed capture prints whole graphs here, and that torch has no advice to give
LOGGERS = ("torch._guards", "torch._dynamo", "torch.export._trace", "torch.fx.experimental.symbolic_shapes")


def guards_of(program: Any) -> tuple[str, ...]:
    """Return the conditions under which a program holds, as Python code: `L['x'].size()[1] > 8`."""
    return tuple(getattr(program, "_guards_code", None) or ())


def keep_guards(program: Any, guards: Sequence[str]) -> Any:
    """Return the program, itself changed, with conditions that still hold and that a decomposition has dropped."""
    if guards:
        program._guards_code = list(guards)
    return program


def with_graph_module(program: Any, module: Any) -> Any:
    """Return the program with another graph, which has the same inputs and outputs; the program itself is not touched."""
    other = copy.copy(program)
    other._graph_module = module
    return other


def shape_env_of(program: Any) -> Any | None:
    """Return the environment of a program's symbolic sizes, or None if it has none."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        for size in getattr(value, "shape", ()) if hasattr(value, "shape") else (value,):
            if hasattr(size, "node") and hasattr(size.node, "shape_env"):
                return size.node.shape_env
    fake_mode = next((n.meta["val"].fake_mode for n in program.graph.nodes if hasattr(n.meta.get("val"), "fake_mode")), None)
    return getattr(fake_mode, "shape_env", None)


def unchecked(program: Any) -> Any:
    """Return the program as a module that takes inputs of any size."""
    module = program.module(check_guards=False)
    module._forward_pre_hooks.clear()  # torch's own check of the sizes
    return module


def from_script(traced: Any, args: tuple[Any, ...]) -> Any:
    """Return a traced or scripted module as a program."""
    with relying_on("torch", "its conversion of TorchScript"):
        from torch._export.converter import TS2EPConverter  # a third of a second, for few models
    return TS2EPConverter(traced, args, {}).convert()


def calls_changed_by(change: Callable[[Any, Any], Any]) -> AbstractContextManager[None]:
    """Return a context in which a non-strict capture takes the arguments that `change(function, arguments)` returns."""

    def changed(self: Any, func: Any, args: Any, kwargs: Any) -> Any:
        return _override(self, func, change(func, args), kwargs)

    return replaced(_NonStrictTorchFunctionHandler, {_override.__name__: changed})
