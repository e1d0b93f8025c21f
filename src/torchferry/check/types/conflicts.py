"""Types that contradict each other, with the operand that should give way."""

from __future__ import annotations

import re

import numpy as np
import onnx

from torchferry.check.reading import graph, schemas
from torchferry.check.types import dtypes
from torchferry.check.types.type_inference import Conflict, Types, Unfit, declared
from torchferry.records import Finding, Location
from torchferry.records.findings import (
    BranchTypesDiffer,
    CarriedTypesDiffer,
    DeclaredTypeWrong,
    TypeConflict,
    TypeNotAllowed,
)

# torch's promotion, roughly
RANK = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float", "double")
# Operators on quantised numbers: 0 as an int8 is where 128 is as a uint8, so that a cast there is another number.
QUANTISED = re.compile(r"Q[A-Z]|.*([Qq]uantize|Integer)")
EXACT_IN_DOUBLE = frozenset({"uint8", "int8", "uint16", "int16", "uint32", "int32"})


def findings(model: onnx.ModelProto, types: Types) -> list[Finding]:
    """Return where types contradict each other: between operands, with the operator, with a declaration, between branches."""
    said = {v.name: w for g in graph.graphs(model) for v in (*g.output, *g.value_info) if (w := declared(v)) is not None}
    outputs = {o.name for o in model.graph.output}
    found: list[Finding] = [_conflict(c, said) for c in types.conflicts]
    found += [_unfit(u, said, graph.opset(model) or 1) for u in types.unfit]
    found += [_branch(place, index, words, said) for place, index, words in types.branches]
    found += [_carried(place, index, words, said) for place, index, words in types.carried]
    if not found:  # a declaration is only wrong where the rest is right
        found += [
            DeclaredTypeWrong(value, told, real, value in outputs, place.node.op_type, location=_at(place))
            for value, (told, real, place) in types.declared.items()
        ]
    return found


def _conflict(conflict: Conflict, said: dict[str, str]) -> TypeConflict:
    node = conflict.place.node
    fixed = {n: c for n, c in graph.constants(conflict.place.graph).items() if n in conflict.types}
    stored = {t.name for t in getattr(conflict.place.graph, "initializer", ())}
    to = _agreed(conflict, fixed, stored, said.get(node.output[0]) if node.output else None)
    cast = tuple(v for v, w in conflict.types.items() if w != to)
    castable = not QUANTISED.match(node.op_type)
    return TypeConflict(dict(conflict.types), cast, to, castable, location=_at(conflict.place))


def _agreed(conflict: Conflict, fixed: dict[str, np.ndarray], stored: set[str], wish: str | None) -> str:
    """Return the type that all operands should have."""
    words = [w for w in conflict.types.values() if w in conflict.allowed] or list(conflict.types.values())
    moving = {w for v, w in conflict.types.items() if v not in fixed and v not in stored}
    if len(moving) == 1:
        word = next(iter(moving))
        if word in words and all(_takes(word, fixed.get(v), w) for v, w in conflict.types.items() if w != word):
            return word
    if wish is not None and wish in words:
        return wish
    return max(words, key=_rank)


def _rank(word: str) -> int:
    return RANK.index(word) if word in RANK else -1


def _takes(word: str, value: np.ndarray | None, was: str) -> bool:
    """Whether a constant can be written in the activations' type: floats can in any float type, the model's own precision."""
    if word in dtypes.FLOATS and was in dtypes.FLOATS:
        return True
    if value is None:
        return word in dtypes.FLOATS
    with np.errstate(all="ignore"):
        cast = value.astype(dtypes.of_text(f"tensor({word})"))
    return bool(np.array_equal(cast.astype(np.float64), value.astype(np.float64)))


def _unfit(unfit: Unfit, said: dict[str, str], version: int) -> TypeNotAllowed:
    to = _accepted(unfit)
    node = unfit.place.node
    # where the result is promised in the very type that is not taken, it has to be cast back
    back = to != "bool" and unfit.type not in dtypes.FLOATS and any(said.get(o) == unfit.type for o in node.output)
    return TypeNotAllowed(
        value=unfit.value,
        parameter=unfit.parameter,
        type=unfit.type,
        allowed=tuple(unfit.allowed),
        to=to,
        lossless=to is not None
        and _lossless(unfit.type, to)
        and not (back and to in dtypes.FLOATS and not (to == "double" and unfit.type in EXACT_IN_DOUBLE and _picks(node))),
        back=back,
        newer=_newer(node, unfit, version),
        location=_at(unfit.place),
    )


def _picks(node: onnx.NodeProto) -> bool:
    """Whether an operator gives some of the numbers that it takes, so that a cast there and back is exact."""
    return node.op_type in ("MaxPool", "GlobalMaxPool", "MaxUnpool", "ReduceMax", "ReduceMin", "TopK", "Max", "Min")


def _newer(node: onnx.NodeProto, unfit: Unfit, stamped: int) -> int | None:
    """Return the first opset in which the operator, as it is written, takes the type; None if no newer one does."""
    for version in range(stamped + 1, schemas.NEWEST + 1) if node.domain in schemas.STANDARD else ():
        schema = schemas.schema(node.op_type, version)
        if schema is None or schemas.misfit(node, version) is not None:
            continue
        variable = next((p.type_str for p in schema.inputs if p.name == unfit.parameter), "")
        if any(c.type_param_str == variable and f"tensor({unfit.type})" in c.allowed_type_strs for c in schema.type_constraints):
            return version
    return None


def _lossless(was: str, to: str) -> bool:
    """Whether a cast loses nothing that the operator could use; whether a number is zero is all that a condition asks."""
    if "bool" in (was, to):
        return True
    return to in dtypes.FLOATS if was in dtypes.FLOATS else to in dtypes.INTEGERS | dtypes.FLOATS


def _accepted(unfit: Unfit) -> str | None:
    """Return the type that the operator takes and that comes nearest."""
    wishes: dict[bool, tuple[str, ...]] = {
        True: ("float", "double", "float16", "int64", "int32", "bool"),
        False: ("int64", "int32", *(("double",) if unfit.type in EXACT_IN_DOUBLE else ()), "float", "bool"),
    }
    return next((w for w in wishes[unfit.type in dtypes.FLOATS] if w in unfit.allowed), None)


def _branch(place: graph.NodePlace, index: int, words: list[str], said: dict[str, str]) -> BranchTypesDiffer:
    output = place.node.output[index]
    to = said[output] if said.get(output) in words else max(words, key=_rank)
    return BranchTypesDiffer(output, index, tuple(words), to, location=_at(place))


def _carried(place: graph.NodePlace, index: int, words: list[str], said: dict[str, str]) -> CarriedTypesDiffer:
    """Return what a Loop or Scan carries in several types; a type that loses nothing wins, the declared one among equals."""
    node = place.node
    output = dict(enumerate(node.output)).get(index - 2 if node.op_type == "Loop" else index, "")
    floats = [w for w in words if w in dtypes.FLOATS] or words
    to = said[output] if said.get(output) in floats else max(floats, key=_rank)
    return CarriedTypesDiffer(node.input[index], index, tuple(words), to, location=_at(place))


def _at(place: graph.NodePlace) -> Location:
    return Location(onnx_node=place.label, op=place.node.op_type)
