"""Sparse tensors as dense ones: the same numbers, in operators that have a form in ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from torchferry.eager.within import within
from torchferry.foreign.torch_modules import tables_of


def is_sparse(tensor: Any) -> bool:
    """Whether a value is a tensor in a sparse layout."""
    return isinstance(tensor, Tensor) and tensor.layout != torch.strided and not tensor.is_mkldnn


def prepare(module: nn.Module) -> nn.Module:
    """Return the module with dense constants, in which functions of sparse tensors are those of dense ones."""
    held = []
    for path, part in module.named_modules():
        for table in (*tables_of(part), vars(part)):
            for name, value in list(table.items()):
                if is_sparse(value):
                    dense = value.detach().to_dense()
                    table[name] = nn.Parameter(dense, requires_grad=False) if isinstance(value, nn.Parameter) else dense  # type: ignore[assignment]
                    held.append((path, name))
    return within(module, partial(Dense, held))


class Dense(TorchFunctionMode):
    """While this is active, sparse tensors are not made: what would make one gives a dense tensor.

    It keeps in mind which tensors stand for sparse ones: in a product, what they leave out counts for nothing.
    """

    def __init__(self, held: Sequence[tuple[str, str]], module: nn.Module) -> None:
        super().__init__()
        self._held = [getattr(module.get_submodule(path), name) for path, name in held]
        self._made: list[Tensor] = []

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(getattr(func, "__name__", ""))
        if name in PRODUCTS and len(args) == 2 and any(map(self._sparse, args)):
            return _product(*args) if self._sparse(args[0]) else _product(args[1].mT, args[0].mT).mT
        out = FUNCTIONS.get(name, func)(*args, **(kwargs or {}))
        if name in MAKING or (name in TURNING and self._sparse(args[0])):
            self._made.append(out)
        return out

    def _sparse(self, value: Any) -> bool:
        return any(value is other for other in (*self._held, *self._made))


def _product(sparse: Tensor, dense: Tensor) -> Tensor:
    """Return a matrix product to which the zeros of the first factor add nothing, not even where they meet NaN."""
    if not dense.is_floating_point():
        return torch.matmul(sparse, dense)
    known = torch.isfinite(dense)
    met = torch.matmul((sparse != 0).to(dense.dtype), (~known).to(dense.dtype)) > 0
    found = torch.matmul(sparse, torch.where(known, dense, torch.zeros_like(dense)))
    return torch.where(met, torch.full_like(found, torch.nan), found)


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


PRODUCTS = ("_sparse_mm", "matmul", "__matmul__", "mm", "spmm", "smm", "hspmm")
MAKING = (
    "sparse_coo_tensor", "_sparse_coo_tensor_unsafe", "sparse_csr_tensor", "to_sparse", "to_sparse_csr", "to_sparse_coo",
)  # fmt: skip
TURNING = ("coalesce", "t", "transpose", "to", "float", "double", "half", "clone", "detach")  # sparse in, sparse out
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
