"""A model's file, told of several calls, held against the model at each of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import torchferry


def assert_right_at_each(model: nn.Module, inputs: list[Any]) -> None:
    """Export with the first call as the example and the others beside it; the first output must be eager's at every one."""
    model = model.eval()
    result = torchferry.export(model, inputs[0], examples=[(i, {}) for i in inputs[1:]], check=False)
    assert result.ok
    session = torchferry.InferenceSession(str(result.path))
    for given in inputs:
        with torch.no_grad():
            wanted = model(*given)
        assert torch.allclose(torch.from_numpy(session.run(None, result.feeds(given, {}))[0]), wanted, atol=1e-5)
