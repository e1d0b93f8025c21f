"""Tensors as arrays and back: what onnxruntime takes and what it gives, without loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import torch

Array = np.ndarray[Any, Any]
# the unit in the last place of a number of order one
PRECISION = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}


def array(tensor: torch.Tensor) -> Array:
    """Return a tensor's values as an array of the same dtype; a complex one as pairs of reals, as ONNX has it."""
    tensor = tensor.detach().cpu()
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    tensor = tensor.resolve_neg().contiguous()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return np.asarray(tensor.numpy())


def arrays(tensors: Sequence[torch.Tensor]) -> list[Array]:
    """Return each tensor as an array."""
    return [array(t) for t in tensors]


def is_float(values: Array) -> bool:
    """Return whether an array holds floating-point numbers, the small ones of ml_dtypes included."""
    return values.dtype.kind == "f" or values.dtype.name.startswith(("bfloat", "float"))


def wide(values: Array) -> Array:
    """Return floats as float64, so that differences and limits are taken without rounding."""
    return values.astype(np.float64)


def tensor(values: Any) -> Any:
    """Return an array's values as a tensor of the same dtype; a list of arrays as a list of tensors, texts as they are."""
    if isinstance(values, list):
        return [tensor(value) for value in values]
    if not isinstance(values, np.ndarray) or values.dtype.kind in "OSU":
        return values
    if values.dtype.name.startswith(("bfloat16", "float8")):
        bits = np.ascontiguousarray(values).view(np.int16 if values.dtype.itemsize == 2 else np.uint8)
        return torch.from_numpy(bits.copy()).view(getattr(torch, values.dtype.name)).reshape(values.shape)
    return torch.from_numpy(np.array(values))
