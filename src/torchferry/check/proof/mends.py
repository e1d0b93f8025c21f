"""Which proof a graph pass needs, and what is said where there is none.

Where the file as it came runs, that alone is asked: `unchanged.py` compares the two. What is left are files that no runtime
opened before. Passes whose proof is part of their plan (sizes, places of weights) carry the words `guess` where they have none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torchferry.check import graph
from torchferry.check.proof import evaluated, same_numbers, stamped, written_out
from torchferry.check.proof.mending import Mending
from torchferry.records import Edit
from torchferry.records.findings import MendNotShown

Proof = Callable[[Mending, Edit], str]
TOUCH_NOTHING = ("set-ir", "drop-imports", "unique-node-names", "drop-repeated-nodes", "declare-types")  # that computes


def _converted(mending: Mending, edit: Edit) -> str:
    """Where onnx's converter left every node as it was, only the stamp changed."""
    before, after = ([n.SerializeToString() for n in m.graph.node] for m in (graph.flat(mending.raw), mending.model))
    return (
        stamped.why_not(mending, edit)
        if before == after
        else "onnx's converter rewrote nodes, and nothing here runs the old ones"
    )


def _renamed(mending: Mending, edit: Edit) -> str:
    """A name that is read before it is defined inside may mean the outer value."""
    for place in graph.places(mending.raw):
        for part in graph.subgraphs(place.node):
            makers = {o: i for i, n in enumerate(part.node) for o in n.output}
            early = [x for i, n in enumerate(part.node) for x in graph.reads(n) if makers.get(x, -1) >= i]
            if early:
                return f"`{early[0]}` is read inside before it is defined there"
    return ""


# What to do where the standard's evaluator cannot run the file as it came.
OTHERWISE: dict[str, Proof] = {
    "convert-opset": _converted,
    "decompose": written_out.why_not,
    "cast-operands": same_numbers.operands_not_shown,
    "cast-around": same_numbers.around_not_shown,
    "cast-branches": lambda mending, edit: same_numbers.casts_not_shown(mending),
    "cast-carried": lambda mending, edit: same_numbers.casts_not_shown(mending),
    "rename-shadowed": _renamed,
    "modernise-old-forms": lambda mending, edit: "",  # forms of opsets 1 to 6, rewritten by the letter of the standard
    "inline-branch": lambda mending, edit: "",  # the condition was worked out from constants and fixed sizes alone
    "retype": lambda mending, edit: "nothing here computes it in the type that it was written in",
}


def guesses(edits: Sequence[Edit]) -> list[MendNotShown]:
    """Return the mends that were guesses from the start."""
    return [_finding(e, str(e.params["guess"])) for e in edits if e.params.get("guess")]


def not_shown(mending: Mending) -> list[MendNotShown]:
    """Return the mends of a file that did not run before which nothing shows to be right."""
    found = [_finding(e, why) for e in mending.edits if e.name == "stamp-opset" and (why := stamped.why_not(mending, e))]
    others = [e for e in mending.edits if e.name in OTHERWISE]
    if not others:
        return found
    words = evaluated.differs(mending)
    if words is None:  # the evaluator cannot tell
        return found + [_finding(e, why) for e in others if (why := OTHERWISE[e.name](mending, e))]
    return found + [_finding(e, words) for e in others[-1:] if words]


def _finding(edit: Edit, why: str) -> MendNotShown:
    return MendNotShown(f"`{edit.name}`", why)
