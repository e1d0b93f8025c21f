"""Writing token after token: transformers' loop of greedy search and sampling, the cache kept as onnxruntime's own values.

`GenerationMixin._sample` makes a cache object, position ids and a dictionary of arguments for every token, which takes longer
than a small model does. This loop asks the same logits processors and stopping criteria, in the same order, and draws from
the same random numbers; what it cannot do, it leaves to transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from transformers import GenerationConfig
from transformers.generation import GenerateDecoderOnlyOutput

from torchferry.foreign.transformers_generation import pad_token
from torchferry.runtime import binding

# what `generate` prepares for a decoder
KNOWN = {"attention_mask", "use_cache", "past_key_values", "position_ids", "logits_to_keep"}


class Stepper:
    """A text that grows. Each call reads some tokens and gives the logits after the last; what came before is remembered."""

    def __init__(self, session: Any, batch: int, fits: Callable[[int], None]) -> None:
        self.session = session
        self.fits = fits  # raises where a text is too long
        self.inputs = binding.inputs(session)
        self.outputs = [o.name for o in session.get_outputs()]
        self.takes_positions = "position_ids" in self.inputs
        self.remembered = [name for name in self.inputs if name.startswith("past_key_values.")]
        self.past: Sequence[Any] = ()  # OrtValues, or nothing yet
        self.batch = batch

    def __call__(self, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the logits of the last of the given tokens; the mask is that of the whole text."""
        self.fits(mask.shape[1])
        given = {"input_ids": ids, "attention_mask": mask, "logits_to_keep": torch.ones(1, dtype=torch.int64)}
        if self.takes_positions:
            given["position_ids"] = counted(mask, ids.shape[1])
        feeds = {n: t.to(binding.DTYPES[self.inputs[n].type]) for n, t in given.items() if n in self.inputs}
        if not self.past:
            feeds |= binding.empty_cache((self.inputs[n] for n in self.remembered), self.batch)
        logits, *self.past = binding.run_values(self.session, feeds, zip(self.remembered, self.past, strict=False), self.outputs)
        return binding.as_tensor(logits)[:, -1]

    def present(self) -> list[torch.Tensor]:
        """Return what is remembered, as tensors over onnxruntime's memory."""
        return [binding.as_tensor(value) for value in self.past]


def fits(config: GenerationConfig, prepared: Mapping[str, Any], mask: torch.Tensor, takes_positions: bool) -> bool:
    """Whether this loop does all that is asked for: a text from its beginning, with a cache, and no inner values wanted."""
    begun, positions = prepared.get("past_key_values"), prepared.get("position_ids")
    if config.output_attentions or config.output_hidden_states or config.is_assistant or config.prefill_chunk_size is not None:
        return False
    if not prepared.get("use_cache") or (begun is not None and begun.get_seq_length()):
        return False
    if any(value is not None for name, value in prepared.items() if name not in KNOWN):
        return False
    return not takes_positions or positions is None or bool((positions == counted(mask, mask.shape[1])).all())


def counted(mask: torch.Tensor, last: int) -> torch.Tensor:
    """Return the positions of the last tokens: padding does not count."""
    return (mask.long().cumsum(-1) - 1).clamp(min=0)[:, -last:]


def write(
    step: Stepper,
    ids: torch.Tensor,
    mask: torch.Tensor,
    *,
    processors: Any,
    criteria: Any,
    config: GenerationConfig,
    streamer: Any = None,
) -> GenerateDecoderOnlyOutput:
    """Return the text continued until every row has come to its end; scores and logits if the config wants them."""
    ends = any(hasattr(criterion, "eos_token_id") for criterion in criteria)
    going = torch.ones(ids.shape[0], dtype=torch.long)
    wants_scores, wants_logits = (config.return_dict_in_generate and w for w in (config.output_scores, config.output_logits))
    scores: list[torch.Tensor] = []
    raw: list[torch.Tensor] = []
    new = ids
    while going.any():
        logits = step(new, mask).float()  # onnxruntime's own memory, which no later step reads or writes
        judged = processors(ids, logits)
        if wants_scores:
            scores.append(judged)
        if wants_logits:
            raw.append(logits)
        chosen = _chosen(judged, config)
        if ends:
            chosen = chosen * going + pad_token(config) * (1 - going)
        new = chosen[:, None]
        ids = torch.cat([ids, new], dim=-1)
        mask = torch.cat([mask, mask.new_ones((mask.shape[0], 1))], dim=-1)
        going = going & ~criteria(ids, tuple(scores) if wants_scores else None)
        if streamer is not None:
            streamer.put(chosen)
    if streamer is not None:
        streamer.end()
    return GenerateDecoderOnlyOutput(
        sequences=ids, scores=tuple(scores) if wants_scores else None, logits=tuple(raw) if wants_logits else None
    )


def _chosen(scores: torch.Tensor, config: GenerationConfig) -> torch.Tensor:
    if config.do_sample:
        return torch.multinomial(torch.nn.functional.softmax(scores, dim=-1), num_samples=1).squeeze(1)
    return torch.from_numpy(scores.numpy().argmax(-1))  # the first of equals, as torch's own, in a fraction of its time
