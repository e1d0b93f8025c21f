"""Door to torch's modes: what is called in place of every operator or function, and how to step outside of them.

Relies on `torch.utils._python_dispatch` (TorchDispatchMode, since torch 2.0; `_disable_current_modes`) and on its hook
`_should_skip_dynamo`, on `torch._C.DisableTorchFunction`, and on the stack of function transforms in `torch._C._functorch`.
Should they move: torch.overrides has the modes for functions, and of it TorchFunctionMode is public already.
"""

from __future__ import annotations

import torch

from torchferry.foreign.moved import relying_on

with relying_on("torch", "its dispatch modes"):
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._python_dispatch import _disable_current_modes as without_dispatch_modes

    without_torch_function = torch._C.DisableTorchFunction
    _current_level = torch._C._functorch.maybe_current_level
    _pop_level = torch._C._functorch.pop_dynamic_layer_stack

__all__ = [
    "EagerDispatchMode",
    "TorchDispatchMode",
    "transform_level",
    "unwind_transforms",
    "without_dispatch_modes",
    "without_torch_function",
]


class EagerDispatchMode(TorchDispatchMode):
    """A mode for eager runs, which sees operators that take functions too."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and torch would import its whole compiler to say so


def transform_level() -> int:
    """Return how many function transforms (vmap, grad, ...) are being gone through."""
    return _current_level() or 0


def unwind_transforms(level: int) -> None:
    """Leave the transforms above a level: an error inside vmap leaves one there."""
    while transform_level() > level:
        _pop_level()
