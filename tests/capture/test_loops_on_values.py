"""Loops that go round as often as a value says, and loops over the items that values pick."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import torch
from bound import bound, captured
from torch import nn

import torchferry
from torchferry.capture.rewrites import sites
from torchferry.edits.capture import Site


class Counted(nn.Module):
    def forward(self, x, steps):
        for i in range(int(steps)):
            x = x * 0.5 + i
        return x


class Collected(nn.Module):
    def forward(self, x, steps):
        seen = []
        for _ in range(int(steps)):
            x = x * 0.5
            seen.append(x)
        return torch.stack(seen)


class Picked(nn.Module):
    """A mixture of experts that only runs those that some token chose."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.experts = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])

    def forward(self, x, route):
        out = torch.zeros_like(x)
        for e in route.unique().tolist():
            chosen = route == e
            out[chosen] = self.experts[e](x[chosen])
        return out


class Rows(nn.Module):
    """The same, with the numbers as rows of a tensor, and one number that stands for no expert."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weights = nn.Parameter(torch.rand(3, 2, 2))

    def forward(self, x, route):
        out = torch.zeros_like(x)
        hit = (nn.functional.one_hot(route, 4).sum(0) > 0).nonzero()
        for row in hit:
            row = row[0]  # noqa: PLW2901
            if row == 3:
                continue
            (place,) = torch.where(route == row)
            out.index_add_(0, place, x[place] @ self.weights[row])
        return out


class Settling(nn.Module):
    """Ends when nothing moves any more."""

    def forward(self, x):
        rounds = 0
        while True:
            new = (x * 0.5).round(decimals=2)
            rounds += 1
            if torch.equal(new, x) or rounds >= 20:
                break
            x = new
        return x + rounds


class Bytes(nn.Module):
    """`any` of bytes is a byte."""

    def forward(self, x):
        while (x < 1).byte().any():
            x = x * 1.5 + 0.1
        return x


class Numbers(nn.Module):
    """A list as long as a value says, of which single numbers are read."""

    def forward(self, x, ids):
        counts = torch.bincount(ids, minlength=3).tolist()
        return x * counts[0] + counts[1] - counts[2]


class Written(nn.Module):
    """Writes to slices that end and begin where a value says."""

    def forward(self, x, n):
        x, k = x.clone(), int(n)
        x[:, :k] = 0
        x[:, k:] += 1
        return x


def program(model: nn.Module, args: tuple[torch.Tensor, ...]):
    """Return the program that the rewrites found by the capture lead to."""
    case = bound(model, args, {})
    stopped = captured(case)
    found = next(f for f in stopped.findings if f.kind == "rewrites")
    with sites.applied(case.module, [Site(**s) for s in found.facts["sites"]]):
        from torchferry.capture import strategies
        from torchferry.capture.attempt import once

        return once(strategies.ordered()[0], case.module, case.args, case.dynamic_shapes).module()


@pytest.mark.parametrize("steps", [0, 1, 5])
def test_a_counted_loop_goes_round_as_often_as_the_value_says(steps: int) -> None:
    model, x = Counted(), torch.rand(2)
    made = program(model, (x, torch.tensor(3)))
    torch.testing.assert_close(made(x, torch.tensor(steps))[0], model(x, torch.tensor(steps)))


def test_what_a_counted_loop_collects_is_as_long_as_the_value_says() -> None:
    model, x = Collected(), torch.rand(2)
    made = program(model, (x, torch.tensor(3)))
    torch.testing.assert_close(made(x, torch.tensor(6))[0], model(x, torch.tensor(6)))


@pytest.mark.parametrize("model", [Settling(), Bytes()])
def test_a_loop_may_ask_for_equality_and_for_any_byte(model: nn.Module) -> None:
    made = program(model, (torch.rand(2),))
    for x in (torch.rand(2), torch.rand(2) * 30, torch.zeros(2)):
        torch.testing.assert_close(made(x)[0], model(x))


def test_numbers_read_from_a_list_may_as_well_be_read_from_a_tensor() -> None:
    x, ids = torch.rand(2), torch.tensor([0, 2, 1, 2])
    torch.testing.assert_close(program(Numbers(), (x, ids))(x, ids.flip(0) % 2)[0], Numbers()(x, ids.flip(0) % 2))


def test_a_slice_that_a_value_ends_can_be_written_to() -> None:
    step = captured(bound(Written(), (torch.rand(2, 5), torch.tensor(3)), {0: {0: "batch", 1: "length"}}))
    program = step.value.program.run_decompositions({}).module(check_guards=False)
    for n in (torch.tensor(0), torch.tensor(2), torch.tensor(5)):
        torch.testing.assert_close(program(torch.ones(2, 5), n)[0], Written()(torch.ones(2, 5), n))


@pytest.mark.parametrize("route", [[0, 2, 2, 0], [1, 1, 1, 1], [-1, 0, -3, 2]])
def test_all_experts_run_and_those_not_picked_leave_no_trace(route: list[int]) -> None:
    model, x = Picked(), torch.rand(4, 2)
    with torch.no_grad():
        made = program(model, (x, torch.tensor([0, 1, 2, 1])))
        torch.testing.assert_close(made(x, torch.tensor(route))[0], model(x, torch.tensor(route)))


@pytest.mark.parametrize("route", [[0, 2, 2, 0], [3, 1, 3, 3]])
def test_numbers_in_rows_pick_too_and_one_may_be_skipped(route: list[int]) -> None:
    model, x = Rows(), torch.rand(4, 2)
    with torch.no_grad():
        made = program(model, (x, torch.tensor([0, 1, 2, 3])))
        torch.testing.assert_close(made(x, torch.tensor(route))[0], model(x, torch.tensor(route)))


def test_a_file_with_a_loop_on_a_value_is_verified_and_offers_a_patch_that_applies(tmp_path: Path) -> None:
    result = torchferry.export(Counted().eval(), (torch.rand(2), torch.tensor(3)), check=False)
    assert result.ok
    assert [r.code for r in result.repairs] == ["CAP004"]
    assert "while_loop" in result.patch
    (tmp_path / Path(__file__).name).write_text(Path(__file__).read_text())
    (tmp_path / "fix.patch").write_text(result.patch)
    subprocess.run(["git", "apply", "fix.patch"], cwd=tmp_path, check=True)
    assert "torch._higher_order_ops.while_loop(going_" in (tmp_path / Path(__file__).name).read_text()
