"""The comparison of texts must be able to say no: every fault that generation can have is shown to it."""

from __future__ import annotations

import copy
from typing import Any

import families
import pytest
import torch

from torchferry.generate.texts import text_writings, verify_generation
from torchferry.records import Tolerance

ALLOWED = Tolerance(1e-4, 1e-4, "float32")


@pytest.fixture(scope="module")
def model() -> Any:
    return families.decoder("llama")


def outcomes(model: Any, other: Any) -> dict[str, str]:
    writings = list(text_writings(97, length=10, most=64))
    return {t.name: t.outcome for t in verify_generation(model, other, writings, ALLOWED)}


def test_a_model_agrees_with_itself_on_every_kind_of_text(model: Any) -> None:
    found = outcomes(model, copy.deepcopy(model))
    assert set(found.values()) == {"agree"}
    assert any("padded on the left" in name for name in found)
    assert any("no cache" in name for name in found)


def test_other_weights_differ(model: Any) -> None:
    assert set(outcomes(model, families.drawn(copy.deepcopy(model), seed=1)).values()) == {"differ"}


def test_the_first_token_that_is_another_is_told_beside_its_logits(model: Any) -> None:
    writing = next(text_writings(97, length=10, most=64))
    other = families.drawn(copy.deepcopy(model), seed=1)
    (trial,) = verify_generation(model, other, [writing], ALLOWED)
    asked = {"do_sample": False, "max_new_tokens": 10}
    mine, yours = (m.generate(**writing.inputs, **asked)[0, 1:].tolist() for m in (other, model))
    step = next(n for n, pair in enumerate(zip(mine, yours, strict=False)) if pair[0] != pair[1])
    assert [d.output for d in trial.differences] == ["logits", "tokens"]
    assert trial.differences[1].words == f"token {mine[step]} at step {step} of row 0, eager writes {yours[step]}"


def test_a_small_shift_of_the_logits_differs_even_where_the_tokens_are_the_same(model: Any) -> None:
    other = copy.deepcopy(model)
    other.lm_head.bias = torch.nn.Parameter(torch.full((97,), 0.01))
    assert set(outcomes(model, other).values()) == {"differ"}


class Blind(torch.nn.Module):
    """Ignores the mask: right on a single prompt, wrong on padded ones."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def generate(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **options: Any) -> Any:
        return self.model.generate(input_ids=input_ids, attention_mask=torch.ones_like(attention_mask), **options)


def test_a_mask_that_is_ignored_is_found_by_the_padded_prompts(model: Any) -> None:
    found = outcomes(model, Blind(copy.deepcopy(model)))
    assert found["generate: one prompt"] == "agree"
    assert found["generate: three prompts padded on the left"] == "differ"


class Forgetful(Blind):
    """Forgets what is in the cache: right on the first token of a text only."""

    def generate(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **options: Any) -> Any:
        forward = self.model.forward

        def forgetting(**kwargs: Any) -> Any:
            past = kwargs.get("past_key_values")
            if past is not None and past.get_seq_length() > 0:
                for layer in past.layers:
                    layer.values = torch.zeros_like(layer.values)
            return forward(**kwargs)

        self.model.forward = forgetting
        try:
            options["use_cache"] = True
            return self.model.generate(input_ids=input_ids, attention_mask=attention_mask, **options)
        finally:
            del self.model.forward


def test_a_cache_that_is_lost_is_found_after_the_first_token(model: Any) -> None:
    trials = verify_generation(model, Forgetful(copy.deepcopy(model)), list(text_writings(97, length=10, most=64)), ALLOWED)
    assert {t.outcome for t in trials} == {"differ"}
    assert all("step" in t.differences[0].words and "step 0" not in t.differences[0].words for t in trials)


class Stopping(Blind):
    """Stops before eager does."""

    def generate(self, **inputs: Any) -> Any:
        return self.model.generate(**{**inputs, "max_new_tokens": 3})


def test_a_text_that_ends_early_differs(model: Any) -> None:
    assert set(outcomes(model, Stopping(copy.deepcopy(model))).values()) == {"differ"}


def test_two_tokens_nearer_than_rounding_are_no_difference() -> None:
    model = families.decoder("llama", tie_word_embeddings=False)
    with torch.no_grad():
        model.lm_head.weight[11] = model.lm_head.weight[12]  # a tie by construction wherever either of them wins
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.lm_head.weight[12] += 1e-7
    assert set(outcomes(model, other).values()) == {"agree"}


def test_the_model_is_left_as_it_was(model: Any) -> None:
    model.train()
    try:
        outcomes(model, copy.deepcopy(model).eval())
        assert model.training
    finally:
        model.eval()
