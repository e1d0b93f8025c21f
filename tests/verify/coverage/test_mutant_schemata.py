"""A mutant in a model of all mutants does what the file with that one change does; and the score counts what trials notice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from exported import bench_of, scripted
from torch import nn

from torchferry.foreign import onnxruntime as ort
from torchferry.verify.coverage.mutants import affordable, opened, sample, with_values
from torchferry.verify.coverage.mutations import mutants
from torchferry.verify.coverage.schemata import SELECTOR, Mutant, schemata
from torchferry.verify.coverage.stored import stored
from torchferry.verify.judge.trial import Bench, judge
from torchferry.verify.run.intermediates import opened as laid_open
from torchferry.verify.trials.plans import TrialPlan


class Mixed(nn.Module):
    """Comparisons, reductions, slices, a normalisation and a table."""

    def __init__(self):
        super().__init__()
        self.table, self.norm, self.out = nn.Embedding(9, 6), nn.LayerNorm(6), nn.Linear(6, 4)

    def forward(self, x):
        h = self.norm(self.table(x)).clamp(-1.5, 1.5)
        h = torch.where(h > 0.3, h * 2, h.cumsum(1))
        return self.out(h[:, 1:] - h[:, :-1]).softmax(-1), h.mean(1).argmax(-1)


IDS = (torch.randint(0, 9, (2, 5)),)


def every_mutant(bench: Bench) -> tuple[onnx.ModelProto, list[Mutant]]:
    with laid_open(bench.sides) as inside:
        assert not isinstance(inside, ort_fault())
        values = inside.values(IDS)
        assert isinstance(values, dict)
        held = {s.name: s.values() for s in stored(inside.model, Path(bench.sides.file.path).parent)}
        seen = {n: v for n, v in {**values, **bench.sides.feeds(IDS)}.items() if n not in held}
        return inside.model, mutants(inside.model, seen, held, 0)


def ort_fault() -> type:
    from torchferry.records import Fault

    return Fault


def alone(path: Path, mutant: Mutant) -> bytes:
    """Return the file with one mutant in the place of its node."""
    model = onnx.load(str(path))
    nodes = [new for node in model.graph.node for new in (mutant.nodes if node.output[0] == mutant.node else [node])]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model.SerializeToString()


def test_each_mutant_gives_what_it_gives_alone(tmp_path: Path) -> None:
    model = Mixed().eval()
    path = scripted(model, IDS, tmp_path / "m.onnx", axes={"x": {0: "rows", 1: "length"}})
    feeds = {"x": IDS[0].numpy()}
    with bench_of(model, IDS, path) as bench:
        _, every = every_mutant(bench)
        plain = judge(bench, TrialPlan({}, "example", given=IDS), IDS)
        with opened(bench, every, plain, None) as flock:
            assert len(flock.mutants) > 0.8 * len(every)
            for number, mutant in enumerate(flock.mutants):
                key, chosen = flock.where[number]
                got = bench.sides.worker.run(key, {**feeds, SELECTOR: np.asarray(chosen)})
                try:
                    want = ort.session(alone(path, mutant), level="none").run(None, feeds)
                except Exception:  # the mutant breaks the run, here as there
                    assert not isinstance(got, list), (mutant.label, mutant.what)
                    continue
                assert isinstance(got, list), (mutant.label, mutant.what, got)
                assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(want, got, strict=True)), (
                    mutant.label,
                    mutant.what,
                )


def test_with_no_mutant_chosen_the_file_is_as_it_was(tmp_path: Path) -> None:
    model = Mixed().eval()
    path = scripted(model, IDS, tmp_path / "m.onnx")
    with bench_of(model, IDS, path) as bench:
        proto, every = every_mutant(bench)
        made = schemata(proto, sample(proto.graph, every, 40, 0)).SerializeToString()
    feeds = {"x": IDS[0].numpy()}
    want = ort.session(path, level="none").run(None, feeds)
    got = ort.session(made, level="none").run(None, {**feeds, SELECTOR: np.asarray(-1)})
    assert all(np.array_equal(a, b) for a, b in zip(want, got, strict=True))


def test_all_kinds_of_mutants_are_made(tmp_path: Path) -> None:
    model = Mixed().eval()
    with bench_of(model, IDS, scripted(model, IDS, tmp_path / "m.onnx")) as bench:
        made = {m.what for m in every_mutant(bench)[1]}
    wanted = {"inputs swapped", "negated", "inverted", "left out", "constant moved", "one weight moved", "one row changed"}
    assert wanted | {"epsilon changed", "axis changed"} <= made


def test_what_cannot_change_a_number_is_no_mutant(tmp_path: Path) -> None:
    class Nothing(nn.Module):
        def __init__(self):
            super().__init__()
            self.zero, self.one = nn.Parameter(torch.zeros(6)), nn.Parameter(torch.ones(6))

        def forward(self, x):
            return (x + self.zero) * self.one, x

    args = (torch.randn(2, 6),)
    with (
        bench_of(Nothing(), args, scripted(Nothing(), args, tmp_path / "m.onnx", fold=False)) as bench,
        laid_open(bench.sides) as inside,
    ):
        held = {s.name: s.values() for s in stored(inside.model, tmp_path)}
        made = mutants(inside.model, {**inside.values(args), "x": args[0].numpy()}, held, 0)
    assert not [m for m in made if m.what in ("left out", "Sub for Add", "Div for Mul")]
    assert [m for m in made if m.what == "negated"]


@pytest.mark.parametrize(("mode", "told"), [("linear", False), ("cubic", True)])
def test_what_another_mode_alone_looks_at_is_no_mutant(mode: str, told: bool) -> None:
    resize = f'y = Resize <mode: string = "{mode}", cubic_coeff_a: float = -0.75> (x, , , sizes)'
    graph = f"g (float[1,1,2,2] x) => (float[1,1,4,4] y) <int64[4] sizes = {{1,1,4,4}}> {{ {resize} }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {graph}')
    values = {"x": np.zeros((1, 1, 2, 2), "float32"), "y": np.zeros((1, 1, 4, 4), "float32")}
    made = mutants(model, values, {"sizes": np.array([1, 1, 4, 4])}, 0)
    assert ("cubic_coeff_a changed" in {m.what for m in made}) == told
    assert "mode changed" in {m.what for m in made}


def test_nodes_that_compute_come_before_those_that_count_sizes(tmp_path: Path) -> None:
    model = Mixed().eval()
    path = scripted(model, IDS, tmp_path / "m.onnx", axes={"x": {0: "rows", 1: "length"}}, fold=False)
    with bench_of(model, IDS, path) as bench:
        proto, every = every_mutant(bench)
    telling = with_values(proto.graph)
    first = sample(proto.graph, every, 20, 0)
    assert {m.node for m in first} <= telling
    assert len({m.node for m in first}) > 10
    assert [m.what for m in sample(proto.graph, every, 20, 0)] == [m.what for m in first]


def test_a_mutant_that_no_trial_tells_apart_is_left(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(6, 6), nn.ReLU6()).eval()
    args = (torch.randn(2, 6),)
    with bench_of(model, args, scripted(model, args, tmp_path / "m.onnx")) as bench:
        with laid_open(bench.sides) as inside:
            held = {s.name: s.values() for s in stored(inside.model, tmp_path)}
            values = {**inside.values(args), "x": args[0].numpy()}
            every = mutants(inside.model, {n: v for n, v in values.items() if n not in held}, held, 0)
        small = judge(bench, TrialPlan({}, "example", given=args), args)
        large = judge(bench, TrialPlan({}, "large", 1), bench.sides.bound.vary({}, "large", 1))
        with opened(bench, [m for m in every if m.what == "constant moved"], small, None) as flock:
            (upper,) = [n for n, m in enumerate(flock.mutants) if "Clip" in m.label and n in flock.left(bench, [small])]
            assert upper not in flock.left(bench, [small, large])


@pytest.mark.parametrize(("work", "number"), [(1, 96), (10_000, 2), (10_000_000, 0)])
def test_a_costly_file_has_fewer_mutants(work: int, number: int) -> None:
    graph = onnx.parser.parse_graph("g (float[1] x, float[1] w) => (float[1] y) { y = MatMul(x, w) }")
    values = {"x": np.zeros((1, work), "float32"), "y": np.zeros((100_000, 1), "float32") if work > 1 else np.zeros(1, "float32")}
    assert affordable(graph, values, {})[0] == number
