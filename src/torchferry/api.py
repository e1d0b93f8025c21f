"""The functions that users call: each turns the user's words into a Job, heals it, and hands over what came out."""

from __future__ import annotations

import inspect
import math
import os
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, cast

from torchferry import pipeline, torch_options
from torchferry.errors import ExportError, UsageError, VerifyError
from torchferry.execution import allowed, compared, exported, working
from torchferry.extras import require
from torchferry.files import check_writable, is_path, publish, size_on_disk
from torchferry.progress import Listener
from torchferry.records import Budget, Edit, Job, Tolerance
from torchferry.releases import targets
from torchferry.result import Result
from torchferry.watching import watching

TEXT = (".json", ".onnxjson", ".textproto", ".prototxt", ".pbtxt", ".txtpb", ".onnxtxt", ".onnxtext")  # onnx goes by these names


def export(
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | IO[bytes] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamic_shapes: Any = None,
    dynamic_axes: Any = None,
    examples: Sequence[Any] | None = None,
    ranges: Mapping[str, tuple[int, int | None]] | None = None,
    domain: Any = None,
    tolerance: float | tuple[float, float] | None = None,
    target: str | None = None,
    repair: str = "safe",
    check: bool = True,
    task: str | None = None,
    tokenizer_from: str | Path | None = None,
    precision: str | None = None,
    noise: str | None = None,
    trust: bool = False,
    edits: Sequence[Edit] = (),
    budget: Budget | None = None,
    progress: Listener | bool | None = None,
    **options: Any,
) -> Result:
    """Convert a PyTorch model to ONNX and verify the file against the eager model.

    model: an nn.Module, a function or bound method, an ExportedProgram, TorchScript, or the path of a `.pt2` file (see `trust`).
    args, kwargs: an example call. An example is enough: which sizes can move is found by trying the model.
    f: where to put the file, a path or what bytes are written to; None keeps it as long as the result (see `Result.save`).
    dynamic_shapes, dynamic_axes, input_names, output_names, opset_version: as in torch.onnx.export.
    examples: more calls, each `(args, kwargs)`, that must work.
    ranges: {"batch_size": (1, 64)}: sizes that must hold. By default as far as the eager model goes.
    domain: {"t": (0, 999)}: the values that an input may have, both ends included, or a function of (sizes, seed) that returns
    a call. By default found in the example, the model and the file. The certificate says that they were given.
    tolerance: how much an output may differ, relative and absolute, or (rtol, atol). By default derived; the certificate says
    that it was given.
    target: "onnxruntime" (the installed one), "onnxruntime==1.17" or "opset 15": where the file must load.
    repair: "off", "safe" (only what keeps the model's meaning) or "unsafe".
    check: raise ExportError when nothing verified came out; with False, look at `result.ok` and `result.diagnoses`.
    task: "text-generation" and the like: a transformers model as one graph with a cache, in a directory `f` that generates. It
    makes its own inputs; an example call is not needed, and not looked at.
    tokenizer_from: with a task, the directory whose tokenizer goes along.
    precision: with a task, "int8" or "int4" weights; what that costs in accuracy is measured and told.
    noise: "input" makes each draw of random numbers in `forward` an input of the file, so that it can be verified.
    trust: read a `.pt2` file, which runs whatever code is in it.
    edits: repairs to start from, as `Result.recipe()` prints them.
    budget: how much verification may cost, its seed, and the time limit of a stage.
    progress: is called with an Event for each stage, trial and repair. By default they are shown on stderr: at once on a terminal
    or in a notebook, elsewhere once the work takes more than two seconds; False, or TORCHFERRY_PROGRESS=0, is silent.
    options: the others of torch.onnx.export. custom_translation_table, custom_opsets, export_params, keep_initializers_as_inputs,
    external_data, optimize, training, report, dump_exported_program and artifacts_dir are carried out, and the file that comes of
    them is the one that is verified; the rest changes nothing (torchferry/torch_options.py tells why).

    The model is left as it was: mode, parameters, buffers, attributes, hooks and random number generators.
    """
    asked = torch_options.read(options, frozenset(inspect.signature(export).parameters))
    sensible(target, opset_version)
    progress = asked.verbose if progress is None else progress
    if task is not None or (is_path(f) and os.path.isdir(cast(Any, f)) and hasattr(model, "generate")):
        from torchferry.tasks import export_directory

        if not is_path(f):
            raise UsageError('a task makes a directory; say where: export(model, f="OUT/", task=...)')
        _refuse_beside_a_task(
            input_names=input_names, output_names=output_names, dynamic_shapes=dynamic_shapes, dynamic_axes=dynamic_axes,
            examples=examples, noise=noise, domain=domain, tolerance=tolerance, **asked.for_one_file(),
        )  # fmt: skip
        with watching(progress) as listener:
            return export_directory(
                model, f, task=task, tokenizer=tokenizer_from, opset_version=opset_version, target=target, repair=repair,
                precision=precision, check=check, budget=budget, progress=listener, ranges=ranges, edits=edits,
            )  # fmt: skip
    if precision is not None:
        raise UsageError('precision goes with a task: export(model, f="OUT/", task="text-generation", precision=...)')
    place = _destination(f if is_path(f) else None)
    at_once = None if asked.layout.left_out else place
    args, kwargs, words = torch_options.own_example(model, args, kwargs)
    with torch_options.in_mode(model, asked.mode), watching(progress) as listener:
        if noise is not None:
            model, args, kwargs, examples = _with_noise(noise, model, args, kwargs, examples)
        job = Job(
            model=model,
            args=args,
            kwargs=dict(kwargs or {}),
            examples=_calls(examples),
            input_names=_names("input_names", words.inputs if input_names is None else input_names),
            output_names=_names("output_names", words.outputs if output_names is None else output_names),
            dynamic_shapes=words.shapes if dynamic_shapes is None and dynamic_axes is None else dynamic_shapes,
            dynamic_axes=dynamic_axes,
            ranges=dict(ranges or {}),
            domain=_domain(domain),
            tolerance=_tolerance(tolerance),
            opset=opset_version,
            target=target,
            layout=asked.layout,
            translations=asked.translations,
            custom_opsets=asked.custom_opsets,
            trust=trust,
            budget=budget or Budget(),
            edits=(*asked.edits, *edits),
        )
        result = exported(job, at_once, allowed(repair), listener)
    torch_options.write_artifacts(asked, result)
    if f is not None and at_once is None and result.ok:
        result = result.save(f, include_initializers=not asked.layout.left_out)
    if check and not result.ok:
        raise ExportError(result)
    return result


def verify(
    model: Any,
    path: str | Path,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    examples: Sequence[Any] | None = None,
    ranges: Mapping[str, tuple[int, int | None]] | None = None,
    domain: Any = None,
    tolerance: float | tuple[float, float] | None = None,
    target: str | None = None,
    check: bool = True,
    trust: bool = False,
    budget: Budget | None = None,
    progress: Listener | bool | None = None,
) -> Result:
    """Compare an `.onnx` file, from any exporter, with the eager model, over the sizes that the file declares.

    path: the file; or the directory that `export` made for a task, whose graphs, and the texts that they write, are compared as
    the export compared them. For a graph with a cache no example is needed; one that is given must hold too.
    Returns a Result whose `ok` says whether they agree; with check=True raises VerifyError where they do not.
    domain, tolerance, trust: as in `export`.
    """
    sensible(target)
    if not isinstance(path, str | os.PathLike):
        swapped = ", which comes first: `verify(model, path, args)`" if isinstance(model, str | os.PathLike) else ""
        raise UsageError(f"`path` is the file to compare with the model{swapped}; it is a {type(path).__name__}")
    if _of_a_task(model, Path(path)):
        _refuse_beside_a_task(domain=domain, tolerance=tolerance)
        from torchferry.tasks import verify_directory

        with watching(progress) as listener:
            made: Result = verify_directory(
                model, path, args, kwargs=kwargs, examples=_calls(examples), check=check,
                ranges=ranges, target=target, budget=budget, progress=listener,
            )  # fmt: skip
        return made
    job = Job(
        model=model,
        args=args,
        kwargs=dict(kwargs or {}),
        examples=_calls(examples),
        ranges=dict(ranges or {}),
        domain=_domain(domain),
        tolerance=_tolerance(tolerance),
        target=target,
        onnx=_existing(path),
        trust=trust,
        budget=budget or Budget(),
    )
    with watching(progress) as listener:
        result = compared(job, Path(path), listener)
    if check and not result.ok:
        raise VerifyError(result)
    return result


def check(
    path: str | Path,
    feeds: Any = None,
    target: str | None = None,
    repair: str = "safe",
    output: str | Path | None = None,
    *,
    budget: Budget | None = None,
    progress: Listener | bool | None = None,
) -> Result:
    """Say whether an `.onnx` file from anywhere loads and runs, and if not, why; mend what can be mended.

    feeds: one {input name: array} or several, to be run. Without them plausible ones are made from the file's inputs.
    repair: "safe" makes what is shown to be right by running the file; "unsafe" also makes guesses, which are never `ok`.
    output: where to put the mended file; the file itself is never touched. `result.path` is the one to use.
    Never raises for what is wrong with the file.
    """
    sensible(target)
    destination = _destination(output)
    job = Job(onnx=Path(path), feeds=_feeds(feeds), target=target, budget=budget or Budget())
    began = time.perf_counter()
    with watching(progress) as listener, working(job, destination, listener) as prepared:
        history = pipeline.heal(prepared, allowed(repair))
        checked = history.best.value("check")
        use = Path(path) if checked is not None else None
        usable = history.best.ok or history.best.guessed  # a guess that was asked for is handed over, and is not ok
        if destination is not None and usable and checked is not None and checked.path is not None and checked.path != Path(path):
            publish(checked.path, destination)
            use = destination
    size = size_on_disk(use) if use is not None and use.is_file() else 0
    return Result("check", history, use, time.perf_counter() - began, size)


def explain(what: str | BaseException) -> str:
    """Return the page behind a diagnosis, found by its code (`CAP003`) or slug (`branch-on-tensor-value`).

    Of an exception that torch.onnx, onnxruntime or another tool raised it returns what it means, as far as its words tell.
    """
    if isinstance(what, BaseException):
        from torchferry.cli.explain import told
        from torchferry.messages import explained

        return told(explained("".join(traceback.format_exception(what))))
    from torchferry.catalogue import find
    from torchferry.report.explain import render

    return render(find(what))


def sensible(target: str | None, opset: int | None = None) -> None:
    """Raise UsageError for a target that is not understood, and for an opset that ONNX does not have or no runtime takes."""
    require("a check of a file", "onnxruntime")
    if target is not None:
        targets.parse(target)
    if opset is not None:
        from onnx.defs import onnx_opset_version

        lowest, newest = targets.LOWEST_OPSET, onnx_opset_version()
        if not lowest <= opset <= newest:
            raise UsageError(f"opset {opset} cannot be written: onnx has opsets up to {newest}, runtimes take {lowest} and later")


def _destination(f: Any) -> Path | None:
    """Return where the file goes; raises UsageError where it cannot be put, or would be written as text."""
    if f is None:
        return None
    if not isinstance(f, str | os.PathLike):
        raise UsageError(f"a file's name is text or a pathlib.Path; it is {type(f).__name__}")
    path = Path(f)
    if path.suffix.lower() in TEXT:
        raise UsageError(f"`{path}` is for text, and a model is none; name it `{path.with_suffix('.onnx')}`")
    check_writable(path)
    return path


def _refuse_beside_a_task(**given: Any) -> None:
    if unused := [f"`{name}`" for name, value in given.items() if value is not None]:
        raise UsageError(f"a task makes the inputs of its graphs itself: leave out {', '.join(unused)}")


def _with_noise(
    noise: str, model: Any, args: Any, kwargs: Mapping[str, Any] | None, examples: Sequence[Any] | None
) -> tuple[Any, Any, dict[str, Any], list[Any]]:
    """Return the call, and the further examples, with the model's draws as inputs of their own."""
    if noise != "input":
        raise UsageError(f'noise is "input", or left out; not {noise!r}')
    from torchferry.capture.given_noise import as_inputs, drawn

    args = args if isinstance(args, tuple) else (args,)
    given, first = as_inputs(model, args, kwargs or {})
    others = [(a if isinstance(a, tuple) else (a,), k) for a, k in _calls(examples)]
    return given, args, first, [(a, {**k, **drawn(model, a, k)}) for a, k in others]


def _names(what: str, names: Sequence[str] | None) -> tuple[str, ...] | None:
    if names is None:
        return None
    if isinstance(names, str):
        raise UsageError(f"{what} is a list of names; write {what}=[{names!r}]")
    if len(set(names)) != len(names):
        raise UsageError(f"{what} names something twice: {', '.join(names)}")
    return tuple(names)


def _calls(examples: Sequence[Any] | None) -> tuple[Any, ...]:
    """Return the further examples as (args, kwargs) pairs; a bare tuple of arguments, or one tensor, is taken as args."""
    calls = []
    for example in examples or ():
        pair = isinstance(example, tuple) and len(example) == 2 and isinstance(example[1], Mapping)
        calls.append((example[0], example[1]) if pair else (example, {}))
    return tuple(calls)


def _domain(domain: Any) -> Any:
    """Return the values that the caller says there are; raises UsageError where they are no ranges and no function."""
    if domain is None or callable(domain):
        return domain
    if not isinstance(domain, Mapping):
        raise UsageError(f'domain is {{"input": (low, high)}} or a function of (sizes, seed), not {type(domain).__name__}')
    for name, span in domain.items():
        ends = list(span) if isinstance(span, tuple | list) else []
        if len(ends) != 2 or not all(_is_number(e) for e in ends):
            raise UsageError(f"domain[{name!r}] must be (low, high), two numbers; got {span!r}")
        if ends[0] > ends[1]:
            raise UsageError(f"the domain of `{name}` is empty: {ends[0]:g}..{ends[1]:g}")
    return {name: (span[0], span[1]) for name, span in domain.items()}


def _tolerance(given: Any) -> Tolerance | None:
    """Return how much the caller says may differ; raises UsageError where that is no number, or negative."""
    if given is None:
        return None
    ends = list(given) if isinstance(given, tuple | list) else [given, given]
    if len(ends) != 2 or not all(_is_number(e) and e >= 0 for e in ends):
        raise UsageError(f"tolerance is a number, or (rtol, atol), none of them negative; got {given!r}")
    return Tolerance(float(ends[0]), 0.0, "as given by the caller", float(ends[1]))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _feeds(feeds: Any) -> tuple[Mapping[str, Any], ...]:
    if feeds is None:
        return ()
    given = (feeds,) if isinstance(feeds, Mapping) else tuple(feeds)
    for feed in given:
        if not isinstance(feed, Mapping):
            raise UsageError(f"a feed is a dict {{input name: array}}, not {type(feed).__name__}")
    return given


def _of_a_task(model: Any, path: Path) -> bool:
    """Whether what is to be verified is what a task's export writes, which only a model that generates has."""
    if not callable(getattr(model, "generate", None)) or not path.exists():
        return False
    from torchferry.tasks import generates

    return generates(model, path)


def _existing(path: str | Path) -> Path:
    found = Path(path)
    if found.is_dir():
        raise UsageError(f"`{path}` is a directory; name the file in it to be compared with the model")
    if not found.is_file():
        raise UsageError(f"there is no file `{path}`")
    return found
