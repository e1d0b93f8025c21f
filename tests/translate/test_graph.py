"""What the optimiser may not do, what it must, and where things come from."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from tests.translate.made import agree, case, run

from torchferry.edits.translate import OptimiserOff, PropagateNan, SessionOptions
from torchferry.files import data_name
from torchferry.records import Job
from torchferry.translate import translate
from torchferry.translate.existing_file import as_translated
from torchferry.translate.save import copy_model, save_external


@pytest.mark.parametrize("number", [1e-8, 1e-12])
def test_a_tiny_addend_survives(number: float, tmp_path: Path) -> None:
    made = agree(lambda x: (x + number).log(), (torch.zeros(3),), tmp_path)
    assert "Add" in [n.op_type for n in made.model.graph]


def test_a_factor_near_one_survives(tmp_path: Path) -> None:
    made = agree(lambda x: x * 1.000001, (torch.full((3,), 1e6),), tmp_path)
    assert "Mul" in [n.op_type for n in made.model.graph]


def test_a_check_that_the_file_cannot_make_is_noted_with_its_line(tmp_path: Path) -> None:
    def checked(x: torch.Tensor) -> torch.Tensor:
        torch._assert_async((x > -1).all(), "nothing below -1")
        return x * 2

    (note,) = translate(case(checked, (torch.ones(3),), tmp_path)).notes
    assert "`nothing below -1`" in note
    assert ".py:" in note


def test_tied_weights_are_stored_once(tmp_path: Path) -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(50, 8)
            self.head = torch.nn.Linear(8, 50, bias=False)
            self.head.weight = self.table.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.table(ids))

    made = agree(Tied(), (torch.tensor([[1, 2]]),), tmp_path)
    assert sum(v.const_value.size == 400 for v in made.model.graph.initializers.values()) == 1


def test_what_is_written_into_weights_and_constants_is_written_at_each_run(tmp_path: Path) -> None:
    class Writing(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.fc, self.hidden, self.level = torch.nn.Linear(3, 3), [torch.nn.Linear(3, 3)], torch.zeros(3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                self.fc.weight.mul_(2)
                self.hidden[0].weight.add_(1)
                self.level.add_(1)
            return self.hidden[0](self.fc(x)) + self.level

    agree(Writing(), (torch.randn(2, 3),), tmp_path)


def test_zero_padding_before_a_max_pool_stays_zero(tmp_path: Path) -> None:
    def pooled(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.max_pool2d(torch.nn.functional.pad(x, (1, 1, 1, 1)), 2)

    agree(pooled, (-torch.rand(1, 2, 4, 4) - 1,), tmp_path)


def test_a_branch_may_hand_on_its_argument(tmp_path: Path) -> None:
    def chosen(x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.clone(), lambda x: -x, (x,))

    agree(chosen, (torch.rand(3),), tmp_path, others=[(-torch.rand(3),)])


def test_nan_is_passed_on_when_asked(tmp_path: Path) -> None:
    args = (torch.tensor([[1.0, torch.nan, 3.0], [1.0, 2.0, 3.0]]),)
    agree(lambda x: x.amax(1), args, tmp_path, edits=(PropagateNan(),))


def test_without_the_optimiser_the_file_is_right_too(tmp_path: Path) -> None:
    agree(torch.nn.LayerNorm(4), (torch.rand(2, 4),), tmp_path, edits=(OptimiserOff(),))


def test_session_settings_travel_with_the_file(tmp_path: Path) -> None:
    made = agree(torch.nn.ReLU(), (torch.rand(2),), tmp_path, edits=(SessionOptions(level="basic"),))
    assert made.settings == {"level": "basic"}


def test_every_node_knows_its_line_and_module(tmp_path: Path) -> None:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Sequential(torch.nn.Linear(4, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.inner(x).view(x.shape[0], 2, 2)

    made = agree(Net(), (torch.rand(2, 4),), tmp_path, ({0: "batch"},))
    places = [made.provenance[n.name] for n in made.model.graph]
    assert all(place.file == __file__ and place.line for place in places)
    assert "inner.0" in {place.module_path for place in places}
    assert made.provenance["y0"].line is not None


def test_the_users_program_is_left_alone(tmp_path: Path) -> None:
    ready = case(torch.nn.Sequential(torch.nn.Dropout(), torch.nn.Linear(2, 2)), (torch.rand(1, 2),), tmp_path)
    before = str(ready.value("capture").program.graph)
    translate(ready)
    assert str(ready.value("capture").program.graph) == before


def test_an_existing_file_is_read_with_its_names(tmp_path: Path) -> None:
    made = agree(torch.nn.Linear(3, 2), (torch.rand(2, 3),), tmp_path, ({0: "batch"},))
    again = as_translated(Job(onnx=made.path)).value
    assert (again.inputs, again.outputs, again.opset) == (made.inputs, made.outputs, made.opset)


def test_a_file_that_is_none_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "no.onnx").write_bytes(b"<html>")
    assert as_translated(Job(onnx=tmp_path / "no.onnx")).fault is not None


def test_a_copy_takes_its_weights_along(tmp_path: Path) -> None:
    layer = torch.nn.Linear(64, 64)
    made = agree(layer, (torch.rand(2, 64),), tmp_path)
    (tmp_path / "far").mkdir()
    save_external(made.model, tmp_path / "a.onnx")
    copy_model(tmp_path / "a.onnx", tmp_path / "far" / "b.onnx")
    (tmp_path / data_name("a.onnx")).unlink()
    x = torch.rand(3, 64)[:2]
    torch.testing.assert_close(torch.tensor(run(tmp_path / "far" / "b.onnx", (x,))[0]), layer(x).detach())
    onnx.checker.check_model(str(tmp_path / "far" / "b.onnx"))
