"""A verified file written once more with its weights elsewhere: each such file is read back, and shown to be the verified one.

What only moves bytes keeps its certificate, which is held against the new file. Weights that become inputs make another graph, so
its certificate is taken out; without them it must be the verified one to the last byte, and onnxruntime must give with it what it
gives with that, fed with calls that were trials.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from torchferry.certificate import read
from torchferry.check.reading.fingerprint import CERTIFICATE_KEY, fingerprint
from torchferry.errors import TorchferryError, UsageError
from torchferry.files import data_name
from torchferry.foreign import onnxruntime as ort
from torchferry.records import Layout, Tolerance
from torchferry.translate.save import INLINE_BYTES, MOST_INLINE, WORTH_MOVING
from torchferry.verify.judge.compare import compare

MOST_RUNS = 8  # of the trials, spread over all of them: the graph is known to be the same, what is asked is the runtime

Feeds = Mapping[str, Any]


class NotTheSame(TorchferryError):
    """A file that was made of a verified one is not what that is; it was not written."""


@dataclass(frozen=True, slots=True)
class Proof:
    """What a file with its weights as inputs is shown by."""

    calls: Sequence[Callable[[], Feeds]]  # the feeds of trials that agreed, made when asked for
    allowed: Tolerance
    settings: Mapping[str, Any]  # of a session


def relaid(source: Path, destination: Path, layout: Layout, weights: frozenset[str], proof: Proof) -> None:
    """Write a verified file into a workspace with its weights where `layout` wants them. Raises NotTheSame where it is not it."""
    if (found := read(source)).data and found.objections:
        raise NotTheSame(f"`{source}` is no longer the file that was verified: {'; '.join(found.objections)}")
    whole = onnx.load(str(source))
    if not (layout.as_inputs or layout.left_out):
        _write(whole, destination, layout.beside)
        if (made := read(destination)).data and made.objections:
            raise NotTheSame(f"`{destination.name}` is not the file that was verified: {'; '.join(made.objections)}")
        return
    changed = onnx.ModelProto()
    changed.CopyFrom(whole)
    _drop_certificate(changed)
    _as_inputs(changed.graph, weights)
    if layout.left_out:
        _take_out(changed.graph.initializer, weights)
    _write(changed, destination, layout.beside)
    back = onnx.load(str(destination))
    _same_graph(whole, back, weights)
    _same_answers(source, destination, back, {t.name: t for t in whole.graph.initializer if t.name in weights}, proof)


def _write(model: onnx.ModelProto, path: Path, beside: bool | None) -> None:
    size = sum(len(t.raw_data) for t in model.graph.initializer)
    if beside is False and size > MOST_INLINE:
        raise UsageError(f"{size:,} bytes of weights do not fit into one file, which ends at 2 GB: leave external_data out")
    if beside or (beside is None and size >= INLINE_BYTES):
        copied = onnx.ModelProto()
        copied.CopyFrom(model)
        onnx.save(copied, str(path), save_as_external_data=True, location=data_name(path.name), size_threshold=WORTH_MOVING)
    else:
        onnx.save(model, str(path))


def _drop_certificate(model: onnx.ModelProto) -> None:
    kept = [p for p in model.metadata_props if p.key != CERTIFICATE_KEY]
    del model.metadata_props[:]
    model.metadata_props.extend(kept)


def _as_inputs(graph: onnx.GraphProto, weights: frozenset[str]) -> None:
    there = {i.name for i in graph.input}
    for tensor in graph.initializer:
        if tensor.name in weights and tensor.name not in there:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))


def _take_out(tensors: Any, weights: frozenset[str]) -> None:
    kept = [t for t in tensors if t.name not in weights]
    del tensors[:]
    tensors.extend(kept)


def _same_graph(whole: onnx.ModelProto, back: onnx.ModelProto, weights: frozenset[str]) -> None:
    """Refuse a file that is not the verified one once its weights are put back in their places."""
    undone, before, held = onnx.ModelProto(), onnx.ModelProto(), {t.name: t for t in back.graph.initializer}
    undone.CopyFrom(back)
    before.CopyFrom(whole)
    _drop_certificate(before)
    for graph in (undone.graph, before.graph):
        _take_out(graph.input, weights)
    tensors = [held[t.name] if t.name in held or t.name not in weights else t for t in whole.graph.initializer]
    del undone.graph.initializer[:]
    undone.graph.initializer.extend(tensors)
    if fingerprint(undone, Path()) != fingerprint(before, Path()):
        raise NotTheSame("the file with its weights as inputs is not the one that was verified")


def _same_answers(source: Path, made: Path, back: onnx.ModelProto, weights: Mapping[str, Any], proof: Proof) -> None:
    """Refuse a file to which onnxruntime gives other answers than to the verified one, its weights fed where it has none."""
    options = {k: v for k, v in proof.settings.items() if k in ("level", "disabled", "config", "libraries")}
    one, other = ort.session(source, **options), ort.session(made, **options)
    held = {t.name for t in back.graph.initializer}
    fed = {name: onnx.numpy_helper.to_array(t) for name, t in weights.items() if name not in held}
    names, taken = [o.name for o in one.get_outputs()], {i.name for i in one.get_inputs()}
    step = max(1, len(proof.calls) // MOST_RUNS)
    for call in proof.calls[::step][:MOST_RUNS]:
        feeds = {name: value for name, value in call().items() if name in taken}
        want, got = ort.run(one, feeds, names), ort.run(other, {**feeds, **fed}, names)
        for name, a, b in zip(names, want, got, strict=True):
            if isinstance(a, np.ndarray) and (differs := compare(name, a, b, proof.allowed)[0]) is not None:
                raise NotTheSame(f"with its weights as inputs the file gives something else: `{name}`: {differs.words}")
