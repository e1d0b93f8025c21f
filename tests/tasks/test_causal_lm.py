"""A decoder prepared for the pipeline: its own forward, its cache as tensors, its limits found out."""

from __future__ import annotations

from typing import Any

import families
import pytest
import torch
import transformers

from torchferry.errors import UsageError
from torchferry.tasks import cache, causal_lm, prepare, task_of
from torchferry.tasks.experts import dense_experts


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
    assert part.ranges["past_sequence_length"] == (0, 63)


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


def test_a_recurrent_state_is_refused_in_words() -> None:
    config = transformers.MambaConfig(vocab_size=50, hidden_size=16, num_hidden_layers=1, state_size=4)
    with pytest.raises(UsageError, match=r"no cache to put into a graph|recurrent state"):
        causal_lm.prepare(transformers.MambaForCausalLM(config).eval())


def test_experts_are_dense_only_while_the_graph_is_made() -> None:
    model = families.decoder("mixtral")
    before = model.config._experts_implementation
    ids = torch.tensor([[5, 6, 7]])
    with torch.no_grad():
        wanted = model(ids).logits
        with dense_experts(model):
            assert model.config._experts_implementation == "batched_mm"
            assert torch.allclose(model(ids).logits, wanted, atol=1e-5)
    assert model.config._experts_implementation == before
    with dense_experts(families.decoder("gpt2")):
        pass  # a model without experts is left alone


def test_a_rebuilt_cache_knows_its_length_when_it_is_empty() -> None:
    empty = cache.rebuilt([torch.zeros(1, 2, 0, 4), torch.zeros(1, 2, 0, 4)])
    assert empty.get_seq_length() == 0
    assert list(cache.names(1, "present")) == ["present.0.key", "present.0.value"]
