"""A module without packed objects and observers, to be run in the mode that computes quantised operators on floats."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchferry.eager.within import within
from torchferry.foreign.torch_modules import saving_buffers
from torchferry.foreign.torch_tensors import packed_kind
from torchferry.quantised import fake
from torchferry.quantised.operators import Dequantised
from torchferry.quantised.unpacked import unpack


def is_quantised(module: nn.Module) -> bool:
    """Whether a module itself (not one below it) holds what only torch's quantised kernels can read."""
    opaque = any(isinstance(v, torch.ScriptObject) and _kind(v) for v in vars(module).values())
    return opaque or fake.is_fake(module) or fake.is_stub(module)


def prepare(module: nn.Module, *, nodes: bool) -> nn.Module:
    """Return the module with its packed weights as buffers, and all of it arithmetic; fake quantisers as `nodes`, or as that."""
    for part in list(module.modules()):
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.ScriptObject) and _kind(value):
                _open(part, name, value)
    _replace(module, nodes)
    return within(module, lambda _: Dequantised())


def _open(part: nn.Module, name: str, packed: Any) -> None:
    opened = unpack(part, name, packed)
    if opened is None:
        raise NotImplementedError(f"a packed object of the kind {_kind(packed)} cannot be opened")
    delattr(part, name)
    object.__setattr__(part, name, opened)
    # torch's own classes save the packed object; the buffers are what is to be saved now
    part.__class__ = saving_buffers(type(part))


def _replace(module: nn.Module, nodes: bool) -> None:
    for name, child in list(module.named_children()):
        if (plain := fake.replaced(child, nodes=nodes)) is not None:
            setattr(module, name, plain)
        else:
            _replace(child, nodes)


def _kind(value: Any) -> str:
    name = packed_kind(value)
    return name.rsplit(".", 1)[-1] if ".quantized." in name or ".rnn." in name else ""
