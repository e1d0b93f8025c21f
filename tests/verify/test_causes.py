"""The kind of cause is told in words: a value from the example, code for export only, a constant, half precision, sizes."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from crossing import crossed, errors, marked, stock, verdict
from torch import nn

import torchferry
from torchferry.translate import stage as translation
from torchferry.verify.explain import findings


class FromTheExample(nn.Module):
    def forward(self, x):
        peak = float(x.abs().max())  # culprit
        return (x / peak) ** 2


class ListOfLengths(nn.Module):
    def forward(self, x, lengths):
        mask = torch.tensor([[float(t < n) for t in range(5)] for n in lengths.tolist()])  # culprit
        return (x * mask[..., None]).sum(1)


class ForExportOnly(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        y = self.lin(x) * 3
        if torch.onnx.is_in_onnx_export():  # culprit
            y = y.clamp(-1, 1)
        return y.exp()


class OtherWhenTraced(nn.Module):
    def forward(self, x):
        if torch.jit.is_tracing():  # culprit
            return x.relu()
        y = x * 2
        return y.abs()


class Chosen(nn.Module):
    def forward(self, x):
        y = x + 1
        return y[:, ::2] * 2 if x.shape[1] % 3 else y[:, 1::2] * 2  # culprit


class Half(nn.Module):
    def forward(self, x):
        h = x.half()
        return (h * h).mean(-1).float()  # culprit


CASES = {
    "computed once, with the example's values": (FromTheExample(), (torch.randn(2, 6),), None),
    "is a constant in the file": (ListOfLengths(), (torch.randn(2, 5, 3), torch.tensor([5, 3])), None),
    "goes another way while the model is exported": (ForExportOnly().eval(), (torch.randn(2, 4),), None),
    "another way while the model is exported than when it is run": (OtherWhenTraced(), (torch.randn(2, 4),), None),
    "was decided once, with the example": (Chosen(), (torch.randn(2, 7),), {"x": {1: "length"}}),
    "computed in half precision by torch": (Half(), (torch.randn(2, 64),), None),
}


@pytest.mark.parametrize("words", CASES)
def test_the_cause_is_told_in_words_at_its_line(words: str, tmp_path: Path) -> None:
    result = crossed(*CASES[words][:2], tmp_path, CASES[words][2])
    assert not result.ok
    told = [e for d in result.diagnoses if d.severity == "error" for e in (d.message, *d.evidence)]
    assert any(words in line for line in told), told
    assert any(line.startswith("stage: ") for line in told)
    assert marked(result), [(d.code, d.message, str(d.location)) for d in result.diagnoses]


class Tiny(nn.Module):
    def __init__(self, gain: float):
        super().__init__()
        self.gain = gain

    def forward(self, x):
        y = x * self.gain  # culprit
        return (y - x) * 1e6


def test_a_constant_that_an_optimiser_took_for_nothing_is_told_at_the_example_too(tmp_path: Path) -> None:
    example = (torch.randn(3),)
    torch.onnx.export(Tiny(1.000005), example, str(tmp_path / "m.onnx"), input_names=["x"], verbose=False)
    result = verdict(Tiny(1.000005), example, tmp_path / "m.onnx")
    assert [d.code for d in result.diagnoses if d.severity == "error"] == ["NUM012"]
    assert "stage: the exporter's optimiser" in result.diagnoses[0].evidence
    assert marked(result)


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(6)])

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(x))
        return x


def test_the_onnx_node_and_the_module_are_named(tmp_path: Path) -> None:
    model, example = Deep().eval(), (torch.randn(2, 8),)
    path = stock(model, example, tmp_path / "deep.onnx")
    file = onnx.load(str(path))
    node = [n for n in file.graph.node if n.op_type == "Gemm"][4]
    next(a for a in node.attribute if a.name == "alpha").f = 1.3
    onnx.save(file, str(path))
    place = verdict(model, example, path).diagnoses[0].location
    assert place.onnx_node == node.name
    assert place.module_path == "layers.4"


class TwoPaths(nn.Module):
    def __init__(self):
        super().__init__()
        self.keys, self.values = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        scores = (x @ self.keys(x).transpose(1, 2)).tanh()
        weights = scores.softmax(-1)  # culprit
        values = self.values(x)  # right, and later than what is wrong
        return weights @ values


def test_what_is_right_on_another_path_does_not_hide_where_the_wrong_one_begins(tmp_path: Path) -> None:
    model, example = TwoPaths().eval(), (torch.randn(2, 5, 6),)
    path = stock(model, example, tmp_path / "m.onnx")
    file = onnx.load(str(path))
    node = next(n for n in file.graph.node if n.op_type == "Softmax")
    next(a for a in node.attribute if a.name == "axis").i = 1
    onnx.save(file, str(path))
    result = verdict(model, example, path)
    assert marked(result), str(result.diagnoses[0].location)
    assert result.diagnoses[0].location.onnx_node == node.name


class Rare(nn.Module):
    """Like the identity but for values that few draws have, whatever the size."""

    def __init__(self, above: float):
        super().__init__()
        self.above = above

    def forward(self, x):
        return torch.where(x > self.above, x + 1, x)


def test_a_size_is_blamed_only_if_other_values_fail_at_it_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    example = (torch.randn(2, 5, generator=torch.Generator().manual_seed(0)),)
    path = stock(Rare(2.1), example, tmp_path / "m.onnx", {"x": {1: "length"}})
    result = verdict(Rare(1e9), example, path)
    resized = [t for t in result.trials if t.outcome == "differ" and t.sizes["length"] != 5 and t.values == "random"]
    assert resized, "no draw at another size shows the difference; another threshold is needed"
    assert "NUM001" in errors(result)
    assert "NUM002" not in errors(result)
    monkeypatch.setattr(findings, "_systematic", lambda bench, failing: True)
    assert "NUM002" in errors(verdict(Rare(1e9), example, path))


class Scaled(nn.Module):
    def forward(self, x):
        return x.sum(-1) * 1.5  # culprit


def test_a_wrong_rewrite_of_the_exporters_optimiser_is_left_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = translation.optimise

    def wrong(model):
        right(model)
        for node in list(model.graph):
            if node.op_type == "Mul":
                node.outputs[0].replace_all_uses_with(node.inputs[0], replace_graph_outputs=True)

    monkeypatch.setattr(translation, "optimise", wrong)
    result = torchferry.export(Scaled(), (torch.randn(2, 4),), tmp_path / "m.onnx", check=False)
    assert result.ok, [(d.code, d.message) for d in result.diagnoses]
    assert [r.title for r in result.repairs] == ["leave the exporter's optimiser off"]
    assert [d.code for d in result.diagnoses if d.fixed] == ["NUM001"]
    assert "torchferry.export" not in result.diagnoses[0].help  # that is what was called
