"""From the name of a model to the model, with an example call: `package.module:name`, `file.py:name`, `.pt2`, `hf:DIRECTORY`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchferry.cli.spell import sensible, split
from torchferry.cli.supervise import Stopped
from torchferry.cli.words import ExampleInput
from torchferry.errors import FileRefused, TorchferryError, UsageError, did_you_mean
from torchferry.extras import require
from torchferry.whose_code import is_users

if TYPE_CHECKING:
    from torchferry.result import Kind, Result

SEED = 20260  # for factories that set none: not one that they would set themselves, so that it can be told


@dataclass(frozen=True, slots=True)
class Loaded:
    """A model and an example call of it."""

    model: Any
    args: Any = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    input_names: tuple[str, ...] | None = None
    tokenizer: Path | None = None  # the directory that has one
    words: str = ""  # what the user should know of how it was loaded

    def call(self, arrays: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return a call with these arrays as tensors: by keyword where the model knows the names, else by position."""
        import torch

        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        by_name = set(tensors) <= set(_parameters(self.model))
        return ((), tensors) if by_name else (tuple(tensors.values()), {})


class LoadFailed(TorchferryError):
    """The user's own code raised while the model was being made."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(f"`{name}` could not be loaded: {type(error).__name__}: {error}")
        self.name = name
        self.error = error

    def result(self, kind: Kind, seconds: float) -> Result:
        """Return the failure as a result like any other: with a diagnosis at the user's line."""
        from torchferry.execution import broken_off
        from torchferry.records import Fault, Location, Step
        from torchferry.records.findings import ModelNotLoaded

        where = Location(*_users_line(self.error))
        found = ModelNotLoaded(self.name, type(self.error).__name__, str(self.error), location=where)
        return broken_off(kind, Step("inputs", fault=Fault.of(self.error), findings=(found,)), seconds)


def load(name: str, inputs: Sequence[ExampleInput] = (), *, trust: bool = False, evaluate: bool | None = None) -> Loaded:
    """Return the model that `name` names, with an example: the one it comes with, or one made from `inputs`.

    trust: run the code that comes with it. A program that is not trusted stays a path, which the inputs stage refuses.
    evaluate: put it into eval mode; None: where it was made from its class, which nobody else can have done it for.
    """
    require("a model", "torch")
    sensible(name)
    if name.startswith("hf:"):
        loaded = _hugging(name, trust_remote_code=trust)
    elif name.lower().endswith(".pt2"):
        if not trust:
            return Loaded(Path(name))
        loaded = _program(name)
    else:
        loaded = _from_code(name, evaluate)
    return _with_inputs(loaded, inputs) if inputs else _with_an_example(name, loaded)


def as_result(refused: FileRefused, kind: Kind, seconds: float) -> Result:
    """Return what a file may not say as a result like any other."""
    from torchferry.execution import broken_off
    from torchferry.records import Fault, Step
    from torchferry.records.findings import DocumentRefused

    found = DocumentRefused(refused.document, refused.why)
    return broken_off(kind, Step("inputs", fault=Fault.of(refused), findings=(found,)), seconds)


def _with_an_example(name: str, loaded: Loaded) -> Loaded:
    """Return the model as it is, unless it came without the example that it needs."""
    given = loaded.kwargs or not (isinstance(loaded.args, tuple | list) and not loaded.args)
    needed = [] if given or not hasattr(loaded.model, "forward") else _needs(loaded.model.forward)
    if needed:
        options = " ".join(f"--input {n}:SHAPE:DTYPE" for n in needed)
        raise UsageError(f"`{name}` comes without an example input; let it return (model, args), or add {options}")
    return loaded


def _program(path: str) -> Loaded:
    from torchferry.inputs.binding.saved_program import loaded
    from torchferry.records import Step

    program = loaded(Path(path), trust=True)
    if isinstance(program, Step):
        assert program.fault is not None  # it has nothing else
        why = f"{program.fault.type_name}: {program.fault.text}"
        raise UsageError(f"`{path}` cannot be read as a torch.export program: {why}")
    args, kwargs = program.example_inputs or ((), {})
    return Loaded(program, args, dict(kwargs))


def _hugging(name: str, *, trust_remote_code: bool) -> Loaded:
    from torchferry.cli import hugging

    try:
        model, kwargs, tokenizer, said = hugging.load(name.removeprefix("hf:"), trust_remote_code=trust_remote_code)
    except TorchferryError:
        raise
    except Exception as error:  # damaged weights, a config that makes no model, code that came with it: anything is raised
        raise LoadFailed(name, error) from error
    return Loaded(model, (), kwargs, tokenizer=tokenizer, words=said)


def _from_code(name: str, evaluate: bool | None) -> Loaded:
    where, _, what = split(name)
    _seed()
    try:
        module = _from_file(Path(where)) if where.lower().endswith(".py") else _import(where)
        found = _attribute(module, where, what)
        return _in_mode(_called(name, found), isinstance(found, type) if evaluate is None else evaluate)
    except (TorchferryError, KeyboardInterrupt, Stopped):
        raise
    except BaseException as error:  # the user's code may raise anything, or end with `sys.exit()`
        raise LoadFailed(name, error) from error


def _seed() -> None:
    """Start what draws random numbers where it starts each time: weights that a factory draws are the same in each command."""
    import random

    import numpy as np
    import torch

    torch.manual_seed(SEED)
    np.random.seed(SEED)
    random.seed(SEED)


def _in_mode(loaded: Loaded, evaluate: bool) -> Loaded:
    """Return the model in the mode that was asked for, with what was done to it."""
    import torch

    drew = torch.initial_seed() == SEED and not torch.equal(
        torch.get_rng_state(), torch.Generator().manual_seed(SEED).get_state()
    )
    said = [f"what it draws at random starts from seed {SEED}"] if drew else []
    if evaluate and getattr(loaded.model, "training", False):
        loaded.model.eval()
        said.append("put in eval mode")
    return replace(loaded, words="; ".join(said))


def _import(module: str) -> Any:
    sys.path.insert(0, str(Path.cwd()))  # as `python` itself does; the `torchferry` script does not
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(error.name + ".")):
            raise UsageError(f"there is no module `{error.name}` here; for a file, write path/to/file.py:name") from error
        raise


def _from_file(path: Path) -> Any:
    sys.path.insert(0, str(path.resolve().parent))  # so that it finds its neighbours, as when it is run
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    if spec is None or spec.loader is None:
        raise UsageError(f"`{path}` cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses and pickles look their own module up
    spec.loader.exec_module(module)
    return module


def _attribute(module: Any, where: str, what: str) -> Any:
    found = module
    for part in what.split("."):
        if not hasattr(found, part):
            known = [n for n in vars(found) if not n.startswith("_")] if hasattr(found, "__dict__") else []
            raise UsageError(f"`{where}` has no `{what}`{did_you_mean(part, known)}")
        found = getattr(found, part)
    return found


def _called(name: str, found: Any) -> Loaded:
    """Return the model behind what was named: itself, or what it makes when it is called."""
    import torch

    if isinstance(found, torch.nn.Module | torch.export.ExportedProgram):
        return Loaded(found)
    if not callable(found):
        raise UsageError(f"`{name}` is {_a(found)}; name a model, its class, or a function that returns it")
    needed = _needs(found)
    if needed:
        words = ", ".join(f"`{n}`" for n in needed)
        raise UsageError(f"`{name}` cannot be called without {words}; write a function without arguments that returns the model")
    return _unpacked(name, found())


def _unpacked(name: str, made: Any) -> Loaded:
    model, *call = made if isinstance(made, tuple) else (made,)
    if len(call) == 2 and not isinstance(call[1], dict):
        raise UsageError(f"`{name}` returned a third part that is {_a(call[1])}; it is the keyword arguments, a dict")
    if len(call) > 2:
        raise UsageError(f"`{name}` returned a tuple of {len(call) + 1}; return a model, (model, args), or (model, args, kwargs)")
    if isinstance(model, Mapping):  # a state_dict, or a checkpoint with one in it
        raise UsageError(
            f"`{name}` returned weights without a model; build the model, load them into it with `load_state_dict`, "
            "and return (model, args)"
        )
    if not callable(model) and not hasattr(model, "graph_module"):
        got = "None: is a `return` missing?" if model is None else f"{_a(model)};"
        raise UsageError(f"`{name}` returned {got} return a model, (model, args), or (model, args, kwargs)")
    return Loaded(model, call[0] if call else (), dict(call[1]) if len(call) == 2 else {})


def _with_inputs(loaded: Loaded, inputs: Sequence[ExampleInput]) -> Loaded:
    """Return the model with examples made as asked: by keyword where the model knows the names, else by position."""
    from torchferry.cli import examples

    made = examples.make(loaded.model, inputs)
    if set(made) <= set(_parameters(loaded.model)):
        return replace(loaded, args=(), kwargs=made, input_names=None)
    return replace(loaded, args=tuple(made.values()), kwargs={}, input_names=tuple(made))


def _parameters(model: Any) -> list[str]:
    try:
        return list(inspect.signature(getattr(model, "forward", model)).parameters)
    except (TypeError, ValueError):  # built-in or scripted: it has no signature to read
        return []


def _needs(function: Any) -> list[str]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    open_ = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in open_]


def _a(value: Any) -> str:
    return f"an object of type `{type(value).__name__}`"


def _users_line(error: BaseException) -> tuple[str | None, int | None]:
    """Return the innermost line of the user's that raised, or where a syntax error stands."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if is_users(frame.filename):
            return frame.filename, frame.lineno
    return None, None
