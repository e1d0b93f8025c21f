"""A model in the wrapper that somebody trained it in is converted as it is: DDP, and what looks like Lightning's and PEFT's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import torchferry


def net() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU()).eval()


class Hooked(nn.Module):
    """As a LightningModule: the model itself, with properties that only a trainer makes readable."""

    def __init__(self) -> None:
        super().__init__()
        self.net, self._trainer = net(), None

    @property
    def trainer(self) -> Any:
        raise RuntimeError("Hooked is not attached to a `Trainer`")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


class Adapted(nn.Module):
    """As a PeftModel: takes anything, and answers for the model within."""

    def __init__(self) -> None:
        super().__init__()
        self.base_model = net()

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("base_model"), name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.base_model(*args, **kwargs)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[None]:
    """A process group of this process."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path / 'group'}", rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def converted(model: nn.Module) -> bool:
    quick = torchferry.Budget(trials=2, mutants=0)
    return torchferry.export(model, (torch.randn(2, 4),), budget=quick).ok


@pytest.mark.usefixtures("alone")
def test_a_model_trained_on_several_devices_is_converted() -> None:
    assert converted(nn.parallel.DistributedDataParallel(net()))


@pytest.mark.parametrize("kind", [Hooked, Adapted])
def test_a_model_in_a_class_of_its_training_is_converted(kind: type[nn.Module]) -> None:
    assert converted(kind().eval())
