"""The finished directory of a decoder with its weights in fewer bits, and what that changes, measured beside the model."""

from __future__ import annotations

from pathlib import Path

import torch

from torchferry.files import move_into_place, workspace
from torchferry.runtime.generation import CausalLM
from torchferry.runtime.quantise import BLOCKS, COLUMNS, FAR, Cost, cost, quantise
from torchferry.tasks.prepared import Prepared

TEXTS, PROMPT, NEW = 4, 8, 24


def put_in_fewer_bits(prepared: Prepared, folder: Path, precision: str) -> Cost:
    """Replace the exact graph in a folder by one with quantised weights; return what that changes.

    Where a scale for each column moves the logits too far, a scale for each block of weights is tried, and the nearer is kept.
    """
    texts = _texts(prepared)
    path = folder / prepared.parts[-1].file_name
    with workspace(near=path) as aside:
        exact = aside / path.name
        move_into_place(path, exact)
        measured = _tried(prepared, exact, path, precision, None, texts)
        if measured.form == COLUMNS and measured.mean_difference > FAR:
            other = _tried(prepared, exact, path, precision, BLOCKS, texts)
            nearer = other.mean_difference < measured.mean_difference
            measured = other if nearer else _tried(prepared, exact, path, precision, COLUMNS, texts)
    return measured


def _tried(prepared: Prepared, exact: Path, path: Path, precision: str, form: str | None, texts: list[torch.Tensor]) -> Cost:
    with workspace(near=path) as aside:
        used = quantise(exact, aside / path.name, precision, form=form)
        move_into_place(aside / path.name, path)
    return cost(prepared.model, CausalLM.from_pretrained(path.parent), texts, precision, used)


def _texts(prepared: Prepared) -> list[torch.Tensor]:
    """Return texts to measure on: continued by the model itself, so that they are as likely as a text can be."""
    random = torch.Generator().manual_seed(0)
    vocabulary = prepared.model.config.get_text_config(decoder=True).vocab_size
    new = NEW if prepared.longest is None else min(NEW, prepared.longest - PROMPT)
    prompts = [torch.randint(0, vocabulary, (1, PROMPT), generator=random) for _ in range(TEXTS)]
    return [
        prepared.model.generate(input_ids=p, attention_mask=torch.ones_like(p), max_new_tokens=new, do_sample=False)
        for p in prompts
    ]
