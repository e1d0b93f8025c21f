"""Operators written out in others that every runtime has: GPU-only fusions, ATen leftovers, forms of other opsets."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from torchferry.check.passes.aten import ATEN, aten_name
from torchferry.check.passes.forms import Recipe, newer_form
from torchferry.check.passes.weave import OfOneType, Weaver, find, forget_shapes
from torchferry.check.reading import graph
from torchferry.check.types import dtypes
from torchferry.check.types.type_inference import infer
from torchferry.edits.check import Decompose, InlineBranch
from torchferry.ops import activations


def decompose(model: onnx.ModelProto, edit: Decompose) -> None:
    """Write the named nodes out in simpler operators."""
    for name in edit.nodes:
        place = find(model, name)
        if place is None:
            continue
        types = infer(model).of
        word = next((types[i] for i in place.node.input if i in types), "float")
        weaver = Weaver(model, place.label)
        result = recipe(place.node)(weaver, place.node, graph.attributes(place.node), word)
        weaver.op("Identity", [result], output=place.node.output[0])
        weaver.replace(place.graph, place.node)
    _drop_unused_imports(model)
    forget_shapes(model)


def can(node: onnx.NodeProto) -> bool:
    """Say whether there is a recipe for a node."""
    return (node.domain, node.op_type) in RECIPES or aten_name(node) in ATEN or newer_form(node) is not None


def recipe(node: onnx.NodeProto) -> Recipe:
    """Return the recipe for a node."""
    if (name := aten_name(node)) in ATEN:
        return lambda w, n, values, word: ATEN[name](w, list(n.input), values, word)
    if (newer := newer_form(node)) is not None:
        return newer
    return RECIPES[node.domain, node.op_type]


def _drop_unused_imports(model: onnx.ModelProto) -> None:
    used = {p.node.domain for p in graph.places(model)} | {f.domain for f in model.functions}
    kept = [o for o in model.opset_import if o.domain in ("", "ai.onnx") or o.domain in used]
    del model.opset_import[:]
    model.opset_import.extend(kept)


# --- fusions that only GPU providers implement --------------------------------------------------------


def _group_norm(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    return _normalised(w, node.input[0], node, values, word)


def _skip_group_norm(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    total = node.input[0]
    for index in range(3, len(node.input)):
        if node.input[index]:
            total = w.op("Add", [total, node.input[index]])
    return _normalised(w, total, node, values, word)


def _normalised(w: Weaver, x: str, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    """Group normalisation by instance normalisation of [N, groups, rest], then scale and shift for each channel."""
    groups, last = int(values["groups"]), int(values.get("channels_last", 1))
    half = word in ("float16", "bfloat16")
    x = w.op("Cast", [x], to=onnx.TensorProto.FLOAT) if half else x
    gamma, beta = (w.op("Cast", [node.input[i]], to=dtypes.ENUM["float" if half else word]) for i in (1, 2))
    first = w.op("Transpose", [x], perm=[0, 3, 1, 2]) if last else x
    flat = w.op("Reshape", [first, w.const([0, groups, -1])])
    dtype = np.float64 if word == "double" else np.float32
    normal = w.op(
        "InstanceNormalization",
        [flat, w.const(np.ones(groups), dtype), w.const(np.zeros(groups), dtype)],
        epsilon=float(values.get("epsilon", 1e-5)),
    )
    whole = w.op("Reshape", [normal, w.op("Shape", [first])])
    across = w.const([-1, 1, 1])
    moved = w.op("Add", [w.op("Mul", [whole, w.op("Reshape", [gamma, across])]), w.op("Reshape", [beta, across])])
    active = w.op("Mul", [moved, w.op("Sigmoid", [moved])]) if values.get("activation") else moved
    back = w.op("Transpose", [active], perm=[0, 2, 3, 1]) if last else active
    return w.op("Cast", [back], to=dtypes.ENUM[word]) if half else back


def _bias_add(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    return w.op("Add", [w.op("Add", [node.input[0], node.input[1]]), node.input[2]])


def _nhwc_conv(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    first = w.op("Transpose", [node.input[0]], perm=[0, 3, 1, 2])
    weight = w.op("Transpose", [node.input[1]], perm=[0, 3, 1, 2])
    return w.op("Transpose", [w.op("Conv", [first, weight, *node.input[2:]], **values)], perm=[0, 2, 3, 1])


# --- the standard's own, under opsets that do not have them --------------------------------------------


def _gelu(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    return activations.gelu(OfOneType(w, word), node.input[0], tanh=values.get("approximate", b"none") == b"tanh")


def _hard_swish(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    return activations.hard_swish(OfOneType(w, word), node.input[0])


def _mish(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    return activations.mish(OfOneType(w, word), node.input[0])


def _upsample(w: Weaver, node: onnx.NodeProto, values: dict[str, Any], word: str) -> str:
    """Upsample as Resize in its old geometry: positions are multiplied, not centred, and rounded down."""
    scales = node.input[1] if len(node.input) > 1 else w.const(values["scales"], np.float32)
    mode = {b"bilinear": b"linear"}.get(values.get("mode", b"nearest"), values.get("mode", b"nearest")).decode()
    empty = w.const([], np.float32)  # opset 11 insists on a region of interest, later ones take an empty one
    extra = {"nearest_mode": "floor"} if mode == "nearest" else {}
    return w.op("Resize", [node.input[0], empty, scales], mode=mode, coordinate_transformation_mode="asymmetric", **extra)


RECIPES: dict[tuple[str, str], Recipe] = {
    ("com.microsoft", "GroupNorm"): _group_norm,
    ("com.microsoft", "SkipGroupNorm"): _skip_group_norm,
    ("com.microsoft", "BiasAdd"): _bias_add,
    ("com.microsoft", "NhwcConv"): _nhwc_conv,
    ("", "Gelu"): _gelu,
    ("", "HardSwish"): _hard_swish,
    ("", "Mish"): _mish,
    ("", "Upsample"): _upsample,
}


# --- branches that are never taken -----------------------------------------------------------------------


def inline_branch(model: onnx.ModelProto, edit: InlineBranch) -> None:
    """Put the branch of an If that is always taken in the place of the If."""
    place = find(model, edit.node)
    if place is None:
        return
    branch = next(a.g for a in place.node.attribute if a.name == ("then_branch" if edit.condition else "else_branch"))
    weaver = Weaver(model, place.label)
    weaver.nodes.extend(branch.node)
    place.graph.initializer.extend(branch.initializer)
    for output, inner in zip(place.node.output, branch.output, strict=False):
        weaver.op("Identity", [inner.name], output=output)
    weaver.replace(place.graph, place.node)
    forget_shapes(model)
