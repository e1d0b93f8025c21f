"""Does a text get the same answer alone, padded on the left and padded on the right? Measured on the model and on its graph."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torchferry.generate.texts import allowance
from torchferry.records import Padding, Tolerance

LENGTHS = (3, 5, 8)  # of the texts, in one batch
Answer = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # ids and mask -> logits of every token


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
        ratio = (padded - alone).abs() / allowance(alone, allowed)
        worst = max(worst, float(ratio.nan_to_num(nan=torch.inf).max()))
    return worst
