"""What tensors and packed objects keep in C++, as the door has it."""

from __future__ import annotations

import pytest
import torch

from torchferry.foreign import torch_tensors as door


def test_a_write_is_counted_and_a_view_has_its_tensors_storage() -> None:
    tensor = torch.ones(4)
    before = door.times_written(tensor)
    tensor.add_(1)
    assert door.times_written(tensor) == before + 1
    assert door.storage_identity(tensor[1:]) == door.storage_identity(tensor)
    assert door.storage_identity(tensor.clone()) != door.storage_identity(tensor)


def test_quantised_tensors_are_made_of_whole_numbers() -> None:
    whole = torch.tensor([[1, 2], [3, 4]], dtype=torch.int8)
    assert door.quantised_tensor(whole, 0.5, 1).dequantize().tolist() == [[0.0, 0.5], [1.0, 1.5]]
    scales, zeros = torch.tensor([1.0, 10.0]), torch.tensor([0, 0])
    assert door.quantised_tensor_by_channel(whole, scales, zeros, 0).dequantize().tolist() == [[1.0, 2.0], [30.0, 40.0]]


def test_a_packed_object_tells_its_kind() -> None:
    weight = door.quantised_tensor(torch.ones(2, 2, dtype=torch.int8), 1.0, 0)
    assert door.packed_kind(torch.ops.quantized.linear_prepack(weight, None)).endswith(".quantized.LinearPackedParamsBase")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_script_module_tells_its_signature() -> None:
    assert [a.name for a in door.script_schema(torch.jit.script(torch.nn.ReLU())).arguments] == ["self", "input"]


def test_padding_a_sequence_is_the_function_that_torch_calls() -> None:
    seen: list[object] = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: object, types: object, args: tuple[object, ...] = (), kwargs: object = None) -> object:
            seen.append(func)
            return func(*args, **(kwargs or {}))  # type: ignore[operator, dict-item]

    with Mode():
        torch.nn.utils.rnn.pad_sequence([torch.ones(1), torch.ones(2)])
    assert door.pad_sequence in seen
