"""What belongs to the whole process, and a model may change in passing: torch's settings and Python's, the environment.

Only what is another after a call is put back. What other threads are likely to change for a while meanwhile (where Python writes,
whether it collects garbage) is left alone: to put that back could undo theirs for good.
"""

from __future__ import annotations

import functools
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, MutableMapping
from typing import Any

import numpy as np
import torch

from torchferry.deferred import INTERRUPTING
from torchferry.foreign.python_warnings import filters_back
from torchferry.foreign.torch_modules import global_hooks
from torchferry.foreign.torch_tensors import printing

Restore = Callable[[], None]
MISSING = object()

_CUDNN, _CUDA, _MKLDNN = torch.backends.cudnn, torch.backends.cuda, torch.backends.mkldnn
_INVARIANTS = torch.sparse.check_sparse_tensor_invariants
_CALLS: tuple[tuple[Callable[[], Any], Callable[[Any], Any]], ...] = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
    (torch.is_warn_always_enabled, torch.set_warn_always),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    (_CUDA.flash_sdp_enabled, _CUDA.enable_flash_sdp),
    (_CUDA.mem_efficient_sdp_enabled, _CUDA.enable_mem_efficient_sdp),
    (_CUDA.math_sdp_enabled, _CUDA.enable_math_sdp),
    (torch.backends.mha.get_fastpath_enabled, torch.backends.mha.set_fastpath_enabled),
    (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    (_INVARIANTS.is_enabled, lambda on: _INVARIANTS.enable() if on else _INVARIANTS.disable()),
    (lambda: _TINY * 0.5 == 0, torch.set_flush_denormal),  # which nobody can be asked for
    (np.geterr, lambda known: np.seterr(**known)),
    (np.get_printoptions, lambda known: np.set_printoptions(**known)),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (sys.getswitchinterval, sys.setswitchinterval),
)
_TINY = 1e-310  # without all of its digits
_ATTRIBUTES: tuple[tuple[Any, str], ...] = (
    (_CUDNN, "benchmark"), (_CUDNN, "deterministic"), (_CUDNN, "enabled"), (_CUDNN, "allow_tf32"),
    (_MKLDNN, "enabled"), (_MKLDNN, "deterministic"), (torch.utils.deterministic, "fill_uninitialized_memory"),
    *((getattr(_MKLDNN, kind), "fp32_precision") for kind in ("matmul", "conv", "rnn") if hasattr(_MKLDNN, kind)),
    (logging.root, "level"), (logging.root.manager, "disable"),
    (warnings, "showwarning"), (sys, "excepthook"), (threading, "excepthook"),
)  # fmt: skip
_LISTS: tuple[Callable[[], list[Any]], ...] = (lambda: sys.path, lambda: logging.root.handlers)
_SIGNALS = (
    *INTERRUPTING,
    *(getattr(signal, name) for name in ("SIGUSR1", "SIGUSR2", "SIGPIPE", "SIGCHLD") if hasattr(signal, name)),
)


def ways_back() -> list[Restore]:
    """Return what puts all of it back as it is now."""
    ways: list[Restore] = [functools.partial(_call_back, read, write, read()) for read, write in _CALLS]
    ways += [functools.partial(_attribute_back, owner, name, getattr(owner, name)) for owner, name in _ATTRIBUTES]
    ways += [functools.partial(_list_back, listed, list(listed())) for listed in _LISTS]
    ways += [functools.partial(_mapping_back, mapping, dict(mapping)) for mapping in (os.environ, printing(), *global_hooks())]
    ways += [functools.partial(_folder_back, _folder()), filters_back()]
    if threading.current_thread() is threading.main_thread():
        ways += [functools.partial(_handler_back, number, signal.getsignal(number)) for number in _SIGNALS]
    return ways


def _call_back(read: Callable[[], Any], write: Callable[[Any], Any], saved: Any) -> None:
    if read() != saved:
        write(saved)


def _attribute_back(owner: Any, name: str, saved: Any) -> None:
    if getattr(owner, name) is not saved:
        setattr(owner, name, saved)


def _list_back(listed: Callable[[], list[Any]], saved: list[Any]) -> None:
    if listed() != saved:
        listed()[:] = saved


def _mapping_back(mapping: MutableMapping[Any, Any], saved: dict[Any, Any]) -> None:
    for key in [k for k in mapping if k not in saved]:
        mapping.pop(key, None)
    for key, value in saved.items():
        if mapping.get(key, MISSING) is not value and mapping.get(key, MISSING) != value:
            mapping[key] = value


def _handler_back(number: int, saved: Any) -> None:
    if saved is not None and signal.getsignal(number) is not saved:  # None: it was not set from Python
        signal.signal(number, saved)


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


def _folder_back(saved: str | None) -> None:
    if saved is not None and _folder() != saved:
        os.chdir(saved)
