"""The user's own arguments as feeds for the file, in the file's order; what the file fixed is refused in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from torchferry.errors import FeedError, UsageError
from torchferry.guards import holds, symbols
from torchferry.inputs.binding.arguments import by_name, leaves, readings
from torchferry.inputs.binding.callee import Callee
from torchferry.inputs.binding.reading import Prepared, as_input, shown
from torchferry.inputs.sizes import expressions as size_text
from torchferry.records import Dim, Signature, Size, TensorSpec

WIDER = {  # integers that can be made wider without loss
    "int64": ("int32", "int16", "int8", "uint8", "uint16", "uint32"),
    "int32": ("int16", "int8", "uint8", "uint16"),
}


@dataclass(frozen=True, slots=True)
class Feeder:
    """Makes feeds for one file."""

    callee: Callee
    prepared: Prepared
    signature: Signature

    def __call__(self, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> dict[str, np.ndarray]:
        """Return {input name: array} for the user's arguments, or raise FeedError saying what the file cannot take."""
        tensors = self.tensors(args, kwargs or {})
        self.check(tensors)
        return {spec.name: as_array(t) for spec, t in zip(self.signature.inputs, tensors, strict=True)}

    def check(self, tensors: tuple[torch.Tensor, ...]) -> None:
        """Raise FeedError where sizes contradict each other or what the file declares."""
        check_sizes(self.signature, [tuple(t.shape) for t in tensors])

    def tensors(self, args: Any, kwargs: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
        """Return the user's arguments as the flat module takes them; sizes are not looked at."""
        given = self.leaves(args, kwargs)
        everything = dict(given)
        tensors: list[torch.Tensor] = []
        slots = self.prepared.flat.recipe.slots
        for slot in slots:
            if slot.name not in given:
                raise FeedError(self._missing(slot.name, everything))
            value = given.pop(slot.name)
            if slot.index is None:
                _same_constant(slot.name, slot.constant, value)
                continue
            spec = self.signature.inputs[slot.index]
            tensor, _ = as_input(value, slot.number)
            if tensor is None:
                raise FeedError(f"`{spec.name}` must be a tensor of {spec.dtype} {_shape(spec.shape)}; got {shown(value)}")
            tensors.append(coerced(spec, tensor))
        if extra := [name for name, value in given.items() if value is not None]:
            takes = f"the file takes {', '.join(s.name for s in self.signature.inputs)}"
            raise FeedError(f"`{extra[0]}` is not an input of the file, whose example went without it; {takes}")
        return tuple(tensors)

    def leaves(self, args: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the leaves of the user's arguments by name, bound as the example was."""
        signature, example = self.callee.signature, self.prepared.reading
        try:
            possible = readings(signature, args, kwargs)
        except UsageError as error:
            inputs = ", ".join(s.name for s in self.signature.inputs)
            nothing = isinstance(args, tuple | list | dict) and not args and not kwargs
            raise FeedError(f"nothing was given to feed; the file takes {inputs}" if nothing else str(error)) from error
        if example.how == "by name":
            names = list(example.kwargs)
            possible = [by_name(signature, r, names[: len(r.args)]) or r for r in possible]
        wanted = {s.name for s in self.prepared.flat.recipe.slots}
        best = max(possible, key=lambda r: len(wanted & {n for n, _ in leaves(signature, r)[0]}))
        return dict(leaves(signature, best)[0])

    def _missing(self, name: str, given: Mapping[str, Any]) -> str:
        head = name.rsplit(".", 1)[0]
        like = [n for n in given if n.startswith(head + ".") or n == head]
        if head != name and like:
            expected = sum(s.name.startswith(head + ".") for s in self.prepared.flat.recipe.slots)
            return f"`{head}` has {len(like)} items, but the file was made for {expected}: `{name}` is missing"
        return f"`{name}` is missing; the file takes {', '.join(s.name for s in self.signature.inputs)}"


def coerced(spec: TensorSpec, tensor: torch.Tensor) -> torch.Tensor:
    """Return the tensor in the file's dtype if nothing is lost by it, or raise FeedError."""
    got = dtype_name(tensor.dtype)
    if got != spec.dtype:
        if got not in WIDER.get(spec.dtype, ()):
            raise FeedError(f"`{spec.name}` must be {spec.dtype}; got {got}")
        tensor = tensor.to(getattr(torch, spec.dtype))
    if tensor.dim() != len(spec.shape):
        got = _shape(tuple(tensor.shape))
        raise FeedError(f"`{spec.name}` must have {len(spec.shape)} axes {_shape(spec.shape)}; got {tensor.dim()}: {got}")
    return tensor


def check_sizes(signature: Signature, shapes: list[tuple[int, ...]]) -> dict[str, int]:
    """Return the sizes of the dims in these shapes; FeedError where they contradict each other or what the file declares."""
    found: dict[str, tuple[int, str]] = {}
    for spec, shape in zip(signature.inputs, shapes, strict=True):
        for axis, (size, got) in enumerate(zip(spec.shape, shape, strict=True)):
            if isinstance(size, str) and size.isidentifier():
                before = found.setdefault(size, (got, f"{spec.name}[{axis}]"))
                if before[0] != got:
                    raise FeedError(
                        f"`{spec.name}` has {got} at axis {axis} ({size}), but `{before[1]}` has {before[0]}; they must be equal"
                    )
                if dim := signature.dim(size):
                    _within(dim, spec.name, axis, got)
    sizes = {name: number for name, (number, _) in found.items()}
    for text in signature.conditions:
        if holds(text, sizes) is False:
            told = ", ".join(f"{name} = {sizes[name]}" for name in sorted(symbols(text)))
            raise FeedError(f"the model takes {text}; got {told}")
    for spec, shape in zip(signature.inputs, shapes, strict=True):
        for axis, (size, got) in enumerate(zip(spec.shape, shape, strict=True)):
            if isinstance(size, int) or size_text.names(size) <= sizes.keys():
                wanted = size_text.value(size, sizes)
                if wanted != got:
                    words = f"{size} = {wanted}" if isinstance(size, str) else str(wanted)
                    raise FeedError(f"`{spec.name}` must have {words} at axis {axis}; got {got}")
    return sizes


def _within(dim: Dim, name: str, axis: int, got: int) -> None:
    if got < dim.low or (dim.high is not None and got > dim.high) or got % dim.multiple_of:
        raise FeedError(f"`{name}` has {got} at axis {axis}, outside of {dim}")


def _same_constant(name: str, fixed: Any, value: Any) -> None:
    try:
        same = fixed is value or (type(fixed) is type(value) and bool(fixed == value))
    except Exception:  # foreign objects compare as they like; they were not tensors, so they were fixed
        same = False
    if not same and not (_plain(fixed) is False and type(fixed) is type(value)):
        raise FeedError(f"`{name}={shown(fixed)}` is fixed in the file; got {shown(value)}")


def _plain(value: Any) -> bool:
    return isinstance(value, bool | int | float | str | bytes | type(None) | torch.Tensor)


def as_array(tensor: torch.Tensor) -> np.ndarray:
    """Return a tensor as the array that onnxruntime takes; bfloat16 and float8 as ml_dtypes arrays."""
    tensor = tensor.detach().cpu().contiguous()
    try:
        return tensor.numpy()
    except TypeError:
        import ml_dtypes

        name = dtype_name(tensor.dtype)
        bits = tensor.view(torch.int16 if tensor.element_size() == 2 else torch.uint8)
        return bits.numpy().view(getattr(ml_dtypes, name))


def dtype_name(dtype: torch.dtype) -> str:
    """Return a dtype as records spell it."""
    return str(dtype).removeprefix("torch.")


def _shape(shape: tuple[Size, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


Feeds = Callable[..., dict[str, np.ndarray]]
