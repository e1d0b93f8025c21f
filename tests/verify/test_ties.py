"""Equal keys come in any order: what follows from that order is no fault of the file; what does not follow from it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from crossing import errors, stock, verdict
from torch import nn

from torchferry.records import Bound, Fault, Signature, TensorSpec, Tolerance, Translated
from torchferry.verify.judge.excuses.lowest_first import LowestFirst
from torchferry.verify.judge.model_traits import nature
from torchferry.verify.judge.trial import Bench, judge
from torchferry.verify.run.both_sides import Sides
from torchferry.verify.run.eager_trace import record
from torchferry.verify.trials.plans import Plan


class Peaks(nn.Module):
    """Where the highest numbers stand, as rows and columns."""

    def __init__(self, width: int = 6):
        super().__init__()
        self.width, self.gain = width, nn.Parameter(torch.ones(1))

    def forward(self, x):
        i = (x * self.gain).flatten(1).topk(5).indices
        return torch.stack((i % self.width, i // self.width), -1)


class Flat(nn.Module):
    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, *args):
        return (self.model(*args),)


def outcome(model: nn.Module, example: torch.Tensor, got: np.ndarray) -> str:
    """Return how a file that gives `got` is judged."""

    class Given(Sides):
        def run(self, args, session=None) -> list[np.ndarray] | Fault:
            return [got]

    flat = Flat(model)
    bound = Bound(flat, (example,), Signature((TensorSpec("x", "float32", ()),), ()), ("y",), None, lambda *_: (example,), dict)
    sides = Given(bound, Translated(Path("m.onnx"), 18, (), ()), None, "", (0,))
    bench = Bench(sides, Tolerance(1e-5, 1e-5, ""), nature(flat, record(flat, (example,)).notes, (False,)))
    return judge(bench, Plan({}, "example", given=(example,)), (example,)).trial.outcome


MOSTLY_ZERO = torch.zeros(1, 4, 6)
MOSTLY_ZERO[0, 2, 3], MOSTLY_ZERO[0, 1, 1] = 3.0, 2.0


def test_numbers_that_follow_from_the_order_of_equal_keys_are_told_as_such() -> None:
    lowest = np.array([[[3, 2], [1, 1], [0, 0], [1, 0], [2, 0]]])  # onnx: of equal keys the lower index comes first
    eager = Peaks()(MOSTLY_ZERO).detach().numpy()
    assert outcome(Peaks(), MOSTLY_ZERO, lowest) == ("agree" if np.array_equal(eager, lowest) else "tie-order")
    with LowestFirst():
        assert np.array_equal(Peaks()(MOSTLY_ZERO).detach().numpy(), lowest)


def test_numbers_that_do_not_follow_from_it_are_wrong() -> None:
    swapped = np.array([[[2, 3], [1, 1], [0, 0], [0, 1], [0, 2]]])
    assert outcome(Peaks(), MOSTLY_ZERO, swapped) == "differ"


def test_every_op_that_picks_prefers_the_lower_index() -> None:
    keys = torch.tensor([[1.0, 2.0, 2.0, 0.0, 0.0, 2.0]])
    with LowestFirst():
        assert keys.topk(2).indices.tolist() == [[1, 2]]
        assert keys.sort(descending=True).indices.tolist() == [[1, 2, 5, 0, 3, 4]]
        assert keys.argmax(-1).tolist() == [1]
        assert int(keys.argmin()) == 3
        assert keys.max(-1).indices.tolist() == [1]
        assert keys.min(-1, keepdim=True).indices.tolist() == [[3]]
        assert float(keys.max()) == 2.0
        assert torch.equal(keys.topk(3, largest=False).values, torch.tensor([[0.0, 0.0, 1.0]]))


class Nearest(nn.Module):
    """The nearest of some centres, and the centres' mean if it is the first: made of distances, not of the input itself."""

    def __init__(self, last: bool):
        super().__init__()
        self.last = last
        self.register_buffer("centres", torch.tensor([[0.0, 0.0], [4.0, 4.0], [-4.0, 4.0]]))

    def forward(self, x):
        away = ((x[:, None] - self.centres) ** 2).sum(-1)
        return 2 - away.flip(1).argmin(1) if self.last else away.argmin(1)


def test_a_choice_among_computed_infinities_is_nobodys_business(tmp_path: Path) -> None:
    example = (torch.randn(5, 2) + 0.1,)
    result = verdict(Nearest(last=False), example, stock(Nearest(last=True), example, tmp_path / "m.onnx"))
    strange = {t.outcome for t in result.trials if t.values in ("inf", "-inf")}
    assert "differ" not in strange
    assert strange & {"beyond-range", "tie-order"}


class Smallest(nn.Module):
    def __init__(self, last: bool):
        super().__init__()
        self.last = last

    def forward(self, x):
        return 3 - x.flip(1).argmin(1) if self.last else x.argmin(1)


def test_a_choice_among_an_inputs_own_infinities_is_judged(tmp_path: Path) -> None:
    example = (torch.randn(5, 4),)
    result = verdict(Smallest(last=False), example, stock(Smallest(last=True), example, tmp_path / "m.onnx"))
    assert errors(result)
