"""A model that takes gradients inside forward, as the graph of what it computes: forward and backward operators in one."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from torchferry import eager
from torchferry.capture.prepare.forward_mode import by_reverse_mode
from torchferry.foreign.torch_modules import parameters_of
from torchferry.foreign.torch_operators import aten, is_mutable, present
from torchferry.foreign.torch_shapes import sizes_kept_apart
from torchferry.foreign.torch_tracing import core_aten_decompositions, traced


def prepare(module: nn.Module, args: tuple[Any, ...]) -> nn.Module:
    """Return the flat module with its model replaced by a traced graph, in which gradients are ordinary operators."""
    for part in module.modules():
        for name, parameter in parameters_of(part).items():
            if parameter is not None:  # forward differentiates by its inputs; weights are constants
                parameters_of(part)[name] = nn.Parameter(parameter.detach(), requires_grad=False)

    def compute(*tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        with torch.enable_grad():
            return tuple(out.detach() for out in module.run(tensors))  # type: ignore[operator]

    # sizes that happen to be equal, to each other or to a weight's, are not the same size
    with eager.untouched_process(), sizes_kept_apart(), by_reverse_mode(module):
        graph = traced(compute, _operators(), symbolic=True)(*eager.clone(args))
        if any(is_mutable(node.target) for node in graph.graph.nodes):
            plain = torch.func.functionalize(graph, remove="mutations_and_views")
            graph = traced(plain, _operators(), symbolic=True)(*eager.clone(args))
    return _of_graph(module, graph)


def _operators() -> dict[Any, Any]:
    """Return how operators are taken apart: as torch does, and empty tensors without regard to how they lie in memory."""

    def empty(size: Any, physical_layout: Any, **options: Any) -> torch.Tensor:
        return torch.empty(size, **options)

    return {**core_aten_decompositions(), **present({aten.empty_permuted.default: empty})}


def _of_graph(module: nn.Module, graph: nn.Module) -> nn.Module:
    """Return the flat module with a graph in the model's place; forward keeps its signature."""

    def run(self: Any, tensors: Any) -> Any:
        return tuple(self.model(*tensors))

    module.__class__ = type(type(module).__name__, (type(module),), {"run": run})
    module.model = graph
    return module
