"""The directory: complete, written only when all of it was verified, and the model left as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
import transformers

from torchferry.cli.outcome import exit_code
from torchferry.demo_dialogue import tokenizer as tokenizer_without_pad
from torchferry.errors import ExportError, UsageError
from torchferry.records import Difference, Trial
from torchferry.tasks import causal_lm, directory, export_directory


def test_all_that_a_reader_needs_is_there(exported: Path, model: Any) -> None:
    assert {"model.onnx", "config.json", "generation_config.json", "tokenizer.json", "torchferry.json"} <= {
        p.name for p in exported.iterdir()
    }
    assert transformers.AutoConfig.from_pretrained(exported).architectures == ["GPT2LMHeadModel"]
    assert json.loads((exported / "torchferry.json").read_text())["longest"] == model.config.n_positions


def test_attention_is_one_node_where_the_target_has_it(exported: Path) -> None:
    assert sum(n.op_type == "Attention" for n in onnx.load(exported / "model.onnx").graph.node) == 2
    assert "whole-attention" in [e.name for e in directory._fewer_nodes(23, None)]
    for older in ((18, None), (None, "onnxruntime==1.17"), (None, "opset 20")):
        assert "whole-attention" not in [e.name for e in directory._fewer_nodes(*older)]


def test_the_report_says_how_to_generate(result: Any, exported: Path) -> None:
    assert f'torchferry generate {exported} "Hello"' in str(result)


def test_the_graph_has_the_names_and_axes_of_the_conventions(exported: Path) -> None:
    graph = onnx.load(exported / "model.onnx").graph
    named = {i.name: [d.dim_param or d.dim_value for d in i.type.tensor_type.shape.dim] for i in graph.input}
    assert list(named)[:3] == ["input_ids", "attention_mask", "past_key_values.0.key"]
    assert named["input_ids"] == ["batch_size", "sequence_length"]
    assert named["attention_mask"] == ["batch_size", "past_sequence_length + sequence_length"]
    assert named["past_key_values.1.value"] == ["batch_size", 4, "past_sequence_length", 8]
    assert [o.name for o in graph.output] == ["logits", "present.0.key", "present.0.value", "present.1.key", "present.1.value"]


def test_texts_are_among_the_trials(result: Any) -> None:
    written = [t for t in result.trials if t.values == "generate"]
    assert len(written) == 4
    assert {t.outcome for t in written} == {"agree"}
    assert all("steps" in t.note for t in written)


def test_what_was_set_in_the_tokenizer_is_said(result: Any) -> None:
    assert "the tokenizer has no pad token" in " ".join(str(result).split())


@pytest.mark.usefixtures("exported_before")
def test_the_users_tokenizer_is_left_as_it_was(model: Any, tmp_path: Path) -> None:
    mine = tokenizer_without_pad()
    side = mine.padding_side
    export_directory(model, tmp_path / "out", tokenizer=mine)
    assert (mine.pad_token, mine.padding_side) == (None, side)
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "out").pad_token is not None


def test_a_tokenizer_that_cannot_be_read_costs_no_time(model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    monkeypatch.setattr(directory, "prepare", lambda *_, **__: pytest.fail("the long work began"))
    with pytest.raises(UsageError, match=r"tokenizer in .* cannot be loaded"):
        export_directory(model, tmp_path / "out", tokenizer=tmp_path)


@pytest.mark.usefixtures("exported_before")
def test_a_text_that_differs_leaves_the_old_directory_untouched(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "model.onnx").write_text("old")
    wrong = Trial("generate: x", {}, "generate", 0, "differ", (Difference("tokens", "value", "token 3, eager writes 4"),))
    monkeypatch.setattr(causal_lm, "_write", lambda *_: (wrong,))
    with pytest.raises(ExportError):
        export_directory(model, tmp_path / "out")
    assert [p.name for p in tmp_path.rglob("*")] == ["out", "model.onnx"]
    assert (tmp_path / "out" / "model.onnx").read_text() == "old"
    result = export_directory(model, tmp_path / "out", check=False)
    assert not result.ok
    assert result.path is None
    (found,) = result.history.best.errors
    assert found.code == "NUM041"
    assert "token 3, eager writes 4" in found.message


@pytest.mark.usefixtures("exported_before")
def test_what_is_raised_while_texts_are_written_is_a_diagnosis(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> Any:
        raise RuntimeError("no word comes out")

    monkeypatch.setattr(causal_lm, "_write", broken)
    result = export_directory(model, tmp_path / "out", check=False)
    (found,) = result.history.best.errors
    assert found.code == "RUN900"
    assert "writing texts with the file failed: RuntimeError: no word comes out" in found.message
    assert str(result).startswith("not exported: it could not be made to write a text")
    assert exit_code(result) == 4
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("exported_before")
def test_the_model_is_left_as_it_was(model: Any, tmp_path: Path) -> None:
    model.train()
    try:
        assert export_directory(model, tmp_path / "deep" / "out").ok
        assert model.training
        assert all(m.training for m in model.modules())
    finally:
        model.eval()
    assert (tmp_path / "deep" / "out" / "model.onnx").is_file()


def test_a_file_in_the_place_of_the_directory_is_refused(model: Any, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(UsageError, match="is a file"):
        export_directory(model, tmp_path / "out")


def test_a_model_that_does_not_generate_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Linear does not generate"):
        export_directory(torch.nn.Linear(2, 2), tmp_path / "out")
