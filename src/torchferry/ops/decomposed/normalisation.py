"""Batch normalisation, also with the batch's own statistics (`training=True`), which torch.onnx gets wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
from onnxscript import opset18 as op
from torch import Tensor

from torchferry.foreign.torch_operators import aten


def batch_norm(
    input: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool = False,
) -> Any:
    """Return the normalised input: ONNX's own operator for running statistics, written out for the batch's."""
    rank = len(input.shape)
    if not training and running_mean is not None:
        weight = weight if weight is not None else _filled(running_mean, 1.0)
        bias = bias if bias is not None else _filled(running_mean, 0.0)
        return op.BatchNormalization(input, weight, bias, running_mean, running_var, epsilon=eps)
    axes = op.Constant(value_ints=[a for a in range(rank) if a != 1])
    mean = op.ReduceMean(input, axes, keepdims=1)
    apart = op.Sub(input, mean)
    variance = op.ReduceMean(op.Mul(apart, apart), axes, keepdims=1)
    epsilon = op.CastLike(op.Constant(value_float=eps), input)
    result = op.Div(apart, op.Sqrt(op.Add(variance, epsilon)))
    shape = op.Constant(value_ints=[1, -1] + [1] * (rank - 2))
    result = result if weight is None else op.Mul(result, op.Reshape(weight, shape))
    return result if bias is None else op.Add(result, op.Reshape(bias, shape))


def _filled(like: Any, number: float) -> Any:
    return op.ConstantOfShape(op.Shape(like), value=ir.tensor([number], dtype=like.dtype))


def native_batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the normalised input, and the statistics that its gradient would need."""
    shape = [1, -1] + [1] * (input.dim() - 2)
    if training or running_mean is None or running_var is None:
        axes = [a for a in range(input.dim()) if a != 1]
        mean = input.mean(axes)
        apart = input - mean.reshape(shape)
        variance = (apart * apart).mean(axes)
        saved = mean, 1 / (variance + eps).sqrt()
    else:
        mean, variance = running_mean, running_var
        saved = input.new_zeros(0), input.new_zeros(0)
    result = (input - mean.reshape(shape)) / (variance.reshape(shape) + eps).sqrt()
    result = result if weight is None else result * weight.reshape(shape)
    result = result if bias is None else result + bias.reshape(shape)
    return result, *saved


def without_statistics(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return native_batch_norm of a layer that keeps no statistics."""
    return native_batch_norm(input, weight, bias, None, None, training, momentum, eps)


def functional(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    """Return native_batch_norm, and the running statistics as they are afterwards."""
    outputs = native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)
    if not training:
        return *outputs, running_mean.clone(), running_var.clone()
    axes = [a for a in range(input.dim()) if a != 1]
    mean, variance = input.mean(axes), input.var(axes, unbiased=True)
    return *outputs, momentum * mean + (1 - momentum) * running_mean, momentum * variance + (1 - momentum) * running_var


TRANSLATIONS: dict[Any, Callable[..., Any]] = {aten.batch_norm.default: batch_norm}
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.native_batch_norm.default: native_batch_norm,
    aten._native_batch_norm_legit_functional.default: functional,
    aten._native_batch_norm_legit.no_stats: without_statistics,
}
