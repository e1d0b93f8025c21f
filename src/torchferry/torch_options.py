"""What torch.onnx.export takes beyond our own arguments: each is carried out, said to change nothing, or refused in words."""

from __future__ import annotations

import inspect
import os
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torchferry.edits.translate import OptimiserOff
from torchferry.errors import UsageError, did_you_mean
from torchferry.files import in_words
from torchferry.records import Edit, Layout

# every option of torch 2.12 to 2.15, and `fallback` of the releases before 2.11
TAKEN_FROM_TORCH = frozenset(
    {
        "artifacts_dir", "autograd_inlining", "custom_opsets", "custom_translation_table", "do_constant_folding",
        "dump_exported_program", "dynamo", "export_modules_as_functions", "export_params", "external_data", "fallback",
        "keep_initializers_as_inputs", "operator_export_type", "optimize", "profile", "report", "training", "verbose", "verify",
    }
)  # fmt: skip
# What is always so here, whatever is said: the file computes the same, so that a word is enough. option -> (its usual value, why)
MAKES_NO_DIFFERENCE: Mapping[str, tuple[Any, str]] = {
    "do_constant_folding": (True, "constants are always folded; `optimize=False` leaves the graph as it was translated"),
    "export_modules_as_functions": (False, "modules are not kept as functions of the file; the graph computes the same"),
    "autograd_inlining": (True, "functions of autograd are always taken apart into operators"),
    "profile": (False, "no profile is written; `print(result)` tells how long it took, `Result.history` how long each stage"),
}


# What torch.onnx.export took once and takes no longer. option -> what to do instead
DROPPED: Mapping[str, str] = {
    "example_outputs": "leave it out: the model is run, and says what it gives",
    "use_external_data_format": "weights that do not fit go beside the file by themselves; `external_data=True` says so",
    "enable_onnx_checker": "leave it out: every file is checked",
    "strip_doc_string": "leave it out; `verbose` is the option that came after it",
    "_retain_param_name": "leave it out: weights keep their names",
    "aten": "leave it out: the file has operators of ONNX alone",
    "export_raw_ir": "leave it out: the file has operators of ONNX alone",
}


@dataclass(frozen=True, slots=True)
class TorchOptions:
    """The options as they are carried out."""

    layout: Layout = field(default_factory=Layout)
    translations: Mapping[Any, Any] = field(default_factory=dict)
    custom_opsets: Mapping[str, int] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    mode: bool | None = None  # of the model while it is exported: True for training; None: as it is
    report: bool = False
    dump: bool = False
    artifacts: Path = Path()
    verbose: bool | None = None

    def for_one_file(self) -> dict[str, Any]:
        """Return what was asked for that has no meaning for a directory of several graphs, None where it was not."""
        return {
            "custom_translation_table": self.translations or None,
            "external_data": self.layout.beside,
            "export_params": self.layout.left_out or None,
            "keep_initializers_as_inputs": self.layout.as_inputs or None,
        }


@dataclass(frozen=True, slots=True)
class OwnWords:
    """What a torch.onnx.ExportableModule says of its own file."""

    inputs: Any = None
    outputs: Any = None
    shapes: Any = None


def own_example(model: Any, args: Any, kwargs: Any) -> tuple[Any, Any, OwnWords]:
    """Return the call to export, and what goes with it: a torch.onnx.ExportableModule has its own where none is given."""
    given = (isinstance(args, tuple | list) and not args) and not kwargs
    if not given or not callable(getattr(model, "example_arguments", None)):
        return args, kwargs, OwnWords()
    said = {name: getattr(model, name, lambda: None)() for name in ("input_names", "output_names", "dynamic_shapes")}
    return *model.example_arguments(), OwnWords(*said.values())


def read(options: Mapping[str, Any], known: frozenset[str]) -> TorchOptions:
    """Return what the options ask for; `known` are the names of our own arguments. Raises UsageError for what cannot be done."""
    for name in options:
        if name in DROPPED:
            raise UsageError(f"export takes no argument `{name}`, and torch.onnx no longer does: {DROPPED[name]}")
        if name not in TAKEN_FROM_TORCH:
            raise UsageError(f"export takes no argument `{name}`{did_you_mean(name, TAKEN_FROM_TORCH | known)}")
    for name, (usual, why) in MAKES_NO_DIFFERENCE.items():
        if options.get(name, usual) not in (usual, None):
            warnings.warn(f"{name}={options[name]!r} changes nothing: {why}", UserWarning, stacklevel=4)
    _only_onnx(options.get("operator_export_type"))
    external = options.get("external_data")
    return TorchOptions(
        layout=Layout(
            beside=None if external is None else bool(external),
            as_inputs=bool(options.get("keep_initializers_as_inputs")),
            left_out=options.get("export_params") is False,
        ),
        translations=dict(_translations(options.get("custom_translation_table"))),
        custom_opsets=_opsets(options.get("custom_opsets")),
        edits=(OptimiserOff(),) if options.get("optimize") is False else (),
        mode=_mode(options),
        report=bool(options.get("report")),
        dump=bool(options.get("dump_exported_program")),
        artifacts=Path(os.fspath(options.get("artifacts_dir") or ".")),
        verbose=options.get("verbose"),
    )


def _only_onnx(kind: Any) -> None:
    """Tell that operators outside of ONNX are not needed; they were for Caffe2 and for runtimes of one's own."""
    if kind is not None and getattr(kind, "name", str(kind)) != "ONNX":
        told = f"operator_export_type={getattr(kind, 'name', kind)} changes nothing"
        why = "the file has operators of ONNX alone; what has none is refused, or given by custom_translation_table"
        warnings.warn(f"{told}: {why}", UserWarning, stacklevel=5)


def _translations(table: Any) -> Iterator[tuple[Any, Callable[..., Any]]]:
    """Yield (operator, function); raises UsageError for what names no operator, or more than one function for it."""
    if table is None:
        return
    if not isinstance(table, Mapping):
        raise UsageError(
            f"custom_translation_table is a dict {{torch operator: onnxscript function}}, not {type(table).__name__}"
        )
    for target, given in table.items():
        functions = list(given) if isinstance(given, list | tuple) else [given]
        if len(functions) != 1:
            raise UsageError(
                f"custom_translation_table has {len(functions)} functions for `{target}`; give the one that is meant"
            )
        if isinstance(target, str) or not callable(target):
            raise UsageError(f"custom_translation_table has {target!r} for an operator; write `torch.ops.aten.gelu.default`")
        if callable(overloads := getattr(target, "overloads", None)):
            of = ", ".join(f"`{target}.{name}`" for name in overloads())
            raise UsageError(f"custom_translation_table has `{target}`, which has overloads; name the one that is meant: {of}")
        if not callable(functions[0]):
            raise UsageError(f"custom_translation_table has {functions[0]!r} for `{target}`, which is no function")
        yield target, _to_be_traced(functions[0])


def _to_be_traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Python behind an onnxscript function that does not say how many values it returns: torch counts none then."""
    inner = getattr(function, "function", None)
    if not inspect.isfunction(inner) or not hasattr(function, "function_ir"):
        return function
    return inner if inspect.signature(inner).return_annotation is inspect.Signature.empty else function


def _opsets(versions: Any) -> dict[str, int]:
    if not isinstance(versions or {}, Mapping):
        raise UsageError(f"custom_opsets is a dict {{domain: version}}, not {type(versions).__name__}")
    found = {str(domain): version for domain, version in (versions or {}).items()}
    for domain, version in found.items():
        if domain in ("", "ai.onnx"):
            raise UsageError(f"custom_opsets is for domains of one's own; that of ONNX is opset_version={version}")
        if type(version) is not int or version < 1:
            raise UsageError(f"custom_opsets[{domain!r}] is a version, from 1 upwards; got {version!r}")
    return found


def _mode(options: Mapping[str, Any]) -> bool | None:
    """Return whether to train while exporting: `training` says so, and the old exporter took eval for granted."""
    asked = options.get("training")
    name = getattr(asked, "name", str(asked)) if asked is not None else "EVAL" if options.get("dynamo") is False else "PRESERVE"
    modes: dict[str, bool | None] = {"EVAL": False, "TRAINING": True, "PRESERVE": None}
    if name not in modes:
        raise UsageError(f"training is TrainingMode.EVAL, PRESERVE or TRAINING; got {asked!r}")
    return modes[name]


@contextmanager
def in_mode(model: Any, training: bool | None) -> Iterator[None]:
    """Have the model in a mode for as long as the block runs; what is no module, or has that mode already, is left alone."""
    if training is None or not hasattr(model, "modules"):
        yield
        return
    from torchferry.eager import untouched_by_runs

    before = {part: part.training for part in model.modules() if hasattr(part, "training")}  # a frozen script has no mode
    if all(mode == training for mode in before.values()):
        yield
        return
    with untouched_by_runs(model):
        model.train(training)
        try:
            yield
        finally:
            for part, mode in before.items():  # scripts keep theirs in C++, where nothing else puts it back
                part.training = mode


def write_artifacts(options: TorchOptions, result: Any) -> None:
    """Write what was asked for beside the file: the story as a page, the captured program as a `.pt2` file."""
    if not (options.report or options.dump):
        return
    with in_words(options.artifacts):
        options.artifacts.mkdir(parents=True, exist_ok=True)
    stem = f"onnx_export_{time.strftime('%Y-%m-%d_%H-%M-%S')}_{'success' if result.ok else 'failed'}"
    if options.report:
        result.report(options.artifacts / f"{stem}.md")
    if options.dump and result.program is not None:
        import torch

        with in_words(options.artifacts):
            torch.export.save(result.program, options.artifacts / f"{stem}.pt2")
