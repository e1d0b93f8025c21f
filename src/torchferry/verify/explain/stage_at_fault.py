"""Which stage went wrong: the captured program, and that program decomposed, are run beside eager on the failing input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchferry import eager
from torchferry.foreign.torch_trees import tree_leaves
from torchferry.records import Case
from torchferry.verify.arrays import Array, arrays
from torchferry.verify.explain.cause import STAGES
from torchferry.verify.judge.trial import Judged
from torchferry.verify.run.repeated_calls import same

MOST_NODES = 3000  # of a program that is decomposed again to see whether that is what went wrong


def stage_of(case: Case, failing: Judged, cause: str) -> str:
    """Return the stage to blame; for a file from elsewhere, whose program is gone, what the kind of cause says."""
    captured = case.value("capture")
    if captured is None or cause == "guard":
        return STAGES[cause]
    if not _right(captured.program, failing):
        return "capture"
    if cause in ("constant-dropped", "precision") or len(captured.program.graph.nodes) > MOST_NODES:
        return STAGES[cause]
    return "decomposition" if not _right(_decomposed(captured.program), failing) else "translation"


def _decomposed(program: Any) -> Any:
    try:
        return program.run_decompositions()
    except Exception:  # torch may fail to decompose what it captured; then that is not where the file came from
        return program


def _right(program: Any, failing: Judged) -> bool:
    """Return whether a program gives what eager gives; one that refuses the input, by a guard, does not."""
    try:
        module = program.module(check_guards=True)
        got = arrays(tree_leaves(eager.call(_Flat(module), tuple(failing.args))))
    except Exception:  # guards, and whatever a graph may raise at other sizes
        return False
    return _alike(failing.want, got)


class _Flat:
    def __init__(self, module: Any) -> None:
        self.module = module

    def __call__(self, *args: Any) -> tuple[Any, ...]:
        return tuple(tree_leaves(self.module(*args)))


def _alike(want: Sequence[Array], got: Sequence[Array]) -> bool:
    return len(want) == len(got) and all(same(w, g) for w, g in zip(want, got, strict=True))
