"""The tables inside of a module, and wrappers around one, as the door has them."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils import rnn

from torchferry.foreign import torch_modules as door


def test_the_tables_of_a_module_are_its_own() -> None:
    norm = nn.Sequential(nn.BatchNorm1d(2))
    assert door.children_of(norm) == {"0": norm[0]}
    parameters, buffers = door.tables_of(norm[0])
    assert (parameters, buffers) == (door.parameters_of(norm[0]), door.buffers_of(norm[0]))
    assert set(parameters) == {"weight", "bias"}
    assert door.BUFFERS in vars(norm[0])
    parameters["weight"] = nn.Parameter(torch.full((2,), 7.0))
    buffers["more"] = torch.zeros(1)
    assert norm[0].weight[0].item() == 7
    assert norm[0].more is buffers["more"]
    assert door.parameters_of(object()) == {}  # type: ignore[arg-type]


def test_a_module_that_saves_other_things_is_made_to_save_its_buffers() -> None:
    class Odd(nn.Linear):
        def _save_to_state_dict(self, destination: dict[str, object], prefix: str, keep_vars: bool) -> None:
            destination[prefix + "odd"] = 1

    layer = Odd(2, 2)
    assert set(layer.state_dict()) == {"odd"}
    layer.__class__ = door.saving_buffers(Odd)
    assert set(layer.state_dict()) == {"weight", "bias"}


def test_what_torch_compile_wraps_is_found_behind_it() -> None:
    layer = nn.ReLU()
    assert door.behind_compiled(torch.compile(layer)) is layer
    assert door.behind_compiled(torch.compile(sum_of)) is sum_of
    assert door.behind_compiled(layer) is None
    assert door.behind_compiled(sum_of) is None


def sum_of(x: torch.Tensor) -> torch.Tensor:
    return x.sum()


def test_the_method_of_a_call_is_known_by_its_name() -> None:
    layer = nn.ReLU()
    assert {layer.forward.__name__, layer.__call__.__name__, nn.Module.__call__.__name__} <= set(door.FORWARDS)


def test_layers_that_act_in_training_are_known_by_their_bases() -> None:
    assert all(isinstance(part, door.ACTS_IN_TRAINING) for part in (nn.Dropout(), nn.Dropout2d(), nn.BatchNorm2d(2), nn.RReLU()))
    assert not isinstance(nn.LayerNorm(2), door.ACTS_IN_TRAINING)
    assert isinstance(nn.BatchNorm3d(2), door.BatchNorm)


def test_distributions_do_not_check_their_arguments_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", True)  # torch's compiler turns it off when it is used
    with door.unvalidated_distributions():
        torch.distributions.Normal(0.0, -1.0)
    with pytest.raises(ValueError, match="scale"):
        torch.distributions.Normal(0.0, -1.0)


def test_sequences_are_packed_and_unpacked_by_the_functions_given() -> None:
    def pack(input: torch.Tensor, lengths: torch.Tensor, batch_first: bool) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.tensor([42.0]), torch.tensor([1])

    def unpack(data: torch.Tensor, sizes: torch.Tensor, batch_first: bool, value: float, total: int) -> tuple[torch.Tensor, ...]:
        return data + 1, torch.tensor([1])

    with door.packed_by(pack, unpack):
        packed = rnn.pack_padded_sequence(torch.ones(2, 1, 1), torch.tensor([2]))
        assert packed.data.item() == 42
        assert rnn.pad_packed_sequence(packed)[0].item() == 43
    assert rnn.pack_padded_sequence(torch.ones(2, 1, 1), torch.tensor([2])).data.shape == (2, 1)
