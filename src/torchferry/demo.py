"""Small models with random weights, for trying torchferry out: `torchferry export torchferry.demo:dialogpt`."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn


def mlp() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return a multilayer perceptron and an example."""
    torch.manual_seed(0)
    return _Mlp().eval(), (torch.randn(2, 16),)


def convnet() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Return a small convolutional network for images of any size, and an example."""
    torch.manual_seed(0)
    return _ConvNet().eval(), (torch.randn(2, 3, 32, 32),)


def dialogpt() -> tuple[nn.Module, tuple[Any, ...], dict[str, torch.Tensor]]:
    """Return a GPT-2 shaped as DialoGPT, but small, with token ids and an attention mask."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(vocab_size=1000, n_positions=128, n_embd=64, n_layer=2, n_head=4, bos_token_id=999, eos_token_id=999)
    ids = torch.randint(0, 999, (2, 7))
    return GPT2LMHeadModel(config).eval(), (), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


class _Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.layers(x), dim=-1)


class _ConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, padding=1),
            nn.ReLU(),
        )
        self.head = nn.Linear(16, 10)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        pooled: torch.Tensor = self.head(self.features(image).mean(dim=(2, 3)))
        return pooled
