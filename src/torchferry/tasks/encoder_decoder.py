"""Generation with an encoder and a decoder: one graph that reads, and one that writes the first token and every further one.

The encoder's graph also gives the keys and values that the decoder looks at in every step (`present.{i}.encoder.key`), so
they are computed once and the decoder's graph needs no branch for the first step.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer, EncoderDecoderCache

from torchferry import eager
from torchferry.errors import UsageError
from torchferry.records import Job, Tolerance, Trial
from torchferry.tasks import cache
from torchferry.tasks.in_words import refused_in_words
from torchferry.tasks.longest import longest
from torchferry.tasks.prepared import Prepared

BATCH, READ, SEQUENCE, PAST = "batch_size", "encoder_sequence_length", "sequence_length", "past_sequence_length"
ENCODER, DECODER = "encoder_model.onnx", "decoder_model.onnx"


class EncoderGraph(torch.nn.Module):
    """What is read -> the encoder's last hidden state, and what each layer of the decoder will look at."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def encoded(self, read: torch.Tensor, attention_mask: torch.Tensor | None = None) -> Any:
        """Return what the encoder gives, in the class that the model's decoder takes it in."""
        mask = {} if attention_mask is None else {"attention_mask": attention_mask}
        return self.model.get_encoder()(read, return_dict=True, **mask)

    def forward(self, read: torch.Tensor, attention_mask: torch.Tensor | None = None) -> tuple[torch.Tensor, ...]:
        """Return the last hidden state, then key and value of the cross-attention of each layer."""
        given = self.encoded(read, attention_mask)
        # one token goes through the decoder only so that its layers project the hidden state; the rest of it is not asked
        # for, and falls away from the graph
        both = EncoderDecoderCache(_filled_once(), _filled_once())
        ids = torch.zeros((read.shape[0], 1), dtype=torch.long)
        self.model(
            encoder_outputs=given,
            decoder_input_ids=ids,
            past_key_values=both,
            use_cache=True,
            return_dict=True,
            **({} if attention_mask is None else {"attention_mask": attention_mask}),
        )
        return (given.last_hidden_state, *cache.flat(both.cross_attention_cache))


class DecoderGraph(torch.nn.Module):
    """The last tokens, the past and what the encoder gave -> logits and the past with these tokens in it."""

    def __init__(self, model: Any, *, masked: bool, encoded: Any) -> None:
        super().__init__()
        self.model = model
        self.masked = masked
        self.encoded: type = type(encoded)
        self.width: int = encoded.last_hidden_state.shape[-1]

    def forward(self, input_ids: torch.Tensor, *rest: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the logits, then key and value of the self-attention of each layer."""
        tensors = rest[1:] if self.masked else rest
        written, read = tensors[: len(tensors) // 2], tensors[len(tensors) // 2 :]
        layers = cache.keys_and_values(len(read) // 2)
        both = EncoderDecoderCache(cache.rebuilt(layers, written), DynamicCache())
        both.cross_attention_cache = cache.rebuilt(layers, read)
        both.is_updated = dict.fromkeys(range(len(read) // 2), True)
        # only the sizes of the hidden state matter now: all that is read from it is in the cache
        hidden = read[0].new_zeros((read[0].shape[0], read[0].shape[2], self.width))
        outputs = self.model(
            encoder_outputs=self.encoded(last_hidden_state=hidden),
            decoder_input_ids=input_ids,
            past_key_values=both,
            use_cache=True,
            return_dict=True,
            **({"attention_mask": rest[0]} if self.masked else {}),
        )
        return (outputs.logits, *cache.flat(both.self_attention_cache))


class _FilledOnce(DynamicLayer):
    """A cache layer that takes what it is given without joining it to an empty tensor, which a graph would keep."""

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.keys, self.values, self.is_initialized = key_states, value_states, True
        return key_states, value_states


def _filled_once() -> DynamicCache:
    made = DynamicCache()
    made.layer_class_to_replicate = _FilledOnce
    return made


def prepare(model: Any, task: str) -> Prepared:
    """Return an encoder-decoder as the graph that reads and the graph that writes."""
    parameters = inspect.signature(model.forward).parameters
    if not {"encoder_outputs", "decoder_input_ids", "past_key_values"} <= set(parameters):
        raise UsageError(
            f"the forward of {type(model).__name__} does not take encoder_outputs, decoder_input_ids and past_key_values"
        )
    masked = model.main_input_name == "input_ids"
    with eager.untouched_by_runs(model), torch.no_grad():
        model.eval()
        encoder = EncoderGraph(model)
        size = None if masked else _size(model)
        reads = [_read(model, batch, length, size) for batch, length in ((2, 7), (1, 3), (3, 1))]
        with refused_in_words(model, "as `generate` calls it, its encoder first and then its decoder with a cache"):
            decoder = DecoderGraph(model, masked=masked, encoded=encoder.encoded(*reads[0]))
            calls = [
                _write_call(encoder, decoder, read, past=past, sequence=sequence)
                for read, past, sequence in ((reads[0], 4, 3), (reads[0], 0, 2), (reads[1], 5, 1), (reads[2], 0, 1))
            ]
        most = longest(model.config.get_text_config(decoder=True), _past(decoder, calls[0]), partial(_after, decoder, calls[0]))
    layers = (len(calls[0]) - 1 - masked) // 4
    parts = (_encoder_part(model, encoder, reads, layers, masked), _decoder_part(decoder, calls, layers, masked))
    return Prepared(task, parts, model, most, partial(_write, model, reads[:2]))


def _encoder_part(model: Any, graph: EncoderGraph, reads: list[tuple[torch.Tensor, ...]], layers: int, masked: bool) -> Job:
    moving = {0: BATCH, 1: READ} if masked else {0: BATCH}
    return Job(
        file_name=ENCODER,
        model=graph,
        args=reads[0],
        input_names=(model.main_input_name, *(("attention_mask",) if masked else ())),
        output_names=("last_hidden_state", *_names(layers, "present", "encoder.")),
        dynamic_shapes=tuple(moving for _ in reads[0]),
        examples=tuple((r, {}) for r in reads[1:]),
    )


def _decoder_part(graph: DecoderGraph, calls: list[tuple[torch.Tensor, ...]], layers: int, masked: bool) -> Job:
    grown = {0: BATCH, 2: PAST}
    looked = {0: BATCH, 2: READ} if masked else {0: BATCH}
    return Job(
        file_name=DECODER,
        model=graph,
        args=calls[0],
        input_names=(
            "input_ids",
            *(("encoder_attention_mask",) if masked else ()),
            *_names(layers, "past_key_values", "decoder."),
            *_names(layers, "past_key_values", "encoder."),
        ),
        output_names=("logits", *_names(layers, "present", "decoder.")),
        dynamic_shapes=(
            {0: BATCH, 1: SEQUENCE},
            *(({0: BATCH, 1: READ},) if masked else ()),
            *(grown for _ in range(2 * layers)),
            *(looked for _ in range(2 * layers)),
        ),
        ranges={PAST: (0, None)},
        examples=tuple((c, {}) for c in calls[1:]),
    )


def _names(layers: int, prefix: str, middle: str) -> Iterator[str]:
    return (slot.name(prefix, middle) for slot in cache.keys_and_values(layers))


def _read(model: Any, batch: int, length: int, size: tuple[int, ...] | None) -> tuple[torch.Tensor, ...]:
    """Return something to read: ids with a mask, or features of the one size that the encoder is to take."""
    random = torch.Generator().manual_seed(batch * 10 + length)
    if size is not None:
        return (torch.randn((batch, *size), generator=random, dtype=model.dtype),)
    ids = torch.randint(0, model.config.get_text_config().vocab_size, (batch, length), generator=random)
    mask = torch.ones_like(ids)
    mask[1:2, 4:] = 0
    return ids, mask


def _size(model: Any) -> tuple[int, ...]:
    """Return the size of one speech, as the config speaks of it."""
    config = model.config
    if not hasattr(config, "num_mel_bins") or not hasattr(config, "max_source_positions"):
        raise UsageError(f"what {type(model).__name__} reads (`{model.main_input_name}`) cannot be made up from its config")
    return (config.num_mel_bins, 2 * config.max_source_positions)


def _write_call(
    encoder: EncoderGraph, decoder: DecoderGraph, read: tuple[torch.Tensor, ...], *, past: int, sequence: int
) -> tuple[torch.Tensor, ...]:
    """Return the arguments of a step whose past is one that the model itself gives."""
    model = decoder.model
    random = torch.Generator().manual_seed(past * 10 + sequence)
    batch = read[0].shape[0]
    ids = torch.randint(0, model.config.get_text_config(decoder=True).vocab_size, (batch, past + sequence), generator=random)
    mask = read[1:2] if decoder.masked else ()
    encoded, looked = encoder.encoded(*read), encoder(*read)[1:]
    both = EncoderDecoderCache(DynamicCache(), DynamicCache())
    model(encoder_outputs=encoded, decoder_input_ids=ids[:, :1], past_key_values=both, use_cache=True, return_dict=True)
    own = both.self_attention_cache
    cache.refuse_unknown(own, model, batch, 1)
    empty = tuple(t.new_zeros((batch, t.shape[1], 0, t.shape[3])) for t in cache.flat(own))
    kept = decoder(ids[:, :past], *mask, *empty, *looked)[1:] if past else empty
    return (ids[:, past:].contiguous(), *mask, *kept, *looked)


def _past(decoder: DecoderGraph, call: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    """Return the tensors of a call that are as long as the past: the first half of the cache, the other is what was read."""
    cached = call[1 + decoder.masked :]
    return cached[: len(cached) // 2]


def _after(decoder: DecoderGraph, call: tuple[torch.Tensor, ...], past: int) -> None:
    """Ask for one more token after a past of zeros; `call` is another step of the same decoder."""
    first, before = 1 + decoder.masked, _past(decoder, call)
    written = (t.new_zeros((*t.shape[:2], past, t.shape[3])) for t in before)
    decoder(call[0][:, :1], *call[1:first], *written, *call[first + len(before) :])


def _write(model: Any, reads: list[tuple[torch.Tensor, ...]], directory: Path, tolerance: Tolerance) -> tuple[Trial, ...]:
    """Return the trials of texts written by the directory and by the model."""
    from torchferry.generate.texts import Writing, verify_generation
    from torchferry.runtime.seq2seq import Seq2SeqLM

    names = (model.main_input_name, "attention_mask")
    writings = [
        Writing(f"generate: {len(r[0])} texts{words}", dict(zip(names, r, strict=False)), {"max_new_tokens": 16, **more})
        for r in reads
        for words, more in (("", {}), (", no cache", {"use_cache": False, "max_new_tokens": 6}))
    ]
    return verify_generation(model, Seq2SeqLM.from_pretrained(directory), writings, tolerance)
