"""Models whose code lies beside their weights, or is only the user's: run when allowed, and needed no more afterwards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers

from torchferry.cli import hugging
from torchferry.errors import UsageError
from torchferry.generation import CausalLM
from torchferry.tasks import causal_lm, export_directory

CODE = '''
import torch
from transformers import GPT2Config, GPT2LMHeadModel


class EchoConfig(GPT2Config):
    model_type = "echo_of_gpt2"


class EchoForCausalLM(GPT2LMHeadModel):
    """Prefers the tokens that it was just given."""

    config_class = EchoConfig

    def forward(self, input_ids, attention_mask=None, position_ids=None, **kwargs):
        outputs = super().forward(input_ids, attention_mask=attention_mask, position_ids=position_ids, **kwargs)
        outputs.logits = outputs.logits + 2.0 * torch.nn.functional.one_hot(input_ids, self.config.vocab_size)
        return outputs
'''
CONFIG = {
    "model_type": "echo_of_gpt2", "architectures": ["EchoForCausalLM"], "vocab_size": 97, "n_embd": 32, "n_layer": 1, "n_head": 4,
    "n_positions": 64, "bos_token_id": 1, "eos_token_id": 2,
    "auto_map": {"AutoConfig": "echo.EchoConfig", "AutoModelForCausalLM": "echo.EchoForCausalLM"},
}  # fmt: skip


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory with a model and the code of its class."""
    torch.manual_seed(0)
    plain = {k: v for k, v in CONFIG.items() if k not in ("model_type", "auto_map")}
    transformers.GPT2LMHeadModel(transformers.GPT2Config(**plain)).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "echo.py").write_text(CODE)
    return tmp_path


def test_code_beside_the_weights_is_run_only_when_allowed(place: Path) -> None:
    with pytest.raises(UsageError, match="allow it to run with --trust"):
        hugging.load(str(place), trust_remote_code=False)
    model, *_ = hugging.load(str(place), trust_remote_code=True)
    assert type(model).__name__ == "EchoForCausalLM"


def test_a_class_that_nobody_brings_is_not_replaced_by_another(place: Path) -> None:
    config = {k: v for k, v in CONFIG.items() if k != "auto_map"} | {"model_type": "gpt2"}
    (place / "config.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match="names the class `EchoForCausalLM`, which transformers does not have"):
        hugging.load(str(place), trust_remote_code=False)


@pytest.mark.slow
def test_the_directory_needs_no_code_any_more(place: Path, tmp_path: Path) -> None:
    model, *_ = hugging.load(str(place), trust_remote_code=True)
    assert export_directory(model, tmp_path / "out").ok
    assert not list((tmp_path / "out").glob("*.py"))
    ids = torch.tensor([[5, 6, 7]])
    wanted, got = (
        m.generate(ids, max_new_tokens=9, do_sample=False) for m in (model, CausalLM.from_pretrained(tmp_path / "out"))
    )
    assert torch.equal(wanted, got)


def test_a_model_that_cannot_be_called_is_refused_with_what_it_said() -> None:
    class Strict(transformers.GPT2LMHeadModel):
        def forward(self, input_ids: torch.Tensor, past_key_values: object = None) -> None:
            raise AssertionError

    config = transformers.GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=2)
    with pytest.raises(UsageError, match=r"cannot be called as `generate` calls it.*TypeError.*attention_mask"):
        causal_lm.prepare(Strict(config))
