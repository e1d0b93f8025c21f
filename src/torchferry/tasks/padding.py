"""Does a text get the same answer alone, padded on the left and padded on the right? Measured on the model and on its graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from torchferry.records import Tolerance
from torchferry.tasks import verify_generation

LENGTHS = (3, 5, 8)  # of the texts, in one batch
Answer = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # ids and mask -> logits of every token


@dataclass(frozen=True, slots=True)
class Padding:
    """How far the logits after a text move when it is padded, in the model and in the graph; and how far they may by rounding."""

    left: tuple[float, float]  # of the model, of the graph: as a multiple of what is allowed
    right: tuple[float, float]

    def words(self) -> str:
        """Return what was measured, in words."""
        moves = {side: max(far) for side, far in (("left", self.left), ("right", self.right)) if max(far) > 1}
        if not moves:
            return "padding: a text gets the same answer alone, padded on the left and padded on the right (measured)"
        where = " and ".join(moves)
        own = all(far[0] > 1 for side, far in (("left", self.left), ("right", self.right)) if side in moves)
        whose = "in the model as in the file" if own else "in the file, and not in the model"
        advice = "" if len(moves) > 1 else f"; pad on the {'right' if 'left' in moves else 'left'}"
        return f"padding: padded on the {where} a text gets another answer than alone, {whose} (measured){advice}"


def measure(model: Answer, graph: Answer, vocabulary: int, most: int | None, allowed: Tolerance) -> Padding | None:
    """Return how far padding moves the answers; None where the model has no room for texts of several lengths."""
    lengths = [n for n in LENGTHS if most is None or n <= most]
    if len(lengths) < 2:
        return None
    random = torch.Generator().manual_seed(3)
    texts = [torch.randint(0, vocabulary, (n,), generator=random) for n in lengths]
    filler = torch.randint(0, vocabulary, (len(lengths), max(lengths)), generator=random)  # whatever stands under the padding
    far = {left: [_moved(side, texts, filler, left, allowed) for side in (model, graph)] for left in (True, False)}
    return Padding((far[True][0], far[True][1]), (far[False][0], far[False][1]))


def _moved(answer: Answer, texts: list[torch.Tensor], filler: torch.Tensor, left: bool, allowed: Tolerance) -> float:
    ids, mask = filler.clone(), torch.zeros_like(filler)
    for row, text in enumerate(texts):
        part = slice(ids.shape[1] - len(text), None) if left else slice(len(text))
        ids[row, part], mask[row, part] = text, 1
    given, worst = answer(ids, mask), 0.0
    for row, text in enumerate(texts):
        alone = answer(text[None], torch.ones_like(text[None]))[0, -1]
        padded = given[row, -1 if left else len(text) - 1]
        ratio = (padded - alone).abs() / verify_generation.allowance(alone, allowed)
        worst = max(worst, float(ratio.nan_to_num(nan=torch.inf).max()))
    return worst
