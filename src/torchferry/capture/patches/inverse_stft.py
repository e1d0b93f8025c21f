"""`torch.istft` with a length: torch takes the length as a plain number, which would fix every size that it is computed from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional


def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: Any = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal as torch computes it, without the check that windows overlap; NotImplemented where torch itself does."""
    if length is None or return_complex or not _moves(input, length):
        return NotImplemented
    hop = hop_length if hop_length is not None else n_fft // 4
    spectra = input if input.dim() == 3 else input.unsqueeze(0)
    frames = torch.fft.irfft(
        spectra.transpose(1, 2)[..., : n_fft // 2 + 1], n=n_fft, dim=-1, norm="ortho" if normalized else "backward"
    )
    taper = _centred(window, win_length if win_length is not None else n_fft, n_fft, frames.dtype)
    added = _overlapped(frames * taper, hop)
    weights = _overlapped((taper**2).expand(1, frames.shape[1], n_fft), hop)
    start = n_fft // 2 if center else 0
    signal = functional.pad(added[:, start:] / weights[:, start:], (0, length))[:, :length]  # zeros where the frames end early
    return signal if input.dim() == 3 else signal.squeeze(0)


def _overlapped(frames: Tensor, hop: int) -> Tensor:
    """Return frames [batch, count, size] added up with `hop` between their starts: a transposed convolution with ones."""
    kernel = torch.eye(frames.shape[-1], dtype=frames.dtype).unsqueeze(1)
    return functional.conv_transpose1d(frames.transpose(1, 2), kernel, stride=hop).squeeze(1)


def _moves(input: Tensor, length: Any) -> bool:
    return any(isinstance(size, torch.SymInt) for size in (*input.shape, length))


def _centred(window: Tensor | None, width: int, n_fft: int, dtype: torch.dtype) -> Tensor:
    taper = window if window is not None else torch.ones(width, dtype=dtype)
    left = (n_fft - width) // 2
    return functional.pad(taper, (left, n_fft - width - left)) if width < n_fft else taper
