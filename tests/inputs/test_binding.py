"""Whatever torch.onnx.export takes is bound to the model's parameters, and flattened."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from torchferry import eager
from torchferry.errors import UsageError
from torchferry.inputs import bind
from torchferry.inputs.sizes.discover import table
from torchferry.records import Bound, Case, Dim, Job, Step
from torchferry.records.findings import ComplexOutput, NoTensorOutput, NumpyArrayTaken, OutputLeftOut


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 2)

    def encode(self, x: torch.Tensor, *, scale: float = 1.0) -> torch.Tensor:
        return self.fc(x) * scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.encode(x)


NET = Net().eval()
X = torch.randn(3, 4)


def step(job: Job) -> Step:
    return bind(Case(job))


def bound(job: Job) -> Bound:
    answer = step(job)
    assert answer.fault is None, answer.fault
    return answer.value


def names(found: Bound) -> list[str]:
    return [s.name for s in found.signature.inputs]


class Pipe:
    def __init__(self) -> None:
        self.net = NET

    def run(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def call_net(x: torch.Tensor) -> torch.Tensor:
    return NET(x)


MODELS = {
    "module": NET,
    "data parallel": torch.nn.DataParallel(NET),
    "compiled": torch.compile(NET, backend="eager"),
    "partial": functools.partial(NET.encode, scale=1.0),
    "method": NET.encode,
    "function": call_net,
    "method of an object": Pipe().run,
    "script": torch.jit.script(torch.nn.Sequential(NET.fc)),
}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())
def test_the_model_is_found_behind_what_it_is_wrapped_in(model: Any) -> None:
    found = bound(Job(model, (X,)))
    assert found.outputs == ("output",)
    assert torch.allclose(eager.call(found.module, (X,))[0], NET(X))


@pytest.mark.parametrize(
    "args", [X, (X,), [X], {"x": X}, (X, {}), ({"x": X},)], ids=["tensor", "tuple", "list", "dict", "empty dict", "dict last"]
)
def test_arguments_are_taken_in_every_form(args: Any) -> None:
    found = bound(Job(NET, args))
    assert names(found) == ["x"]
    assert found.signature.inputs[0].shape == ("batch_size", 4)


def test_a_dict_that_is_a_real_argument_stays_one() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            return x + batch["y"]

    assert names(bound(Job(Model(), (X, {"y": X})))) == ["x", "batch.y"]


def test_variable_arguments_are_named() -> None:
    class Model(torch.nn.Module):
        def forward(self, *xs: torch.Tensor, **more: torch.Tensor) -> torch.Tensor:
            return torch.cat(xs, 1) * more["weight"]

    found = bound(Job(Model(), (X, X), {"weight": torch.tensor(2.0)}))
    assert names(found) == ["xs.0", "xs.1", "weight"]
    program = torch.export.export(found.module, found.args, dynamic_shapes=found.dynamic_shapes)
    assert torch.equal(program.module()(*found.args)[0], torch.cat([found.args[0], found.args[1]], 1) * 2)


def test_an_exported_program_and_its_file_are_taken(tmp_path: Path) -> None:
    program = torch.export.export(NET, (X,), dynamic_shapes={"x": {0: torch.export.Dim("n")}})
    torch.export.save(program, tmp_path / "net.pt2")
    given = bound(Job(program, ()))
    loaded = bound(Job(tmp_path / "net.pt2", (X,), trust=True))
    assert names(given) == names(loaded) == ["x"]
    for found in (given, loaded):
        assert torch.allclose(eager.call(found.module, (X,))[0], NET(X))


def test_the_flat_module_shares_its_state_with_its_copy_only() -> None:
    found = bound(Job(MODELS["function"], (X,)))
    other = eager.fresh(found.module)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    assert not torch.equal(eager.call(found.module, (X,))[0], eager.call(other, (X,))[0])


def test_fewer_names_than_inputs_and_outputs_go_to_the_first() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"sum": x + y, "difference": x - y}

    found = bound(Job(Model(), (X, X), input_names=("first",), output_names=("total",)))
    assert names(found) == ["first", "y"]
    assert found.outputs == ("total", "difference")


def test_an_output_named_like_an_input_gets_another_name() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"x": x * 2}

    assert bound(Job(Model(), (X,))).outputs == ("x_out",)


def test_numbers_in_outputs_are_tensors_and_complex_ones_pairs() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[Any, ...]:
            return x.shape[0], 0.5, True, torch.complex(x, x), "text", None

    answer = step(Job(Model(), (X,)))
    outputs = eager.call(answer.value.module, (X,))
    assert [o.dtype for o in outputs] == [torch.int64, torch.float32, torch.bool, torch.float32]
    assert outputs[3].shape == (3, 4, 2)
    assert {type(f) for f in answer.findings} == {ComplexOutput, OutputLeftOut}


def test_complex_inputs_are_fed_as_pairs() -> None:
    found = bound(Job(lambda z: z * 2, (torch.randn(2, 3, dtype=torch.complex64),)))
    assert found.signature.inputs[0].dtype == "float32"
    assert found.args[0].shape[-1] == 2


def test_numpy_arrays_are_taken_with_a_note() -> None:
    answer = step(Job(NET, (np.ones((3, 4), dtype=np.float32),)))
    assert [type(f) for f in answer.findings] == [NumpyArrayTaken]


def test_numbers_are_fixed_and_said_so() -> None:
    answer = step(Job(NET.encode, (X,), {"scale": 2.0}))
    assert answer.value.signature.fixed == {"scale": "2.0"}


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (Job(NET, ()), "needs an example input"),
        (Job(NET, (X, X)), "too many positional arguments"),
        (Job(NET, (), {"xs": X}), "no parameter `xs` (did you mean `x`?)"),
        (Job(Net, (X,)), "`Net` is a class"),
        (Job({}, (X,)), "weights alone are not a model: build it"),
        (Job("weights.pt", (X,)), "cannot take `weights.pt`"),
        (Job(NET, (X,), input_names=("a", "b")), "input_names has 2 names"),
        (Job(NET, (X,), output_names=("a", "b")), "output_names has 2 names"),
        (Job(NET, (X,), output_names=("x",)), "name of an input and of an output"),
        (Job(NET, (X,), input_names=("x",), dynamic_axes={"xs": {0: "n"}}), "did you mean `x`?"),
        (Job(NET, (X,), dynamic_axes={"x": {5: "n"}}), "has 2 axes"),
        (Job(NET, (X,), dynamic_axes={"x": 3}), "a dict {axis: name} or a list"),
        (Job(NET, (X,), dynamic_shapes={"y": {0: "n"}}), "names `y`, which is no input"),
        (Job(NET, (X,), dynamic_shapes=((7, None),)), "says that `x[0]` is 7, but the example has 3"),
        (Job(NET, (X,), dynamic_shapes=({0: torch.export.Dim("n", min=8, max=9)},)), "outside of `n` (8..9)"),
        (Job(NET, (X,), dynamic_shapes="all"), 'None or "none"'),
        (Job(NET, (X,), dynamic_shapes=({0: "n"},), dynamic_axes={"x": [0]}), "not both"),
        (Job(NET, (X,), ranges={"batch": (1, 8)}), "did you mean `batch_size`?"),
        (Job(NET, (X,), ranges={"batch_size": (8, 16)}), "outside of the range 8..16"),
        (Job(NET, (X,), ranges={"batch_size": (8, 2)}), "is empty"),
        (Job(torch.cdist, (X, torch.randn(5, 4)), dynamic_shapes=({0: "n"}, {0: "n"})), "`n` stands for two sizes"),
    ],
    ids=lambda v: "" if isinstance(v, Job) else str(v)[:30],
)
def test_a_call_that_makes_no_sense_is_refused_in_words(job: Job, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        step(job)
    assert words in str(raised.value)
    assert len(str(raised.value)) < 250


def test_the_model_and_the_generators_are_left_as_they_were() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))
            self.history: list[int] = []

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            self.history.append(1)
            return x + torch.rand(())

    model = Counter().train()
    state = torch.get_rng_state()
    bound(Job(model, (X,)))
    assert model.calls == 0
    assert model.history == []
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)


def test_a_size_in_what_the_model_said_stays_as_it_was_said() -> None:
    dim = Dim("length", 1, 32, why="tensor a (128) is too long")
    (line,) = table(("ids",), (("length",),), (dim,), (("",),))
    assert line == "length = ids[0] (1..32: tensor a (128) is too long)"


def test_a_scripted_models_reason_is_what_went_wrong_and_not_where() -> None:
    scripted = torch.jit.script(torch.nn.Sequential(torch.nn.Linear(10, 4)))
    spec = step(Job(scripted, (torch.ones(2, 10),))).value.signature.inputs[0]
    assert "shapes cannot be multiplied" in spec.why[1]


@pytest.mark.parametrize("answer", [None, "yes", {"label": "yes"}])
def test_a_model_that_returns_no_tensor_is_told_before_anything_else(answer: Any) -> None:
    class Silent(torch.nn.Module):
        def forward(self, x):
            return answer if x.sum() > 0 else None

    told = step(Job(Silent(), (X,)))
    assert told.value is None
    assert [type(f) for f in told.findings] == [NoTensorOutput]
