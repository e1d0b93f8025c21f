"""What is to be called: the model behind its wrappers, and the signature that arguments are bound to."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from torchferry.errors import UsageError
from torchferry.foreign.torch_modules import FORWARDS, behind_compiled, parameters_of


@dataclass(frozen=True, slots=True)
class Callee:
    """A module with the method to call, or a function with the modules that it uses; and arguments given beforehand."""

    module: torch.nn.Module | None
    method: str
    function: Any
    signature: inspect.Signature
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    program: Any = None  # the ExportedProgram that was given instead of a module

    @property
    def owner(self) -> Any:
        """The object whose source the user wrote: the module or the function."""
        return self.module if self.module is not None else self.function


def find(model: Any) -> Callee:
    """Return what `model` stands for, whatever it is wrapped in."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    program = None
    while (inner := _inside(model)) is not None:
        if isinstance(model, functools.partial):
            args, kwargs = (*model.args, *args), {**model.keywords, **kwargs}
        model = inner
    if isinstance(model, torch.export.ExportedProgram):
        program, model = model, model.module()
    function, module, method = _split(model)
    _materialised(module)
    signature = _signature(getattr(module, method) if module is not None else function, module)
    if args or kwargs:
        signature = inspect.signature(functools.partial(_with(signature), *args, **kwargs))
        signature = signature.replace(parameters=[p for n, p in signature.parameters.items() if n not in kwargs])
    return Callee(module, method, function, signature, args, kwargs, program)


def _materialised(module: torch.nn.Module | None) -> None:
    """Refuse a model with weights that do not exist yet: each copy would make its own, and none would be the user's."""
    parts = module.named_modules() if isinstance(module, torch.nn.Module) else ()
    lazy = [(path, part) for path, part in parts if any(is_lazy(p) for p in parameters_of(part).values())]
    if lazy:
        path, part = lazy[0]
        raise UsageError(
            f"`{path or type(part).__name__}` ({type(part).__name__}) has no weights yet: a lazy module makes them when called. "
            "Call the model once, then export it: model(*args)"
        )


def _inside(model: Any) -> Any:
    """Return what a wrapper wraps, or None."""
    if isinstance(model, functools.partial):
        return model.func
    if isinstance(model, torch.nn.DataParallel | torch.nn.parallel.DistributedDataParallel):
        return model.module
    return behind_compiled(model)


def _split(model: Any) -> tuple[Any, torch.nn.Module | None, str]:
    """Return (function, None, "") or (None, module, method)."""
    if isinstance(model, torch.nn.Module):
        return None, model, "forward"
    if isinstance(owner := getattr(model, "__self__", None), torch.nn.Module):
        name = model.__name__
        return None, owner, "forward" if name in FORWARDS else name
    if isinstance(model, type):
        raise UsageError(f"`{model.__name__}` is a class, not a model: pass an instance, such as `{model.__name__}(...)`")
    if isinstance(model, torch.Tensor | Mapping):
        raise UsageError(
            f"the model is a {type(model).__name__}, and weights alone are not a model: build it, load them into it with "
            "`model.load_state_dict(...)`, and pass the model"
        )
    if not callable(model):
        raise UsageError(f"the model is a {type(model).__name__}, which cannot be called")
    return model, None, ""


def _signature(function: Any, module: torch.nn.Module | None) -> inspect.Signature:
    if isinstance(module, torch.jit.ScriptModule):
        return _script_signature(function)
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # a builtin without a text signature
        anything = inspect.Parameter("args", inspect.Parameter.VAR_POSITIONAL)
        return inspect.Signature([anything])


def _script_signature(method: Any) -> inspect.Signature:
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Signature(
        [
            inspect.Parameter(a.name, kind, default=a.default_value if a.has_default_value() else inspect.Parameter.empty)
            for a in method.schema.arguments[1:]  # the first is the module itself, whatever it is called
        ]
    )


def _with(signature: inspect.Signature) -> Any:
    """Return a function that has this signature, for `inspect` to work on."""

    def stand_in(*args: Any, **kwargs: Any) -> None: ...

    stand_in.__signature__ = signature  # type: ignore[attr-defined]
    return stand_in


def modules_in(function: Any) -> dict[str, torch.nn.Module]:
    """Return the modules that a plain function reaches through its closure, its globals and its object's attributes."""
    inner = inspect.unwrap(function) if callable(function) else function
    found: dict[str, Any] = {}
    if isinstance(inner, types.MethodType):
        found.update(vars(inner.__self__) if hasattr(inner.__self__, "__dict__") else {})
        inner = inner.__func__
    elif not isinstance(inner, types.FunctionType) and hasattr(inner, "__dict__"):
        found.update(vars(inner))
    if isinstance(inner, types.FunctionType):
        found.update(zip(inner.__code__.co_freevars, (_content(c) for c in inner.__closure__ or ()), strict=True))
        found.update({n: inner.__globals__[n] for n in inner.__code__.co_names if n in inner.__globals__})
    return {name: value for name, value in found.items() if isinstance(value, torch.nn.Module)}


def rebound(function: Any, modules: Mapping[str, torch.nn.Module]) -> Any:
    """Return a plain function that uses these modules where it used its own; other callables as they are."""
    if not isinstance(function, types.FunctionType) or not modules:
        return function
    names = function.__code__.co_freevars
    cells = tuple(
        types.CellType(modules[n]) if n in modules else c for n, c in zip(names, function.__closure__ or (), strict=True)
    )
    scope = {**function.__globals__, **modules} if any(n in modules for n in function.__code__.co_names) else function.__globals__
    made = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, cells)
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
