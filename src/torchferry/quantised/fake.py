"""FakeQuantize modules and Quantize stubs with their settings read once, not asked of a tensor at every call."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from torchferry.quantised.grid import Quantised


class Rounded(nn.Module):
    """What a FakeQuantize does once it is trained: round to a grid, as one quantise and one dequantise node where these fit."""

    def __init__(self, scale: Tensor, zero_point: Tensor, span: tuple[int, int], *, axis: int | None, nodes: bool) -> None:
        super().__init__()
        self.register_buffer("scale", scale.detach().to(torch.float32).clone())
        self.register_buffer("zero_point", zero_point.detach().to(torch.float32).clone())
        (self.low, self.high), self.axis = span, axis
        self.in_nodes = nodes and span in ((0, 255), (-128, 127))
        self.number = (float(scale), int(zero_point)) if scale.numel() == 1 else None

    def forward(self, x: Tensor) -> Tensor:
        """Return the values on their grid."""
        if self.in_nodes and self.axis is None and self.number is not None:
            # always uint8: the same grid, 128 higher; of int8 weights the runtime makes products that some processors cut off
            stored = torch.uint8
            scale, zero_point = torch.tensor(self.number[0]), torch.tensor(self.number[1] - self.low, dtype=stored)
            made = torch.onnx.ops.symbolic("QuantizeLinear", (x, scale, zero_point), dtype=stored, shape=x.shape, version=13)
            return torch.onnx.ops.symbolic(
                "DequantizeLinear", (made, scale, zero_point), dtype=x.dtype, shape=x.shape, version=13
            )
        shape = [1] * x.dim()
        if self.axis is not None:
            shape[self.axis] = -1
        scale, zero_point = self.scale.reshape(shape), self.zero_point.reshape(shape)
        if self.axis is None and self.number is not None:
            scale, zero_point = self.scale.reshape(()), self.zero_point.reshape(())
        # unlike quantize_per_tensor, the fake kernels round first and add the zero point then
        stored = torch.clamp(torch.round(x * (1.0 / scale)) + zero_point, self.low, self.high)
        stored = torch.where(torch.isnan(x), torch.full_like(x, self.low), stored)
        return (stored - zero_point) * scale


class Quantise(nn.Module):
    """A Quantize stub with its grid as numbers."""

    def __init__(self, scale: float, zero_point: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.grid = (scale, zero_point, dtype)

    def forward(self, x: Tensor) -> Quantised:
        """Return the values as a quantised tensor's stand-in."""
        return Quantised.of(x, *self.grid)


def is_fake(module: nn.Module) -> bool:
    """Whether a module is a FakeQuantize, or an observer that watches values go by."""
    return hasattr(module, "fake_quant_enabled") and hasattr(module, "observer_enabled")


def is_stub(module: nn.Module) -> bool:
    """Whether a module turns floats into a quantised tensor."""
    return type(module).__name__ == "Quantize" and type(module).__module__.startswith("torch.ao.nn.quantized")


def replaced(module: nn.Module, *, nodes: bool) -> nn.Module | None:
    """Return what stands for a module of quantisation in a capture, or None for any other module."""
    if is_fake(module):
        if not bool(module.fake_quant_enabled[0] == 1):
            return nn.Identity()
        axis = module.ch_axis if getattr(module, "is_per_channel", False) else None
        scale, zero_point = module.scale, module.zero_point
        span = (int(module.quant_min), int(module.quant_max))
        return Rounded(scale, zero_point, span, axis=axis, nodes=nodes)  # type: ignore[arg-type]
    if type(module).__module__.startswith("torch.ao.quantization.observer"):
        return nn.Identity()
    if is_stub(module):
        return Quantise(float(module.scale), int(module.zero_point), module.dtype)  # type: ignore[arg-type]
    return None
