"""A `.pt2` file holds code. Unless the user trusts it, none of that runs, and a diagnosis says why."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

import torchferry
from torchferry.cli.main import main
from torchferry.errors import ExportError

X = torch.ones(4, 3)


class Harm:
    """A pickle that makes a file when it is read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return Path.write_text, (self.path, "harm")


def program(path: Path) -> Path:
    moving = torch.export.Dim("n", min=2, max=64)
    torch.export.save(torch.export.export(torch.nn.Linear(3, 2).eval(), (X,), dynamic_shapes=({0: moving},)), path)
    return path


def rewritten(path: Path, change: Callable[[str, bytes], bytes]) -> None:
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in held.items():
            archive.writestr(name, change(name, data))


def _in_a_pickle(path: Path, made: Path) -> None:
    torch.save(((Harm(made),), {}), path.with_suffix(".inputs"), pickle_protocol=pickle.HIGHEST_PROTOCOL)
    harm = path.with_suffix(".inputs").read_bytes()
    rewritten(path, lambda name, data: harm if "sample_inputs" in name else data)


def _in_a_size(path: Path, made: Path) -> None:
    code = f"__import__('pathlib').Path({str(made)!r}).write_text('harm')"

    def change(name: str, data: bytes) -> bytes:
        if not name.endswith("models/model.json"):
            return data
        start = data.index(b'"expr_str": "') + len(b'"expr_str": "')
        assert data[start:].startswith(b"Symbol(")
        return data[:start] + code.encode() + data[data.index(b'"', start) :]

    rewritten(path, change)


HOSTILE = {"a pickle among the example inputs": _in_a_pickle, "a size that is Python": _in_a_size}


@pytest.fixture(params=HOSTILE)
def hostile(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path]:
    """A program that makes a file when it is read, and that file."""
    path, made = program(tmp_path / "program.pt2"), tmp_path / "made"
    HOSTILE[request.param](path, made)
    return path, made


def test_these_files_do_harm_where_they_are_trusted(hostile: tuple[Path, Path]) -> None:
    path, made = hostile
    torchferry.export(path, (X,), check=False, trust=True)
    assert made.read_text() == "harm", "else the tests below show nothing"


def test_nothing_in_an_untrusted_program_is_run(hostile: tuple[Path, Path], tmp_path: Path) -> None:
    path, made = hostile
    for model in (path, str(path)):
        result = torchferry.export(model, (X,), tmp_path / "out.onnx", check=False)
        assert [d.code for d in result.diagnoses] == ["INP017"]
        assert "runs whatever code is in it" in result.diagnoses[0].message
    with pytest.raises(ExportError, match="INP017"):
        torchferry.export(path, (X,))
    assert not made.exists()
    assert not (tmp_path / "out.onnx").exists()


def test_nor_on_the_command_line_nor_by_looking_at_it(
    hostile: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, made = hostile
    monkeypatch.setenv("TORCHFERRY_SUPERVISE", "0")
    (tmp_path / "model.onnx").write_bytes(path.read_bytes())
    for words in (
        ("export", str(path), "-o", str(tmp_path / "out.onnx")),
        ("export", str(path), "-o", str(tmp_path / "out.onnx"), "--input", "x:4x3"),
        ("verify", str(path), str(tmp_path / "model.onnx")),
    ):
        assert main([*words, "-q"]) == 3
        assert "INP017" in capsys.readouterr().out
    assert main(["check", str(tmp_path / "model.onnx"), "-q"]) == 3
    assert not torchferry.verify(path, tmp_path / "model.onnx", (X,), check=False).ok
    assert not made.exists()


def test_a_trusted_program_is_exported_from_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = program(tmp_path / "PROGRAM.PT2")
    assert torchferry.export(path, (X,), trust=True).ok
    monkeypatch.setenv("TORCHFERRY_SUPERVISE", "0")
    assert main(["export", str(path), "-o", str(tmp_path / "out.onnx"), "--trust", "-q"]) == 0


def test_a_damaged_program_that_is_trusted_is_a_diagnosis(tmp_path: Path) -> None:
    (tmp_path / "program.pt2").write_bytes(b"not a program")
    result = torchferry.export(tmp_path / "program.pt2", (X,), check=False, trust=True)
    assert [d.code for d in result.diagnoses] == ["INP016"]
