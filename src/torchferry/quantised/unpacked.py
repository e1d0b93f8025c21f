"""Weights out of torch's packed objects, which only its own kernels can read, into buffers of the module that held them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from torchferry.foreign.torch_modules import buffers_of
from torchferry.foreign.torch_tensors import packed_kind


class Unpacked:
    """What a packed object held. The tensors are buffers of `owner`, so that a capture finds them there."""

    def __init__(self, owner: nn.Module, name: str, weight: Tensor, bias: Tensor | None, settings: dict[str, Any]) -> None:
        self.owner, self.name, self.settings = owner, name, settings
        scale, zero_point = _grid(weight)
        self.per_tensor = scale is None or scale.dim() == 0
        self._keep("weight", weight.int_repr() if weight.is_quantized else weight.detach().clone())
        self._keep("scale", scale)
        self._keep("zero_point", zero_point)
        self._keep("bias", None if bias is None else bias.detach().to(torch.float32).clone())

    def _keep(self, part: str, tensor: Tensor | None) -> None:
        self.owner.register_buffer(f"unpacked_{self.name}_{part}", tensor)

    def _part(self, part: str) -> Tensor | None:
        return buffers_of(self.owner)[f"unpacked_{self.name}_{part}"]

    @property
    def bias(self) -> Tensor | None:
        """The bias in float32, or None."""
        return self._part("bias")

    @property
    def scale(self) -> Tensor | None:
        """One scale, or one for each channel in the weight's shape; None where the weight is plain floats."""
        return self._part("scale")

    def whole(self) -> Tensor:
        """Return the weight's integers around zero, as floats."""
        weight, zero_point = self._part("weight"), self._part("zero_point")
        assert weight is not None
        return weight.to(torch.float32) if zero_point is None else weight.to(torch.float32) - zero_point

    def channels(self, rank: int) -> Tensor:
        """Return the scale in the shape of an output of that rank: one number, or one for each output channel."""
        assert self.scale is not None
        return self.scale if self.per_tensor else self.scale.reshape([1, -1] + [1] * (rank - 2) if rank > 1 else [-1])

    def values(self) -> Tensor:
        """Return the weight as the numbers it stands for."""
        return self.whole() if self.scale is None else self.whole() * self.scale


class Cell:
    """The packed parameters of one direction of one recurrent layer."""

    def __init__(self, ih: Unpacked, hh: Unpacked, reduce_range: bool) -> None:
        self.ih, self.hh, self.reduce_range = ih, hh, reduce_range


def unpack(owner: nn.Module, name: str, packed: Any) -> Unpacked | Cell | None:
    """Return what a packed object of a module holds, or None where its kind is not known."""
    kind = packed_kind(packed).rsplit(".", 1)[-1]
    if kind in ("LinearPackedParamsBase", "EmbeddingPackedParamsBase"):
        found = packed.unpack()
        weight, bias = found if isinstance(found, tuple) else (found, None)
        return Unpacked(owner, name, weight, bias, {})
    if kind.startswith("Conv") and kind.endswith("PackedParamsBase"):
        weight, bias = packed.unpack()
        words = ("stride", "padding", "output_padding", "dilation", "groups", "transpose")
        return Unpacked(owner, name, weight, bias, {word: getattr(packed, word)() for word in words})
    if kind == "CellParamsBase":
        return _cell(owner, name, packed.__getstate__()[0])
    return None


def repacked(packed: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return a packed object as torch's present engine packs it, with its quantised weights changed."""
    kind, ops = packed_kind(packed).rsplit(".", 1)[-1], torch.ops.quantized
    if kind == "CellParamsBase":
        _, biases, _, numbers, sides = packed.__getstate__()[0]
        ih, hh = (repacked(side, change) for side in sides)
        return ops.make_quantized_cell_params_dynamic(ih, hh, *biases, bool(numbers[0]))
    weight, bias = packed.unpack()
    weight = change(weight)
    if not kind.startswith("Conv"):
        return ops.linear_prepack(weight, bias)
    outer = (packed.output_padding(),) if packed.transpose() else ()
    prepack = getattr(ops, f"conv{'_transpose' if outer else ''}{weight.dim() - 2}d_prepack")
    return prepack(weight, bias, packed.stride(), packed.padding(), *outer, packed.dilation(), packed.groups())


def _cell(owner: nn.Module, name: str, state: Any) -> Cell | None:
    kind, _, _, numbers, (ih, hh) = state
    parts = [unpack(owner, f"{name}_{side}", packed) for side, packed in (("ih", ih), ("hh", hh))]
    if not all(isinstance(p, Unpacked) for p in parts):
        return None
    return Cell(parts[0], parts[1], bool(numbers[0]) if kind == "quantized_dynamic" and numbers else False)  # type: ignore[arg-type]


def _grid(weight: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Return scale and zero point, in a shape that goes with the weight; no zero point where all are zero."""
    if not weight.is_quantized:
        return None, None
    if weight.qscheme() == torch.per_tensor_affine:
        scale, zero = torch.tensor(weight.q_scale()), torch.tensor(float(weight.q_zero_point()))
    else:
        shape = [-1 if d == weight.q_per_channel_axis() else 1 for d in range(weight.dim())]
        # copies: the tensors that torch hands out live no longer than the quantised weight
        scale = weight.q_per_channel_scales().clone().reshape(shape)
        zero = weight.q_per_channel_zero_points().clone().reshape(shape)
    return scale.to(torch.float32), zero.to(torch.float32) if bool(zero.any()) else None
