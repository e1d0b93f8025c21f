"""Numbers read from weights and buffers, or from what is made of these alone: they are known, also during a capture.

Torch's stand-ins have no values. Those of weights and buffers have some, and so has all that is computed from them alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from torchferry.capture.given_noise import DRAWN
from torchferry.foreign.torch_dispatch import without_dispatch_modes, without_torch_function
from torchferry.foreign.torch_modules import tables_of
from torchferry.foreign.torch_trees import tree_leaves, tree_map

_SYMBOLS = (torch.SymInt, torch.SymFloat, torch.SymBool)
LARGEST = 2**16  # elements: what code reads into Python is small, and all that is known is kept
_READS = {
    Tensor.numpy,
    Tensor.item,
    Tensor.tolist,
    Tensor.__bool__,
    Tensor.__int__,
    Tensor.__float__,
    Tensor.__index__,
    Tensor.__array__,
    Tensor.is_nonzero,
}


class Constants(TorchFunctionMode):
    """Knows the values of weights and buffers, and follows what is computed from them, as long as nothing writes into them."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module
        self.values = {n: t for n, t in _named(module) if t.numel() <= LARGEST and t.layout is torch.strided}
        self.known: dict[int, tuple[Tensor, Tensor]] = {}  # stand-in (kept alive, for its id) and value
        tables = [t for m in module.modules() for t in tables_of(m) if t]
        self.first, self.seen = tables[0] if tables else {}, 0

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.compiler.is_dynamo_compiling():  # inside torch.cond and its like dynamo reads this: keep it short
            return func(*args, **kwargs)
        return self._followed(func, args, kwargs)

    def _followed(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if func in _READS and (args or kwargs) and all(self._known(args, kwargs)):
            return self._really(func, args, kwargs)
        result = func(*args, **kwargs)
        if not isinstance(result, Tensor | tuple | list) and not _writes(func, kwargs):  # a size, a dtype: most calls
            return result
        known = self._known(args, kwargs)
        if any(known) and _writes(func, kwargs):
            self.values, self.known = {}, {}  # through views it may reach any of them
        elif known and all(known) and func not in DRAWN:
            self._follow(func, args, kwargs, result)
        return result

    def _known(self, args: Any, kwargs: Any) -> list[bool]:
        """Say of each tensor among the arguments whether its value is known."""
        return [self._value(a) is not None for a in tree_leaves((args, kwargs)) if isinstance(a, Tensor)]

    def _really(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Return what a function gives for the values behind the stand-ins."""
        args, kwargs = tree_map(lambda a: self._value(a) if isinstance(a, Tensor) else a, (args, kwargs))
        with without_torch_function(), without_dispatch_modes(), torch.no_grad():
            return func(*args, **kwargs)

    @property
    def stand_in(self) -> int:
        """Which tensor is the first of the module's own at present."""
        return id(next(iter(self.first.values()), None))

    def _value(self, tensor: Tensor) -> Tensor | None:
        """Return the value behind a stand-in, or None."""
        if self.stand_in != self.seen:  # the capture has put its stand-ins into the module, or taken them out
            self.known = {id(t): (t, self.values[n]) for n, t in _named(self.module) if n in self.values}
            self.seen = self.stand_in
        found = self.known.get(id(tensor))
        return found[1] if found is not None else None

    def _follow(self, func: Callable[..., Any], args: Any, kwargs: Any, result: Any) -> None:
        if any(isinstance(a, _SYMBOLS) for a in tree_leaves((args, kwargs))):
            return  # of a size that moves: looking at the result's size would fix it
        made = tree_leaves(result)
        if made and all(isinstance(r, Tensor) and r.numel() <= LARGEST for r in made):
            real = tree_leaves(self._really(func, args, kwargs))
            self.known |= {id(r): (r, v) for r, v in zip(made, real, strict=True) if isinstance(v, Tensor)}


def _named(module: torch.nn.Module) -> list[tuple[str, Tensor]]:
    return [*module.named_parameters(), *module.named_buffers()]


def _writes(func: Callable[..., Any], kwargs: Any) -> bool:
    """Say whether a function writes into a tensor that it is given."""
    name = getattr(func, "__name__", "")
    if name in ("requires_grad_", "retain_grad_", "__invert__", "__int__", "__index__"):
        return False
    return name in ("__setitem__", "__set__") or name.startswith("__i") or (name[-1:] == "_" != name[-2:-1]) or "out" in kwargs


def patch(module: Any) -> Constants:
    """Return a context in which the values of weights and buffers are known."""
    return Constants(module)
