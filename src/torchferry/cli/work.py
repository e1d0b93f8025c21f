"""The commands that do work: check the words, hand them to a child process, and there make the library call."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from torchferry.cli import supervise
from torchferry.cli.outcome import deliver, results_apart
from torchferry.cli.screen import Screen
from torchferry.cli.words import example_input, moving_axes, size_ranges, tolerance, value_domains
from torchferry.errors import FileRefused, UsageError
from torchferry.files import check_writable
from torchferry.progress import Event
from torchferry.records import Budget

if TYPE_CHECKING:
    from torchferry.cli.load import Loaded
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
    dynamic: tuple[str, ...] = ()
    ranges: tuple[str, ...] = ()
    domain: tuple[str, ...] = ()
    tolerance: str | None = None
    opset: int | None = None
    target: str | None = None
    task: str | None = None
    precision: str | None = None
    repair: str = "safe"
    data: Path | None = None
    output: Path | None = None
    format: str = "text"
    report: Path | None = None
    time_limit: float = 600.0
    trials: int = 64
    mutants: int | None = None
    seed: int = 0
    noise: str | None = None
    patch: Path | None = None
    reproducer: Path | None = None
    trust: bool = False
    verbose: bool = False
    quiet: bool = False

    @property
    def budget(self) -> Budget:
        """How much the work may cost."""
        return Budget(trials=self.trials, seed=self.seed, time_limit=self.time_limit, mutants=self.mutants)

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
    if not supervise.possible():
        return carry_out(ask)
    folders = {p.resolve().parent for p in (ask.file, *ask.written)} | {ask.file.resolve()}
    ending = supervise.run(ask, ask.words, ask.time_limit, folders={folder for folder in folders if folder.is_dir()})
    if ending.code == supervise.STOPPED:
        Screen().line("stopped")
    if ending.code is not None:
        return ending.code
    return deliver(supervise.as_result(ending, ask.kind), ask)


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
    if ask.data is not None and not os.path.isfile(ask.data):
        raise UsageError(f"there is no file `{ask.data}`")
    if ask.model:
        from torchferry.cli.spell import sensible

        sensible(ask.model)


def carry_out(ask: Ask) -> int:
    """Return the exit code of the work itself."""
    if not ask.verbose:  # what torch and transformers murmur helps nobody who did not ask for it
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    with results_apart(), Screen(quiet=ask.quiet, verbose=ask.verbose) as screen:

        def listen(event: Event) -> None:
            supervise.tell(event.stage)
            screen(event)

        result = _result(ask, listen)
    return deliver(result, ask)


def _result(ask: Ask, listen: Callable[[Event], None]) -> Result:
    if ask.kind == "check":
        import torchferry

        return torchferry.check(
            ask.file, _feeds(ask.data), ask.target, ask.repair, ask.output, budget=ask.budget, progress=listen
        )
    from torchferry.cli.load import LoadFailed, as_result, load

    listen(Event("begin", "load"))
    began = time.perf_counter()
    try:
        loaded = load(ask.model, [example_input(text) for text in ask.inputs], trust=ask.trust)
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
    shared |= {"domain": value_domains(ask.domain) or None, "tolerance": tolerance(ask.tolerance)}
    shared |= {"budget": ask.budget, "progress": listen}
    if ask.kind == "verify":
        return torchferry.verify(loaded.model, ask.file, loaded.args, **shared)
    axes = moving_axes(ask.dynamic)
    return torchferry.export(
        loaded.model,
        loaded.args,
        ask.file,
        input_names=loaded.input_names,
        opset_version=ask.opset,
        dynamic_shapes="none" if axes == "none" else None,
        dynamic_axes=None if axes == "none" else axes,
        target=ask.target,
        repair=ask.repair,
        noise=ask.noise,
        **shared,
    )


def _directory(ask: Ask, loaded: Loaded, listen: Callable[[Event], None]) -> Result:
    from torchferry.tasks import export_directory

    if not hasattr(loaded.model, "generate"):
        what = f"`{ask.file}` is a directory" if ask.file.is_dir() else "a directory was asked for"
        raise UsageError(f"{what}, and `{ask.model}` has no `generate` to be run from one; name a file, as in -o model.onnx")
    if ask.domain or ask.tolerance:
        raise UsageError("a task makes the inputs of its graphs itself: leave out --domain and --tolerance")
    made: Result = export_directory(
        loaded.model,
        ask.file,
        task=ask.task,
        tokenizer=loaded.tokenizer,
        precision=ask.precision,
        opset_version=ask.opset,
        target=ask.target,
        repair=ask.repair,
        check=False,
        budget=ask.budget,
        progress=listen,
    )
    return made


def _feeds(path: Path | None) -> dict[str, Any] | None:
    """Return the arrays of an .npz file by name. Pickled objects in it are refused, as in models."""
    if path is None:
        return None
    import numpy as np

    try:
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except Exception as error:  # a damaged archive raises whatever zipfile, zlib and numpy raise
        raise UsageError(
            f"`{path}` is not an .npz file of plain arrays; write it with `numpy.savez(path, name=array)`"
        ) from error
