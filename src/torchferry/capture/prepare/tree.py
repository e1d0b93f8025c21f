"""A module tree of one's own over the same tensors, for models that cannot be copied whole."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchferry.foreign.torch_modules import children_of


def own(module: nn.Module, known: dict[int, nn.Module] | None = None) -> nn.Module:
    """Return a tree of new module objects that share tensors and all else with the old ones.

    Sparse CSR buffers, locks and generators refuse to be copied, and then what is prepared would be the user's own model.
    """
    known = {} if known is None else known
    if isinstance(module, torch.jit.ScriptModule):
        return module
    if id(module) not in known:
        new: Any = module.__class__.__new__(module.__class__)
        known[id(module)] = new
        new.__dict__.update({k: v.copy() if isinstance(v, dict) else v for k, v in vars(module).items()})
        for name, child in children_of(module).items():
            children_of(new)[name] = child if child is None else own(child, known)
    return known[id(module)]
