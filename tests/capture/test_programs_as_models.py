"""A program that the user captured, as it is or from a .pt2 file, is a model like any other."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import torchferry


class Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x, scale=None):
        return self.fc(x).amax(1) * (1.0 if scale is None else scale)


def exported(model: object, args: tuple[torch.Tensor, ...]) -> torchferry.Result:
    return torchferry.export(model, args, check=False)


def assert_same(result: torchferry.Result, *sizes: tuple[int, ...], eager: nn.Module) -> None:
    assert result.ok, str(result)
    session = torchferry.InferenceSession(str(result.path))
    for size in sizes:
        x = torch.randn(*size)
        (got,) = session.run(None, result.feeds((x,), {}))
        torch.testing.assert_close(torch.from_numpy(got), eager(x), atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_a_program_with_a_size_that_moves_keeps_it() -> None:
    eager = Pooled().eval()
    moving = ({0: torch.export.Dim("batch", max=64), 1: torch.export.Dim("length", max=64)},)
    program = torch.export.export(eager, (torch.randn(2, 5, 3),), dynamic_shapes=moving)
    result = exported(program, (torch.randn(2, 5, 3),))
    assert_same(result, (2, 5, 3), (3, 9, 3), eager=eager)


@torch.no_grad()
def test_a_program_of_one_size_takes_that_size_alone() -> None:
    eager = Pooled().eval()
    result = exported(torch.export.export(eager, (torch.randn(2, 5, 3),)), (torch.randn(2, 5, 3),))
    assert_same(result, (2, 5, 3), eager=eager)
    assert result.ranges == {}


@torch.no_grad()
def test_a_program_read_from_a_file_is_converted_and_verified(tmp_path: Path) -> None:
    eager = Pooled().eval()
    moving = ({0: torch.export.Dim("batch", max=64)},)
    torch.export.save(torch.export.export(eager, (torch.randn(2, 5, 3),), dynamic_shapes=moving), tmp_path / "model.pt2")
    result = exported(torch.export.load(tmp_path / "model.pt2"), (torch.randn(2, 5, 3),))
    assert_same(result, (2, 5, 3), (4, 5, 3), eager=eager)
