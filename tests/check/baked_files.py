"""Small files with the sizes of an example baked into them, and feeds of other sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from broken_files import F32, FED, I64, Broken, T, W, broken, model, node, saved, value, weights


def exported(make: Any, *shape: int, **options: Any) -> Any:
    def build(path: Path) -> None:
        torch.manual_seed(0)
        torch.onnx.export(make(), (torch.ones(shape),), str(path), input_names=["x"], output_names=["y"], **options)

    return build


def eager(make: Any) -> Any:
    def right(feed: dict[str, Any]) -> list[Any]:
        torch.manual_seed(0)
        with torch.no_grad():
            return [make()(torch.from_numpy(feed["x"])).numpy()]

    return right


class Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.MultiheadAttention(8, 2, batch_first=True)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, x, x, need_weights=False)[0]


@broken
def batch_in_the_signature_alone() -> Broken:
    made = model([node("MatMul", ["x", "w"], ["y"])], [value("x", T.FLOAT, [1, 4])], [value("y", T.FLOAT, [1, 2])], [("w", W)])
    return Broken(saved(made), FED, lambda f: [f["x"] @ W])


@broken
def batch_in_the_reshapes_of_attention() -> Broken:
    return Broken(exported(Attention, 1, 5, 8, dynamo=False), [{"x": weights(3, 5, 8)}], eager(Attention))


@broken
def batch_and_length_in_a_reshape() -> Broken:
    made = model(
        [node("Reshape", ["x", "t"], ["y"])],
        [value("x", T.FLOAT, ["b", "s", 8])],
        [value("y", T.FLOAT, ["b", "s", 2, 4])],
        [("t", np.array([2, 5, 2, 4]))],
    )
    return Broken(saved(made), [{"x": weights(3, 7, 8)}], lambda f: [f["x"].reshape(3, 7, 2, 4)])


@broken
def batch_in_an_initial_state() -> Broken:
    stored = [("W", weights(1, 8, 3)), ("R", weights(1, 8, 2)), ("h", np.zeros((1, 4, 2), F32)), ("c", np.zeros((1, 4, 2), F32))]
    made = model(
        [node("LSTM", ["x", "W", "R", "", "", "h", "c"], ["y"], hidden_size=2)],
        [value("x", T.FLOAT, ["L", "N", 3])],
        [value("y", T.FLOAT, ["L", 1, "N", 2])],
        stored,
    )

    def right(feed: dict[str, Any]) -> list[Any]:
        import onnxruntime

        plain = model([node("LSTM", ["x", "W", "R"], ["y"], hidden_size=2)], made.graph.input, made.graph.output, stored[:2])
        return list(onnxruntime.InferenceSession(plain.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feed))

    return Broken(saved(made), [{"x": weights(5, 1, 3)}], right)


@broken
def length_in_positions() -> Broken:
    table = weights(16, 3)
    nodes = [node("Gather", ["table", "ids"], ["p"]), node("Add", ["x", "p"], ["y"])]
    made = model(
        nodes,
        [value("x", T.FLOAT, ["N", "L", 3])],
        [value("y", T.FLOAT, ["N", "L", 3])],
        [("table", table), ("ids", np.arange(4)[None])],
    )
    return Broken(saved(made), [{"x": weights(2, 4, 3)}, {"x": weights(2, 6, 3)}], lambda f: [f["x"] + table[: f["x"].shape[1]]])


@broken
def length_in_an_additive_mask() -> Broken:
    hidden = lambda n: np.triu(np.full((n, n), -np.inf, F32), 1)  # noqa: E731
    made = model(
        [node("Add", ["x", "m"], ["y"])],
        [value("x", T.FLOAT, ["N", 2, "L", "L"])],
        [value("y", T.FLOAT, ["N", 2, "L", "L"])],
        [("m", hidden(4)[None, None])],
    )
    return Broken(saved(made), [{"x": weights(2, 2, 6, 6)}], lambda f: [f["x"] + hidden(6)], guess=True)


@broken
def length_in_a_slice() -> Broken:
    nodes = [node("Slice", ["x", "b", "e", "a"], ["c"]), node("Add", ["x", "c"], ["y"])]
    stored = [("b", np.array([0])), ("e", np.array([4])), ("a", np.array([1]))]
    made = model(nodes, [value("x", T.FLOAT, ["N", "L"])], [value("y", T.FLOAT, ["N", "L"])], stored)
    return Broken(saved(made), [{"x": weights(2, 4)}, {"x": weights(2, 6)}], lambda f: [2 * f["x"]])


@broken
def more_asked_of_topk_than_there_is() -> Broken:
    made = model(
        [node("TopK", ["x", "k"], ["y", "i"])],
        [value("x", T.FLOAT, ["N", "L"])],
        [value("y", T.FLOAT, ["N", "K"])],
        [("k", np.array([5]))],
    )
    return Broken(saved(made), [{"x": weights(2, 8)}, {"x": weights(2, 3)}], lambda f: [-np.sort(-f["x"], 1)[:, :5]], guess=True)


@broken
def nothing_reshaped() -> Broken:
    made = model(
        [node("Reshape", ["x", "t"], ["y"])],
        [value("x", T.FLOAT, ["N", 3, 4])],
        [value("y", T.FLOAT, ["N", 12])],
        [("t", np.array([0, -1]))],
    )
    return Broken(saved(made), [{"x": np.zeros((0, 3, 4), F32)}], lambda f: [f["x"].reshape(0, 12)])


@broken
def length_in_a_mean() -> Broken:
    nodes = [node("ReduceSum", ["x", "a"], ["s"], keepdims=0), node("Mul", ["s", "k"], ["y"])]
    made = model(
        nodes, [value("x", T.FLOAT, [1, 16])], [value("y", T.FLOAT, [1])], [("a", np.array([1])), ("k", np.array(1 / 16, F32))]
    )
    return Broken(saved(made), [{"x": weights(1, 9)}], names="x")


@broken
def channels_last_fed() -> Broken:
    made = model(
        [node("GlobalAveragePool", ["x"], ["y"])], [value("x", T.FLOAT, [1, 3, 8, 8])], [value("y", T.FLOAT, [1, 3, 1, 1])]
    )
    return Broken(saved(made), [{"x": weights(1, 8, 8, 3)}], names="x")


@broken
def learned_positions_too_short() -> Broken:
    made = model(
        [node("Add", ["x", "pos"], ["y"], name="add")],
        [value("x", T.FLOAT, ["N", "L", 3])],
        [value("y", T.FLOAT, ["N", "L", 3])],
        [("pos", weights(1, 4, 3))],
    )
    return Broken(saved(made), [{"x": weights(2, 4, 3)}, {"x": weights(2, 6, 3)}], names="add")


class Positions(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(6, 4)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table(torch.arange(ids.shape[1])).mean(0)


@broken
def positions_clamped_in_silence() -> Broken:
    def build(path: Path) -> None:
        torch.onnx.export(
            Positions(),
            (torch.zeros(2, 4, dtype=torch.long),),
            str(path),
            dynamo=True,
            dynamic_shapes=({0: "b", 1: "s"},),
            verbose=False,
        )

    return Broken(build, [{"ids": np.zeros((1, 9), I64)}], names="table.weight")


@broken
def order_turned_by_constants() -> Broken:
    """At another length the constants pick the wrong places, and nothing fails: no size may be freed here."""
    made = model(
        [node("Gather", ["x", "back"], ["y"], axis=1)],
        [value("x", T.FLOAT, [2, 4])],
        [value("y", T.FLOAT, [2, 4])],
        [("back", np.array([3, 2, 1, 0]))],
    )
    return Broken(saved(made), [{"x": weights(2, 6)}], names="x")


@broken
def last_place_counted_from_the_front() -> Broken:
    made = model(
        [node("Gather", ["x", "last"], ["y"], axis=1)],
        [value("x", T.FLOAT, [2, 4, 3])],
        [value("y", T.FLOAT, [2, 3])],
        [("last", np.array(3))],
    )
    return Broken(saved(made), [{"x": weights(2, 6, 3)}], names="x")


@broken
def pool_as_large_as_the_example() -> Broken:
    made = model(
        [node("AveragePool", ["x"], ["y"], kernel_shape=[4])], [value("x", T.FLOAT, [1, 2, 4])], [value("y", T.FLOAT, [1, 2, 1])]
    )
    return Broken(saved(made), [{"x": weights(1, 2, 6)}], names="x")


@broken
def batch_times_something_in_a_reshape() -> Broken:
    nodes = [
        node("Reshape", ["x", "s"], ["h"]),
        node("ReduceSum", ["h", "a"], ["r"], keepdims=0),
        node("Reshape", ["r", "t"], ["y"]),
    ]
    stored = [("s", np.array([6, 3])), ("a", np.array([1])), ("t", np.array([3, 2]))]
    made = model(nodes, [value("x", T.FLOAT, [3, 6])], [value("y", T.FLOAT, [3, 2])], stored)
    return Broken(saved(made), [{"x": weights(5, 6)}], lambda f: [f["x"].reshape(5, 2, 3).sum(2)])


@broken
def batch_in_the_sizes_of_a_resize() -> Broken:
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    made = model(
        [node("Resize", ["x", "", "", "s"], ["y"], **how)],
        [value("x", T.FLOAT, [1, 1, 2, 2])],
        [value("y", T.FLOAT, [1, 1, 4, 4])],
        [("s", np.array([1, 1, 4, 4]))],
    )
    return Broken(saved(made), [{"x": weights(3, 1, 2, 2)}], lambda f: [f["x"].repeat(2, 2).repeat(2, 3)])


@broken
def batch_on_the_second_axis() -> Broken:
    make = lambda: torch.nn.GRU(3, 4, num_layers=2, bidirectional=True).eval()  # noqa: E731

    def right(feed: dict[str, Any]) -> list[Any]:
        torch.manual_seed(0)
        with torch.no_grad():
            return [v.numpy() for v in make()(torch.from_numpy(feed["x"]))]

    return Broken(exported(make, 5, 2, 3, dynamo=False), [{"x": weights(5, 3, 3)}], right)


class Gated(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.GRU(3, 4, 2, bidirectional=True, batch_first=True)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)[0]


@broken
def a_state_of_the_examples_batch_that_a_smaller_one_does_not_stretch() -> Broken:
    return Broken(exported(Gated, 2, 5, 3, dynamo=False), [{"x": weights(1, 5, 3)}], eager(Gated))


@broken
def a_batch_that_is_resized_to_the_examples_without_a_word() -> Broken:
    resize = node("Resize", ["x", "", "", "sizes"], ["y"], mode="nearest", name="larger")
    image = [value(n, T.FLOAT, ["N", 1, "h", "w"]) for n in "xy"]
    made = model([resize], image[:1], image[1:], [("sizes", np.array([1, 1, 4, 4]))])
    return Broken(saved(made), [{"x": weights(3, 1, 2, 2)}], names="`larger` (Resize) is wrong without a word")


@broken
def more_wanted_than_a_free_axis_has() -> Broken:
    ends = [value("best", T.FLOAT, ["K"]), value("places", T.INT64, ["K"])]
    best = node("TopK", ["scores", "k"], ["best", "places"], axis=0, name="best_ones")
    made = model([best], [value("scores", T.FLOAT, ["N"])], ends, [("k", np.array([5]))])

    def right(feed: dict[str, Any]) -> list[Any]:
        places = np.argsort(-feed["scores"], kind="stable")[:5]
        return [feed["scores"][places], places]

    return Broken(saved(made), [{"scores": weights(9)}, {"scores": weights(3)}], right, guess=True)
