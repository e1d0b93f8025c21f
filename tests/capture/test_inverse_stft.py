"""A signal that is masked in its spectrum comes back at its own length, whatever that is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import torchferry


class Denoiser(nn.Module):
    def __init__(self, length: int | None, **options: object) -> None:
        super().__init__()
        self.length, self.options = length, options
        self.register_buffer("window", torch.hann_window(int(options.get("win_length", 16))))  # type: ignore[call-overload]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        spectrum = torch.stft(x, 16, 4, window=self.window, return_complex=True, **self.options)
        spectrum = spectrum * torch.sigmoid(spectrum.abs())
        return torch.istft(spectrum, 16, 4, window=self.window, length=self.length or x.shape[-1], **self.options)


@pytest.mark.parametrize(
    ("length", "options"),
    [(None, {}), (60, {}), (None, {"win_length": 12, "normalized": True})],
    ids=["own", "fixed", "short-window"],
)
def test_batch_and_length_move_where_a_length_is_given(length: int | None, options: dict[str, object]) -> None:
    result = torchferry.export(Denoiser(length, **options).eval(), (torch.randn(2, 64),))
    assert not result.given_up
    assert {d.name for d in result.history.best.value("inputs").signature.dims} == {"batch_size", "length"}
