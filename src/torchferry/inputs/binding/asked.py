"""What the user asked to move, in the words of torch: `dynamic_axes` and `dynamic_shapes`, as Asks for axes of flat inputs."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from torchferry.errors import UsageError, did_you_mean
from torchferry.inputs.binding import trees
from torchferry.inputs.sizes import expressions as size_text
from torchferry.inputs.sizes.discover import Ask
from torchferry.inputs.sizes.probing import Axis, Shapes


@dataclass(frozen=True, slots=True)
class Asked:
    """The axes that were asked for (None: nothing was said, find out), and names that the keys gave to inputs and outputs."""

    axes: dict[Axis, Ask] | None = None
    inputs: dict[int, str] = field(default_factory=dict)
    outputs: dict[int, str] = field(default_factory=dict)


def from_axes(axes: Any, names: Sequence[str], outputs: Sequence[str], shapes: Shapes, *, named: bool) -> Asked:
    """Return what `dynamic_axes` asks for. Keys that are no name go by position, unless names were given (`named`)."""
    if not isinstance(axes, Mapping):
        raise UsageError(
            f"dynamic_axes must be a dict of input names, such as {{'{names[0] if names else 'x'}': {{0: 'batch_size'}}}}"
        )
    unknown = [key for key in axes if key not in names and key not in outputs]
    inputs, results = _by_position(unknown, [k for k in axes if k not in unknown], names, outputs, named)
    places = {**{n: i for i, n in enumerate(names)}, **{key: i for i, key in inputs.items()}}
    found: dict[Axis, Ask] = {}
    for key, value in axes.items():
        if key in places:
            for axis, name in _axis_items(key, value):
                found[places[key], _within_rank(key, axis, len(shapes[places[key]]))] = Ask(name)
    return Asked(found, inputs, results)


def _by_position(
    unknown: list[str], used: list[str], names: Sequence[str], outputs: Sequence[str], named: bool
) -> tuple[dict[int, str], dict[int, str]]:
    known = [*names, *outputs]
    for key in unknown:
        near = did_you_mean(str(key), [n for n in known if n not in used])
        if named or (near and not re.fullmatch(r"(in|out)puts?(_?\d+)?", str(key))):
            raise UsageError(
                f"dynamic_axes names `{key}`, which is neither an input nor an output{near}; there are {', '.join(known)}"
            )
    free_inputs = [i for i, n in enumerate(names) if n not in used]
    free_outputs = [i for i, n in enumerate(outputs) if n not in used]
    to_inputs: dict[int, str] = {}
    to_outputs: dict[int, str] = {}
    for key in unknown:
        if (re.match(r"out|logit|pred|result", str(key)) or not free_inputs) and free_outputs:
            to_outputs[free_outputs.pop(0)] = key
        elif free_inputs:
            to_inputs[free_inputs.pop(0)] = key
        else:
            raise UsageError(
                f"dynamic_axes names `{key}`, but the model has no more inputs or outputs; there are {', '.join(known)}"
            )
    return to_inputs, to_outputs


def _axis_items(key: str, value: Any) -> Iterator[tuple[int, str | None]]:
    if isinstance(value, Mapping):
        yield from ((axis, identifier(str(name)) if name else None) for axis, name in value.items())
    elif isinstance(value, list | tuple | set):
        yield from ((axis, None) for axis in value)
    else:
        raise UsageError(f"dynamic_axes['{key}'] must be a dict {{axis: name}} or a list of axes; got {value!r}")


def _within_rank(key: str, axis: Any, rank: int) -> int:
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise UsageError(f"`{key}` has {rank} axes (0 to {rank - 1}), but axis {axis!r} was asked to move")
    return axis % rank


def from_shapes(spec: Any, top: Mapping[str, Any], *, keys: Sequence[str], names: Sequence[str], shapes: Shapes) -> Asked:
    """Return what `dynamic_shapes` asks for; it has the form of the arguments (`top`: name -> argument)."""
    if not isinstance(spec, Mapping | list | tuple):
        raise UsageError('dynamic_shapes must be a dict by parameter name or a tuple by position, or "none" for fixed sizes')
    leaves = list(_spread(spec, top, keys, names))
    found: dict[Axis, Ask] = {}
    for key, value in leaves:
        if key not in keys:
            if value is not None and value != {} and not _stays(value):
                raise UsageError(f"dynamic_shapes speaks of `{key}`, which is not a tensor; only tensors have sizes")
            continue
        i = keys.index(key)
        if not shapes[i] and _moves(value):  # a Python number that was asked to be an input
            continue
        for axis, dim in _dims(names[i], value, len(shapes[i])):
            ask = _ask(dim, f"{names[i]}[{axis}]", shapes[i][axis])
            if ask is not None:
                found[i, axis] = ask
    return Asked(solvable(found))


def moving_numbers(spec: Any, top: Mapping[str, Any]) -> frozenset[str]:
    """Return the Python numbers among the arguments that `dynamic_shapes` asks to be inputs: `n=Dim.DYNAMIC`."""
    if isinstance(spec, list | tuple):
        spec = dict(zip(top, spec, strict=False))
    if not isinstance(spec, Mapping):
        return frozenset()
    spec = {**spec, **(spec.get("kwargs") or {} if "kwargs" not in top else {})}
    return frozenset(n for n, value in top.items() if isinstance(value, bool | int | float) and _moves(spec.get(n)))


def _moves(dim: Any) -> bool:
    return getattr(getattr(dim, "type", None), "name", "") in ("AUTO", "DYNAMIC")


def _stays(dim: Any) -> bool:
    return getattr(getattr(dim, "type", None), "name", "") == "STATIC"


def _spread(spec: Any, top: Mapping[str, Any], keys: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield (leaf, what is asked of it)."""
    if isinstance(spec, Mapping):
        spec = {
            **{k: v for k, v in spec.items() if k != "kwargs" or k in top},
            **(spec.get("kwargs") or {} if "kwargs" not in top else {}),
        }
        flat = {**dict(zip(keys, keys, strict=True)), **dict(zip(names, keys, strict=True))}
        for name, value in spec.items():
            if name in top:
                yield from _walk(top[name], value, name)
            elif name in flat:
                yield flat[name], value
            elif value:
                near = did_you_mean(str(name), [*top, *names])
                raise UsageError(f"dynamic_shapes names `{name}`, which is no input{near}; the inputs are {', '.join(top)}")
        return
    if len(spec) == len(top):
        for (name, value), one in zip(top.items(), spec, strict=True):
            yield from _walk(value, one, name)
    elif len(spec) == len(keys):
        yield from zip(keys, spec, strict=True)
    elif len(spec) < len(top):
        for (name, value), one in zip(top.items(), spec, strict=False):
            yield from _walk(value, one, name)
    else:
        raise UsageError(f"dynamic_shapes has {len(spec)} entries, but the example has {len(top)} arguments: {', '.join(top)}")


def _walk(value: Any, spec: Any, name: str) -> Iterator[tuple[str, Any]]:
    children = trees.children(value, name)
    if children is None or spec is None:
        yield from ((n, None) for n, _ in children or ()) if children is not None else [(name, spec)]
        return
    if isinstance(spec, Mapping):
        last = {n.removeprefix(name + "."): (n, child) for n, child in children}
        for key, one in spec.items():
            if str(key) not in last:
                near = did_you_mean(str(key), last)
                raise UsageError(f"dynamic_shapes['{name}'] names `{key}`, which is not in it{near}; there are {', '.join(last)}")
            yield from _walk(last[str(key)][1], one, last[str(key)][0])
        return
    items = list(spec)
    if len(items) != len(children):
        raise UsageError(f"dynamic_shapes has {len(items)} entries for `{name}`, which holds {len(children)}")
    for (child_name, child), one in zip(children, items, strict=True):
        yield from _walk(child, one, child_name)


def _dims(name: str, spec: Any, rank: int) -> Iterator[tuple[int, Any]]:
    if spec is None:
        return
    if isinstance(spec, Mapping):
        for axis, dim in spec.items():
            yield _within_rank(name, axis, rank), dim
    elif isinstance(spec, list | tuple):
        if len(spec) != rank:
            raise UsageError(f"dynamic_shapes gives {len(spec)} sizes for `{name}`, which has {rank} axes")
        yield from enumerate(spec)
    else:
        raise UsageError(f"dynamic_shapes for `{name}` must be a dict {{axis: dim}}, a tuple or None; got {spec!r}")


def _ask(dim: Any, place: str, size: int) -> Ask | None:
    """Return what is asked of one axis; None if it is to stay."""
    if dim is None:
        return None
    if isinstance(dim, int):
        if dim != size:
            raise UsageError(f"dynamic_shapes says that `{place}` is {dim}, but the example has {size}")
        return None
    if isinstance(dim, str):
        return Ask(expression(dim), exact=True)
    hint = getattr(getattr(dim, "type", None), "name", None) or getattr(dim, "name", "")
    if hint in ("AUTO", "DYNAMIC"):
        return Ask(None)
    if hint == "STATIC":
        return None
    name = getattr(dim, "__name__", None)
    if name is None:
        raise UsageError(f"cannot read what dynamic_shapes asks of `{place}`: {dim!r}")
    low, high = _bounds(dim)
    if (low is not None and size < low) or (high is not None and size > high):
        span = f"{low or 0}..{'' if high is None else high}"
        raise UsageError(f"the example has {size} at `{place}`, outside of `{name}` ({span})")
    return Ask(expression(name), low, high, exact=True)


def _bounds(dim: Any) -> tuple[int | None, int | None]:
    """Return the range that a torch Dim states; its defaults (from 0, without an end) state nothing."""
    low, high = getattr(dim, "min", None), getattr(dim, "max", None)
    stated_low = int(low) if isinstance(low, int) and low != 0 else None
    return stated_low, int(high) if isinstance(high, int) and high < 2**60 else None


def identifier(name: str) -> str:
    """Return a name as sizes can say it."""
    word = re.sub(r"\W", "_", unicodedata.normalize("NFKC", name))  # as Python reads names
    return word if word.isidentifier() and not keyword.iskeyword(word) else f"dim_{word}"


def expression(text: str) -> str:
    """Return a size as text, an expression over names where it is one."""
    try:
        size_text.names(text)
        size_text.value(text, dict.fromkeys(size_text.names(text), 1))
    except (SyntaxError, ValueError, ArithmeticError, RecursionError, MemoryError):  # a file may have anything for a size
        return identifier(text)
    return text if size_text.names(text) and not text.isidentifier() else identifier(text)


def solvable(axes: dict[Axis, Ask]) -> dict[Axis, Ask]:
    """Return what is asked with a name of its own for each size whose names no other size has to itself: `2*a` tells no `a`."""
    alone = {ask.name for ask in axes.values()}
    return {
        axis: replace(ask, name=identifier(ask.name)) if ask.name and not size_text.names(ask.name) <= alone else ask
        for axis, ask in axes.items()
    }
