"""Sparse tensors as dense ones: the same numbers, in operators that have a form in ONNX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from torchferry.capture.prepare.within import within
from torchferry.records import Facts


def is_sparse(tensor: Any) -> bool:
    """Whether a value is a tensor in a sparse layout."""
    return isinstance(tensor, Tensor) and tensor.layout != torch.strided and not tensor.is_mkldnn


def prepare(module: nn.Module, args: tuple[Any, ...], params: Facts) -> nn.Module:
    """Return the module with dense constants, in which functions of sparse tensors are those of dense ones."""
    for part in module.modules():
        for table in (part._parameters, part._buffers, vars(part)):
            for name, value in list(table.items()):
                if is_sparse(value):
                    dense = value.detach().to_dense()
                    table[name] = nn.Parameter(dense, requires_grad=False) if isinstance(value, nn.Parameter) else dense  # type: ignore[assignment]
    return within(module, Dense)


class Dense(TorchFunctionMode):
    """While this is active, sparse tensors are not made: what would make one gives a dense tensor."""

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(getattr(func, "__name__", ""))
        return FUNCTIONS.get(name, func)(*args, **(kwargs or {}))


def _coo(indices: Tensor, values: Tensor, size: Any = None, **options: Any) -> Tensor:
    """Return the dense tensor that a list of entries stands for; entries at one place add up."""
    shape = list(size) if size is not None else [int(n) + 1 for n in indices.amax(1).tolist()]
    dense = torch.zeros(shape + list(values.shape[1:]), dtype=options.get("dtype") or values.dtype, device=values.device)
    return dense.index_put(tuple(indices.unbind(0)), values.to(dense.dtype), accumulate=True)


def _csr(crow: Tensor, columns: Tensor, values: Tensor, size: Any = None, **options: Any) -> Tensor:
    places = torch.arange(values.shape[0], device=values.device)
    rows = (places.unsqueeze(1) >= crow[1:].unsqueeze(0)).sum(1)
    return _coo(torch.stack([rows, columns.to(rows.dtype)]), values, size, **options)


def _sum(dense: Tensor, dim: Any = None, dtype: Any = None) -> Tensor:
    return dense.sum(dtype=dtype) if dim is None else dense.sum(dim, dtype=dtype)


def _softmax(dense: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the softmax over the entries that are there: those left out weigh nothing."""
    weight = torch.softmax(dense.masked_fill(dense == 0, float("-inf")), dim, dtype=dtype)
    return torch.where(dense == 0, torch.zeros_like(weight), weight)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "_sparse_mm": torch.matmul,
    "sparse_coo_tensor": _coo,
    "_sparse_coo_tensor_unsafe": _coo,
    "sparse_csr_tensor": _csr,
    "_sparse_addmm": lambda a, b, c, *, beta=1, alpha=1: torch.addmm(a, b, c, beta=beta, alpha=alpha),
    "sspaddmm": lambda a, b, c, *, beta=1, alpha=1: torch.addmm(a, b, c, beta=beta, alpha=alpha),
    "smm": torch.matmul,
    "hspmm": torch.matmul,
    "_sparse_sum": _sum,
    "_sparse_softmax": _softmax,
    "coalesce": lambda a: a,
    "to_dense": lambda a, *rest, **options: a,
    "to_sparse": lambda a, *rest, **options: a,
    "to_sparse_csr": lambda a, *rest, **options: a,
    "to_sparse_coo": lambda a, *rest, **options: a,
    "is_coalesced": lambda a: True,
}
