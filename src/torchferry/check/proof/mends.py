"""Which proof a graph pass needs, and what is said where there is none.

Where the file as it came runs, that alone is asked: `unchanged.py` compares the two. What is left are files that no runtime
opened before. Passes whose proof is part of their plan (sizes, places of weights) say why they are a `guess` where
they have none.
"""

from __future__ import annotations

from collections.abc import Sequence

from torchferry.check.proof import evaluated, same_numbers, stamped, written_out
from torchferry.check.proof.mending import Mending
from torchferry.check.reading import graph
from torchferry.edits.check import (
    CastAround,
    CastBranches,
    CastCarried,
    CastOperands,
    ConvertOpset,
    Decompose,
    GraphPass,
    InlineBranch,
    ModerniseOldForms,
    RenameShadowed,
    Retype,
    StampOpset,
)
from torchferry.records.findings import MendNotShown

# What these did is held against the standard's evaluator. The others touch nothing that computes, or have their proof elsewhere.
Rewriting = (
    ConvertOpset
    | Decompose
    | CastOperands
    | CastAround
    | CastBranches
    | CastCarried
    | RenameShadowed
    | ModerniseOldForms
    | InlineBranch
    | Retype
)


def _converted(mending: Mending, edit: ConvertOpset) -> str:
    """Where onnx's converter left every node as it was, only the stamp changed."""
    before, after = ([n.SerializeToString() for n in m.graph.node] for m in (graph.flat(mending.raw), mending.model))
    return (
        stamped.why_not(mending, StampOpset(edit.to))
        if before == after
        else "onnx's converter rewrote nodes, and nothing here runs the old ones"
    )


def _renamed(mending: Mending) -> str:
    """A name that is read before it is defined inside may mean the outer value."""
    for place in graph.places(mending.raw):
        for part in graph.subgraphs(place.node):
            makers = {o: i for i, n in enumerate(part.node) for o in n.output}
            early = [x for i, n in enumerate(part.node) for x in graph.reads(n) if makers.get(x, -1) >= i]
            if early:
                return f"`{early[0]}` is read inside before it is defined there"
    return ""


def _otherwise(mending: Mending, edit: Rewriting) -> str:
    """Return what is not shown of a pass where the standard's evaluator cannot run the file as it came."""
    match edit:
        case ConvertOpset():
            return _converted(mending, edit)
        case Decompose():
            return written_out.why_not(mending, edit)
        case CastOperands():
            return same_numbers.operands_not_shown(mending, edit)
        case CastAround():
            return same_numbers.around_not_shown(mending, edit)
        case CastBranches() | CastCarried():
            return same_numbers.casts_not_shown(mending)
        case RenameShadowed():
            return _renamed(mending)
        case ModerniseOldForms():  # forms of opsets 1 to 6, rewritten by the letter of the standard
            return ""
        case InlineBranch():  # the condition was worked out from constants and fixed sizes alone
            return ""
        case Retype():
            return "nothing here computes it in the type that it was written in"


def guesses(edits: Sequence[GraphPass]) -> list[MendNotShown]:
    """Return the mends that were guesses from the start."""
    return [_finding(e, e.guess) for e in edits if e.guess]


def not_shown(mending: Mending) -> list[MendNotShown]:
    """Return the mends of a file that did not run before which nothing shows to be right."""
    found = [_finding(e, why) for e in mending.edits if isinstance(e, StampOpset) and (why := stamped.why_not(mending, e))]
    others = [e for e in mending.edits if isinstance(e, Rewriting)]
    if not others:
        return found
    words = evaluated.differs(mending)
    if words is None:  # the evaluator cannot tell
        return found + [_finding(e, why) for e in others if (why := _otherwise(mending, e))]
    return found + [_finding(e, words) for e in others[-1:] if words]


def _finding(edit: GraphPass, why: str) -> MendNotShown:
    return MendNotShown(f"`{edit.name}`", why)
