"""What torch.onnx's ONNXProgram offers, of a verified file: it runs, shows its graph, and is saved as it was verified.

The graph that `model` hands out is a copy: one that was changed is no longer what was verified, and `save` says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from torchferry.errors import UsageError
from torchferry.foreign import onnxruntime as ort


@dataclass(slots=True)
class Held:
    """What a program keeps for its user between two calls."""

    session: Any = None
    model: Any = None
    digest: str = ""  # of the model as it was handed out


class Program:
    """The part of a Result that stands in for torch.onnx.ONNXProgram."""

    __slots__ = ()

    held: Held
    path: Path | None

    @property
    def whole(self) -> Path:
        """The verified file with all its weights. Raises UsageError where there is none, or where it is no longer that file."""
        raise NotImplementedError

    @property
    def settings(self) -> Mapping[str, Any]:
        """What a session of the file must set."""
        raise NotImplementedError

    def feeds(self, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return {input name: array} for arguments as the model takes them."""
        raise NotImplementedError

    @property
    def model(self) -> Any:
        """The graph as an onnx_ir.Model, weights and all; a copy to look at, and the same one each time."""
        import onnx_ir as ir

        if self.held.model is None:
            self.held.model = ir.load(self.whole)
            self.held.digest = digest(self.held.model)
        return self.held.model

    @property
    def model_proto(self) -> Any:
        """The file as an onnx.ModelProto with all its weights in it; a new one each time."""
        import onnx

        self.refuse_changes()
        return onnx.load(str(self.whole))

    def refuse_changes(self) -> None:
        """Raise UsageError where the model that was handed out is no longer the one that was verified."""
        if self.held.model is not None and digest(self.held.model) != self.held.digest:
            raise UsageError(
                "`model` was changed after it was verified, so it is another model now: write it with "
                "`onnx_ir.save(result.model, path)` and compare it with `torchferry.verify`"
            )

    def initialize_inference_session(self, initializer: Callable[[str], Any] | None = None) -> None:
        """Open the session that a call of this program runs; `initializer` is given the file's path, and returns one."""
        self.refuse_changes()
        self.held.session = initializer(str(self.whole)) if initializer is not None else self._opened(self.whole)

    def _opened(self, source: Any) -> Any:
        from torchferry.runtime.session import InferenceSession

        options = ort.silent_options()
        for library in self.settings.get("libraries", ()):
            options.register_custom_ops_library(library)
        return InferenceSession(source, options)

    def release(self) -> None:
        """Let go of the session."""
        self.held.session = None

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return what the file gives in onnxruntime for a call of the model, as tensors in the order of its outputs."""
        feeds = self.feeds(args, kwargs)
        if self.held.session is None:
            self.initialize_inference_session()
        return _tensors(self.held.session.run(None, self._taken(feeds, self.held.session.get_inputs())))

    def compute_values(
        self, value_names: Sequence[str], args: Any = (), kwargs: Mapping[str, Any] | None = None
    ) -> tuple[Any, ...]:
        """Return values from within the graph, by their names, for a call of the model."""
        import onnx

        proto = self.model_proto
        known = {o for node in proto.graph.node for o in node.output if o} | {v.name for v in proto.graph.input}
        if unknown := [name for name in value_names if name not in known]:
            raise UsageError(f"the graph has no value `{unknown[0]}`; `result.model` shows those that it has")
        typed = {v.name: v for v in (*proto.graph.value_info, *proto.graph.output, *proto.graph.input)}
        outputs = [typed.get(name) or onnx.helper.make_empty_tensor_value_info(name) for name in value_names]
        kept = [onnx.ValueInfoProto.FromString(o.SerializeToString()) for o in outputs]
        del proto.graph.output[:]
        proto.graph.output.extend(kept)
        opened = self._opened(proto.SerializeToString())
        return _tensors(opened.run(list(value_names), self._taken(self.feeds(args, kwargs), opened.get_inputs())))

    def call_reference(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return what onnx's reference evaluator gives for a call of the model."""
        from onnx.reference import ReferenceEvaluator

        proto = self.model_proto
        return _tensors(ReferenceEvaluator(proto).run(None, self._taken(self.feeds(args, kwargs), proto.graph.input)))

    def _taken(self, feeds: Mapping[str, Any], inputs: Any) -> dict[str, Any]:
        names = {i.name for i in inputs}
        return {name: value for name, value in feeds.items() if name in names}

    def optimize(self) -> None:
        """Nothing is left to do: the file was optimised before it was verified, unless `optimize=False` was asked for."""
        from torchferry.edits.translate import OptimiserOff

        if self.history.best.job.edits_for(OptimiserOff):  # type: ignore[attr-defined]
            raise UsageError("the file was asked for with optimize=False, and verified so; export it without that")

    def apply_weights(self, state_dict: Mapping[str, Any]) -> NoReturn:
        """Refuse: with other weights it is another model, which nobody has verified."""
        raise UsageError(
            "the file was verified with the weights that the model had: load others into the model "
            "(`model.load_state_dict(...)`), and export it again; or let them be inputs (`keep_initializers_as_inputs=True`)"
        )

    def rename_axes(self, rename_mapping: Mapping[Any, str]) -> NoReturn:
        """Refuse: names of sizes are part of what the file declares."""
        raise UsageError('sizes are named when a model is exported: dynamic_shapes={"x": {0: "batch"}}')


def digest(model: Any) -> str:
    """Return what tells an onnx_ir.Model from what it was; weights that lie in a file of their own count by their place there."""
    import onnx_ir as ir

    return hashlib.sha256(ir.to_proto(model).SerializeToString(deterministic=True)).hexdigest()


def _tensors(values: Sequence[Any]) -> tuple[Any, ...]:
    """Return arrays as tensors; what is none, such as a sequence, is left as it is."""
    from torchferry.verify.arrays import tensor

    return tuple(tensor(value) for value in values)
