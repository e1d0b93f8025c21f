"""Frames of a signal put back together: the inverse of a short-time Fourier transform, for sizes that may move."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def istft(
    self: Tensor,
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
    """Return the signal: frames transformed back, added where they overlap, divided by what the windows add up to."""
    hop = hop_length if hop_length is not None else n_fft // 4
    batch = self.unsqueeze(0) if self.dim() == 2 else self
    frames, norm = batch.transpose(1, 2), "ortho" if normalized else "backward"
    if return_complex:
        return NotImplemented
    signal = torch.fft.irfft(frames, n_fft, norm=norm)  # which reads one half of a whole spectrum, as torch does
    shaped = window_of(window, win_length, n_fft, signal.dtype)
    shaped = torch.ones(n_fft, dtype=signal.dtype) if shaped is None else shaped
    added = _overlapped(signal * shaped, n_fft, hop)
    weight = _overlapped((shaped * shaped).expand(1, signal.shape[1], n_fft), n_fft, hop)
    first = n_fft // 2 if center else 0
    whole = added.shape[-1]
    last = first + length if length is not None else whole - first
    if length is not None:  # beyond its end the signal is silent
        added = torch.nn.functional.pad(added, (0, length))
        weight = torch.nn.functional.pad(weight, (0, length), value=1.0)
    result = (added / weight).narrow(-1, first, last - first)
    return result.squeeze(0) if self.dim() == 2 else result


def _overlapped(frames: Tensor, size: int, hop: int) -> Tensor:
    """Return frames [batch, count, size] added up with `hop` between their starts: a transposed convolution with ones."""
    kernel = torch.eye(size, dtype=frames.dtype).unsqueeze(1)
    return torch.nn.functional.conv_transpose1d(frames.transpose(1, 2), kernel, stride=hop).squeeze(1)


def window_of(window: Tensor | None, length: int | None, n_fft: int, dtype: torch.dtype) -> Tensor | None:
    """Return the window with zeros on both sides up to n_fft; None where it is all ones."""
    length = n_fft if length is None else length
    if window is None and length == n_fft:
        return None
    window = torch.ones(length, dtype=dtype) if window is None else window
    left = (n_fft - length) // 2
    return torch.nn.functional.pad(window, (left, n_fft - length - left)) if length < n_fft else window
