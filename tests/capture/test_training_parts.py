"""Which parts of a model act otherwise in training: each is told with its place, also where no capture comes of it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from torchferry.capture.survey import of_module
from torchferry.inputs import bind
from torchferry.records import Case, Job
from torchferry.records.findings import PartInTraining


@pytest.mark.parametrize(
    ("part", "acts"),
    [
        (nn.GRU(4, 4, 2, batch_first=True, dropout=0.5), True),
        (nn.GRU(4, 4, 2, batch_first=True), False),
        (nn.TransformerDecoderLayer(4, 2, 8, dropout=0.0, batch_first=True).self_attn, False),
        (nn.MultiheadAttention(4, 2, dropout=0.1, batch_first=True), True),
        (nn.Linear(4, 4), False),
    ],
)
def test_a_part_with_a_dropout_of_its_own_is_training(part: nn.Module, acts: bool) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = part

        def forward(self, x):
            return self.part(x, x, x)[0] if isinstance(self.part, nn.MultiheadAttention) else self.part(x)

    found = list(of_module(bind(Case(Job(Model().train(), (torch.ones(2, 3, 4),)))).value))
    assert [f.path for f in found if isinstance(f, PartInTraining)] == (["part"] if acts else [])
    settled = of_module(bind(Case(Job(Model().eval(), (torch.ones(2, 3, 4),)))).value)
    assert not [f for f in settled if isinstance(f, PartInTraining)]
