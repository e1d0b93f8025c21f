"""Does the runtime have an implementation of this node, for these types? It is asked with a model of that one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx

from torchferry.check.reading import graph
from torchferry.check.types import dtypes
from torchferry.foreign.onnxruntime_messages import lacks_kernel
from torchferry.records import Fault
from torchferry.worker import Worker


class NodeProber:
    """Asks a worker about single nodes, and remembers the answers."""

    def __init__(self, worker: Worker, model: onnx.ModelProto, folder: Path) -> None:
        self._worker = worker
        self._model = model
        self._file = folder / "probe.onnx"
        self._known: dict[bytes, Fault | None] = {}

    def fault(self, node: onnx.NodeProto, types: Mapping[str, str], opset: int | None = None) -> Fault | None:
        """Return what keeps a node alone from opening, its inputs being of the given types; None if nothing does."""
        key = alone(node, types, self._model, opset).SerializeToString(deterministic=True)
        if key not in self._known:
            self._file.write_bytes(key)
            answer = self._worker.open(self._file)
            self._known[key] = answer if isinstance(answer, Fault) else None
            if isinstance(answer, str):
                self._worker.close(answer)
        return self._known[key]

    def lacks(self, node: onnx.NodeProto, types: Mapping[str, str], opset: int | None = None) -> bool:
        """Say whether the runtime has no implementation of the node for these types; False where it cannot be asked."""
        fault = self.fault(node, types, opset) if may_be_asked(node, types) else None
        return fault is not None and lacks_kernel(fault.text)

    def takes(self, node: onnx.NodeProto, types: Mapping[str, str], opset: int | None = None) -> bool:
        """Say whether the runtime opens the node alone for these types."""
        return self.fault(node, types, opset) is None


def alone(node: onnx.NodeProto, types: Mapping[str, str], model: onnx.ModelProto, opset: int | None = None) -> onnx.ModelProto:
    """Return a model of one node of `model`, its inputs being of the given types; with another opset where one is given."""
    bare = onnx.NodeProto()
    bare.CopyFrom(node)
    bare.name, bare.doc_string = "probe", ""
    del bare.metadata_props[:]
    words = [types.get(i) for i in node.input]
    _rename(bare.input, "i")
    _rename(bare.output, "o")
    inputs = [_input(name, word) for name, word in zip(bare.input, words, strict=True) if name]
    outputs = [onnx.ValueInfoProto(name=o) for o in bare.output if o]
    made = onnx.helper.make_model(onnx.helper.make_graph([bare], "probe", inputs, outputs))
    del made.opset_import[:]
    for entry in model.opset_import:
        standard = entry.domain in ("", "ai.onnx")
        made.opset_import.append(onnx.helper.make_opsetid(entry.domain, opset if standard and opset else entry.version))
    made.ir_version = model.ir_version
    return made


def _rename(names: Sequence[str], prefix: str) -> None:
    for index, name in enumerate(names):
        names[index] = f"{prefix}{index}" if name else ""  # type: ignore[index]


def _input(name: str, word: str | None) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, dtypes.ENUM.get(word or "float", 1), None)


def may_be_asked(node: onnx.NodeProto, types: Mapping[str, str]) -> bool:
    """Say whether a node stands on its own: no subgraphs, and every input of a known type."""
    return not list(graph.subgraphs(node)) and all(i in types for i in node.input if i)
