"""What transformers itself changes in its models for an export: its own patches, taken from it as they are, and noted when used.

Where a release keeps them elsewhere, none is applied, and the note says so. Its mixture-of-experts models also have several
ways to compute the same; the one without loops is chosen.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from torchferry.errors import ForeignApiMoved
from torchferry.foreign.replaced import replaced
from torchferry.foreign.transformers_export import EXPERTS_SETTING, experts_computed_by, has_other_experts, patches
from torchferry.records import Finding
from torchferry.records.findings import TransformersPatches

BACKEND = "dynamo"  # the patches about capturing; those for its own translation to ONNX are of no use here
EXPERTS = "batched_mm"  # one product for all chosen experts: no loop, and no operator of its own


@contextmanager
def noted(module: Any, notes: list[Finding]) -> Iterator[None]:
    """Apply transformers' patches to a model of its own for the block, and note the ones that were used."""
    if not any(type(part).__module__.startswith("transformers.") for part in module.modules()):
        yield
        return
    fired: dict[str, str] = {}
    with ExitStack() as stack:
        try:
            for owner, attribute, factory in patches(BACKEND):
                original = getattr(owner, attribute)
                told = _telling(factory(original), f"{_name(owner)}.{attribute}", factory, fired)
                stack.enter_context(replaced(owner, {attribute: told}))
        except (ForeignApiMoved, ImportError) as error:
            notes.append(TransformersPatches({}, str(error)))
        for config in _configs_with_loops(module):
            stack.enter_context(experts_computed_by(config, EXPERTS))
            fired[EXPERTS_SETTING] = f"the experts as `{EXPERTS}`, which has no loop"
        yield
    if fired:
        notes.append(TransformersPatches(dict(fired)))


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
    return list({id(part.config): part.config for part in module.modules() if has_other_experts(part, EXPERTS)}.values())
