"""What torch says of models that it refuses, provoked, and read as the door reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim, export

from torchferry.foreign import torch_messages as door


def raised(call: Callable[[], Any]) -> tuple[str, str]:
    """Return the class and the words of what a call raises, and of what that came from."""
    with pytest.raises(Exception) as told:  # noqa: PT011
        call()
    error: BaseException | None = told.value
    texts = []
    while error is not None:
        texts.append(str(error))
        error = error.__cause__ or error.__context__
    return type(told.value).__name__, "\n".join(texts)


class Fixes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(4, -1)[:, : int(x.shape[1] // x.shape[1])] + x.sum() if x.shape[0] == 4 else x


class Asks(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x - 1


class Counts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        def more(y: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return y + 1

        return torch.cond(x.sum() > 0, more, torch.sin, (x,))


def without_gradients() -> None:
    with torch.no_grad():
        x = torch.ones(2).requires_grad_()
        torch.autograd.grad(x.sum(), x)


@torch.jit.script
def scripted(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x @ y


def test_a_gradient_that_was_not_recorded() -> None:
    assert door.needs_gradients(raised(without_gradients)[1])


def test_a_size_that_was_fixed() -> None:
    name, text = raised(lambda: export(Fixes(), (torch.ones(4, 3),), dynamic_shapes=({0: Dim("n"), 1: None},), strict=False))
    assert door.fixes_a_size(text)
    assert not door.needs_values(name, text)


def test_a_value_that_was_asked_for() -> None:
    name, text = raised(lambda: export(Asks(), (torch.ones(4),), strict=False))
    assert door.needs_values(name, text)
    assert not door.fixes_a_size(text)


def test_an_attribute_that_the_side_of_a_branch_changes() -> None:
    text = raised(lambda: export(Counts(), (torch.ones(4),), strict=False))[1]
    assert door.changed_attribute(text) == "calls"


def test_an_index_past_the_rows_of_a_table() -> None:
    assert door.past_the_rows(raised(lambda: nn.Embedding(3, 2)(torch.tensor([5])))[1])


PAST_THE_END: list[Callable[[], Any]] = [
    lambda: nn.Embedding(3, 2)(torch.tensor([5])),
    lambda: torch.ones(3)[torch.tensor([5])],
    lambda: torch.ones(3).gather(0, torch.tensor([5])),
    lambda: torch.ones(3).select(0, 5),
    lambda: torch.ones(3).narrow(0, 2, 5),
    lambda: torch.ones(3).index_add(0, torch.tensor([5]), torch.ones(1)),
    lambda: nn.utils.rnn.pack_padded_sequence(torch.ones(1, 3, 2), torch.tensor([0]), batch_first=True),
    lambda: [1, 2, 3][torch.tensor(5)],
]


@pytest.mark.parametrize("call", PAST_THE_END)
def test_what_may_be_an_index_past_an_end(call: Callable[[], Any]) -> None:
    assert door.may_be_past_an_end(raised(call)[1])


def test_what_cannot_be_an_index_past_an_end() -> None:
    assert not door.may_be_past_an_end(raised(lambda: torch.ones(2, 3) @ torch.ones(2, 3))[1])


@pytest.mark.parametrize("layer", [nn.Conv1d(3, 2, 1), nn.Conv2d(3, 2, 1), nn.ConvTranspose1d(3, 2, 1)])
def test_another_number_of_channels(layer: nn.Module) -> None:
    sizes = (1, 4, 5, 5) if isinstance(layer, nn.Conv2d) else (1, 4, 5)
    assert door.wants_channels(raised(lambda: layer(torch.ones(sizes)))[1])


class HandsToNumpy(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.detach().numpy() * 2)


class TakesAnAddress(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + x.data_ptr()


class ReadsAnArray(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x)  # type: ignore[arg-type]


@torch.library.custom_op("torchferry_door::halved", mutates_args=(), schema="(Tensor x) -> Tensor")
def halved(x: torch.Tensor) -> torch.Tensor:
    return x / 2


THIRDS = torch.library.Library("torchferry_door", "FRAGMENT")
THIRDS.define("third(Tensor x) -> Tensor")
THIRDS.impl("third", lambda x: x / 3, "CPU")


class Calls(nn.Module):
    def __init__(self, operator: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.operator = operator

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.operator(x)


@pytest.mark.parametrize("model", [HandsToNumpy(), TakesAnAddress(), ReadsAnArray()], ids=lambda m: type(m).__name__)
def test_a_tensor_that_leaves_torch(model: nn.Module) -> None:
    assert door.leaves_torch(raised(lambda: export(model, (torch.ones(4),), strict=False))[1])


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", ["halved", "third"])
def test_an_operator_without_a_fake_kernel(name: str, strict: bool) -> None:
    operator = halved if name == "halved" else torch.ops.torchferry_door.third
    text = raised(lambda: export(Calls(operator), (torch.ones(4),), strict=strict))[1]
    assert door.operator_without_fake_kernel(text) == f"torchferry_door::{name}"


def test_a_function_of_quantised_tensors() -> None:
    packed = torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8)
    assert door.quantised_function(raised(packed.sin)[1]) == "from the 'QuantizedCPU'"
    assert door.quantised_function(raised(lambda: torch.ops.quantized.add_relu(torch.ones(2), torch.ones(2), 1.0, 0))[1])
    assert door.quantised_function(str(torch.ops.aten.quantize_per_channel.default)) == "quantize_per_channel"


@pytest.mark.parametrize("indices", [nn.Embedding(3, 2), torch.ones(3).__getitem__])
def test_indices_that_are_floats(indices: Callable[[torch.Tensor], Any]) -> None:
    text = raised(lambda: indices(torch.ones(2)))[1]
    assert door.wants_indices(text)
    assert door.wants_another_dtype(text)


DOUBLE = torch.ones(1, 4, 4, dtype=torch.float64)
OTHER_DTYPES: list[Callable[[], Any]] = [
    lambda: nn.Linear(4, 2)(DOUBLE),
    lambda: nn.Conv1d(4, 2, 1)(DOUBLE),
    lambda: torch.bmm(DOUBLE, torch.ones(1, 4, 4)),
    lambda: torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.int64),
    lambda: torch.ones(3, dtype=torch.int64).softmax(0),
    lambda: torch.nn.functional.scaled_dot_product_attention(DOUBLE, torch.ones(1, 4, 4), DOUBLE),
]


@pytest.mark.parametrize("call", OTHER_DTYPES)
def test_another_dtype(call: Callable[[], Any]) -> None:
    text = raised(call)[1]
    assert door.wants_another_dtype(text)
    assert not door.wants_indices(text)
    assert not door.wants_another_device(text)


@pytest.mark.parametrize(
    "call", [lambda: torch.ones(2, device="meta") * torch.ones(2), lambda: nn.Linear(4, 2)(torch.ones(2, 4, device="meta"))]
)
def test_another_device(call: Callable[[], Any]) -> None:
    text = raised(call)[1]
    assert door.wants_another_device(text)
    assert not door.wants_another_dtype(text)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a device to be had")
def test_a_device_that_is_not_there() -> None:
    assert door.lacks_device(raised(lambda: torch.ones(2, device="cuda"))[1])


def test_the_line_that_tells_what_was_wrong() -> None:
    assert "mat1 and mat2" in door.telling_line(raised(lambda: scripted(torch.ones(2, 3), torch.ones(2, 3)))[1])
    assert door.telling_line("\nfirst\nsecond") == "first"


def test_words_of_others_tell_nothing() -> None:
    text = "ValueError: no such thing"
    assert door.changed_attribute(text) is None
    asked = (
        door.needs_gradients, door.fixes_a_size, door.past_the_rows, door.wants_channels, door.leaves_torch, door.wants_indices,
        door.wants_another_dtype, door.wants_another_device, door.lacks_device,
    )  # fmt: skip
    assert not any(ask(text) for ask in asked)
    assert door.operator_without_fake_kernel(text) is door.quantised_function(text) is None
    assert not door.needs_values("ValueError", text)
