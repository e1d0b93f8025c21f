"""Copies of the user's model, which are run in its place."""

from __future__ import annotations

import copy
import functools
import types
import weakref
from typing import Any

import torch

from torchferry import memory
from torchferry.eager.likeness import is_like
from torchferry.eager.reached import reached_from
from torchferry.eager.stand_ins import AtItsPlace, is_generator
from torchferry.eager.state import open_states
from torchferry.errors import UsageError
from torchferry.foreign.torch_tensors import storage_identity

# Up to here a whole copy is made; a larger model's copy has the same memory for its parameters, as memory would double.
WHOLE_COPY_BYTES = 256 * 2**20

# the user's memory that copies have for their parameters
_shared: weakref.WeakKeyDictionary[torch.nn.Module, frozenset[int]] = weakref.WeakKeyDictionary()
# modules of which a copy was made and looked at: whether it was like them, and had nothing of theirs
_whole: weakref.WeakKeyDictionary[torch.nn.Module, bool] = weakref.WeakKeyDictionary()


def fresh(module: torch.nn.Module) -> torch.nn.Module:
    """Return a copy whose state is as the user left it; the module itself where it cannot be copied.

    Buffers, attributes and parameters are always the copy's own. Those parameters of a large model have the memory of the user's,
    which `call` protects.
    """
    large = weight_bytes(module) > WHOLE_COPY_BYTES
    copied = _copied(module, large)
    if copied is None:
        _protect(module)
        return module
    if large:
        _shared[copied] = frozenset(storage_identity(p) for p in module.parameters())
    return copied


def whole_copy(module: torch.nn.Module) -> torch.nn.Module | None:
    """Return a copy with memory of its own for all that it has, whatever its size; None where it cannot be copied."""
    return _copied(module, large=False)


def _copied(module: torch.nn.Module, large: bool) -> torch.nn.Module | None:
    if _whole.get(module) is False:
        return None
    memo = _aliases(module) if large else {}
    try:
        copied = _deepcopied(module, memo)
    except Exception:  # generators, locks, open files, tensors with a history: anything may refuse to be copied
        memo = (_aliases(module) if large else {}) | _shared_parts(module)
        try:
            copied = _deepcopied(module, memo)
        except Exception:  # it has ways of its own to be copied, and these fail
            return None
    if not isinstance(copied, torch.nn.Module):
        return None
    _rebind(copied, memo)
    if module not in _whole:
        _whole[module] = is_like(copied, module) and _is_apart(copied, module)
    return copied if _whole[module] else None


def _deepcopied(module: torch.nn.Module, memo: dict[int, Any]) -> torch.nn.Module:
    """Return a deep copy, with the attributes of parameters, which torch leaves out."""
    copied = copy.deepcopy(module, memo)
    for parameter in module.parameters():
        made = memo.get(id(parameter))
        if vars(parameter) and made is not None and made is not parameter and not vars(made):
            vars(made).update(copy.deepcopy(vars(parameter), memo))
    return copied


def _is_apart(copied: torch.nn.Module, module: torch.nn.Module) -> bool:
    """Whether nothing that a copy reaches is a part of the model: a `__deepcopy__` may return itself, a function in a list may
    close over a layer.
    """
    theirs = {id(part) for part in (*module.modules(), *module.parameters(), *module.buffers())}
    aliased = {id(p) for p in module.parameters() if type(p) is not torch.nn.Parameter}  # the memory of a large model's
    return not any(id(value) in theirs - aliased for value in reached_from([copied]))


def _protect(module: torch.nn.Module) -> None:
    """Have the weights of a model saved by value that will be run itself; raises UsageError where there is no room for that."""
    needed, free = weight_bytes(module), memory.free()
    if any(is_generator(value) for value in reached_from([module])):
        raise UsageError(
            "the model cannot be copied as a whole, and it holds a generator, of which a call may take values that nobody can "
            "put back, so none is made; give its class a `__deepcopy__` that works"
        )
    if free is not None and needed > free:
        raise UsageError(
            "the model cannot be copied as a whole, and there is no memory to save its weights "
            f"({needed / 2**30:.1f} GB, {free / 2**30:.1f} GB are free): a call could change them for good, so none is made; "
            "give its class a `__deepcopy__` that works, or more memory"
        )
    for state in open_states.get():
        state.save_weights()


def shared_memory(module: Any) -> frozenset[int]:
    """Return what of the user's memory a copy has for its parameters, by identity; nothing for what is no such copy."""
    theirs = _shared.get(module, frozenset()) if isinstance(module, torch.nn.Module) else frozenset()
    return theirs & {storage_identity(p) for p in module.parameters()} if theirs else theirs


def own_weights(module: torch.nn.Module) -> None:
    """Give a copy memory of its own for its parameters; raises UsageError where there is no room for that."""
    needed, free = weight_bytes(module), memory.free()
    if free is not None and needed > free:
        raise UsageError(
            f"the model's forward writes to its weights, and there is no memory for a copy of them ({needed / 2**30:.1f} GB, "
            f"{free / 2**30:.1f} GB are free): a call would change your model, so none is made"
        )
    for parameter in module.parameters():
        parameter.data = parameter.data.clone()


def _aliases(module: torch.nn.Module) -> dict[int, Any]:
    """Return parameters in the same memory, by the identity of those they stand for: `p.data = ...` is for a copy alone."""
    return {id(p): _alias(p) for p in module.parameters() if p is not None}


def _alias(parameter: torch.nn.Parameter) -> torch.nn.Parameter:
    if type(parameter) is not torch.nn.Parameter:
        return parameter
    made = torch.nn.Parameter(parameter.detach(), requires_grad=parameter.requires_grad)
    vars(made).update(vars(parameter))
    return made


def _shared_parts(module: torch.nn.Module) -> dict[int, Any]:
    """Return what the copy of a model shares with it since nothing can copy it, by its identity: a lock, a generator, a file."""
    parts: dict[int, Any] = {}
    for value in reversed(reached_from([module])):  # what is held before who holds it: the least that must be is shared
        if isinstance(value, torch.Tensor):
            if value.grad_fn is not None:  # torch copies no tensor that has a history
                parts[id(value)] = value.detach().clone()
        elif is_generator(value):
            parts[id(value)] = AtItsPlace()
        elif not isinstance(value, torch.nn.Module | dict | list | tuple | set | type) and not _can_be_copied(value, parts):
            parts[id(value)] = value
    return parts


def _can_be_copied(value: Any, parts: dict[int, Any]) -> bool:
    try:
        copy.deepcopy(value, dict(parts))
    except Exception:
        return False
    return True


def _rebind(copied: torch.nn.Module, memo: dict[int, Any]) -> None:
    """Let the copy's functions and weak references lead to its own parts, as the model's to the model's: deepcopy shares them."""
    for part in copied.modules():
        hooks = [t for name, t in vars(part).items() if name.endswith("_hooks") and isinstance(t, dict)]
        for table in (vars(part), *hooks):
            for name, value in list(table.items()):
                if isinstance(value, types.FunctionType):
                    table[name] = _rebound(value, memo)
    tables = [held for held in memo.values() if type(held) in (dict, list)]
    for table in (*map(vars, copied.modules()), *tables):
        for key, value in list(table.items() if isinstance(table, dict) else enumerate(table)):
            if type(value) is weakref.ReferenceType and id(value()) in memo:
                table[key] = weakref.ref(memo[id(value())])


def _rebound(function: types.FunctionType, memo: dict[int, Any]) -> types.FunctionType:
    """Return the function, with copies for what it closes over and for the globals that it names; itself where it has neither."""
    scope = function.__globals__
    named = {n: memo[id(scope[n])] for n in function.__code__.co_names if n in scope and id(scope[n]) in memo}
    cells = tuple(_copied_cell(cell, memo) for cell in function.__closure__ or ())
    if not named and cells == (function.__closure__ or ()):
        return function
    bound = types.FunctionType(function.__code__, scope | named, function.__name__, function.__defaults__, cells)
    bound.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(bound, function)
    del bound.__wrapped__  # type: ignore[attr-defined]  # it is no wrapper
    return bound


def _copied_cell(cell: types.CellType, memo: dict[int, Any]) -> types.CellType:
    if cell == types.CellType() or id(cell.cell_contents) not in memo:  # the first is an empty one
        return cell
    return types.CellType(memo[id(cell.cell_contents)])


def weight_bytes(module: torch.nn.Module) -> int:
    """Return the size of a module's parameters and buffers, each storage counted once."""
    tensors = [t for t in [*module.parameters(), *module.buffers()] if not t.is_meta and t.layout is torch.strided]
    return sum({t.data_ptr(): t.numel() * t.element_size() for t in tensors}.values())
