"""Door to what a tensor, or a packed object, keeps in C++: its version, its storage's identity, the kind of what is packed.

Relies on `Tensor._version`, `Tensor._indices`, `Tensor._values`, `UntypedStorage._cdata`, on `torch._tensor_str.PRINT_OPTS`, on
`torch._make_per_tensor_quantized_tensor` and its twin for channels, on `torch.ScriptObject._type`, on `_c._get_method` of a
script module, and on `torch._C._nn.pad_sequence`; all older than torch 2.
Should they move: a copy of the values tells a write from none, `StorageWeakRef` tells storages apart, and
`torch.quantize_per_tensor` makes quantised tensors from real numbers.
"""

from __future__ import annotations

from typing import Any

import torch

from torchferry.foreign.moved import relying_on

with relying_on("torch", "the inside of its tensors"):
    quantised_tensor = torch._make_per_tensor_quantized_tensor
    quantised_tensor_by_channel = torch._make_per_channel_quantized_tensor
    pad_sequence = torch._C._nn.pad_sequence
    for name in ("_version", "_indices", "_values"):
        getattr(torch.Tensor, name)
    getattr(torch.UntypedStorage, "_cdata")  # noqa: B009
    print_options = torch._tensor_str.PRINT_OPTS
    getattr(torch.ScriptObject, "_type")  # noqa: B009

__all__ = [
    "packed_kind",
    "pad_sequence",
    "parts_of_sparse",
    "printing",
    "quantised_tensor",
    "quantised_tensor_by_channel",
    "script_schema",
    "storage_identity",
    "times_written",
]


def times_written(tensor: torch.Tensor) -> int:
    """Return how often a tensor was written into."""
    return int(tensor._version)


def storage_identity(tensor: torch.Tensor) -> int:
    """Return what tells a tensor's memory from any other that is alive."""
    return int(tensor.untyped_storage()._cdata)


def parts_of_sparse(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return the dense tensors that a sparse one consists of, over its own memory; nothing for any other."""
    if tensor.is_meta or tensor.layout is torch.strided:
        return []
    plain = tensor.detach()
    if tensor.layout is torch.sparse_coo:
        return [plain._indices(), plain._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [plain.crow_indices(), plain.col_indices(), plain.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [plain.ccol_indices(), plain.row_indices(), plain.values()]
    return []


def printing() -> dict[str, Any]:
    """Return the settings by which tensors are printed, as torch holds them."""
    return vars(print_options)


def packed_kind(packed: Any) -> str:
    """Return the full name of the class in C++ of a packed object."""
    return str(packed._type())


def script_schema(script: Any) -> Any:
    """Return the signature of a script module's forward."""
    return script._c._get_method("forward").schema
