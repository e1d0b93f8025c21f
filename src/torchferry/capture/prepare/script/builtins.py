"""What TorchScript computes on numbers, text, lists and dicts, in Python: a size that moves stays a symbol in it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import torch

# TorchScript knows dtypes by number
CODES = {
    torch.uint8: 0, torch.int8: 1, torch.int16: 2, torch.int32: 3, torch.int64: 4, torch.float16: 5, torch.float32: 6,
    torch.float64: 7, torch.complex64: 9, torch.complex128: 10, torch.bool: 11, torch.bfloat16: 15,
}  # fmt: skip
DTYPES = {code: dtype for dtype, code in CODES.items()}


def _slice(items: Any, start: Any = None, end: Any = None, step: Any = 1) -> Any:
    return items[slice(start, None if end is not None and _is_open(end) else end, step)]


def _is_open(end: Any) -> bool:
    return isinstance(end, int) and end >= 2**62


def _set_item(items: Any, key: Any, value: Any) -> Any:
    items[key] = value
    return items


def _range_length(low: Any, high: Any, step: Any) -> Any:
    if isinstance(step, int) and step == 1:
        return high - low if not isinstance(high - low, int) else max(0, high - low)
    return len(range(low, high, step))


def _append(items: list[Any], value: Any) -> list[Any]:
    items.append(value)
    return items


def _numbers(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


_OF_NUMBERS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(operator, name)
        for name in ("add", "sub", "mul", "floordiv", "mod", "neg", "pow", "eq", "ne", "lt", "le", "gt", "ge")
    },
    **{
        name: getattr(math, name)
        for name in ("ceil", "floor", "sqrt", "log", "exp", "sin", "cos", "tanh", "log2", "log10", "fmod")
    },
    "div": operator.truediv,
    "remainder": operator.mod,
    "__and__": lambda a, b: False if a is False or b is False else a & b,
    "__or__": operator.or_,
    "__xor__": operator.xor,
    "__not__": operator.not_,
    "__is__": operator.is_,
    "__isnot__": operator.is_not,
    "__lshift__": operator.lshift,
    "__rshift__": operator.rshift,
    "round": round,
    "abs": abs,
    "max": max,
    "min": min,
    "Int": lambda v: int(v) if isinstance(v, str | float | bool) else _numbers(v),
    "Float": lambda v: float(v) if isinstance(v, str | int) else _numbers(v),
    "Bool": lambda v: v if isinstance(v, torch.Tensor) else bool(v),
    **dict.fromkeys(("ScalarImplicit", "IntImplicit", "FloatImplicit", "item"), _numbers),
    "__range_length": _range_length,
    "__derive_index": lambda index, start, step: start + index * step,
}
_OF_LISTS: dict[str, Callable[..., Any]] = {
    "len": len,
    "list": list,
    "dict": dict,
    "sorted": sorted,
    "sum": sum,
    "all": all,
    "any": any,
    "__getitem__": operator.getitem,
    "__contains__": operator.contains,
    "slice": _slice,
    "append": _append,
    "_set_item": _set_item,
    **{name: getattr(list, name) for name in ("insert", "extend", "clear", "reverse", "index")},
    "pop": lambda items, k=-1: items.pop(k),
    "copy": lambda items: items.copy(),
    "Delete": lambda items, key: items.pop(key),
    "keys": list,
    "values": lambda d: list(d.values()),
    "items": lambda d: list(d.items()),
    "get": lambda d, key, other=None: d.get(key, other),
}
_OF_TEXT: dict[str, Callable[..., Any]] = {
    **{name: getattr(str, name) for name in ("format", "join", "lower", "upper", "startswith", "endswith", "strip", "split")},
    "str": str,
    "ord": ord,
    "chr": chr,
    "hash": hash,
    "warn": lambda *rest: None,
}
BUILTINS = {**_OF_TEXT, **_OF_LISTS, **_OF_NUMBERS}

# of a tensor, but answered in Python: sizes are to stay symbols, truth is to stay a tensor
OF_TENSORS: dict[str, Callable[..., Any]] = {
    "size": lambda x, dim=None: list(x.shape) if dim is None else x.shape[dim],
    "dim": lambda x: x.dim(),
    "numel": lambda x: x.numel(),
    "len": lambda x: x.shape[0],
    "Bool": lambda x: x,
    "Int": _numbers,
    "Float": _numbers,
    "IntImplicit": _numbers,
    "FloatImplicit": _numbers,
    "ScalarImplicit": _numbers,
    "item": _numbers,
    "is_floating_point": lambda x: x.is_floating_point(),
    "is_complex": lambda x: x.is_complex(),
    "tensor": lambda data, dtype=None, device=None, grad=False: torch.tensor(data, dtype=DTYPES.get(dtype)),
    "as_tensor": lambda data, dtype=None, device=None: torch.as_tensor(data, dtype=DTYPES.get(dtype)),
    "get_device": lambda x: -1,
    "device": lambda x: x.device,
}
