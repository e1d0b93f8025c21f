"""Go through a TorchScript graph node by node, calling torch for what is on tensors and Python for the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from torchferry.capture.prepare.script.builtins import BUILTINS, CODES, OF_TENSORS
from torchferry.foreign.torch_operators import schema_of
from torchferry.ops.prepared import recurrent

MOST_ROUNDS = 256  # of a loop that a value may end early: each of them is in the graph
Lookup = Callable[[str, str], Any]  # of an attribute: the path of the part, and its name


class RaisedError(Exception):
    """The script raised."""


class Owner:
    """Stands for a part of the compiled module: where its attributes are looked up."""

    def __init__(self, path: str) -> None:
        self.path = path


def run(graph: Any, arguments: tuple[Any, ...], lookup: Lookup) -> Any:
    """Return what a graph computes for the arguments of its method."""
    values: dict[str, Any] = {}
    for name, value in zip(graph.inputs(), (Owner(""), *arguments), strict=False):
        values[name.debugName()] = value
    results = _block(graph, values, lookup)
    return results[0] if len(results) == 1 else tuple(results)


def _block(block: Any, values: dict[str, Any], lookup: Lookup) -> list[Any]:
    for node in block.nodes():
        given = [values[i.debugName()] for i in node.inputs()]
        outputs = list(node.outputs())
        result = _node(node, given, values, lookup)
        results = [result] if len(outputs) == 1 else list(result or ())
        for output, value in zip(outputs, results, strict=True):
            values[output.debugName()] = value
    return [values[o.debugName()] for o in block.outputs()]


def _node(node: Any, given: list[Any], values: dict[str, Any], lookup: Lookup) -> Any:
    kind = node.kind()
    if kind == "prim::Constant":
        return next(node.outputs()).toIValue()
    if kind == "prim::GetAttr":
        return lookup(given[0].path, node.s("name"))
    if kind == "prim::If":
        return _if(node, given[0], values, lookup)
    if kind == "prim::Loop":
        return _loop(node, given, values, lookup)
    if kind == "prim::DictConstruct":
        return dict(zip(given[::2], given[1::2], strict=True))
    if kind.startswith("prim::"):
        return _primitive(kind.removeprefix("prim::"), given)
    return _operator(node, given)


def _primitive(name: str, given: list[Any]) -> Any:
    if name not in _PRIMITIVES:
        raise NotImplementedError(f"TorchScript's `prim::{name}` cannot be followed")
    return _PRIMITIVES[name](*given)


def _raise(*words: Any) -> Any:
    raise RaisedError(str(words[0]) if words else "")


def _smallest(*items: Any) -> Any:
    return torch.minimum(*items) if any(isinstance(i, torch.Tensor) for i in items) else min(*items)


def _largest(*items: Any) -> Any:
    return torch.maximum(*items) if any(isinstance(i, torch.Tensor) for i in items) else max(*items)


_PRIMITIVES: dict[str, Callable[..., Any]] = {
    "ListConstruct": lambda *items: list(items),
    "TupleConstruct": lambda *items: tuple(items),
    "NamedTupleConstruct": lambda *items: tuple(items),
    "ListUnpack": list,
    "TupleUnpack": list,
    "TupleIndex": lambda items, n: items[n],
    "TupleSlice": lambda items, start=None, end=None: items[start:end],
    "RaiseException": _raise,
    "NumToTensor": lambda n: torch.scalar_tensor(n, dtype=torch.int64 if isinstance(n, int | torch.SymInt) else torch.float32),
    "unchecked_cast": lambda v: v,
    "unchecked_unwrap_optional": lambda v: v,
    "Uninitialized": lambda: None,
    "dtype": lambda x: CODES[x.dtype],
    "device": lambda x: x.device,
    "layout": lambda x: 0,
    "is_cuda": lambda x: False,
    "is_quantized": lambda x: False,
    "requires_grad": lambda x: False,
    "data": lambda x: x.detach(),
    "shape": lambda x: list(x.shape),
    "min": _smallest,
    "max": _largest,
    "abs": abs,
    "Print": lambda *items: (),
    "rangelist": lambda n: list(range(n)),
}


def _operator(node: Any, given: list[Any]) -> Any:
    """Return what an operator gives: torch's own, unless it is on numbers and lists alone or asks for sizes."""
    namespace, _, name = node.kind().partition("::")
    schema = node.schema()
    on_tensor = bool(given) and isinstance(given[0], torch.Tensor)
    if name in recurrent.BY_NAME and isinstance(given[1], list | tuple | torch.Tensor) and ".input" in schema:
        return recurrent.of_flat(name, *given)
    if name in OF_TENSORS and (on_tensor or name in ("tensor", "as_tensor")):
        return OF_TENSORS[name](*given)
    if name in BUILTINS and not any(_holds_tensor(g) and _is_argument_of_torch(schema) for g in given):
        return BUILTINS[name](*given)
    overload = schema.partition("(")[0].partition("::")[2].partition(".")[2] or "default"
    return _called(getattr(getattr(getattr(torch.ops, namespace), name), overload), given)


def _called(operator: Any, given: list[Any]) -> Any:
    """Return an operator's result; TorchScript gives all arguments by position, torch wants some by name."""
    arguments = schema_of(operator).arguments
    if any(isinstance(v, torch.Tensor) and str(a.type) == "number" for a, v in zip(arguments, given, strict=False)):
        return operator.overloadpacket(*given)  # a number of the script that the value of a tensor decides
    named = {a.name: v for a, v in zip(arguments, given, strict=False) if a.kwarg_only}
    return operator(*[v for a, v in zip(arguments, given, strict=False) if not a.kwarg_only], **named)


def _holds_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or (
        isinstance(value, list | tuple) and any(isinstance(v, torch.Tensor) for v in value)
    )


def _is_argument_of_torch(schema: str) -> bool:
    """Whether an operator computes on tensors; those that handle lists of anything spell their type as t."""
    return "Tensor" in schema and "t[]" not in schema.replace("int[]", "").replace("float[]", "").replace("Tensor[]", "tensors")


def _if(node: Any, condition: Any, values: dict[str, Any], lookup: Lookup) -> Any:
    yes, no = node.blocks()
    if not isinstance(condition, torch.Tensor):
        return _one_or_all(node, _block(yes if condition else no, values, lookup))
    sides = [_attempted(block, dict(values), lookup) for block in (yes, no)]
    if sides[0] is None or sides[1] is None:  # the other side raises: a check, which a file does not make
        return _one_or_all(node, next(side for side in sides if side is not None))
    return _one_or_all(node, [_chosen(condition, a, b) for a, b in zip(*sides, strict=True)])


def _attempted(block: Any, values: dict[str, Any], lookup: Lookup) -> list[Any] | None:
    try:
        return _block(block, values, lookup)
    except RaisedError:
        return None


def _chosen(condition: torch.Tensor, yes: Any, no: Any) -> Any:
    if isinstance(yes, torch.Tensor) and isinstance(no, torch.Tensor):
        return torch.where(condition.to(torch.bool), yes, no)
    if isinstance(yes, tuple | list) and isinstance(no, tuple | list) and len(yes) == len(no):
        return type(yes)(_chosen(condition, a, b) for a, b in zip(yes, no, strict=True))
    tensors = [isinstance(side, torch.Tensor) for side in (yes, no)]
    if yes is no or (not any(tensors) and yes == no):
        return yes
    if all(isinstance(side, torch.Tensor | bool | int) for side in (yes, no)):  # a flag such as "go on", or a count
        return torch.where(condition.to(torch.bool), yes, no)
    raise NotImplementedError("a branch on the value of a tensor chooses between things that are not tensors")


def _one_or_all(node: Any, results: list[Any]) -> Any:
    return results[0] if node.outputsSize() == 1 else results


def _loop(node: Any, given: list[Any], values: dict[str, Any], lookup: Lookup) -> Any:
    most, going, *carried = given  # what the rounds compute as if none was the last, and so with numbers that stay numbers
    kept, running = carried, going  # what comes of them: once a value has ended the loop, it stays as it was
    (body,) = node.blocks()
    names = [i.debugName() for i in body.inputs()]
    count = 0
    while count < most and (isinstance(going, torch.Tensor) or going):
        if isinstance(running, torch.Tensor) and count >= MOST_ROUNDS:
            raise NotImplementedError(f"a value of a tensor ends a loop, and no number ends it by {count} rounds")
        values.update(zip(names, [count, *carried], strict=True))
        going, *carried = _block(body, values, lookup)
        if isinstance(running, torch.Tensor):
            kept = [_chosen(running, new, old) for new, old in zip(carried, kept, strict=True)]
            running = torch.logical_and(running, torch.as_tensor(going))
        else:
            kept, running = carried, going
        count += 1
    return _one_or_all(node, kept)
