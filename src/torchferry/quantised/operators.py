"""What each quantised operator computes, in plain operators; a function mode puts it in place of the kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from torchferry.foreign.torch_operators import qualified_name
from torchferry.quantised import recurrent
from torchferry.quantised.arithmetic import as_float, dynamic, requantised, stored
from torchferry.quantised.grid import Quantised, on_grid
from torchferry.quantised.unpacked import Unpacked

_CONVOLUTIONS = {3: functional.conv1d, 4: functional.conv2d, 5: functional.conv3d}
_TRANSPOSED = {3: functional.conv_transpose1d, 4: functional.conv_transpose2d, 5: functional.conv_transpose3d}
# torch fixes the grid of these outputs, whatever comes in
_FIXED_GRIDS = {"sigmoid": (1 / 256, 0), "tanh": (2 / 256, 128), "hardsigmoid": (1 / 256, 0), "softmax": (1 / 256, 0)}

_WITHOUT_NAMESPACE = frozenset({"quantize_per_tensor", "quantize_per_channel", "dequantize", "quantized_lstm", "quantized_gru"})


class Dequantised(TorchFunctionMode):
    """While this is active, quantised operators are computed on floats that hold the same whole numbers."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name, quantised = name_of(func)
        if quantised and name in OPERATORS:
            return OPERATORS[name](*args, **kwargs)
        if any(isinstance(a, Quantised) for a in args) and name not in ("dequantize", "q_scale", "q_zero_point"):
            return _on_fixed_grid(name, func, args, kwargs) if name in _FIXED_GRIDS else on_grid(name, func, args, kwargs)
        return func(*args, **kwargs)


def name_of(func: Any) -> tuple[str, bool]:
    """Return an operator's bare name, and whether it is one that this file speaks of."""
    namespace, _, name = qualified_name(func).rpartition("::")
    name = name.partition(".")[0]
    return name, namespace == "quantized" or (namespace in ("", "aten") and name in _WITHOUT_NAMESPACE)


def _on_fixed_grid(name: str, func: Callable[..., Any], args: Any, kwargs: Any) -> Quantised:
    scale, zero_point = _FIXED_GRIDS[name]
    return Quantised.computed(func(args[0].value, *args[1:], **kwargs), scale, zero_point, args[0].dtype)


def product(
    x: Quantised, packed: Unpacked, compute: Callable[[Tensor, Tensor], Tensor], grid: tuple[Any, Any], relu: bool
) -> Quantised:
    """Return a product of integers, scaled to another grid in one go as the kernels do it."""
    found, channels = compute(x.whole, packed.whole()), packed.channels(x.whole.dim() if packed.settings else 1)
    both = x.scale * channels
    if packed.bias is not None:
        found = found + packed.bias.reshape([1, -1] + [1] * (found.dim() - 2) if packed.settings else [-1]) / both
    scale, zero_point = as_float(grid[0]), as_float(grid[1])
    whole = requantised(found * (both / scale), zero_point, x.dtype)
    return Quantised(torch.relu(whole) if relu else whole, scale, zero_point, x.dtype)


def _linear(x: Quantised, packed: Unpacked, scale: Any, zero_point: Any, *, relu: bool = False) -> Quantised:
    return product(x, packed, functional.linear, (scale, zero_point), relu)


def _linear_dynamic(x: Tensor, packed: Unpacked, reduce_range: bool = False, *, relu: bool = False) -> Tensor:
    value = recurrent.linear(x, packed, reduce_range)
    return torch.relu(value) if relu else value


def _linear_fp16(x: Tensor, packed: Unpacked, *, relu: bool = False) -> Tensor:
    value = functional.linear(x, packed.values(), packed.bias)
    return torch.relu(value) if relu else value


def _convolved(x: Tensor, weight: Tensor, s: dict[str, Any]) -> Tensor:
    if weight.dim() > x.dim():  # conv1d is packed as conv2d with a height of one
        weight, s = weight.squeeze(2), {k: v[-1:] if isinstance(v, list) else v for k, v in s.items()}
    if s["transpose"]:
        return _TRANSPOSED[x.dim()](x, weight, None, s["stride"], s["padding"], s["output_padding"], s["groups"], s["dilation"])
    return _CONVOLUTIONS[x.dim()](x, weight, None, s["stride"], s["padding"], s["dilation"], s["groups"])


def _conv(x: Quantised, packed: Unpacked, *rest: Any, relu: bool = False) -> Quantised:
    return product(x, packed, lambda a, w: _convolved(a, w, packed.settings), rest[-2:], relu)  # type: ignore[arg-type]


def _conv_dynamic(x: Tensor, packed: Unpacked, reduce_range: bool = False) -> Tensor:
    whole, scale = dynamic(x, reduce_range)
    found = _convolved(whole, packed.whole(), packed.settings) * (scale * packed.channels(x.dim()))
    return found if packed.bias is None else found + packed.bias.reshape([1, -1] + [1] * (x.dim() - 2))


def _binary(compute: Callable[..., Tensor], relu: bool = False) -> Callable[..., Any]:
    def operator(a: Any, b: Any, scale: Any = None, zero_point: Any = None) -> Quantised:
        value = compute(a.value, b.value if isinstance(b, Quantised) else b)
        value = torch.relu(value) if relu else value
        return a.like(value) if scale is None else Quantised.computed(value, scale, zero_point, a.dtype)

    return operator


def _scalar(compute: Callable[..., Tensor], relu: bool = False) -> Callable[..., Any]:
    def operator(a: Quantised, b: Any) -> Quantised:
        value = compute(a.value, b)
        value = torch.relu(value) if relu else value
        # the kernel moves the grid along instead of rounding again
        if compute is torch.mul and not isinstance(b, Tensor) and b > 0:
            return Quantised(torch.relu(a.whole) if relu else a.whole, a.scale * b, a.zero_point, a.dtype)
        return a.like(value)

    return operator


def _cat(tensors: list[Quantised], dim: int, scale: Any = None, zero_point: Any = None, *, relu: bool = False) -> Quantised:
    value = torch.cat([t.value for t in tensors], dim)
    value = torch.relu(value) if relu else value
    return tensors[0].like(value) if scale is None else Quantised.computed(value, scale, zero_point, tensors[0].dtype)


def _unary(compute: Callable[..., Tensor]) -> Callable[..., Any]:
    """Return an operator whose last two arguments are the grid of its output, and the ones before go to `compute`."""

    def operator(x: Quantised, *rest: Any) -> Quantised:
        return Quantised.computed(compute(x.value, *rest[:-2]), rest[-2], rest[-1], x.dtype)

    return operator


def _batch_norm(x: Any, *rest: Any, relu: bool = False) -> Any:
    weight, bias, mean, var, eps, scale, zero_point = rest
    value = functional.batch_norm(x.value, mean, var, weight, bias, False, 0.0, eps)
    return Quantised.computed(torch.relu(value) if relu else value, scale, zero_point, x.dtype)


def _embedding(packed: Unpacked, indices: Tensor, *rest: Any, **named: Any) -> Tensor:
    return functional.embedding(indices, packed.values())


def _embedding_bag(packed: Unpacked, indices: Tensor, offsets: Any = None, *rest: Any, **named: Any) -> Tensor:
    weights = named.get("per_sample_weights") or (rest[3] if len(rest) > 3 else None)
    return functional.embedding_bag(
        indices,
        packed.values(),
        offsets,
        mode="sum",
        per_sample_weights=weights,
        include_last_offset=bool(named.get("include_last_offset")),
    )


def _per_channel(x: Tensor, scales: Tensor, zero_points: Tensor, axis: int, dtype: torch.dtype) -> Quantised:
    shape = [-1 if d == axis % x.dim() else 1 for d in range(x.dim())]
    scale, zero_point = as_float(scales).reshape(shape), as_float(zero_points).reshape(shape)
    return Quantised(stored(x / scale, zero_point, dtype), scale, zero_point, dtype)


def _relu(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args, **kwargs: function(*args, **kwargs, relu=True)


OPERATORS: dict[str, Callable[..., Any]] = {
    "quantize_per_tensor": Quantised.of,
    "quantize_per_channel": _per_channel,
    "dequantize": lambda x: x.value if isinstance(x, Quantised) else x,
    "linear": _linear,
    "linear_relu": _relu(_linear),
    "linear_dynamic": _linear_dynamic,
    "linear_relu_dynamic": _relu(_linear_dynamic),
    "linear_dynamic_fp16": _linear_fp16,
    "linear_relu_dynamic_fp16": _relu(_linear_fp16),
    **{f"conv{n}d": _conv for n in (1, 2, 3)},
    **{f"conv{n}d_relu": _relu(_conv) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _conv for n in (1, 2, 3)},
    **{f"conv{n}d_dynamic": _conv_dynamic for n in (1, 2, 3)},
    **{f"conv_transpose{n}d_dynamic": _conv_dynamic for n in (1, 2, 3)},
    "add": _binary(torch.add),
    "add_relu": _binary(torch.add, relu=True),
    "mul": _binary(torch.mul),
    "mul_relu": _binary(torch.mul, relu=True),
    "matmul": _binary(torch.matmul),
    "add_scalar": _scalar(torch.add),
    "add_scalar_relu": _scalar(torch.add, relu=True),
    "mul_scalar": _scalar(torch.mul),
    "mul_scalar_relu": _scalar(torch.mul, relu=True),
    "cat": _cat,
    "cat_relu": _relu(_cat),
    "relu6": lambda x, inplace=False: x.like(functional.relu6(x.value)),
    "hardswish": _unary(functional.hardswish),
    "elu": lambda x, scale, zero_point, alpha=1.0, *rest: Quantised.computed(
        functional.elu(x.value, alpha), scale, zero_point, x.dtype
    ),
    "leaky_relu": lambda x, slope, inplace, scale, zero_point: Quantised.computed(
        functional.leaky_relu(x.value, slope), scale, zero_point, x.dtype
    ),
    "sigmoid": _unary(torch.sigmoid),
    "softmax": _unary(torch.softmax),
    "layer_norm": lambda x, shape, w, b, eps, scale, zero: Quantised.computed(
        functional.layer_norm(x.value, shape, w, b, eps), scale, zero, x.dtype
    ),
    "group_norm": lambda x, groups, w, b, eps, scale, zero: Quantised.computed(
        functional.group_norm(x.value, groups, w, b, eps), scale, zero, x.dtype
    ),
    "instance_norm": lambda x, w, b, eps, scale, zero: Quantised.computed(
        functional.instance_norm(x.value, None, None, w, b, eps=eps), scale, zero, x.dtype
    ),
    **{f"batch_norm{n}": _batch_norm for n in ("", "1d", "2d", "3d")},
    **{f"batch_norm{n}_relu": _relu(_batch_norm) for n in ("", "1d", "2d", "3d")},
    "embedding_byte": _embedding,
    "embedding_4bit": _embedding,
    "embedding_bag_byte": _embedding_bag,
    "embedding_bag_4bit": _embedding_bag,
    "quantized_lstm": recurrent.lstm,
    "quantized_gru": recurrent.gru,
    "quantized_lstm_cell_dynamic": recurrent.lstm_cell,
    "quantized_gru_cell_dynamic": recurrent.gru_cell,
    "quantized_rnn_tanh_cell_dynamic": recurrent.tanh_cell,
    "quantized_rnn_relu_cell_dynamic": recurrent.relu_cell,
}
