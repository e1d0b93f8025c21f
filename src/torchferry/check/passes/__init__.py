"""The graph passes that mend a file: a name, as an Edit of the Job has it, and the function that carries it out.

Each takes an onnx.ModelProto, changes it in place, and is told all it must decide in its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx

from torchferry.check.passes import casts, decompose, names, shapes, signs, versions, weave
from torchferry.errors import UsageError

Pass = Callable[[onnx.ModelProto, Mapping[str, Any]], None]

PASSES: dict[str, Pass] = {
    "relocate-data": names.relocate,
    "set-ir": versions.set_ir,
    "stamp-opset": versions.stamp,
    "convert-opset": versions.convert,
    "drop-imports": versions.drop_imports,
    "modernise-old-forms": versions.modernise,
    "unique-node-names": names.unique_node_names,
    "rename-shadowed": names.rename_shadowed,
    "drop-repeated-nodes": names.drop_repeated_nodes,
    "rename-output": names.rename_output,
    "cast-operands": casts.cast_operands,
    "cast-branches": casts.cast_branches,
    "cast-carried": casts.cast_carried,
    "cast-around": casts.cast_around,
    "retype": casts.retype,
    "declare-types": casts.declare_types,
    "decompose": decompose.decompose,
    "inline-branch": decompose.inline_branch,
    "transpose-operand": shapes.transpose_operand,
    "free-sizes": shapes.free_sizes,
    "rewrite-constants": shapes.rewrite_constants,
    "zero-masked-rows": shapes.zero_masked_rows,
    "flip-weights": signs.flip_weights,
}


def apply(model: onnx.ModelProto, name: str, params: Mapping[str, Any]) -> None:
    """Carry out a named pass on the model."""
    if name not in PASSES:
        raise UsageError(f"there is no graph pass `{name}`; the check stage knows: {', '.join(PASSES)}")
    PASSES[name](model, params)
    weave.tidy(model)
