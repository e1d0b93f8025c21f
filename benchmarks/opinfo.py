"""Samples from torch's own operator database, as modules whose inputs are the sample's tensors. Needs `expecttest`."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

# Random in truth: the database fixes their seed, which no other runtime can follow.
RANDOM = (
    "bernoulli",
    "cauchy",
    "dropout",
    "empty",
    "exponential",
    "fractional_max_pool",
    "geometric",
    "log_normal",
    "lowrank",
    "multinomial",
    "new_empty",
    "normal.",
    "rand",
    "rrelu",
    "uniform",
)


class Call(torch.nn.Module):
    """One sample as a module: its tensors are the inputs, all else is fixed."""

    def __init__(self, operator: Any, sample: Any) -> None:
        super().__init__()
        self.operator, self.finish = operator, sample.output_process_fn_grad
        leaves, self.spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
        self.at = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
        self.rest = [None if i in self.at else leaf for i, leaf in enumerate(leaves)]
        self.tensors = tuple(leaves[i].detach().clone() for i in self.at)

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        leaves = list(self.rest)
        for index, tensor in zip(self.at, tensors, strict=True):
            leaves[index] = tensor
        first, args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        result = self.finish(self.operator(first, *args, **kwargs))
        return tuple(t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor))

    def eager(self, seed: int) -> tuple[torch.Tensor, ...]:
        """Return what torch itself gives."""
        torch.manual_seed(seed)
        with torch.no_grad():
            return self(*(t.clone() for t in self.tensors))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Entry:
    """An operator of the database, with the dtypes that it takes."""

    name: str
    operator: Any

    def takes(self, dtype: torch.dtype) -> bool:
        return dtype in self.operator.dtypes

    def calls(self, dtype: torch.dtype, most: int) -> list[Call]:
        """Return its samples, `most` of them spread over the list: dense, and the same for another seed."""
        torch.manual_seed(0)  # the same samples in every process
        np.random.seed(0)
        random.seed(0)
        try:
            samples = list(self.operator.sample_inputs("cpu", dtype, requires_grad=False))
        except (RuntimeError, ImportError, NotImplementedError):
            return []
        if len(samples) > most:
            samples = [samples[round(i * (len(samples) - 1) / max(most - 1, 1))] for i in range(most)]
        calls = (Call(self.operator.op, sample).eval() for sample in samples)
        return [call for call in calls if _fair(call)]


def entries(only: str | None) -> Iterator[Entry]:
    """Yield every operator of the database that is not random."""
    from torch.testing._internal.common_methods_invocations import op_db

    for operator in op_db:
        name = ".".join(part for part in (operator.name, operator.variant_test_name) if part)
        is_random = any(word in name + "." for word in RANDOM) and not name.startswith("linalg")
        if not is_random and (only is None or only in name):
            yield Entry(name, operator)


def _fair(call: Call) -> bool:
    """Whether a sample can be judged: dense tensors come out, and the same ones for another seed."""
    try:
        first, second = call.eager(0), call.eager(1)
    except (RuntimeError, NotImplementedError, AssertionError):
        return False
    if not first or any(t.layout != torch.strided for t in (*first, *call.tensors)):
        return False
    return all(a.shape == b.shape and torch.allclose(a, b, equal_nan=True) for a, b in zip(first, second, strict=True))
