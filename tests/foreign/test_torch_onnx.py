"""The inside of torch.onnx, as the door has it."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
import torch

from torchferry.foreign import torch_onnx as door
from torchferry.foreign.torch_operators import aten


def program(module: Any, *args: torch.Tensor) -> Any:
    return torch.export.export(module, args)


def test_a_program_goes_through_decomposition_promotion_and_translation() -> None:
    registry = door.registry({}, {})
    table = door.decomposition_table(registry)
    assert aten.softplus.default not in table  # torch.onnx translates it as it is
    assert aten.huber_loss.default in table
    ready = door.promote(door.decompose(program(torch.nn.Softsign(), torch.ones(2, 3)), table))
    assert all(door.translatable(n, registry) for n in ready.graph.nodes if n.op == "call_function")
    model = door.build(ready, registry)
    assert isinstance(model, ir.Model)
    assert "Abs" in {node.op_type for node in model.graph}


def test_a_translation_of_our_own_goes_before_torchs_and_may_add_a_custom_node() -> None:
    registry = door.registry({aten.relu.default: lambda x: door.custom_node("mine", "Relu", [x], {"alpha": 1}, 1)}, {})
    made = [n for n in door.build(program(torch.nn.ReLU(), torch.ones(2)), registry).graph if n.domain == "mine"]
    assert [(n.op_type, n.version, n.attributes["alpha"].value) for n in made] == [("Relu", 1, 1)]
    plain = door.build(program(torch.nn.ReLU(), torch.ones(2)), door.registry({}, {})).graph
    assert [(n.domain, n.op_type) for n in plain] == [("", "Relu")]


def test_an_operator_without_translation_is_told_before() -> None:
    class Sorting(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvals(x)

    nodes = [n for n in program(Sorting(), torch.eye(2)).graph.nodes if n.op == "call_function"]
    assert not all(door.translatable(n, door.registry({}, {})) for n in nodes)


def test_a_translation_that_gives_up_names_its_node_and_reason() -> None:
    def gives_up(x: Any) -> Any:
        raise ValueError("not today")

    with pytest.raises(door.TranslationFailed, match="not today") as failed:
        door.build(program(torch.nn.ReLU(), torch.ones(2)), door.registry({aten.relu.default: gives_up}, {}))
    assert failed.value.node == "relu"


def test_sums_of_float16_stay_float16() -> None:
    class Summing(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.cumsum(0)

    ready = door.promote(program(Summing(), torch.ones(2, dtype=torch.float16)))
    assert ready.graph.output_node().all_input_nodes[0].meta["val"].dtype == torch.float16
