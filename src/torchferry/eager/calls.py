"""The user's model, called as the user calls it, without leaving a trace on it. The oracle of everything else."""

from __future__ import annotations

import copy
import functools
import random
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from torchferry.deadline import TookTooLong, time_limit
from torchferry.eager.plain_scan import plain_scan
from torchferry.eager.refusals import RECURRENT, same_width, within_range
from torchferry.foreign.torch_dispatch import transform_level, unwind_transforms
from torchferry.foreign.torch_messages import needs_gradients
from torchferry.foreign.torch_operators import variable_functions
from torchferry.foreign.torch_tensors import times_written

# Up to here a whole copy is made for safety; a larger model shares its parameters with the copy, as memory would double.
WHOLE_COPY_BYTES = 256 * 2**20
PATIENCE = 10.0  # seconds for a call of a model up to that size on an input that we made


def fresh(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy whose state is as the user left it; the module itself where it cannot be copied.

    Buffers and attributes are always the copy's own. Parameters of a large model are shared: forward does not write them.
    """
    shared = [p for p in module.parameters() if p is not None]
    memo: dict[int, Any] = {id(p): p for p in shared} if weight_bytes(module) > WHOLE_COPY_BYTES else {}
    try:
        copied = copy.deepcopy(module, memo)
    except Exception:  # generators, locks, script modules, non-leaf tensors: anything may refuse to be copied
        return module
    _rebind(copied, memo)
    return copied


def _rebind(copied: torch.nn.Module, memo: dict[int, Any]) -> None:
    """Let the copy's hooks close over its own parts, where the model's close over the model's: deepcopy shares functions."""
    for part in copied.modules():
        hooks = [t for name, t in vars(part).items() if name.endswith("_hooks") and isinstance(t, dict)]
        for table in (vars(part), *hooks):
            for name, value in list(table.items()):
                if isinstance(value, types.FunctionType) and any(id(c) in memo for c in _closed_over(value)):
                    table[name] = _rebound(value, memo)


def _closed_over(function: types.FunctionType) -> list[Any]:
    return [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]  # which is an empty one


def _rebound(function: types.FunctionType, memo: dict[int, Any]) -> types.FunctionType:
    """Return the function, closing over copies."""
    cells = tuple(
        types.CellType(memo.get(id(cell.cell_contents), cell.cell_contents)) if cell != types.CellType() else cell
        for cell in function.__closure__ or ()
    )
    bound = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__, cells)
    bound.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(bound, function)
    del bound.__wrapped__  # type: ignore[attr-defined]  # it is no wrapper
    return bound


def weight_bytes(module: torch.nn.Module) -> int:
    """Return the size of a module's parameters and buffers, each storage counted once."""
    tensors = [t for t in [*module.parameters(), *module.buffers()] if not t.is_meta and t.layout is torch.strided]
    return sum({t.data_ptr(): t.numel() * t.element_size() for t in tensors}.values())


class NoAnswer(Exception):
    """The model was still busy with an input that we made when its time was up."""


def call_on_made_input(module: Any, args: tuple[Any, ...], *, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Return what `call` returns, or raise NoAnswer: a loop may never end on numbers that we made up."""
    with on_made_input(module):
        return call(module, args, seed=seed)


@contextmanager
def on_made_input(module: torch.nn.Module) -> Iterator[None]:
    """Let the block call a model on numbers that we made up: torch refuses what it should, and NoAnswer ends what does not end.

    A large model may well take that long; it gets all the time that the stage has.
    """
    with _strictly():
        if weight_bytes(module) > WHOLE_COPY_BYTES:
            yield
            return
        try:
            with time_limit(PATIENCE, "the model", again=PATIENCE / 4):
                yield
        except TookTooLong as error:
            raise NoAnswer(f"the model gave no answer within {PATIENCE:g} s") from error


@contextmanager
def _strictly() -> Iterator[None]:
    """Let torch refuse the calls that it should, and does not."""
    recurrent = {name: same_width(getattr(variable_functions, name)) for name in RECURRENT}
    with standing_in(torch, ctc_loss=within_range(torch.ctc_loss)), standing_in(variable_functions, **recurrent):
        yield


@contextmanager
def standing_in(owner: types.ModuleType, **functions: Callable[..., Any]) -> Iterator[None]:
    """Put functions in the place of a module's own; what it finds through `__getattr__` it finds there again afterwards."""
    with one_at_a_time:
        before = {name: vars(owner)[name] for name in functions if name in vars(owner)}
        vars(owner).update(functions)
        try:
            yield
        finally:
            for name in functions:
                del vars(owner)[name]
            vars(owner).update(before)


def call(module: Any, args: tuple[Any, ...], *, seed: int = 0) -> tuple[torch.Tensor, ...]:
    """Return what the flat module gives for copies of `args`, without gradients unless forward itself needs them.

    The seed is set, so that two calls of a model that draws random numbers draw the same ones.
    """
    with untouched_rng(), plainly():
        seed_all(seed)
        try:
            with torch.no_grad():
                return _detached(module(*clone(args)))
        except RuntimeError as error:
            if not needs_gradients(str(error)):
                raise
        with torch.enable_grad():  # forward takes gradients itself and counts on the caller's mode
            return _detached(module(*clone(args)))


def seed_all(seed: int) -> None:
    """Set the random number generators of torch, numpy and Python.

    torch.manual_seed also writes down a stack trace for each kind of device that may come to life later, which takes longer
    than a small model does.
    """
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


@contextmanager
def plainly() -> Iterator[None]:
    """Run torch.cond, scan, while_loop, FlexAttention and what else compiles itself as plain Python.

    Compiled anew for every size, they would be slow, and fail for reasons that are dynamo's and not the model's.
    """
    with torch.compiler.set_stance("force_eager"), plain_scan():
        yield


def clone(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the same values in new tensors, so that a model which writes into its inputs spoils nothing."""
    return tuple(a.detach().clone() if isinstance(a, torch.Tensor) else copy.deepcopy(a) for a in args)


def _detached(outputs: Any) -> tuple[torch.Tensor, ...]:
    return tuple(o.detach() for o in outputs)


@contextmanager
def untouched_rng() -> Iterator[None]:
    """Give back the random number generators of torch, numpy and Python as they were."""
    state, numpy_state, python_state = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(state)
        np.random.set_state(numpy_state)
        random.setstate(python_state)


# A capture changes globals of torch and the code of the model's functions, and every run puts the generators back: threads
# that export take turns, stage by stage. A thread may nest them.
one_at_a_time = threading.RLock()


@contextmanager
def balanced() -> Iterator[None]:
    """Leave torch's stack of function transforms, and autocast, as they were.

    An error inside vmap leaves a level on that stack, and one inside a captured autocast block leaves autocast on.
    """
    with one_at_a_time:
        before = transform_level()
        casts = [(kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda")]
        try:
            yield
        finally:
            unwind_transforms(before)
            for kind, on, dtype in casts:
                torch.set_autocast_enabled(kind, on)
                torch.set_autocast_dtype(kind, dtype)


@contextmanager
def untouched(model: Any) -> Iterator[None]:
    """Give back a model's modes, buffers, attributes, hooks and requires_grad, and the generators, as they were."""
    modules = list({id(m): m for root in _behind(model) for m in root.modules()}.values())
    # _parameters, _buffers, _modules, hooks and plain attributes all live in __dict__; the dicts in it are copied one
    # level deep, as are lists, so that what forward appends or caches goes away again
    attributes = [(m, {k: copy.copy(v) if isinstance(v, dict | list) else v for k, v in vars(m).items()}) for m in modules]
    parameters = [(p, p.requires_grad) for m in modules for p in m.parameters(recurse=False)]
    buffers = [(b, times_written(b), b.detach().clone()) for m in modules for b in m.buffers(recurse=False) if _can_be_written(b)]
    try:
        with untouched_rng():
            yield
    finally:
        for owner, saved in attributes:
            vars(owner).clear()
            vars(owner).update(saved)
        for parameter, flag in parameters:
            if parameter.requires_grad != flag:
                parameter.requires_grad_(flag)
        for buffer, version, value in buffers:
            if times_written(buffer) != version:
                with torch.no_grad():
                    buffer.copy_(value)


def _can_be_written(buffer: torch.Tensor) -> bool:
    return not buffer.is_meta and not buffer.is_inference()


def _behind(model: Any) -> list[torch.nn.Module]:
    """Return the modules that a call of `model` may touch: itself, its owner, or what a function closes over."""
    if isinstance(model, torch.nn.Module):
        return [model] if not isinstance(model, torch.jit.ScriptModule) else []  # a script module keeps its state in C++
    if isinstance(model, functools.partial):
        return [m for part in (model.func, *model.args, *model.keywords.values()) for m in _behind(part)]
    if isinstance(owner := getattr(model, "__self__", None), torch.nn.Module):
        return _behind(owner)
    cells = [c.cell_contents for c in getattr(model, "__closure__", None) or () if c != types.CellType()]
    return [m for c in cells if isinstance(c, torch.nn.Module) for m in _behind(c)]
