"""Fourier transforms over real pairs: short ones as a product with a matrix, long ones with ONNX's DFT.

onnxruntime's DFT of a length that is no power of two is far from float32's precision (4e-3 at 400 where torch has 7e-6), so
it runs in float64 there. The matrices are computed in float64 and rounded once; their error is that of a sum of n terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
from onnxscript import opset18 as op

from torchferry.foreign.torch_operators import aten

REAL_UP_TO, COMPLEX_UP_TO = 512, 256  # lengths whose matrix is at most a megabyte


def _waves(rows: int, columns: int, size: int, sign: int) -> np.ndarray:
    """Return exp(sign 2 pi i j k / size) as [rows, columns]."""
    steps = np.outer(np.arange(rows), np.arange(columns)) % size
    return np.exp(sign * 2j * np.pi * steps / size)


def _pairs(matrix: np.ndarray) -> np.ndarray:
    """Return a complex matrix as a real one that takes and gives interleaved pairs."""
    rows, columns = matrix.shape
    real = np.empty((rows, 2, columns, 2))
    real[:, 0, :, 0], real[:, 0, :, 1] = matrix.real, matrix.imag
    real[:, 1, :, 0], real[:, 1, :, 1] = -matrix.imag, matrix.real
    return real.reshape(2 * rows, 2 * columns)


def _constant(matrix: np.ndarray, dtype: Any) -> Any:
    return op.Constant(value=ir.tensor(matrix.astype(dtype.numpy()), dtype=dtype))


def _ints(*numbers: int) -> Any:
    return op.Constant(value_ints=list(numbers))


def _scale(normalization: int, size: int) -> float:
    return {0: 1.0, 1: 1 / math.sqrt(size), 2: 1 / size}[normalization]


def _scaled(x: Any, normalization: int, size: Any, dtype: Any) -> Any:
    """Return x times the norm, of a length that may be known at run time only."""
    if normalization == 0:
        return x
    length = op.Cast(size, to=dtype)
    return op.Div(x, op.Sqrt(length) if normalization == 1 else length)


def _order(rank: int, axis: int, end: int) -> list[int]:
    """Return the permutation that swaps an axis with the one at `end`."""
    order = list(range(rank))
    order[axis], order[end] = order[end], order[axis]
    return order


def _joined(x: Any, *, last: int) -> Any:
    """Return a tensor whose last two axes are one of `last` elements."""
    return op.Reshape(x, op.Concat(op.Shape(x, end=-2), _ints(last), axis=0))


def _apart(x: Any) -> Any:
    """Return a tensor whose last axis is one of pairs."""
    return op.Reshape(x, op.Concat(op.Shape(x, end=-1), _ints(-1, 2), axis=0))


def _dft(x: Any, axis: int, rank: int, size: Any, dtype: Any, *, inverse: bool) -> Any:
    """Return ONNX's DFT of pairs along an axis, unnormalised."""
    precise = isinstance(size, int) and size & (size - 1) == 0
    wide = x if precise or dtype == ir.DataType.DOUBLE else op.Cast(x, to=ir.DataType.DOUBLE)
    wide = op.Unsqueeze(_conjugate(wide) if inverse else wide, _ints(0))  # it takes no axis 0
    result = op.Squeeze(op.DFT(wide, axis=axis + 1, onesided=0), _ints(0))
    result = _conjugate(result) if inverse else result  # onnxruntime's own inverse rounds its factor to float32
    return result if precise or dtype == ir.DataType.DOUBLE else op.Cast(result, to=dtype)


def _conjugate(x: Any) -> Any:
    return op.Mul(x, op.CastLike(op.Constant(value_floats=[1.0, -1.0]), x))


def _along(x: Any, axis: int, rank: int, size: Any, dtype: Any, normalization: int, *, forward: bool) -> Any:
    """Return the transform of pairs along one of `rank` axes; the pairs are on the axis behind them."""
    if not isinstance(size, int) or size > COMPLEX_UP_TO:
        result = _dft(x, axis, rank, size, dtype, inverse=not forward)
        return _scaled(result, normalization, op.Shape(x, start=axis, end=axis + 1), dtype)
    matrix = _pairs(_waves(size, size, size, -1 if forward else 1)) * _scale(normalization, size)
    order = _order(rank + 1, axis, rank - 1)
    turned = op.Transpose(x, perm=order)
    result = op.MatMul(_joined(turned, last=2 * size), _constant(matrix, dtype))
    return op.Transpose(_apart(result), perm=order)


def complex_to_complex(self: Any, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    """Return fft or ifft over some axes."""
    rank, result = len(self.shape) - 1, self
    for axis in (d % rank for d in dim):
        result = _along(result, axis, rank, self.shape[axis], self.dtype, normalization, forward=forward)
    return result


def real_to_complex(self: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    """Return rfft over some axes, of which the last is halved; or fft of real numbers."""
    rank = len(self.shape)
    *others, last = (d % rank for d in dim)
    size = self.shape[last]
    if isinstance(size, int) and size <= REAL_UP_TO:
        waves = _waves(size, size // 2 + 1 if onesided else size, size, -1) * _scale(normalization, size)
        matrix = np.stack([waves.real, waves.imag], -1).reshape(size, -1)
        order = _order(rank, last, rank - 1)
        result = _apart(op.MatMul(op.Transpose(self, perm=order), _constant(matrix, self.dtype)))
        result = op.Transpose(result, perm=[*order, rank])
    else:
        pairs = op.Unsqueeze(self, _ints(-1))
        pairs = op.Concat(pairs, op.Sub(pairs, pairs), axis=-1)
        length = op.Shape(self, start=last, end=last + 1)
        result = _scaled(_dft(pairs, last, rank, size, self.dtype, inverse=False), normalization, length, self.dtype)
        if onesided:
            half = op.Add(op.Div(length, _ints(2)), _ints(1))
            result = op.Slice(result, _ints(0), half, _ints(last))
    for axis in others:
        result = _along(result, axis, rank, self.shape[axis], self.dtype, normalization, forward=True)
    return result


def complex_to_real(self: Any, dim: Sequence[int], normalization: int, last_dim_size: Any) -> Any:
    """Return irfft over some axes, of which the last was halved."""
    rank, result = len(self.shape) - 1, self
    *others, last = (d % rank for d in dim)
    for axis in others:
        result = _along(result, axis, rank, self.shape[axis], self.dtype, normalization, forward=False)
    size = last_dim_size
    if isinstance(size, int) and size <= REAL_UP_TO:
        half = size // 2 + 1
        waves = _waves(half, size, size, 1) * _scale(normalization, size)
        waves *= np.array([1.0 if k == 0 or 2 * k == size else 2.0 for k in range(half)])[:, None]  # what was cut off
        matrix = np.stack([waves.real, -waves.imag], 1).reshape(2 * half, size)
        order = _order(rank + 1, last, rank - 1)
        product = op.MatMul(_joined(op.Transpose(result, perm=order), last=2 * half), _constant(matrix, self.dtype))
        return op.Transpose(product, perm=order[:-1])
    length = op.Reshape(size, _ints(1)) if isinstance(size, ir.Value) else _ints(size)
    whole = _dft(_mirrored(result, last, length), last, rank, size, self.dtype, inverse=True)
    real = op.Squeeze(op.Slice(whole, _ints(0), _ints(1), _ints(rank)), _ints(rank))
    return _scaled(real, normalization, length, self.dtype)


def _mirrored(half: Any, axis: int, length: Any) -> Any:
    """Return the whole spectrum of a real signal from its first half: the rest is the conjugate, backwards."""
    count = op.Add(op.Div(length, _ints(2)), _ints(1))
    kept = op.Slice(half, _ints(0), count, _ints(axis))
    rest = op.Slice(kept, op.Sub(length, count), _ints(0), _ints(axis), _ints(-1))
    return op.Concat(kept, _conjugate(rest), axis=axis)


TRANSLATIONS: dict[Any, Callable[..., Any]] = {aten._fft_r2c.default: real_to_complex}
COMPLEX_TRANSLATIONS: dict[Any, Callable[..., Any]] = {
    aten._fft_c2c.default: complex_to_complex,
    aten._fft_c2r.default: complex_to_real,
}
