"""What onnxruntime says of files and feeds that it refuses, provoked, and read as the door reads it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from torchferry.foreign import onnxruntime as ort
from torchferry.foreign import onnxruntime_messages as door

HEAD = '<ir_version: 8, opset_import: ["": 18]> g '
SHAPES = {
    "MatMul": "(float[2, 3] a, float[4, 5] b) => (float[n, m] y) { y = MatMul (a, b) }",
    "Add": "(float[2, 3] a, float[4] b) => (float[n, m] y) { y = Add (a, b) }",
    "Concat": "(float[2, 3] a, float[4, 5] b) => (float[n, m] y) { y = Concat <axis = 0> (a, b) }",
    "Squeeze": "(float[2, 3] a) => (float[m] y) <int64[1] s = {0}> { y = Squeeze (a, s) }",
}
TYPES = "(float[2] a, int64[2] b) => (float[n] y) { y = Add (a, b) }"
REFUSED_TYPE = "(bfloat16[n] a) => (bfloat16[n] y) { y = Acosh (a) }"
NO_KERNEL = "(double[n] a) => (double[n] y) { y = Acosh (a) }"
LARGE = "(int64[1] a) => (float[n] y) { y = ConstantOfShape (a) }"


def model(text: str) -> bytes:
    made = onnx.parser.parse_model(HEAD + text)
    made.graph.node[0].name = "culprit"
    return bytes(made.SerializeToString())


def refusal(text: str) -> str:
    with pytest.raises(Exception) as told:  # noqa: PT011  its own classes, one for each status
        ort.session(model(text))
    return str(told.value)


@pytest.mark.parametrize("op", SHAPES)
def test_shapes_that_do_not_go_together_are_told_with_their_node(op: str) -> None:
    text = refusal(SHAPES[op])
    assert door.about_shapes(text)
    assert door.node(text) == ("culprit", op)
    assert not door.lacks_kernel(text)
    assert door.memory_refused(text) is None


def test_types_that_do_not_go_together_are_told_with_their_node_and_are_no_matter_of_shapes() -> None:
    text = refusal(TYPES)
    assert door.node(text) == ("culprit", "")
    assert not door.about_shapes(text)


def test_a_missing_kernel_is_told_with_its_node_and_is_no_matter_of_shapes() -> None:
    text = refusal(NO_KERNEL)
    assert door.lacks_kernel(text)
    assert door.node(text) == ("culprit", "Acosh")
    assert not door.about_shapes(text)


def test_a_type_that_an_operator_does_not_take_is_no_missing_kernel() -> None:
    text = refusal(REFUSED_TYPE)
    assert door.refuses_type(text)
    assert not door.lacks_kernel(text)
    assert not door.refuses_type(refusal(NO_KERNEL))


def test_a_buffer_beyond_all_memory_is_told_with_its_node_and_size() -> None:
    session = ort.session(model(LARGE))
    with pytest.raises(Exception) as told:  # noqa: PT011
        ort.run(session, {"a": np.array([10**13])})
    text = str(told.value)
    assert door.arena_refuses(text)
    assert door.memory_refused(text) == (4 * 10**13,)
    assert door.node(text) == ("culprit", "ConstantOfShape")
    assert not door.about_shapes(text)


def test_a_weight_that_cannot_be_read_is_told_by_its_name() -> None:
    made = onnx.parser.parse_model(HEAD + "(float[2] a) => (float[2] y) <float[2] w = {1, 2}> { y = Add (a, w) }")
    weight = made.graph.initializer[0]
    del weight.float_data[:]
    weight.raw_data = b"\0" * 3
    with pytest.raises(Exception) as told:  # noqa: PT011
        ort.session(made.SerializeToString())
    assert door.tensor(str(told.value)) == "w"


def test_words_of_others_name_nothing() -> None:
    text = "ValueError: no such thing"
    assert door.node(text) is door.tensor(text) is door.memory_refused(text) is None
    assert not any(ask(text) for ask in (door.about_shapes, door.lacks_kernel, door.refuses_type, door.arena_refuses))
