"""Torch's affine quantisation with its own rounding, on float tensors that hold whole numbers (the stored integers less the
zero point). Each function follows one kernel: they differ in whether the zero point is added before rounding or after it,
which decides where halves go, and in what becomes of NaN."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

RANGES: dict[torch.dtype, tuple[int, int]] = {
    torch.quint8: (0, 255),
    torch.qint8: (-128, 127),
    torch.qint32: (-(2**31), 2**31 - 1),
}
# below this scale torch's kernels widen the range instead: fbgemm's SMALL_SCALE_THRESHOLD
SMALLEST_SCALE = 6.1e-5


def stored(value: Tensor, zero_point: Any, dtype: torch.dtype) -> Tensor:
    """Return values in units of the scale as `quantize_per_tensor` and the pools round them: zero point first; NaN on top."""
    low, high = RANGES[dtype]
    found = torch.clamp(torch.round(value + zero_point), low, high)
    return torch.where(torch.isnan(value), torch.full_like(value, high), found) - zero_point


def requantised(value: Tensor, zero_point: Any, dtype: torch.dtype) -> Tensor:
    """Return values in units of the scale as matrix products and sums round them: zero point last."""
    low, high = RANGES[dtype]
    return torch.clamp(torch.round(value) + zero_point, low, high) - zero_point


def dynamic(value: Tensor, reduce_range: bool) -> tuple[Tensor, Tensor]:
    """Return activations as whole numbers, and their scale, as `linear_dynamic` chooses both from min and max."""
    high = 127.0 if reduce_range else 255.0
    missing = torch.isnan(value)
    known = torch.where(missing, torch.zeros_like(value), value)
    least, most = torch.clamp(known.min(), max=0.0).double(), torch.clamp(known.max(), min=0.0).double()
    scale = (most - least) / high
    scale = torch.where(scale.float() == 0, torch.full_like(scale, 0.1), scale)
    wider = torch.clamp(scale, min=SMALLEST_SCALE)
    least, most = least * (wider / scale), most * (wider / scale)
    from_least, from_most = -least / wider, high - most / wider
    nearer = torch.where((least / wider).abs().neg() < high - (most / wider).abs(), from_least, from_most)
    zero_point = torch.clamp(torch.round(nearer), 0.0, high).float()
    step = wider.float()
    # One fused multiply and add, and one rounding: the zero point comes first, which decides where halves go. The kernel
    # stores eight bits whatever the range was, and NaN as the largest of them.
    shifted = (known.double() * (1.0 / step).double() + zero_point).float()
    found = torch.clamp(torch.round(shifted), 0.0, 255.0)
    return torch.where(missing, torch.full_like(found, 255.0), found) - zero_point, step


def as_float(number: Any) -> Tensor:
    """Return a scale or zero point as a float32 tensor."""
    return number.to(torch.float32) if isinstance(number, Tensor) else torch.tensor(number, dtype=torch.float32)
