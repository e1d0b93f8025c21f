"""Edits: each is made by somebody and carried out by somebody, and each can be stored, printed and read again."""

from __future__ import annotations

import ast
import json
import pickle
from collections.abc import Iterator
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import pytest

import torchferry
from torchferry.edits.capture import PrepareFloat32Kernels, PrepareQuantised, Rewrite
from torchferry.edits.check import (
    CastAround,
    CastOperands,
    FreeSizes,
    GraphPass,
    OtherType,
    Retype,
    RewriteConstants,
    SetIr,
    StampOpset,
)
from torchferry.edits.inputs import Narrow
from torchferry.edits.stored import kinds, read
from torchferry.edits.translate import PropagateNan, SessionOptions
from torchferry.errors import UsageError
from torchferry.records import Case, Edit, History, Job
from torchferry.records.rewrites import Counted, MadeConstant, NewShape, Product, Quotient, SizeOf
from torchferry.records.sites import Site
from torchferry.report.recipe import script
from torchferry.result import Result

SOURCE = Path(__file__).parent.parent / "src" / "torchferry"
ELSEWHERE = [p for p in sorted(SOURCE.rglob("*.py")) if p.relative_to(SOURCE).parts[0] != "edits"]
PRINTING = {"records", "edits", "report"}
SITE = Site("model.py", 12, 9, "branch", "cond")
AROUND = OtherType("erf", from_="double", to="float", inputs=("x", "y"), places=(0, 2))
POSITIONS = Counted((1, Quotient(Product((SizeOf("x", 1), 2)), 4)), "int64", axis=1, first=0, step=1)
EXAMPLES = [
    Narrow({"n": (1, None, 2), "b": None}, "CAP007", "holds only there", "model.py", 12),
    Narrow({}, released=("n",)),
    Rewrite((SITE,)),
    PrepareQuantised(),
    PrepareQuantised("arithmetic"),
    PrepareFloat32Kernels("bfloat16", all=True),
    SessionOptions(("Pad_Fusion",)),
    SessionOptions(level="basic"),
    StampOpset(14),
    StampOpset(3, "ai.onnx.ml", guess="nobody has run it"),
    Retype("bfloat16", "float"),
    CastOperands("add", ("x",), "float"),
    CastAround((AROUND, OtherType("eye", "attribute", "dtype", "double", "float"))),
    FreeSizes({"x": {"0": "batch"}}, (NewShape("r", (SizeOf("x", 0), 4)),), {"x": (1, 4)}),
    RewriteConstants((MadeConstant("g", "ids", POSITIONS),), {"x": (1, 4)}),
]


def uses(code: str) -> Iterator[tuple[str, bool]]:
    """Yield every edit that code looks up as it runs, and whether that is in order to call it."""
    bare = _WithoutAnnotations().visit(ast.parse(code))
    modules = [n for n in ast.walk(bare) if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("torchferry.edits")]
    known = {alias.asname or alias.name for module in modules for alias in module.names}
    called = {id(node.func) for node in ast.walk(bare) if isinstance(node, ast.Call)}
    for node in ast.walk(bare):
        if isinstance(node, ast.Name) and node.id in known:
            yield node.id, id(node) in called
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
            yield node.attr, id(node) in called


class _WithoutAnnotations(ast.NodeTransformer):
    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        return self.generic_visit(ast.Assign([node.target], node.value or ast.Constant(None)))


USES = {use for path in ELSEWHERE for use in uses(path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("kind", kinds().values(), ids=lambda k: f"{k.stage}-{k.name}")
def test_every_edit_is_made_somewhere_and_carried_out_somewhere(kind: type[Edit]) -> None:
    assert (kind.__name__, True) in USES, "nobody makes it"
    assert (kind.__name__, False) in USES, "nobody carries it out"


def test_every_graph_pass_is_in_its_table() -> None:
    from torchferry.check.passes import PASSES

    assert set(PASSES) == {kind for kind in kinds().values() if issubclass(kind, GraphPass)}


def test_what_is_only_imported_or_annotated_is_neither_made_nor_carried_out() -> None:
    head = "from torchferry.edits.check import Some\nfrom torchferry.edits import check\n"
    assert not set(uses(head + "def f(edit: Some) -> Some:\n    made: Some = g(edit)\n    return made"))
    assert not set(uses("from onnxruntime import Some\nSome(3)"))
    assert set(uses(head + "job.edits_for(Some)")) == {("Some", False)}
    assert set(uses(head + "def f():\n    yield check.Some(3)")) == {("check", False), ("Some", True)}


def test_an_edit_is_known_by_its_class_and_not_by_what_it_is_called() -> None:
    """What edits are called, and what they say as plain data, is for those who print and store them."""
    for path in ELSEWHERE:
        if path.relative_to(SOURCE).parts[0] not in PRINTING:
            reads = {n.attr for n in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(n, ast.Attribute)}
            assert "params" not in reads, f"{path.relative_to(SOURCE)} reads an edit as plain data"


@pytest.mark.parametrize("kind", kinds().values(), ids=lambda k: f"{k.stage}-{k.name}")
def test_every_edit_is_frozen_has_slots_and_says_what_it_does(kind: Any) -> None:
    assert kind.__dataclass_params__.frozen
    assert "__slots__" in vars(kind)
    assert kind.__doc__
    assert not kind.__doc__.startswith(f"{kind.__name__}(")
    assert all(f.default_factory is MISSING for f in fields(kind)), "what is the default could not be told"


@pytest.mark.parametrize("edit", EXAMPLES, ids=str)
def test_an_edit_that_was_stored_is_the_same_again(edit: Edit) -> None:
    stored = json.loads(json.dumps(edit.params))
    assert read(edit.stage, edit.name, stored) == edit
    assert pickle.loads(pickle.dumps(edit)) == edit


def test_a_recipe_starts_from_the_same_edits(monkeypatch: pytest.MonkeyPatch) -> None:
    case, given = Case(Job(edits=tuple(EXAMPLES))), dict[str, Any]()
    monkeypatch.setattr(torchferry, "export", lambda *args, **options: given.update(options), raising=False)
    exec(script(Result("export", History((case,), case), None, 0.0, 0)), {"model": None, "args": (), "kwargs": {}})
    assert given["edits"] == EXAMPLES


def test_the_words_of_an_edit() -> None:
    assert str(StampOpset(14)) == "check: stamp-opset(to=14)"
    assert str(SetIr(7, guess="nobody has run it")) == "check: set-ir(to=7, guess='nobody has run it')"
    assert str(Retype("bfloat16", "float")) == "check: retype(from='bfloat16', to='float')"
    assert str(Narrow({"n": (1, 10, 1)}, "CAP007")) == "inputs: narrow(sizes={'n': [1, 10, 1]}, code='CAP007')"
    assert str(CastAround((AROUND,))) == (
        "check: cast-around(nodes=[{'node': 'erf', 'from': 'double', 'to': 'float', 'inputs': ['x', 'y'], 'places': [0, 2]}])"
    )


def test_a_recipe_of_before_graph_passes_had_names_of_their_own_is_still_read() -> None:
    assert torchferry.Edit("translate", "graph-pass", {"name": "propagate-nan"}) == PropagateNan()


def test_an_edit_that_does_not_exist_or_says_something_else_is_refused_in_words() -> None:
    with pytest.raises(UsageError, match=r"the stage check has no edit `stamp-opsets`.*`stamp-opset`"):
        torchferry.Edit("check", "stamp-opsets", {"to": 14})
    with pytest.raises(UsageError, match=r"the edit `set-ir` takes to, guess, not \{'from': 3\}"):
        torchferry.Edit("check", "set-ir", {"from": 3})
    with pytest.raises(UsageError, match="takes nothing"):
        torchferry.Edit("translate", "propagate-nan", {"to": 3})


def test_edits_of_a_class_come_in_order_and_with_those_that_are_of_its_kind() -> None:
    job = Job().plus(SetIr(7)).plus(PropagateNan()).plus(StampOpset(14)).plus(SetIr(8))
    assert job.edits_for(SetIr) == (SetIr(7), SetIr(8))
    assert job.edits_for(GraphPass) == (SetIr(7), StampOpset(14), SetIr(8))
