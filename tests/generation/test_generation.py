"""Generation on onnxruntime beside the eager model's, by the same `generate`."""

from __future__ import annotations

import inspect
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import transformers

from torchferry.errors import FeedError, UsageError
from torchferry.runtime import stepping
from torchferry.runtime.generation import CausalLM
from torchferry.runtime.session import SessionError

PADDED = {
    "input_ids": torch.tensor([[0, 0, 0, 40, 41], [7, 8, 9, 10, 11], [0, 0, 60, 61, 62]]),
    "attention_mask": torch.tensor([[0, 0, 0, 1, 1], [1, 1, 1, 1, 1], [0, 0, 1, 1, 1]]),
}


def both(model: Any, runtime: Any, **options: Any) -> tuple[torch.Tensor, torch.Tensor]:
    written = []
    for writer in (model, runtime):
        torch.manual_seed(5)
        written.append(writer.generate(**{k: v.clone() for k, v in PADDED.items()}, max_new_tokens=24, **options))
    return written[0], written[1]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"use_cache": False},
        {"num_beams": 3},
        {"num_beams": 4, "num_return_sequences": 2, "length_penalty": 0.5},
        {"do_sample": True, "temperature": 1.2, "top_k": 20},
        {"do_sample": True, "num_return_sequences": 3},
        {"repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
    ],
    ids=["greedy", "no-cache", "beams", "beams-returned", "sampled", "samples-returned", "penalties"],
)
def test_the_same_tokens_are_written_as_by_the_eager_model(model: Any, runtime: Any, options: dict[str, Any]) -> None:
    wanted, got = both(model, runtime, do_sample=options.pop("do_sample", False), **options)
    assert torch.equal(wanted, got)
    assert len(set(wanted[0, 5:].tolist())) > 4, "a model that repeats itself shows nothing"


@pytest.mark.parametrize(
    "settings",
    [
        {"eos_token_id": [40, 41, 5, 6], "suppress_tokens": [7, 8], "begin_suppress_tokens": [9], "pad_token_id": 0},
        {"forced_bos_token_id": 4, "max_length": 20},
        {"eos_token_id": None},
        {"num_beams": 3, "early_stopping": True, "num_return_sequences": 2},
        {"return_dict_in_generate": True, "output_scores": True},
        {"cache_implementation": "static"},
    ],
    ids="-".join,
)
def test_settings_that_lie_in_the_directory_hold_as_for_the_eager_model(
    model: Any, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    place = shutil.copytree(exported, tmp_path / "out")
    own = transformers.GenerationConfig.from_dict({**model.generation_config.to_dict(), **settings})
    own.save_pretrained(place)
    monkeypatch.setattr(model, "generation_config", own)
    written = []
    for writer in (model, CausalLM.from_pretrained(place, threads=1)):
        made = writer.generate(**{k: v.clone() for k, v in PADDED.items()})
        written.append(made if isinstance(made, torch.Tensor) else made.sequences)
    assert torch.equal(*written)
    assert written[0].shape[1] > 5


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"do_sample": True, "top_k": 20},
        {"output_scores": True, "repetition_penalty": 1.2},
        {"output_logits": True},
        {"eos_token_id": [40, 41, 42, 43, 44, 45, 46], "pad_token_id": 0},
        {"max_time": 60.0},
    ],
    ids=["greedy", "sampled", "scores", "logits", "ends-early", "other-criteria"],
)
def test_our_loop_writes_what_the_loop_of_transformers_writes(
    runtime: Any, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    written = []
    for own_loop in (True, False):
        if not own_loop:
            monkeypatch.setattr(stepping, "fits", lambda *_: False)
            monkeypatch.setattr(stepping, "write", _never)
        torch.manual_seed(5)
        how = {"max_new_tokens": 20, "return_dict_in_generate": True, **options}
        written.append(runtime.generate(**{k: v.clone() for k, v in PADDED.items()}, **how))
    ours, theirs = written
    assert torch.equal(ours.sequences, theirs.sequences)
    for name in ("scores", "logits"):
        mine, yours = getattr(ours, name), getattr(theirs, name)
        assert (mine is None) == (yours is None)
        assert all(torch.equal(a, b) for a, b in zip(mine or (), yours or (), strict=True))
    assert ours.past_key_values.get_seq_length() == theirs.past_key_values.get_seq_length()


def test_our_loop_is_the_one_that_generate_takes(runtime: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stepping, "write", _never)
    with pytest.raises(AssertionError, match="our loop"):
        runtime.generate(**PADDED, max_new_tokens=2)


def _never(*_: Any, **__: Any) -> Any:
    raise AssertionError("our loop was taken")


def test_the_cache_is_used_and_never_copied(runtime: Any) -> None:
    first = runtime(**PADDED, use_cache=True)
    keys = first.past_key_values.layers[0].keys
    assert keys.shape[2] == 5
    ids, mask = torch.tensor([[3], [4], [5]]), torch.cat([PADDED["attention_mask"], torch.ones(3, 1, dtype=torch.long)], 1)
    second = runtime(input_ids=ids, attention_mask=mask, past_key_values=first.past_key_values, use_cache=True)
    assert second.past_key_values is first.past_key_values
    assert second.logits.shape[1] == 1
    whole = runtime(input_ids=torch.cat([PADDED["input_ids"], ids], 1), attention_mask=mask)
    assert torch.allclose(second.logits[:, -1], whole.logits[:, -1], atol=1e-4)


def test_a_conversation_can_go_on_from_its_cache(model: Any, runtime: Any) -> None:
    ids = torch.tensor([[7, 8, 9]])
    begun = runtime.generate(input_ids=ids, max_new_tokens=5, do_sample=False, return_dict_in_generate=True)
    more = torch.cat([begun.sequences, torch.tensor([[12, 13]])], 1)
    went_on = runtime.generate(input_ids=more, past_key_values=begun.past_key_values, max_new_tokens=6, do_sample=False)
    assert torch.equal(went_on, model.generate(input_ids=more, max_new_tokens=6, do_sample=False))


def test_logits_are_those_of_the_eager_model_at_every_valid_position(model: Any, runtime: Any) -> None:
    with torch.no_grad():
        positions = (PADDED["attention_mask"].cumsum(-1) - 1).clamp(min=0)
        wanted = model(**PADDED, position_ids=positions).logits
    valid = PADDED["attention_mask"].bool()
    np.testing.assert_allclose(runtime(**PADDED).logits[valid].numpy(), wanted[valid].numpy(), rtol=1e-3, atol=1e-4)


def test_only_the_last_logits_are_computed_where_no_more_are_wanted(runtime: Any) -> None:
    whole = runtime(**PADDED).logits
    assert torch.allclose(runtime(**PADDED, logits_to_keep=2).logits, whole[:, -2:], atol=1e-5)
    step = stepping.Stepper(runtime.session, 3, runtime.refuse_too_long)
    assert torch.allclose(step(PADDED["input_ids"], PADDED["attention_mask"]), whole[:, -1], atol=1e-5)
    assert "logits_to_keep" in step.inputs


def test_transformers_pipeline_takes_it_without_a_complaint(
    runtime: Any, exported: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    transformers.utils.logging.enable_propagation()
    write = transformers.pipeline("text-generation", model=runtime, tokenizer=tokenizer)
    one = write("hello there", max_new_tokens=5, do_sample=False)[0]["generated_text"]
    assert one.startswith("hello there")
    assert not [r for r in caplog.records if "not supported" in r.getMessage()]
    several = write(["hello", "the cat sat on the mat"], max_new_tokens=5, do_sample=False, batch_size=2)
    assert several[0][0]["generated_text"] == write("hello", max_new_tokens=5, do_sample=False)[0]["generated_text"]


def test_int32_ids_and_masks_are_taken(runtime: Any) -> None:
    narrow = {name: tensor.int() for name, tensor in PADDED.items()}
    assert torch.equal(runtime(**narrow).logits, runtime(**PADDED).logits)


@pytest.mark.parametrize(
    ("feeds", "says"),
    [
        ({"input_ids": torch.zeros((1, 0), dtype=torch.long)}, "prompt is empty"),
        ({"input_ids": torch.zeros((1, 49), dtype=torch.long)}, "49 tokens long and the model has positions for 48"),
        ({"input_ids": torch.zeros(3, dtype=torch.long)}, r"must be \(batch, length\)"),
        ({"input_ids": torch.zeros((1, 3))}, "whole numbers"),
        ({"input_ids": torch.ones((1, 3), dtype=torch.long), "attention_mask": torch.ones((1, 2))}, r"must be \(1, 3\)"),
        (
            {"input_ids": torch.ones((1, 3), dtype=torch.long), "token_type_ids": torch.zeros((1, 3))},
            "return_token_type_ids=False",
        ),
        ({"input_ids": torch.ones((1, 3), dtype=torch.long), "output_attentions": True}, "without `output_attentions`"),
        ({"inputs_embeds": torch.ones((1, 3, 32))}, "without `inputs_embeds`"),
        ({}, "takes `input_ids`"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_graph_cannot_take_is_refused_in_words(runtime: Any, feeds: dict[str, Any], says: str) -> None:
    with pytest.raises(FeedError, match=says):
        runtime(**feeds)


def test_another_directory_is_refused_with_what_it_is(exported: Path, tmp_path: Path) -> None:
    hub, answers = tmp_path / "hub", tmp_path / "answers"
    for place, name in ((hub, "model.safetensors"), (answers, "decoder_model.onnx")):
        place.mkdir()
        (place / "config.json").write_text("{}")
        (place / name).write_text("")
    for place, says in (
        (tmp_path, r"has no `model\.onnx` and no `config\.json`"),
        (tmp_path / "nowhere", "there is no directory"),
        (exported / "model.onnx", "is a file; name the directory"),
        (hub, "was not exported yet; `torchferry export hf:"),
        (answers, "has an encoder and a decoder"),
    ):
        with pytest.raises(UsageError, match=says):
            CausalLM.from_pretrained(place)


def test_a_graph_that_does_not_open_is_explained(exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported, tmp_path / "out")
    graph = onnx.load(exported / "model.onnx")
    onnx.save(graph, tmp_path / "out" / "model.onnx", save_as_external_data=True, location="model.onnx.data")
    assert CausalLM.from_pretrained(tmp_path / "out").longest == 48
    (tmp_path / "out" / "model.onnx.data").unlink()
    with pytest.raises(SessionError, match="which does not exist"):
        CausalLM.from_pretrained(tmp_path / "out")
    (tmp_path / "out" / "torchferry.json").write_text("{")
    with pytest.raises(UsageError, match=r"torchferry\.json` is refused: it is not the JSON that it should be"):
        CausalLM.from_pretrained(tmp_path / "out")


def test_a_class_that_transformers_does_not_know_runs_without_its_code(model: Any, exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported, tmp_path / "out")
    config = json.loads((exported / "config.json").read_text())
    places = {"model_type": "of_my_own", "architectures": ["OfMyOwn"], "num_hidden_layers": config["n_layer"]}
    (tmp_path / "out" / "config.json").write_text(json.dumps({**config, **places}))
    wanted, got = both(model, CausalLM.from_pretrained(tmp_path / "out"), do_sample=False)
    assert torch.equal(wanted, got)


def test_a_subclass_goes_by_the_name_of_its_family(exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported, tmp_path / "out")
    config = json.loads((exported / "config.json").read_text())
    (tmp_path / "out" / "config.json").write_text(json.dumps({**config, "architectures": ["OfMyOwn"]}))
    assert type(CausalLM.from_pretrained(tmp_path / "out")).__name__ == "GPT2LMHeadModel", "or pipelines complain"


def test_the_model_says_that_it_is_on_the_cpu(runtime: Any) -> None:
    assert runtime.to("cpu") is runtime
    with pytest.raises(UsageError, match="runs on the CPU"):
        runtime.to("cuda")


def test_forward_takes_what_generate_may_pass() -> None:
    assert {"input_ids", "attention_mask", "past_key_values", "position_ids", "use_cache"} <= set(
        inspect.signature(CausalLM.forward).parameters
    )


def test_the_likeliest_token_is_the_one_that_torch_picks() -> None:
    greedy = transformers.GenerationConfig(do_sample=False)
    scores = torch.randint(0, 40, (64, 300), generator=torch.Generator().manual_seed(0)).float()  # ties in every row
    scores[3, 7], scores[4, 5:9], scores[5] = torch.nan, torch.inf, -torch.inf
    assert torch.equal(stepping._chosen(scores, greedy), torch.argmax(scores, dim=-1))
