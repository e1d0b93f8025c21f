"""What no repair can keep is given up in the open: declared narrower, verified, told; never a size that was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch

import torchferry
from torchferry import certificate
from torchferry.edits.inputs import Narrow
from torchferry.records import (
    Bound,
    Captured,
    Case,
    Diagnosis,
    Dim,
    Fault,
    Guard,
    History,
    Job,
    Repair,
    Signature,
    Step,
    TensorSpec,
    Tolerance,
    Trial,
    Verified,
)
from torchferry.records.findings import GuardNarrows, JudgedBySize, Verdict
from torchferry.repair import narrowings


class Weighted(torch.nn.Module):
    """Python's own sum over a size: a plain number in any capture."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * sum(range(x.shape[1]))


class LongOnesInPython(torch.nn.Module):
    """Beyond ten columns, something that no capture can follow."""

    def __init__(self) -> None:
        super().__init__()
        self.names = {"a": 1.0, "b": 2.0}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > 10:
            return x * self.names["ab"[int(x.sum()) % 2]]
        return x * 3.0


class OddOnesInPython(torch.nn.Module):
    """Where the windows do not fit, something that no capture can follow."""

    def __init__(self) -> None:
        super().__init__()
        self.names = {"a": 1.0, "b": 2.0}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, columns = x.shape[1:]
        if rows % 4 or columns % 4:
            return x * self.names["ab"[int(x.sum()) % 2]]
        return x.reshape(-1, rows // 4, 4, columns // 4, 4).cumsum(2).reshape(-1, rows, columns)


# --- whole exports ---------------------------------------------------------------------------------------


def test_a_size_that_code_fixes_is_fixed_in_the_file_and_told_everywhere(tmp_path: Path) -> None:
    result = torchferry.export(Weighted(), (torch.rand(2, 5),), tmp_path / "m.onnx")
    assert result.ok
    assert [(d.code, d.severity) for d in result.diagnoses] == [("INP020", "warning")]
    assert list(result.ranges) == ["batch_size"]
    assert len(result.given_up) == 1
    assert result.given_up[0].startswith("length is fixed at 5; the model takes 1.. (CAP017 at ")
    assert "given up   length is fixed at 5" in str(result)
    assert certificate.read(tmp_path / "m.onnx").data["given_up"] == list(result.given_up)
    with pytest.raises(torchferry.FeedError):
        result.feeds((torch.rand(2, 6),))
    x = torch.rand(4, 5)
    got = torchferry.InferenceSession(str(tmp_path / "m.onnx")).run(None, result.feeds((x,)))
    np.testing.assert_allclose(got[0], Weighted()(x), rtol=1e-5)


def test_a_range_is_cut_where_it_breaks_and_the_file_refuses_what_lies_beyond(tmp_path: Path) -> None:
    result = torchferry.export(LongOnesInPython(), (torch.rand(2, 4),), tmp_path / "m.onnx")
    dims = result.history.best.value("inputs").signature.dims
    assert [(d.name, d.low, d.high) for d in dims] == [("batch_size", 1, None), ("length", 1, 10)]
    assert max(t.sizes["length"] for t in result.trials) == 10
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    for length in (1, 10):
        x = np.random.rand(3, length).astype(np.float32)
        np.testing.assert_allclose(session.run(None, {"x": x})[0], x * 3, rtol=1e-6)
    with pytest.raises(Exception, match="length_must_be_1_to_10"):
        session.run(None, {"x": np.zeros((3, 11), np.float32)})
    with pytest.raises(Exception, match=r"dim 1 of `x` is 11; the certificate in the file is for 1\.\.10"):
        torchferry.InferenceSession(str(tmp_path / "m.onnx")).run(None, {"x": np.zeros((3, 11), np.float32)})


def test_two_sizes_that_fit_windows_are_declared_in_their_multiples_in_one_pass(tmp_path: Path) -> None:
    model = OddOnesInPython()
    result = torchferry.export(model, (torch.rand(2, 8, 12),), tmp_path / "m.onnx")
    dims = result.history.best.value("inputs").signature.dims
    assert [(d.low, d.high, d.multiple_of) for d in dims] == [(1, None, 1), (4, None, 4), (4, None, 4)]
    assert [r.code for r in result.repairs] == ["INP020"]
    x = torch.rand(3, 4, 16)
    got = torchferry.InferenceSession(str(tmp_path / "m.onnx")).run(None, result.feeds((x,)))
    np.testing.assert_allclose(got[0], model(x), rtol=1e-5)
    with pytest.raises(torchferry.FeedError, match="multiples of 4"):
        result.feeds((torch.rand(3, 4, 15),))


@pytest.mark.parametrize(
    "asked",
    [{"dynamic_shapes": ({1: "length"},)}, {"dynamic_axes": {"x": {1: "length"}}}, {"ranges": {"length": (1, 20)}}],
    ids=lambda a: next(iter(a)),
)
def test_a_size_that_was_asked_for_is_never_given_up(asked: dict[str, object]) -> None:
    result = torchferry.export(LongOnesInPython(), (torch.rand(2, 4),), check=False, **asked)
    assert not result.ok
    assert any(d.severity == "error" for d in result.diagnoses)


def test_sizes_that_differ_between_the_examples_are_never_given_up() -> None:
    other = (torch.rand(2, 9),)
    result = torchferry.export(Weighted(), (torch.rand(2, 5),), examples=[other], check=False)
    assert not result.ok


def test_with_repairs_off_nothing_is_given_up() -> None:
    assert not torchferry.export(Weighted(), (torch.rand(2, 5),), repair="off", check=False).ok


def test_the_recipe_of_a_narrowed_export_makes_the_same_file_again(tmp_path: Path) -> None:
    first = torchferry.export(Weighted(), (torch.rand(2, 5),), tmp_path / "m.onnx")
    again = torchferry.export(
        Weighted(), (torch.rand(2, 5),), tmp_path / "n.onnx", edits=first.history.best.job.edits, repair="off"
    )
    assert again.given_up == first.given_up


@pytest.mark.slow
def test_a_list_of_pieces_is_refused_with_what_would_work_instead() -> None:
    class Chunks(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.stack([part.sum(0) for part in torch.split(x, 4)], 0).mean(0)

    result = torchferry.export(Chunks(), (torch.rand(7, 3),), check=False)
    assert not result.ok
    assert "scan" in str([d.evidence for d in result.diagnoses])


# --- which way to narrow ---------------------------------------------------------------------------------


def tried(
    bad: list[int], good: list[int], *, guards: tuple[str, ...] = (), asked: bool = False, by_chance: Sequence[int] = ()
) -> list[Repair]:
    """Return what is offered for a file that is right at some lengths and wrong at others."""
    example = 6
    trials = [Trial("the example", {"n": example, "b": 2}, "example", 0, "agree")]
    trials += [Trial("t", {"n": size, "b": 2}, "random", 0, "agree") for size in good]
    trials += [Trial("t", {"n": size, "b": 2}, "random", 0, "differ") for size in bad]
    signature = Signature((TensorSpec("x", "float32", ("b", "n")),), (Dim("b"), Dim("n", asked=asked)))
    bound = Bound(None, (), signature, ("y",), None, vary=lambda *_: (), feeds=lambda *_: {})
    findings = tuple(GuardNarrows(g, {}) for g in guards)
    moved: dict[tuple[str, int], Verdict] = {("n", size): "mixed" if size in by_chance else "wrong" for size in bad}
    moved |= {("n", size): "mixed" if size in by_chance else "right" for size in good}
    at_home: Verdict = "mixed" if example in by_chance else "wrong" if example in bad else "right"
    judged = JudgedBySize(at_home, moved)
    steps = (
        Step("inputs", bound),
        Step("capture", Captured(None, "", (), tuple(Guard(g) for g in guards)), findings=findings),
        Step("translate", object()),
        Step("check", object()),
        Step("verify", Verified(tuple(trials), Tolerance(0, 0, "")), findings=(judged,)),
    )
    case = Case(Job(), steps, (Diagnosis("CAP007", "holds only there"),))

    return list(narrowings(History((case,), case)))


def given_up(offer: Repair) -> object:
    assert isinstance(offer.edit, Narrow)
    return offer.edit.sizes


@pytest.mark.parametrize(
    ("bad", "good", "guards", "expected"),
    [
        ([11, 20], [1, 10], ("n <= 10",), (1, 10, 1)),
        ([20, 40], [1, 12], (), (1, 12, 1)),  # nothing says where between 12 and 20 it breaks
        ([1, 2], [5, 12], ("n > 4",), (5, None, 1)),
        ([1, 12], [5, 7], ("Eq(floor((n + 3)/4), 2)",), (5, 8, 1)),
        ([1, 5, 7, 8], [3, 12], ("Eq(Mod(n, 3), 0)",), (3, None, 3)),
    ],
    ids=["upper-end", "between-trials", "lower-end", "window", "steps"],
)
def test_the_widest_range_in_which_nothing_failed_comes_first(
    bad: list[int], good: list[int], guards: tuple[str, ...], expected: list[int | None]
) -> None:
    offers = tried(bad, good, guards=guards)
    assert given_up(offers[0]) == {"n": expected}
    assert given_up(offers[-1]) == {"n": None}


def test_steps_are_read_off_guards_that_never_name_them() -> None:
    padding = "Eq(Mod(2 - Mod(floor(n / 3), 2), 2), 0)"  # no padding is needed where a half of n // 3 is whole
    assert given_up(tried([1, 5, 7, 8, 9], [12], guards=("Eq(Mod(n, 3), 0)", padding))[0]) == {"n": (6, None, 6)}


def test_nothing_is_offered_for_a_size_that_was_asked_for() -> None:
    assert not tried([11], [1], asked=True)


def test_a_failure_by_chance_is_about_values_and_no_size_is_given_up_for_it() -> None:
    assert not tried([11], [1, 10], by_chance=[11])
    assert not tried([9, 20], [1, 8], by_chance=[9])  # 20 is always wrong, but 9 would be left inside
    assert not tried([6], [1, 8], by_chance=[6])
    assert not tried([11], [1, 10], by_chance=[10])  # the range would end where the file is right only by luck


def test_a_file_that_is_wrong_at_the_examples_own_sizes_is_tried_once_with_all_of_them_fixed() -> None:
    assert [given_up(r) for r in tried([6, 11], [1])] == [{"b": None, "n": None}]


def test_a_model_that_needs_too_many_pieces_is_not_narrowed() -> None:
    case = Case(Job(), (Step("inputs", object()), Step("capture", fault=Fault("TooManyPieces", "after 8 captures"))))
    assert not list(narrowings(History((case,), case)))
