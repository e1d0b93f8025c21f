"""Every coercion and every refusal of InferenceSession, and its face beside onnxruntime's own."""

from __future__ import annotations

import inspect
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

from torchferry.errors import FeedError
from torchferry.runtime.session import CoercionWarning, InferenceSession, SessionError

TEXTS = {
    "float": '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x) => (float[N, 3] y) { y = Identity (x) }',
    "half": '<ir_version: 8, opset_import: ["": 18]> g (float16[N, 3] x) => (float16[N, 3] y) { y = Identity (x) }',
    "long": '<ir_version: 8, opset_import: ["": 18]> g (int64[N, 3] x) => (int64[N, 3] y) { y = Identity (x) }',
    "int": '<ir_version: 8, opset_import: ["": 18]> g (int32[N, 3] x) => (int32[N, 3] y) { y = Identity (x) }',
    "scalar": '<ir_version: 8, opset_import: ["": 18]> g (float x) => (float y) { y = Identity (x) }',
    "image": '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3, 4, 4] x) => (float[N, 3, 4, 4] y) { y = Identity (x) }',
    "text": '<ir_version: 8, opset_import: ["": 18]> g (string[N] x) => (string[N] y) { y = Identity (x) }',
}
PAIR = '<ir_version: 8, opset_import: ["": 18]> g (float[N] a, float[N] b) => (float[N] y) { y = Sub (a, b) }'
SIX = np.arange(6).reshape(2, 3)


def opened(text: str, **more: Any) -> InferenceSession:
    return InferenceSession(onnx.parser.parse_model(text).SerializeToString(), **more)


COERCED: dict[str, tuple[str, Any, str]] = {  # what is done: the model, what is fed, the code that announces it
    "a torch tensor is unwrapped": ("float", torch.arange(6.0).reshape(2, 3).requires_grad_(), "RUN006"),
    "a numpy scalar becomes an array": ("scalar", np.float32(2.5), "RUN006"),
    "float64 is narrowed to the model's float32": ("float", SIX.astype(np.float64), "RUN004"),
    "float32 is narrowed to the model's float16": ("half", SIX.astype(np.float32), "RUN004"),
    "int32 is widened": ("long", SIX.astype(np.int32), "RUN004"),
    "int64 is narrowed where every value fits": ("int", SIX.astype(np.int64), "RUN004"),
    "truth values become numbers": ("float", SIX > 2, "RUN004"),
    "big-endian bytes are swapped": ("float", SIX.astype(">f4"), "RUN008"),
    "objects become numbers": ("float", SIX.astype(object), "RUN006"),
    "a missing batch axis is added": ("image", np.ones((3, 4, 4), np.float32), "RUN010"),
    "a tuple becomes an array": ("long", tuple(map(tuple, SIX.tolist())), "RUN006"),
}
SILENT: dict[str, tuple[str, Any]] = {
    "a good feed": ("float", SIX.astype(np.float32)),
    "a view with gaps": ("float", np.arange(12, dtype=np.float32).reshape(2, 6)[:, ::2]),
    "a list of lists": ("float", SIX.tolist()),
    "no rows at all": ("float", np.zeros((0, 3), np.float32)),
    "text": ("text", np.array(["a", "b"])),
}


class Raising:
    def __array__(self, *args: Any, **more: Any) -> Any:
        raise RuntimeError("no numbers here")


REFUSED: dict[str, tuple[str, Any, str]] = {
    "float to int": ("long", SIX + 0.5, "fractions"),
    "whole floats to int": ("int", SIX.astype(np.float32), "fractions"),
    "an integer out of range": ("int", SIX + 2**40, "1099511627776"),
    "an integer that float32 cannot hold": ("float", SIX + 2**24 + 1, "cannot be written"),
    "a float beyond float16": ("half", SIX * 1e5, "beyond its range"),
    "complex to real": ("float", SIX * 1j, "imaginary"),
    "text for numbers": ("float", np.array([["a", "b", "c"]]), "text is no number"),
    "numbers for text": ("text", np.arange(3), "takes text"),
    "None": ("float", None, "None"),
    "bytes without a meaning": ("float", np.zeros((2, 3), "V4"), "holds no numbers"),
    "a tensor without values": ("float", torch.ones(2, 3, device="meta"), "cannot be turned into an array"),
    "a sparse tensor": ("float", torch.eye(3).to_sparse(), "cannot be turned into an array"),
    "an object that raises": ("float", Raising(), "cannot be turned into an array: no numbers here"),
    "a ragged list": ("float", [[1, 2, 3], [4]], "cannot be turned into an array"),
    "a rank that no single axis mends": ("image", np.ones(3, np.float32), "rank 1"),
}


@pytest.mark.parametrize("what", COERCED)
def test_what_loses_nothing_is_coerced_and_announced_once(what: str) -> None:
    kind, fed, code = COERCED[what]
    session = opened(TEXTS[kind])
    with pytest.warns(CoercionWarning, match=rf"{code}.*`x`"):
        first = session.run(None, {"x": fed})[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = session.run(None, {"x": fed})[0]
    meant = np.asarray(fed.detach() if isinstance(fed, torch.Tensor) else fed)
    assert np.array_equal(first.reshape(meant.shape), meant.astype(first.dtype))
    assert np.array_equal(first, second)


@pytest.mark.parametrize("what", SILENT)
def test_what_onnxruntime_takes_itself_goes_through_without_a_word(what: str) -> None:
    kind, fed = SILENT[what]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        got = opened(TEXTS[kind]).run(None, {"x": fed})[0]
    assert np.array_equal(got, np.asarray(fed, got.dtype))


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_lose_something_is_refused_naming_input_and_reason(what: str) -> None:
    kind, fed, why = REFUSED[what]
    with pytest.raises(FeedError, match=rf"RUN0\d\d: .*`x`.*{why}"):
        opened(TEXTS[kind]).run(None, {"x": fed})


def test_a_single_input_may_go_by_another_name_and_extra_keys_are_dropped() -> None:
    session = opened(TEXTS["float"])
    with pytest.warns(CoercionWarning, match="RUN001"):
        assert session.run(None, {"input": SIX.astype(np.float32)})[0].shape == (2, 3)
    with pytest.warns(CoercionWarning, match="RUN002"):
        session.run(None, {"x": SIX.astype(np.float32), "token_type_ids": SIX})


@pytest.mark.parametrize("fed", [None, [SIX], "x", {None: SIX}, {b"x": SIX}, {("x",): SIX}])
@pytest.mark.parametrize("strict", [True, False])
def test_what_is_no_feed_is_refused_in_words(fed: Any, strict: bool) -> None:
    with pytest.raises(FeedError, match=r"a feed is a dict|names of inputs are text"):
        opened(TEXTS["float"], strict=strict).run(None, fed)


@pytest.mark.parametrize("names", [[None], 5, "y"])
def test_outputs_that_are_no_names_are_told(names: Any) -> None:
    with pytest.raises(SessionError, match="a list of names"):
        opened(TEXTS["float"]).run(names, {"x": SIX.astype(np.float32)})


def test_other_names_each_time_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torchferry.runtime.session.MOST_ANNOUNCED", 3)
    session = opened(TEXTS["float"])
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for number in range(9):
            session.run(None, {"x": SIX.astype(np.float32), f"other{number}": SIX})
    assert len(told) == 3


def test_two_inputs_under_foreign_names_are_not_guessed() -> None:
    fed = np.ones(2, np.float32)
    with pytest.raises(FeedError, match=r"RUN003.*`a`"):
        opened(PAIR).run(None, {"first": fed, "second": fed})


@pytest.mark.parametrize("what", [w for w in COERCED if "scalar" not in w])
def test_strict_coerces_none_of_it(what: str) -> None:
    kind, fed, _ = COERCED[what]
    if what == "a tuple becomes an array":
        fed = (fed,)
    with pytest.raises((SessionError, FeedError)):
        opened(TEXTS[kind], strict=True).run(None, {"x": fed})


def test_the_constructor_and_every_method_take_what_the_originals_take() -> None:
    theirs = inspect.signature(onnxruntime.InferenceSession.__init__).parameters
    ours = inspect.signature(InferenceSession.__init__).parameters
    named = [n for n, p in theirs.items() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    assert list(ours)[: len(named)] == named
    assert {n: ours[n].default for n in named} == {n: theirs[n].default for n in named}
    assert any(p.kind is inspect.Parameter.VAR_KEYWORD for p in ours.values())
    session = opened(TEXTS["float"])
    for name in (n for n in dir(onnxruntime.InferenceSession) if not n.startswith("_")):
        original = list(inspect.signature(getattr(onnxruntime.InferenceSession, name)).parameters.values())[1:]
        mine = list(inspect.signature(getattr(session, name)).parameters.values())
        assert [(p.name, p.kind, p.default) for p in mine] == [(p.name, p.kind, p.default) for p in original], name


def test_options_providers_and_positions_are_passed_on(tmp_path: Path) -> None:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    path = tmp_path / "model.onnx"
    path.write_bytes(onnx.parser.parse_model(TEXTS["float"]).SerializeToString())
    session = InferenceSession(str(path), options, ["CPUExecutionProvider"], [{}], disabled_optimizers=["ConstantFolding"])
    assert session.get_session_options().intra_op_num_threads == 1
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}


def test_bytes_find_their_weights_in_the_working_directory_or_say_where_they_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weight = onnx.numpy_helper.from_array(np.arange(6, dtype=np.float32).reshape(3, 2), "w")
    made = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 18]> g (float[N, 3] x, float[3, 2] w) => (float[N, 2] y) { y = MatMul (x, w) }'
    )
    del made.graph.input[1]
    made.graph.initializer.append(weight)
    onnx.save_model(made, str(tmp_path / "m.onnx"), save_as_external_data=True, location="m.data", size_threshold=0)
    data = (tmp_path / "m.onnx").read_bytes()
    with pytest.raises(SessionError, match=r"CHK004.*`m.data`[\s\S]*model_external_initializers_file_folder_path"):
        InferenceSession(data)
    monkeypatch.chdir(tmp_path)
    got = InferenceSession(data).run(None, {"x": np.eye(3, dtype=np.float32)})[0]
    assert np.array_equal(got, onnx.numpy_helper.to_array(weight))
