"""Rules that turn one kind of finding into words, and the tiny files that their examples are made of."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Generic, TypeVar, cast, get_args, get_origin

from torchferry.catalogue.rule import Rule
from torchferry.edits.check import CheckEdit, FreeSizes, RewriteConstants
from torchferry.records import Case, Diagnosis, Finding, Location, Repair, Safety, Size, Stage
from torchferry.records.findings import MovingSizes

GUESS = "a guess, not shown"
F = TypeVar("F", bound=Finding)
Offer = tuple[str, CheckEdit, Safety]  # what it does, in words; the edit; how safe it is


class FindingRule(Rule, Generic[F]):
    """A rule for findings of certain classes, `FindingRule[OneKind | Another]`: what is wrong, what to do, what would mend it."""

    kinds: ClassVar[tuple[type[Finding], ...]]  # filled in from the brackets
    stage: ClassVar[Stage] = "check"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for base in getattr(cls, "__orig_bases__", ()):
            if get_origin(base) is FindingRule:
                (kind,) = get_args(base)
                cls.kinds = get_args(kind) or (kind,)

    def concerns(self, finding: F) -> bool:
        """Say whether this rule is the one for a finding of its kind."""
        return True

    def message(self, finding: F) -> str:
        """Return what is wrong, and where."""
        raise NotImplementedError

    def help(self, finding: F) -> str:
        """Return what to do."""
        return ""

    def evidence(self, finding: F) -> tuple[str, ...]:
        """Return what was seen."""
        return ()

    def offers(self, case: Case, finding: F) -> Iterator[Offer]:
        """Yield what would mend it, best first."""
        return iter(())

    def found(self, case: Case) -> list[F]:
        """Return the findings of a case that this rule is for."""
        findings = [cast("F", f) for kind in self.kinds for f in case.findings(kind)]
        return [f for f in findings if self.concerns(f)]

    def detect(self, case: Case) -> Iterator[Diagnosis]:
        for finding in self.found(case):
            where = finding.location or Location()
            evidence = (*self.evidence(finding), *_guesses(self.offers(case, finding)))
            yield Diagnosis(self.code, self.message(finding), self.help(finding), where, evidence, finding=finding)

    def repairs(self, case: Case, found: Diagnosis) -> Iterator[Repair]:
        if found.finding is None:  # a rule of its own making detected it
            return
        for title, edit, safety in self.offers(case, cast("F", found.finding)):
            changes = f"{GUESS}: {edit.guess}" if edit.guess else ""
            yield Repair(self.code, title, edit, safety, changes)


def as_guess(title: str, edit: CheckEdit, why: str) -> Offer:
    """Return an offer that nothing shows to be right: it is made only when asked for, and what comes out is never `ok`."""
    return title, replace(edit, guess=why), "unsafe"


def _guesses(offers: Iterator[Offer]) -> tuple[str, ...]:
    """Return what could be done about it that is only a guess, in words."""
    guesses = [(title, edit.guess) for title, edit, _ in offers if edit.guess]
    return tuple(f'{GUESS}: {title}; {why}; `repair="unsafe"` does it all the same' for title, why in guesses)


def node(finding: Finding) -> str:
    """Return the name of the node that a finding is about."""
    return (finding.location.onnx_node if finding.location else None) or ""


def at(finding: Finding) -> str:
    """Return the node a finding is about, in words."""
    where = finding.location
    if where is None or not (where.onnx_node or where.op):
        return "the graph"
    return f"node `{where.onnx_node}`" + (f" ({where.op})" if where.op else "") if where.onnx_node else f"a {where.op} node"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Return names in backticks, the first few of a long list."""
    shown = ", ".join(f"`{n}`" for n in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def shapes(found: Mapping[str, Sequence[Size]]) -> str:
    """Return "`x` [2, 3], `w` [4, 5]"."""
    return ", ".join(f"`{n}` [{', '.join(str(s) for s in sizes)}]" for n, sizes in found.items())


def offer_of_moving_sizes(plan: MovingSizes) -> Offer:
    """Return the repair that a plan stands for: axes declared as moving, or only what was baked in computed again."""
    title, edit = (
        ("let the sizes move", FreeSizes(plan.axes, plan.rewrites, plan.example))
        if plan.axes
        else ("compute the baked sizes from the inputs", RewriteConstants(plan.rewrites, plan.example))
    )
    return as_guess(title, edit, plan.guess) if plan.guess else (title, edit, "safe")


_kept: list[tempfile.TemporaryDirectory[str]] = []


def example_folder() -> Path:
    """Return a new folder for the files of an example; it goes when the process ends."""
    _kept.append(tempfile.TemporaryDirectory(prefix="torchferry-example-"))
    atexit.register(_kept[-1].cleanup)
    return Path(_kept[-1].name)


def example_file(text: str) -> Path:
    """Write a model given in onnx's text form, and return its path."""
    import onnx

    path = example_folder() / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(text).SerializeToString())
    return path


def example_file_with_data() -> Path:
    """Write a model whose one weight is kept in a file beside it, `model.onnx.data`, and return the model's path."""
    import onnx

    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 2] x) => (float[N, 2] y) <float[2] w = {1, 2}> { y = Add (x, w) }'
    )
    weight = model.graph.initializer[0]  # only raw data can be kept elsewhere, which the parser does not write
    weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight), weight.name))
    path = example_folder() / "model.onnx"
    onnx.save_model(model, str(path), save_as_external_data=True, location="model.onnx.data", size_threshold=0)
    return path
