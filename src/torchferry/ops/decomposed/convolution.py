"""Convolutions that ONNX's operators cannot say: a number of groups that moves, outputs padded by a whole stride or more.

Groups move where weights are made for each item of a batch.

The taps of the kernel are laid beside each other and summed by one product of matrices in each group; a transposed
convolution is an ordinary one of the input with zeros put in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten


def _convolved(x: Tensor, weight: Tensor, stride: Sequence[int], dilation: Sequence[int], groups: Any) -> Tensor:
    """Return the convolution of an input that has its padding, with weights [groups, out, in, *kernel]."""
    folded = x.reshape(x.shape[0], groups, -1, *x.shape[2:])
    taps, spatial = _taps(folded, weight.shape[3:], stride, dilation)
    kernel = weight.flatten(3).transpose(2, 3).flatten(2)  # [groups, out, taps * in], in the order of the taps
    return torch.matmul(kernel, taps).reshape(x.shape[0], -1, *spatial)


def plain(axes: int) -> Callable[..., Tensor]:
    """Return the convolution over the last `axes` axes."""

    def function(
        x: Tensor, weight: Tensor, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: Any = 1
    ) -> Tensor:
        stride, dilation = _each(stride, axes), _each(dilation, axes)
        padded = _pad(x, _ends(padding, weight.shape[2:], dilation))
        per_group = weight.reshape(groups, -1, *weight.shape[1:])
        return _biased(_convolved(padded, per_group, stride, dilation, groups), bias, axes)

    return function


def transposed(axes: int) -> Callable[..., Tensor]:
    """Return the transposed convolution over the last `axes` axes: of the input spread by the stride, the kernel flipped."""

    def function(
        x: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: Any = 1,
        dilation: Any = 1,
    ) -> Tensor:
        dilation = _each(dilation, axes)
        before = [d * (k - 1) - p for k, p, d in zip(weight.shape[2:], _each(padding, axes), dilation, strict=True)]
        ends = [(b, b + more) for b, more in zip(before, _each(output_padding, axes), strict=True)]
        per_group = weight.reshape(groups, -1, *weight.shape[1:]).transpose(1, 2).flip(list(range(3, axes + 3)))
        padded = _pad(_spread(x, _each(stride, axes)), ends)
        return _biased(_convolved(padded, per_group, [1] * axes, dilation, groups), bias, axes)

    return function


def padded_past_stride(axes: int) -> Callable[..., Tensor]:
    """Return the transposed convolution in full, cut or padded with zeros afterwards: onnxruntime pads less than a stride."""
    target = aten.conv_transpose1d.default if axes == 1 else getattr(aten, f"conv_transpose{axes}d").input

    def function(
        x: Tensor,
        weight: Tensor,
        bias: Any = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: Any = 1,
        dilation: Any = 1,
    ) -> Tensor:
        whole = target(x, weight, None, stride, [0] * axes, [0] * axes, groups, dilation)
        pairs = zip(_each(padding, axes), _each(output_padding, axes), strict=True)
        return _biased(_pad(whole, [(-p, more - p) for p, more in pairs]), bias, axes)

    return function


def _each(given: Any, axes: int) -> list[int]:
    """Return one number for each axis, where torch takes one for all."""
    numbers = [given] if isinstance(given, int) else list(given)
    return numbers * axes if len(numbers) == 1 else numbers


def _ends(padding: Any, kernel: Sequence[int], dilation: Sequence[int]) -> list[tuple[int, int]]:
    """Return the zeros before and after each axis."""
    if padding == "same":
        wide = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        return [(w // 2, w - w // 2) for w in wide]
    return [(p, p) for p in _each(0 if padding == "valid" else padding, len(kernel))]


def _pad(x: Tensor, ends: Sequence[tuple[int, int]]) -> Tensor:
    """Return the tensor with zeros around its last axes."""
    return aten.constant_pad_nd.default(x, [n for pair in reversed(ends) for n in pair])


def _biased(x: Tensor, bias: Tensor | None, axes: int) -> Tensor:
    return x if bias is None else x + bias.reshape(-1, *[1] * axes)


def _taps(x: Tensor, kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]) -> tuple[Tensor, list[Any]]:
    """Return what each tap of the kernel sees, [batch, groups, taps * in, places], and the size of each spatial axis."""
    axes = len(kernel)
    spatial = [(n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[3:], kernel, stride, dilation, strict=True)]
    for axis in reversed(range(axes)):  # each becomes two, places and taps, behind those that are still to come
        seen = torch.arange(spatial[axis]).unsqueeze(1) * stride[axis] + torch.arange(kernel[axis]) * dilation[axis]
        shape = *x.shape[: axis + 3], spatial[axis], kernel[axis], *x.shape[axis + 4 :]
        x = x.index_select(axis + 3, seen.flatten()).reshape(shape)
    places, taps = ([n + 3 for n in range(first, 2 * axes, 2)] for first in (0, 1))
    return x.permute(0, 1, *taps, 2, *places).flatten(3 + axes).flatten(2, 2 + axes), spatial


def _spread(x: Tensor, stride: Sequence[int]) -> Tensor:
    """Return the tensor with zeros between its numbers, so that they stand `stride` apart."""
    for axis, step in enumerate(stride, start=2):
        if step > 1:
            size = x.shape[axis]
            apart = aten.constant_pad_nd.default(x.movedim(axis, -1).unsqueeze(-1), [0, step - 1]).flatten(-2)
            x = aten.slice.Tensor(apart, -1, 0, (size - 1) * step + 1, 1).movedim(-1, axis)
    return x


PADDED_PAST_STRIDE: dict[Any, Callable[..., Any]] = {
    aten.conv_transpose1d.default: padded_past_stride(1),
    aten.conv_transpose2d.input: padded_past_stride(2),
    aten.conv_transpose3d.input: padded_past_stride(3),
}
MOVING_GROUPS: dict[Any, Callable[..., Any]] = {
    **{getattr(aten, f"conv{n}d").default: plain(n) for n in (1, 2, 3)},
    **{getattr(aten, f"conv{n}d").padding: plain(n) for n in (1, 2, 3)},
    aten.conv_transpose1d.default: transposed(1),
    aten.conv_transpose2d.input: transposed(2),
    aten.conv_transpose3d.input: transposed(3),
}
