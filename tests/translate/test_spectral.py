"""Fourier transforms against eager: lengths of every kind, norms, several axes, and windows that overlap."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.translate.made import agree

ROWS = {0: "b"}


def r(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def pairs(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: torch.view_as_real(function(*args))


@pytest.mark.parametrize("length", [1, 7, 10, 64, 400, 512, 600, 1000, 1024])
def test_a_spectrum_is_as_precise_as_torchs_at_any_length(length: int, tmp_path: Path) -> None:
    agree(pairs(torch.fft.rfft), (r(2, length) / length**0.5,), tmp_path, (ROWS,), [(r(3, length) / length**0.5,)])
    agree(lambda x: torch.fft.irfft(torch.fft.rfft(x), length), (r(2, length),), tmp_path, (ROWS,), [(r(3, length),)])


def test_a_spectrum_of_a_length_that_moves(tmp_path: Path) -> None:
    axes, others = ({0: "b", 1: "n"},), [(r(3, 9),), (r(1, 100) / 10,), (r(2, 257) / 16,)]
    agree(pairs(torch.fft.rfft), (r(2, 8),), tmp_path, axes, others)
    agree(lambda x: torch.fft.irfft(torch.fft.rfft(x), x.shape[1]), (r(2, 8),), tmp_path, axes, others)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_norms_over_several_axes(norm: str, tmp_path: Path) -> None:
    others = [(r(3, 5, 6),)]
    agree(pairs(lambda x: torch.fft.rfftn(x, dim=(1, 2), norm=norm)), (r(2, 5, 6),), tmp_path, (ROWS,), others)
    agree(
        pairs(lambda x: torch.fft.ifft2(torch.complex(x, x * 2), dim=(2, 1), norm=norm)), (r(2, 5, 6),), tmp_path, (ROWS,), others
    )
    agree(
        lambda x: torch.fft.irfft2(torch.fft.rfft2(x, norm=norm), s=(5, 6), norm=norm), (r(2, 5, 6),), tmp_path, (ROWS,), others
    )
    agree(lambda x: torch.fft.hfft(torch.complex(x, x * 2), n=9, norm=norm), (r(2, 5, 6),), tmp_path, (ROWS,), others)


@pytest.mark.parametrize(
    "options",
    [
        {"n_fft": 16},
        {"n_fft": 10, "hop_length": 3, "normalized": True},
        {"n_fft": 16, "win_length": 12, "onesided": False, "center": False},
        {"n_fft": 20, "hop_length": 5, "pad_mode": "constant"},
    ],
    ids=str,
)
def test_short_time_spectra_at_other_lengths(options: dict[str, Any], tmp_path: Path) -> None:
    window = torch.hann_window(options.get("win_length", options["n_fft"]))
    axes = ({0: "b", 1: "n"}, {})
    call = lambda x, w: torch.view_as_real(torch.stft(x, window=w, return_complex=True, **options))  # noqa: E731
    agree(call, (r(2, 64), window), tmp_path, axes, [(r(3, 100), window)])


@pytest.mark.parametrize("length", [None, 60])
def test_a_signal_comes_back_from_its_spectrum(length: int | None, tmp_path: Path) -> None:
    window = torch.hann_window(16)

    def there_and_back(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(x, 16, 4, window=w, return_complex=True)
        return torch.istft(spectrum * 2, 16, 4, window=w, length=length)

    # torch's own istft fixes all sizes where a length is given; tests/capture/test_inverse_stft.py has them moving
    axes, other = (({0: "b", 1: "n"}, {}), r(3, 80)) if length is None else ((), r(2, 64) * 2)
    agree(there_and_back, (r(2, 64), window), tmp_path, axes, [(other, window)])
