"""The models that the fuzzer breaks: some written by hand, and small exports of real architectures."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import onnx

TEXTS = {
    "bias": """<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) <float[3] w = {1, 2, 3}> {
        h = Add (x, w)
        y = Relu (h) }""",
    "branch": """<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x, bool c) => (float[N, 3] y) {
        h = Softmax (x)
        y = If (c) <then_branch = a () => (float[N, 3] t) { t = Neg (h) },
                    else_branch = b () => (float[N, 3] e) { e = Abs (x) }> }""",
    "function": """<ir_version: 8, opset_import: ["": 18, "own": 1]> g (int64[N, L] ids) => (float[N, L, 2] y)
        <float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}> { e = Gather (w, ids) y = own.twice (e) }
        <opset_import: ["": 18], domain: "own"> twice (x) => (y) { y = Add (x, x) }""",
    "convolution": """<ir_version: 8, opset_import: ["": 13]> g (float[N, 1, 6, 6] x) => (float[N, 4] y)
        <float[1, 1, 3, 3] k = {1, 2, 3, 4, 5, 6, 7, 8, 9}, int64[2] s = {-1, 4}> {
        c = Conv (x, k)
        p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (c)
        y = Reshape (p, s) }""",
}


@dataclass(frozen=True, slots=True)
class Base:
    """A model's bytes, and those of the weights that it keeps in `model.onnx.data` beside it."""

    name: str
    model: bytes
    data: bytes | None = None


def by_hand() -> list[Base]:
    """Return the models written by hand: they cost nothing to make."""
    return [Base(name, onnx.parser.parse_model(text).SerializeToString()) for name, text in TEXTS.items()]


def exported() -> list[Base]:
    """Return small exports, made anew by torch's own exporters."""
    with tempfile.TemporaryDirectory() as folder:
        return list(_exported(Path(folder)))


def _exported(folder: Path) -> Iterator[Base]:
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from transformers import BertConfig, BertModel, GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    path = folder / "model.onnx"
    mlp = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2)).eval()
    cnn = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.BatchNorm2d(2), torch.nn.ReLU(), torch.nn.Flatten()).eval()
    ids = torch.zeros(1, 4, dtype=torch.long)
    small = {"vocab_size": 11, "hidden_size": 4, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    bert = BertModel(BertConfig(**small, max_position_embeddings=8), add_pooling_layer=False).eval()
    gpt2 = GPT2LMHeadModel(GPT2Config(vocab_size=11, n_positions=8, n_embd=4, n_layer=1, n_head=2, use_cache=False)).eval()
    for name, model, args in (
        ("mlp", mlp, (torch.ones(2, 4),)),
        ("cnn", cnn, (torch.ones(1, 1, 6, 6),)),
        ("lstm", torch.nn.LSTM(3, 2).eval(), (torch.ones(4, 1, 3),)),
        ("bert", bert, (ids,)),
        ("gpt2", gpt2, (ids,)),
    ):
        torch.onnx.export(model, args, str(path), dynamo=True, external_data=False, verbose=False)
        yield Base(name, path.read_bytes())
        if name == "mlp":
            bare = onnx.load(str(path))
            del bare.graph.value_info[:]  # the quantiser turns weights round and then trips over their former shapes
            quantize_dynamic(bare, str(folder / "quantised.onnx"), weight_type=QuantType.QInt8)
            yield Base("quantised", (folder / "quantised.onnx").read_bytes())
            apart = {"save_as_external_data": True, "location": "model.onnx.data", "size_threshold": 0}
            onnx.save_model(onnx.load(str(path)), str(path), **apart)
            yield Base("data apart", path.read_bytes(), (folder / "model.onnx.data").read_bytes())
