"""Other parts of a model that are prepared for capture: precision, encoders, gradients, sparse tensors, scripts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

from torchferry.capture import prepare
from torchferry.edits.capture import (
    Prepare,
    PrepareBaked,
    PrepareDense,
    PrepareEncoder,
    PrepareFloat32Kernels,
    PrepareGradients,
    PrepareQuantised,
    PrepareScript,
)
from torchferry.ops.prepared import flex
from torchferry.records.findings import EncoderFastPath, GradientInside, NestedTensor

MOVES = torch.export.Dim.DYNAMIC


class Flat(nn.Module):
    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def run(self, tensors: Any) -> tuple[torch.Tensor, ...]:
        return tuple(torch.utils._pytree.tree_leaves(self.model(*tensors)))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return self.run((x,))


def prepared(model: nn.Module, edit: Prepare, *args: torch.Tensor) -> Any:
    return prepare.apply(Flat(model), args, [edit])


def same(model: nn.Module, other: Any, *calls: tuple[torch.Tensor, ...]) -> None:
    for call in calls:
        with torch.no_grad():
            want = tuple(torch.utils._pytree.tree_leaves(model(*call)))
            torch.testing.assert_close(tuple(other.run(call)), want, rtol=1e-5, atol=1e-5)


def test_bfloat16_operators_compute_in_float32_and_round() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(2, 4, 3), nn.GELU(), nn.Conv1d(4, 2, 3)).bfloat16().eval()
    x = torch.randn(2, 2, 12).bfloat16()
    with torch.no_grad():
        program = torch.export.export(model, (x,), dynamic_shapes=({0: MOVES},), strict=False)
        revised = prepare.revise(program, [PrepareFloat32Kernels("bfloat16")])
        other = torch.randn(5, 2, 12).bfloat16()
        assert torch.equal(revised.module()(other), model(other))
    convolutions = [n for n in revised.graph.nodes if "conv" in str(n.target)]
    assert len(convolutions) == 2
    assert all(n.meta["val"].dtype == torch.float32 for n in convolutions)


def test_autocast_blocks_become_casts_before_they_are_computed_in_float32() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                return self.linear(x).relu()

    model, x = Mixed().eval(), torch.randn(2, 4)
    with torch.no_grad():
        program = torch.export.export(model, (x,), strict=False)
        revised = prepare.revise(program, [PrepareFloat32Kernels("bfloat16")])
        assert torch.equal(revised.module()(x), model(x))
    assert all(n.meta["val"].dtype == torch.float32 for n in revised.graph.nodes if "linear" in str(n.target))


@pytest.mark.parametrize("norm", [None, 8])
def test_encoder_zeroes_padding_exactly_when_eager_does(norm: int | None) -> None:
    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, norm=None if norm is None else nn.LayerNorm(norm))

        def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
            return self.encoder(x, src_key_padding_mask=padding)

    torch.manual_seed(0)
    model = Encoder().eval()
    right = torch.tensor([[False, False, False, True], [False, True, True, True]])
    x = torch.randn(2, 4, 8)
    other = prepared(model, PrepareEncoder(), x, right)
    assert EncoderFastPath not in {type(f) for f in prepare.survey(other, ())}
    same(model, other, (x, right), (x, right.flip(1)), (x, torch.zeros(2, 4, dtype=torch.bool)))


def test_gradients_inside_forward_become_operators_for_any_size() -> None:
    class Forces(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.energy = nn.Sequential(nn.Linear(3, 6), nn.SiLU(), nn.Linear(6, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.enable_grad():
                x = x.detach().requires_grad_(True)
                return torch.autograd.grad(self.energy(x).pow(2).sum(), x)[0]

    torch.manual_seed(0)
    model = Forces().eval()
    other = prepared(model, PrepareGradients(), torch.randn(4, 3))
    program = torch.export.export(other, (torch.randn(4, 3),), dynamic_shapes=({0: MOVES},), strict=False)
    x = torch.randn(7, 3)
    torch.testing.assert_close(program.module()(x)[0], model(x))
    assert all(p.requires_grad for p in model.parameters())


def test_forward_mode_derivatives_are_right_for_any_size_and_torch_keeps_its_own() -> None:
    class Velocity(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Sequential(nn.Linear(2, 5), nn.SiLU(), nn.Linear(5, 2))

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
            value, push = torch.func.jvp(self.net, (x,), (x * 2,))
            return value, push, torch.func.vmap(torch.func.jacfwd(self.net))(x)

    torch.manual_seed(0)
    own = torch.func.jvp, torch.func.jacfwd
    model = Velocity().eval()
    other = prepared(model, PrepareGradients(), torch.randn(4, 2))
    program = torch.export.export(other, (torch.randn(4, 2),), dynamic_shapes=({0: MOVES},), strict=False)
    x = torch.randn(7, 2)
    torch.testing.assert_close(tuple(program.module()(x)), model(x))
    assert (torch.func.jvp, torch.func.jacfwd) == own


def test_a_gradient_is_found_in_a_forward_that_a_class_was_given_from_elsewhere() -> None:
    def forward(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_(True)
            return torch.autograd.grad(x.pow(2).sum(), x)[0]

    class Given(nn.Module):
        pass

    Given.forward = forward
    made = type("Made", (nn.Module,), {"forward": forward})  # has no source of its own at all
    for model in (Given(), made()):
        found = [f for f in prepare.survey(Flat(model), ()) if isinstance(f, GradientInside)]
        assert [f.code for f in found] == ["return torch.autograd.grad(x.pow(2).sum(), x)[0]"]


@pytest.mark.parametrize("layout", ["to_sparse", "to_sparse_csr"])
def test_sparse_constants_become_dense(layout: str) -> None:
    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("adjacency", getattr(torch.eye(4).roll(1, 0) * 0.5, layout)())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sparse.mm(self.adjacency, x) + torch.sparse.mm(self.adjacency, x).relu()

    model = Graph().eval()
    same(model, prepared(model, PrepareDense()), (torch.randn(4, 3),))
    assert model.adjacency.layout != torch.strided


def test_sparse_tensors_made_in_forward_become_dense() -> None:
    class Made(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            index = torch.tensor([[0, 1, 1, 1], [2, 0, 2, 2]])
            return torch.sparse.mm(torch.sparse_coo_tensor(index, torch.ones(4), (3, 3)).coalesce(), x)

    same(Made(), prepared(Made(), PrepareDense()), (torch.randn(3, 2),))


def test_parametrised_weights_are_computed_once_and_the_original_keeps_its_own() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.utils.parametrizations.orthogonal(nn.Linear(4, 4)), nn.utils.parametrizations.weight_norm(nn.Linear(4, 2))
    ).eval()
    other = prepared(model, PrepareBaked())
    same(model, other, (torch.randn(3, 4),))
    assert not any(nn.utils.parametrize.is_parametrized(m) for m in other.modules())
    assert all(nn.utils.parametrize.is_parametrized(m) for m in model)


PARTS = [PrepareDense(), PrepareEncoder(), PrepareBaked(), PrepareScript(), PrepareQuantised()]


@pytest.mark.parametrize("edit", PARTS, ids=lambda e: e.name)
def test_the_model_that_is_given_stays_as_it_was(edit: Prepare) -> None:
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(3, 3)), nn.LSTM(3, 2), torch.nn.Identity())
    model[2].table = torch.eye(2).to_sparse_csr()  # which cannot be copied
    model[2].child = torch.jit.script(nn.ReLU())
    model[0].register_forward_hook(lambda module, given, result: result * 2)
    flat = Flat(model.eval())
    flat.run = lambda tensors: flat.model[1](flat.model[0](tensors[0]))  # type: ignore[method-assign]
    kinds, state = [type(m) for m in flat.modules()], {k: id(v) for m in flat.modules() for k, v in vars(m).items()}
    prepare.apply(flat, (torch.randn(4, 2, 3),), [edit])
    assert [type(m) for m in flat.modules()] == kinds
    assert {k: id(v) for m in flat.modules() for k, v in vars(m).items()} == state
    assert all(p.requires_grad for p in flat.parameters())


class Scripted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rounds, self.linear = 2, nn.Linear(3, 3)

    def forward(self, x: torch.Tensor, scale: float = 0.5) -> torch.Tensor:
        parts: list[torch.Tensor] = []
        for k in range(self.rounds):
            parts.append(self.linear(x) * (k + 1))
        y = torch.stack(parts).sum(0)
        if x.size(0) > 100:
            y = y + 1
        if bool(y.mean() > 0):
            return y * scale
        return y - scale


def test_scripts_are_run_node_by_node_with_both_sides_of_branches_on_values() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), torch.jit.script(Scripted())).eval()
    other = prepared(model, PrepareScript())
    same(model, other, (torch.randn(2, 3),), (torch.full((4, 3), 9.0),), (torch.full((4, 3), -9.0),))
    program = torch.export.export(other, (torch.randn(2, 3),), dynamic_shapes=({0: MOVES},), strict=False)
    x = torch.full((5, 3), -4.0)
    torch.testing.assert_close(program.module()(x)[0], model(x))


def test_a_loaded_script_keeps_the_names_of_its_weights(tmp_path: Any) -> None:
    torch.jit.script(Scripted().eval()).save(str(tmp_path / "model.pt"))
    other = prepare.apply(Flat(torch.jit.load(str(tmp_path / "model.pt"))), (), [PrepareScript()])
    assert set(other.state_dict()) == {"model.linear.weight", "model.linear.bias"}


@pytest.mark.slow
def test_flex_attention_is_written_out_with_its_mask_and_its_changes_of_scores() -> None:
    class Attention(nn.Module):
        def forward(self, q: torch.Tensor) -> torch.Tensor:
            length = q.size(2)
            mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, length, length, device="cpu")
            return flex_attention(q, q * 0.5, q + 1, score_mod=lambda s, b, h, i, j: s - 0.1 * (i - j), block_mask=mask)

    torch.manual_seed(0)
    model, q = Attention().eval(), torch.randn(2, 2, 6, 4)
    with torch.no_grad():
        program = torch.export.export(model, (q,), dynamic_shapes=({0: MOVES, 2: MOVES},), strict=False)
        assert flex.is_used(program)
        revised = prepare.revise(program, [])
        assert not flex.is_used(revised)
        torch.testing.assert_close(revised.module(check_guards=False)(q), model(q))


def test_lines_that_need_preparation_are_found_in_the_users_source() -> None:
    class Steps(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows = torch.nested.nested_tensor([x])
            return rows.to_padded_tensor(0.0)

    found = [f for f in prepare.survey(Flat(Steps()), ()) if isinstance(f, NestedTensor)]
    assert [f.code for f in found] == ["rows = torch.nested.nested_tensor([x])", "return rows.to_padded_tensor(0.0)"]
    assert all(f.location and f.location.file == __file__ for f in found)
