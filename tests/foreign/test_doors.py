"""A door says what it relies on, has a test of its own, and names what moved and in which release."""

from __future__ import annotations

import ast
from importlib.metadata import version
from pathlib import Path

import pytest

from torchferry.errors import ForeignApiMoved
from torchferry.foreign.moved import moved, relying_on

SOURCE = Path(__file__).parents[2] / "src" / "torchferry" / "foreign"
NOT_DOORS = ("__init__", "moved", "replaced")  # what doors are made with
DOORS = [p for p in sorted(SOURCE.glob("*.py")) if p.stem not in NOT_DOORS]


@pytest.mark.parametrize("door", DOORS, ids=lambda p: p.stem)
def test_a_door_says_what_it_relies_on_and_has_a_test(door: Path) -> None:
    told = ast.get_docstring(ast.parse(door.read_text(encoding="utf-8"))) or ""
    assert told.startswith("Door to ")
    assert "\nRelies on " in told
    assert "\nShould they move: " in told
    assert (Path(__file__).parent / f"test_{door.stem}.py").is_file()


@pytest.mark.parametrize("door", DOORS, ids=lambda p: p.stem)
def test_a_door_imports_nothing_of_ours_but_errors_and_other_doors(door: Path) -> None:
    allowed = ("torchferry.errors", "torchferry.foreign")
    named = {n.module or "" for n in ast.walk(ast.parse(door.read_text(encoding="utf-8"))) if isinstance(n, ast.ImportFrom)}
    ours = {n for n in named if n.startswith("torchferry") and not n.startswith(allowed)}
    assert ours <= {"torchferry.releases.kernels"}  # onnxruntime's door, for a type alone


def test_a_name_that_is_gone_is_told_with_the_installed_release() -> None:
    words = rf"torch {version('torch').split('+')[0]}.* keeps its hat elsewhere.*no_such_name"
    with pytest.raises(ForeignApiMoved, match=words), relying_on("torch", "its hat"):
        from torch import no_such_name  # noqa: F401


def test_an_attribute_that_is_gone_is_told_likewise() -> None:
    import torch

    with pytest.raises(ForeignApiMoved, match="its hat"), relying_on("torch", "its hat"):
        torch.no_such_name


def test_a_package_of_another_name_has_no_version_to_tell() -> None:
    assert "of an unknown version" in str(moved("no-such-package", "its hat", "gone"))
