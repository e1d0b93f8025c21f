"""Door to torch.nn: the tables inside of a module, wrappers around one, and base classes that have no public name.

Relies on `_parameters`, `_buffers`, `_modules` and `_save_to_state_dict` of nn.Module, on `_DropoutNd`, `_NormBase` and
`_BatchNorm`, on what torch.compile leaves on what it wraps (`_orig_mod`, since torch 2.0; `_torchdynamo_orig_callable`), on the
names that a call of a module goes through, on `torch.nn.utils.rnn._VF` with its two functions for packed sequences, on
`torch.distributions.Distribution._validate_args`, and on the tables of hooks for all modules, such as `_global_forward_hooks`.
Should they move: named_parameters, named_buffers and named_children read the tables; `setattr` and `delattr` write them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch import nn
from torch.distributions import Distribution
from torch.nn.utils import rnn

from torchferry.foreign.moved import relying_on
from torchferry.foreign.replaced import replaced

with relying_on("torch", "the tables of its modules"):
    ACTS_IN_TRAINING = (nn.modules.dropout._DropoutNd, nn.modules.batchnorm._NormBase, nn.RReLU)
    BatchNorm = nn.modules.batchnorm._BatchNorm
    _save_plainly = nn.Module._save_to_state_dict
    _packing = rnn._VF
    for _name in ("_parameters", "_buffers", "_modules"):
        getattr(nn.Module(), _name)
    getattr(Distribution, "_validate_args")  # noqa: B009
    _tables_of_hooks = [t for name, t in vars(nn.modules.module).items() if name.startswith("_global_") and isinstance(t, dict)]

__all__ = [
    "ACTS_IN_TRAINING",
    "BUFFERS",
    "FORWARDS",
    "BatchNorm",
    "behind_compiled",
    "buffers_of",
    "children_of",
    "global_hooks",
    "packed_by",
    "parameters_of",
    "saving_buffers",
    "tables_of",
    "unvalidated_distributions",
]

FORWARDS = ("forward", "__call__", "_call_impl", "_wrapped_call_impl")  # the methods that a call of a module goes through
BUFFERS = "_buffers"  # the table's name among a module's attributes


def global_hooks() -> list[dict[Any, Any]]:
    """Return the tables of what is called at every call of any module, themselves."""
    return _tables_of_hooks


def parameters_of(module: nn.Module) -> dict[str, Any]:
    """Return the table of a module's own parameters, itself; nothing where it has none, as a script module may have."""
    return getattr(module, "_parameters", {})


def buffers_of(module: nn.Module) -> dict[str, Any]:
    """Return the table of a module's own buffers, itself."""
    return module._buffers


def children_of(module: nn.Module) -> dict[str, Any]:
    """Return the table of a module's own parts, itself."""
    return module._modules


def tables_of(module: nn.Module) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tables of a module's own parameters and buffers, themselves."""
    return module._parameters, module._buffers


def saving_buffers(kind: type) -> type:
    """Return a class of modules as it is but for saving its parameters and buffers, whatever it would have saved itself."""
    return type(kind.__name__, (kind,), {_save_plainly.__name__: _save_plainly})


def behind_compiled(model: Any) -> Any | None:
    """Return what torch.compile was given, or None for what it has not wrapped."""
    if isinstance(model, nn.Module) and not isinstance(model, torch.jit.ScriptModule) and "_orig_mod" in model._modules:
        return model._orig_mod
    if inspect.isfunction(model) and hasattr(model, "_torchdynamo_orig_callable"):
        return model._torchdynamo_orig_callable
    return None


@contextmanager
def unvalidated_distributions() -> Iterator[None]:
    """Turn the checks of torch.distributions off for the block."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(False)
    try:
        yield
    finally:
        Distribution._validate_args = before


def packed_by(pack: Callable[..., Any], unpack: Callable[..., Any]) -> AbstractContextManager[None]:
    """Return a context in which these two functions pack padded sequences, and pad packed ones."""
    return replaced(rnn, {"_VF": _Packing(pack, unpack)})


class _Packing:
    """Stands for torch._VF in torch.nn.utils.rnn, which has no other use for it than these two."""

    def __init__(self, pack: Callable[..., Any], unpack: Callable[..., Any]) -> None:
        self._pack_padded_sequence, self._pad_packed_sequence = pack, unpack

    def __getattr__(self, name: str) -> Any:
        return getattr(_packing, name)
