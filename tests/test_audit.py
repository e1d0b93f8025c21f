"""Torch's quantised kernels beside whole numbers: right, or cut off by the processor, and told apart from all else."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import torch

from torchferry.quantised import audit, operators
from torchferry.quantised.audit import Audited, SixteenBits

ops = torch.ops.quantized
pytestmark = pytest.mark.filterwarnings("ignore")


def stored(whole: torch.Tensor, scale: float = 1.0, zero_point: int = 0) -> torch.Tensor:
    return torch._make_per_tensor_quantized_tensor(whole, scale, zero_point)


def operands(terms: int = 24) -> tuple[torch.Tensor, torch.Tensor]:
    """Return activations and weights of the full range: some of their sums leave 16 bits."""
    random = torch.Generator().manual_seed(0)
    return (
        torch.randint(0, 256, (5, terms), dtype=torch.uint8, generator=random),
        torch.randint(-128, 128, (7, terms), dtype=torch.int8, generator=random),
    )


def in_whole_numbers(x: torch.Tensor, w: torch.Tensor, zero_point: int, step: float) -> np.ndarray:
    """Return what a quantised linear layer comes to, in integers of 64 bits."""
    sums = (x.numpy().astype(np.int64) - zero_point) @ w.numpy().astype(np.int64).T
    return np.clip(np.rint(sums / step) + 128, 0, 255)


@pytest.mark.parametrize("elsewhere", [nullcontext, SixteenBits])
@pytest.mark.parametrize("terms", [2, 7, 24])
def test_an_audited_layer_gives_what_its_integers_come_to_on_every_processor(terms: int, elsewhere: Any) -> None:
    (x, w), step = operands(terms), 4096.0
    packed = ops.linear_prepack(stored(w), None)
    with elsewhere(), Audited():
        got = ops.linear(stored(x, 1.0, 3), packed, step, 128)
    assert np.abs(got.int_repr().numpy() - in_whole_numbers(x, w, 3, step)).max() <= 1  # a step, where halves are rounded


def test_a_processor_without_vnni_is_found_out() -> None:
    x, w = operands()
    packed = ops.linear_prepack(stored(w), None)
    with SixteenBits():
        plain = ops.linear(stored(x), packed, 4096.0, 128).int_repr().numpy().astype(int)
        with Audited() as audited:
            ops.linear(stored(x), packed, 4096.0, 128)
    off = np.abs(plain - in_whole_numbers(x, w, 0, 4096.0)).max()
    assert off > 1, "the example leaves 16 bits"
    assert [(c.op, c.off) for c in audited.found] == [("quantized::linear", pytest.approx(off, abs=1))]


def test_weights_of_seven_bits_are_never_cut_off() -> None:
    x, w = operands()
    packed = ops.linear_prepack(stored(torch.div(w, 2, rounding_mode="trunc")), None)
    with SixteenBits(), Audited() as audited:
        ops.linear(stored(x), packed, 4096.0, 128)
    assert not audited.found


def test_arithmetic_that_is_wrong_is_not_blamed_on_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    def shifted(x: Any, packed: Any, scale: Any, zero_point: Any) -> Any:
        return operators._linear(x, packed, scale, zero_point + 9)

    monkeypatch.setitem(audit.OPERATORS, "linear", shifted)
    x, w = operands()
    with SixteenBits(), Audited() as audited:
        ops.linear(stored(x), ops.linear_prepack(stored(w), None), 4096.0, 128)
    assert not audited.found, "it is wrong with half the weights too"


TAKE_NAN = [engine for engine in torch.backends.quantized.supported_engines if engine in ("x86", "fbgemm", "onednn")]


@pytest.mark.parametrize("engine", TAKE_NAN)
def test_what_an_engine_makes_of_nan_is_not_called_a_sum_cut_off(engine: str) -> None:
    before = torch.backends.quantized.engine
    torch.backends.quantized.engine = engine
    try:
        x = torch.randn(4, 7, generator=torch.Generator().manual_seed(0))
        x[1, 2] = float("nan")
        weight = torch.quantize_per_tensor(torch.full((3, 7), 0.3), 0.01, 0, torch.qint8)  # at most 30: never cut off
        packed = ops.linear_prepack(weight, None)
        with Audited() as audited:
            ops.linear_dynamic(x, packed, True)
    finally:
        torch.backends.quantized.engine = before
    assert not audited.found


KERNELS = """
import sys, warnings
warnings.simplefilter("ignore")
import torch
from torchferry.quantised.audit import Audited
torch.backends.quantized.engine = sys.argv[1]
ops = torch.ops.quantized
def stored(whole): return torch._make_per_tensor_quantized_tensor(whole, 1.0, 0)
weight = torch.full((8, 16, 3, 3), 127, dtype=torch.int8)
conv = ops.conv2d_prepack(stored(weight), None, [1, 1], [0, 0], [1, 1], 1)
linear = ops.linear_prepack(stored(weight[:, :, 0, 0].contiguous()), None)
with Audited() as audited:
    one = ops.linear(stored(torch.full((3, 16), 255, dtype=torch.uint8)), linear, 4096.0, 0)
    two = ops.conv2d(stored(torch.full((1, 16, 4, 4), 255, dtype=torch.uint8)), conv, 40960.0, 0)
    three = ops.linear_dynamic(torch.ones(2, 16), linear, False)
print(sorted({c.op for c in audited.found}), int(one.int_repr().max()), int(two.int_repr().max()), round(float(three.max())))
"""


@pytest.mark.skipif("onednn" not in torch.backends.quantized.supported_engines, reason="this torch has no oneDNN")
def test_onednn_kept_from_vnni_is_found_out_and_put_right() -> None:
    """oneDNN can be told to do without: the one real kernel of the other kind that runs on a processor of this kind."""
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    ran = subprocess.run([sys.executable, "-c", KERNELS, "onednn"], env=environment, capture_output=True, text=True, check=True)
    cut_off, numbers = ran.stdout.strip().rsplit("]", 1)
    assert numbers.split() == ["127", "114", "2032"], "16 * 255 * 127 / 4096, nine times that / 40960, and 16 * 127"
    everything = "['quantized::conv2d', 'quantized::linear', 'quantized::linear_dynamic'"
    assert cut_off == (everything if torch.cpu.get_capabilities().get("avx2") else "[")
