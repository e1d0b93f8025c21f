"""Small files that are broken each in one way, with feeds and what they should give once mended (None: nothing can)."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from math import erf
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

node = helper.make_node
F32, I64 = np.float32, np.int64


@dataclass(frozen=True)
class Broken:
    """A way to build the file, feeds for it, the right outputs (None: there are none), and how near they must come."""

    build: Callable[[Path], Any]
    feeds: list[dict[str, Any]]
    right: Callable[[dict[str, Any]], list[Any]] | None = None
    names: str = ""  # what a diagnosis must name when nothing can be mended
    guess: bool = False  # nothing shows the mend to be right: it is made only when asked for, and is never ok
    rtol: float = 1e-3
    file_name: str = "model.onnx"


BROKEN: dict[str, Callable[[], Broken]] = {}


def broken(make: Callable[[], Broken]) -> Callable[[], Broken]:
    BROKEN[make.__name__] = make
    return make


def value(name: str, kind: int, shape: Any) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model(
    nodes: Any, inputs: Any, outputs: Any, stored: Any = (), *, opset: int = 18, ir: int = 9, extra: Any = (), said: Any = ()
) -> Any:
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in stored]
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), tensors, value_info=list(said))
    made = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in extra)]
    )
    made.ir_version = ir
    return made


def saved(made: Any) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(made.SerializeToString())


def weights(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(F32)


X = value("x", T.FLOAT, ["N", 4])
W = weights(4, 2)
FED = [{"x": weights(3, 4, seed=1)}]


def linear(**more: Any) -> Any:
    return model([node("MatMul", ["x", "w"], ["y"], name="mm")], [X], [value("y", T.FLOAT, ["N", 2])], [("w", W)], **more)


def times_w(feed: dict[str, Any]) -> list[Any]:
    return [np.asarray(feed["x"], F32) @ W]


def with_data_file(path: Path, location: str | None = None) -> None:
    onnx.save_model(linear(), str(path), save_as_external_data=True, location=path.name + ".data", size_threshold=0)
    if location is not None:
        made = onnx.load(str(path), load_external_data=False)
        for entry in made.graph.initializer[0].external_data:
            entry.value = location if entry.key == "location" else entry.value
        path.write_bytes(made.SerializeToString())


@broken
def ort_format_under_another_name() -> Broken:
    def build(path: Path) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        options.optimized_model_filepath = str(path) + ".ort"
        options.add_session_config_entry("session.save_model_format", "ORT")
        onnxruntime.InferenceSession(linear().SerializeToString(), options, providers=["CPUExecutionProvider"])
        os.replace(str(path) + ".ort", path)

    return Broken(build, FED, times_w)


@broken
def onnx_named_ort() -> Broken:
    return Broken(saved(linear()), FED, times_w, file_name="model.ort")


@broken
def data_file_renamed() -> Broken:
    def build(path: Path) -> None:
        with_data_file(path)
        path.with_name("model.onnx.data").rename(path.with_name("weights.bin"))

    return Broken(build, FED, times_w, guess=True)


@broken
def data_file_with_backslash() -> Broken:
    def build(path: Path) -> None:
        with_data_file(path, "data\\w.bin")
        path.with_name("data").mkdir()
        path.with_name("model.onnx.data").rename(path.with_name("data") / "w.bin")

    return Broken(build, FED, times_w)


@broken
def data_file_outside() -> Broken:
    return Broken(lambda path: with_data_file(path, "../../etc/passwd"), FED, names="etc/passwd")


@broken
def one_of_two_data_files_missing() -> Broken:
    stored = [("first", weights(4, 4)), ("second", weights(4, 4, seed=2))]
    nodes = [node("MatMul", ["x", "first"], ["h"]), node("MatMul", ["h", "second"], ["y"])]

    def build(path: Path) -> None:
        made = model(nodes, [X], [value("y", T.FLOAT, ["N", 4])], stored)
        onnx.save_model(made, str(path), save_as_external_data=True, all_tensors_to_one_file=False, size_threshold=0)
        (path.parent / "second").unlink()  # the other is of the very size

    return Broken(build, FED, names="`second`")


@broken
def newest_helper_stamps() -> Broken:
    return Broken(saved(linear(opset=28, ir=14)), FED, times_w)


@broken
def broadcast_with_axis_of_opset_6() -> Broken:
    bias, kernel = weights(2, seed=3), weights(2, 1, 1, 1)
    nodes = [node("Conv", ["x", "k"], ["c"]), node("Add", ["c", "b"], ["y"], broadcast=1, axis=1, name="bias")]
    made = model(
        nodes,
        [value("x", T.FLOAT, ["N", 1, 4, 4])],
        [value("y", T.FLOAT, ["N", 2, 4, 4])],
        [("k", kernel), ("b", bias)],
        opset=6,
        ir=3,
    )
    made.graph.input.extend([value("k", T.FLOAT, [2, 1, 1, 1]), value("b", T.FLOAT, [2])])
    right = lambda f: [f["x"] * kernel.reshape(1, 2, 1, 1) + bias.reshape(1, 2, 1, 1)]  # noqa: E731
    return Broken(saved(made), [{"x": weights(2, 1, 4, 4, seed=1)}], right)


@broken
def axes_as_attribute_stamped_17() -> Broken:
    made = model([node("ReduceSum", ["x"], ["y"], axes=[1], keepdims=0)], [X], [value("y", T.FLOAT, ["N"])], opset=17)
    return Broken(saved(made), FED, lambda f: [f["x"].sum(1)])


@broken
def upsample_among_newer_forms() -> Broken:
    nodes = [node("Upsample", ["x", "s"], ["u"], mode="nearest", name="up"), node("ReduceSum", ["u", "a"], ["y"], keepdims=0)]
    stored = [("s", np.array([1, 1, 2, 2], F32)), ("a", np.array([3]))]
    made = model(nodes, [value("x", T.FLOAT, ["N", 1, 2, 2])], [value("y", T.FLOAT, ["N", 1, 4])], stored, opset=13)
    return Broken(saved(made), [{"x": weights(1, 1, 2, 2)}], lambda f: [f["x"].repeat(2, 2).repeat(2, 3).sum(3)])


@broken
def erf_of_doubles() -> Broken:
    made = model([node("Erf", ["x"], ["y"])], [value("x", T.DOUBLE, ["N"])], [value("y", T.DOUBLE, ["N"])])
    return Broken(saved(made), [{"x": weights(4).astype(np.float64)}], lambda f: [np.vectorize(erf)(f["x"])])


@broken
def resize_of_int64() -> Broken:
    up = node(
        "Resize",
        ["x", "", "s"],
        ["y"],
        mode="nearest",
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
        name="up",
    )
    made = model(
        [up], [value("x", T.INT64, ["N", 1, 2, 2])], [value("y", T.INT64, ["N", 1, 4, 4])], [("s", np.array([1, 1, 2, 2], F32))]
    )
    return Broken(saved(made), [{"x": np.arange(4).reshape(1, 1, 2, 2)}], lambda f: [f["x"].repeat(2, 2).repeat(2, 3)])


@broken
def eye_of_bools() -> Broken:
    nodes = [node("EyeLike", ["x"], ["e"], dtype=T.BOOL, name="eye"), node("Cast", ["e"], ["y"], to=T.FLOAT)]
    made = model(nodes, [value("x", T.FLOAT, ["N", "N"])], [value("y", T.FLOAT, ["N", "N"])])
    return Broken(saved(made), [{"x": weights(3, 3)}], lambda f: [np.eye(3, dtype=F32)])


@broken
def bfloat16_throughout() -> Broken:
    w = W.astype(ml_dtypes.bfloat16)
    nodes = [node("MatMul", ["x", "w"], ["h"], name="mm"), node("Relu", ["h"], ["y"], name="relu")]
    made = model(nodes, [value("x", T.BFLOAT16, ["N", 4])], [value("y", T.BFLOAT16, ["N", 2])], [("w", w)])
    right = lambda f: [np.maximum(f["x"].astype(F32) @ w.astype(F32), 0)]  # noqa: E731
    return Broken(saved(made), [{"x": FED[0]["x"].astype(ml_dtypes.bfloat16)}], right, rtol=0.05)


@broken
def half_model_with_a_float_constant() -> Broken:
    made = model(
        [node("Mul", ["x", "k"], ["y"])],
        [value("x", T.FLOAT16, ["N", 4])],
        [value("y", T.FLOAT16, ["N", 4])],
        [("k", np.array(0.1, F32))],
    )
    return Broken(saved(made), [{"x": weights(3, 4).astype(np.float16)}], lambda f: [f["x"] * np.float16(0.1)])


@broken
def inner_type_declared_wrong() -> Broken:
    nodes = [node("Cast", ["x"], ["h"], to=T.INT64), node("Cast", ["h"], ["y"], to=T.FLOAT)]
    made = model(nodes, [X], [value("y", T.FLOAT, ["N", 4])], said=[value("h", T.INT32, ["N", 4])])
    return Broken(saved(made), FED, lambda f: [np.trunc(f["x"])])


@broken
def root_of_integers() -> Broken:
    made = model([node("Sqrt", ["x"], ["y"], name="root")], [value("x", T.INT64, ["N"])], [value("y", T.INT64, ["N"])])
    return Broken(saved(made), [{"x": np.array([4])}], names="root")


@broken
def dead_branch_on_a_fixed_size() -> Broken:
    then = helper.make_graph([node("Squeeze", ["x", "one"], ["t"])], "then", [], [value("t", T.FLOAT, None)])
    other = helper.make_graph([node("Identity", ["x"], ["e"])], "else", [], [value("e", T.FLOAT, ["N", 4])])
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Gather", ["s", "one"], ["d"]),
        node("Equal", ["d", "one"], ["c"]),
        node("If", ["c"], ["h"], then_branch=then, else_branch=other, name="choice"),
        node("MatMul", ["h", "w"], ["y"]),
    ]
    made = model(nodes, [X], [value("y", T.FLOAT, ["N", 2])], [("one", np.array([1])), ("w", W)], opset=13)
    return Broken(saved(made), FED, times_w)


@broken
def packed_with_bzip2() -> Broken:
    return Broken(lambda path: path.write_bytes(bz2.compress(linear().SerializeToString())), FED, times_w)


@broken
def packed_with_xz() -> Broken:
    return Broken(lambda path: path.write_bytes(lzma.compress(linear().SerializeToString())), FED, times_w)


@broken
def alone_in_a_tar() -> Broken:
    def build(path: Path) -> None:
        data = linear().SerializeToString()
        with tarfile.open(path, "w") as archive:
            entry = tarfile.TarInfo("export/model.onnx")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))

    return Broken(build, FED, times_w)


@broken
def data_file_in_a_folder_below() -> Broken:
    def build(path: Path) -> None:
        with_data_file(path)
        path.with_name("weights").mkdir()
        path.with_name("model.onnx.data").rename(path.with_name("weights") / "model.onnx.data")

    return Broken(build, FED, times_w, guess=True)


@broken
def forms_of_two_opsets_at_once() -> Broken:
    nodes = [
        node("Unsqueeze", ["x"], ["u"], axes=[1]),
        node("Clip", ["u"], ["c"], min=0.0, max=1.0),
        node("Slice", ["c"], ["s"], starts=[0], ends=[3], axes=[2]),
        node("Pad", ["s"], ["p"], pads=[0, 0, 1, 0, 0, 0], value=2.0),
        node("ReduceMean", ["p", "a"], ["y"], keepdims=0),
    ]
    made = model(nodes, [X], [value("y", T.FLOAT, ["N", 1])], [("a", np.array([2]))])
    return Broken(saved(made), FED, lambda f: [(np.clip(f["x"][:, :3], 0, 1).sum(1, keepdims=True) + 2) / 4])


@broken
def text_compared_under_an_old_opset() -> Broken:
    made = model(
        [node("Equal", ["a", "b"], ["y"])],
        [value("a", T.STRING, ["N"]), value("b", T.STRING, ["N"])],
        [value("y", T.BOOL, ["N"])],
        opset=13,
    )
    fed = {"a": np.array(["x", "y"], object), "b": np.array(["x", "z"], object)}
    return Broken(saved(made), [fed], lambda f: [np.array([True, False])])


@broken
def largest_of_integers() -> Broken:
    pool = node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], name="pool")
    made = model([pool], [value("x", T.INT32, ["N", 1, 2, 2])], [value("y", T.INT32, ["N", 1, 1, 1])])
    fed = {"x": np.array([[[[2**31 - 1, 2**31 - 2], [1, 2]]]], np.int32)}
    return Broken(saved(made), [fed], lambda f: [np.array([[[[2**31 - 1]]]])])


@broken
def condition_that_is_a_number() -> Broken:
    then = helper.make_graph([node("Neg", ["x"], ["t"])], "then", [], [value("t", T.FLOAT, ["N", 4])])
    other = helper.make_graph([node("Identity", ["x"], ["e"])], "else", [], [value("e", T.FLOAT, ["N", 4])])
    choice = node("If", ["c"], ["y"], then_branch=then, else_branch=other, name="choice")
    made = model([choice], [X, value("c", T.FLOAT, [])], [value("y", T.FLOAT, ["N", 4])])
    return Broken(saved(made), [{**FED[0], "c": np.array(1, F32)}], lambda f: [-f["x"]])


@broken
def sequence_fed_as_a_tuple_of_doubles() -> Broken:
    made = model([node("ConcatFromSequence", ["s"], ["y"], axis=0)], [], [value("y", T.FLOAT, None)])
    made.graph.input.append(helper.make_tensor_sequence_value_info("s", T.FLOAT, None))
    fed = {"s": (np.ones((1, 2)), np.zeros((2, 2), F32))}
    return Broken(saved(made), [fed], lambda f: [np.concatenate(f["s"])])


@broken
def input_declared_twice() -> Broken:
    made = linear()
    made.graph.input.append(made.graph.input[0])
    return Broken(saved(made), FED, names="x")
