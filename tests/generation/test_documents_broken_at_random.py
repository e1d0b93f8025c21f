"""Programs, directories, metadata and certificates broken at random: an answer or a refusal, nothing run, nothing written."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


@pytest.fixture
def fuzz(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("fuzz_documents")


@pytest.mark.parametrize("kind", ["programs", "metadata", "certificates", "directories"])
def test_every_broken_document_ends_in_an_answer(kind: str, fuzz: ModuleType, exported: Path, tmp_path: Path) -> None:
    made = {
        "programs": fuzz.programs,
        "metadata": lambda: fuzz.files()[0],
        "certificates": lambda: fuzz.files()[1],
        "directories": lambda: fuzz.of_directory(exported),
    }[kind]()
    tally, wrong = fuzz.fuzz(made, 60, 7, tmp_path)
    assert not wrong
    assert tally["refused"] > 30


def test_what_is_run_or_written_is_noticed(fuzz: ModuleType, tmp_path: Path) -> None:
    """The hostile programs do harm where they are trusted: else the test above shows nothing."""
    import torch

    import torchferry

    programs = fuzz.programs()
    trusted = fuzz.Kind(
        "programs",
        programs.spoil,
        lambda place: str(torchferry.export(place / "program.pt2", (torch.ones(4, 3),), check=False, trust=True).ok),
    )
    tally, _ = fuzz.fuzz(trusted, 40, 7, tmp_path)
    assert tally["ran or wrote"] + tally["wrote outside"] > 0
