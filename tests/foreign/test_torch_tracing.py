"""torch's stand-in tensors and its tracer, as the door has them."""

from __future__ import annotations

import logging

import torch

from torchferry.foreign import torch_tracing as door
from torchferry.foreign.torch_operators import aten


def test_stand_ins_have_shapes_and_are_known_for_what_they_are() -> None:
    mode = door.FakeTensorMode(allow_non_fake_inputs=True)
    with mode:
        made = torch.ones(2, 3) @ torch.ones(3, 4)
    assert made.shape == (2, 4)
    assert isinstance(made, door.FakeTensor)
    assert (door.is_fake(made), door.is_fake(torch.ones(1))) == (True, False)
    assert door.detect_fake_mode([None, made]) is mode
    assert door.detect_fake_mode([torch.ones(1)]) is None


def test_a_function_is_traced_into_operators_taken_apart_by_a_table() -> None:
    weight = torch.ones(3)
    graph = door.traced(lambda x: torch.square(x) * weight, {}, symbolic=True)(torch.ones(2, 3)).graph
    assert [n.target for n in graph.nodes if n.op == "call_function" and n.target is aten.pow.Tensor_Scalar]
    sizes = next(n.meta["val"].shape for n in graph.nodes if n.op == "placeholder")
    assert all(isinstance(size, torch.SymInt) for size in sizes)


def test_torchs_own_table_takes_operators_apart_over_stand_ins() -> None:
    table = door.core_aten_decompositions()
    assert aten.addcmul.default in table
    with door.FakeTensorMode(), door.enable_python_dispatcher():
        graph = door.traced(torch.addcmul, table)(*[torch.ones(2)] * 3).graph
    called = {n.target for n in graph.nodes if n.op == "call_function"}
    assert aten.mul.Tensor in called
    assert aten.addcmul.default not in called


def test_decompositions_are_given_as_far_as_torch_has_them() -> None:
    found = door.decompositions_of((aten.logaddexp.default, aten.no_such_operator.default))
    assert set(found) == {aten.logaddexp.default}
    assert torch.allclose(found[aten.logaddexp.default](torch.ones(1), torch.ones(1)), torch.tensor([1.6931472]))


def test_references_and_transforms_are_where_they_are_replaced_and_called() -> None:
    assert torch.allclose(door.reference_linalg.norm(torch.ones(4), 2.0), torch.tensor(2.0))
    assert torch.allclose(door.reference_linalg.matrix_norm(torch.eye(2), "nuc"), torch.tensor(2.0))
    assert door.eager_transforms.jvp is torch.func.jvp
    assert door.eager_transforms.jacfwd is torch.func.jacfwd


def test_the_loggers_are_torchs_own() -> None:

    assert set(door.LOGGERS) <= set(logging.root.manager.loggerDict)
