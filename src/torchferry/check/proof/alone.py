"""One node by itself, on values that reached it: what it gives under an opset, by the runtime or by the standard's evaluator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx

from torchferry.check.proof.mending import Mending
from torchferry.check.reading import graph, schemas
from torchferry.check.support.node_probe import alone
from torchferry.check.types import dtypes
from torchferry.records import Fault

WORDS = {dtypes.of_text(f"tensor({word})"): word for word in dtypes.ENUM}


def given(mending: Mending, node: onnx.NodeProto, known: Mapping[str, Any], opset: int | None = None) -> list[Any] | None:
    """Return what a node makes of the values that it reads; None where neither the runtime nor the evaluator can tell."""
    arrays = {name: a for name in node.input if isinstance(a := known.get(name), np.ndarray)}
    words = {name: word for name, a in arrays.items() if (word := WORDS.get(a.dtype)) is not None}
    if any(name and name not in words for name in node.input) or list(graph.subgraphs(node)):
        return None
    made = alone(node, words, mending.model, opset)
    feed = {inner: arrays[name] for inner, name in zip(made.graph.node[0].input, node.input, strict=True) if name}
    path = mending.scratch / "alone.onnx"
    path.write_bytes(made.SerializeToString())
    key = mending.worker.open(path, level="none")
    if isinstance(key, Fault):
        answer = mending.worker.evaluate(path, feed)
    else:
        answer = mending.worker.run(key, feed)
        mending.worker.close(key)
    return None if isinstance(answer, Fault) else answer


def versions(node: onnx.NodeProto, most: int) -> list[int]:
    """Return one opset for each form of an operator under which a node is valid, the newest of each."""
    forms: dict[int | None, int] = {}
    for version in range(1, most + 1):
        if schemas.misfit(node, version) is None:
            forms[schemas.since(node.op_type, version, node.domain)] = version
    return [version for since, version in forms.items() if since is not None]
