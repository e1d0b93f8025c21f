"""A call that ends the process ends a fork of it, and the search for sizes takes that for an answer."""

from __future__ import annotations

import ctypes
import os
import time

import psutil
import pytest
import torch
from torch import nn

import torchferry
from torchferry.eager.apart import Apart, Died


def strange(question: str) -> str:
    match question:
        case "die":
            ctypes.string_at(0)
        case "leave":
            os._exit(7)
        case "hang":
            time.sleep(60)
        case "raise":
            raise ValueError("no such size")
    return question.upper()


def test_a_death_is_an_answer_and_the_next_question_is_answered() -> None:
    with Apart(strange, 2.0) as apart:
        assert apart.ask("a") == "A"
        with pytest.raises(Died, match="SIGSEGV"):
            apart.ask("die")
        with pytest.raises(Died, match="exit code 7"):
            apart.ask("leave")
        with pytest.raises(RuntimeError, match="ValueError: no such size"):
            apart.ask("raise")
        with pytest.raises(Died, match="no answer within 2 s"):
            apart.ask("hang")
        assert apart.ask("b") == "B"
    assert not psutil.Process().children()


def test_a_fork_is_gone_when_its_block_is_interrupted() -> None:
    def interrupted() -> None:
        with Apart(strange, 2.0) as apart:
            apart.ask("a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not psutil.Process().children()


class Fragile(nn.Module):
    """Ends the process wherever its input has another width than four: an extension that checks nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] != 4:
            os.kill(os.getpid(), 11)
        return x * self.scale


def test_the_search_for_sizes_survives_a_kernel_that_dies_of_some() -> None:
    result = torchferry.export(Fragile().eval(), (torch.randn(3, 4),))
    assert set(result.ranges) == {"batch_size"}
