"""Written out: an operator that was put in the place of a node by its definition gives what the node itself gives, somewhere.

claim         the operators that it was written out in compute what it stands for
precondition  something here can run the node as it was: the runtime or the standard's evaluator under an opset that has
              it, PyTorch for what is PyTorch's own
proof         on the values that reach the node it gives the same; under every opset under which it is valid
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from torchferry.check.passes.aten import aten_name
from torchferry.check.proof.alone import given, versions
from torchferry.check.proof.evaluated import alike
from torchferry.check.proof.mending import Mending
from torchferry.check.reading import graph, schemas
from torchferry.edits.check import Decompose

# Their definition is documentation, and nothing on a CPU runs them: the recipes are held against PyTorch by tests.
BY_DEFINITION = frozenset({"GroupNorm", "SkipGroupNorm", "BiasAdd", "NhwcConv"})


def why_not(mending: Mending, edit: Decompose) -> str:
    """Return which node may compute something else written out; nothing where none does."""
    flat = graph.flat(mending.raw)
    for name in edit.nodes:
        node = next((n for n in flat.graph.node if graph.label(n) == name), None)
        if node is not None and node.domain == "com.microsoft" and node.op_type in BY_DEFINITION:
            continue
        if node is None:
            return f"`{name}` stands in a subgraph, where its values cannot be looked at"
        if words := _node_not_shown(mending, node):
            return words
    return ""


def _node_not_shown(mending: Mending, node: onnx.NodeProto) -> str:
    shown = False
    for feed in mending.asked():
        known = mending.values(feed, (*node.input, node.output[0]))
        made = known.get(node.output[0])
        if not isinstance(made, np.ndarray):
            return f"what `{graph.label(node)}` makes cannot be looked at"
        for answer in _answers(mending, node, known):
            shown = True
            if not alike(answer[0], made):
                return f"`{graph.label(node)}` gives something else than what it was written out in"
    return "" if shown else f"nothing here runs `{graph.label(node)}` ({node.op_type}) as it was"


def _answers(mending: Mending, node: onnx.NodeProto, known: dict[str, Any]) -> list[list[Any]]:
    if name := aten_name(node):
        return _torch(name, [known.get(i) for i in node.input if i])
    return [a for v in versions(node, schemas.NEWEST) if (a := given(mending, node, known, v)) is not None]


def _torch(name: str, arrays: list[Any]) -> list[list[Any]]:
    """Return what PyTorch's own operator gives; nothing where it cannot be called with tensors alone."""
    import torch

    try:
        return [[getattr(torch.ops.aten, name)(*(torch.from_numpy(np.asarray(a)) for a in arrays)).numpy()]]
    except (RuntimeError, TypeError, AttributeError):
        return []
