"""Runs of an onnxruntime session on torch tensors: no value is copied on its way in or out."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

# numpy has no bfloat16, so onnxruntime takes ONNX's own number for it
BFLOAT16 = 16
ELEMENTS: Mapping[torch.dtype, Any] = {
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.float16: np.float16,
    torch.bfloat16: BFLOAT16,
    torch.int64: np.int64,
    torch.int32: np.int32,
    torch.bool: np.bool_,
}
DTYPES: Mapping[str, torch.dtype] = {
    "tensor(float)": torch.float32,
    "tensor(double)": torch.float64,
    "tensor(float16)": torch.float16,
    "tensor(bfloat16)": torch.bfloat16,
    "tensor(int64)": torch.int64,
    "tensor(int32)": torch.int32,
    "tensor(bool)": torch.bool,
}


def inputs(session: Any) -> dict[str, Any]:
    """Return all that a session takes, by name; what has a default in the file included."""
    return {i.name: i for i in (*session.get_inputs(), *session.get_overridable_initializers())}


def run(session: Any, feeds: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return all outputs by name, as tensors over the memory that onnxruntime made them in."""
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, map(as_tensor, run_values(session, feeds, (), names)), strict=True))


def as_tensor(value: Any) -> torch.Tensor:
    """Return a tensor over the memory of one of onnxruntime's own values; releases before DLPack are asked for its address."""
    if hasattr(value, "__dlpack__"):
        return torch.from_dlpack(value)
    dtype, shape = DTYPES[value.data_type()], value.shape()
    if 0 in shape:
        return torch.empty(shape, dtype=dtype)
    memory = (ctypes.c_ubyte * (dtype.itemsize * math.prod(shape))).from_address(value.data_ptr())
    memory.owner = value  # the tensor keeps the memory, and that keeps the value which it is part of
    return torch.frombuffer(memory, dtype=dtype).reshape(shape)


def run_values(
    session: Any, feeds: Mapping[str, torch.Tensor], held: Iterable[tuple[str, Any]], names: Iterable[str]
) -> list[Any]:
    """Return the outputs of these names as onnxruntime's own values; `held` are such values of an earlier run, by input name."""
    binding = session.io_binding()
    alive = [_bind(binding, name, tensor) for name, tensor in feeds.items()]
    for name, value in held:
        binding.bind_ortvalue_input(name, value)
    for name in names:
        binding.bind_output(name)
    session.run_with_iobinding(binding)
    del alive  # until here onnxruntime read from their memory
    return list(binding.get_outputs())


def empty_cache(inputs: Iterable[Any], batch: int) -> dict[str, torch.Tensor]:
    """Return the memory before the first token: no keys and values, and zeros where the size of a state is fixed."""
    sizes = {i: (batch, *(size if isinstance(size, int) else 0 for size in i.shape[1:])) for i in inputs}
    return {i.name: torch.zeros(size, dtype=DTYPES[i.type]) for i, size in sizes.items()}


def _bind(binding: Any, name: str, tensor: torch.Tensor) -> torch.Tensor:
    held = tensor.detach().contiguous()
    # an empty tensor has no memory, and onnxruntime does not take a null pointer, though it reads nothing from it
    place = held if held.numel() else held.new_empty(1)
    binding.bind_input(name, "cpu", 0, ELEMENTS[held.dtype], list(held.shape), place.data_ptr())
    return place
