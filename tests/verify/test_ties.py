"""Equal keys come in any order: what follows from that order is no fault of the file; what does not follow from it is."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from crossing import crossed, errors, stock, verdict
from torch import nn


class Peaks(nn.Module):
    """Where the highest numbers stand, as rows and columns; which of several equals is picked, torch leaves open."""

    def __init__(self, swapped: bool = False, lowest: bool = False):
        super().__init__()
        self.swapped, self.lowest = swapped, lowest

    def forward(self, x):
        i = x.flatten(1).topk(5, largest=not self.lowest).indices
        places = (i // 6, i % 6) if self.swapped else (i % 6, i // 6)
        return torch.stack(places, -1)


MOSTLY_ZERO = torch.zeros(3, 4, 6)
MOSTLY_ZERO[:, 2, 3], MOSTLY_ZERO[:, 1, 1] = 3.0, 2.0


def test_numbers_that_follow_from_the_order_of_equal_keys_are_told_as_such(tmp_path: Path) -> None:
    result = crossed(Peaks(), (MOSTLY_ZERO,), tmp_path)
    assert result.ok, [(d.code, d.message) for d in result.diagnoses]
    assert {t.outcome for t in result.trials if t.values == "example"} <= {"agree", "tie-order"}


def test_numbers_that_do_not_follow_from_it_are_wrong(tmp_path: Path) -> None:
    for n, twin in enumerate((Peaks(swapped=True), Peaks(lowest=True))):
        assert errors(verdict(Peaks(), (MOSTLY_ZERO,), stock(twin, (MOSTLY_ZERO,), tmp_path / f"{n}.onnx")))


class Reranked(nn.Module):
    """What is sorted along with its keys: the same rows, in an order that nobody asked for."""

    def __init__(self, fault: str = ""):
        super().__init__()
        self.fault = fault

    def forward(self, scores, rows):
        best = scores.topk(6, largest=self.fault != "ascending").indices
        found = rows[best]
        return found.flip(0) if self.fault == "reversed" else found.flip(1) if self.fault == "turned" else found


def test_the_same_numbers_in_another_order_are_no_tie_unless_equal_keys_say_so(tmp_path: Path) -> None:
    for example in ((torch.randn(12), torch.randn(12, 2)), (torch.randint(0, 3, (12,)).float(), torch.randn(12, 2))):
        assert verdict(Reranked(), example, stock(Reranked(), example, tmp_path / "same.onnx")).ok
        for fault in ("ascending", "reversed", "turned"):
            assert errors(verdict(Reranked(), example, stock(Reranked(fault), example, tmp_path / "m.onnx"))), fault


class First(nn.Module):
    """The first of several equals, as `argmax` is documented to give it."""

    def __init__(self, last: bool):
        super().__init__()
        self.last = last

    def forward(self, ids):
        hits = (ids == 2).int()
        return ids.shape[1] - 1 - hits.flip(1).argmax(1) if self.last else hits.argmax(1)


def test_the_last_of_several_equals_is_not_the_first(tmp_path: Path) -> None:
    example = (torch.tensor([[5, 2, 7, 2, 9], [3, 4, 2, 2, 5]]),)
    assert verdict(First(False), example, stock(First(False), example, tmp_path / "first.onnx")).ok
    assert errors(verdict(First(False), example, stock(First(True), example, tmp_path / "last.onnx")))


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


class Topmost(nn.Module):
    """The places of the best: of softmax's tails that vanish, of a sigmoid that is full, of whole numbers."""

    def __init__(self, keys: str, lowest: bool = False):
        super().__init__()
        self.keys, self.lowest = keys, lowest
        self.score = nn.Linear(8, 7)

    def forward(self, x):
        scores = self.score(x)
        if self.keys == "whole":
            scores = (3 * scores).round().long()
        else:
            scores = scores.softmax(-1) if self.keys == "softmax" else scores.sigmoid()
        return scores.topk(3, largest=not self.lowest).indices


@pytest.mark.parametrize("keys", ["softmax", "sigmoid", "whole"])
def test_keys_that_are_equal_but_for_rounding_or_underflow_come_in_any_order(keys: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, example = Topmost(keys).eval(), (torch.randn(3, 5, 8),)
    axes = {"x": {0: "b", 1: "n"}}
    assert verdict(model, example, stock(model, example, tmp_path / "same.onnx", axes)).ok
    twin = Topmost(keys, lowest=True).eval()
    twin.load_state_dict(model.state_dict())
    assert errors(verdict(model, example, stock(twin, example, tmp_path / "lowest.onnx", axes)))


class Nucleus(nn.Module):
    """The likeliest until they make up nine tenths: which of several equally likely ones are kept, torch leaves open."""

    def __init__(self, share: float = 0.9) -> None:
        super().__init__()
        self.share = share

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        likely, at = logits.softmax(-1).sort(-1, descending=True)
        likely = likely * ((likely.cumsum(-1) - likely) < self.share)
        return torch.zeros_like(logits).scatter(-1, at, likely / likely.sum(-1, keepdim=True))


def test_keys_that_were_computed_are_equal_by_accident(tmp_path: Path) -> None:
    torch.manual_seed(0)
    example, axes = (torch.randn(3, 12),), {"logits": {0: "batch", 1: "words"}}
    result = verdict(Nucleus(), example, stock(Nucleus(), example, tmp_path / "same.onnx", axes))
    assert not errors(result), [(d.code, d.message) for d in result.diagnoses]
    assert "tie-order" in {t.outcome for t in result.trials}
    assert errors(verdict(Nucleus(), example, stock(Nucleus(0.88), example, tmp_path / "other.onnx", axes)))


class MostFrequent(nn.Module):
    def __init__(self, largest: bool = True) -> None:
        super().__init__()
        self.largest = largest

    def forward(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        counts = nn.functional.one_hot(tokens, 50).sum(1).float()
        return tuple(counts.topk(5, largest=self.largest))


def test_a_file_that_picks_among_equals_in_most_calls_is_right_if_it_gives_the_same_for_eagers_picks(tmp_path: Path) -> None:
    torch.manual_seed(0)
    example, axes = (torch.randint(0, 50, (2, 20)),), {"tokens": {0: "batch", 1: "words"}}
    result = verdict(MostFrequent(), example, stock(MostFrequent(), example, tmp_path / "same.onnx", axes))
    assert not errors(result), [(d.code, d.message) for d in result.diagnoses]
    assert "tie-order" in {t.outcome for t in result.trials}
    assert errors(verdict(MostFrequent(), example, stock(MostFrequent(largest=False), example, tmp_path / "other.onnx", axes)))
