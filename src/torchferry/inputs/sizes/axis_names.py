"""Names for the sizes that move: Hugging Face's where they fit, otherwise after what they are; never `s43`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from torchferry.inputs.sizes import expressions as size_text
from torchferry.inputs.sizes.probing import Axis
from torchferry.inputs.sizes.search_state import Ties
from torchferry.inputs.values.roles import InputRole


def name_roots(
    ties: Ties, names: Sequence[str], parts: Sequence[InputRole], ranks: Sequence[int], asked: dict[Axis, str]
) -> dict[str, str]:
    """Return a name for each root, each once; `asked` holds the names that the user gave to axes."""
    chosen: dict[str, str] = {}
    for root in ties.roots:
        axes = [axis for axis, size in ties.sizes.items() if size == root]
        given = next((asked[axis] for axis in axes if axis in asked), None)
        if given is not None and given not in chosen.values():
            chosen[root] = given
    chosen |= _time_first(ties, parts, ranks, chosen)
    taken = set(chosen.values()) | set(asked.values())
    for root in ties.roots:
        if root in chosen:
            continue
        axes = [axis for axis, size in ties.sizes.items() if size == root]
        around = axes or [axis for axis, size in ties.sizes.items() if root in size_text.names(size)]
        images = {i for i, rank in enumerate(ranks) if rank >= 4 and (i, 1) not in ties.sizes}
        name = next(n for n in _proposals(around, names, parts, ranks, images) if n not in taken)
        taken.add(name)
        chosen[root] = name
    return chosen


def _time_first(ties: Ties, parts: Sequence[InputRole], ranks: Sequence[int], chosen: dict[str, str]) -> dict[str, str]:
    """Return names for inputs laid out (length, batch, features): other inputs share their second size, none the first."""
    axes = {root: [axis for axis, size in ties.sizes.items() if size == root] for root in ties.roots if root not in chosen}
    for root, own in axes.items():
        if len(own) != 1 or own[0][1] != 0 or ranks[own[0][0]] != 3 or parts[own[0][0]].role != "float":
            continue
        beside = next(
            (r for r, where in axes.items() if (own[0][0], 1) in where and len(where) > 1 and all(a == 1 for _, a in where)), None
        )
        if beside is not None and not {"batch_size", "sequence_length"} & set(chosen.values()):
            return {root: "sequence_length", beside: "batch_size"}
    return {}


def _proposals(
    axes: list[Axis], names: Sequence[str], parts: Sequence[InputRole], ranks: Sequence[int], images: set[int]
) -> list[str]:
    """Return names that would fit, best first."""
    first = axes[0]
    own = [_after_use(names[i], parts[i], ranks[i], a, i in images) for i, a in axes]
    word = re.sub(r"\W+", "_", names[first[0]]).strip("_") or "input"
    spoken = [n for n in own if n]
    ordered = sorted(set(spoken), key=lambda n: (-spoken.count(n), spoken.index(n)))
    if any(a == 0 for _, a in axes):
        ordered = ["batch_size", *[n for n in ordered if n != "batch_size"]]
    prefixed = [f"{word}_{n}" for n in ordered]
    return [*ordered, *prefixed, f"{word}_axis_{first[1]}", *(f"{word}_axis_{first[1]}_{k}" for k in range(2, 99))]


def _after_use(name: str, part: InputRole, rank: int, axis: int, image: bool) -> str:
    """Return what an axis of an input is usually called."""
    last = name.rsplit(".", 1)[-1].lower()
    if axis == 0 and rank >= 1 and part.role != "number":
        return "batch_size"
    if part.role == "cache" and axis == rank - 2:
        return "encoder_sequence_length" if ".encoder." in name else "past_sequence_length"
    if part.role in ("ids", "types", "mask", "positions") and axis == rank - 1:
        if last.startswith("decoder_"):
            return "decoder_sequence_length"
        return "sequence_length"
    if image and part.role == "float" and rank in (4, 5):
        return (
            ("", "num_channels", "height", "width")[axis] if rank == 4 else ("", "num_channels", "depth", "height", "width")[axis]
        )
    if rank == 3 and part.role == "float":
        return ("", "sequence_length", "features")[axis]
    if rank == 2 and axis == 1:
        return "length" if part.role == "float" else "sequence_length"
    return ""
