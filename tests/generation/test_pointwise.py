"""Products as convolutions while a graph is opened: the same numbers for every size, and what is not worth it left alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
import transformers

from torchferry.foreign import onnxruntime as ort
from torchferry.generation import CausalLM
from torchferry.runtime import pointwise
from torchferry.tasks import export_directory

BLOCK = """
<ir_version: 10, opset_import: ["" : 20]>
block (float[batch, length, 32] x) => (float[batch, length, 48] y, float[batch, length, 32] z)
{
    normed = LayerNormalization<axis = 2>(x, scale)
    product = MatMul(normed, wide)
    inner = Add(bias, product)
    active = Gelu(inner)
    back = MatMul(active, narrow)
    z = Add(x, back)
    head = Transpose<perm = [1, 0]>(table)
    y = MatMul(z, head)
}
"""
SHAPES = {"scale": (32,), "wide": (32, 48), "bias": (48,), "narrow": (48, 32), "table": (48, 32)}


def block(text: str = BLOCK, **shapes: tuple[int, ...]) -> ir.Model:
    """Return a residual block with a head, and weights of these shapes."""
    random = np.random.default_rng(0)
    made = onnx.parser.parse_model(text)
    weights = {name: random.normal(size=shape).astype(np.float32) for name, shape in {**SHAPES, **shapes}.items()}
    made.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in weights.items())
    return ir.from_proto(made)


def convolved(model: ir.Model, *, least: int = 0) -> Counter[str]:
    """Return the operators of a model after convolutions took the place of products, and gave what these did."""
    before = ir.to_proto(model).SerializeToString()
    put = pointwise.put_convolutions(model, least)
    after = ir.to_proto(model).SerializeToString()
    for batch, length in ((1, 1), (1, 7), (5, 1), (3, 4)):
        x = np.random.default_rng(1).normal(size=(batch, length, 32)).astype(np.float32)
        wanted, got = (ort.session(m).run(None, {"x": x}) for m in (before, after))
        for one, other in zip(wanted, got, strict=True):
            np.testing.assert_allclose(other, one, rtol=1e-4, atol=1e-4)
    found = Counter(node.op_type for node in model.graph)
    assert put == bool(found["Conv"])
    return found


def test_products_become_convolutions_with_their_bias() -> None:
    found = convolved(block())
    assert (found["Conv"], found["MatMul"], found["Add"]) == (3, 0, 1)


def test_what_lies_between_keeps_the_axis_of_the_convolutions() -> None:
    found = convolved(block())
    assert found["Unsqueeze"] == 1 + 3, "the first thing that is read, and three kernels"
    assert found["Squeeze"] == 2, "what is given"


def test_small_products_stay() -> None:
    found = convolved(block(), least=32 * 48 + 1)
    assert (found["Conv"], found["MatMul"]) == (0, 3)


def test_channels_that_do_not_fill_blocks_stay() -> None:
    found = convolved(block(wide=(32, 40), bias=(40,), narrow=(40, 32)))
    assert (found["Conv"], found["MatMul"]) == (2, 1), "the product that reads 40"


def test_a_bias_of_one_number_is_added_afterwards() -> None:
    assert convolved(block(bias=(1,)))["Add"] == 2


def test_a_product_that_is_wanted_before_its_bias_is_given_as_well() -> None:
    text = BLOCK.replace("float[batch, length, 48] y,", "float[batch, length, 48] y, float[batch, length, 48] product,")
    assert convolved(block(text))["Add"] == 2


def test_what_looks_at_other_axes_gets_three_of_them() -> None:
    text = BLOCK.replace("z = Add(x, back)", "soft = Softmax<axis = 1>(back)\n    z = Add(x, soft)")
    found = convolved(block(text))
    assert (found["Conv"], found["Unsqueeze"]) == (3, 2 + 3), "before the head the axis is put back"


def test_a_transpose_that_leaves_the_axes_in_place_is_none() -> None:
    text = BLOCK.replace("head = Transpose<perm = [1, 0]>(table)", "head = Transpose<perm = [0, 1]>(table)")
    found = convolved(block(text.replace("length, 48] y", "length, 32] y"), table=(32, 32)))
    assert (found["Conv"], found["MatMul"]) == (2, 1)


def test_matrices_that_are_fed_stay() -> None:
    text = BLOCK.replace("x)", "x, float[32, 48] wide)", 1)
    model = block(text)
    del model.graph.initializers["wide"]
    pointwise.put_convolutions(model, 0)
    assert Counter(node.op_type for node in model.graph)["MatMul"] == 1


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> tuple[transformers.GPT2LMHeadModel, Path]:
    """A model of one layer whose products are large enough, and its directory."""
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=1, n_embd=512, n_head=8, vocab_size=600, n_positions=32, bos_token_id=0, eos_token_id=0
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    place = tmp_path_factory.mktemp("wide") / "out"
    export_directory(model, place)
    return model, place


def test_a_model_of_some_width_is_run_by_convolutions_and_its_file_is_not(
    wide: tuple[transformers.GPT2LMHeadModel, Path],
) -> None:
    model, place = wide
    graph = pointwise.by_convolutions(place / "model.onnx")
    assert graph is not None
    assert Counter(n.op_type for n in onnx.load_model_from_string(graph).graph.node)["Conv"] == 5
    assert not any(n.op_type == "Conv" for n in onnx.load(place / "model.onnx").graph.node)
    ids = torch.tensor([[5, 6, 7], [4, 8, 9]])
    given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    for arrange in (True, False):
        runtime = CausalLM.from_pretrained(place, arrange=arrange)
        torch.testing.assert_close(runtime(**given).logits, model(**given).logits, rtol=1e-4, atol=1e-5)


@pytest.mark.skipif(not ort.lays_out_in_blocks(), reason="this processor has no convolutions in blocks")
def test_onnxruntime_lays_the_weights_out_in_blocks(wide: tuple[transformers.GPT2LMHeadModel, Path], tmp_path: Path) -> None:
    graph = pointwise.by_convolutions(wide[1] / "model.onnx")
    assert graph is not None
    ort.session(graph, data_folder=str(wide[1]), optimised_to=tmp_path / "run.onnx")
    run = onnx.load(tmp_path / "run.onnx", load_external_data=False).graph.node
    assert sum((n.domain, n.op_type) == ("com.microsoft.nchwc", "Conv") for n in run) == 5
    turned = [list(n.attribute[0].ints) for n in run if n.op_type == "Transpose"]
    assert all(axes == sorted(axes) for axes in turned), "axes are turned while blocks are read and written"


def test_weights_that_the_memory_is_too_small_for_stay_as_they_lie(
    wide: tuple[transformers.GPT2LMHeadModel, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pointwise, "SHARE", 10**9)
    assert pointwise.by_convolutions(wide[1] / "model.onnx") is None


def test_a_processor_without_such_convolutions_keeps_the_products(
    wide: tuple[transformers.GPT2LMHeadModel, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ort, "lays_out_in_blocks", lambda: False)
    assert pointwise.by_convolutions(wide[1] / "model.onnx") is None


def test_torch_keeps_to_one_thread_while_onnxruntime_writes(wide: tuple[transformers.GPT2LMHeadModel, Path]) -> None:
    seen: list[int] = []
    before = torch.get_num_threads()

    class Watch(transformers.StoppingCriteria):
        def __call__(self, ids: torch.Tensor, scores: object, **_: object) -> torch.Tensor:
            seen.append(torch.get_num_threads())
            return torch.zeros(ids.shape[0], dtype=torch.bool)

    torch.set_num_threads(2)
    try:
        ids = torch.tensor([[5, 6]])
        CausalLM.from_pretrained(wide[1]).generate(
            ids, attention_mask=torch.ones_like(ids), max_new_tokens=2, stopping_criteria=[Watch()], pad_token_id=0
        )
        assert (set(seen), torch.get_num_threads()) == ({1}, 2)
    finally:
        torch.set_num_threads(before)
