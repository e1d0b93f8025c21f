"""The caller's own values and tolerance: kept to, told in the result and in the certificate, and refused in words where wrong."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch
from crossing import stock, verdict
from torch import nn
from typer.testing import CliRunner

import torchferry
from torchferry.certificate import read
from torchferry.cli.words import tolerance, value_domains
from torchferry.errors import UsageError
from torchferry.records import Tolerance


class Schedule(nn.Module):
    def __init__(self, wrong_from: int = 100):
        super().__init__()
        self.wrong_from = wrong_from
        self.register_buffer("table", torch.linspace(1, 2, 100))

    def forward(self, x, t):
        return x * torch.where(t < self.wrong_from, self.table[t], 0.0)[:, None]


EXAMPLE = (torch.randn(2, 4), torch.tensor([3, 20]))


def told(path: Path, **options: Any) -> torchferry.Result:
    return verdict(Schedule(), EXAMPLE, path, **options)


def test_a_fault_outside_of_the_values_that_the_caller_gives_does_not_count_and_one_inside_does(tmp_path: Path) -> None:
    path = stock(Schedule(wrong_from=60), EXAMPLE, tmp_path / "m.onnx")
    assert not told(path).ok
    assert not told(path, domain={"t": (0, 99)}).ok
    inside = told(path, domain={"t": (0, 59)})
    assert inside.ok
    assert all(0 <= inside.inputs(t)["t"].min() <= inside.inputs(t)["t"].max() <= 59 for t in inside.trials)
    assert any(inside.inputs(t)["t"].max() == 59 for t in inside.trials)


def test_values_made_by_a_function_are_the_only_ones(tmp_path: Path) -> None:
    path = stock(Schedule(wrong_from=60), EXAMPLE, tmp_path / "m.onnx", {"x": {0: "b"}, "t": {0: "b"}})

    def calls(sizes: dict[str, int], seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(seed)
        batch = sizes["b"]
        return torch.rand(batch, 4, generator=generator), torch.randint(40, high, (batch,), generator=generator)

    high = 60
    right = told(path, domain=calls)
    assert right.ok
    assert {t.values for t in right.trials} == {"example", "random"}
    assert len({t.sizes["b"] for t in right.trials}) > 5
    high = 100
    assert not told(path, domain=calls).ok


def test_what_was_given_is_said_in_the_result_and_in_the_certificate(tmp_path: Path) -> None:
    made = torchferry.export(Schedule(), EXAMPLE, tmp_path / "m.onnx", domain={"t": (0, 59)}, tolerance=(1e-3, 1e-4))
    assert "values: as given by the caller, `t` 0..59" in str(made)
    assert "as given by the caller" in str(made).split("allowed", 1)[1].split("\n", 1)[0]
    sealed = read(tmp_path / "m.onnx").data
    assert sealed["values"].startswith("as given by the caller: t 0..59")
    assert sealed["tolerance"] == {**asdict(Tolerance(1e-3, 0.0, "as given by the caller", 1e-4)), "columns": []}


def test_a_difference_within_the_callers_tolerance_is_none(tmp_path: Path) -> None:
    path = stock(nn.Hardtanh(-1.001, 1.001), EXAMPLE[:1], tmp_path / "m.onnx")
    assert not verdict(nn.Hardtanh(), EXAMPLE[:1], path).ok
    assert verdict(nn.Hardtanh(), EXAMPLE[:1], path, tolerance=1e-2).ok


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"domain": {"T": (0, 9)}}, "domain names `T`, which is no input; the inputs are x, t"),
        ({"domain": {"t": (0, 9)}}, "the example has 20 in `t`, outside of its domain 0..9"),
        ({"domain": {"t": (9, 0)}}, "the domain of `t` is empty: 9..0"),
        ({"domain": {"t": 5}}, r"domain\['t'\] must be \(low, high\), two numbers; got 5"),
        ({"domain": [1, 2]}, "or a function of"),
        ({"domain": lambda sizes, seed: 1 / 0}, "raised ZeroDivisionError"),
        ({"domain": lambda sizes, seed: ("no", "call")}, "gave a call that the model does not take"),
        ({"tolerance": -1.0}, "tolerance is a number"),
        ({"tolerance": "little"}, "tolerance is a number"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(options: dict[str, Any], words: str, tmp_path: Path) -> None:
    path = stock(Schedule(), EXAMPLE, tmp_path / "m.onnx")
    with pytest.raises(UsageError, match=words):
        told(path, **options)


def test_the_command_line_takes_both() -> None:
    assert value_domains(["t=0..999", "x=-1.5..2e3"]) == {"t": (0.0, 999.0), "x": (-1.5, 2000.0)}
    assert tolerance("1e-3") == (1e-3, 1e-3)
    assert tolerance("1e-3,0") == (1e-3, 0.0)
    from torchferry.cli.app import app

    shown = CliRunner().invoke(app, ["verify", "--help"], env={"COLUMNS": "200"}).output
    assert "--domain" in shown
    assert "--tolerance" in shown


@pytest.mark.parametrize("text", ["t", "t=5", "t=9..1", "t=a..b"])
def test_a_domain_that_is_not_understood_is_said_so(text: str) -> None:
    with pytest.raises(UsageError, match=f"--domain `{text}`"):
        value_domains([text])


@pytest.mark.parametrize("text", ["", "x", "-1", "1,2,3", "nan"])
def test_a_tolerance_that_is_not_understood_is_said_so(text: str) -> None:
    with pytest.raises(UsageError, match="--tolerance"):
        tolerance(text)
