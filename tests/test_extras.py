"""What works with a part of the packages alone; and what says which extra brings the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import helper

from torchferry import extras

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # which pytest brings there

ROOT = Path(__file__).parent.parent
TORCH = ("torch", "onnxscript", "sympy", "transformers", "safetensors")
HIDE = """
import importlib.machinery, os
finder = importlib.machinery.PathFinder
found = finder.find_spec
hidden = os.environ["HIDDEN"].split(",")
finder.find_spec = lambda name, *rest: None if name.partition(".")[0] in hidden else found(name, *rest)
"""
SESSION = """
import sys, numpy, torchferry
session = torchferry.InferenceSession("m.onnx")
print(session.run(None, {"x": numpy.full((3, 2), -1.0, numpy.float32)})[0].tolist())
print("torch" in sys.modules)
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a file, and with what hides packages from every Python that starts there."""
    (tmp_path / "hiding").mkdir()
    (tmp_path / "hiding" / "sitecustomize.py").write_text(HIDE, encoding="utf-8")
    kinds = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", kinds[:1], kinds[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    return tmp_path


def python(place: Path, *words: str, hidden: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    path = f"{place / 'hiding'}:{ROOT / 'src'}"
    env = {"PYTHONPATH": path, "HIDDEN": ",".join(hidden), "PATH": "/usr/bin:/bin", "HOME": str(place), "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *words], cwd=place, env=env, capture_output=True, text=True, timeout=200, check=False)


def command(place: Path, *words: str, hidden: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return python(place, "-m", "torchferry", *words, hidden=hidden)


def test_a_file_is_checked_and_run_and_a_code_explained_without_torch(place: Path) -> None:
    checked = command(place, "check", "m.onnx", hidden=TORCH)
    assert (checked.returncode, "loads and runs" in checked.stdout) == (0, True), checked.stderr
    ran = python(place, "-c", SESSION, hidden=TORCH)
    assert ran.stdout.split("\n")[:2] == ["[[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]]", "False"], ran.stderr
    assert command(place, "explain", "CAP001", hidden=TORCH).returncode == 0


@pytest.mark.parametrize(
    ("words", "hidden", "told"),
    [
        (["export", "torchferry.demo:mlp", "-o", "new.onnx"], "torch", "torchferry[export]"),
        (["export", "torchferry.demo:mlp", "-o", "new.onnx"], "onnxscript", "torchferry[export]"),
        (["export", "torchferry.demo:mlp", "-o", "new.onnx"], "onnxruntime", "torchferry[onnxruntime]"),
        (["check", "m.onnx"], "onnxruntime", "pip install onnxruntime-gpu"),
        (["generate", ".", "hello"], "tokenizers", "torchferry[generation]"),
        (["generate", ".", "hello", "--sample"], "transformers", "torchferry[transformers]"),
    ],
)
def test_a_missing_part_is_told_with_its_extra(place: Path, words: list[str], hidden: str, told: str) -> None:
    ended = command(place, *words, hidden=(hidden,))
    assert told in ended.stderr, ended.stderr
    assert hidden in ended.stderr
    assert "itself failed" not in ended.stderr
    assert ended.returncode == 2
    assert not (place / "new.onnx").exists()


def test_in_python_it_is_an_import_error_with_the_same_words(place: Path) -> None:
    ended = python(place, "-c", SESSION, hidden=("onnxruntime",))
    assert ended.stderr.splitlines()[-1].startswith("torchferry.errors.MissingDependency: a session needs onnxruntime")


def test_each_extra_brings_what_it_is_named_for_and_the_base_brings_no_runtime() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for package, extra in extras.BRINGS.items():
        assert any(line.startswith(package + ">") for line in project["optional-dependencies"][extra])
        assert not any(line.startswith(package + ">") for line in project["dependencies"])
    others = {k: v for k, v in project["optional-dependencies"].items() if k not in ("onnxruntime", "all", "test")}
    assert not any("onnxruntime" in line for lines in others.values() for line in lines)
