"""One-hot rows as a comparison, for as many classes as there are; the number of them may be a size that moves."""

from __future__ import annotations

from typing import Any

import torch


def one_hot(tensor: torch.Tensor, classes: Any) -> torch.Tensor:
    """Return a row for each number, with a one at its place."""
    return (tensor.unsqueeze(-1) == torch.arange(classes)).long()
