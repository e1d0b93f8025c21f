"""The state of a model, saved by value and put back in place.

Everything that a call may write to (`reached.py`) is put back into the very objects it was found in (`put_back.py`): a handle of
a hook still removes its hook, and two modules that shared a list share it again. Putting back twice is the same as once.
"""

from __future__ import annotations

import array
import contextlib
import functools
import io
import random
import types
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import torch
from torch.nn.parameter import is_lazy

from torchferry.deferred import deferred_signals, surely
from torchferry.eager import put_back as put
from torchferry.eager.put_back import Restore
from torchferry.eager.reached import CACHE, cells, is_own, named_globals, own_dict, reached_from, slots
from torchferry.eager.stand_ins import is_iterator, stand_in
from torchferry.foreign.torch_dispatch import without_dispatch_modes, without_torch_function
from torchferry.foreign.torch_tensors import parts_of_sparse

# what will be put back, outermost first
open_states: ContextVar[tuple[SavedState, ...]] = ContextVar("torchferry_open_states", default=())


class SavedState:
    """What a model, or a function that calls models, was when this was made.

    Tensors are saved by value, but for parameters: a copy of these is made only where `with_weights` says so, since forward
    seldom writes to them and they are large. That each still is the tensor that it was is seen to in any case.
    """

    def __init__(self, *roots: Any, with_weights: bool = False) -> None:
        self._restores: list[Restore] = []
        self._stand_ins: list[Restore] = []
        self._weights: list[torch.Tensor] = []
        with _plain_tensors():
            for value in reached_from(roots):
                self._restores += self._ways_back(value)
        if with_weights:
            self.save_weights()

    def save_weights(self) -> None:
        """Save the parameters by value too, as they are now."""
        with _plain_tensors():
            self._restores += [put.values_back(p) for p in self._weights]
        self._weights = []

    def restore(self) -> None:
        """Put everything back as it was."""
        failed: list[Exception] = []
        with _plain_tensors():
            for restore in self._restores:
                try:
                    restore()
                except Exception as error:  # an object of the user's own that refuses to be set: the others still are
                    failed.append(error)
        if failed:
            raise failed[0]

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Put everything back after the block, whatever happens in it and however often it is interrupted."""
        done, token = False, open_states.set((*open_states.get(), self))
        with deferred_signals() as signals:
            try:
                try:
                    for place in self._stand_ins:
                        place()
                    yield
                finally:
                    signals.defer()
                    surely(self.restore)
                    done = True
            finally:  # an interrupt may have come before the first line above
                if not done:
                    signals.defer()
                    surely(self.restore)
                open_states.reset(token)

    def _ways_back(self, value: Any) -> list[Restore]:
        match value:
            case torch.Tensor():
                return self._tensor(value)
            case torch.nn.Module():
                return _object(value)
            case types.FunctionType():
                return self._function(value)
            case CACHE():
                return [functools.partial(put.cache_back, value, value.cache_info().currsize)]
            case dict():
                return [functools.partial(put.dict_back, value, self._standing(value, dict(put.plainly(value).items(value))))]
            case list():
                for index, held in enumerate(value):
                    self._stand_in(held, functools.partial(list.__setitem__, value, index))
                return [functools.partial(put.list_back, value, list(value))]
            case set():
                return [functools.partial(put.set_back, value, set(value))]
            case deque():
                return [functools.partial(put.deque_back, value, list(value))]
            case bytearray() | array.array():
                return [functools.partial(value.__setitem__, slice(None), value[:])]
            case io.StringIO() | io.BytesIO() if not value.closed:
                return [functools.partial(put.text_back, value, value.getvalue(), value.tell())]
            case io.IOBase() if not value.closed and value.seekable() and value.readable() and not value.writable():
                with contextlib.suppress(OSError):  # of a text that is read line by line nobody knows the place
                    return [functools.partial(put.position_back, value, value.tell())]
                return []
            case np.ndarray() if value.flags.writeable:
                return [functools.partial(put.array_back, value, value.copy())]
            case torch.Generator():
                return [functools.partial(value.set_state, value.get_state())]
            case random.Random() if not isinstance(value, random.SystemRandom):  # which has no state
                return [functools.partial(value.setstate, value.getstate())]
            case np.random.RandomState():
                return [functools.partial(value.set_state, value.get_state())]
            case np.random.Generator() | np.random.BitGenerator():
                bits = value.bit_generator if isinstance(value, np.random.Generator) else value
                return [functools.partial(setattr, bits, "state", bits.state)]
            case type() if is_own(value):
                attributes = put.attributes_of(value)
                for name, held in attributes.items():
                    self._stand_in(held, functools.partial(setattr, value, name))
                return [functools.partial(put.class_back, value, attributes)]
            case _ if (memory := put.memory_of(value)) is not None:
                return [functools.partial(put.memory_back, value, memory.copy())]
            case _ if is_own(type(value)):
                return _object(value)
            case _:
                return []

    def _function(self, function: types.FunctionType) -> list[Restore]:
        for cell, held in (closed_over := cells(function)):
            self._stand_in(held, functools.partial(setattr, cell, "cell_contents"))
        named = [(space, self._standing(space, part)) for space, part in named_globals(function) if part]
        back = functools.partial(put.function_back, function, function.__defaults__, function.__kwdefaults__, closed_over)
        return [back, *(functools.partial(put.dict_back, space, part, part=True) for space, part in named)]

    def _standing(self, owner: dict[Any, Any], held: dict[Any, Any]) -> dict[Any, Any]:
        """Return what a dict holds, or a part of it, with something to stand for the iterators there."""
        for key, item in held.items():
            self._stand_in(item, functools.partial(put.plainly(owner).__setitem__, owner, key))
        return held

    def _stand_in(self, held: Any, place: Callable[[Any], None]) -> None:
        """Have something put in the place of an iterator when the block begins."""
        if is_iterator(held):
            self._stand_ins.append(functools.partial(place, stand_in(held)))

    def _tensor(self, tensor: torch.Tensor) -> list[Restore]:
        if is_lazy(tensor) or tensor.is_meta:
            return []
        if tensor.layout is not torch.strided:
            return [put.sparse_back(tensor)] if parts_of_sparse(tensor) else []
        if tensor.is_inference() or tensor.is_quantized:
            return [put.values_back(tensor)]
        storage, size = tensor.untyped_storage(), tensor.untyped_storage().nbytes()
        grad = tensor.grad if tensor.is_leaf else None
        ways: list[Restore] = [
            functools.partial(put.size_back, storage, size),
            functools.partial(put.tensor_back, tensor, tensor.detach(), tensor.requires_grad, grad),
        ]
        if isinstance(tensor, torch.nn.Parameter):
            self._weights.append(tensor)
            return ways
        return [*ways, put.values_back(tensor)]


def _object(value: Any) -> list[Restore]:
    back: list[Restore] = [functools.partial(put.slots_back, value, slots(value, written_in_python=True))]
    held = own_dict(value)
    return back if held is None else [functools.partial(put.object_back, value, type(value), held), *back]


@contextmanager
def _plain_tensors() -> Iterator[None]:
    """Let tensors be copied as they are, whatever stands in for torch's operators around the block: a copy must not be fake."""
    with without_dispatch_modes(), without_torch_function():
        yield
