"""What in a module no capture can follow, seen without running it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from torchferry.capture.prepare.quantised import fake, is_quantised
from torchferry.records import Finding, Location


def survey(module: nn.Module, args: tuple[Any, ...]) -> tuple[Finding, ...]:
    """Return what stands out in the model's parts."""
    return tuple(_parts(module))


def _parts(module: nn.Module) -> Iterator[Finding]:
    for path, part in module.named_modules():
        location = Location(module_path=path.removeprefix("model.") or "model")
        if is_quantised(part):
            facts = {"type": f"{type(part).__module__}.{type(part).__qualname__}", "observes": fake.observes(part)}
            yield Finding("quantised-module", location, facts)
