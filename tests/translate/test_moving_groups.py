"""Convolutions with as many groups as the batch has items, against eager, at the example's batch and at others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.translate.made import agree

F = torch.nn.functional
CONVOLUTIONS: dict[str, tuple[Callable[..., torch.Tensor], int, tuple[int, ...], dict[str, Any]]] = {
    "one axis": (F.conv1d, 1, (4, 3, 3), {}),
    "two axes": (F.conv2d, 2, (4, 3, 3, 2), {"stride": (2, 1), "padding": (1, 0), "dilation": 2}),
    "three axes": (F.conv3d, 3, (2, 3, 1, 2, 2), {"padding": 1}),
    "same": (F.conv2d, 2, (4, 3, 2, 3), {"padding": "same"}),
    "transposed": (F.conv_transpose2d, 2, (3, 4, 3, 3), {"stride": 2, "padding": 1, "output_padding": 1}),
    "transposed on one axis": (F.conv_transpose1d, 1, (3, 4, 4), {"stride": 3, "dilation": 2}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_weights_made_for_each_item_of_a_moving_batch(name: str, tmp_path: Path) -> None:
    convolve, axes, kernel, options = CONVOLUTIONS[name]

    def modulated(x: torch.Tensor, style: torch.Tensor) -> torch.Tensor:
        batch = x.shape[0]
        weight = torch.linspace(-1, 1, torch.Size(kernel).numel()).reshape(1, *kernel) * style.reshape(-1, *[1] * len(kernel))
        folded = x.reshape(1, -1, *x.shape[2:])
        result = convolve(folded, weight.reshape(-1, *kernel[1:]), groups=batch, **options)
        return result.reshape(batch, -1, *result.shape[2:])

    def inputs(batch: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(batch, 3, *(7, 6, 5)[:axes]), torch.randn(batch)

    agree(modulated, inputs(2), tmp_path, ({0: "b"}, {0: "b"}), others=[inputs(1), inputs(5)])


def test_the_kernel_may_move_as_well(tmp_path: Path) -> None:
    """As in a tracker: each picture is searched for a template of its own."""

    def correlate(x: torch.Tensor, template: torch.Tensor) -> torch.Tensor:
        result = F.conv2d(x.reshape(1, -1, *x.shape[2:]), template, groups=x.shape[0])
        return result.reshape(x.shape[0], -1, *result.shape[2:])

    def inputs(batch: int, height: int, width: int) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.randn(batch, 3, 8, 7), torch.randn(batch, 3, height, width)

    axes = {0: "b"}, {0: "b", 2: "h", 3: "w"}
    agree(correlate, inputs(2, 3, 4), tmp_path, axes, others=[inputs(1, 3, 3), inputs(3, 5, 2)])
