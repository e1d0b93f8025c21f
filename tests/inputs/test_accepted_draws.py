"""Where a model refuses free draws, others are made that it takes: they keep what holds of the example, and differ from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from torchferry.inputs import bind
from torchferry.inputs.values.draws import DRAWS, candidates
from torchferry.records import Bound, Case, Job


def bound(model: Callable[..., Any], *example: torch.Tensor) -> Bound:
    step = bind(Case(Job(model, example)))
    assert step.fault is None, step.fault
    return step.value


def strict(holds: Callable[[torch.Tensor], Any]) -> Callable[[torch.Tensor], torch.Tensor]:
    def model(x: torch.Tensor) -> torch.Tensor:
        if not bool(torch.as_tensor(holds(x)).all()):
            raise ValueError("that is none")
        return x * 2

    return model


ORTHOGONAL = torch.eye(3).expand(2, 3, 3).clone()
WANTS: dict[str, tuple[Callable[[torch.Tensor], Any], torch.Tensor]] = {
    "same-norm": (lambda x: (x.norm(dim=-1) - 1).abs() < 1e-4, torch.tensor([[1.0, 0, 0, 0]] * 3)),
    "same-sum": (lambda x: ((x.sum(-1) - 1).abs() < 1e-4) & (x >= 0).all(-1), torch.tensor([[0.5, 0.25, 0.25], [0.2, 0.2, 0.6]])),
    "symmetric": (lambda x: (x - x.mT).abs() < 1e-6, torch.tensor([[[1.0, -2.0], [-2.0, -1.0]]] * 2)),
    "orthogonal": (lambda x: (x @ x.mT - torch.eye(3)).abs() < 1e-4, ORTHOGONAL),
    "positive-definite": (lambda x: torch.linalg.eigvalsh(x) > 0, torch.tensor([[[2.0, 0.5], [0.5, 1.0]]] * 2)),
    "triangular": (lambda x: x.triu(1) == 0, torch.randn(2, 3, 3).tril()),
    "sorted": (lambda x: x.diff(dim=-1) >= 0, torch.randn(3, 5).sort(-1).values),
    "one-hot": (lambda x: ((x == 1).sum(-1) == 1) & ((x == 0).sum(-1) == 3), torch.eye(4)[:3]),
    "whole": (lambda x: (x == x.round()) & (x >= 0) & (x < 5), torch.tensor([[0.0, 4.0, 2.0], [3.0, 1.0, 1.0]])),
    "within": (lambda x: x.abs() <= 1, torch.tensor([[-1.0, 1.0, 0.3], [0.0, 0.5, -0.7]])),
    "columns": (
        lambda x: (x[:, 0] == x[:, 0].round()) & (x[:, 0] >= 0) & (x[:, 0] < 4),
        torch.cat([torch.tensor([[0.0], [3.0], [1.0]]), torch.randn(3, 2)], -1),
    ),
}


@pytest.mark.parametrize("draw", WANTS)
def test_draws_that_keep_what_holds_of_the_example_are_found_at_other_sizes_too(draw: str) -> None:
    holds, example = WANTS[draw]
    assert draw in candidates(example)
    found = bound(strict(holds), example)
    batch = found.signature.inputs[0].shape[0]
    for seed in range(5):
        for sizes in ({}, {batch: 7}):
            (made,) = found.vary(sizes, "random", seed)
            assert bool(torch.as_tensor(holds(made)).all())
            assert made.shape[0] == sizes.get(str(batch), example.shape[0])
    assert len({tuple(found.vary({}, "random", s)[0].flatten().tolist()) for s in range(5)}) > 1


def test_free_draws_that_the_model_takes_stay_free() -> None:
    found = bound(lambda x: x * 2, torch.eye(4)[:3])
    assert not bool((found.vary({}, "random", 1)[0] == 0).all())
    assert len(found.vary({}, "random", 1)[0].unique()) > 6


def test_rows_of_several_inputs_that_belong_together_stay_together() -> None:
    def model(scores: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        if bool((scores.argmax(-1) != label).any()):
            raise ValueError("the label is another")
        return scores * 2

    scores = torch.tensor([[3.0, 1, 0], [0, 2, 1], [1, 0, 2], [5, 0, 1]])
    found = bound(model, scores, scores.argmax(-1))
    drawn = [found.vary({}, "random", s) for s in range(4)]
    assert all(bool((given.argmax(-1) == label).all()) for given, label in drawn)
    assert len({tuple(label.tolist()) for _, label in drawn}) > 1


def test_no_draw_is_made_up_for_numbers_that_are_not_finite() -> None:
    assert set(candidates(torch.tensor([[0.0, float("-inf")]]))) <= set(DRAWS)
    assert candidates(torch.tensor(float("nan"))) == []
