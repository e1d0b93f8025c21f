"""The finished directory of a decoder with its weights in fewer bits, and what that changes, measured beside the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from torchferry.files import move_model, size_on_disk, workspace
from torchferry.records.documents import Cost
from torchferry.runtime.generation import CausalLM
from torchferry.runtime.quantise import BLOCKS, cost, note, products, quantise
from torchferry.tasks.prepared import Prepared

TEXTS, PROMPT, NEW = 16, 8, 24
# of the likeliest tokens int8 is to keep 95 in a hundred; of 512 positions the share is known to one in a hundred, so one more
ENOUGH = 0.96
SPARED = 3  # products that are left exact at most
LARGE = 2 << 30  # bytes of weights: from here on, looking for these would take longer than the export


@dataclass(frozen=True, slots=True)
class Bench:
    """What every form of the weights is tried on."""

    prepared: Prepared
    exact: Path  # the graph as it was verified
    path: Path  # where the quantised one goes
    precision: str
    texts: list[torch.Tensor]

    def tried(self, block: int, spared: tuple[str, ...] = ()) -> Cost:
        """Put a form in place, and return what it changes."""
        with workspace(near=self.path) as aside:
            quantise(self.exact, aside / self.path.name, self.precision, block=block, spared=spared)
            move_model(aside / self.path.name, self.path)
        model = CausalLM.from_pretrained(self.path.parent)
        return cost(self.prepared.model, model, self.texts, self.precision, block, spared)


def put_in_fewer_bits(prepared: Prepared, folder: Path, precision: str) -> Cost:
    """Replace the exact graph in a folder by one with quantised weights; return what that changes.

    int8 is the fastest form that keeps enough of the likeliest tokens. Where none does, the products that it harms most are
    left exact, a few of them; where that is not enough either, the form that keeps most is taken.
    """
    path = folder / prepared.parts[-1].file_name
    with workspace(near=path) as aside:
        exact = aside / path.name
        move_model(path, exact)
        bench = Bench(prepared, exact, path, precision, _texts(prepared))
        last = best = bench.tried(BLOCKS[precision][0])
        for block in BLOCKS[precision][1:]:
            if best.same_token < ENOUGH:
                last = bench.tried(block)
                best = _better(last, best)
        while best.same_token < ENOUGH and precision == "int8" and len(last.spared) < SPARED and size_on_disk(exact) < LARGE:
            last = bench.tried(last.block, (*last.spared, _harmed_most(bench, last)))
            best = _better(last, best)
        best = best if best is last else bench.tried(best.block, best.spared)
        note(path, best)
        return best


def _better(one: Cost, other: Cost) -> Cost:
    return one if (one.same_token, -one.mean_difference) > (other.same_token, -other.mean_difference) else other


def _harmed_most(bench: Bench, found: Cost) -> str:
    """Return the product whose rounding moves the logits most, found by halves: of two halves, the one that is missed more."""
    left = [name for name in products(bench.exact) if name not in found.spared]
    while len(left) > 1:
        halves = left[: len(left) // 2], left[len(left) // 2 :]
        left = min(halves, key=lambda half: bench.tried(found.block, (*found.spared, *half)).mean_difference)
    return left[0]


def _texts(prepared: Prepared) -> list[torch.Tensor]:
    """Return texts to measure on: continued by the model itself, so that they are as likely as a text can be."""
    random = torch.Generator().manual_seed(0)
    vocabulary = prepared.model.config.get_text_config(decoder=True).vocab_size
    new = NEW if prepared.longest is None else min(NEW, prepared.longest - PROMPT)
    prompts = torch.randint(0, vocabulary, (TEXTS, PROMPT), generator=random)
    asked = {"attention_mask": torch.ones_like(prompts), "do_sample": False, "pad_token_id": 0}
    written = prepared.model.generate(input_ids=prompts, min_new_tokens=new, max_new_tokens=new, **asked)
    return [text[None] for text in written]
