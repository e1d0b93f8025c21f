"""A decoder prepared for the pipeline: its own forward, its cache as tensors, its limits found out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import families
import pytest
import torch
import transformers

from torchferry.errors import UsageError
from torchferry.foreign.transformers_layers import states_missing
from torchferry.records import Tolerance
from torchferry.runtime.cache_layers import layer_of
from torchferry.tasks import cache, causal_lm, prepare, task_of
from torchferry.tasks.directory import generation
from torchferry.tasks.experts import experts_in_form
from torchferry.tasks.in_words import refused_in_words

YOUNGER = pytest.mark.skipif(bool(states_missing()), reason="states and forms of experts need transformers 5.20")


class Louder(transformers.GPT2LMHeadModel):
    """A user's own subclass, which changed what forward gives."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        outputs = super().forward(*args, **kwargs)
        outputs.logits = outputs.logits * 2.0
        return outputs


def called(graph: Any, ids: torch.Tensor, mask: torch.Tensor, past: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
    with torch.no_grad():
        return graph(ids, mask, *past)


def test_names_axes_and_examples_follow_the_conventions() -> None:
    part = prepare(families.decoder("gpt2")).parts[0]
    assert part.input_names[:4] == ("input_ids", "attention_mask", "past_key_values.0.key", "past_key_values.0.value")
    assert part.output_names[:3] == ("logits", "present.0.key", "present.0.value")
    assert part.dynamic_shapes[1] == {0: "batch_size", 1: "past_sequence_length + sequence_length"}
    assert any(call[0][2].shape[2] == 0 for call in part.examples), "an empty past is among the examples"
    assert part.ranges["past_sequence_length"] == (0, None)


def test_the_graph_with_its_cache_gives_what_the_model_gives_on_the_whole_text() -> None:
    model = families.decoder("llama")
    part = prepare(model).parts[0]
    ids = torch.tensor([[0, 0, 5, 6, 7, 8], [3, 4, 5, 6, 7, 8]])
    mask = torch.tensor([[0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]])
    empty = tuple(t[:, :, :0] for t in part.args[2:])
    _, *past = called(part.model, ids[:, :4], mask[:, :4], empty)
    logits, *_ = called(part.model, ids[:, 4:], mask, tuple(past))
    with torch.no_grad():
        whole = model(input_ids=ids, attention_mask=mask, position_ids=(mask.cumsum(-1) - 1).clamp(min=0)).logits
    assert torch.allclose(logits, whole[:, 4:], atol=1e-5)


@YOUNGER
def test_positions_are_those_of_generate() -> None:
    mask = torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]])
    wanted = transformers.GenerationMixin._prepare_position_ids_for_generation(None, mask, {"attention_mask": mask})
    assert torch.equal(causal_lm.positions_of(mask, 0), wanted)
    assert torch.equal(causal_lm.positions_of(mask, 3), wanted[:, 3:])


def test_a_subclass_that_changed_forward_is_prepared_as_it_is() -> None:
    plain = families.decoder("gpt2")
    louder = Louder(plain.config)
    louder.load_state_dict(plain.state_dict())
    ids, mask, *past = prepare(plain).parts[0].args
    whole = torch.ones_like(mask)  # without padding: `generate` counts positions only for a forward that names them
    with torch.no_grad():
        once, twice = (prepare(m).parts[0].model(ids, whole, *past)[0] for m in (plain, louder.eval()))
    assert torch.allclose(twice, once * 2, atol=1e-5)


@pytest.mark.parametrize(("family", "longest"), [("gpt2", 64), ("opt", 64), ("llama", None), ("bloom", None)])
def test_the_longest_text_is_found_by_asking_the_model(family: str, longest: int | None) -> None:
    assert prepare(families.decoder(family)).longest == longest


@pytest.mark.parametrize(("family", "longest"), [("bart", 64), ("t5", None), ("m2m_100", None), ("led", 64)])
def test_the_longest_answer_is_found_by_asking_the_decoder(family: str, longest: int | None) -> None:
    windows = {"attention_window": 4, "max_encoder_position_embeddings": 64, "max_decoder_position_embeddings": 64}
    plain = family in families.ENCODER_DECODERS
    options = families.ENCODER_DECODERS[family] if plain else families.BART_LIKE | windows
    config = transformers.AutoConfig.for_model(family, **{**families.SMALL, **options})
    assert prepare(transformers.AutoModelForSeq2SeqLM.from_config(config)).longest == longest


def test_a_decoder_gets_what_its_encoder_gives_in_the_same_class() -> None:
    config = transformers.SwitchTransformersConfig(**families.SMALL, **families.T5_LIKE, num_experts=2, expert_capacity=64)
    parts = prepare(transformers.SwitchTransformersForConditionalGeneration(config)).parts
    assert [part.file_name for part in parts] == ["encoder_model.onnx", "decoder_model.onnx"]


def test_positions_can_be_an_input() -> None:
    part = prepare(families.decoder("gpt2"), position_ids=True).parts[0]
    assert part.input_names[2] == "position_ids"
    assert part.dynamic_shapes[2] == {0: "batch_size", 1: "sequence_length"}
    shifted = (*part.args[:2], part.args[2] + 1, *part.args[3:])
    assert not torch.allclose(part.model(*part.args)[0], part.model(*shifted)[0])


def test_preparing_leaves_the_model_as_it_was() -> None:
    model = families.decoder("gpt2").train()
    before = {k: v.clone() for k, v in model.state_dict().items()}
    prepare(model)
    assert model.training
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())


def test_a_layer_with_a_window_keeps_everything_and_gives_the_same_numbers() -> None:
    model = families.decoder("mistral")
    part = prepare(model).parts[0]
    ids = torch.randint(3, 97, (1, 12), generator=torch.Generator().manual_seed(0))
    _, *past = called(part.model, ids[:, :11], torch.ones((1, 11), dtype=torch.long), tuple(t[:1, :, :0] for t in part.args[2:]))
    assert past[0].shape[2] == 11
    assert model.config.sliding_window == 6
    logits, *_ = called(part.model, ids[:, 11:], torch.ones((1, 12), dtype=torch.long), tuple(past))
    with torch.no_grad():
        assert torch.allclose(logits[:, -1], model(ids).logits[:, -1], atol=1e-5)


def test_the_task_is_found_from_the_model() -> None:
    assert task_of(families.decoder("gpt2")) == "text-generation"
    assert task_of(families.encoder_decoder("t5")) == "text2text-generation"
    assert task_of(families.encoder_decoder("whisper")) == "automatic-speech-recognition"
    assert task_of(torch.nn.Linear(2, 2)) is None
    assert prepare(torch.nn.Linear(2, 2)) is None


def test_a_task_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean `text-generation`"):
        prepare(families.decoder("gpt2"), "text-generator")


def test_a_model_without_a_cache_is_refused_in_words() -> None:
    config = transformers.BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    with pytest.raises(UsageError, match="a transformers model with `generate`, not BertForMaskedLM"):
        causal_lm.prepare(transformers.BertForMaskedLM(config).eval())
    with pytest.raises(UsageError, match="without a task, as a plain model"):
        causal_lm.prepare(transformers.BertLMHeadModel(config).eval())


def test_a_memory_that_is_no_cache_is_refused_in_words() -> None:
    config = transformers.MambaConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, state_size=4)
    with pytest.raises(UsageError, match=r"MambaForCausalLM gave no `past_key_values`.*without a task, as a plain model"):
        causal_lm.prepare(transformers.MambaForCausalLM(config).eval())


@YOUNGER
def test_a_cache_without_keys_is_refused_in_words() -> None:
    only_states = transformers.DynamicCache()
    only_states.layers = [layer_of({"conv_state": torch.zeros(2, 4, 3)})]
    with pytest.raises(UsageError, match="no layer with keys and values, whose length says how long the text is"):
        cache.refuse_unknown(only_states, torch.nn.Linear(1, 1), batch=2, length=3)


def test_a_layer_that_may_remember_more_is_refused_by_name() -> None:
    class Notebook(transformers.DynamicLayer):
        """A user's own layer."""

    filled = transformers.DynamicCache()
    filled.layers = [Notebook()]
    with pytest.raises(UsageError, match="keeps a Notebook in layer 0 of its cache"):
        cache.refuse_unknown(filled, torch.nn.Linear(1, 1), batch=2, length=3)


def test_a_model_that_wants_a_cache_class_of_its_own_is_refused_with_what_it_says() -> None:
    config = transformers.MiniMaxConfig(
        **families.LLAMA_LIKE, vocab_size=50, head_dim=8, num_local_experts=2, num_experts_per_tok=1,
        layer_types=["full_attention", "linear_attention"], block_size=4,
    )  # fmt: skip
    with pytest.raises(UsageError, match=r"MiniMaxForCausalLM cannot be called with the tensors of its cache.*cache of its own"):
        causal_lm.prepare(transformers.MiniMaxForCausalLM(config).eval())


def test_what_a_model_says_at_length_is_cut() -> None:
    with (
        pytest.raises(UsageError, match=r"^Linear cannot be called at all: ValueError: x{200,290}\.\.\.$"),
        refused_in_words(torch.nn.Linear(1, 1), "at all"),
    ):
        raise ValueError("x" * 5000)


@YOUNGER
@pytest.mark.parametrize("family", ["lfm2", "falcon_h1", "qwen3_next"])
def test_states_beside_keys_and_values_are_inputs_of_a_fixed_size(family: str) -> None:
    model = families.decoder(family)
    part = prepare(model).parts[0]
    states = [name for name in part.input_names if name.endswith("_state")]
    assert states
    moving = dict(zip(part.input_names, part.dynamic_shapes, strict=True))
    assert all(moving[name] == {0: "batch_size"} for name in states)
    assert [n.replace("past_key_values", "present") for n in part.input_names[2:]] == list(part.output_names[1:])


@pytest.mark.parametrize("family", ["lfm2", "falcon_h1", "qwen3_next", "rembert"])
def test_a_text_goes_on_from_what_is_remembered_as_in_generate(family: str) -> None:
    model = families.decoder(family)
    graph = prepare(model).parts[0].model
    ids = torch.tensor([[0, 0, 0, 40, 41], [7, 8, 9, 10, 11]])
    mask = torch.tensor([[0, 0, 0, 1, 1], [1, 1, 1, 1, 1]])
    wanted = model.generate(ids, attention_mask=mask, max_new_tokens=8, do_sample=False, eos_token_id=None)
    past = tuple(t.expand(2, *t.shape[1:]) for t in causal_lm._empty(causal_lm._filled(model)))
    new = ids
    for _ in range(8):
        logits, *past = called(graph, new, mask, tuple(past))
        new = logits[:, -1:].argmax(-1)
        ids, mask = torch.cat([ids, new], 1), torch.cat([mask, torch.ones_like(new)], 1)
    assert torch.equal(ids, wanted)


@YOUNGER
def test_experts_are_dense_only_while_the_graph_is_made() -> None:
    model = families.decoder("mixtral")
    before = model.config._experts_implementation
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        wanted = model(ids).logits
        with experts_in_form(model):
            assert model.config._experts_implementation == "batched_mm"
            assert torch.allclose(model(ids).logits, wanted, atol=1e-5)
    assert model.config._experts_implementation == before
    with experts_in_form(families.decoder("gpt2")):
        pass  # a model without experts is left alone


@YOUNGER
def test_texts_are_compared_with_experts_as_the_user_has_them() -> None:
    model = families.decoder("mixtral")
    seen = [model.config._experts_implementation]
    asked = generation(replace(prepare(model), write=lambda *_: seen.append(model.config._experts_implementation)))
    with experts_in_form(model):
        asked.write(Path(), Tolerance(0, 0, ""))
        assert model.config._experts_implementation == "batched_mm"
    assert seen[0] == seen[1] != "batched_mm"


def test_a_rebuilt_cache_knows_its_length_when_it_is_empty() -> None:
    slots = cache.keys_and_values(1)
    empty = cache.rebuilt(slots, [torch.zeros(1, 2, 0, 4), torch.zeros(1, 2, 0, 4)])
    assert empty.get_seq_length() == 0
    assert [slot.name("present") for slot in slots] == ["present.0.key", "present.0.value"]
