"""The commands that do work: check the words, hand them to a child process, and there make the library call."""

from __future__ import annotations

import logging
import os
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from torchferry.cli import supervise
from torchferry.cli.screen import Screen
from torchferry.cli.words import example_input, moving_axes, names, size_ranges, tolerance, value_domains
from torchferry.errors import FileRefused, UsageError
from torchferry.escape import line
from torchferry.files import check_writable
from torchferry.progress import Event

if TYPE_CHECKING:
    from torchferry.cli.load import Loaded
    from torchferry.records import Budget
    from torchferry.result import Result

log = logging.getLogger("torchferry")
REPORTS = (".html", ".htm", ".md", ".json", ".sarif", ".txt")


@dataclass(frozen=True, slots=True)
class Ask:
    """What the user asked for, as words."""

    kind: Literal["export", "verify", "check"]
    words: tuple[str, ...]  # the command line itself, to run it again in a child
    file: Path
    model: str = ""
    inputs: tuple[str, ...] = ()
    example: tuple[Path, ...] = ()
    input_names: str | None = None
    output_names: str | None = None
    tokenizer: Path | None = None
    dynamic: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    tolerance: str | None = None
    opset: int | None = None
    target: str | None = None
    task: str | None = None
    precision: str | None = None
    repair: str = "safe"
    data: tuple[Path, ...] = ()
    output: Path | None = None
    format: str = "text"
    report: Path | None = None
    time_limit: float = 600.0
    trials: int = 64
    mutants: int | None = None
    seconds: float | None = None
    seed: int = 0
    noise: str | None = None
    patch: Path | None = None
    reproducer: Path | None = None
    trust: bool = False
    evaluate: bool | None = None
    verbose: int = 0
    quiet: bool = False
    settings: tuple[str, ...] = ()  # what the project's pyproject.toml set, in words

    @property
    def budget(self) -> Budget:
        """How much the work may cost."""
        from torchferry.records import Budget

        return Budget(self.trials, self.seconds, self.seed, self.time_limit, self.mutants)

    @property
    def into_directory(self) -> bool:
        """Whether a directory for generation is to be written, and not one file."""
        bare = self.model.startswith("hf:") and not self.file.suffix
        return self.kind == "export" and (self.task is not None or self.precision is not None or bare or os.path.isdir(self.file))

    @property
    def written(self) -> tuple[Path, ...]:
        """The files that the command may write."""
        file = self.file if self.kind == "export" and not self.into_directory else None
        made = (file, self.output, self.report, self.patch)
        return tuple(path for path in made if path is not None)


def work(ask: Ask) -> int:
    """Return the exit code of a command that may take long, or crash: it runs in a child process."""
    _sensible(ask)
    if not ask.quiet:
        print(line(_first_words(ask)), file=sys.stderr, flush=True)
    if not supervise.possible():
        return carry_out(ask)
    folders = {p.resolve().parent for p in (ask.file, *ask.written)} | {ask.file.resolve()}
    ending = supervise.run(ask, ask.words, ask.time_limit, folders={folder for folder in folders if folder.is_dir()})
    if ending.code == supervise.STOPPED:
        Screen().line("stopped")
    if ending.code is not None:
        return ending.code
    from torchferry.cli.outcome import deliver

    return deliver(supervise.as_result(ending, ask.kind), ask)


def _first_words(ask: Ask) -> str:
    """Return what is being done, with what the project's own settings made of it: said before anything is loaded."""
    what = {"export": f"{ask.model} -> {ask.file}", "verify": f"{ask.model}, {ask.file}", "check": str(ask.file)}[ask.kind]
    return f"{ask.kind} {what}" + (f" (by pyproject.toml: {', '.join(ask.settings)})" if ask.settings else "")


def _sensible(ask: Ask) -> None:
    """Raise UsageError for words that make no sense, before anything heavy is loaded."""
    for text in ask.inputs:
        example_input(text)
    size_ranges(ask.ranges)
    value_domains(ask.domain)
    tolerance(ask.tolerance)
    moving_axes(ask.dynamic)
    if ask.report is not None and ask.report.suffix.lower() not in REPORTS:
        raise UsageError(f"--report `{ask.report}`: a report ends in {', '.join(REPORTS)}")
    for path in ask.written:
        check_writable(path)
    if ask.into_directory and os.path.isfile(ask.file):
        raise UsageError(f"`{ask.file}` is a file; a model that generates is written into a directory, as in -o {ask.file.stem}/")
    if ask.kind in ("verify", "check") and not os.path.exists(ask.file):
        raise UsageError(f"there is no file `{ask.file}`")
    if ask.output is not None and ask.output.resolve() == ask.file.resolve():
        raise UsageError(f"the file that is checked is never overwritten; name another one with -o than `{ask.output}`")
    for path in (*ask.data, *ask.example):
        if not os.path.isfile(path):
            raise UsageError(f"there is no file `{path}`")
    if (ask.into_directory or (ask.kind == "verify" and os.path.isdir(ask.file))) and (unused := _unused(ask)):
        raise UsageError(
            f"`{ask.file}` is a directory that generates: the inputs of its graphs, and the trials, are made by its task; "
            f"leave out {', '.join(unused)}"
        )
    if ask.kind == "export" and not ask.into_directory and ask.tokenizer is not None:
        raise UsageError("--tokenizer goes with a directory: torchferry export hf:MODEL -o OUT/ --tokenizer DIRECTORY")
    if ask.model:
        from torchferry.cli.spell import sensible

        sensible(ask.model)


def _unused(ask: Ask) -> list[str]:
    """Return the options that a directory has no use for."""
    given: dict[str, object] = {
        "--domain": ask.domain,
        "--tolerance": ask.tolerance,
        "--dynamic": ask.dynamic,
        "--noise": ask.noise,
        "--input-names": ask.input_names,
        "--output-names": ask.output_names,
    }
    if ask.kind == "export":
        given |= {"--input": ask.inputs, "--example": ask.example}
    return [flag for flag, value in given.items() if value]


def carry_out(ask: Ask) -> int:
    """Return the exit code of the work itself."""
    from torchferry.cli.outcome import deliver, results_apart

    if not ask.verbose:  # what torch and transformers murmur helps nobody who did not ask for it
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    with results_apart(), Screen(quiet=ask.quiet, verbose=ask.verbose) as screen:

        def listen(event: Event) -> None:
            supervise.tell(event.stage)
            screen(event)

        listen(Event("begin", "start"))
        result = _result(ask, listen)
    return deliver(result, ask)


def _result(ask: Ask, listen: Callable[[Event], None]) -> Result:
    from torchferry.api import sensible

    sensible(ask.target, ask.opset)
    if ask.kind == "check":
        import torchferry

        return torchferry.check(
            ask.file,
            [_arrays(p) for p in ask.data] or None,
            ask.target,
            ask.repair,
            ask.output,
            budget=ask.budget,
            progress=listen,
        )
    listen(Event("begin", "load"))
    from torchferry.cli.load import LoadFailed, as_result, load

    began = time.perf_counter()
    try:
        inputs = [example_input(text) for text in ask.inputs]
        loaded = load(ask.model, inputs, trust=ask.trust, evaluate=ask.evaluate)
        listen(Event("end", "load", loaded.words, seconds=time.perf_counter() - began))
        return _convert(ask, loaded, listen)
    except LoadFailed as failed:
        spent = time.perf_counter() - began
        listen(Event("end", "load", seconds=spent, ok=False))
        log.info("while loading `%s`", ask.model, exc_info=failed.error)
        return failed.result(ask.kind, spent)
    except FileRefused as refused:
        return as_result(refused, ask.kind, time.perf_counter() - began)


def _convert(ask: Ask, loaded: Loaded, listen: Callable[[Event], None]) -> Result:
    import torchferry

    if ask.into_directory:
        return _directory(ask, loaded, listen)
    shared: dict[str, Any] = {"kwargs": loaded.kwargs, "ranges": size_ranges(ask.ranges), "check": False, "trust": ask.trust}
    shared |= {"target": ask.target, "examples": [loaded.call(_arrays(path)) for path in ask.example] or None}
    shared |= {"domain": value_domains(ask.domain) or None, "tolerance": tolerance(ask.tolerance)}
    shared |= {"budget": ask.budget, "progress": listen}
    if ask.kind == "verify":
        return torchferry.verify(loaded.model, ask.file, loaded.args, **shared)
    axes = moving_axes(ask.dynamic)
    return torchferry.export(
        loaded.model,
        loaded.args,
        ask.file,
        input_names=names(ask.input_names) or loaded.input_names,
        output_names=names(ask.output_names),
        opset_version=ask.opset,
        dynamic_shapes="none" if axes == "none" else None,
        dynamic_axes=None if axes == "none" else axes,
        repair=ask.repair,
        noise=ask.noise,
        **shared,
    )


def _directory(ask: Ask, loaded: Loaded, listen: Callable[[Event], None]) -> Result:
    from torchferry.tasks import export_directory

    if not hasattr(loaded.model, "generate"):
        what = f"`{ask.file}` is a directory" if ask.file.is_dir() else "a directory was asked for"
        raise UsageError(f"{what}, and `{ask.model}` has no `generate` to be run from one; name a file, as in -o model.onnx")
    made: Result = export_directory(
        loaded.model,
        ask.file,
        task=ask.task,
        tokenizer=ask.tokenizer or loaded.tokenizer,
        precision=ask.precision,
        ranges=size_ranges(ask.ranges),
        opset_version=ask.opset,
        target=ask.target,
        repair=ask.repair,
        check=False,
        budget=ask.budget,
        progress=listen,
    )
    return made


def _arrays(path: Path) -> dict[str, Any]:
    """Return the arrays of an .npz file by name. Pickled objects in it are refused, as in models."""
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except Exception as error:  # a damaged archive raises whatever zipfile, zlib and numpy raise
        raise UsageError(
            f"`{path}` is not an .npz file of plain arrays; write it with `numpy.savez(path, name=array)`"
        ) from error
