"""A mend that nothing shows to be right is offered as a guess, in words; it is made only when asked for, and is never ok."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from broken_files import F32, FED, T, model, node, saved, value, weights, with_data_file
from lookalike_files import LOOKALIKES

import torchferry
from torchferry.cli.outcome import exit_code


@pytest.mark.parametrize("name", LOOKALIKES)
@pytest.mark.filterwarnings("ignore")
def test_a_file_that_only_looks_as_if_it_could_be_mended_is_never_ok(name: str, tmp_path: Path) -> None:
    case = LOOKALIKES[name]()
    path, output = tmp_path / "model.onnx", tmp_path / "mended.onnx"
    case.build(path)
    result = torchferry.check(path, feeds=case.feeds, output=output)
    assert not result.ok
    assert not output.exists(), "a guess that nobody asked for"
    words = [text for d in result.diagnoses for text in (d.message, *d.evidence)]
    assert any("a guess, not shown" in text for text in words) == (case.said == "guess"), words


@pytest.mark.parametrize("name", ["another_file_of_the_very_size", "a_softmax_lost_at_the_end", "attention_of_another_length"])
def test_a_guess_that_is_asked_for_is_handed_over_and_is_not_ok(name: str, tmp_path: Path) -> None:
    case = LOOKALIKES[name]()
    path, output = tmp_path / "model.onnx", tmp_path / "mended.onnx"
    case.build(path)
    result = torchferry.check(path, feeds=case.feeds, output=output, repair="unsafe")
    assert not result.ok
    assert result.path == output
    assert output.exists()
    assert [d.code for d in result.diagnoses if not d.fixed] == ["CHK041"]
    assert "a guess, not shown" in str(result)
    assert exit_code(result) == 1


def test_weights_of_the_recorded_checksum_are_found_under_any_name(tmp_path: Path) -> None:
    import hashlib

    import onnx

    path = tmp_path / "model.onnx"
    with_data_file(path)
    data = tmp_path / "model.onnx.data"
    made = onnx.load(str(path), load_external_data=False)
    made.graph.initializer[0].external_data.add(key="checksum", value=hashlib.sha1(data.read_bytes()).hexdigest())
    path.write_bytes(made.SerializeToString())
    os.replace(data, tmp_path / "renamed.bin")
    (tmp_path / "other.bin").write_bytes(bytes(32))
    result = torchferry.check(path, feeds=FED, output=tmp_path / "mended.onnx")
    assert result.ok, [d.message for d in result.diagnoses]
    got = torchferry.InferenceSession(str(result.path)).run(None, FED[0])[0]
    assert np.abs(got).max() > 0.1


def test_a_sequence_that_lacks_its_batch_gets_it_where_the_file_says_it_is(tmp_path: Path) -> None:
    """[L, N, 3] fed [5, 3] is five steps of one text, not one step of five."""
    path = tmp_path / "model.onnx"
    ends = [value("x", T.FLOAT, ["L", "N", 3]), value("y", T.FLOAT, ["N", 3])]
    saved(model([node("ReduceSum", ["x", "a"], ["y"], keepdims=0)], ends[:1], ends[1:], [("a", np.array([0]))]))(path)
    fed = weights(5, 3)
    result = torchferry.check(path, feeds={"x": fed})
    assert result.ok
    with pytest.warns(UserWarning, match="RUN010"):
        got = torchferry.InferenceSession(path).run(None, {"x": fed})[0]
    np.testing.assert_allclose(got, fed.sum(0, keepdims=True), rtol=1e-5)


def test_values_of_our_own_are_tried_too_and_not_only_those_that_are_fed(tmp_path: Path) -> None:
    """On zeros a Softmax under either stamp gives the same; on anything else it does not."""
    case = LOOKALIKES["no_stamp_where_it_decides_what_softmax_means"]()
    case.build(tmp_path / "model.onnx")
    result = torchferry.check(tmp_path / "model.onnx", feeds={"x": np.zeros((2, 1, 1), F32) + np.zeros((2, 3, 4), F32)})
    assert not result.ok
