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


BUILTINS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv, "floordiv": operator.floordiv,
    "remainder": operator.mod, "mod": operator.mod, "fmod": math.fmod, "neg": operator.neg, "pow": operator.pow,
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "__and__": operator.and_, "__or__": operator.or_, "__xor__": operator.xor, "__not__": operator.not_,
    "__is__": operator.is_, "__isnot__": operator.is_not, "__getitem__": operator.getitem, "__contains__": operator.contains,
    "__lshift__": operator.lshift, "__rshift__": operator.rshift, "len": len, "append": _append, "slice": _slice,
    "_set_item": _set_item, "Delete": lambda d, k: d.pop(k), "pop": lambda items, k=-1: items.pop(k),
    "insert": lambda items, k, v: items.insert(k, v), "extend": lambda items, more: items.extend(more), "clear": lambda items: items.clear(),
    "reverse": lambda items: items.reverse(), "copy": lambda items: items.copy(), "list": list, "dict": dict, "keys": lambda d: list(d),
    "values": lambda d: list(d.values()), "items": lambda d: list(d.items()), "get": lambda d, k, other=None: d.get(k, other),
    "format": lambda text, *values: text.format(*values), "str": str, "join": lambda text, items: text.join(items),
    "Int": lambda v: int(v) if isinstance(v, str | float | bool) else _numbers(v), "Float": lambda v: float(v) if isinstance(v, str | int) else _numbers(v),
    "ScalarImplicit": _numbers, "IntImplicit": _numbers, "FloatImplicit": _numbers, "item": _numbers,
    "Bool": lambda v: v if isinstance(v, torch.Tensor) else bool(v),
    "ceil": math.ceil, "floor": math.floor, "round": round, "sqrt": math.sqrt, "log": math.log, "exp": math.exp, "abs": abs,
    "sin": math.sin, "cos": math.cos, "tanh": math.tanh, "log2": math.log2, "log10": math.log10, "sorted": sorted, "sum": sum,
    "__range_length": _range_length, "__derive_index": lambda index, start, step: start + index * step, "warn": lambda *rest: None,
    "lower": str.lower, "upper": str.upper, "startswith": str.startswith, "endswith": str.endswith, "strip": str.strip, "split": str.split,
    "max": max, "min": min, "all": all, "any": any, "index": lambda items, v: items.index(v), "ord": ord, "chr": chr, "hash": hash,
}  # fmt: skip

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
