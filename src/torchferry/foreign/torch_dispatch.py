"""Door to torch's modes: what is called in place of every operator or function, and how to step outside of them.

Relies on `torch.utils._python_dispatch` (TorchDispatchMode, since torch 2.0; `_disable_current_modes`) and on its hook
`_should_skip_dynamo`, on `torch._C.DisableTorchFunction` and the state that it sets, on torch's two stacks of modes, and on the
stack of function transforms in `torch._C._functorch`.
Should they move: torch.overrides has the modes for functions, and of it TorchFunctionMode is public already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch

from torchferry.foreign.moved import relying_on

with relying_on("torch", "its dispatch modes"):
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._python_dispatch import _disable_current_modes as without_dispatch_modes

    without_torch_function = torch._C.DisableTorchFunction
    _function_state = torch._C._get_torch_function_state
    _set_function_state = torch._C._set_torch_function_state
    _current_level = torch._C._functorch.maybe_current_level
    _pop_level = torch._C._functorch.pop_dynamic_layer_stack

__all__ = [
    "EagerDispatchMode",
    "TorchDispatchMode",
    "same_modes_after",
    "transform_level",
    "unwind_transforms",
    "without_dispatch_modes",
    "without_modes",
    "without_torch_function",
]


class EagerDispatchMode(TorchDispatchMode):
    """A mode for eager runs, which sees operators that take functions too."""

    supports_higher_order_operators = True

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here, and torch would import its whole compiler to say so


@contextmanager
def without_modes() -> Iterator[None]:
    """Let the block call torch's own kernels on real numbers, whatever is being captured."""
    with without_torch_function(), without_dispatch_modes():
        yield


def transform_level() -> int:
    """Return how many function transforms (vmap, grad, ...) are being gone through."""
    return _current_level() or 0


def unwind_transforms(level: int) -> None:
    """Leave the transforms above a level: an error inside vmap leaves one there."""
    while transform_level() > level:
        _pop_level()


@contextmanager
def same_modes_after() -> Iterator[None]:
    """Leave torch's modes as they were: an exception that comes as a `with` ends, as Ctrl-C may, leaves its mode on, or off."""
    state, gradients, stacks = _function_state(), torch.is_grad_enabled(), [(stack, stack.modes()) for stack in _STACKS]
    try:
        yield
    finally:
        for stack, modes in stacks:
            stack.put_back(modes)
        _set_function_state(state)
        if torch.is_grad_enabled() != gradients:
            torch.set_grad_enabled(gradients)


@dataclass(frozen=True)
class _Stack:
    """One of torch's stacks of modes, the innermost last."""

    count: Callable[[], int]
    at: Callable[[int], Any]
    pop: Callable[[], Any]
    push: Callable[[Any], None]

    def modes(self) -> list[Any]:
        return [self.at(i) for i in range(self.count())]

    def put_back(self, modes: list[Any]) -> None:
        if list(map(id, self.modes())) != list(map(id, modes)):
            while self.count():
                self.pop()
            for mode in modes:
                self.push(mode)


with relying_on("torch", "its stacks of modes"):
    _STACKS = (
        _Stack(
            torch._C._len_torch_function_stack,
            torch._C._get_function_stack_at,
            torch._C._pop_torch_function_stack,
            torch._C._push_on_torch_function_stack,
        ),
        _Stack(
            torch._C._len_torch_dispatch_stack,
            torch._C._get_dispatch_stack_at,
            lambda: torch._C._pop_torch_dispatch_stack(None),
            torch._C._push_on_torch_dispatch_stack,
        ),
    )
