"""What transformers itself changes in its models for an export: its own patches, taken from it as they are, and noted when used.

They live in `transformers.exporters`, whose registry is not public: where a release has it in another form, none is applied, and
the note says so. Its mixture-of-experts models also have several ways to compute the same; the one without loops is chosen.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from torchferry.capture.patches.replace import replaced
from torchferry.records import Finding
from torchferry.records.findings import TransformersPatches

BACKEND = "dynamo"  # the patches about capturing; those for its own translation to ONNX are of no use here
EXPERTS = "batched_mm"  # one product for all chosen experts: no loop, and no operator of its own


class RegistryChanged(Exception):
    """This release of transformers keeps its patches elsewhere."""


@contextmanager
def noted(module: Any, notes: list[Finding]) -> Iterator[None]:
    """Apply transformers' patches to a model of its own for the block, and note the ones that were used."""
    if not any(type(part).__module__.startswith("transformers.") for part in module.modules()):
        yield
        return
    fired: dict[str, str] = {}
    with ExitStack() as stack:
        try:
            for owner, attribute, factory in _registered():
                original = getattr(owner, attribute)
                told = _telling(factory(original), f"{_name(owner)}.{attribute}", factory, fired)
                stack.enter_context(replaced(owner, {attribute: told}))
        except (RegistryChanged, ImportError) as error:
            notes.append(TransformersPatches({}, str(error)))
        for config in _configs_with_loops(module):
            stack.enter_context(replaced(config, {"_experts_implementation_internal": EXPERTS}))
            fired["config._experts_implementation"] = f"the experts as `{EXPERTS}`, which has no loop"
        yield
    if fired:
        notes.append(TransformersPatches(dict(fired)))


def _registered() -> list[tuple[Any, str, Callable[[Any], Any]]]:
    """Return the patches whose target is loaded: what is not loaded, the model does not use."""
    importlib.import_module("transformers.exporters.exporter_dynamo")  # it fills the registry
    registry = getattr(importlib.import_module("transformers.exporters.utils"), "_PATCHES", None)
    if not isinstance(registry, dict) or BACKEND not in registry:
        raise RegistryChanged(f"transformers {_version()} has no patches for `{BACKEND}` where torchferry looks for them")
    found = []
    for path, attribute, factory in registry[BACKEND]:
        owner = _loaded(path)
        if owner is not None and hasattr(owner, attribute):
            found.append((owner, attribute, factory))
    return found


def _version() -> str:
    return str(getattr(sys.modules.get("transformers"), "__version__", ""))


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


def _name(owner: Any) -> str:
    return str(getattr(owner, "__qualname__", None) or getattr(owner, "__name__", owner))


def _telling(replacement: Any, name: str, factory: Any, fired: dict[str, str]) -> Any:
    """Return a patch's replacement that also says when it is used."""
    if not callable(replacement):
        return replacement
    about = (factory.__doc__ or "").strip().split("\n")[0].strip()

    @functools.wraps(replacement)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_dynamo_compiling():  # dynamo would take the note for something that the model computes
            fired[name] = about
        return replacement(*args, **kwargs)

    return call


def _configs_with_loops(module: Any) -> list[Any]:
    """Return the configurations of mixtures of experts that would be computed in another way than the one wanted."""
    found: dict[int, Any] = {}
    for part in module.modules():
        config = getattr(part, "config", None)
        if hasattr(part, "_apply_gate") and getattr(config, "_experts_implementation_internal", EXPERTS) != EXPERTS:
            found[id(config)] = config
    return list(found.values())
