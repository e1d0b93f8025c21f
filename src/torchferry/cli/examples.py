"""Example tensors made from `--input` words: plausible values, so that token ids stay inside the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torchferry.cli.words import ExampleInput

UNKNOWN_VOCABULARY = 2  # ids 0 and 1 exist wherever anything is looked up


def make(model: Any, inputs: Sequence[ExampleInput]) -> dict[str, Any]:
    """Return a tensor for each input, the same ones every time."""
    import torch

    generator = torch.Generator().manual_seed(0)
    return {wanted.name: _tensor(wanted, vocabulary(model), generator) for wanted in inputs}


def vocabulary(model: Any) -> int:
    """Return how many ids every table of the model has, or the smallest number that is safe."""
    import torch

    size = getattr(getattr(model, "config", None), "vocab_size", None)
    if isinstance(size, int):
        return size
    modules = model.modules() if isinstance(model, torch.nn.Module) else ()
    tables = [m.num_embeddings for m in modules if isinstance(m, torch.nn.Embedding | torch.nn.EmbeddingBag)]
    return min(tables, default=UNKNOWN_VOCABULARY)


def _tensor(wanted: ExampleInput, ids: int, generator: Any) -> Any:
    import torch

    dtype = getattr(torch, wanted.dtype)
    if dtype == torch.bool or "mask" in wanted.name:
        return torch.ones(wanted.shape, dtype=dtype)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(wanted.shape, generator=generator).to(dtype)
    top = min(ids, torch.iinfo(dtype).max)
    return torch.randint(0, max(1, top), wanted.shape, generator=generator).to(dtype)
