"""What the sizes that were tried suggest, and the user's own examples refute, is let go of."""

from __future__ import annotations

import torch
from torch import nn

import torchferry
from torchferry.inputs.sizes.bounds import Span
from torchferry.inputs.sizes.by_examples import let_go, widened
from torchferry.inputs.sizes.search_state import Ties

CALLS = [((2, 4), (2, 2)), ((2, 5), (2, 3))]


def suggested() -> Ties:
    sizes = {(0, 0): "r0", (1, 0): "r0", (0, 1): "2*r1", (1, 1): "r1"}
    return Ties(CALLS[0], {"r0": 2, "r1": 2}, dict(sizes), {"r1": 2})


def test_a_tie_and_a_step_that_an_example_refutes_are_let_go_of() -> None:
    ties = suggested()
    let_go(ties, CALLS)
    assert ties.sizes == {(0, 0): "r0", (1, 0): "r0", (1, 1): "r1"}
    assert not ties.steps
    assert ties.shown == {"r1": (2, 3)}


def test_a_size_goes_as_far_as_the_examples_show() -> None:
    assert widened(Span(2, 2, "refused"), "r1", suggested(), CALLS).high == 3
    assert widened(Span(1, 9, "a table"), "r1", suggested(), CALLS) == Span(1, 9, "a table")
    assert widened(Span(1), "r1", suggested(), CALLS) == Span(1)


class Placed(nn.Module):
    """As many pictures as there are places for them in the text, which no made-up call has at other sizes."""

    def forward(self, ids, pictures):
        if int((ids == 9).sum()) != pictures.shape[0]:
            raise ValueError("pictures and places do not match")
        words = ids.float().unsqueeze(-1).expand(-1, 2)
        return words.masked_scatter((ids == 9).unsqueeze(-1).expand(-1, 2), pictures)


def test_examples_of_other_sizes_than_any_made_up_call_are_taken() -> None:
    calls = [(torch.tensor([1, 9, 9, 2]), torch.rand(2, 2)), (torch.tensor([9, 9, 3, 9, 4]), torch.rand(3, 2))]
    result = torchferry.export(Placed().eval(), calls[0], examples=calls[1:])
    session = torchferry.InferenceSession(str(result.path))
    for call in calls:
        (got,) = session.run(None, result.feeds(call, {}))
        assert torch.equal(torch.from_numpy(got), Placed()(*call))
