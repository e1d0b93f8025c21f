"""Every broken file is mended and then right, or refused with a diagnosis that names the place; a guess is never ok."""

from __future__ import annotations

import warnings
from pathlib import Path

import baked_files
import misread_files
import nested_files
import numpy as np
import pytest
from broken_files import BROKEN

import torchferry

assert baked_files.broken  # its files are among BROKEN
assert nested_files.broken
assert misread_files.broken


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.filterwarnings("ignore")
def test_a_broken_file_is_mended_and_right_or_refused_by_name(name: str, tmp_path: Path) -> None:
    case = BROKEN[name]()
    path = tmp_path / case.file_name
    case.build(path)
    before = path.read_bytes()
    result = torchferry.check(path, feeds=case.feeds, output=tmp_path / "mended.onnx")
    assert path.read_bytes() == before, "the file itself was touched"
    if case.right is None:
        assert not result.ok
        assert any(case.names in f"{d.message} {d.location}" for d in result.diagnoses), result.diagnoses
        return
    if case.guess:
        assert not result.ok
        assert not (tmp_path / "mended.onnx").exists()
        assert any("a guess, not shown" in words for d in result.diagnoses for words in d.evidence), result.diagnoses
        result = torchferry.check(path, feeds=case.feeds, output=tmp_path / "mended.onnx", repair="unsafe")
    assert result.ok != case.guess, [d.message for d in result.diagnoses]
    assert result.repairs
    session = torchferry.InferenceSession(str(result.path))
    for feed in case.feeds:
        for wanted, got in zip(case.right(feed), session.run(None, feed), strict=True):
            np.testing.assert_allclose(
                np.asarray(got, np.float64),
                np.asarray(wanted, np.float64),
                rtol=case.rtol,
                atol=1e-2 if case.rtol > 0.01 else 1e-4,
            )


def test_without_an_output_the_repair_is_described_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    BROKEN["newest_helper_stamps"]().build(path)
    result = torchferry.check(path)
    assert {r.code for r in result.repairs} == {"CHK007", "CHK008"}
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


def test_with_repair_off_the_file_is_only_diagnosed(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    BROKEN["newest_helper_stamps"]().build(path)
    result = torchferry.check(path, repair="off", output=tmp_path / "mended.onnx")
    assert not result.ok
    assert not (tmp_path / "mended.onnx").exists()
    assert {d.code for d in result.diagnoses} == {"CHK007", "CHK008"}


def test_an_old_release_as_target_is_served_from_the_table(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    BROKEN["newest_helper_stamps"]().build(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = torchferry.check(path, target="onnxruntime==1.17", output=tmp_path / "mended.onnx")
    checked = result.history.best.value("check")
    assert result.ok
    assert (checked.opset, checked.ir_version) == (20, 9)
