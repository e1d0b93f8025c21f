"""Every option of the library has its flag, and every flag its option: one table says which, and each flag is seen to arrive."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

import torchferry
from torchferry.cli.app import app
from torchferry.generation import CausalLM
from torchferry.records import Budget
from torchferry.runtime.chat import Chat

# what a function or the budget takes: the words for it on the command line
FLAGS = {
    "export": {
        "model": "MODEL", "f": "--output", "args": "--input", "input_names": "--input-names", "output_names": "--output-names",
        "opset_version": "--opset", "dynamic_shapes": "--dynamic", "dynamic_axes": "--dynamic", "examples": "--example",
        "ranges": "--range", "domain": "--domain", "tolerance": "--tolerance", "target": "--target", "repair": "--repair",
        "task": "--task", "tokenizer_from": "--tokenizer", "precision": "--precision", "noise": "--noise", "trust": "--trust",
    },
    "verify": {
        "model": "MODEL", "path": "FILE.onnx", "args": "--input", "examples": "--example", "ranges": "--range",
        "domain": "--domain", "tolerance": "--tolerance", "target": "--target", "trust": "--trust",
    },
    "check": {"path": "FILE.onnx", "feeds": "--data", "target": "--target", "repair": "--repair", "output": "--output"},
}  # fmt: skip
BUDGET = {
    "trials": "--trials", "seconds": "--seconds", "seed": "--seed", "time_limit": "--time-limit", "mutants": "--mutants",
}  # fmt: skip
# of these a file without its model knows no trials
BUDGET_OF = {"export": BUDGET, "verify": BUDGET, "check": {"time_limit": "--time-limit"}}

ONLY_IN_PYTHON = {
    "kwargs": "what a name on the command line gives has its own, or --input and --example make them by name",
    "check": "a command ends with an exit code",
    "edits": "they are Python, as Result.recipe() prints them",
    "budget": "its fields are flags",
    "progress": "the command line's own screen; -q for none",
    "options": "torch.onnx.export's, for scripts that pass them",
}
ONLY_IN_WORDS = {
    "--format": "Result.render",
    "--report": "Result.report",
    "--write-patch": "Result.patch",
    "--reproducer": "Result.reproducer",
    "--certificate": "it is in the file's metadata",
    "--eval": "model.eval()",
    "--verbose": "logging",
    "--quiet": "progress",
    "--help": "help()",
}


def words_of(command: str) -> set[str]:
    """Return the arguments and options of a command by their longest first name."""
    found = typer.main.get_command(app).commands[command]  # type: ignore[attr-defined]
    return {
        str(p.metavar) if p.param_type_name == "argument" else next(o for o in p.opts if o.startswith("--")) for p in found.params
    } | {"--help"}


@pytest.mark.parametrize("command", FLAGS)
def test_every_option_of_the_library_has_its_flag(command: str) -> None:
    taken = set(inspect.signature(getattr(torchferry, command)).parameters)
    assert taken - set(ONLY_IN_PYTHON) == set(FLAGS[command])
    assert set(inspect.signature(Budget).parameters) == set(BUDGET)


@pytest.mark.parametrize("command", FLAGS)
def test_every_flag_has_its_option_in_the_library(command: str) -> None:
    named = set(FLAGS[command].values()) | set(BUDGET_OF[command].values())
    assert words_of(command) - set(ONLY_IN_WORDS) == named


def test_what_generates_takes_in_words_what_it_takes_in_python() -> None:
    how = {"--max-new-tokens", "--sample", "--temperature", "--top-p", "--seed", "--threads", "--format", "--help"}
    assert words_of("generate") == {"DIRECTORY", "PROMPT"} | how
    assert {"threads"} <= set(inspect.signature(CausalLM.from_pretrained).parameters)
    assert {"max_new_tokens"} <= set(inspect.signature(Chat).parameters)


@pytest.fixture
def arrived(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the library was called with."""
    seen: dict[str, Any] = {}

    def note(name: str) -> Callable[..., Any]:
        signature = inspect.signature(getattr(torchferry, name))

        def called(*args: Any, **kwargs: Any) -> Any:
            seen.update(signature.bind(*args, **kwargs).arguments)
            raise torchferry.UsageError("enough")

        return called

    for name in FLAGS:
        monkeypatch.setattr(torchferry, name, note(name))
    return seen


SAID: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "input_names": ("--input-names=a", lambda v: v == ("a",)),
    "output_names": ("--output-names=b,c", lambda v: v == ("b", "c")),
    "opset_version": ("--opset=17", lambda v: v == 17),
    "dynamic_shapes": ("--dynamic=none", lambda v: v == "none"),
    "dynamic_axes": ("--dynamic=x:batch,_", lambda v: v == {"x": {0: "batch"}}),
    "examples": ("--example=call.npz", lambda v: [list(kwargs) for _, kwargs in v] == [["x"]]),
    "ranges": ("--range=batch=1..4", lambda v: v == {"batch": (1, 4)}),
    "domain": ("--domain=x=0..1", lambda v: v == {"x": (0.0, 1.0)}),
    "tolerance": ("--tolerance=1e-3", lambda v: v == (1e-3, 1e-3)),
    "target": ("--target=onnxruntime==1.17", lambda v: v == "onnxruntime==1.17"),
    "repair": ("--repair=unsafe", lambda v: v == "unsafe"),
    "noise": ("--noise=input", lambda v: v == "input"),
    "trust": ("--trust", lambda v: v is True),
    "feeds": ("--data=call.npz", lambda v: [list(feed) for feed in v] == [["x"]]),
    "output": ("--output=mended.onnx", lambda v: v == Path("mended.onnx")),
    "args": ("--input=x:5x3", lambda v: v == ()),
}


@pytest.mark.parametrize(("command", "option"), [(c, o) for c, table in FLAGS.items() for o in table if o in SAID])
def test_a_flag_reaches_the_library(
    command: str, option: str, here: Path, inside: Callable[..., int], arrived: dict[str, Any]
) -> None:
    np.savez(here / "call.npz", x=np.ones((5, 3), "float32"))
    (here / "some.onnx").write_bytes(b"")
    files = {"export": ["models.py:fine"], "verify": ["models.py:fine", "some.onnx"], "check": ["some.onnx"]}[command]
    flag, came = SAID[option]
    inside(command, *files, flag)
    assert came(arrived[option])
    if option == "args":
        assert tuple(arrived["kwargs"]["x"].shape) == (5, 3)


@pytest.mark.parametrize(
    ("field", "flag", "value"),
    [
        ("trials", "--trials=9", 9),
        ("seconds", "--seconds=7", 7.0),
        ("seed", "--seed=3", 3),
        ("time_limit", "--time-limit=60", 60.0),
        ("mutants", "--mutants=5", 5),
    ],
)
def test_the_budget_reaches_the_library(
    field: str, flag: str, value: float, here: Path, inside: Callable[..., int], arrived: dict[str, Any]
) -> None:
    inside("export", "models.py:fine", flag)
    assert getattr(arrived["budget"], field) == value


@pytest.mark.parametrize(
    "flag",
    [
        "--dynamic=ids:batch,_",
        "--noise=input",
        "--domain=x=0..1",
        "--tolerance=1e-3",
        "--input=x:2x3",
        "--input-names=a",
        "--output-names=b",
    ],
)
def test_what_a_directory_has_no_use_for_is_refused_before_any_work(
    flag: str, here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str], arrived: dict[str, Any]
) -> None:
    assert inside("export", "models.py:fine", "--task=text-generation", "-o", "OUT", flag) == 2
    said = capsys.readouterr().err
    assert flag.split("=", maxsplit=1)[0] in said
    assert "load" not in said


def test_a_range_of_a_directory_reaches_its_export(
    here: Path, inside: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, Any] = {}

    def note(*args: Any, **kwargs: Any) -> Any:
        seen.update(kwargs)
        raise torchferry.UsageError("enough")

    monkeypatch.setattr("torchferry.tasks.export_directory", note)
    more = "\nmodel = fine()[0]\nmodel.generate = print\ndef writes(): return model, (torch.ones(2, 3),)\n"
    (here / "models.py").write_text((here / "models.py").read_text(encoding="utf-8") + more, encoding="utf-8")
    inside("export", "models.py:writes", "--task=text-generation", "-o", "OUT", "--range=batch=1..4", "--tokenizer=words")
    assert seen["ranges"] == {"batch": (1, 4)}
    assert seen["tokenizer"] == Path("words")
