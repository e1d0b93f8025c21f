"""`torchferry verify --certificate`: what a certificate speaks for, and every way in which it does not; each with exit code 1."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import torchferry
from torchferry.check.reading.external import relocate
from torchferry.check.reading.fingerprint import CERTIFICATE_KEY, fingerprint
from torchferry.translate import save

Inside = Callable[..., int]
DATA = "m.onnx.data"


@pytest.fixture
def certified(here: Path, inside: Inside, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A certified file whose weights lie beside it, as those of a large one do, under a name that is known here."""
    monkeypatch.setattr(save, "INLINE_BYTES", 0)
    monkeypatch.setattr(save, "WORTH_MOVING", 0)
    assert inside("export", "models.py:fine", "-o", "m.onnx", "-q") == 0
    capsys.readouterr()
    (weights,) = here.glob("m.onnx.*.data")
    _edited(here / "m.onnx", lambda model: relocate(model, {weights.name: DATA}))
    weights.rename(here / DATA)
    return here / "m.onnx"


def _certificate(model: Any) -> Any:
    return next(p for p in model.metadata_props if p.key == CERTIFICATE_KEY)


def _edited(path: Path, edit: Callable[[Any], None]) -> None:
    model = onnx.load(str(path), load_external_data=False)
    edit(model)
    path.write_bytes(model.SerializeToString())


def _rewritten(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    def edit(model: Any) -> None:
        entry = _certificate(model)
        held = json.loads(entry.value)
        entry.value = json.dumps(change(held) or held)

    _edited(path, edit)


def test_weights_may_lie_anywhere_as_long_as_they_are_the_same(certified: Path, inside: Inside) -> None:
    assert inside("verify", "--certificate", "m.onnx") == 0
    onnx.save_model(onnx.load("m.onnx"), "inside.onnx")
    assert inside("verify", "--certificate", "inside.onnx") == 0


def _zeroed(path: Path) -> None:
    data = path.with_name(DATA)
    data.write_bytes(bytes(data.stat().st_size))


def _one_bit(path: Path) -> None:
    data = path.with_name(DATA)
    held = bytearray(data.read_bytes())
    held[-1] ^= 1
    data.write_bytes(bytes(held))


def _cut(path: Path) -> None:
    data = path.with_name(DATA)
    data.write_bytes(data.read_bytes()[:-1])


def _outside(path: Path) -> None:
    (path.parent.parent / DATA).write_bytes(path.with_name(DATA).read_bytes())

    def edit(model: Any) -> None:
        for entry in model.graph.initializer[0].external_data:
            entry.value = f"../{DATA}" if entry.key == "location" else entry.value

    _edited(path, edit)


def _typeless(tensor: Any) -> None:
    tensor.data_type = 99
    kept = [(e.key, e.value) for e in tensor.external_data if e.key != "length"]
    del tensor.external_data[:]
    for key, value in kept:
        tensor.external_data.add(key=key, value=value)


CHANGED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "zeroed weights": (_zeroed, "its weights have changed"),
    "one bit of a weight": (_one_bit, "its weights have changed"),
    "deleted weights": (lambda p: p.with_name(DATA).unlink(), "is not beside it"),
    "weights that are cut short": (_cut, "is cut short"),
    "weights outside the folder": (_outside, "is not beside it"),
    "another opset": (lambda p: _edited(p, lambda m: setattr(m.opset_import[0], "version", 9)), "the opsets that it imports"),
    "a further import": (lambda p: _edited(p, lambda m: m.opset_import.add(domain="x", version=1)), "the opsets that it imports"),
    "another IR version": (lambda p: _edited(p, lambda m: setattr(m, "ir_version", m.ir_version + 1)), "its IR version"),
    "another node": (lambda p: _edited(p, lambda m: setattr(m.graph.node[0], "op_type", "Neg")), "its graph has changed"),
    "no certificate": (lambda p: _edited(p, lambda m: m.metadata_props.remove(_certificate(m))), "carries no certificate"),
    "no fingerprint": (lambda p: _rewritten(p, lambda c: c.pop("fingerprint") and None), "`fingerprint` is missing"),
    "an empty fingerprint": (
        lambda p: _rewritten(p, lambda c: c.update(fingerprint=None)),
        "`fingerprint` is null, and must be an object",
    ),
    "a fingerprint of the graph alone": (
        lambda p: _rewritten(p, lambda c: c.update(fingerprint="ab")),
        "`fingerprint` is text, and must be an object",
    ),
    "text that is not JSON": (lambda p: _edited(p, lambda m: setattr(_certificate(m), "value", "{")), "is not the JSON"),
    "JSON that is no object": (lambda p: _rewritten(p, lambda c: [1]), "it is no object"),
    "trials that are no numbers": (
        lambda p: _rewritten(p, lambda c: c.update(trials={"agree": "many"})),
        "`trials.agree` is text, and must be a whole number",
    ),
    "inputs of another form": (
        lambda p: _rewritten(p, lambda c: c.update(inputs={"x": 3})),
        "`inputs.x` is a whole number, and must be a list",
    ),
    "sizes that are missing": (lambda p: _rewritten(p, lambda c: c.pop("sizes_tried") and None), "`sizes_tried` is missing"),
    "a tolerance without words": (
        lambda p: _rewritten(p, lambda c: c["tolerance"].pop("because") and None),
        "`tolerance.because` is missing",
    ),
    "coverage of another form": (
        lambda p: _rewritten(p, lambda c: c.update(coverage=3)),
        "`coverage` is a whole number, and must",
    ),
    "coverage that is not counted": (
        lambda p: _rewritten(p, lambda c: c["coverage"].update(weights="all")),
        "`coverage.weights` is text",
    ),
    "what was not shown as a number": (
        lambda p: _rewritten(p, lambda c: c["coverage"].update(not_shown=7)),
        "`coverage.not_shown`",
    ),
    "processors as a number": (lambda p: _rewritten(p, lambda c: c.update(instruction_sets=5)), "`instruction_sets` is a whole"),
    "values as a list": (lambda p: _rewritten(p, lambda c: c.update(values=[1])), "`values` is a list, and must be text"),
    "a range of three": (lambda p: _rewritten(p, lambda c: c.update(ranges={"n": [1, 2, 3]})), "`ranges.n` has 3 parts"),
    "a number that is none": (lambda p: _rewritten(p, lambda c: c.update(worst=float("nan"))), "`worst` is out of range"),
    "more than it may say": (lambda p: _rewritten(p, lambda c: c.update(libraries=["x"])), "`libraries` is not among"),
    "nested without end": (lambda p: _edited(p, lambda m: setattr(_certificate(m), "value", "[" * 10**5)), "is not the JSON"),
    "an offset in small digits": (
        lambda p: _edited(p, lambda m: m.graph.initializer[0].external_data.add(key="offset", value="\u00b2")),
        "no place in a file",
    ),
    "a weight of no type": (
        lambda p: _edited(p, lambda m: _typeless(m.graph.initializer[0])),
        "its weights cannot be held against the certificate",
    ),
    "no model at all": (lambda p: p.write_bytes(b"\x08\x07 not a model"), "cannot be read as an ONNX model"),
}


@pytest.mark.parametrize("what", CHANGED)
def test_what_is_missing_changed_or_malformed_is_told_and_is_no_success(
    what: str, certified: Path, inside: Inside, capsys: pytest.CaptureFixture[str]
) -> None:
    change, words = CHANGED[what]
    change(certified)
    assert inside("verify", "--certificate", "m.onnx") == 1
    assert words in " ".join(capsys.readouterr().out.split())
    assert inside("verify", "--certificate", "m.onnx", "--format", "json") == 1
    assert json.loads(capsys.readouterr().out)["changed"] is True


def test_the_certificate_of_a_directory_is_that_of_every_graph_in_it(
    certified: Path, inside: Inside, capsys: pytest.CaptureFixture[str]
) -> None:
    onnx.save_model(onnx.load("m.onnx"), "second.onnx")
    assert inside("verify", "--certificate", ".") == 0
    assert capsys.readouterr().out.count("was verified against its model") == 2
    _zeroed(certified)
    assert inside("verify", "--certificate", ".") == 1


def _tensor(value: float) -> Any:
    return numpy_helper.from_array(np.full((2,), value, np.float32), "w")


def _in_a_branch(value: float) -> Any:
    branch = helper.make_graph([helper.make_node("Add", ["x", "w"], ["t"])], "b", [], [_value("t")], [_tensor(value)])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["e"])], "c", [], [_value("e")])
    return _model([helper.make_node("If", ["go"], ["y"], then_branch=branch, else_branch=other)])


def _in_a_node(value: float) -> Any:
    return _model([helper.make_node("Constant", [], ["w"], value=_tensor(value)), helper.make_node("Add", ["x", "w"], ["y"])])


def _in_a_function(value: float) -> Any:
    made = _model([helper.make_node("F", ["x"], ["y"], domain="own")])
    nodes = [helper.make_node("Constant", [], ["w"], value=_tensor(value)), helper.make_node("Add", ["a", "w"], ["b"])]
    made.functions.append(helper.make_function("own", "F", ["a"], ["b"], nodes, [helper.make_opsetid("", 18)]))
    return made


def _sparse(value: float) -> Any:
    made = _model([helper.make_node("Add", ["x", "w"], ["y"])])
    places = numpy_helper.from_array(np.array([0], np.int64), "i")
    made.graph.sparse_initializer.append(
        helper.make_sparse_tensor(numpy_helper.from_array(np.array([value], np.float32), "w"), places, [2])
    )
    return made


def _typed(value: float) -> Any:
    made = _model([helper.make_node("Add", ["x", "w"], ["y"])])
    made.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [2], [value, value]))
    return made


def _list_of_tensors(value: float) -> Any:
    made = _model([helper.make_node("Add", ["x", "x"], ["y"])])
    made.graph.node[0].attribute.append(helper.make_attribute("extra", [_tensor(value)]))
    return made


def _value(name: str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])


def _model(nodes: list[Any]) -> Any:
    return helper.make_model(helper.make_graph(nodes, "g", [_value("x")], [_value("y")]))


@pytest.mark.parametrize("build", [_in_a_branch, _in_a_node, _in_a_function, _sparse, _typed, _list_of_tensors])
def test_a_weight_counts_wherever_it_lies(build: Callable[[float], Any], tmp_path: Path) -> None:
    one, again, two = (fingerprint(build(v), tmp_path) for v in (1.0, 1.0, 2.0))
    assert one == again
    assert one["weights"] != two["weights"]
    assert one["graph"] == two["graph"]


def test_the_same_numbers_in_another_field_are_the_same_weights(tmp_path: Path) -> None:
    typed, raw = _typed(1.0), _typed(1.0)
    raw.graph.initializer[0].CopyFrom(_tensor(1.0))
    assert fingerprint(typed, tmp_path) == fingerprint(raw, tmp_path)


def test_weights_that_the_certificate_proves_are_found_under_any_name(certified: Path, tmp_path: Path) -> None:
    """The model looks for `m.onnx.data`; two files of the very size are there, and only one of them is certified."""
    data = certified.with_name(DATA)
    right = data.read_bytes()
    data.unlink()
    certified.with_name("a.bin").write_bytes(bytes(len(right)))
    result = torchferry.check(certified, output=certified.with_name("mended.onnx"))
    assert not result.ok
    certified.with_name("b.bin").write_bytes(right)
    result = torchferry.check(certified, output=certified.with_name("mended.onnx"))
    assert result.ok, [d.message for d in result.diagnoses]
