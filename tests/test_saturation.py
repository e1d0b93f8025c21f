"""Products that 16 bits cannot hold: what they come to, what a processor without VNNI makes of them, what this one answers."""

from __future__ import annotations

import numpy as np
import pytest

from torchferry.saturation import asked
from torchferry.saturation.elsewhere import modelled, without_vnni
from torchferry.saturation.product import BLOCKS, TERMS, Product, every_kind, expected, pairs_cut_off

PLAIN = Product("", "MatMulInteger", "uint8", "int8")


def test_a_pair_is_cut_off_where_it_leaves_sixteen_bits() -> None:
    assert pairs_cut_off(np.array([[255, 255]]), np.array([[127], [127]])).item() == 32767
    assert pairs_cut_off(np.array([[255, 255]]), np.array([[-128], [-128]])).item() == -32768
    assert pairs_cut_off(np.array([[255, 255]]), np.array([[64], [64]])).item() == 32640, "64 is safe"
    assert pairs_cut_off(np.array([[255, 255, 255]]), np.array([[127], [-127], [127]])).item() == 255 * 127, "one is alone"


def test_small_numbers_come_to_the_same_in_pairs() -> None:
    random = np.random.default_rng(0)
    a, b = random.integers(0, 128, (4, 31)), random.integers(-128, 128, (31, 5))
    np.testing.assert_array_equal(pairs_cut_off(a, b), a @ b)


def test_every_kind_is_asked_with_numbers_that_would_be_cut_off() -> None:
    assert expected(PLAIN, 1)[0, 0] == TERMS * 255 * 127
    assert modelled(PLAIN, 1)[0, 0] == TERMS // 2 * 32767
    with without_vnni():
        cut_off = {str(p) for p in every_kind() if not asked.exact(p)}
    assert len(cut_off) == 13
    assert {"MatMulInteger of uint8 by int8", "QLinearConv of uint8 by int8", "ConvInteger of int8 by uint8"} <= cut_off
    assert "MatMul of int8 by int8 between DequantizeLinear nodes" in cut_off, "onnxruntime makes such activations unsigned"


def test_weights_of_the_other_sign_are_right_wherever_some_are_cut_off() -> None:
    with without_vnni():
        assert all(asked.exact(p.flipped()) for p in every_kind() if not asked.exact(p))


@pytest.mark.parametrize("product", [*every_kind(), *(Product(*BLOCKS, "int8", "uint8", n) for n in (16, 32, 128))], ids=str)
def test_a_kernel_is_asked_with_a_model_that_onnxruntime_takes_and_its_answer_is_judged(product: Product) -> None:
    if not asked.has_kernel(product):
        assert product.activations == "int8", "only signed activations have holes in the table of kernels"
        assert product.weights == "uint8"
        return
    answers = [asked.answer(product, rows) for rows in asked.ROWS]
    right = [np.allclose(a, expected(product, rows), rtol=0.02, atol=1) for a, rows in zip(answers, asked.ROWS, strict=True)]
    assert asked.exact(product) == all(right)


def test_blocks_of_eight_bits_and_unsigned_weights_are_right_on_this_processor_whatever_it_is() -> None:
    for product in (
        *(Product(*BLOCKS, "int8", "uint8", n) for n in (16, 32, 128)),
        Product("", "MatMulInteger", "uint8", "uint8"),
    ):
        assert asked.exact(product), product


def test_a_processor_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked.exact(PLAIN)
    monkeypatch.setattr(asked.ort, "session", lambda *_, **__: pytest.fail("asked again"))
    asked.exact(PLAIN)
