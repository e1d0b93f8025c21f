"""The flat form of a model: tensors in by position, the user's containers rebuilt inside, a tuple of tensors out."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchferry.inputs.binding import trees
from torchferry.inputs.binding.callee import Callee, modules_in, rebound

TAKEN = frozenset(dir(builtins))


@dataclass(frozen=True, slots=True)
class ArgumentSlot:
    """A leaf of the arguments: an input of the file (`index` in its inputs) or a constant kept inside."""

    name: str
    index: int | None
    constant: Any = None
    number: type | None = None  # int, float, bool: fed as a 0-d tensor, passed on as a number; complex: fed as real pairs

    def __deepcopy__(self, memo: Any) -> ArgumentSlot:
        return self


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to make the user's call from flat tensors."""

    args: tuple[trees.Tree, ...]
    kwargs: Mapping[str, trees.Tree]
    slots: tuple[ArgumentSlot, ...]

    def __deepcopy__(self, memo: Any) -> Recipe:
        return self

    def call(self, tensors: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the args and kwargs that the user would have passed."""
        values = iter(
            [slot.constant if slot.index is None else _as_given(tensors[slot.index], slot.number) for slot in self.slots]
        )

        def take(tree: trees.Tree) -> Any:
            return trees.rebuild(tree, [next(values) for _ in trees.leaf_names(tree)])

        args = tuple(take(tree) for tree in self.args)
        return args, {name: take(tree) for name, tree in self.kwargs.items()}


def _as_given(tensor: Any, kind: type | None) -> Any:
    """Return an input as the user's model expects it."""
    if kind is complex:
        return torch.view_as_complex(tensor.contiguous())
    if kind in (int, float, bool) and isinstance(tensor, torch.Tensor):
        return tensor.item()
    return tensor


class Flat(torch.nn.Module):
    """The user's model (`model`) behind a plain signature; made by `flat_module`, which gives it its forward."""

    def __init__(self, callee: Callee, recipe: Recipe) -> None:
        super().__init__()
        self.model = callee.module if callee.module is not None else torch.nn.ModuleDict(modules_in(callee.function))
        # the same object, so that a copy of this module copies both together
        self.function = callee.function
        self.method = callee.method
        self.given_args, self.given_kwargs = callee.args, dict(callee.kwargs)
        self.recipe = recipe
        self.training = bool(getattr(callee.module, "training", False))  # a frozen script has no mode

    def run(self, tensors: Sequence[Any]) -> tuple[torch.Tensor, ...]:
        """Return the outputs as tensors, in the order of `named_outputs`."""
        return tuple(as_tensor(leaf) for _, leaf in self.named_outputs(tensors) if is_output(leaf))

    def named_outputs(self, tensors: Sequence[Any]) -> trees.Parts:
        """Return all leaves of what the user's model answers, with their names."""
        args, kwargs = self.recipe.call(tensors)
        return trees.outputs(self.answer(args, kwargs))

    def answer(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Return what the user's model answers to the user's own arguments."""
        args, kwargs = (*self.given_args, *args), {**self.given_kwargs, **kwargs}
        if self.function is not None:
            return rebound(self.function, dict(self.model.items()))(*args, **kwargs)  # type: ignore[operator]
        if self.method == "forward":
            return self.model(*args, **kwargs)
        return getattr(self.model, self.method)(*args, **kwargs)


def flat_module(callee: Callee, recipe: Recipe, names: Sequence[str]) -> Flat:
    """Return the flat module with a forward whose parameters are called after the inputs."""
    parameters = "".join(f"{name}, " for name in identifiers(names))
    source = f"def forward(self, {parameters}):\n    return self.run(({parameters}))\n"
    scope: dict[str, Any] = {}
    exec(compile(source, "<torchferry flat module>", "exec"), scope)  # torch.export refuses dynamic shapes for *args
    return type("Flat", (Flat,), {"forward": scope["forward"]})(callee, recipe)  # type: ignore[no-any-return]


def identifiers(names: Sequence[str]) -> list[str]:
    """Return the names as Python identifiers, each once."""
    words = [re.sub(r"\W", "_", name) for name in names]
    # torch.fx renames placeholders that are called like a builtin, such as `input`
    words = [f"arg_{w}" if not w or w[0].isdigit() or keyword.iskeyword(w) or w == "self" or w in TAKEN else w for w in words]
    return trees.unique(words)


def is_output(leaf: Any) -> bool:
    """Whether a leaf of the outputs can be an output of the file."""
    return isinstance(leaf, torch.Tensor | bool | int | float | torch.SymInt | torch.SymFloat | torch.SymBool)


def as_tensor(leaf: Any) -> torch.Tensor:
    """Return an output as the file gives it: numbers as 0-d tensors, complex tensors as pairs of real ones."""
    if isinstance(leaf, torch.Tensor):
        return torch.view_as_real(leaf.resolve_conj()) if leaf.is_complex() else leaf
    if isinstance(leaf, bool | torch.SymBool):
        return torch.scalar_tensor(leaf, dtype=torch.bool)  # type: ignore[arg-type]
    if isinstance(leaf, int | torch.SymInt):
        return torch.scalar_tensor(leaf, dtype=torch.int64)
    return torch.scalar_tensor(leaf, dtype=torch.get_default_dtype())
