"""Which trials are made: guard-breaking sizes first, within the promised range, the same for the same seed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from crossing import crossed, stock, verdict
from torch import nn

from torchferry.records import Bound, Dim, Guard, Signature, TensorSpec
from torchferry.verify.trials.landmarks import landmarks
from torchferry.verify.trials.plans import TrialPlan, candidates, example_sizes, plans


def vary(sizes: dict[str, int], values: str, seed: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(2, {"length": 5, **sizes}["length"], generator=torch.Generator().manual_seed(seed)),)


def bound(low: int = 1, high: int | None = None, step: int = 1) -> Bound:
    signature = Signature((TensorSpec("x", "float32", (2, "length")),), (Dim("length", low, high, step),))
    return Bound(nn.Identity(), (torch.randn(2, 5),), signature, ("y",), None, vary, dict, roles={"x": "float"})


def test_the_example_comes_first_and_then_what_breaks_a_guard() -> None:
    made = list(plans(bound(), (Guard("length < 10"),), seed=0))
    assert [(p.values, p.level) for p in made[:2]] == [("example", "all"), ("example", "none")]
    assert made[2].sizes["length"] >= 10
    assert made[2].why == "length < 10"


def test_the_same_seed_makes_the_same_trials() -> None:
    one, two = ([p.title for p in plans(bound(), (), seed=3)] for _ in range(2))
    assert one == two


def test_sizes_stay_within_the_promised_range_and_step() -> None:
    sizes = candidates(Dim("length", 4, 40, 4), 8, [10, 100])
    assert sizes
    assert all(4 <= s <= 40 and s % 4 == 0 and s != 8 for s in sizes)
    assert 40 in sizes


def test_one_below_and_one_above_each_landmark_are_tried() -> None:
    assert {29, 30, 31} <= set(candidates(Dim("length", 1), 5, [30]))


def test_sizes_move_one_at_a_time_and_together() -> None:
    two = replace(
        bound(),
        signature=Signature((TensorSpec("x", "float32", ("batch", "length")),), (Dim("batch", 1), Dim("length", 1))),
    )
    moved = [frozenset(p.sizes) for p in plans(two, (), seed=0) if p.values == "random"]
    assert {frozenset({"batch"}), frozenset({"length"}), frozenset({"batch", "length"})} <= set(moved)
    alone = {p.sizes["length"] for p in plans(two, (), seed=0) if set(p.sizes) == {"length"} and p.values == "random"}
    assert {1, 2, 4, 6, 10, 16} <= alone


def test_all_ways_to_fill_that_are_promised_are_among_the_trials() -> None:
    floats = {"random", "scaled", "offset", "constant", "negative", "zero-rows", "ties", "large", "tiny", "nan", "inf", "-inf"}
    integers = {"duplicates", "zeros", "negative", "negative-ids", "max-id"}
    masks = {"all-ones", "right-padded", "left-padded", "one-valid", "empty-row", "random-mask", "short-lengths"}
    assert floats | integers | masks <= {p.values for p in plans(bound(), (), seed=0)}


def test_an_empty_past_is_tried_where_it_is_promised() -> None:
    assert candidates(Dim("past", 0), 4, [])[0] == 0
    assert 0 not in candidates(Dim("length", 1), 4, [])


def test_sizes_of_the_example_are_read_from_the_signature() -> None:
    assert example_sizes(bound()) == {"length": 5}


def test_one_input_alone_can_be_unusual() -> None:
    plain, odd = TrialPlan({}, "random", 1).args(bound()), TrialPlan({}, "zeros", 1, only="other").args(bound())
    assert torch.equal(plain[0], odd[0])


def test_integers_of_guards_comparisons_and_tables_are_landmarks() -> None:
    class Windowed(nn.Module):
        def __init__(self):
            super().__init__()
            self.window = 7
            self.positions = nn.Embedding(33, 4)

        def forward(self, x):
            return x if x.shape[1] > 12 else -x

    found = landmarks(Windowed(), (Guard("length > 21"),))
    assert found[0] == 21
    assert {7, 12, 33} <= set(found)


class Clamped(nn.Module):
    def __init__(self, rows: int, cut: bool = False):
        super().__init__()
        self.cut = cut
        self.register_buffer("table", torch.arange(21.0).reshape(7, 3) if rows else None)

    def forward(self, ids):
        clamped = (ids.int() if self.cut else ids).clamp(0, 6).long()
        return clamped * 2 if self.table is None else self.table[clamped]


@pytest.mark.parametrize("rows", [7, 0])
def test_a_file_that_cuts_ids_to_32_bits_is_caught_with_a_table_or_without(rows: int, tmp_path: Path) -> None:
    example = (torch.randint(0, 7, (2, 4)),)
    assert crossed(Clamped(rows), example, tmp_path).ok
    wrong = verdict(Clamped(rows), example, stock(Clamped(rows, cut=True), example, tmp_path / "cut.onnx"))
    assert "big-ids" in {t.values for t in wrong.trials if t.outcome == "differ"}


class Between(nn.Module):
    """How far between two of some sorted numbers others lie, up to a number."""

    def __init__(self, counted: bool):
        super().__init__()
        self.counted = counted

    def forward(self, edges, x):
        right = (edges < x[..., None]).sum(-1) if self.counted else torch.searchsorted(edges, x)
        right = right.clamp(1, edges.shape[0] - 1)
        return (x.clamp(max=0.7) - edges[right - 1]) / (edges[right] - edges[right - 1])


def test_numbers_that_are_searched_by_halving_stay_sorted_where_all_inputs_are_drawn_at_once(tmp_path: Path) -> None:
    example = (torch.linspace(-1, 1, 8), torch.randn(3, 5))
    path = stock(Between(counted=True), example, tmp_path / "m.onnx", {"edges": {0: "n"}, "x": {0: "b"}})
    result = verdict(Between(counted=False), example, path)
    assert result.ok, [(d.code, d.message) for d in result.diagnoses]
    assert {t.outcome for t in result.trials if t.values == "pooled"} == {"agree"}
