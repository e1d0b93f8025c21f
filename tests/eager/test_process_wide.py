"""What belongs to the process, and a model changes in passing, is as it was after an export."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import torchferry
from torchferry import eager
from torchferry.eager import process_wide

TINY = 1e-310
CHANGES: dict[str, Callable[[], Any]] = {
    "default dtype": lambda: torch.set_default_dtype(torch.float64),
    "gradients": lambda: torch.set_grad_enabled(False),
    "threads": lambda: torch.set_num_threads(2),
    "deterministic": lambda: torch.use_deterministic_algorithms(True),
    "precision": lambda: torch.set_float32_matmul_precision("medium"),
    "benchmark": lambda: setattr(torch.backends.cudnn, "benchmark", True),
    "anomalies": lambda: torch.autograd.set_detect_anomaly(True),
    "fast paths": lambda: torch.backends.mha.set_fastpath_enabled(False),
    "autocast": lambda: torch.set_autocast_cache_enabled(False),
    "sparse tensors": torch.sparse.check_sparse_tensor_invariants.enable,
    "empty memory": lambda: setattr(torch.utils.deterministic, "fill_uninitialized_memory", False),
    "small numbers": lambda: torch.set_flush_denormal(True),
    "oneDNN": lambda: setattr(torch.backends.mkldnn, "deterministic", True),
    "printing": lambda: torch.set_printoptions(precision=2),
    "switches": lambda: sys.setswitchinterval(0.1),
    "hooks": lambda: nn.modules.module.register_module_forward_hook(lambda m, i, o: o),
    "seeds": lambda: (torch.manual_seed(7), np.random.seed(7)),
    "filters": lambda: warnings.filterwarnings("error", message="never said"),
    "errors of numpy": lambda: np.seterr(over="raise"),
    "environment": lambda: os.environ.update(TORCHFERRY_TEST="1", HOME="/"),
    "folder": lambda: os.chdir("/"),
    "path": lambda: sys.path.append("/nowhere"),
    "recursion": lambda: sys.setrecursionlimit(3333),
    "log": lambda: (logging.root.setLevel(3), logging.root.addHandler(logging.NullHandler())),
    "signals": lambda: signal.signal(signal.SIGUSR1, signal.SIG_IGN),
}


def process() -> list[Any]:
    """Return what the changes above change."""
    return [
        torch.get_default_dtype(), torch.is_grad_enabled(), torch.get_num_threads(), torch.get_float32_matmul_precision(),
        torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark, torch.is_anomaly_enabled(),
        len(nn.modules.module._global_forward_hooks), torch.get_rng_state().tolist(), str(np.random.get_state()),
        list(warnings.filters), np.geterr(), dict(os.environ), os.getcwd(), list(sys.path), sys.getrecursionlimit(),
        torch.backends.mha.get_fastpath_enabled(), torch.is_autocast_cache_enabled(), str(TINY * 0.5),
        torch.sparse.check_sparse_tensor_invariants.is_enabled(), torch.utils.deterministic.fill_uninitialized_memory,
        torch.backends.mkldnn.deterministic, repr(torch.tensor(1.23456)), sys.getswitchinterval(),
        logging.root.level, list(logging.root.handlers), signal.getsignal(signal.SIGUSR1),
    ]  # fmt: skip


class Meddler(nn.Module):
    """Changes all of it at each call."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.fc(x)
        if threading.current_thread() is threading.main_thread():
            for change in CHANGES.values():
                change()
        return y


def test_an_export_leaves_the_process_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model, x = Meddler().eval(), torch.randn(2, 3)
    torchferry.export(nn.Linear(3, 3).eval(), (x,))  # what is loaded for the first time may add filters of its own
    before = process()
    torchferry.export(model, (x,), tmp_path / "model.onnx", check=False)
    assert process() == before


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_put_back_after_a_call_however_that_ends(name: str) -> None:
    before = process()

    def interrupted() -> None:
        with eager.balanced(), eager.untouched_process():
            CHANGES[name]()
            assert process() != before
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert process() == before


def test_filters_that_catch_warnings_holds_in_another_thread_are_left_to_it() -> None:
    before = list(warnings.filters)
    caught = warnings.catch_warnings()
    caught.__enter__()
    warnings.simplefilter("ignore")
    with eager.untouched_process():
        caught.__exit__(None, None, None)  # the other thread is done before the call is
    assert warnings.filters == before


def test_a_removed_working_directory_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here := tmp_path / "here").mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    for back in process_wide.ways_back():
        back()


def test_a_second_interrupt_does_not_lose_the_generators() -> None:
    state = torch.get_rng_state()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)

    def again(saved: torch.Tensor) -> None:
        signal.raise_signal(signal.SIGINT)
        plainly(saved)
        signal.raise_signal(signal.SIGINT)

    plainly = torch.set_rng_state
    try:
        torch.set_rng_state = again  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt), eager.untouched_rng():
            torch.rand(3)
    finally:
        torch.set_rng_state = plainly
        signal.signal(signal.SIGINT, handler)
    assert torch.equal(torch.get_rng_state(), state)
