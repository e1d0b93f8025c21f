"""Short-time Fourier transforms and their inverse, as windows of the signal and transforms of those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torchferry.foreign.torch_operators import aten
from torchferry.ops.signals import istft, window_of


def stft(
    self: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return [..., frequencies, frames], complex or in pairs; the signal has been padded before."""
    if align_to_window:
        return NotImplemented
    hop = hop_length if hop_length is not None else n_fft // 4
    whole = self.is_complex() or onesided is False
    count = (self.shape[-1] - n_fft) // hop + 1
    place = torch.arange(count).unsqueeze(-1) * hop + torch.arange(n_fft)
    frames = self.index_select(-1, place.reshape(-1)).reshape(*self.shape[:-1], count, n_fft)
    shaped = window_of(window, win_length, n_fft, self.dtype)
    frames = frames if shaped is None else frames * shaped
    norm = "ortho" if normalized else "backward"
    spectrum = torch.fft.fft(frames, norm=norm) if whole else torch.fft.rfft(frames, norm=norm)
    spectrum = spectrum.transpose(-1, -2)
    return spectrum if return_complex else torch.view_as_real(spectrum)


DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.stft.default: stft,
    aten.istft.default: istft,
}
