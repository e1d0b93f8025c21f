"""Text generation with a decoder: one graph for the prompt and for each further token."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from torchferry import eager
from torchferry.errors import UsageError
from torchferry.tasks import cache
from torchferry.tasks.prepared import Part, Prepared

BATCH, SEQUENCE, PAST = "batch_size", "sequence_length", "past_sequence_length"
TOTAL = f"{PAST} + {SEQUENCE}"


class CausalLMGraph(torch.nn.Module):
    """The user's model as a function of tensors: ids, mask and past go in, logits and present come out.

    The model's own forward is called, so a subclass that changed it is exported as it is.
    """

    def __init__(self, model: torch.nn.Module, *, positions: bool) -> None:
        super().__init__()
        self.model = model
        self.positions = positions

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, *past_key_values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the logits of all given tokens, and the cache with them in it."""
        past = cache.rebuilt(past_key_values)
        more = {"position_ids": positions_of(attention_mask, past.get_seq_length())} if self.positions else {}
        outputs = self.model(
            input_ids=input_ids, attention_mask=attention_mask, past_key_values=past, use_cache=True, return_dict=True, **more
        )
        return (outputs.logits, *cache.flat(outputs.past_key_values))


def positions_of(attention_mask: torch.Tensor, past_length: int) -> torch.Tensor:
    """Return the positions of the tokens after the past: padding does not count, and stands at 0 as in `generate`."""
    counted = attention_mask.long().cumsum(-1) - 1
    return counted.masked_fill(attention_mask == 0, 0)[:, past_length:]


def prepare(model: Any) -> Prepared:
    """Return a decoder as one graph with its cache as inputs and outputs."""
    _refuse_unfit(model)
    graph = CausalLMGraph(model, positions="position_ids" in inspect.signature(model.forward).parameters)
    with eager.untouched(model), torch.no_grad():
        model.eval()
        example = _call(model, graph, batch=2, past=4, sequence=3)
        further = tuple(
            (_call(model, graph, batch, past, sequence), {}) for batch, past, sequence in ((3, 0, 5), (1, 6, 1), (1, 0, 1), (2, 1, 2))
        )
    layers = (len(example) - 2) // 2
    return Prepared("text-generation", (_part(graph, example, further, layers, longest(model.config)),), model)


def _part(graph: CausalLMGraph, example: tuple[Any, ...], further: tuple[Any, ...], layers: int, most: int | None) -> Part:
    return Part(
        file_name="model.onnx",
        model=graph,
        args=example,
        input_names=("input_ids", "attention_mask", *cache.names(layers, "past_key_values")),
        output_names=("logits", *cache.names(layers, "present")),
        dynamic_shapes=({0: BATCH, 1: SEQUENCE}, {0: BATCH, 1: TOTAL}, *({0: BATCH, 2: PAST} for _ in range(2 * layers))),
        ranges={BATCH: (1, None), SEQUENCE: (1, most), PAST: (0, most)},
        examples=further,
    )


def longest(config: Any) -> int | None:
    """Return how many positions a model has a table for, or None where the config names no end."""
    text = config.get_text_config(decoder=True)
    for name in ("max_position_embeddings", "n_positions", "max_target_positions", "max_seq_len", "seq_length"):
        value = getattr(text, name, None)
        if isinstance(value, int) and value > 0:
            return value
    return None


def _call(model: Any, graph: CausalLMGraph, batch: int, past: int, sequence: int) -> tuple[torch.Tensor, ...]:
    """Return the arguments of a call whose past is one that the model itself gives, the second row padded on the left."""
    random = torch.Generator().manual_seed(batch * 100 + past * 10 + sequence)
    ids = torch.randint(0, model.config.get_text_config(decoder=True).vocab_size, (batch, past + sequence), generator=random)
    mask = torch.ones_like(ids)
    if past > 2 or sequence > 2:
        mask[1:2, :2] = 0
    empty = _empty_cache(model, batch)
    kept = graph(ids[:, :past], mask[:, :past], *empty)[1:] if past else empty
    return (ids[:, past:].contiguous(), mask, *kept)


def _empty_cache(model: Any, batch: int) -> tuple[torch.Tensor, ...]:
    """Return a cache of length 0, shaped like the one that the model fills when it is given none."""
    ids = torch.zeros((2, 3), dtype=torch.long)
    outputs = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=True, return_dict=True)
    filled = getattr(outputs, "past_key_values", None)
    cache.refuse_unknown(filled, model, batch=2, length=3)
    return tuple(t.new_zeros((batch, t.shape[1], 0, t.shape[3])) for t in cache.flat(filled))


def _refuse_unfit(model: Any) -> None:
    if not hasattr(model, "config") or not hasattr(model, "generate"):
        raise UsageError(f"task text-generation takes a transformers model with `generate`, not {type(model).__name__}")
    if "past_key_values" not in inspect.signature(model.forward).parameters:
        raise UsageError(
            f"the forward of {type(model).__name__} takes no `past_key_values`, so it has no cache to put into a graph; "
            "export it without a task, as a plain model"
        )
