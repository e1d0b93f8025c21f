"""Float64 shadow: every operator that eager runs is run once more in float64, on the shadows of what it was given.

`module.double()` is another model wherever code asks for a dtype (`torch.finfo(x.dtype).eps`, a cast in the middle). Here the
program stays as it is, choices and constants included, and only the arithmetic is wider: what eager would have given
without rounding and without overflow.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from torchferry import eager
from torchferry.eager.watching import Watching
from torchferry.foreign.torch_operators import is_mutable, schema_of
from torchferry.foreign.torch_trees import arg_tree_leaves, tree_map
from torchferry.verify.arrays import Array, arrays
from torchferry.verify.run.eager_trace import op_name

WIDE = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}
MEMORY = ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "set_", "resize_")  # they compute nothing
# these pick among their keys: the shadow takes what eager picked
PICKING = ("sort", "topk", "max", "min", "kthvalue", "median", "mode", "cummax", "cummin")


def in_float64(module: torch.nn.Module, args: tuple[Any, ...]) -> list[Array] | None:
    """Return the outputs without rounding, as float64 where eager's are floats; None where eager refuses the call."""
    shadow, copied = _Shadow(), eager.fresh(module)
    try:
        with shadow:
            outputs = eager.call(copied, args)
    except Exception:  # the user's forward may raise anything; torch.cond and its like do not bear being watched
        return None
    return arrays([shadow.of(o) for o in outputs])


class _Shadow(Watching):
    def __init__(self) -> None:
        super().__init__()
        # By address, and so with the tensor itself, lest another one come to lie there: torch's own weak references do not
        # outlive a tensor that only C++ still holds.
        self._shadows: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor's shadow; one that nothing was computed for is the tensor itself, widened."""
        if tensor.dtype not in WIDE:
            return tensor
        if id(tensor) not in self._shadows:
            self._shadows[id(tensor)] = tensor, tensor.detach().to(WIDE[tensor.dtype])
        return self._shadows[id(tensor)][1]

    def watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        given = [t for t in arg_tree_leaves(*args, **kwargs) if isinstance(t, torch.Tensor)]
        widened = None
        plain = torch.Tag.nondeterministic_seeded not in func.tags and op_name(func) not in MEMORY
        if plain and any(t.dtype in WIDE for t in given):
            widened = tree_map(self._wide, (tuple(args), kwargs))  # before eager may overwrite its argument
        out = func(*args, **kwargs)
        if not plain and is_mutable(func):  # what was known of it is no longer true
            self._shadows = {k: v for k, v in self._shadows.items() if all(v[0] is not t for t in given)}
        if widened is not None:
            self._keep(out, _computed(func, widened[0], widened[1], out))
        return out

    def _wide(self, value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return self.of(value)
        return WIDE.get(value, value) if isinstance(value, torch.dtype) else value

    def _keep(self, out: Any, wide: Any) -> None:
        for one, two in zip(_tensors(out), _tensors(wide), strict=False):
            if one.dtype in WIDE and two.dtype == WIDE[one.dtype] and _alike(one, two):
                self._shadows[id(one)] = one, two


def _computed(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
    """Return the operator's result on shadows; nothing where there is no such kernel: eager's own number stands there then."""
    try:
        if op_name(func) in PICKING and len(results := _tensors(out)) == 2 and isinstance(args[0], torch.Tensor):
            return _picked(func, args, kwargs, results)
        return func(*args, **kwargs)
    except Exception:  # a kernel for float32 alone, as those of oneDNN are
        return ()


def _picked(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], results: Sequence[torch.Tensor]) -> Any:
    """Return the shadow's numbers at the places that eager picked."""
    values, places = results
    taken = {**dict(zip((a.name for a in schema_of(func).arguments), args, strict=False)), **kwargs}
    axis = taken.get("dim", -1)
    keys = args[0]
    if not keys.dim():
        return (keys,)
    whole = places if places.dim() == keys.dim() else places.unsqueeze(axis)
    found = keys.take_along_dim(whole, axis)
    return (found.reshape(values.shape),)


def _alike(one: torch.Tensor, two: torch.Tensor) -> bool:
    """Return whether two tensors have the same sizes; rows of unlike lengths, from one operator, have."""
    return one.is_nested == two.is_nested and (one.is_nested or one.shape == two.shape)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [v for v in (value if isinstance(value, tuple | list) else (value,)) if isinstance(v, torch.Tensor)]
