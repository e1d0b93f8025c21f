"""Generation with an encoder and a decoder on onnxruntime: `Seq2SeqLM.from_pretrained("OUT/").generate(...)`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
    MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES,
)

from torchferry.errors import FeedError
from torchferry.runtime import binding
from torchferry.runtime.generation import as_ids, fed_cache, keep_cache
from torchferry.runtime.generator import OnnxGenerator

ENCODER, DECODER = "encoder_model.onnx", "decoder_model.onnx"


class Encoder:
    """The graph that reads, in the shape of a transformers encoder."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.main_input_name = session.get_inputs()[0].name

    def forward(self, *args: torch.Tensor, attention_mask: torch.Tensor | None = None, **kwargs: Any) -> BaseModelOutput:
        """Return the last hidden state; `cross` beside it is what the decoder's layers look at."""
        read = args[0] if args else kwargs[self.main_input_name]
        taken = {i.name: binding.DTYPES[i.type] for i in self.session.get_inputs()}
        feeds = {self.main_input_name: read.to(taken[self.main_input_name])}
        if "attention_mask" in taken:
            mask = torch.ones(read.shape[:2], dtype=torch.int64) if attention_mask is None else attention_mask
            feeds["attention_mask"] = mask.to(taken["attention_mask"])
        hidden, *cross = binding.run(self.session, feeds).values()
        output = BaseModelOutput(last_hidden_state=hidden)
        output.cross = cross
        return output

    __call__ = forward


class Seq2SeqLM(OnnxGenerator):
    """An encoder and a decoder in a graph each. What the encoder gives is computed once, and no step copies the cache."""

    graphs = (ENCODER, DECODER)
    families = MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES | MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES

    def get_encoder(self, *_: Any, **__: Any) -> Encoder:
        """Return the graph that reads."""
        return Encoder(self.sessions[ENCODER])

    @property
    def encoder(self) -> Encoder:
        """The graph that reads."""
        return self.get_encoder()

    @property
    def main_input_name(self) -> str:  # type: ignore[override]
        """The name of what is read: `input_ids`, `input_features`."""
        return str(self.sessions[ENCODER].get_inputs()[0].name)

    def forward(
        self,
        decoder_input_ids: torch.Tensor | None = None,
        *,
        encoder_outputs: Any = None,
        attention_mask: torch.Tensor | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        use_cache: bool | None = None,
        return_dict: bool | None = None,
        input_ids: torch.Tensor | None = None,
        input_features: torch.Tensor | None = None,
        **more: Any,
    ) -> Seq2SeqLMOutput:
        """Return the logits of the given tokens, and the cache with them in it. What is read is encoded unless it was before."""
        ids = as_ids(decoder_input_ids)
        read = input_ids if input_ids is not None else input_features
        if encoder_outputs is None and read is not None:
            encoder_outputs = self.encoder(read, attention_mask=attention_mask)
        self.refuse_unknown(more)
        past = past_key_values.self_attention_cache if past_key_values is not None else None
        self.refuse_too_long(ids.shape[1] + (past.get_seq_length() if past is not None else 0))
        inputs = self.sessions[DECODER].get_inputs()
        names = [i.name for i in inputs if ".encoder." in i.name]
        looked = dict(zip(names, _looked_at(encoder_outputs, past_key_values, ids.shape[0]), strict=True))
        feeds = {"input_ids": ids, **fed_cache([i for i in inputs if ".decoder." in i.name], past, ids.shape[0])}
        feeds |= looked
        if any(i.name == "encoder_attention_mask" for i in inputs):
            whole = torch.ones((ids.shape[0], next(iter(looked.values())).shape[2]), dtype=torch.int64)
            feeds["encoder_attention_mask"] = whole if attention_mask is None else attention_mask.long()
        present = binding.run(self.sessions[DECODER], feeds)
        logits = present.pop("logits")
        kept = _kept(past_key_values, present, looked) if use_cache is not False else None
        return Seq2SeqLMOutput(logits=logits, past_key_values=kept)


def _looked_at(encoder_outputs: Any, past: EncoderDecoderCache | None, batch: int) -> list[torch.Tensor]:
    """Return what the decoder's layers look at: from the cache, or fresh from the encoder, once for each beam."""
    if past is not None and len(past.cross_attention_cache.layers) and past.cross_attention_cache.layers[0].keys is not None:
        return [tensor for layer in past.cross_attention_cache.layers for tensor in (layer.keys, layer.values)]
    cross = getattr(encoder_outputs, "cross", None)
    if cross is None:
        raise FeedError("`encoder_outputs` must come from this model's own `get_encoder()`")
    beams = batch // cross[0].shape[0]
    return [t if beams == 1 else t.repeat_interleave(beams, dim=0) for t in cross]


def _kept(
    past: EncoderDecoderCache | None, present: Mapping[str, torch.Tensor], looked: Mapping[str, torch.Tensor]
) -> EncoderDecoderCache:
    both = past if past is not None else EncoderDecoderCache(DynamicCache(), DynamicCache())
    keep_cache(both.self_attention_cache, present)
    keep_cache(both.cross_attention_cache, looked)
    both.is_updated = dict.fromkeys(range(len(looked) // 2), True)
    return both
