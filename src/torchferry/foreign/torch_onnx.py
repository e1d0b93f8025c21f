"""Door to torch.onnx: an ExportedProgram that we captured becomes an onnx_ir.Model.

`torch.onnx.export` rebuilds its registry, decomposes and optimises on every call, and may capture again with narrower
shapes. So the narrower internals behind it are called here one by one.
Relies on `torch.onnx._internal.exporter` (since torch 2.5): its registry with `functions` and `_opset_version`, its table of
decompositions, its dispatch of a node to a translation, its passes for type promotion and assertions, its builder with the
error that names a node, and `_torchlib.ops.hop.call_op`, which adds a node from within a translation.
Should they move: `torch.onnx.export(program, custom_translation_table=...)` is public, and does all of it at once.
"""

from __future__ import annotations

import logging
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import onnx_ir as ir
import torch

from torchferry.foreign.moved import relying_on
from torchferry.foreign.python_warnings import no_warnings
from torchferry.foreign.torch_export import with_graph_module
from torchferry.foreign.torch_operators import aten

BASE_OPSET = 18  # what torch.onnx's own operator library is written in


LOGGERS = ("torch", "torch.onnx", "onnxscript", "onnx_ir", "torch.fx", "torch.export", "torch._subclasses.fake_tensor")


@cache
def _internals() -> SimpleNamespace:
    """Return the private functions of torch.onnx that are used here."""
    with relying_on("torch", "the inside of torch.onnx"):
        from torch.onnx._internal.exporter import _core, _decomp, _dispatching, _errors, _fx_passes, _registration
        from torch.onnx._internal.exporter._torchlib.ops import hop

        return SimpleNamespace(
            call=hop.call_op,
            build=_core._exported_program_to_onnx_program,
            Registry=_registration.ONNXRegistry,
            implemented=_decomp.get_onnx_implemented_overloads,
            decompositions=_decomp.create_onnx_friendly_decomposition_table,
            dispatch=_dispatching.dispatch,
            promote=_fx_passes.insert_type_promotion_nodes,
            Error=_errors.ConversionError,
            drop_assertions=_fx_passes.remove_assertion_nodes,
        )


def public(name: str) -> Any:
    """Return what torch.onnx has under a name that we do not replace; raises AttributeError where it has nothing."""
    module = import_module("torch.onnx")  # by name: a script may have put ours in the place of the attribute
    if not hasattr(module, name):
        raise AttributeError(f"torch.onnx of torch {torch.__version__} has no `{name}`, and neither has torchferry.onnx")
    return getattr(module, name)


@cache
def _torchlib() -> Any:
    """Return torch.onnx's operator library; building it takes most of a second, so it is built once."""
    with silent():
        return _internals().Registry.from_torchlib(BASE_OPSET)


def registry(translations: Mapping[Any, Callable[..., Any]], complex_ones: Mapping[Any, Callable[..., Any]]) -> Any:
    """Return torch.onnx's operator library with `translations` put before its own."""
    base = _torchlib()
    own = _internals().Registry()
    own._opset_version = base._opset_version
    own.functions = {target: list(known) for target, known in base.functions.items()}
    with silent():
        for target, function in translations.items():
            own.register_op(target, function)
        for target, function in complex_ones.items():
            own.register_op(target, function, is_complex=True)
    return own


def decomposition_table(registry: Any) -> dict[Any, Callable[..., Any]]:
    """Return torch's decompositions of every operator that the registry has no translation for."""
    inside = _internals()
    return dict(inside.decompositions(set(inside.implemented(registry))))


def decompose(program: Any, table: Mapping[Any, Callable[..., Any]]) -> Any:
    """Return the program in operators that can be translated, without in-place writes."""
    with silent():
        return program.run_decompositions(dict(table))


def promote(program: Any) -> Any:
    """Return the program with casts where torch promotes types by itself, and without its assertions."""
    inside, before = _internals(), {node: _dtype(node) for node in program.graph.nodes}
    with silent():
        inside.promote(program.graph_module)
        _cast_back(program.graph, before)
        return with_graph_module(program, inside.drop_assertions(program.graph_module))


def _dtype(node: Any) -> torch.dtype | None:
    value = node.meta.get("val")
    return value.dtype if isinstance(value, torch.Tensor) else None


def _cast_back(graph: Any, before: Mapping[Any, torch.dtype | None]) -> None:
    """Cast what promotion left in another dtype: it takes sums of float16 to float32, and torch gives float16."""
    for node in list(graph.nodes):
        wanted, now = before.get(node), _dtype(node)
        if node.op != "call_function" or wanted is None or now is None or wanted == now:
            continue
        users = list(node.users)
        with graph.inserting_after(node):
            back = graph.call_function(aten._to_copy.default, (node,), {"dtype": wanted})
        back.meta = {**node.meta, "val": node.meta["val"].to(wanted)}
        for user in users:
            user.replace_input_with(node, back)
        back.name, node.name = node.name, f"{node.name}_wide"  # outputs are known by their node's name


def translatable(node: Any, registry: Any) -> bool:
    """Whether the registry has a translation for this node."""
    if node.target is operator.getitem or str(getattr(node.target, "namespace", "")) == "onnx":
        return True
    return _internals().dispatch(node, registry)[0] is not None


def custom_node(domain: str, op_type: str, inputs: Sequence[Any], attributes: Mapping[str, Any], outputs: int) -> Any:
    """Add a node of a custom domain to the graph that is being built, from within a translation."""
    made = _internals().call(op_type, *inputs, _domain=domain, _num_outputs=outputs, **attributes)
    made[0].producer().version = 1  # torch.onnx would take the domain's version to be ONNX's
    return made if outputs > 1 else made[0]


def build(program: Any, registry: Any) -> ir.Model:
    """Return the graph of a prepared program, with the weights still in torch's memory."""
    inside = _internals()
    try:
        with silent():
            return inside.build(program, registry=registry).model  # type: ignore[no-any-return]
    except inside.Error as error:
        named = re.search(r"translating node %?(\w+)", str(error))
        root: BaseException = error
        while root.__cause__ is not None:
            root = root.__cause__
        raise TranslationFailed(named[1] if named else "", f"{type(root).__name__}: {root}") from error


@contextmanager
def silent() -> Iterator[None]:
    """Keep torch.onnx's and onnxscript's warnings and logs away from the user's terminal."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    levels = [log.level for log in loggers]
    try:
        for log in loggers:
            log.setLevel(logging.CRITICAL)
        with no_warnings():
            yield
    finally:
        for log, level in zip(loggers, levels, strict=True):
            log.setLevel(level)


class TranslationFailed(Exception):
    """A translation exists, but refused this use of the operator."""

    def __init__(self, node: str, reason: str) -> None:
        super().__init__(reason)
        self.node, self.reason = node, reason
