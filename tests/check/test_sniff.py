"""What a file is, told without reading it whole."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import onnx
import pytest
import torch
from broken_files import linear

from torchferry.check.reading.sniff import sniff

MODEL = linear().SerializeToString()


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (MODEL, "onnx"),
        (b"", "empty"),
        (MODEL[:-9], "truncated"),
        (MODEL[:2], "no-graph"),
        (gzip.compress(MODEL), "gzip"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:3b\nsize 77\n", "git-lfs-pointer"),
        (b"\n <!DOCTYPE html><html></html>", "web-page"),
        (b"<?xml version='1.0'?><net/>", "xml"),
        (str(linear()).encode(), "text-proto"),
        (onnx.printer.to_text(linear()).encode(), "onnx-text"),
        (b'{"model_type": "bert"}', "json"),
        (b"Entry not found", "text"),
        ((23).to_bytes(8, "little") + json.dumps({"w": {"dtype": "F32"}}).encode(), "safetensors"),
        (b"\x00\x00\x00\x00ORTM" + bytes(50), "ort-format"),
        (b"\x1c\x00\x00\x00TFL3" + bytes(50), "other-format"),
        (b"\x80\x02}q\x00.", "torch-checkpoint"),
        (b"\xff\xfe\xfd" * 20, "not-a-model"),
    ],
)
def test_a_file_is_told_from_its_first_bytes(content: bytes, kind: str, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    assert sniff(tmp_path / "model.onnx").kind == kind


def test_a_checkpoint_of_torch_is_told_from_other_archives(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(1)}, tmp_path / "model.onnx")
    assert sniff(tmp_path / "model.onnx").kind == "torch-checkpoint"


def test_what_is_not_there_and_what_is_a_folder_are_told(tmp_path: Path) -> None:
    assert sniff(tmp_path / "none.onnx").kind == "missing"
    assert sniff(tmp_path).kind == "directory"


def test_a_whole_model_of_any_text_form_is_read_back(tmp_path: Path) -> None:
    from torchferry.check.reading.unpack import unpacked

    (tmp_path / "a").write_text(str(linear()))
    assert onnx.load_model_from_string(unpacked(tmp_path / "a", "text-proto")) == linear()
    (tmp_path / "b").write_bytes(gzip.compress(MODEL))
    assert unpacked(tmp_path / "b", "gzip") == MODEL
