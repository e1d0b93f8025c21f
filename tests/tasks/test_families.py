"""Every family of decoders: one graph, verified over its sizes, that writes what the eager model writes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import families
import pytest
import torch
import transformers

from torchferry.foreign import onnxruntime as ort
from torchferry.runtime.generation import CausalLM
from torchferry.runtime.seq2seq import Seq2SeqLM
from torchferry.tasks import export_directory, prepare

FAST = ("mistral",)  # a window, rotary positions, grouped heads: the others are for `make slow`

DECODERS = [pytest.param(f, marks=() if f in FAST else pytest.mark.slow) for f in families.DECODERS]
ENCODER_DECODERS = [pytest.param(f, marks=pytest.mark.slow) for f in families.ENCODER_DECODERS]


def spans(path: Path) -> dict[str, list[Any]]:
    return {i.name: list(i.shape) for i in ort.session(path).get_inputs()}


@pytest.mark.parametrize("family", DECODERS)
def test_a_decoder_becomes_one_graph_that_writes_the_same_tokens(family: str, tmp_path: Path) -> None:
    model = families.decoder(family)
    result = export_directory(model, tmp_path / "out")
    assert result.ok
    assert result.path == tmp_path / "out" / "model.onnx"
    written = [t for t in result.trials if t.values == "generate"]
    assert len(written) == 4
    assert {t.outcome for t in written} == {"agree"}
    shapes = spans(result.path)
    assert shapes["input_ids"] == ["batch_size", "sequence_length"]
    assert shapes["attention_mask"] == ["batch_size", "past_sequence_length + sequence_length"]
    assert [shapes["past_key_values.1.value"][axis] for axis in (0, 2)] == ["batch_size", "past_sequence_length"]
    runtime = CausalLM.from_pretrained(tmp_path / "out")
    ids = torch.tensor([[0, 0, 9, 8], [5, 6, 7, 8]])
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]])
    for options in ({"num_beams": 3}, {"do_sample": True, "temperature": 1.5}):
        both = []
        for writer in (model, runtime):
            torch.manual_seed(1)
            both.append(writer.generate(input_ids=ids, attention_mask=mask, max_new_tokens=12, **options))
        assert torch.equal(*both)


@pytest.mark.parametrize("family", ENCODER_DECODERS)
def test_an_encoder_decoder_becomes_two_graphs_that_write_the_same_tokens(family: str, tmp_path: Path) -> None:
    model = families.encoder_decoder(family)
    result = export_directory(model, tmp_path / "out")
    assert result.ok
    assert {t.outcome for t in result.trials if t.values == "generate"} == {"agree"}
    assert {p.name for p in (tmp_path / "out").glob("*.onnx")} == {"encoder_model.onnx", "decoder_model.onnx"}
    shapes = spans(tmp_path / "out" / "decoder_model.onnx")
    assert shapes["past_key_values.0.decoder.key"][2] == "past_sequence_length"
    part = prepare(model).parts[0]
    inputs = dict(zip(part.input_names, part.args, strict=True))
    runtime = Seq2SeqLM.from_pretrained(tmp_path / "out")
    # the plain `generate`: whisper wraps its own around it, to cut speech into pieces
    wanted = transformers.GenerationMixin.generate(model, **inputs, num_beams=3, max_new_tokens=10)
    assert torch.equal(wanted, runtime.generate(**inputs, num_beams=3, max_new_tokens=10))
