"""The other kind of processor, really run: AVX2 without VNNI, by qemu where that is installed."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from torchferry.tasks import fewer_bits, prepare

QEMU = shutil.which("qemu-x86_64")
pytestmark = [
    pytest.mark.emulated,
    pytest.mark.skipif(QEMU is None, reason="qemu-x86_64 is not installed: a processor without VNNI cannot be emulated"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="qemu-x86_64 runs the Python of an x86-64 machine alone"),
]


def emulated(code: str, *arguments: Any) -> str:
    """Return what a Python program writes on a Haswell, which has AVX2 and no VNNI."""
    assert QEMU is not None
    command = [QEMU, "-cpu", "Haswell", sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "OMP_NUM_THREADS": "1"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[-2000:]
    return ran.stdout.strip()


def test_the_model_of_such_a_processor_answers_as_it_does() -> None:
    told = emulated("""
import numpy as np
from torchferry.saturation import asked, elsewhere
from torchferry.saturation.product import BLOCKS, QDQ, Product, every_kind
kinds = [*every_kind(), *(Product(*BLOCKS, "int8", "uint8", n) for n in (16, 32, 128))]
pairs = [(p, asked.answer(p, rows), elsewhere.modelled(p, rows)) for p in kinds for rows in asked.ROWS]
near = lambda p, a, m: np.allclose(a, m, rtol=0.02, atol=p.step if p.domain == QDQ else 1)
unlike = [str(p) for p, a, m in pairs if a is not None and not near(p, a, m)]
print(unlike, sum(not asked.exact(p) for p in kinds), asked.features())
""")
    assert told == "[] 13 ('avx2',)"


def test_torchs_own_kernels_are_found_out_and_put_right() -> None:
    told = emulated("""
import torch
from torchferry.quantised.audit import Audited
ops = torch.ops.quantized
full = lambda shape, n, kind: torch._make_per_tensor_quantized_tensor(torch.full(shape, n, dtype=kind), 1.0, 0)
for engine in ("x86", "fbgemm", "onednn"):
    torch.backends.quantized.engine = engine
    packed = ops.linear_prepack(full((4, 16), 127, torch.int8), None)
    x = full((3, 16), 255, torch.uint8)
    cut = int(ops.linear(x, packed, 4096.0, 0).int_repr().max())
    with Audited() as audited:
        right = int(ops.linear(x, packed, 4096.0, 0).int_repr().max())
    print(engine, cut, right, [c.op for c in audited.found])
""")
    assert told.splitlines() == [f"{engine} 64 127 ['quantized::linear']" for engine in ("x86", "fbgemm", "onednn")]


def test_int8_written_here_keeps_the_likeliest_token_there(exported: Path, model: Any, tmp_path: Path) -> None:
    texts = torch.randint(0, 300, (16, 24), generator=torch.Generator().manual_seed(0))
    torch.save((texts, model(texts).logits.argmax(-1)), tmp_path / "texts.pt")
    shutil.copytree(exported, tmp_path / "out")
    fewer_bits.put_in_fewer_bits(prepare(model), tmp_path / "out", "int8")
    told = emulated(
        """
import sys, torch
from torchferry.runtime.generation import CausalLM
texts, wanted = torch.load(sys.argv[2])
got = CausalLM.from_pretrained(sys.argv[1], threads=1)(input_ids=texts, attention_mask=torch.ones_like(texts)).logits.argmax(-1)
print(float((got == wanted).float().mean()))
""",
        tmp_path / "out",
        tmp_path / "texts.pt",
    )
    assert float(told) >= 0.95


def test_int8_of_before_is_opened_right_there_and_told() -> None:
    """Weights of int8 by columns, whose products were cut off: such files are about, ours and others'."""
    told = emulated("""
import warnings, numpy as np, onnx, onnxruntime, torchferry
warnings.simplefilter("always")
random = np.random.default_rng(0)
w = random.integers(-127, 128, (64, 8)).astype(np.int8)
nodes = [onnx.helper.make_node("DynamicQuantizeLinear", ["x"], ["a", "s", "z"]),
         onnx.helper.make_node("MatMulInteger", ["a", "w", "z"], ["y"])]
value = onnx.helper.make_tensor_value_info
ends = [value("x", 1, ["N", 64])], [value("y", 6, ["N", 8])]
graph = onnx.helper.make_graph(nodes, "g", *ends, [onnx.numpy_helper.from_array(w, "w")])
file = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
x = random.uniform(0, 1, (3, 64)).astype(np.float32)
whole = np.clip(np.rint(x / np.float32(x.max() / np.float32(255))), 0, 255).astype(np.int64) @ w.astype(np.int64)
with warnings.catch_warnings(record=True) as said:
    session = torchferry.InferenceSession(file)
plain = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
off = [int(np.abs(s.run(None, {"x": x})[0] - whole).max()) for s in (plain, session)]
print(off[0] > 1000, off[1] <= 255, [str(s.message).split(":")[0] for s in said if s.category.__name__ == "ProcessorWarning"])
""")
    assert told == "True True ['CHK050']"
