"""onnxruntime's own values as tensors: over the same memory, in releases with DLPack and in older ones."""

from __future__ import annotations

import gc

import numpy as np
import onnxruntime
import pytest
import torch

from torchferry.runtime.binding import BFLOAT16, as_tensor


class Older:
    """A value as releases before DLPack have it."""

    def __init__(self, value: onnxruntime.OrtValue) -> None:
        self.shape, self.data_type, self.data_ptr = value.shape, value.data_type, value.data_ptr


def made(dtype: type, *shape: int) -> onnxruntime.OrtValue:
    return onnxruntime.OrtValue.ortvalue_from_numpy(np.arange(int(np.prod(shape))).reshape(shape).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.bool_])
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 4), (1,)])
def test_the_same_numbers_come_out_with_and_without_dlpack(dtype: type, shape: tuple[int, ...]) -> None:
    value = made(dtype, *shape)
    assert torch.equal(as_tensor(Older(value)), as_tensor(value))
    assert tuple(as_tensor(Older(value)).shape) == shape


def test_sixteen_bits_that_numpy_does_not_know_are_read_as_they_are() -> None:
    value = onnxruntime.OrtValue.ortvalue_from_shape_and_type([2], BFLOAT16, "cpu")
    as_tensor(Older(value)).copy_(torch.tensor([1.5, -2.0]))
    assert as_tensor(Older(value)).tolist() == [1.5, -2.0]


def test_the_memory_lives_as_long_as_the_tensor() -> None:
    tensor = as_tensor(Older(made(np.float32, 1000, 1000)))
    gc.collect()
    others = [made(np.float32, 1000, 1000) for _ in range(3)]
    assert torch.equal(tensor.flatten(), torch.arange(1e6))
    assert others
