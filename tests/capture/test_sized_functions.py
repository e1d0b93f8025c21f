"""Functions of torch that want a plain number, given a size that moves: the program is right at other sizes too."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from bound import agrees, bound, captured
from torch import Tensor
from torch.nn import functional as F

FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "the largest of all": lambda x: F.max_pool1d(x, x.size(2)),
    "the mean of all": lambda x: F.avg_pool2d(x, x.shape[1:]),
    "the largest of windows": lambda x: F.max_pool1d(x, x.size(2) // 2, stride=1),
    "bins as many as rows": lambda x: F.adaptive_avg_pool1d(x, x.size(1)),
    "windows": lambda x: x.unfold(2, x.size(1) - 1, 2),
    "repeats": lambda x: x.repeat_interleave(x.size(1), dim=2) + torch.repeat_interleave(x, x.size(1), -1),
    "a root": lambda x: x ** (1 / x.size(2)) + torch.pow(x, x.size(1)),
    "a quantile": lambda x: x.quantile(1 / x.size(2), dim=-1),
    "hann": lambda x: x * torch.hann_window(x.size(2)),
    "hamming": lambda x: x * torch.hamming_window(x.size(2), False, 0.6, 0.4),
    "blackman": lambda x: x * torch.blackman_window(x.size(2)),
    "bartlett": lambda x: x * torch.bartlett_window(x.size(2), periodic=False),
    "kaiser": lambda x: x * torch.kaiser_window(x.size(2), True, 6.0),
    "a transform of another length": lambda x: torch.view_as_real(torch.fft.rfft(x, 5)),
    "transforms of other lengths": lambda x: torch.fft.hfftn(torch.complex(x, x * 2), (3, -1, 8)),
    "windows as many as are not named": lambda x: F.adaptive_max_pool2d(x, (None, 2)),
    "places of the largest": lambda x: F.adaptive_max_pool2d(x, (x.size(1), None), return_indices=True)[1],
    "a chain of products": lambda x: torch.linalg.multi_dot([x[0], x[-1].t(), x[0]]),
    "as many classes as there are": lambda x: F.one_hot((x * 5).long()),
    "norms of matrices": lambda x: torch.linalg.matrix_norm(x, 2) + torch.linalg.norm(x[0], -1),
    "kron": lambda x: torch.kron(x[0, :2], x[-1, :, :3]),
    "picked round": lambda x: torch.take_along_dim(x, torch.tensor([[[7], [-1]]]), dim=1),
    "picked": lambda x: torch.take_along_dim(x, x.argsort(-1)[:, :1, :2], dim=-1),
    "pixels": lambda x: F.affine_grid(x[:, :2, :3], [x.size(0), 1, x.size(1), x.size(2)], align_corners=False),
    "corners": lambda x: F.affine_grid(x[:, :2, :3], [x.size(0), 1, x.size(2), x.size(1)], align_corners=True),
}


class Function(torch.nn.Module):
    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_size_that_moves_may_be_given_where_torch_wants_a_number(name: str) -> None:
    model = Function(FUNCTIONS[name])
    step = captured(bound(model, (torch.rand(2, 4, 7),), {0: {0: "batch", 1: "rows", 2: "columns"}}))
    assert agrees(step, model, (torch.rand(2, 4, 7),), (torch.rand(3, 5, 12),), (torch.rand(1, 2, 3),))


def test_a_single_point_is_a_window_of_one() -> None:
    model = Function(lambda x: x * torch.hann_window(x.size(2)))
    step = captured(bound(model, (torch.rand(2, 4, 7),), {0: {0: "batch", 1: "rows", 2: "columns"}}))
    assert agrees(step, model, (torch.rand(1, 1, 1),))
