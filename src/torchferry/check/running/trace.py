"""A failure inside a run, traced: the node that truly failed, and the values on the way to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from torchferry.check.reading import graph
from torchferry.foreign import onnxruntime_messages
from torchferry.records import Fault
from torchferry.worker import Worker

Feed = Mapping[str, Any]
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that failed: the node's label and operator (empty where none is named), and the runtime's words."""

    node: str
    op: str
    fault: Fault


class Tracer:
    """Runs variants of one model in a worker; weights are read from where the model lies."""

    def __init__(self, worker: Worker, model: onnx.ModelProto, home: Path, scratch: Path) -> None:
        self.worker = worker
        self.home = home
        self.scratch = scratch
        self.model = graph.named(model)
        self._file = scratch / "trace.onnx"

    def run(self, model: onnx.ModelProto, feed: Feed, level: str = "none") -> list[Any] | Fault:
        """Return the outputs of a variant of the model, optimisations off so that nodes are the file's own."""
        self._file.write_bytes(model.SerializeToString())
        key = self.worker.open(self._file, level=level, data_folder=str(self.home))
        if isinstance(key, Fault):
            return key
        wanted = {i.name for i in model.graph.input}
        answer = self.worker.run(key, {k: v for k, v in feed.items() if k in wanted})
        self.worker.close(key)
        return answer

    def failure(self, feed: Feed, stock: Fault) -> Failure:
        """Return where a run fails. With optimisations off the runtime names the right node; fusions move the blame."""
        answer = self.run(self.model, feed)
        fault = answer if isinstance(answer, Fault) else stock
        name, op = onnxruntime_messages.node(fault.text) or ("", "")
        node = next((p.node for p in graph.places(self.model) if p.label == name), None)
        if node is None and isinstance(answer, Fault):  # an inner node of a function that the runtime inlined
            node = self._first_failing(feed)
        return Failure(graph.label(node), node.op_type, fault) if node is not None else Failure(name, op, fault)

    def _first_failing(self, feed: Feed) -> onnx.NodeProto | None:
        """Return the node of the main graph at which a run that fails does so: those before it run without it."""
        nodes = graph.ordered(self.model.graph)
        runs, fails = 0, len(nodes)
        while fails - runs > 1:
            middle = (runs + fails) // 2
            read = {i for n in nodes[:middle] for i in graph.reads(n)}
            last = [o for n in nodes[:middle] for o in n.output if o and o not in read]
            if isinstance(self._outputs(nodes[:middle], last, feed), Fault):
                fails = middle
            else:
                runs = middle
        return nodes[runs] if nodes else None

    def values(self, feed: Feed, before: str | None = None, only: Sequence[str] | None = None) -> Values | Fault:
        """Return the values that a run makes; only those that the node labelled `before` is made from, where one is given."""
        nodes = graph.ordered(self.model.graph)
        if before is not None:
            nodes = self._leading_to(before, nodes)
        names = [o for n in nodes for o in n.output if o and (only is None or o in only)]
        return self._outputs(nodes, names, feed) if names else {}

    def _outputs(self, nodes: list[onnx.NodeProto], names: list[str], feed: Feed) -> Values | Fault:
        """Return the named values that these nodes of the main graph make, without the others."""
        part = onnx.ModelProto()
        part.CopyFrom(self.model)
        kept = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
        del part.graph.node[:]
        part.graph.node.extend(kept)
        del part.graph.output[:]
        part.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
        answer = self.run(part, feed)
        return answer if isinstance(answer, Fault) else dict(zip(names, answer, strict=True))

    def _leading_to(self, label: str, nodes: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
        """Return the nodes whose values a node is made from; others may fail too, and would spoil the run."""
        last = next((n for n in nodes if graph.label(n) == label), None)
        needed = {a for i in graph.reads(last) for a in ancestors(self.model.graph, i)} if last is not None else set()
        return [n for n in nodes if needed.intersection(n.output)]


def ancestors(part: Any, name: str) -> set[str]:
    """Return every value that a value is made from, itself included."""
    makers, found, waiting = graph.makers(part), set(), [name]
    while waiting:
        value = waiting.pop()
        if value and value not in found:
            found.add(value)
            if (node := makers.get(value)) is not None:
                waiting += graph.reads(node)
    return found


def shape_of(value: Any) -> tuple[int, ...] | None:
    """Return an array's shape; None for what is no array."""
    return tuple(value.shape) if isinstance(value, np.ndarray) else None
