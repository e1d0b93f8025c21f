"""What to do is said with the names that are there, and on the machine that there is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torchferry
from torchferry.catalogue.capture.number_from_tensor import _stated


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("count = x.sum().item()", "as in `torch._check(count <= x.size(1))`"),
        ("return x * len('x' * int(x.argmax()))", "take the number into a variable of its own"),
        ("for i in range(int(n)):", "take the number into a variable of its own"),
        ("self.n = x.item()", "take the number into a variable of its own"),
    ],
)
def test_a_number_is_spoken_of_by_its_own_name(line: str, advice: str) -> None:
    assert advice in _stated(line)


def only_error(model: nn.Module, *args: torch.Tensor) -> torchferry.Diagnosis:
    result = torchferry.export(model, args, check=False, repair="off")
    (found,) = (d for d in result.diagnoses if d.severity == "error")
    return found


def test_a_model_without_values_is_not_advised_to_be_moved() -> None:
    found = only_error(nn.Linear(4, 2, device="meta").eval(), torch.rand(2, 4))
    assert found.code == "INP005"
    assert "to_empty" in found.help
    assert ".cpu()" not in found.help


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA to be asked for")
def test_a_device_that_is_not_there_is_not_the_examples_fault() -> None:
    class Asks(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.ones(3, device="cuda")

    found = only_error(Asks(), torch.rand(3))
    assert found.code == "INP001"
    assert "device=x.device" in found.help
