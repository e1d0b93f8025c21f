"""Parametrised weights (weight_norm, spectral_norm, orthogonal, the user's own) computed once, as eval mode leaves them."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils import parametrize

from torchferry.foreign.torch_modules import children_of


def is_parametrised(module: nn.Module) -> bool:
    """Whether a module computes a weight of its own at every call."""
    return parametrize.is_parametrized(module)


def prepare(module: nn.Module) -> nn.Module:
    """Return the module with the values of its parametrised weights in place of the parametrisations."""
    with torch.no_grad():
        for part in list(module.modules()):
            if is_parametrised(part):
                _bake(part)
    return module


def _bake(part: nn.Module) -> None:
    """Give a module back its own class. torch's remove_parametrizations would change the class that the original shares."""
    weights = {name: getattr(part, name).detach().clone() for name in part.parametrizations}  # type: ignore[union-attr]
    part.__class__ = type(part).__mro__[1]
    del children_of(part)["parametrizations"]
    for name, weight in weights.items():
        part.register_parameter(name, nn.Parameter(weight, requires_grad=False))
