"""`verify` takes what `export` writes for a task, comes to the same, and tells what padding does to answers."""

from __future__ import annotations

import copy
import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import families
import pytest
import torch

import torchferry
from torchferry import certificate
from torchferry.errors import UsageError, VerifyError
from torchferry.generate.padding import measure
from torchferry.records import Padding, Tolerance, Trial, ranges_shown, sizes_shown

ALLOWED = Tolerance(1e-4, 1e-4, "float32")


@pytest.fixture(scope="module")
def model() -> Any:
    return families.decoder("gpt2")


@pytest.fixture(scope="module")
def exported(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return torchferry.export(model, f=tmp_path_factory.mktemp("exported") / "gpt2", task="text-generation")


@pytest.mark.parametrize("what", ["the directory", "the graph in it"])
def test_a_directory_with_a_cache_is_verified_as_it_was_exported(what: str, model: Any, exported: Any) -> None:
    path = exported.path.parent if what == "the directory" else exported.path
    result = torchferry.verify(model, path)
    assert result.ok
    assert [t.name for t in result.trials if t.values == "generate"] == [
        t.name for t in exported.trials if t.values == "generate"
    ]
    assert any("padded on the left" in t.name for t in result.trials)
    assert result.ranges.keys() == exported.ranges.keys()


def test_a_call_with_a_past_that_is_padded_on_the_left_holds(model: Any, exported: Any) -> None:
    """By itself the model counts padding among its positions; as `generate` calls it, and in the graph, it does not."""
    ids = torch.randint(3, 90, (2, 6), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        past = model(ids, use_cache=True).past_key_values
    mask = torch.ones(2, 9, dtype=torch.long)
    mask[1, :2] = 0
    call = {"input_ids": ids[:, :3], "attention_mask": mask, "past_key_values": past}
    assert torchferry.verify(model, exported.path, kwargs=call).ok


def test_a_call_without_a_past_holds_too(model: Any, exported: Any) -> None:
    ids = torch.randint(3, 90, (1, 5), generator=torch.Generator().manual_seed(0))
    result = torchferry.verify(model, exported.path, (ids,))
    assert result.ok
    assert Counter(t.values for t in result.trials if not t.weights)["given"] == 5, "four of the task's own, and this one"


def test_the_directory_of_another_model_is_told_apart(model: Any, exported: Any) -> None:
    with pytest.raises(VerifyError):
        torchferry.verify(families.drawn(copy.deepcopy(model), seed=1), exported.path.parent)


@pytest.mark.slow
def test_an_encoder_and_a_decoder_are_verified_together(tmp_path: Path) -> None:
    both = families.encoder_decoder("t5")
    made = torchferry.export(both, f=tmp_path / "t5", task="text2text-generation")
    result = torchferry.verify(both, tmp_path / "t5")
    assert result.ok
    assert result.path == made.path
    with torch.no_grad():
        other = copy.deepcopy(both)
        other.encoder.block[0].layer[0].SelfAttention.q.weight += 0.5
    assert not torchferry.verify(other, tmp_path / "t5", check=False).ok


def test_a_directory_that_is_none_of_ours_is_refused_in_words(model: Any, exported: Any, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has no `model\.onnx`"):
        torchferry.verify(model, tmp_path)
    shutil.copytree(exported.path.parent, tmp_path / "edited")
    (tmp_path / "edited" / "torchferry.json").write_text(json.dumps({"task": ["no"]}), encoding="utf-8")
    with pytest.raises(UsageError, match="`task` is a list, and must be text"):
        torchferry.verify(model, tmp_path / "edited")
    with pytest.raises(UsageError, match="is a directory"):
        torchferry.verify(torch.nn.Linear(2, 2), tmp_path, (torch.ones(1, 2),))


def test_result_table_and_certificate_count_the_same_trials(exported: Any) -> None:
    found = certificate.read(exported.path)
    assert not found.objections
    assert found.data["trials"] == dict(Counter(t.outcome for t in exported.trials)), "the texts are trials too"
    assert {name: tuple(sizes) for name, sizes in found.data["sizes_tried"].items()} == sizes_shown(exported.trials)
    assert {name: tuple(span) for name, span in found.data["ranges"].items()} == exported.ranges == ranges_shown(exported.trials)
    assert f"tried {exported.ranges['past_sequence_length'][0]}..{exported.ranges['past_sequence_length'][1]}" in " ".join(
        str(exported).split()
    )


def test_only_trials_that_speak_for_the_file_widen_what_was_shown() -> None:
    outcomes = {1: "agree", 2: "ill-conditioned", 8: "eager-refused", 16: "beyond-range", 32: "differ"}
    trials = [Trial(str(n), {"n": n}, "random", 0, outcome) for n, outcome in outcomes.items()]  # type: ignore[arg-type]
    assert ranges_shown(trials) == {"n": (1, 2)}


def test_what_padding_does_is_told_in_the_report_and_in_the_certificate(exported: Any) -> None:
    words = "padding: a text gets the same answer alone, padded on the left and padded on the right (measured)"
    assert words in " ".join(str(exported).split())
    assert words in certificate.read(exported.path).data["notes"]


def test_a_model_that_counts_padding_among_its_positions_is_told_of(model: Any) -> None:
    def plainly(ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return model(input_ids=ids, attention_mask=mask).logits

    found = measure(plainly, plainly, 97, 64, ALLOWED)
    assert found is not None
    assert min(found.left) > 1 > max(found.right)
    assert "padded on the left a text gets another answer than alone, in the model as in the file" in found.words()
    assert "pad on the right" in found.words()


def test_a_graph_alone_that_is_moved_by_padding_is_told_of() -> None:
    assert "in the file, and not in the model" in Padding((0.1, 40.0), (0.1, 0.1)).words()


def test_texts_that_the_model_has_no_room_for_are_not_measured(model: Any) -> None:
    assert measure(lambda ids, mask: ids, lambda ids, mask: ids, 97, 2, ALLOWED) is None
