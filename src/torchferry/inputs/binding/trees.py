"""Any Python container as named leaves and back: dicts, dataclasses, NamedTuples, cache objects, objects with attributes.

`flatten` takes a value apart into named leaves and a `Tree`; `rebuild` puts the same kind of value together from other
leaves. Nothing is registered with torch, and transformers is never imported: its classes are known by their shape.
Containers are rebuilt from empty shells of the originals, never by replaying how they were filled: a cache refilled
through its own `update()` would leave constants in a captured graph.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from torchferry.foreign.torch_trees import is_registered, taken_apart

DEPTH = 12  # deeper than any sane container; an object graph with cycles ends here
PAST, PRESENT = "past_key_values", "present"
Parts = list[tuple[str, Any]]
Make = Callable[[list[Any]], Any]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A place for one value."""

    name: str


@dataclass(frozen=True, slots=True)
class Branch:
    """A container: its kind in words, its children, and how to make it from them."""

    kind: str
    children: tuple[Tree, ...]
    make: Make

    def __deepcopy__(self, memo: Any) -> Branch:
        return self  # immutable, and its shells hold no tensors worth copying


Tree = Leaf | Branch


def flatten(value: Any, name: str) -> tuple[Parts, Tree]:
    """Return the named leaves of a value in order, and the tree that puts it together again."""
    return _flatten(value, name, DEPTH)


def rebuild(tree: Tree, values: Sequence[Any]) -> Any:
    """Return the value that a tree describes, made from as many leaves as it has."""
    return _rebuild(tree, iter(values))


def leaf_names(tree: Tree) -> Iterator[str]:
    """Yield the names of a tree's leaves in order."""
    if isinstance(tree, Leaf):
        yield tree.name
    else:
        for child in tree.children:
            yield from leaf_names(child)


def outline(tree: Tree) -> str:
    """Return what kinds of container a tree is made of, as text that can be compared."""
    return "*" if isinstance(tree, Leaf) else f"{tree.kind}({', '.join(outline(c) for c in tree.children)})"


def outputs(value: Any) -> Parts:
    """Return a model's outputs as named leaves, in the order in which the user would meet them; None is left out."""
    parts = [(name, leaf) for name, leaf in _outputs(value, "", DEPTH) if leaf is not None]
    return list(zip(unique(name for name, _ in parts), (leaf for _, leaf in parts), strict=True))


def unique(names: Iterator[str] | Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Return the names with a number added where one was there before."""
    seen, result = set(taken), []
    for name in names:
        fresh = next(n for n in itertools.chain([name], (f"{name}_{i}" for i in itertools.count(1))) if n not in seen)
        seen.add(fresh)
        result.append(fresh)
    return result


def children(value: Any, name: str) -> Parts | None:
    """Return the named parts of a container, or None for a leaf."""
    opened = _open(value, name)
    return None if opened is None else opened[1]


def is_cache(value: Any) -> bool:
    """Whether a value is a cache of attention keys and values made of layers, as in transformers."""
    layers = getattr(value, "layers", None)
    if not isinstance(layers, list) or isinstance(value, torch.nn.Module):
        return False
    return hasattr(value, "get_seq_length") if not layers else all(hasattr(la, "keys") and not callable(la.keys) for la in layers)


def is_pair_of_caches(value: Any) -> bool:
    """Whether a value holds the caches of a decoder and of its encoder, as in transformers."""
    return is_cache(getattr(value, "self_attention_cache", None)) and is_cache(getattr(value, "cross_attention_cache", None))


def is_legacy_cache(value: Any) -> bool:
    """Whether a value is a tuple of (key, value) tuples of four-dimensional tensors, one for each layer."""
    return (
        isinstance(value, tuple)
        and bool(value)
        and all(
            type(la) is tuple and len(la) in (2, 4) and all(isinstance(t, torch.Tensor) and t.dim() == 4 for t in la)
            for la in value
        )
    )


# --- taking apart --------------------------------------------------------------------------------


def _flatten(value: Any, name: str, depth: int) -> tuple[Parts, Tree]:
    opened = _open(value, name) if depth else None
    if opened is None:
        return [(name, value)], Leaf(name)
    kind, parts, make = opened
    leaves: Parts = []
    children = []
    for child_name, child in parts:
        found, tree = _flatten(child, child_name, depth - 1)
        leaves += found
        children.append(tree)
    return leaves, Branch(kind, tuple(children), make)


def _rebuild(tree: Tree, values: Iterator[Any]) -> Any:
    if isinstance(tree, Leaf):
        return next(values)
    return tree.make([_rebuild(child, values) for child in tree.children])


def _open(value: Any, name: str) -> tuple[str, Parts, Make] | None:
    """Return the kind of a container, its named parts and how to make it from parts; None for a leaf."""
    kind = type(value).__name__
    if is_pair_of_caches(value):
        return kind, *_pair_of_caches(value, name)
    if is_cache(value):
        return kind, *_cache(value, name, ("key", "value"))
    if isinstance(value, list | tuple | collections.deque):
        return f"{kind} of {len(value)}", *_sequence(value, name)
    if isinstance(value, Mapping | collections.UserDict):
        return f"{kind} of {', '.join(map(str, value))}", *_mapping(value, name)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return kind, *_dataclass(value, name)
    if is_registered(value):
        return kind, *_registered(value, name)
    if _is_plain_object(value) and _holds_tensors(value):
        return kind, *_attributes(value, name, list(vars(value)))
    return None


def _sequence(value: Any, name: str) -> tuple[Parts, Make]:
    cls = type(value)
    if hasattr(value, "_fields"):
        return [(f"{name}.{f}", v) for f, v in zip(value._fields, value, strict=True)], lambda parts: cls(*parts)
    if is_legacy_cache(value):
        words = ("key", "value") if len(value[0]) == 2 else ("decoder.key", "decoder.value", "encoder.key", "encoder.value")
        flat = [(f"{name}.{i}.{w}", t) for i, layer in enumerate(value) for w, t in zip(words, layer, strict=False)]
        step = len(words)
        return flat, lambda parts: cls(tuple(parts[i : i + step]) for i in range(0, len(parts), step))
    return [(f"{name}.{i}", v) for i, v in enumerate(value)], cls


def _mapping(value: Any, name: str) -> tuple[Parts, Make]:
    keys = list(value)
    parts = [(f"{name}.{key}", value[key]) for key in keys]
    if type(value) is dict:
        return parts, lambda made: dict(zip(keys, made, strict=True))
    if isinstance(value, collections.UserDict):
        shell = copy.copy(value)
        shell.data = {}

        def fill(made: list[Any]) -> Any:
            full = copy.copy(shell)
            full.data = dict(zip(keys, made, strict=True))
            return full

        return parts, fill
    cls = type(value)
    if dataclasses.is_dataclass(cls):  # a ModelOutput fills its own keys from its fields
        return parts, lambda made: cls(**dict(zip(keys, made, strict=True)))
    if isinstance(value, collections.defaultdict):
        factory = value.default_factory
        return parts, lambda made: cls(factory, zip(keys, made, strict=True))
    return parts, lambda made: cls(zip(keys, made, strict=True))


def _dataclass(value: Any, name: str) -> tuple[Parts, Make]:
    fields = dataclasses.fields(value)
    names = [f.name for f in fields]
    parts = [(f"{name}.{n}", getattr(value, n)) for n in names]
    if not all(f.init for f in fields):
        return _attributes(value, name, names)
    cls = type(value)
    return parts, lambda made: cls(**dict(zip(names, made, strict=True)))


def _registered(value: Any, name: str) -> tuple[Parts, Make]:
    children, make = taken_apart(value)
    return [(f"{name}.{i}", c) for i, c in enumerate(children)], make


def _attributes(value: Any, name: str, names: list[str]) -> tuple[Parts, Make]:
    shell = _shell(value, names)

    def fill(made: list[Any]) -> Any:
        full = copy.copy(shell)
        for attribute, part in zip(names, made, strict=True):
            object.__setattr__(full, attribute, part)
        return full

    return [(f"{name}.{n}", getattr(value, n)) for n in names], fill


def _shell(value: Any, names: list[str]) -> Any:
    """Return a copy of an object with nothing in the attributes that will be filled: it must not keep tensors alive."""
    shell = copy.copy(value)
    for name in names:
        object.__setattr__(shell, name, None)
    return shell


def _holds_tensors(value: Any, depth: int = 4) -> bool:
    """Whether an object of an unknown class carries tensors in its attributes, or in what these hold, and so is a container."""
    if isinstance(value, torch.Tensor) or is_cache(value):
        return True
    if not depth or isinstance(value, str | bytes | int | float | type(None)):
        return False
    if isinstance(value, Mapping):
        return any(_holds_tensors(v, depth - 1) for v in value.values())
    if isinstance(value, list | tuple):
        return any(_holds_tensors(v, depth - 1) for v in value)
    return _is_plain_object(value) and any(_holds_tensors(v, depth - 1) for v in vars(value).values())


def _is_plain_object(value: Any) -> bool:
    """Whether an object is one of the user's, with attributes; not a module, a class, a function or anything of torch itself."""
    if isinstance(value, type | torch.nn.Module | torch.Generator) or callable(value) or not hasattr(value, "__dict__"):
        return False
    return type(value).__module__.partition(".")[0] != "torch"


# --- caches --------------------------------------------------------------------------------------


def _cache(value: Any, name: str, words: tuple[str, str]) -> tuple[Parts, Make]:
    layers = list(value.layers)
    slots = [[a for a, v in vars(la).items() if isinstance(v, torch.Tensor) and not a.startswith("_")] for la in layers]
    for attributes in slots:  # keys and values first, in this order
        attributes.sort(key=lambda a: ("keys", "values").index(a) if a in ("keys", "values") else 2)
    shown = {"keys": words[0], "values": words[1]}
    parts = [
        (f"{name}.{i}.{shown.get(a, a)}", getattr(la, a))
        for i, (la, attributes) in enumerate(zip(layers, slots, strict=True))
        for a in attributes
    ]
    counted = [_counted_by(i, layers) for i in range(len(layers))]
    shells = [_shell(la, attributes) for la, attributes in zip(layers, slots, strict=True)]
    shell = copy.copy(value)
    shell.layers = []

    def fill(made: list[Any]) -> Any:
        remaining = iter(made)
        full = copy.copy(shell)
        full.layers = [copy.copy(la) for la in shells]
        for layer, attributes in zip(full.layers, slots, strict=True):
            for attribute in attributes:
                setattr(layer, attribute, next(remaining))
        for layer, index in zip(full.layers, counted, strict=True):
            if index is not None:
                layer.cumulative_length = _length(full.layers[index])
        return full

    return parts, fill


def _counted_by(index: int, layers: list[Any]) -> int | None:
    """Return the layer whose tensors are as long as a layer's own count of tokens, so that the count can follow them.

    A layer with a window counts all tokens in a Python number and keeps the last ones; a layer without keeps them all.
    """
    count = getattr(layers[index], "cumulative_length", None)
    if not isinstance(count, int):
        return None
    return next((i for i in (index, *range(len(layers))) if _length(layers[i]) == count), None)


def _length(layer: Any) -> Any:
    keys = getattr(layer, "keys", None)
    return keys.shape[-2] if isinstance(keys, torch.Tensor) and keys.dim() > 1 else 0


def _pair_of_caches(value: Any, name: str) -> tuple[Parts, Make]:
    ours, our_make = _cache(value.self_attention_cache, name, ("decoder.key", "decoder.value"))
    theirs, their_make = _cache(value.cross_attention_cache, name, ("encoder.key", "encoder.value"))
    shell = _shell(value, ["self_attention_cache", "cross_attention_cache"])
    if isinstance(getattr(shell, "is_updated", None), dict):
        shell.is_updated = dict(shell.is_updated)

    def fill(made: list[Any]) -> Any:
        full = copy.copy(shell)
        full.self_attention_cache = our_make(made[: len(ours)])
        full.cross_attention_cache = their_make(made[len(ours) :])
        if isinstance(getattr(full, "is_updated", None), dict):
            full.is_updated = dict(full.is_updated)
        return full

    return ours + theirs, fill


# --- outputs -------------------------------------------------------------------------------------


def _outputs(value: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    if not depth:
        return
    if is_pair_of_caches(value):
        yield from _cache_outputs(value.self_attention_cache, "decoder.")
        yield from _cache_outputs(value.cross_attention_cache, "encoder.")
    elif is_cache(value):
        yield from _cache_outputs(value, "")
    elif is_legacy_cache(value) and name == PAST:
        yield from _sequence(value, PRESENT)[0]
    elif (parts := _output_parts(value, name)) is not None:
        for child_name, child in parts:
            yield from _outputs(child, child_name, depth - 1)
    else:
        yield name or "output", value


def _cache_outputs(cache: Any, side: str) -> Iterator[tuple[str, Any]]:
    for i, layer in enumerate(cache.layers):
        yield f"{PRESENT}.{i}.{side}key", layer.keys
        yield f"{PRESENT}.{i}.{side}value", layer.values


def _output_parts(value: Any, name: str) -> Parts | None:
    def under(key: Any) -> str:
        return f"{name}.{key}" if name else str(key)

    if isinstance(value, list | tuple | collections.deque) and not hasattr(value, "_fields"):
        if name:
            return [(under(i), v) for i, v in enumerate(value)]
        return [("output" if i == 0 else f"output_{i}", v) for i, v in enumerate(value)]
    if isinstance(value, tuple) and (fields := getattr(value, "_fields", None)) is not None:
        return [(under(f), v) for f, v in zip(fields, value, strict=True)]
    if isinstance(value, Mapping | collections.UserDict):
        return [(under(k), value[k]) for k in value]
    if is_registered(value):
        children, _ = taken_apart(value)
        fields = [f.name for f in dataclasses.fields(value)] if dataclasses.is_dataclass(value) else []
        names = fields if len(fields) == len(children) else [str(i) for i in range(len(children))]
        return [(under(n), c) for n, c in zip(names, children, strict=True)]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(under(f.name), getattr(value, f.name)) for f in dataclasses.fields(value)]
    if _is_plain_object(value) and _holds_tensors(value):
        return [(under(k), v) for k, v in vars(value).items()]
    return None
