"""torch's operators, as the door has them; one that a release lacks is a row less, not a crash."""

from __future__ import annotations

import importlib.util
import pkgutil
from types import ModuleType
from typing import Any

import pytest
import torch

from torchferry.errors import ForeignApiMoved
from torchferry.foreign import torch_operators as door
from torchferry.foreign.torch_operators import aten
from torchferry.ops import decomposed


class Without:
    """torch.ops.aten of a release that has lost some operators."""

    def __init__(self, *lost: str) -> None:
        self.lost, self.rest = lost, torch.ops.aten

    def __getattr__(self, name: str) -> Any:
        if name in self.lost:
            raise AttributeError(name)
        return getattr(self.rest, name)


def family(name: str) -> ModuleType:
    """Return a family of operators, loaded anew."""
    spec = importlib.util.find_spec(f"{decomposed.__name__}.{name}")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "lost"), [("elimination", "cholesky"), ("orthogonal", "qr")])
def test_an_operator_that_a_release_lacks_is_one_row_less(name: str, lost: str, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = door.present(family(name).DECOMPOSITIONS)
    monkeypatch.setattr(torch.ops, "aten", Without(lost))
    less = door.present(family(name).DECOMPOSITIONS)
    had = {f"aten.{lost}.default"} & {str(t) for t in whole}  # a later release lacks it from the first
    assert {str(t) for t in whole} - {str(t) for t in less} == had
    assert len(less) == len(whole) - len(had)
    assert had or torch.__version__ >= "2.14"


FAMILIES = sorted(info.name for info in pkgutil.iter_modules(decomposed.__path__))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_loads_anew_without_the_operators_that_torch_2_15_lacks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.ops, "aten", Without("cholesky", "qr"))
    family(name)


def test_a_missing_operator_equals_nothing_and_says_so_when_called() -> None:
    missing = aten.no_such_operator.default
    assert isinstance(missing, door.Absent)
    assert isinstance(aten.add.no_such_overload, door.Absent)
    assert missing not in {torch.ops.aten.add.Tensor}
    assert door.present({missing: 1, aten.add.Tensor: 2}) == {torch.ops.aten.add.Tensor: 2}
    assert door.overloads(aten.no_such_operator) == []
    with pytest.raises(ForeignApiMoved, match=r"aten\.no_such_operator\.default"):
        missing(torch.ones(1))


def test_a_name_is_looked_up_with_or_without_its_overload() -> None:
    assert door.lookup("aten::add.Tensor") is torch.ops.aten.add.Tensor
    assert door.lookup("aten::relu") is torch.ops.aten.relu.default
    assert door.lookup("aten::no_such_operator") is None
    assert door.lookup("aten::add.no_such_overload") is None
    assert door.lookup("relu") is None


def test_a_packet_is_equal_to_torchs_own_and_can_be_called() -> None:
    packet = torch.ops.aten.add.Tensor.overloadpacket
    assert packet in {aten.add}
    assert packet in (aten.mul, aten.add)
    assert packet not in {aten.mul}
    assert {aten.add: "sum"}.get(packet) == "sum"
    assert aten.add(torch.ones(1), 1).item() == 2
    assert "Tensor" in door.overloads(aten.add)


def test_an_operator_tells_its_name_what_it_takes_and_whether_it_writes() -> None:
    assert door.schema_name(aten.add_.Tensor) == "aten::add_"
    assert [a.name for a in door.schema_of(aten.add.Tensor).arguments] == ["self", "other", "alpha"]
    assert (door.is_mutable(aten.add_.Tensor), door.is_mutable(aten.add.Tensor), door.is_mutable(len)) == (True, False, False)
    assert door.schema_name(len) == ""
    assert isinstance(aten.add.Tensor, door.OpOverload)
    assert isinstance(torch.ops.higher_order.cond, door.HigherOrderOperator)
    assert [door.qualified_name(f) for f in (torch.ops.quantized.add, aten.add.Tensor, torch.add)] == [
        "quantized::add",
        "aten::add.Tensor",
        "add",
    ]


def test_what_torch_makes_an_operator_of_is_at_hand() -> None:
    assert door.can_decompose(aten.dropout.default)
    assert not door.can_decompose(aten.mm.default)
    square = door.composite(aten.square.default)
    assert square is not None
    assert square(torch.tensor(3.0)).item() == 9
    assert door.composite(aten.mm.default) is None


def test_the_body_of_a_custom_operator_is_at_hand() -> None:
    @torch.library.custom_op("torchferry_door::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return 2 * x

    assert door.custom_bodies()["torchferry_door::twice"](torch.ones(1)).item() == 2


def test_recurrent_layers_are_called_through_the_functions_that_are_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    plain = door.variable_functions.lstm
    monkeypatch.setitem(vars(door.variable_functions), "lstm", lambda *args: called.append(1) or plain(*args))
    torch.nn.LSTM(2, 3)(torch.ones(1, 1, 2))
    assert called


def test_a_placeholder_for_an_onnx_operator_gives_the_shapes_that_it_is_told() -> None:
    nothing = {f"attr_{kind}": [] for kind in ("keys", "types", "pos", "ints", "floats", "strs")}
    told = {"shapes": [(2, 3)], "version": 14, "metadata_props_keys": [], "metadata_props_values": []}
    assert door.onnx_placeholder([torch.ones(1)], "LSTM", [1], **told, **nothing)[0].shape == (2, 3)
