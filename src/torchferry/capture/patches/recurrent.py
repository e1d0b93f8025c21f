"""nn.LSTM and nn.GRU over a length that moves: captured as a loop, where torch would write out the example's steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def patch(module: Any) -> Iterator[None]:
    """Register torch's own loop forms for the block; only models that have such layers see a difference."""
    from torch.export import _patches

    if not any(isinstance(m, torch.nn.LSTM | torch.nn.GRU) for m in module.modules()):
        yield
        return
    with _patches.register_lstm_while_loop_decomposition(), _patches.register_gru_while_loop_decomposition():
        yield
