"""Small files that a mend by the look of them would make wrong, each with feeds: none may ever be called ok."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from broken_files import F32, I64, T, W, model, node, saved, value, weights, with_data_file
from onnx import helper


@dataclass(frozen=True)
class Lookalike:
    """A way to build the file, feeds for it, and what the file may be said to be only: "guess", or "refused" outright."""

    build: Callable[[Path], Any]
    feeds: list[dict[str, Any]]
    said: str = "guess"


LOOKALIKES: dict[str, Callable[[], Lookalike]] = {}


def lookalike(make: Callable[[], Lookalike]) -> Callable[[], Lookalike]:
    LOOKALIKES[make.__name__] = make
    return make


def floats(name: str, *shape: Any) -> Any:
    return value(name, T.FLOAT, list(shape))


def wholes(name: str, *shape: Any) -> Any:
    return value(name, T.INT64, list(shape))


FOUR_AND_SIX = [{"x": weights(2, 4)}, {"x": weights(2, 6)}]


# --- sizes ------------------------------------------------------------------------------------------------


@lookalike
def attention_whose_last_reshape_takes_the_batch_for_length() -> Lookalike:
    """Fed with ones, a result of [18, 1, 8] looks like one of [6, 3, 8]: every row is the same."""
    stored = [(f"w{n}", weights(8, 8, seed=i)) for i, n in enumerate("qkvo")]
    stored += [("apart", np.array([6, 2, 4])), ("flat", np.array([6, 8])), ("whole", np.array([-1, 1, 8]))]
    nodes = []
    for n, perm in (("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2])):
        nodes += [node("MatMul", ["x", f"w{n}"], [n]), node("Reshape", [n, "apart"], [f"{n}a"])]
        nodes += [node("Transpose", [f"{n}a"], [f"{n}t"], perm=perm)]
    nodes += [node("MatMul", ["qt", "kt"], ["s"]), node("Softmax", ["s"], ["p"], axis=-1), node("MatMul", ["p", "vt"], ["o"])]
    nodes += [node("Transpose", ["o"], ["ot"], perm=[1, 0, 2]), node("Reshape", ["ot", "flat"], ["of"])]
    nodes += [node("MatMul", ["of", "wo"], ["u"]), node("Reshape", ["u", "whole"], ["y"])]
    made = model(nodes, [floats("x", 6, 1, 8)], [floats("y", 6, 1, 8)], stored)
    return Lookalike(saved(made), [{"x": np.ones((6, 3, 8), F32)}])


class Attention(torch.nn.Module):
    def __init__(self, batch_first: bool) -> None:
        super().__init__()
        self.inner = torch.nn.MultiheadAttention(8, 2, batch_first=batch_first)
        self.eval()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x, x, x, need_weights=False)[0]


def attention(batch_first: bool, shape: tuple[int, ...], fed: tuple[int, ...]) -> Lookalike:
    def build(path: Path) -> None:
        torch.manual_seed(0)
        made = Attention(batch_first)
        torch.onnx.export(made, (torch.ones(shape),), str(path), input_names=["x"], output_names=["y"], dynamo=False)

    return Lookalike(build, [{"x": weights(*fed)}])


@lookalike
def attention_over_a_first_axis_of_one() -> Lookalike:
    """The first axis is the length, not the batch: read as a batch its rows would never see each other."""
    return attention(False, (1, 3, 8), (6, 3, 8))


@lookalike
def attention_over_a_second_axis_of_one() -> Lookalike:
    return attention(True, (6, 1, 8), (6, 3, 8))


@lookalike
def attention_where_every_axis_is_one() -> Lookalike:
    return attention(True, (1, 1, 8), (1, 4, 8))


@lookalike
def attention_of_another_length() -> Lookalike:
    return attention(True, (2, 3, 8), (2, 5, 8))


def pooled(*shape: Any) -> Any:
    return model([node("GlobalAveragePool", ["x"], ["y"])], [floats("x", *shape)], [floats("y", shape[0], 3, 1, 1)])


@lookalike
def a_batch_of_images_with_their_channels_last() -> Lookalike:
    return Lookalike(saved(pooled(1, 3, 8, 8)), [{"x": weights(4, 8, 8, 3)}], "refused")


@lookalike
def a_larger_image_with_its_channels_last() -> Lookalike:
    return Lookalike(saved(pooled(1, 3, 8, 8)), [{"x": weights(1, 16, 16, 3)}], "refused")


@lookalike
def images_of_free_sizes_with_their_channels_last() -> Lookalike:
    return Lookalike(saved(pooled("N", 3, "h", "w")), [{"x": weights(2, 8, 8, 3)}], "refused")


@lookalike
def grey_images_with_their_channel_last() -> Lookalike:
    made = model([node("GlobalAveragePool", ["x"], ["y"])], [floats("x", "N", 1, "h", "w")], [floats("y", "N", 1, 1, 1)])
    return Lookalike(saved(made), [{"x": weights(2, 8, 8, 1)}], "refused")


@lookalike
def a_picture_in_colour_where_a_grey_one_is_taken() -> Lookalike:
    """Each channel alone gives what it gives among others; that does not make channels a batch."""
    made = model([node("GlobalAveragePool", ["x"], ["y"])], [floats("x", 1, 1, 8, 8)], [floats("y", 1, 1, 1, 1)])
    return Lookalike(saved(made), [{"x": weights(1, 3, 8, 8)}])


@lookalike
def a_share_of_the_length() -> Lookalike:
    """Place by place it is the same at every length; x / x.shape[1] is not."""
    made = model([node("Div", ["x", "k"], ["y"])], [floats("x", 1, 5)], [floats("y", 1, 5)], [("k", np.array(5, F32))])
    return Lookalike(saved(made), [{"x": weights(1, 7)}])


@lookalike
def rows_that_see_each_other() -> Lookalike:
    nodes = [node("ReduceMean", ["x", "a"], ["m"]), node("Sub", ["x", "m"], ["h"]), node("Reshape", ["h", "t"], ["y"])]
    stored = [("a", np.array([0])), ("t", np.array([2, 4]))]
    return Lookalike(saved(model(nodes, [floats("x", 2, 4)], [floats("y", 2, 4)], stored)), [{"x": weights(3, 4)}])


@lookalike
def a_mean_over_the_batch() -> Lookalike:
    made = model([node("ReduceMean", ["x"], ["y"], keepdims=0)], [floats("x", 1, 4)], [value("y", T.FLOAT, [])])
    return Lookalike(saved(made), [{"x": weights(3, 4)}])


@lookalike
def the_first_of_the_batch() -> Lookalike:
    made = model([node("Gather", ["x", "z"], ["y"])], [floats("x", 1, 4)], [floats("y", 1, 4)], [("z", np.array([0]))])
    return Lookalike(saved(made), [{"x": weights(3, 4)}])


@lookalike
def a_number_for_each_row() -> Lookalike:
    """[0, 1] along the batch counts up, and may as well be learned."""
    stored = [("h", np.array([[0, 0, 0], [1, 1, 1]], F32))]
    made = model([node("Add", ["x", "h"], ["y"])], [floats("x", "N", 3)], [floats("y", "N", 3)], stored)
    return Lookalike(saved(made), [{"x": weights(2, 3)}, {"x": weights(4, 3)}])


@lookalike
def halves_that_may_be_a_roll_by_two() -> Lookalike:
    nodes = [node("Split", ["x", "s"], ["a", "b"], axis=1), node("Concat", ["b", "a"], ["y"], axis=1)]
    made = model(nodes, [floats("x", "N", "C")], [floats("y", "N", "C")], [("s", np.array([2, 2]))])
    return Lookalike(saved(made), FOUR_AND_SIX)


@lookalike
def positions_that_may_be_spread_over_the_length() -> Lookalike:
    """0, 2, 4, 6 goes on with 8; of torch.linspace(0, 6, length) it does not."""
    stored = [("p", np.array([[0, 2, 4, 6]], F32))]
    made = model([node("Add", ["x", "p"], ["y"])], [floats("x", "N", "L")], [floats("y", "N", "L")], stored)
    return Lookalike(saved(made), FOUR_AND_SIX)


@lookalike
def a_factor_that_may_be_the_logarithm_of_the_length() -> Lookalike:
    nodes = [node("ReduceMean", ["x"], ["m"]), node("Mul", ["m", "k"], ["y"])]
    made = model(nodes, [floats("x", 1, 16)], [floats("y", 1, 1)], [("k", np.array(np.log(16), F32))])
    return Lookalike(saved(made), [{"x": weights(1, 9)}])


class Scaled(torch.nn.Module):
    """Causal attention whose scores are divided by a number that goes with the length."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        length = int(x.shape[1])
        scores = torch.matmul(x, x.transpose(1, 2)) / (length + 3)
        hidden = torch.tril(torch.ones(length, length)) == 0
        return torch.matmul(scores.masked_fill(hidden, -1e4).softmax(-1), x)


@lookalike
def causal_attention_scaled_by_the_length() -> Lookalike:
    def build(path: Path) -> None:
        axes = {n: {0: "batch", 1: "length"} for n in "xy"}
        options = {"input_names": ["x"], "output_names": ["y"], "dynamic_axes": axes, "dynamo": False}
        torch.onnx.export(Scaled(), (torch.ones(1, 4, 3),), str(path), **options)

    return Lookalike(build, [{"x": weights(2, 4, 3)}, {"x": weights(2, 6, 3)}])


@lookalike
def weights_of_one_over_the_length() -> Lookalike:
    nodes = [node("Mul", ["x", "k"], ["h"]), node("ReduceSum", ["h", "a"], ["y"], keepdims=0)]
    stored = [("k", np.full((1, 4), 0.25, F32)), ("a", np.array([1]))]
    return Lookalike(saved(model(nodes, [floats("x", "N", "L")], [floats("y", "N")], stored)), FOUR_AND_SIX)


@lookalike
def a_table_whose_further_rows_are_for_something_else() -> Lookalike:
    nodes = [node("Gather", ["t", "ids"], ["p"]), node("Gather", ["t", "five"], ["q"])]
    nodes += [node("Add", ["x", "p"], ["h"]), node("Add", ["h", "q"], ["y"])]
    stored = [("t", weights(16, 3)), ("ids", np.arange(4)[None]), ("five", np.array(5))]
    made = model(nodes, [floats("x", "N", "L", 3)], [floats("y", "N", "L", 3)], stored)
    return Lookalike(saved(made), [{"x": weights(2, 4, 3)}, {"x": weights(2, 6, 3)}])


@lookalike
def a_convolution_at_another_length() -> Lookalike:
    nodes = [node("Conv", ["x", "w"], ["h"], pads=[1, 1]), node("ReduceMax", ["h", "a"], ["y"], keepdims=0)]
    made = model(nodes, [floats("x", 1, 1, 8)], [floats("y", 1, 1)], [("w", weights(1, 1, 3)), ("a", np.array([2]))])
    return Lookalike(saved(made), [{"x": weights(1, 1, 12)}])


# --- weights ----------------------------------------------------------------------------------------------


def beside(name: str, count: int = 8, location: str | None = None) -> Lookalike:
    def build(path: Path) -> None:
        with_data_file(path, location)
        path.with_name("model.onnx.data").unlink()
        path.with_name(name).write_bytes(np.arange(count, dtype=F32).tobytes())

    return Lookalike(build, [{"x": weights(3, 4)}])


@lookalike
def another_file_of_the_very_size() -> Lookalike:
    return beside("other.bin")


@lookalike
def a_file_whose_name_differs_in_case() -> Lookalike:
    return beside("Model.ONNX.data")


@lookalike
def a_file_of_the_name_in_another_folder() -> Lookalike:
    def build(path: Path) -> None:
        with_data_file(path, "/builds/out/model.onnx.data")
        path.with_name("old").mkdir()
        path.with_name("model.onnx.data").rename(path.with_name("old") / "model.onnx.data")

    return Lookalike(build, [{"x": weights(3, 4)}])


@lookalike
def a_longer_file_of_the_name() -> Lookalike:
    return beside("model.onnx.data", 9, "/builds/out/model.onnx.data")


@lookalike
def a_file_of_the_name_while_another_lies_at_the_very_place() -> Lookalike:
    def build(path: Path) -> None:
        place = path.parent / "builds"
        place.mkdir()
        with_data_file(path, str(place / "w.bin"))
        path.with_name("model.onnx.data").rename(place / "w.bin")
        path.with_name("w.bin").write_bytes(np.arange(8, dtype=F32).tobytes())

    return Lookalike(build, [{"x": weights(3, 4)}], "refused")  # two files of that name: which one, nobody can tell


@lookalike
def a_file_of_another_checksum() -> Lookalike:
    def build(path: Path) -> None:
        with_data_file(path, "/builds/out/model.onnx.data")
        made = onnx.load(str(path), load_external_data=False)
        made.graph.initializer[0].external_data.add(key="checksum", value="0" * 40)
        path.write_bytes(made.SerializeToString())

    return Lookalike(build, [{"x": weights(3, 4)}], "refused")


# --- nodes, types and stamps ------------------------------------------------------------------------------


@lookalike
def a_softmax_lost_at_the_end() -> Lookalike:
    made = model([node("MatMul", ["x", "w"], ["logits"])], [floats("x", "N", 4)], [floats("probabilities", "N", 2)], [("w", W)])
    return Lookalike(saved(made), [{"x": weights(3, 4)}])


@lookalike
def a_matrix_of_another_checkpoint() -> Lookalike:
    stored = [("w", weights(2, 3)), ("b", weights(2))]
    made = model([node("Gemm", ["x", "w", "b"], ["y"])], [floats("x", "N", 3)], [floats("y", "N", 2)], stored)
    return Lookalike(saved(made), [{"x": weights(4, 3)}])


@lookalike
def whole_numbers_divided_by_a_float() -> Lookalike:
    """In int64 7 / 2 is 3, in float 3.5: the types of the operands say nothing on which is meant."""
    nodes = [node("Div", ["x", "k"], ["h"]), node("Cast", ["h"], ["y"], to=T.FLOAT)]
    made = model(nodes, [wholes("x", "N")], [floats("y", "N")], [("k", np.array(2.0, F32))])
    return Lookalike(saved(made), [{"x": np.array([7, 8, 9])}])


@lookalike
def whole_numbers_that_are_divided_further_on() -> Lookalike:
    """Doubled, 7 is 14 in either type; a third of it is 4 in int64."""
    nodes = [node("Mul", ["x", "k"], ["h"]), node("Div", ["h", "three"], ["y"])]
    made = model(nodes, [wholes("x", "N")], [wholes("y", "N")], [("k", np.array(2.0, F32)), ("three", np.array(3))])
    return Lookalike(saved(made), [{"x": np.array([7, 8, 9])}])


@lookalike
def a_small_number_that_half_precision_has_not() -> Lookalike:
    half = [value(n, T.FLOAT16, ["N"]) for n in "xy"]
    nodes = [node("Add", ["x", "k"], ["h"]), node("Log", ["h"], ["y"])]
    made = model(nodes, half[:1], half[1:], [("k", np.array(1e-9, F32))])
    return Lookalike(saved(made), [{"x": np.array([0, 1], np.float16)}])


@lookalike
def a_branch_of_floats_that_is_declared_whole() -> Lookalike:
    then = helper.make_graph([node("Identity", ["n"], ["t"])], "then", [], [wholes("t", "N")])
    other = helper.make_graph([node("Mul", ["x", "x"], ["e"])], "else", [], [floats("e", "N")])
    choice = node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    made = model([choice], [floats("x", "N"), wholes("n", "N"), value("c", T.BOOL, [])], [wholes("y", "N")])
    return Lookalike(saved(made), [{"x": weights(3), "n": np.arange(3), "c": np.array(True)}])


@lookalike
def no_stamp_where_it_decides_what_softmax_means() -> Lookalike:
    made = model([node("Softmax", ["x"], ["y"])], [floats("x", 2, 3, 4)], [floats("y", 2, 3, 4)])
    del made.opset_import[:]
    return Lookalike(saved(made), [{"x": weights(2, 3, 4)}])


@lookalike
def an_old_softmax_beside_a_new_mean() -> Lookalike:
    nodes = [node("Softmax", ["x"], ["h"]), node("ReduceMean", ["h", "a"], ["y"], keepdims=0)]
    made = model(nodes, [floats("x", 2, 3, 4)], [floats("y", 2, 3)], [("a", np.array([2]))], opset=11)
    return Lookalike(saved(made), [{"x": weights(2, 3, 4)}], "refused")


@lookalike
def an_aten_operator_with_more_than_its_recipe_knows() -> Lookalike:
    call = helper.make_node("ATen", ["x", "e"], ["y"], domain="org.pytorch.aten", operator="logit")
    made = model([call], [floats("x", "N"), value("e", T.FLOAT, [])], [floats("y", "N")], extra=[("org.pytorch.aten", 1)])
    return Lookalike(saved(made), [{"x": np.array([0, 0.5, 1], F32), "e": np.array(0.1, F32)}])


@lookalike
def a_masked_row_of_attention_that_is_written_out() -> Lookalike:
    """PyTorch's own attention gives zeros for such a row; the same arithmetic in a model gives NaN there too."""
    nodes = [node("MatMul", ["q", "k"], ["s"]), node("Where", ["m", "s", "none"], ["h"])]
    nodes += [node("Softmax", ["h"], ["p"], axis=-1, name="weights"), node("MatMul", ["p", "v"], ["y"])]
    inputs = [floats("q", 2, 3), floats("k", 3, 2), floats("v", 2, 3), value("m", T.BOOL, [2, 2])]
    made = model(nodes, inputs, [floats("y", 2, 3)], [("none", np.array(-np.inf, F32))])
    fed = {"q": weights(2, 3), "k": weights(3, 2), "v": weights(2, 3), "m": np.array([[True, False], [False, False]])}
    return Lookalike(saved(made), [fed])


# --- feeds ------------------------------------------------------------------------------------------------


@lookalike
def token_types_fed_where_a_mask_is_missing() -> Lookalike:
    made = model([node("Mul", ["input_ids", "attention_mask"], ["y"])],
                 [wholes("input_ids", "N", "L"), wholes("attention_mask", "N", "L")], [wholes("y", "N", "L")])  # fmt: skip
    return Lookalike(saved(made), [{"input_ids": np.ones((2, 3), I64), "token_type_ids": np.zeros((2, 3), I64)}])


@lookalike
def a_mask_fed_where_ids_are_missing() -> Lookalike:
    made = model([node("Neg", ["input_ids"], ["y"])], [wholes("input_ids", "N", "L")], [wholes("y", "N", "L")])
    return Lookalike(saved(made), [{"attention_mask": np.ones((2, 3), I64)}])


@lookalike
def an_axis_that_fits_in_two_places() -> Lookalike:
    made = model([node("ReduceSum", ["x", "a"], ["y"], keepdims=0)], [floats("x", "s0", "s1", 3)], [floats("y", "s1", 3)],
                 [("a", np.array([0]))])  # fmt: skip
    return Lookalike(saved(made), [{"x": weights(5, 3)}])
