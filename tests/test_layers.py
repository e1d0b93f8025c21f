"""The architecture, as tests: imports point one way, foreign APIs have one door each, stages introduce themselves."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "torchferry"
FILES = sorted(SOURCE.rglob("*.py"))
STAGES = ("inputs", "capture", "translate", "check", "verify", "generate")
ABOVE = (
    "pipeline", "execution", "api", "result", "certificate", "report", "runtime", "cli", "repair", "diagnose", "tasks",
    "generation", "demo", "demo_dialogue",
)  # fmt: skip
FOUNDATIONS = (
    "records", "edits", "errors", "escape", "intake", "progress", "files", "deadline", "deferred", "releases", "guards",
    "whose_code",
)  # fmt: skip


def imports(path: Path, *, top_level_only: bool = False, for_annotations: bool = True) -> set[str]:
    """Return the dotted names of all modules that a file imports, with or without those that only annotations name."""
    tree: ast.Module = ast.parse(path.read_text(encoding="utf-8"))
    if not for_annotations:
        tree.body = [n for n in tree.body if not (isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")]
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def part(path: Path) -> str:
    """Return the part of the package that a file belongs to: a stage's folder, or the name of a top-level file."""
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_stages_import_neither_each_other_nor_what_is_above_them(path: Path) -> None:
    if part(path) not in STAGES:
        return
    forbidden = {f"torchferry.{other}" for other in (*STAGES, *ABOVE) if other != part(path)}
    wrong = {name for name in imports(path) if any(name == f or name.startswith(f + ".") for f in forbidden)}
    assert not wrong, f"{path.name} imports {sorted(wrong)}"


@pytest.mark.parametrize("path", [p for p in FILES if part(p) == "repair"], ids=lambda p: str(p.relative_to(SOURCE)))
def test_of_the_repair_only_the_search_knows_stages_and_loads_what_they_load(path: Path) -> None:
    if (SOURCE / "repair" / "search") in path.parents and path.stem != "__init__":
        return
    stages = {f"torchferry.{stage}" for stage in STAGES} | {"torch", "onnx"}
    assert not {name for name in imports(path) if any(name == s or name.startswith(s + ".") for s in stages)}


@pytest.mark.parametrize(
    "path", [p for p in FILES if part(p) in ("ops", "eager", "foreign")], ids=lambda p: str(p.relative_to(SOURCE))
)
def test_what_lies_below_the_stages_imports_none_of_them(path: Path) -> None:
    above = {f"torchferry.{other}" for other in (*STAGES, *ABOVE)}
    wrong = {name for name in imports(path) if any(name == f or name.startswith(f + ".") for f in above)}
    assert not wrong, f"{path.name} imports {sorted(wrong)}"


@pytest.mark.parametrize("path", [p for p in FILES if part(p) in FOUNDATIONS], ids=lambda p: p.name)
def test_foundations_import_neither_torch_nor_onnx(path: Path) -> None:
    loaded = {name.split(".")[0] for name in imports(path, for_annotations=False)}
    assert not loaded & {"torch", "onnx", "onnxruntime", "onnxscript", "transformers"}


@pytest.mark.parametrize("path", [p for p in FILES if part(p) == "catalogue"], ids=lambda p: p.stem)
def test_the_catalogue_knows_only_records_edits_and_what_others_say(path: Path) -> None:
    allowed = (
        "torchferry.foreign.torch_messages",
        "torchferry.foreign.onnxruntime_messages",
        "torchferry.records",
        "torchferry.edits",
        "torchferry.errors",
        "torchferry.guards",
        "torchferry.catalogue",
        "torchferry.whose_code",
    )
    ours = {n for n in imports(path, top_level_only=True) if n.startswith("torchferry")}
    assert all(n.startswith(allowed) for n in ours), f"{path.name} imports {sorted(ours)}"
    heavy = {n.split(".")[0] for n in imports(path, top_level_only=True)} & {"torch", "onnx", "onnxruntime", "numpy", "sympy"}
    assert not heavy, f"{path.name} imports {sorted(heavy)} on top: `torchferry explain` would be slow"


def test_torch_onnx_has_one_door() -> None:
    doors = [p for p in FILES if any(n == "torch.onnx" or n.startswith("torch.onnx.") for n in imports(p))]
    doors += [p for p in FILES if re.search(r"\btorch\.onnx\.export\(", _code(p))]
    assert {str(p.relative_to(SOURCE)) for p in doors if part(p) != "catalogue"} <= {"foreign/torch_onnx.py"}


def test_onnxruntime_has_one_door() -> None:
    doors = [p for p in FILES if any(n.split(".")[0] == "onnxruntime" for n in imports(p))]
    assert {str(p.relative_to(SOURCE)) for p in doors} <= {"foreign/onnxruntime.py"}


def test_each_stage_introduces_itself_in_order() -> None:
    order = ("inputs", "capture", "translate", "check", "verify", "generate", "diagnose", "repair", "report")
    for number, stage in enumerate(order, 1):
        first = (SOURCE / stage / "__init__.py").read_text(encoding="utf-8").split("\n", 1)[0]
        assert first.startswith(f'"""Stage {number} of 9 · {stage}: '), first


def test_no_file_is_a_drawer() -> None:
    drawers = {"utils", "util", "helpers", "helper", "common", "misc", "tools"}
    named_by_torch = SOURCE / "onnx" / "utils.py"
    assert not [p for p in FILES if p != named_by_torch and (p.stem in drawers or set(p.parts) & drawers)]


def _code(path: Path) -> str:
    """Return a file without its docstrings and comments."""
    return ast.unparse(_Bare().visit(ast.parse(path.read_text(encoding="utf-8"))))


class _Bare(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)
