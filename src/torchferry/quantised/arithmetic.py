"""Torch's affine quantisation with its own rounding, on float tensors that hold whole numbers (the stored integers less the
zero point). Each function follows one kernel: they differ in whether the zero point is added before rounding or after it,
which decides where halves go, and in what becomes of NaN. Releases of torch differ in the first: the kernels are asked."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from torchferry.foreign.torch_dispatch import without_modes
from torchferry.foreign.torch_tensors import quantised_tensor

RANGES: dict[torch.dtype, tuple[int, int]] = {
    torch.quint8: (0, 255),
    torch.qint8: (-128, 127),
    torch.qint32: (-(2**31), 2**31 - 1),
}
# below this scale torch's kernels widen the range instead: fbgemm's SMALL_SCALE_THRESHOLD
SMALLEST_SCALE = 6.1e-5


# of two pixels: the integers 1 and 2, with a zero point of 1
_HALVES: dict[str, Callable[[Tensor], Tensor]] = {
    "quantize": lambda pixels: torch.quantize_per_tensor(torch.tensor(0.5), 1.0, 1, torch.quint8),
    "avg_pool": lambda pixels: functional.avg_pool2d(pixels, (1, 2)),
    "mean": lambda pixels: pixels.mean((2, 3)),
    **dict.fromkeys(
        ("interpolate", "upsample"),
        lambda pixels: functional.interpolate(pixels, (1, 1), mode="bilinear", align_corners=False),
    ),
}


@cache
def _zero_point_first(kernel: str) -> bool:
    """Return whether a kernel of this release adds the zero point before it rounds: one half and 1 become 2 then, or else 1."""
    with without_modes(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch means to have quantised tensors elsewhere
        pixels = quantised_tensor(torch.tensor([[[[1, 2]]]], dtype=torch.uint8), 1.0, 1)
        return int(_HALVES[kernel](pixels).int_repr()) == 2


def stored(value: Tensor, zero_point: Any, dtype: torch.dtype, kernel: str = "quantize") -> Tensor:
    """Return values in units of the scale as a kernel rounds them; NaN on top."""
    low, high = RANGES[dtype]
    first = _zero_point_first(next((k for k in _HALVES if k in kernel), "quantize"))
    rounded = torch.round(value + zero_point) if first else torch.round(value) + zero_point
    return torch.where(torch.isnan(value), torch.full_like(value, high), torch.clamp(rounded, low, high)) - zero_point


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
    # Where the zero point comes first, it is one fused multiply and add, and one rounding. The kernel stores eight bits whatever
    # the range was, and NaN as the largest of them.
    if _zero_point_first("quantize"):
        rounded = torch.round((known.double() * (1.0 / step).double() + zero_point).float())
    else:
        rounded = torch.round(known * (1.0 / step)) + zero_point
    found = torch.clamp(rounded, 0.0, 255.0)
    return torch.where(missing, torch.full_like(found, 255.0), found) - zero_point, step


def as_float(number: Any) -> Tensor:
    """Return a scale or zero point as a float32 tensor."""
    return number.to(torch.float32) if isinstance(number, Tensor) else torch.tensor(number, dtype=torch.float32)
