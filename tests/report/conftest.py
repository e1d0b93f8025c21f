"""Reports are compared word by word, so what differs from machine to machine is held still."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parent)  # so that the stories' file is called by its name alone
    monkeypatch.setattr("torchferry.report.view.versions", lambda: {"python": "3.11.7", "torchferry": "0.1.0", "torch": "2.13.0"})
