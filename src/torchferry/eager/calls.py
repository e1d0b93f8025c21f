"""The user's model, called as the user calls it, without leaving a trace on it. The oracle of everything else."""

from __future__ import annotations

import copy
import random
import signal
import threading
import traceback
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch

from torchferry.deadline import TookTooLong, time_limit
from torchferry.deferred import deferred_signals, surely
from torchferry.eager import process_wide
from torchferry.eager.copies import WHOLE_COPY_BYTES, own_weights, shared_memory, weight_bytes
from torchferry.eager.plain_scan import plain_scan
from torchferry.eager.protected_memory import ProtectedMemory, WeightsWritten
from torchferry.eager.refusals import RECURRENT, same_width, within_range
from torchferry.eager.state import SavedState
from torchferry.foreign.posix import after_fork
from torchferry.foreign.torch_dispatch import same_modes_after, transform_level, unwind_transforms
from torchferry.foreign.torch_messages import needs_gradients
from torchferry.foreign.torch_operators import variable_functions

T = TypeVar("T")

PATIENCE = 10.0  # seconds, of the processor too, for a call of a model up to that size on an input that we made


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
            with time_limit(PATIENCE, "the model", again=PATIENCE / 4, of_work=True):
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
            vars(owner).update(before)
            for name in functions.keys() - before.keys():
                vars(owner).pop(name, None)


def call(module: Any, args: tuple[Any, ...], *, seed: int = 0, of: torch.nn.Module | None = None) -> tuple[torch.Tensor, ...]:
    """Return what the flat module gives for copies of `args`, without gradients unless forward itself needs them.

    The seed is set, so that two calls of a model that draws random numbers draw the same ones. `of` is the copy of the model
    where what is called is a function that calls it.
    """
    return protected(module if of is None else of, lambda: called(module, args, seed))


def protected(module: Any, run: Callable[[], T]) -> T:
    """Return what a function gives that calls a copy of the model.

    A copy that has the user's memory for its weights, and is about to write there, is given memory of its own, and run anew.
    """
    theirs = shared_memory(module)
    if not theirs:
        return run()
    try:
        with ProtectedMemory(theirs):
            return run()
    except WeightsWritten:
        own_weights(module)
    return run()


def called(module: Any, args: tuple[Any, ...], seed: int) -> tuple[torch.Tensor, ...]:
    """Return what a call gives; a trace of eager's operators begins at this frame."""
    with untouched_process(), plainly(), _returning():
        seed_all(seed)
        try:
            with torch.no_grad():
                return _detached(module(*clone(args)))
        except RuntimeError as error:
            if not needs_gradients(str(error)):
                raise
        with torch.enable_grad():  # forward takes gradients itself and counts on the caller's mode
            return _detached(module(*clone(args)))


class EndsTheProgram(RuntimeError):
    """A call of the model raised what no program is meant to go on after, such as SystemExit."""


@contextmanager
def _returning() -> Iterator[None]:
    """Let a model that calls `sys.exit()` be one that raises; what a signal's handler raises meanwhile goes its way."""
    try:
        yield
    except (Exception, KeyboardInterrupt, TookTooLong):
        raise
    except BaseException as error:
        handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()}
        if any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__)):
            raise
        raise EndsTheProgram(f"{type(error).__name__}: {error}") from error


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
def untouched_process() -> Iterator[None]:
    """Give back what a call may change of the process, the random number generators among it, as it was."""
    with untouched_rng(), _put_back(*process_wide.ways_back()):
        yield


@contextmanager
def untouched_rng() -> Iterator[None]:
    """Give back the random number generators of torch, numpy and Python as they were."""
    state, numpy_state, python_state = torch.get_rng_state(), np.random.get_state(), random.getstate()
    ways = (
        partial(torch.set_rng_state, state),
        partial(np.random.set_state, numpy_state),
        partial(random.setstate, python_state),
    )
    with _put_back(*ways):
        yield


@contextmanager
def _put_back(*ways: Callable[[], object]) -> Iterator[None]:
    """Go all these ways after the block, however often that is interrupted."""

    def back() -> None:
        for way in ways:
            way()

    with deferred_signals() as signals:
        try:
            yield
        finally:
            signals.defer()
            surely(back)


# A capture changes globals of torch and the code of the model's functions, and every run puts the generators back: threads
# that export take turns, stage by stage. A thread may nest them.
class _Turns:
    """A lock that a thread may take again, and that is nobody's in a fork: whoever had it is not there."""

    def __init__(self) -> None:
        self._anew()
        after_fork(self._anew)

    def _anew(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()


one_at_a_time = _Turns()


@contextmanager
def balanced() -> Iterator[None]:
    """Leave torch's modes, its stack of function transforms, and autocast, as they were.

    An error inside vmap leaves a level on that stack, and one inside a captured autocast block leaves autocast on.
    """
    with one_at_a_time, same_modes_after():
        before = transform_level()
        casts = [(kind, torch.is_autocast_enabled(kind), torch.get_autocast_dtype(kind)) for kind in ("cpu", "cuda")]
        try:
            yield
        finally:
            unwind_transforms(before)
            for kind, on, dtype in casts:
                torch.set_autocast_enabled(kind, on)
                torch.set_autocast_dtype(kind, dtype)


def untouched(model: Any, *, with_weights: bool = False) -> AbstractContextManager[None]:
    """Return what gives back a model's state, and the generators, as they were, whatever the block does.

    Parameters are saved by value `with_weights` alone, behind a function, whose models are not all found to be copied, and when
    it turns out that a model cannot be: see `fresh`.
    """
    return kept(SavedState(model, with_weights=with_weights or not isinstance(model, torch.nn.Module)))


def untouched_by_runs(model: torch.nn.Module) -> AbstractContextManager[None]:
    """Return what gives back a model that the block itself runs; the weights of a large one are not saved by value."""
    return untouched(model, with_weights=weight_bytes(model) <= WHOLE_COPY_BYTES)


@contextmanager
def kept(state: SavedState) -> Iterator[None]:
    """Put back a state that was saved, and the generators, after the block."""
    with untouched_rng(), state.kept():
        yield
