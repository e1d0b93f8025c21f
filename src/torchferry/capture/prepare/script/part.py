"""A module that stands for a compiled one: its weights as parameters, its graph run in Python."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchferry.capture.prepare.script.interpreter import Owner, run
from torchferry.foreign.torch_modules import children_of, tables_of
from torchferry.foreign.torch_tensors import script_schema


def is_script(module: Any) -> bool:
    """Whether a module is compiled TorchScript."""
    return isinstance(module, torch.jit.ScriptModule)


def prepare(module: nn.Module) -> nn.Module:
    """Return the module with every compiled part replaced by one that runs its graph in Python."""
    for name, child in list(module.named_children()):
        if is_script(child):
            setattr(module, name, Interpreted(child))
        else:
            prepare(child)
    return module


class Interpreted(nn.Module):
    """The weights of a compiled module under their own names, and its methods."""

    def __init__(self, script: Any) -> None:
        super().__init__()
        self.script = (script,)  # in a tuple, or torch would make it a part of this module
        self.training = bool(getattr(script, "training", False))  # a frozen one has no mode
        for name, tensor in script.named_parameters(remove_duplicate=False):
            _keep(self, name, nn.Parameter(tensor.detach(), requires_grad=False))
        for name, tensor in script.named_buffers(remove_duplicate=False):
            _keep(self, name, tensor.detach())

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the compiled forward computes."""
        return run(self.script[0].inlined_graph, _bound(script_schema(self.script[0]), args, kwargs), self._lookup)

    def _lookup(self, path: str, name: str) -> Any:
        """Return an attribute of a part: a weight of this module, another part, or a constant of the compiled module."""
        owner: Any = self
        for step in path.split(".") if path else ():
            owner = children_of(owner).get(step) if owner is not None else None
        for table in tables_of(owner) if owner is not None else ():
            if name in table:
                return table[name]
        source = self.script[0]
        for step in path.split(".") if path else ():
            source = getattr(source, step)
        value = getattr(source, name)
        return Owner(f"{path}.{name}".lstrip(".")) if isinstance(value, nn.Module | torch.jit.ScriptModule) else value


def _keep(module: nn.Module, name: str, tensor: Any) -> None:
    """Put a tensor under a dotted name, making the modules in between."""
    *path, last = name.split(".")
    for step in path:
        if step not in children_of(module):
            module.add_module(step, nn.Module())
        module = children_of(module)[step]
    if isinstance(tensor, nn.Parameter):
        module.register_parameter(last, tensor)
    else:
        module.register_buffer(last, tensor)


def _bound(schema: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Return the arguments in the order of the compiled signature, defaults filled in."""
    found = list(args)
    for argument in schema.arguments[1 + len(args) :]:
        found.append(kwargs.get(argument.name, argument.default_value))
    return tuple(found)
