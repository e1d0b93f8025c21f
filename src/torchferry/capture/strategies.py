"""The ways to get an ExportedProgram, in the order of how well they keep what the model means."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from torchferry.capture.patches import numbers
from torchferry.foreign import torch_export
from torchferry.foreign.torch_dynamo import reset
from torchferry.retrace import free_sizes


@dataclass(frozen=True, slots=True)
class Strategy:
    """A named way of capturing: a function from the flat module, its example and the dims that move to a program."""

    name: str
    run: Callable[[Any, tuple[Any, ...], Any], Any]


def ordered() -> tuple[Strategy, ...]:
    """Return all strategies, the most faithful first."""
    return (
        Strategy("non-strict", non_strict),
        Strategy("strict", strict),
        Strategy("decided", decided),
        Strategy("script", from_script),
    )


def non_strict(module: Any, args: tuple[Any, ...], shapes: Any) -> Any:
    """Return the program that running the Python code on stand-in tensors gives."""
    return _export(module, args, shapes, strict=False)


def strict(module: Any, args: tuple[Any, ...], shapes: Any) -> Any:
    """Return the program that reading the bytecode gives; slower, and it sees less of Python."""
    reset()
    return _export(module, args, shapes, strict=True)


def decided(module: Any, args: tuple[Any, ...], shapes: Any) -> Any:
    """Return the non-strict program with `max` and `min` of sizes decided by the example; the guards tell over which sizes."""
    with numbers.extremes_by_example():
        return non_strict(module, args, shapes)


def from_script(module: Any, args: tuple[Any, ...], shapes: Any) -> Any:
    """Return a TorchScript model, or part of one, as a program; only where there is script in the module."""
    if not any(isinstance(m, torch.jit.ScriptModule) for m in module.modules()):
        raise TypeError("the model has no TorchScript in it")
    with torch.no_grad():
        traced = torch.jit.trace(module, args, strict=False, check_trace=False)
    return _export(torch_export.from_script(traced, args).module(), args, shapes, strict=False)


def _export(module: Any, args: tuple[Any, ...], shapes: Any, *, strict: bool) -> Any:
    # sizes of 0 and 1 are not set apart, and a guard is kept as a guard: both as torch.onnx itself asks for
    with torch.no_grad(), free_sizes():
        return torch.export.export(
            module, args, dynamic_shapes=shapes, strict=strict, prefer_deferred_runtime_asserts_over_guards=False
        )


def moving(shapes: Any) -> Any:
    """Return dynamic_shapes with every axis that moves marked so, whatever its range: the guards tell what was assumed.

    Named Dims with ranges would turn a narrower capture into an error that shows only the first such place.
    """
    dynamic = torch.export.Dim.DYNAMIC
    if isinstance(shapes, dict):
        return {axis: None if dim is None or isinstance(dim, int) else dynamic for axis, dim in shapes.items()}
    if isinstance(shapes, tuple | list):
        return tuple(moving(s) for s in shapes)
    return shapes
