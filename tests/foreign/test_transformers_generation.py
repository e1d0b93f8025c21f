"""transformers' `generate`, as the door has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel

from torchferry.errors import ForeignApiMoved
from torchferry.foreign import transformers_generation as door


class Asked(door.Generating, GPT2LMHeadModel):
    """A model of transformers' own that counts how often its loop is entered, and keeps the padding token."""

    entered: tuple[Any, ...] = ()

    def continued(self, plain: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.entered = (*self.entered, door.pad_token(kwargs["generation_config"]))
        return super().continued(plain, *args, **kwargs)


@pytest.mark.parametrize("sampled", [False, True])
def test_generate_ends_in_the_loop_that_is_taken_over(sampled: bool) -> None:
    config = GPT2Config(
        vocab_size=9, n_positions=16, n_embd=4, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=1, pad_token_id=2
    )
    model = Asked(config).eval()
    plain = GPT2LMHeadModel(config).eval()
    plain.load_state_dict(model.state_dict())
    written = []
    for each in (model, plain):
        torch.manual_seed(0)
        written.append(each.generate(torch.tensor([[3, 4]]), max_new_tokens=4, do_sample=sampled))
    assert torch.equal(*written)
    assert [int(token) for token in model.entered] == [2]


def test_a_config_without_the_token_is_told_with_the_installed_release() -> None:
    config = GenerationConfig()
    vars(config).pop("_pad_token_tensor", None)
    with pytest.raises(ForeignApiMoved, match=r"transformers \d"):
        door.pad_token(config)


def test_a_config_read_from_a_dict_generates_as_a_loaded_one_does() -> None:
    config = GPT2Config(vocab_size=9, n_positions=16, n_embd=4, n_layer=1, n_head=1, bos_token_id=0, eos_token_id=1)
    model = GPT2LMHeadModel(config).eval()
    model.generation_config = door.as_loaded(GenerationConfig.from_dict({"_from_model_config": True, "pad_token_id": 2}))
    assert model.generate(torch.tensor([[3, 4]]), max_new_tokens=2).shape[1] > 2
