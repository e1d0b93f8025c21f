"""Text generation on onnxruntime: `CausalLM.from_pretrained("OUT/").generate(...)`, by transformers' own `generate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from transformers import GenerationConfig
from transformers.cache_utils import Cache, DynamicCache
from transformers.modeling_outputs import CausalLMOutputWithPast
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from torchferry.errors import FeedError
from torchferry.runtime import binding, stepping
from torchferry.runtime.cache_layers import held, layer_of
from torchferry.runtime.generator import OnnxGenerator


class CausalLM(OnnxGenerator):
    """A decoder in one graph. The cache is onnxruntime's own memory, seen as torch tensors: no step copies it."""

    graphs = ("model.onnx",)
    families = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

    @property
    def session(self) -> Any:
        """The onnxruntime session of the graph."""
        return self.sessions["model.onnx"]

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        *,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Cache | None = None,
        position_ids: torch.Tensor | None = None,
        use_cache: bool | None = None,
        logits_to_keep: int = 0,
        return_dict: bool | None = None,
        token_type_ids: torch.Tensor | None = None,
        **more: Any,
    ) -> CausalLMOutputWithPast:
        """Return the logits of the given tokens (of the last `logits_to_keep`, unless 0), and the cache with all in it.

        Positions are counted by the mask inside the graph unless the file takes `position_ids`.
        """
        self.refuse_unknown({"token_type_ids": token_type_ids, **more})
        ids = as_ids(input_ids)
        past = past_key_values.get_seq_length() if past_key_values is not None else 0
        total = past + ids.shape[1]
        self.refuse_too_long(total)
        mask = full_mask(attention_mask, ids.shape[0], total)
        given = {
            "input_ids": ids,
            "attention_mask": mask,
            "position_ids": _positions(position_ids, mask, ids.shape[1]),
            "logits_to_keep": torch.tensor([logits_to_keep]),
        }
        taken = binding.inputs(self.session)
        feeds = {name: tensor.to(binding.DTYPES[taken[name].type]) for name, tensor in given.items() if name in taken}
        outputs = binding.run(self.session, feeds | fed_cache(taken.values(), past_key_values, ids.shape[0]))
        logits = outputs.pop("logits")[:, -logits_to_keep:]  # a file that optimum wrote gives all
        kept = keep_cache(past_key_values, outputs) if use_cache is not False else None
        return CausalLMOutputWithPast(logits=logits, past_key_values=kept)

    def continued(
        self,
        plain: Callable[..., Any],
        input_ids: torch.Tensor,
        logits_processor: Any,
        stopping_criteria: Any,
        generation_config: GenerationConfig,
        synced_gpus: bool = False,
        streamer: Any = None,
        **prepared: Any,
    ) -> Any:
        """Return the text continued, by a loop that keeps the cache in onnxruntime where it can do all that is asked for."""
        ids = as_ids(input_ids)
        step = stepping.Stepper(self.session, ids.shape[0], self.refuse_too_long)
        begun = prepared.get("past_key_values")
        mask = full_mask(prepared.get("attention_mask"), *ids.shape) if begun is None or not begun.get_seq_length() else None
        if mask is None or synced_gpus or not stepping.fits(generation_config, prepared, mask, step.takes_positions):
            return plain(input_ids, logits_processor, stopping_criteria, generation_config, synced_gpus, streamer, **prepared)
        written = stepping.write(
            step,
            ids,
            mask,
            processors=logits_processor,
            criteria=stopping_criteria,
            config=generation_config,
            streamer=streamer,
        )
        if not generation_config.return_dict_in_generate:
            return written.sequences
        written.past_key_values = keep_cache(begun, dict(zip(step.outputs[1:], step.present(), strict=True)))
        return written


def as_ids(input_ids: torch.Tensor | None) -> torch.Tensor:
    """Return token ids as the graph takes them: int64, two axes, at least one token."""
    if input_ids is None:
        raise FeedError("this model takes `input_ids`; embeddings cannot be fed to its graph")
    if input_ids.dim() != 2:
        raise FeedError(f"`input_ids` has {input_ids.dim()} axes; it must be (batch, length)")
    if input_ids.shape[1] == 0:
        raise FeedError("the prompt is empty: there is no token to continue from; begin with the BOS or EOS token")
    if input_ids.is_floating_point():
        raise FeedError(f"`input_ids` is {input_ids.dtype}; token ids are whole numbers")
    return input_ids.long()


def full_mask(attention_mask: torch.Tensor | None, batch: int, total: int) -> torch.Tensor:
    """Return a mask over past and present; all ones where none was given."""
    if attention_mask is None:
        return torch.ones((batch, total), dtype=torch.int64)
    if attention_mask.shape != (batch, total):
        raise FeedError(
            f"`attention_mask` is {tuple(attention_mask.shape)}; with the past it must be ({batch}, {total}): "
            "it covers the tokens in the cache as well as the new ones"
        )
    return attention_mask.long()


def _positions(position_ids: torch.Tensor | None, mask: torch.Tensor, length: int) -> torch.Tensor:
    if position_ids is not None:
        return position_ids[:, -length:].expand(mask.shape[0], -1)
    return stepping.counted(mask, length)


def fed_cache(inputs: Any, past: Cache | None, batch: int) -> dict[str, torch.Tensor]:
    """Return the cache under the names of the graph's inputs; tensors of length 0 where there is none yet."""
    wanted = [i for i in inputs if i.name.startswith("past_key_values.")]
    if past is None or past.get_seq_length() == 0:
        return binding.empty_cache(wanted, batch)
    kept = [tensor for layer in past.layers for tensor in held(layer).values()]
    if len(kept) != len(wanted):
        raise FeedError(f"the cache holds {len(kept)} tensors and the graph takes {len(wanted)}: it is another model's")
    return {i.name: tensor for i, tensor in zip(wanted, kept, strict=True)}


def keep_cache(past: Cache | None, present: Mapping[str, torch.Tensor]) -> Cache:
    """Return the caller's cache with what the graph gave in it, or a new one; the tensors are not copied.

    present: by name, `present.{layer}...{what}`.
    """
    layers: dict[int, dict[str, torch.Tensor]] = {}
    for name, tensor in present.items():
        _, number, *_, what = name.split(".")
        layers.setdefault(int(number), {})[what] = tensor
    cache = past if past is not None else DynamicCache()
    cache.layers = [layer_of(layers.get(index, {})) for index in range(1 + max(layers))]
    return cache
