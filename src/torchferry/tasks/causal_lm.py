"""Text generation with a decoder: one graph for the prompt and for each further token."""

from __future__ import annotations

import inspect
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch

from torchferry import eager
from torchferry.errors import UsageError
from torchferry.records import Call, Job, Padding, Tolerance, Trial
from torchferry.tasks import cache
from torchferry.tasks.in_words import refused_in_words
from torchferry.tasks.longest import longest
from torchferry.tasks.prepared import Prepared

BATCH, SEQUENCE, PAST = "batch_size", "sequence_length", "past_sequence_length"
TOTAL = f"{PAST} + {SEQUENCE}"


class CausalLMGraph(torch.nn.Module):
    """The user's model as a function of tensors: ids, mask and past go in, logits and present come out.

    The model's own forward is called, so a subclass that changed it is exported as it is.
    slots: what the model remembers, in the order of the tensors that go in and come out.
    positions: None where the model takes no positions, "input" where the graph takes them too, "inside" where it counts them
    by the mask.
    """

    def __init__(
        self, model: torch.nn.Module, slots: tuple[cache.CacheSlot, ...], *, positions: Literal["input", "inside"] | None
    ) -> None:
        super().__init__()
        self.model = model
        self.slots = slots
        self.positions = positions

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, *rest: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the logits of all given tokens, and the cache with them in it."""
        past = cache.rebuilt(self.slots, rest[1:] if self.positions == "input" else rest)
        more = {}
        if self.positions is not None:
            counted = rest[0] if self.positions == "input" else positions_of(attention_mask, past.get_seq_length())
            more = {"position_ids": counted.view(input_ids.shape)}  # one for each token: the graph need not find that out
        outputs = self.model(
            input_ids=input_ids, attention_mask=attention_mask, past_key_values=past, use_cache=True, return_dict=True, **more
        )
        return (outputs.logits, *cache.flat(outputs.past_key_values))


def positions_of(attention_mask: torch.Tensor, past_length: int) -> torch.Tensor:
    """Return the positions of the tokens after the past: padding does not count, and stands at 0 as in `generate`."""
    counted = attention_mask.long().cumsum(-1) - 1
    return counted.masked_fill(attention_mask == 0, 0)[:, past_length:]


def prepare(model: Any, *, position_ids: bool = False) -> Prepared:
    """Return a decoder as one graph with its cache as inputs and outputs.

    position_ids: whether the graph takes them as an input; else it counts them by the mask, so that padding on the left is right.
    """
    _refuse_unfit(model)
    takes = "position_ids" in inspect.signature(model.forward).parameters  # `generate` decides by the same
    with eager.untouched_by_runs(model), torch.no_grad():
        model.eval()
        filled = _filled(model)
        positions: Literal["input", "inside"] = "input" if position_ids else "inside"
        graph = CausalLMGraph(model, cache.slots(filled), positions=positions if takes else None)
        empty = _empty(filled)
        ask = partial(_call, graph, empty)
        with refused_in_words(model, "with the tensors of its cache, put into a cache anew"):
            example = ask(batch=2, past=4, sequence=3)
            further: tuple[Call, ...] = tuple(
                (ask(batch, past, sequence), {}) for batch, past, sequence in ((3, 0, 5), (1, 6, 1), (1, 0, 1), (2, 1, 2))
            )
        grows = (t for slot, t in zip(graph.slots, empty, strict=True) if slot.grows)
        most = longest(model.config.get_text_config(decoder=True), grows, partial(_after, graph, empty))
    part, pads = _part(graph, example, further), partial(_pads, graph, empty, most)
    return Prepared("text-generation", (part,), model, most, partial(_write, model, most), pads, partial(_given, graph, empty))


def _part(graph: CausalLMGraph, example: tuple[Any, ...], further: tuple[Call, ...]) -> Job:
    fed = ("position_ids",) if graph.positions == "input" else ()
    new = {0: BATCH, 1: SEQUENCE}
    return Job(
        file_name="model.onnx",
        model=graph,
        args=example,
        input_names=("input_ids", "attention_mask", *fed, *(slot.name("past_key_values") for slot in graph.slots)),
        output_names=("logits", *(slot.name("present") for slot in graph.slots)),
        dynamic_shapes=(
            new,
            {0: BATCH, 1: TOTAL},
            *(new for _ in fed),
            *({0: BATCH, 2: PAST} if slot.grows else {0: BATCH} for slot in graph.slots),
        ),
        ranges={PAST: (0, None)},  # the others begin at 1, as sizes do
        examples=further,
    )


def _after(graph: CausalLMGraph, empty: tuple[torch.Tensor, ...], past: int) -> None:
    """Ask for one more token after a past of zeros."""
    mask = torch.ones((1, past + 1), dtype=torch.long)
    held = zip(graph.slots, empty, strict=True)
    kept = (t.new_zeros((1, t.shape[1], past, t.shape[3])) if slot.grows else t for slot, t in held)
    graph(torch.zeros((1, 1), dtype=torch.long), mask, *_fed(graph, mask, past), *kept)


def _write(model: Any, most: int | None, directory: Path, tolerance: Tolerance) -> tuple[Trial, ...]:
    """Return the trials of texts written by the directory and by the model."""
    from torchferry.generate.texts import text_writings, verify_generation
    from torchferry.runtime.generation import CausalLM

    text = model.config.get_text_config(decoder=True)
    window = getattr(text, "sliding_window", None) or getattr(text, "window_size", None) or 0
    new = max(16, window + 4 if window <= 32 else 0)  # past a small window; a large one would take minutes
    return verify_generation(
        model, CausalLM.from_pretrained(directory), list(text_writings(text.vocab_size, new, most)), tolerance
    )


def _pads(
    graph: CausalLMGraph, empty: tuple[torch.Tensor, ...], most: int | None, directory: Path, allowed: Tolerance
) -> Padding | None:
    """Return how padding moves the answers of the model and of the directory."""
    from torchferry.generate.padding import measure
    from torchferry.runtime.generation import CausalLM

    runtime = CausalLM.from_pretrained(directory)

    def eagerly(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return torch.as_tensor(graph(ids, mask, *_fed(graph, mask, 0), *_rows(empty, ids.shape[0]))[0])

    def exported(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(runtime(input_ids=ids, attention_mask=mask).logits)

    with eager.untouched_by_runs(graph.model):
        graph.model.eval()
        vocabulary = graph.model.config.get_text_config(decoder=True).vocab_size
        return measure(eagerly, exported, vocabulary, most, allowed)


def _given(graph: CausalLMGraph, empty: tuple[torch.Tensor, ...], args: Any, kwargs: Any) -> Call:
    """Return a call of the user's model as one of the graph: an empty cache where it has none, positions as `generate` counts."""
    args = args if isinstance(args, tuple) else (args,)
    try:
        bound = inspect.signature(graph.model.forward).bind(*args, **kwargs).arguments
    except TypeError as error:
        raise UsageError(f"the example is no call of {type(graph.model).__name__}: {error}") from error
    ids, past = bound.get("input_ids"), bound.get("past_key_values")
    if not isinstance(ids, torch.Tensor):
        raise UsageError("an example for a graph with a cache has `input_ids`, and may have `attention_mask` and a past")
    before = past.get_seq_length() if past is not None else 0
    mask = bound.get("attention_mask")
    mask = torch.ones((ids.shape[0], before + ids.shape[1]), dtype=torch.long) if mask is None else mask
    kept = cache.flat(past) if before else _rows(empty, ids.shape[0])
    return (ids, mask, *_fed(graph, mask, before), *kept), {}


def _rows(empty: tuple[torch.Tensor, ...], batch: int) -> tuple[torch.Tensor, ...]:
    return tuple(t.expand(batch, *t.shape[1:]).clone() for t in empty)


def _call(
    graph: CausalLMGraph, empty: tuple[torch.Tensor, ...], batch: int, past: int, sequence: int
) -> tuple[torch.Tensor, ...]:
    """Return the arguments of a call whose past is one that the model itself gives, the second row padded on the left."""
    random = torch.Generator().manual_seed(batch * 100 + past * 10 + sequence)
    vocabulary = graph.model.config.get_text_config(decoder=True).vocab_size
    ids = torch.randint(0, vocabulary, (batch, past + sequence), generator=random)
    mask = torch.ones_like(ids)
    if past > 2 or sequence > 2:
        mask[1:2, :2] = 0
    none = _rows(empty, batch)
    kept = graph(ids[:, :past], mask[:, :past], *_fed(graph, mask[:, :past], 0), *none)[1:] if past else none
    return (ids[:, past:].contiguous(), mask, *_fed(graph, mask, past), *kept)


def _fed(graph: CausalLMGraph, mask: torch.Tensor, past: int) -> tuple[torch.Tensor, ...]:
    return (positions_of(mask, past),) if graph.positions == "input" else ()


def _filled(model: Any) -> Any:
    """Return the cache that the model makes when it is given none, with three tokens of two texts in it."""
    ids = torch.zeros((2, 3), dtype=torch.long)
    with refused_in_words(model, "as `generate` calls it, with input_ids, attention_mask and use_cache=True"):
        outputs = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=True, return_dict=True)
    filled = getattr(outputs, "past_key_values", None)
    cache.refuse_unknown(filled, model, batch=2, length=3)
    return filled


def _empty(filled: Any) -> tuple[torch.Tensor, ...]:
    """Return the cache of one text before its first token: keys and values of length 0, states of zeros."""
    held = zip(cache.slots(filled), cache.flat(filled), strict=True)
    return tuple(t.new_zeros((1, t.shape[1], 0, t.shape[3]) if slot.grows else (1, *t.shape[1:])) for slot, t in held)


def _refuse_unfit(model: Any) -> None:
    if not hasattr(model, "config") or not hasattr(model, "generate"):
        raise UsageError(f"task text-generation takes a transformers model with `generate`, not {type(model).__name__}")
    taken = inspect.signature(model.forward).parameters.values()
    if not any(p.name == "past_key_values" or p.kind is p.VAR_KEYWORD for p in taken):
        raise UsageError(
            f"the forward of {type(model).__name__} takes no `past_key_values`, so there is no cache for a graph; {cache.PLAIN}"
        )
