"""Complex numbers over their parts, against eager: at the example's sizes and at others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.translate.made import agree

F = torch.nn.functional
BOTH = {0: "b", 1: "n"}


def r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def written(z: torch.Tensor) -> torch.Tensor:
    z = z.clone()
    z[:, 0] = z[:, 0] * 2
    z[:, 1:] += 1j
    return z


def turned(z: torch.Tensor) -> torch.Tensor:
    """Rotary embeddings by complex multiplication."""
    angles = torch.outer(torch.arange(z.shape[0]), 0.1 ** torch.arange(2))
    pairs = torch.view_as_complex(torch.stack([z.real, z.imag, z.imag, z.real], -1).reshape(*z.shape, 2, 2))
    return pairs * torch.polar(torch.ones_like(angles), angles).unsqueeze(1)


def regular(z: torch.Tensor) -> torch.Tensor:
    return z @ z.mH + 3 * torch.eye(z.shape[0])


SEVERAL: dict[str, Callable[[torch.Tensor], tuple[torch.Tensor, ...]]] = {  # one file for each, to be quick
    "views": lambda z: (
        *(z.unsqueeze(1), z[:, 0], z[:, 1:], z.mT, z.flip(1), z.reshape(-1), z.repeat(1, 2), z.diagonal(), z.tril()),
        *(torch.roll(z, (1, 2), (0, 1)), torch.fft.fftshift(z), F.pad(z, (1, 2)), F.pad(z, (1, 2), value=1.0)),
    ),
    "joined and chosen": lambda z: (
        *(torch.cat([z, z.conj()], 1), torch.stack([z, z * 2], -1), torch.where(z.real > 0, z, -z), z[z.real > 0]),
        *(z.masked_fill(z.real > 0, 0), torch.slice_scatter(z, z[:, :1] * 2, 1, 0, 1), z[:, torch.tensor([0, 1, 0])]),
        z.gather(1, torch.zeros(1, 1, dtype=torch.int64)),
    ),
    "written": lambda z: (written(z),),
    "arithmetic": lambda z: (
        *(1j * z, z * (2 + 3j) + 1j, 1 - z, z / (z + 2), z / (z.abs() + 1e-8), 1 / z, z**2, z**1.5, z * z.real),
        *(z.abs(), z.angle(), z.conj() * z, z.sgn(), z == z.conj(), torch.view_as_real(z), z.real.to(torch.complex64) * 1j),
    ),
    "functions": lambda z: (z.exp(), z.log(), z.sqrt(), (z / 9).tanh(), (z / 9).sin(), torch.polar(z.abs(), z.angle() * 2)),
    "sums and products": lambda z: (
        *(z.sum(1), z.mean((0, 1)), z.cumsum(1), z @ z.mH, torch.einsum("bn,cn->bc", z, z.conj()), F.linear(z, z)),
        *(torch.linalg.vector_norm(z, dim=1), torch.vdot(z[0], z[0]), torch.addmm(z @ z.mT, z, z.mT)),
    ),
    "transforms": lambda z: (torch.fft.ifft(torch.fft.fft(z) * 2j), torch.fft.ifftshift(torch.fft.fft2(z), dim=(0, 1))),
    "rotary": lambda z: (turned(z),),
    "running product": lambda z: (z.cumprod(1),),
    "systems": lambda z: (torch.linalg.solve(regular(z), z), torch.linalg.inv(regular(z)), torch.linalg.det(regular(z) / 9)),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_complex_numbers_agree(name: str, tmp_path: Path) -> None:
    def call(x: torch.Tensor, y: torch.Tensor) -> list[Any]:
        results = SEVERAL[name](torch.complex(x, y))
        return [torch.view_as_real(v.resolve_conj().contiguous()) if v.is_complex() else v for v in results]

    agree(call, (r(3, 4), r(3, 4) + 0.5), tmp_path, (BOTH, BOTH), [(r(5, 7), r(5, 7) - 0.3), (r(2, 3) * 3, r(2, 3))])


def test_a_quotient_of_tiny_numbers_does_not_vanish(tmp_path: Path) -> None:
    def call(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        z = torch.complex(x, y)
        return torch.view_as_real(z / (z * 2))

    agree(call, (torch.full((2,), 1e-25), torch.tensor([1e-26, 0.0])), tmp_path)
