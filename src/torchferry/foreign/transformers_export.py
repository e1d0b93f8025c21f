"""Door to what transformers changes in its models for an export of its own, and to the ways it computes mixtures of experts.

Relies on the registry `transformers.exporters.utils._PATCHES` (since transformers 5), rows of a dotted path, an attribute and a
factory for each backend; on `config._experts_implementation` with `_experts_implementation_internal` behind it, on
`_can_set_experts_implementation` of a model's class, and on `_apply_gate`, which a module of experts has.
Should they move: no patch is applied, and the note says so; models then fail where transformers' own export would without them.
transformers need not be installed: nothing is imported before it is asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from torchferry.foreign.moved import moved, relying_on
from torchferry.foreign.replaced import replaced

__all__ = ["EXPERTS_SETTING", "can_set_experts", "experts_computed_by", "experts_setting", "has_other_experts", "patches"]

EXPERTS_SETTING = "config._experts_implementation"  # as it is told of
_HIDDEN_SETTING = "_experts_implementation_internal"


def patches(backend: str) -> list[tuple[Any, str, Callable[[Any], Any]]]:
    """Return transformers' patches (owner, attribute, factory) whose owner is loaded: a model uses no other."""
    with relying_on("transformers", "the patches of its exporters"):
        importlib.import_module("transformers.exporters.exporter_dynamo")  # it fills the registry
        registry = getattr(importlib.import_module("transformers.exporters.utils"), "_PATCHES", None)
    if not isinstance(registry, dict) or backend not in registry:
        raise moved("transformers", "the patches of its exporters", f"it has no patches for `{backend}` where torchferry looks")
    found = ((_loaded(path), attribute, factory) for path, attribute, factory in registry[backend])
    return [row for row in found if row[0] is not None and hasattr(row[0], row[1])]


def _loaded(path: str) -> Any:
    """Return the module or class of a dotted path, without importing anything; None if it is not there yet."""
    parts = path.split(".")
    for count in range(len(parts), 0, -1):
        owner: Any = sys.modules.get(".".join(parts[:count]))
        if owner is not None:
            for name in parts[count:]:
                owner = getattr(owner, name, None)
            return owner
    return None


def has_other_experts(part: Any, way: str) -> bool:
    """Whether a module is one of experts that would be computed in another way than the one wanted."""
    return hasattr(part, "_apply_gate") and getattr(getattr(part, "config", None), _HIDDEN_SETTING, way) != way


def experts_computed_by(config: Any, way: str) -> AbstractContextManager[None]:
    """Return a context in which the modules of a config compute their experts in a given way."""
    return replaced(config, {_HIDDEN_SETTING: way})


def can_set_experts(model: Any) -> bool:
    """Whether a model has experts, and several ways to compute them."""
    settable = getattr(type(model), "_can_set_experts_implementation", None)
    return settable is not None and bool(settable())


def experts_setting(model: Any) -> Any:
    """Return the way in which a model computes its experts at present."""
    return model.config._experts_implementation
