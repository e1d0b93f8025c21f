"""The small values of a sigmoid, where they count."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from made import agree, case

from torchferry.translate import translate


def entropy(x: torch.Tensor) -> torch.Tensor:
    p = torch.sigmoid(x)
    return -(p * torch.log(p + 1e-12)).sum(-1)


def log_odds(x: torch.Tensor) -> torch.Tensor:
    return torch.log(torch.sigmoid(x).clamp(min=1e-30)[:, 1:])


def shares(x: torch.Tensor) -> torch.Tensor:
    p = torch.sigmoid(x)
    return p / p.sum(-1, keepdim=True)


def gated(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.glu(torch.cat([x.abs() * 1e6, x], -1))


@pytest.mark.parametrize("function", [entropy, log_odds, shares, gated])
def test_what_is_made_of_a_sigmoids_tail_is_as_in_eager(function: Any, tmp_path: Path) -> None:
    agree(function, (torch.linspace(-60.0, -15.0, 12).reshape(3, 4),), tmp_path)


def test_where_a_sigmoids_tail_does_not_count_it_stays_one_node(tmp_path: Path) -> None:
    step = translate(case(lambda x: x * torch.sigmoid(x) + torch.sigmoid(x) * torch.tanh(x), (torch.randn(3, 4),), tmp_path))
    assert Counter(node.op_type for node in onnx.load(step.value.path).graph.node)["Sigmoid"] == 1
