"""What the capture notices and cannot mend: it is told, at the line where it stands."""

from __future__ import annotations

import importlib
import linecache
import random
from pathlib import Path

import pytest
import torch
from bound import bound, captured
from torch import nn

from torchferry import api
from torchferry.capture.source_map import frames_in, locate
from torchferry.records import Fault, Frame
from torchferry.records.findings import DataDependent, DropoutOn, ExportFlag, Finding, GuardNarrows, HostRandom
from torchferry.whose_code import is_users, may_be_a_models

X = (torch.rand(3, 4),)


def the_line(step, kind: type[Finding]) -> str:
    """Return the source line of the one finding of a kind."""
    (found,) = [f for f in step.findings if isinstance(f, kind)]
    assert found.location is not None
    assert found.location.file == __file__
    return linecache.getline(__file__, found.location.line).strip()


def test_random_numbers_of_python_are_noted_where_they_are_drawn() -> None:
    class Dropping(nn.Module):
        def forward(self, x):
            return x if random.random() < 2 else -x

    assert "random.random()" in the_line(captured(bound(Dropping(), X, {0: {0: "n"}})), HostRandom)


def test_a_question_about_the_export_is_answered_as_in_eager() -> None:
    class Asking(nn.Module):
        def forward(self, x):
            if torch.compiler.is_exporting():
                return x * 0
            return x + 1

    step = captured(bound(Asking(), X, {0: {0: "n"}}))
    assert "is_exporting" in the_line(step, ExportFlag)
    assert torch.equal(step.value.program.module()(*X)[0], X[0] + 1)


def test_functional_dropout_left_on_is_noted() -> None:
    class Dropping(nn.Module):
        def forward(self, x):
            return nn.functional.dropout(x, 0.5)

    assert "dropout(x, 0.5)" in the_line(captured(bound(Dropping().eval(), X, {0: {0: "n"}})), DropoutOn)


def test_a_loop_that_cannot_be_carried_is_located() -> None:
    class Shrinking(nn.Module):
        def forward(self, x):
            kept = []
            while x.numel() > 0:
                kept.append(x[0])
                x = x[1:][x[1:] > x[0]]
            return torch.stack(kept)

    step = captured(bound(Shrinking(), (torch.rand(6),), {}))
    assert step.fault is not None
    assert the_line(step, DataDependent).startswith("while x.numel()") or the_line(step, DataDependent).startswith("x = x[1:]")


def test_frames_are_read_from_a_message_of_torch() -> None:
    text = (
        'from user code:\n   File "/home/me/net.py", line 12, in forward\n    x = y\n   File "/home/me/net.py", line 14, in step'
    )
    assert [(f.file, f.line) for f in frames_in(text)] == [("/home/me/net.py", 12), ("/home/me/net.py", 14)]


def test_torch_and_installed_packages_are_not_the_user_s() -> None:
    assert is_users(__file__)
    assert not is_users(torch.__file__)
    assert not is_users("<string>")


def test_a_package_whose_name_begins_with_torch_may_hold_a_model() -> None:
    beside = Path(torch.__file__).parents[1] / "torchsomething" / "boxes.py"
    assert may_be_a_models(str(beside))
    assert not may_be_a_models(torch.__file__)


def test_the_script_that_calls_torchferry_is_no_part_of_the_model() -> None:
    calling = Frame("/home/me/convert.py", 3, "main"), Frame(api.__file__, 10, "export")
    library, own = Frame("/venv/lib/site-packages/library/model.py", 260, "forward"), Frame("/home/me/net.py", 7, "forward")
    for frames, line in (((*calling, library), 260), ((*calling, library, own), 7)):
        place = locate(Fault("RuntimeError", "", frames))
        assert place is not None
        assert place.line == line


def test_a_guard_of_a_library_s_model_is_told_at_the_library_s_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    (library / "a_library.py").write_text(
        "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x[:1] if x.shape[1] > 8 else x\n"
    )
    monkeypatch.syspath_prepend(str(library))
    step = captured(bound(importlib.import_module("a_library").Net(), (torch.rand(2, 12),), {0: {1: "length"}}))
    found = next(f.location for f in step.findings if isinstance(f, GuardNarrows))
    assert found is not None
    assert (str(found.file), found.line) == (str(library / "a_library.py"), 4)
