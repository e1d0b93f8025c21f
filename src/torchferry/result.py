"""What came out: a file that was verified, or the reasons why there is none; and the whole story behind it."""

from __future__ import annotations

import builtins
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, cast

from torchferry.edits.capture import Rewrite
from torchferry.errors import UsageError
from torchferry.files import check_writable, digest_of, in_words, is_path, publish, size_on_disk, workspace, write_text
from torchferry.program import Held, Program
from torchferry.records import Bound, Case, Diagnosis, History, Layout, Repair, Translated, Trial
from torchferry.report.words import span

Kind = Literal["export", "verify", "check"]
FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".json": "json", ".sarif": "sarif", ".txt": "text"}


@dataclass(frozen=True, slots=True, repr=False)
class Result(Program):
    """The outcome of `export`, `verify` or `check`. `print(result)` reads it out; `ok` says whether the file can be used.

    It stands in for torch.onnx.ONNXProgram too: a call of it runs the file, `model_proto` and `model` show the graph.
    """

    kind: Kind
    history: History
    path: Path | None = None
    seconds: float = 0.0
    bytes: int = 0
    folder: Any = None  # keeps a file without a name alive for as long as the result
    layout: Layout = field(default_factory=Layout)  # how the file at `path` was made of the verified one
    sealed: str = ""  # the digest of the verified file; empty for a file from elsewhere
    complete: Path | None = None  # the verified file, where the one at `path` has its weights left out
    held: Held = field(default_factory=Held, compare=False)

    @property
    def ok(self) -> bool:
        """Whether there is a file and it was shown to be right. One that works only as a mended copy is not it yet."""
        from torchferry.report.unwritten_repairs import unwritten

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
    def exported_program(self) -> Any:
        """The same, by the name that torch.onnx has for it."""
        return self.program

    @property
    def settings(self) -> Mapping[str, Any]:
        """What a session of the file must set."""
        made = self.history.best.value("translate")
        return made.settings if made is not None else {}

    @property
    def whole(self) -> Path:
        """The verified file with all its weights. Raises UsageError where there is none, or where it is no longer that file."""
        path = self.complete or self.path
        if not self.ok or path is None:
            raise UsageError("there is no verified file; `print(result)` says why")
        if not path.is_file():
            raise UsageError(f"the verified file `{path}` is no longer there")
        if self.sealed and digest_of(path) != self.sealed:
            raise UsageError(f"`{path}` is no longer the file that was verified: something else was written there since")
        return path

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

    def save(
        self,
        destination: str | os.PathLike[str] | IO[builtins.bytes],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> Result:
        """Put the verified file, with its weights, at `destination` too, or write its bytes there; return the result for it.

        include_initializers: with False the model's weights are inputs that must be fed, and the file has none of them.
        keep_initializers_as_inputs: they are inputs that need not be fed.
        external_data: weights in a file beside it, or all in one; None: as the verified file has them.
        What is written is read back and shown to be the verified file, see torchferry/delivery.py.
        """
        self.refuse_changes()
        whole = self.whole
        layout = Layout(external_data, keep_initializers_as_inputs, not include_initializers)
        path = Path(cast(Any, destination)) if is_path(destination) else None
        if path is None and external_data:
            raise UsageError("weights cannot lie beside a stream: give a path, or leave external_data out")
        if path is not None:
            check_writable(path)
        else:
            layout = replace(layout, beside=False)
        with in_words(path or "the stream"), workspace(near=path) as folder:
            made = folder / (path.name if path is not None else "model.onnx")
            self._relaid(whole, made, layout)
            if path is None:
                destination.write(made.read_bytes())  # type: ignore[union-attr]
                return self
            publish(made, path)
        made_so = replace(self, path=path, bytes=size_on_disk(path), layout=layout, held=Held())
        if layout.left_out:
            return replace(made_so, complete=whole)
        return replace(made_so, complete=None, sealed=digest_of(path) if self.sealed else "")

    def _relaid(self, whole: Path, made: Path, layout: Layout) -> None:
        """Write the verified file with its weights where they are wanted, or as it is."""
        from torchferry import certificate
        from torchferry.translate.save import copy_model

        if layout == Layout():
            copy_model(whole, made)
            found = certificate.read(made)
            if found.data and found.objections:
                raise UsageError(f"`{whole}` is no longer the file that was verified: {'; '.join(found.objections)}")
            return
        from torchferry.delivery import Proof, relaid

        verified = self.history.best.value("verify")
        if verified is None:
            raise UsageError("only a file that was compared with its model can be saved with its weights elsewhere")
        calls = [partial(self.inputs, trial) for trial in self.trials if trial.outcome == "agree" and not trial.weights]
        relaid(whole, made, layout, self._weights(), Proof(calls, verified.tolerance, self.settings))

    def _weights(self) -> frozenset[str]:
        """Return the names of the model's weights in the file; of one from elsewhere all numbers that it holds."""
        from torchferry.translate.weight_inputs import weights

        graph = self.history.best.answer(Translated).model
        assert graph is not None  # only cases that lost have let go of theirs
        return frozenset(str(v.name) for v in weights(graph) or graph.graph.initializers.values())

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

    def __repr__(self) -> str:
        """Return the verdict in a line, and the sizes in another: what an interactive prompt has room for."""
        sizes = ", ".join(f"{name} {span(*ends)}" for name, ends in self.ranges.items())
        first = self.render("text").partition("\n")[0]
        return f"<Result of {self.kind}: {first}{f'; sizes: {sizes}' if sizes else ''}; print it for more>"

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
