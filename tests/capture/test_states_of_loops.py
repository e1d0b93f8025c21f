"""Loops and branches over states of several tensors, lists filled from the front or cut short, and rows written in part."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from bound import agrees, bound, healed
from torch import nn

import torchferry
from torchferry import eager

X = {0: {0: "batch", 1: "length"}}


class DictState(nn.Module):
    def forward(self, x):
        state, seen = {"fast": torch.zeros(x.size(0)), "slow": torch.zeros(x.size(0))}, []
        for i in range(x.size(1)):
            state["fast"] = 0.5 * state["fast"] + x[:, i]
            state["slow"] = 0.9 * state["slow"] + state["fast"]
            seen.append(state["slow"])
        return torch.stack(seen, 1)


class ListState(nn.Module):
    def forward(self, x):
        states, seen = [torch.zeros(x.size(0)) for _ in range(2)], []
        for t in range(x.size(1)):
            given = x[:, t]
            for k in range(2):
                states[k] = torch.tanh(given + states[k])
                given = states[k]
            seen.append(given)
        return torch.stack(seen, 1)


class FromTheFront(nn.Module):
    def forward(self, x):
        run, seen = torch.zeros(x.size(0)), []
        for t in reversed(range(x.size(1))):
            run = x[:, t] + 0.9 * run
            seen.insert(0, run)
        return torch.stack(seen, 1)


class CountedByHand(nn.Module):
    def forward(self, x):
        total, t = torch.zeros(x.size(0)), 0
        while t < x.size(1):
            total = total * 0.5 + x[:, t]
            t += 1
        return total


class Backwards(nn.Module):
    def forward(self, x):
        y, t = torch.zeros_like(x), x.size(1) - 1
        total = torch.zeros(x.size(0))
        while t >= 0:
            total = x[:, t] + 0.9 * total
            y[:, t] = total
            t -= 1
        return y


class PlainState(nn.Module):
    """The state is None at first, and a tuple once a recurrent layer gave it back."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.LSTMCell(1, 2)

    def forward(self, x):
        state = None
        for t in range(x.size(1)):
            h, c = self.cell(x[:, t : t + 1], state)
            state = (h, c)
        return h


@pytest.mark.parametrize(
    "model",
    [DictState(), ListState(), FromTheFront(), CountedByHand(), Backwards(), PlainState()],
    ids=lambda m: type(m).__name__,
)
def test_a_loop_keeps_its_meaning(model: nn.Module) -> None:
    with torch.no_grad():
        assert agrees(healed(bound(model, (torch.rand(2, 5),), X)), model, (torch.rand(3, 8),), (torch.rand(2, 2),))


class RowsInPart(nn.Module):
    def forward(self, x, lengths):
        mask, kept = torch.zeros(x.size(0), x.size(1)), torch.zeros_like(x)
        for i in range(x.size(0)):
            mask[i, : lengths[i]] = 1
        for i, n in enumerate(lengths):
            kept[i, n:] = x[i, n:] * 2
        return mask, kept, torch.stack([x[i, lengths[i] - 1] for i in range(x.size(0))])


def test_rows_are_written_as_far_as_values_say() -> None:
    calls = [(torch.rand(2, 6), torch.tensor([3, 6])), (torch.rand(3, 4), torch.tensor([1, 4, 2]))]
    step = healed(bound(RowsInPart(), calls[0], {**X, 1: {0: "batch"}}))
    assert agrees(step, RowsInPart(), *calls)


class UntilDone(nn.Module):
    def forward(self, x):
        seen = []
        for _ in range(5):
            x = x * 2
            seen.append(x)
            if x.max() > 3:
                break
        return torch.stack(seen, 1)


def test_a_list_ends_where_the_loop_was_left() -> None:
    calls = [(torch.tensor([0.5, 1.0]),), (torch.tensor([0.01, 0.02]),), (torch.tensor([9.0, 1.0]),)]
    assert agrees(healed(bound(UntilDone(), calls[0], {})), UntilDone(), *calls)


class ByTask(nn.Module):
    """`y` has no value before a round that sets it."""

    def forward(self, x, task):
        for i in range(3):
            if task == i:
                y = x * (i + 1)
        return y


class Together(nn.Module):
    def forward(self, x):
        out = {"y": x, "n": x.sum()}
        if out["n"] > 1:
            out["y"] = x * 2
        return out["y"], out["n"]


def test_a_name_that_only_one_side_sets_is_set_by_it() -> None:
    calls = [(torch.rand(2), torch.tensor(i)) for i in range(3)]
    assert agrees(healed(bound(ByTask(), calls[1], {})), ByTask(), *calls)


def test_a_branch_may_set_parts_of_a_dict() -> None:
    assert agrees(healed(bound(Together(), (torch.ones(3),), {})), Together(), (torch.ones(3),), (-torch.ones(3),))


class AtMost(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.places = nn.Parameter(torch.rand(8))

    def forward(self, x, n):
        n = int(n)
        if n > 8:  # noqa: PLR1730  (as people write it)
            n = 8
        k = n if n < x.size(1) else x.size(1)
        return x[:, :k] + self.places[:k]


def test_the_smaller_of_two_numbers_is_a_minimum() -> None:
    model = AtMost()
    calls = [(torch.rand(2, 5), torch.tensor(3)), (torch.rand(2, 9), torch.tensor(12)), (torch.rand(2, 4), torch.tensor(7))]
    assert agrees(healed(bound(model, calls[0], X)), model, *calls)


@pytest.mark.parametrize("model", [DictState(), UntilDone()], ids=lambda m: type(m).__name__)
def test_the_patch_applies_and_the_patched_model_needs_no_repair(model: nn.Module, tmp_path: Path, monkeypatch) -> None:
    example = (torch.rand(2, 4),) if isinstance(model, DictState) else (torch.tensor([0.5, 1.0]),)
    result = torchferry.export(model, example, check=False)
    file = tmp_path / Path(__file__).name
    file.write_text(Path(__file__).read_text())
    (tmp_path / "fix.patch").write_text(result.patch)
    subprocess.run(["patch", "-p1", "-i", "fix.patch"], cwd=tmp_path, check=True, capture_output=True)
    spec = importlib.util.spec_from_file_location("patched", file)
    monkeypatch.setitem(sys.modules, "patched", importlib.util.module_from_spec(spec))
    spec.loader.exec_module(sys.modules["patched"])
    patched = getattr(sys.modules["patched"], type(model).__name__)()
    with torch.no_grad(), eager.plainly():
        torch.testing.assert_close(patched(*example), model(*example))
    again = torchferry.export(patched, example, check=False, repair="off")
    assert again.ok, str(again)


def test_a_scan_of_several_tensors_runs_plainly_and_nothing_stays_behind() -> None:
    home = importlib.import_module("torch._higher_order_ops.scan")
    before = home._maybe_compile_and_run_fn

    def body(carry, x):
        return {"a": carry["a"] + x, "b": carry["b"] * x}, (carry["a"], x)

    with eager.plainly():
        carry, made = torch._higher_order_ops.scan(
            body, {"a": torch.zeros(2), "b": torch.ones(2)}, torch.arange(1, 4).float()[:, None].expand(3, 2), dim=0
        )
    assert carry["a"].tolist() == [6, 6]
    assert carry["b"].tolist() == [6, 6]
    assert made[0][:, 0].tolist() == [0, 1, 3]
    assert home._maybe_compile_and_run_fn is before
