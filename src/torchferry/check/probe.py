"""Does the runtime have an implementation of this node, for these types? It is asked with a model of that one node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import onnx

from torchferry.check import dtypes, graph
from torchferry.ort import Worker
from torchferry.records import Fault


class Prober:
    """Asks a worker about single nodes, and remembers the answers."""

    def __init__(self, worker: Worker, model: onnx.ModelProto, folder: Path) -> None:
        self._worker = worker
        self._imports = [(o.domain, o.version) for o in model.opset_import]
        self._ir = model.ir_version
        self._file = folder / "probe.onnx"
        self._known: dict[bytes, Fault | None] = {}

    def fault(self, node: onnx.NodeProto, types: Mapping[str, str], opset: int | None = None) -> Fault | None:
        """Return what keeps a node alone from opening, its inputs being of the given types; None if nothing does."""
        key = self._model(node, types, opset).SerializeToString(deterministic=True)
        if key not in self._known:
            self._file.write_bytes(key)
            answer = self._worker.open(self._file)
            self._known[key] = answer if isinstance(answer, Fault) else None
            if isinstance(answer, str):
                self._worker.close(answer)
        return self._known[key]

    def lacks(self, node: onnx.NodeProto, types: Mapping[str, str], opset: int | None = None) -> bool:
        """Say whether the runtime has no implementation of the node for these types."""
        fault = self.fault(node, types, opset)
        return fault is not None and "Could not find an implementation" in fault.text

    def _model(self, node: onnx.NodeProto, types: Mapping[str, str], opset: int | None) -> onnx.ModelProto:
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
        for domain, version in self._imports:
            standard = domain in ("", "ai.onnx")
            made.opset_import.append(onnx.helper.make_opsetid(domain, opset if standard and opset else version))
        made.ir_version = self._ir
        return made


def _rename(names: Sequence[str], prefix: str) -> None:
    for index, name in enumerate(names):
        names[index] = f"{prefix}{index}" if name else ""  # type: ignore[index]


def _input(name: str, word: str | None) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, dtypes.ENUM.get(word or "float", 1), None)


def may_be_asked(node: onnx.NodeProto, types: Mapping[str, str]) -> bool:
    """Say whether a node stands on its own: no subgraphs, and every input of a known type."""
    return not list(graph.subgraphs(node)) and all(i in types for i in node.input if i)
