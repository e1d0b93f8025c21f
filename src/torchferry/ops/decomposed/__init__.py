"""Operators that torch.onnx lacks or gets wrong, one file a family.

A family offers `DECOMPOSITIONS` (operator -> torch function in simpler operators), `DOUBLES`, `WHOLES`, `MOVING_GROUPS` and
`PADDED_PAST_STRIDE` (the same for float64 alone, for integers and booleans alone, where the number of groups is computed, and
where a transposed convolution pads its output by a stride or more), `TRANSLATIONS` (operator -> onnxscript function) and
`COMPLEX_TRANSLATIONS` (the same for complex arguments, which come as real pairs on a last axis of size 2).
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from torchferry.foreign.torch_operators import present

Table = dict[Any, Callable[..., Any]]


@cache
def _gathered(kind: str) -> Table:
    table: Table = {}
    for info in pkgutil.iter_modules(__path__, prefix=__name__ + "."):
        table.update(getattr(importlib.import_module(info.name), kind, {}))
    return present(table)  # an operator that the installed torch does not have is one row less


def decompositions() -> Table:
    """Return operator -> torch function for all families."""
    return _gathered("DECOMPOSITIONS")


def special_decompositions() -> list[tuple[Table, Callable[..., bool]]]:
    """Return tables of decompositions that hold for some calls alone, each with whether it holds for one."""
    return [
        (_gathered("DOUBLES"), is_double),
        (_gathered("WHOLES"), is_whole),
        (_gathered("MOVING_GROUPS"), moves_groups),
        (_gathered("PADDED_PAST_STRIDE"), pads_past_stride),
    ]


def is_double(*args: Any, **kwargs: Any) -> bool:
    """Whether a call computes in float64."""
    return any(getattr(value, "dtype", value) == torch.float64 for value in (*args, *kwargs.values()))


def is_whole(*args: Any, **_: Any) -> bool:
    """Whether a call computes with integers or booleans."""
    return bool(args) and isinstance(args[0], torch.Tensor) and not (args[0].is_floating_point() or args[0].is_complex())


def moves_groups(*args: Any, **kwargs: Any) -> bool:
    """Whether a call of a convolution computes its number of groups, which is its seventh argument."""
    return isinstance(kwargs.get("groups", args[6] if len(args) > 6 else 1), torch.SymInt)


def pads_past_stride(*args: Any, **_: Any) -> bool:
    """Whether a call of a transposed convolution pads its output, the sixth argument, by a stride, the fourth, or more."""
    stride, more = (args[n] if len(args) > 5 and isinstance(args[n], list | tuple) else () for n in (3, 5))
    return any(m >= s for s, m in zip(stride, more, strict=False))


def translations() -> Table:
    """Return operator -> onnxscript function for all families."""
    return _gathered("TRANSLATIONS")


def complex_translations() -> Table:
    """Return operator -> onnxscript function over real pairs, for complex arguments."""
    return _gathered("COMPLEX_TRANSLATIONS")
