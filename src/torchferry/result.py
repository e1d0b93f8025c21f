"""What came out: a file that was verified, or the reasons why there is none; and the whole story behind it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from torchferry.edits.capture import Rewrite
from torchferry.errors import UsageError
from torchferry.files import check_writable, in_words, publish, workspace, write_text
from torchferry.records import Bound, Case, Diagnosis, History, Repair, Trial

Kind = Literal["export", "verify", "check"]
FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json", ".sarif": "sarif", ".txt": "text"}


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of `export`, `verify` or `check`. `print(result)` reads it out; `ok` says whether the file can be used."""

    kind: Kind
    history: History
    path: Path | None = None
    seconds: float = 0.0
    bytes: int = 0
    folder: Any = field(default=None, repr=False)  # keeps a file without a name alive for as long as the result

    @property
    def ok(self) -> bool:
        """Whether there is a file and it was shown to be right. One that works only as a mended copy is not it yet."""
        from torchferry.report.standing import unwritten

        return self.history.best.ok and self.path is not None and not unwritten(self.history, self.path)

    @property
    def diagnoses(self) -> tuple[Diagnosis, ...]:
        """What was wrong: what still is, root cause first, then what repairs have mended (`fixed`)."""
        return (*self.history.best.diagnoses, *self.history.mended)

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """The repairs that were made and proven."""
        return self.history.kept

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Every comparison with the eager model, in the order they were run."""
        return self.history.best.trials

    @property
    def ranges(self) -> Mapping[str, tuple[int, int | None]]:
        """The sizes over which the file was shown to hold, by dimension."""
        return dict(self.history.best.ranges)

    @property
    def given_up(self) -> tuple[str, ...]:
        """The sizes that the model takes and the file does not, each with the reason; only sizes that nobody asked for."""
        from torchferry.certificate import given_up

        return given_up(self.history.best)

    @property
    def program(self) -> Any:
        """The torch.export.ExportedProgram that was captured, or None."""
        captured = self.history.best.value("capture")
        return captured.program if captured else None

    @property
    def patch(self) -> str:
        """The source repairs that were made in memory, as a unified diff that `git apply` takes; empty if there are none."""
        from torchferry.capture.rewrites import diff

        return diff(self.history.best.job.edits_for(Rewrite))

    def feeds(self, args: Any = (), kwargs: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return {input name: array} for `session.run(None, ...)` from arguments as the model takes them.

        Raises FeedError for an argument that the file fixed (a flag, a None, a length) and that differs now.
        """
        return self._bound().feeds(args, kwargs or {})

    def inputs(self, trial: Trial) -> dict[str, Any]:
        """Return the feeds of a trial, made again as they were."""
        bound = self._bound()
        from torchferry.verify.arrays import array
        from torchferry.verify.explain.reproduce import call_of

        return {spec.name: array(tensor) for spec, tensor in zip(bound.signature.inputs, call_of(bound, trial), strict=True)}

    def _bound(self) -> Bound:
        bound = self.history.best.value("inputs")
        if not isinstance(bound, Bound):
            raise UsageError("there is no bound example behind this result; feed the file by its input names")
        return bound

    def save(self, path: str | Path) -> Result:
        """Put a copy of the verified file, with its weights, at `path`; return the result for that file."""
        if not self.ok or self.path is None:
            raise UsageError("there is no verified file to save; `print(result)` says why")
        destination = Path(path)
        check_writable(destination)
        from torchferry.translate.save import copy_model

        with in_words(destination), workspace(near=destination) as folder:
            copy_model(self.path, folder / destination.name)
            publish(folder / destination.name, destination)
        return replace(self, path=destination)

    def report(self, path: str | Path) -> Path:
        """Write the story to `path`, in the format that its ending names: .html, .md, .json, .sarif or .txt."""
        target = Path(path)
        if target.suffix.lower() not in FORMATS:
            raise UsageError(f"a report ends in {', '.join(FORMATS)}; `{target.name}` does not")
        write_text(target, self.render(FORMATS[target.suffix.lower()]))
        return target

    def render(self, format: str = "text") -> str:
        """Return the story as "text", "json", "markdown", "html" or "sarif"."""
        from torchferry import report

        return report.render(self, format)

    def reproducer(self, directory: str | Path) -> Path | None:
        """Write the smallest input, and a script of a few lines, that show the first failing trial; None if none failed."""
        from torchferry.verify.explain.reproduce import write

        with workspace() as folder:
            return write(_with_its_file(self.history.best, folder), Path(directory))

    def recipe(self) -> str:
        """Return a short script that makes the same file again, its repairs included."""
        from torchferry.report.recipe import script

        return script(self)

    def to_json(self) -> str:
        """Return the story as JSON; `torchferry.report.from_json` reads it back."""
        return self.render("json")

    def __str__(self) -> str:
        return self.render("text")

    def _repr_html_(self) -> str:
        from torchferry.report.html import notebook

        return notebook(self)


def _with_its_file(case: Case, folder: Path) -> Case:
    """Return the case with its file on disk: an export that failed left none behind, but the graph is still in memory."""
    made = case.value("translate")
    if made is None or made.model is None or made.path.exists():
        return case
    from torchferry.translate.save import save

    save(made.model, folder / made.path.name)
    again = replace(made, path=folder / made.path.name)
    return replace(case, steps=tuple(replace(s, value=again) if s.stage == "translate" else s for s in case.steps))
