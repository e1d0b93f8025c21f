"""The whole way, as a stranger goes it: export by the public call or the command, then generate and chat."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import families
import pytest
import torch
import transformers

import torchferry
from torchferry.demo_dialogue import tokenizer
from torchferry.errors import UsageError
from torchferry.generation import CausalLM
from torchferry.tasks import export_directory

PADDED = {
    "input_ids": torch.tensor([[0, 0, 9, 8], [5, 6, 7, 8]]),
    "attention_mask": torch.tensor([[0, 0, 1, 1], [1, 1, 1, 1]]),
}


class Shy(transformers.GPT2LMHeadModel):
    """A user's own subclass: its forward forbids a token, and prefers those that the text has not had yet."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **kwargs: Any) -> Any:
        outputs = super().forward(input_ids=input_ids, attention_mask=attention_mask, **kwargs)
        said = torch.nn.functional.one_hot(input_ids, self.config.vocab_size)
        outputs.logits = outputs.logits - 3.0 * said
        outputs.logits[..., 11] = -1e4
        return outputs


def test_a_subclass_that_changed_forward_is_exported_as_it_is(tmp_path: Path) -> None:
    plain = families.decoder("gpt2", n_layer=1)
    shy = Shy(plain.config).eval()
    shy.load_state_dict(plain.state_dict())
    result = torchferry.export(shy, f=tmp_path / "out", task="text-generation")
    assert result.ok
    runtime = CausalLM.from_pretrained(tmp_path / "out")
    for options in ({}, {"num_beams": 3}):
        wanted, got, other = (m.generate(**PADDED, max_new_tokens=12, do_sample=False, **options) for m in (shy, runtime, plain))
        assert torch.equal(wanted, got)
        assert not torch.equal(wanted, other), "the change of forward shows in the text"


def test_a_task_without_a_directory_is_refused() -> None:
    with pytest.raises(UsageError, match="say where"):
        torchferry.export(families.decoder("gpt2"), task="text-generation")


def test_what_a_task_settles_itself_is_not_taken_in_silence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="leave out `input_names`, `dynamic_axes`"):
        torchferry.export(
            families.decoder("gpt2"), f=tmp_path / "out", task="text-generation", input_names=["ids"], dynamic_axes={"ids": [0]}
        )


def test_a_directory_that_cannot_be_made_is_said_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write .*: Not a directory"):
        torchferry.export(families.decoder("gpt2"), f=tmp_path / "file" / "inside" / "out", task="text-generation")


def command(*words: str, said: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "torchferry", *words], input=said, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-3000:]
    return done.stdout


@pytest.mark.slow
def test_a_directory_from_the_command_line_generates_and_chats(tmp_path: Path) -> None:
    words = tokenizer()
    end = words.eos_token_id
    model = families.decoder(
        "gpt2", vocab_size=len(words), n_positions=128, bos_token_id=end, eos_token_id=end, pad_token_id=None
    )
    model.save_pretrained(tmp_path / "hf")
    words.save_pretrained(tmp_path / "hf")
    told = command("export", f"hf:{tmp_path / 'hf'}", "-o", f"{tmp_path / 'out'}/")
    assert "verified" in told
    made = {p.name for p in (tmp_path / "out").iterdir()}
    assert {"model.onnx", "config.json", "generation_config.json", "tokenizer.json", "torchferry.json"} <= made
    verdict = command("verify", f"hf:{tmp_path / 'hf'}", str(tmp_path / "out"))
    assert "padded on the left and padded on the right" in " ".join(verdict.split())
    assert "was verified against its model" in command("verify", "--certificate", str(tmp_path / "out"))
    written = json.loads(command("generate", str(tmp_path / "out"), "hello there", "--max-new-tokens", "9", "--format", "json"))
    ids = torch.tensor([words("hello there")["input_ids"]])
    wanted = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=9, do_sample=False, pad_token_id=end)
    assert written["tokens"] == wanted[0, ids.shape[1] :].tolist()
    first = command("chat", str(tmp_path / "out"), "--greedy", said="hello there\n")
    asked = torch.tensor([[*words("hello there")["input_ids"], end]])
    answer = model.generate(asked, attention_mask=torch.ones_like(asked), max_new_tokens=60, do_sample=False, pad_token_id=end)
    assert first.strip() == words.decode(answer[0, asked.shape[1] :], skip_special_tokens=True).strip()


@pytest.mark.slow
def test_an_encoder_decoder_answers_from_the_command_line(tmp_path: Path) -> None:
    words = tokenizer()
    model = families.encoder_decoder("bart", vocab_size=len(words))
    export_directory(model, tmp_path / "out", tokenizer=words)
    written = json.loads(command("generate", str(tmp_path / "out"), "hello there", "--max-new-tokens", "9", "--format", "json"))
    ids = torch.tensor([words("hello there")["input_ids"]])
    wanted = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=9, do_sample=False)
    assert written["tokens"] == wanted[0, 1:].tolist()
