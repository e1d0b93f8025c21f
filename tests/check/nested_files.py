"""Small files that are broken inside: in the branches of an If, the body of a Loop, a function of the model's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from broken_files import FED, Broken, T, W, broken, model, node, saved, value, weights
from onnx import helper, numpy_helper


def part(nodes: Any, inputs: Any, outputs: Any, stored: Any = (), name: str = "part") -> Any:
    return helper.make_graph(nodes, name, inputs, outputs, [numpy_helper.from_array(np.asarray(a), n) for n, a in stored])


def looped(body: Any, start: str, stored: Any = ()) -> Any:
    counted = [("turns", np.array(2)), ("go", np.array(True)), *stored]
    vector = [value(n, T.FLOAT, [3]) for n in "xy"]
    return model([node("Loop", ["turns", "go", start], ["y"], body=body, name="the_loop")], vector[:1], vector[1:], counted)


def turn(nodes: Any, kind: int) -> Any:
    inputs = [value("i", T.INT64, []), value("c", T.BOOL, []), value("t", T.FLOAT, [3])]
    return part([node("Identity", ["c"], ["c2"]), *nodes], inputs, [value("c2", T.BOOL, []), value("t2", kind, [3])])


@broken
def a_sum_that_begins_as_a_whole_number() -> Broken:
    body = turn([node("Add", ["t", "x"], ["t2"])], T.FLOAT)
    return Broken(saved(looped(body, "zero", [("zero", np.zeros(3, np.int64))])), [{"x": weights(3)}], lambda f: [2 * f["x"]])


@broken
def a_body_that_gives_double() -> Broken:
    body = turn([node("Cast", ["t"], ["d"], to=T.DOUBLE), node("Add", ["d", "d"], ["t2"])], T.DOUBLE)
    return Broken(saved(looped(body, "x")), [{"x": weights(3)}], lambda f: [4 * f["x"]])


@broken
def one_value_as_condition_and_as_choice() -> Broken:
    flags = [value(n, T.BOOL, ["N"]) for n in "aby"]
    fed = {"a": np.array([True, False]), "b": np.array([False, True])}
    made = model([node("Where", ["a", "b", "a"], ["y"], name="pick")], flags[:2], flags[2:])
    return Broken(saved(made), [fed], lambda f: [np.where(f["a"], f["b"], f["a"])])


@broken
def a_withdrawn_operator_in_a_branch() -> Broken:
    scales = [("scales", np.array([1, 1, 2, 2], np.float32))]
    larger = part([node("Upsample", ["x", "scales"], ["l"], mode="nearest")], [], [value("l", T.FLOAT, None)], scales)
    same = part([node("Identity", ["x"], ["s"])], [], [value("s", T.FLOAT, None)])
    made = model(
        [node("If", ["c"], ["y"], then_branch=larger, else_branch=same)],
        [value("x", T.FLOAT, ["N", 1, 2, 2]), value("c", T.BOOL, [])],
        [value("y", T.FLOAT, None)],
        opset=13,
    )
    fed = {"x": weights(1, 1, 2, 2), "c": np.array(True)}
    return Broken(saved(made), [fed], lambda f: [f["x"].repeat(2, 2).repeat(2, 3)])


def calling(nodes: Any, opset: int, own: int = 18) -> Any:
    """Return a model that calls a function stamped with an opset of its own."""
    made = model([node("Act", ["x"], ["y"], domain="my", name="call")], [value("x", T.FLOAT, ["N", 4])],
                 [value("y", T.FLOAT, ["N", 4])], opset=own, extra=[("my", 1)])  # fmt: skip
    made.functions.append(helper.make_function("my", "Act", ["a"], ["b"], nodes, [helper.make_opsetid("", opset)]))
    return made


@broken
def a_function_stamped_too_old() -> Broken:
    gelu = torch.nn.functional.gelu
    made = calling([node("Gelu", ["a"], ["b"])], 13, 13)
    return Broken(saved(made), FED, lambda f: [gelu(torch.from_numpy(f["x"])).numpy()])


@broken
def a_function_stamped_too_new() -> Broken:
    return Broken(saved(calling([node("Relu", ["a"], ["b"])], 99)), FED, lambda f: [np.maximum(f["x"], 0)])


@broken
def a_failure_inside_an_operator_that_is_a_function() -> Broken:
    stored = [("scale", np.ones(4, np.float32)), ("bias", np.ones(4, np.float32))]  # one each for a channel, as opset 21 has it
    image = [value(n, T.FLOAT, ["N", 4, 3]) for n in "xy"]
    nodes = [
        node("Mul", ["x", "x"], ["squares"], name="innocent"),
        node("GroupNormalization", ["squares", "scale", "bias"], ["y"], num_groups=2, name="norm"),
    ]
    return Broken(saved(model(nodes, image[:1], image[1:], stored)), [{"x": weights(2, 4, 3)}], names="`norm`")


@broken
def weights_of_a_branch_under_an_absolute_path() -> Broken:
    def build(path: Path) -> None:
        (path.parent / "branch.bin").write_bytes(W.tobytes())
        tensor = onnx.TensorProto(name="w", data_type=T.FLOAT, dims=W.shape, data_location=T.EXTERNAL)
        tensor.external_data.add(key="location", value="/home/somebody/branch.bin")
        times = helper.make_graph([node("MatMul", ["x", "w"], ["t"])], "times", [], [value("t", T.FLOAT, None)], [tensor])
        summed = part([node("ReduceSum", ["x"], ["s"])], [], [value("s", T.FLOAT, None)])
        made = model(
            [node("If", ["c"], ["y"], then_branch=times, else_branch=summed)],
            [value("x", T.FLOAT, ["N", 4]), value("c", T.BOOL, [])],
            [value("y", T.FLOAT, None)],
        )
        path.write_bytes(made.SerializeToString())

    return Broken(build, [{**FED[0], "c": np.array(True)}], lambda f: [f["x"] @ W])


@broken
def numbers_that_the_type_with_a_kernel_cannot_hold() -> Broken:
    scales = [("scales", np.array([1, 1, 2, 2], np.float32))]
    image = [value(n, T.INT64, ["N", 1, "h", "w"]) for n in "xy"]
    resize = node("Resize", ["x", "", "scales"], ["y"], mode="nearest", name="larger")
    fed = {"x": np.array([[[[1, 2**40]]]])}
    return Broken(saved(model([resize], image[:1], image[1:], scales)), [fed], names="`larger`")


@broken
def conditions_that_are_whole_numbers() -> Broken:
    inputs = [value("x", T.FLOAT, ["N"]), value("a", T.INT64, ["N"]), value("b", T.INT64, ["N"])]
    both = [node("And", ["a", "b"], ["keep"], name="both"), node("Where", ["keep", "x", "zero"], ["y"])]
    made = model(both, inputs, [value("y", T.FLOAT, ["N"])], [("zero", np.array(0, np.float32))])
    fed = {"x": weights(4), "a": np.array([1, 1, 0, 0]), "b": np.array([2, 0, 1, 0])}
    return Broken(saved(made), [fed], lambda f: [f["x"] * (f["a"] != 0) * (f["b"] != 0)])


@broken
def a_batch_baked_into_a_function() -> Broken:
    body = [node("Constant", [], ["sizes"], value_ints=[1, 12]), node("Reshape", ["a", "sizes"], ["b"], name="flat")]
    function = helper.make_function("own", "Flat", ["a"], ["b"], body, [helper.make_opsetid("", 18)])
    stem = [node("Flat", ["x"], ["h"], domain="own"), node("MatMul", ["h", "w"], ["y"])]
    outputs = [value("y", T.FLOAT, [1, 2])]
    made = model(stem, [value("x", T.FLOAT, [1, 3, 4])], outputs, [("w", weights(12, 2))], extra=[("own", 1)])
    made.functions.append(function)
    return Broken(saved(made), [{"x": weights(3, 3, 4)}], lambda f: [f["x"].reshape(-1, 12) @ weights(12, 2)])


@broken
def a_constant_in_a_node_with_too_few_bytes() -> Broken:
    short = numpy_helper.from_array(weights(3, 2))
    short.dims[:] = [4, 2]
    nodes = [node("Constant", [], ["w"], value=short, name="the_weights"), node("MatMul", ["x", "w"], ["y"])]
    return Broken(saved(model(nodes, [value("x", T.FLOAT, ["N", 4])], [value("y", T.FLOAT, ["N", 2])])), FED, names="the_weights")
