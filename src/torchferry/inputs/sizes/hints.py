"""What one run on symbolic sizes says about ties: a hypothesis for the trials, never an answer by itself.

Every size becomes a symbol of its own; where the model makes two of them equal, torch's shape environment replaces one by
the other. Branches and loops of the user's code show up there too, so each tie is tried on the eager model afterwards.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sympy
import torch

from torchferry import eager
from torchferry.foreign.python_warnings import no_warnings
from torchferry.foreign.torch_dynamo import ConstantSource
from torchferry.foreign.torch_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext, expression
from torchferry.foreign.torch_tracing import LOGGERS, FakeTensorMode
from torchferry.inputs.sizes.probing import Axis

Hints = dict[Axis, sympy.Expr]


def symbolic_sizes(module: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> Hints:
    """Return each axis' size as an expression over symbols after one symbolic run; nothing when it cannot be run."""
    env = ShapeEnv(duck_shape=False, specialize_zero_one=False)
    mode = FakeTensorMode(shape_env=env, allow_non_fake_inputs=True)
    sizes: Hints = {}
    try:
        fakes = [_symbolic(mode, f"input_{i}", t) for i, t in enumerate(tensors)]
        named = {(i, a): _expression(n) for i, fake in enumerate(fakes) for a, n in enumerate(fake.shape)}
        with mode, eager.untouched(module), eager.untouched_process(), eager.plainly(), no_warnings(), torch.no_grad(), _quiet():
            module(*fakes)
    except Exception:  # data-dependent code, foreign calls: then there are no hints, and trying must do
        return {}
    for axis, symbol in named.items():
        sizes[axis] = sympy.sympify(env.simplify(symbol))
    return sizes


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep torch from logging what a stand-in cannot do: it is expected here."""
    loud = [logging.getLogger(n) for n in LOGGERS]
    before = [(log, log.disabled) for log in loud]
    for log in loud:
        log.disabled = True
    try:
        yield
    finally:
        for log, disabled in before:
            log.disabled = disabled


def _symbolic(mode: FakeTensorMode, name: str, tensor: torch.Tensor) -> Any:
    free = StatelessSymbolicContext(dynamic_sizes=[DimDynamic.DYNAMIC] * tensor.dim())
    return mode.from_tensor(tensor.detach(), source=ConstantSource(name), symbolic_context=free)


def _expression(size: Any) -> sympy.Expr:
    return expression(size) if isinstance(size, torch.SymInt) else sympy.Integer(size)
