"""The words of options: what they mean, and how they are refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import environment, run

from torchferry.cli.spell import sensible, split
from torchferry.cli.words import ExampleInput, example_input, moving_axes, size_range, size_ranges
from torchferry.cli.work import Ask
from torchferry.errors import UsageError


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("x:2x3:float32", ExampleInput("x", (2, 3), "float32")),
        ("x:2,3", ExampleInput("x", (2, 3), "float32")),
        ("input_ids:1x8", ExampleInput("input_ids", (1, 8), "int64")),
        ("attention_mask:1x8", ExampleInput("attention_mask", (1, 8), "int64")),
        ("scale::float64", ExampleInput("scale", (), "float64")),
    ],
)
def test_an_input_is_understood(text: str, meaning: ExampleInput) -> None:
    assert example_input(text) == meaning


@pytest.mark.parametrize("text", ["x", "x:2x", "x:axb", ":2x3", "x:2x3:flaot32", "x:-1x3"])
def test_an_input_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--input"):
        example_input(text)


def test_a_misspelt_dtype_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean `float32`"):
        example_input("x:2x3:flaot32")


@pytest.mark.parametrize(
    ("text", "meaning"), [("batch=1..64", ("batch", (1, 64))), ("n = 2 ..", ("n", (2, None))), ("n=8", ("n", (8, 8)))]
)
def test_a_range_is_understood(text: str, meaning: tuple[str, tuple[int, int | None]]) -> None:
    assert size_range(text) == meaning


@pytest.mark.parametrize("text", ["batch", "batch=", "batch=64..1", "=1..2", "batch=a..b", "batch=1-64"])
def test_a_range_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--range"):
        size_range(text)


def test_a_size_is_not_given_two_ranges() -> None:
    with pytest.raises(UsageError, match="twice"):
        size_ranges(["n=1..2", "n=1..3"])


def test_axes_are_understood() -> None:
    assert moving_axes([]) is None
    assert moving_axes(["none"]) == "none"
    assert moving_axes(["ids:batch,length", "x:batch,_,3,w"]) == {"ids": {0: "batch", 1: "length"}, "x": {0: "batch", 3: "w"}}


@pytest.mark.parametrize("texts", [["x"], ["x:"], [":a"], ["x:a,,b"], ["none", "x:a"]])
def test_axes_that_make_no_sense_are_refused(texts: list[str]) -> None:
    with pytest.raises(UsageError, match="--dynamic"):
        moving_axes(texts)


def test_the_last_colon_parts_a_file_from_a_name() -> None:
    assert split("a.py:f") == ("a.py", ":", "f")
    assert split("C:/a.py") == ("C:/a.py", "", "")
    assert split("C:/a.py:f") == ("C:/a.py", ":", "f")


USAGE = {
    "a pickle": ("export weights.pth", "never does"),
    "weights alone": ("export weights.safetensors", "weights without a model"),
    "an ONNX file": ("export model.onnx", "torchferry check model.onnx"),
    "a file without a name": ("export models.py", "`models.py:fine`"),
    "a file that is not there": ("export modles.py:fine", "did you mean `models.py`"),
    "a program that is not there": ("export program.pt2", "no file `program.pt2`"),
    "a word": ("export model", "does not name a model"),
    "a module that is not there": ("export nowhere.at_all:fine", "no module `nowhere`"),
    "a name that is not there": ("export models.py:fien", "did you mean `fine`"),
    "a function with parameters": ("export models.py:needs", "without `weights`"),
    "a number": ("export models.py:number", "of type `int`"),
    "a tuple of four": ("export models.py:odd", "tuple of 4"),
    "nothing": ("export models.py:nothing", "returned None: is a `return` missing?"),
    "a state_dict": ("export models.py:weights", "returned weights without a model"),
    "a directory that is not there": ("export models.py:fine -o no/m.onnx", "mkdir -p no"),
    "a directory as output": ("export models.py:fine -o .", "is a directory"),
    "a report of no known kind": ("export models.py:fine --report r.pdf", "a report ends in"),
    "a model on the hub": ("export hf:nobody/nothing", "hf download nobody/nothing"),
    "a missing file": ("verify models.py:fine gone.onnx", "no file `gone.onnx`"),
    "a model and its file, swapped": ("verify model.onnx models.py:fine", "torchferry verify models.py:fine model.onnx"),
    "a missing directory to generate from": ("generate OUT hello", "`OUT` is not there; make one with"),
    "a missing directory to talk with": ("chat OUT", "`OUT` is not there; make one with"),
    "an opset that there is not": ("export models.py:fine --opset 99", "opset 99 cannot be written: onnx has opsets up to"),
    "a runtime that is none of ours": ("export models.py:fine --target tensorrt", "target `tensorrt` is not understood"),
    "a runtime that is none of ours, to check": ("check models.py --target tensorrt", "target `tensorrt` is not understood"),
    "a code that lacks a digit": ("explain CAP07", "(did you mean `CAP007`?)"),
    "a code that lacks two": ("explain cap-7", "(did you mean `CAP007`?)"),
    "a code with a letter wrong": ("explain CAB007", "(did you mean `CAP007`?)"),
    "a slug with a letter wrong": ("explain branch-on-tensor-valeu", "(did you mean `branch-on-tensor-value`?)"),
    "a missing file to check": ("check gone.onnx", "no file `gone.onnx`"),
    "a missing certificate": ("verify --certificate gone.onnx", "no file `gone.onnx`"),
    "a file without a model": ("verify models.py:fine", "name a model and a file"),
    "two things to explain": ("explain CAP001 --list", "give one of a code"),
    "an unknown code": ("explain XYZ123", "no diagnosis is called"),
    "an unknown option": ("export models.py:fine --otuput m.onnx", "No such option"),
    "an unknown command": ("exprot models.py:fine", "No such command"),
    "an unknown format": ("export models.py:fine --format xml", "xml"),
}


@pytest.mark.parametrize("case", USAGE)
def test_a_mistake_is_answered_in_a_sentence_with_exit_code_2(
    case: str, here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    words, expected = USAGE[case]
    assert inside(*words.split()) == 2
    printed = capsys.readouterr()
    assert expected in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""
    assert len(printed.err.replace("printed while loading\n", "").splitlines()) <= 8


def test_a_directory_with_a_transformers_model_is_recognised(here: Path) -> None:
    (here / "bert").mkdir()
    (here / "bert" / "config.json").write_text("{}")
    with pytest.raises(UsageError, match="hf:bert"):
        sensible("bert")


@pytest.mark.parametrize(
    "words",
    [
        "export models.py:fine --range batch=9..1",
        "export models.py:fien",
        "export nowhere.at_all:fine",
        "export models.py:fine -o no/m.onnx",
        "export models.py:fine --example gone.npz",
        "generate OUT hello",
        "chat OUT",
        "verify model.onnx models.py:fine",
    ],
)
def test_words_are_known_to_make_no_sense_before_anything_heavy_is_loaded(words: str, here: Path) -> None:
    probe = (
        "import sys\nfrom torchferry.cli.main import main\ncode = main(sys.argv[1:])\n"
        "print(code, [m for m in ('torch', 'onnx', 'onnxruntime', 'transformers', 'numpy') if m in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", probe, *words.split()], env=environment(), cwd=here, capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "2 []", ended.stderr


def test_a_target_and_an_opset_are_judged_before_the_model_is_loaded(
    here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    for option in ("--opset=99", "--target=tensorrt"):
        assert inside("export", "models.py:fine", option) == 2
        assert "printed while loading" not in capsys.readouterr().err


def test_the_screen_moves_before_anything_heavy_is_loaded(
    here: Path, inside: Callable[..., int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told: list[str] = []
    monkeypatch.setattr("torchferry.cli.supervise.tell", told.append)
    monkeypatch.setattr("torchferry.api.sensible", lambda *asked: told.append("api") or sys.exit(9))
    assert inside("export", "models.py:fine") == 9
    assert told == ["start", "api", "over 9"]
    assert capsys.readouterr().err.splitlines()[0] == "export models.py:fine -> model.onnx"


def test_help_has_a_short_name_everywhere(inside: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["-h"], ["export", "-h"], ["explain", "-h"]):
        assert inside(*words) == 0
        assert "-h, --help" in capsys.readouterr().out


def test_a_shell_can_complete_commands_and_codes() -> None:
    def offered(begun: str) -> str:
        words = {"_TORCHFERRY_COMPLETE": "complete_bash", "COMP_WORDS": begun, "COMP_CWORD": str(len(begun.split()) - 1)}
        return run(cwd=None, **words).stdout

    assert "export" in offered("torchferry ex").split()
    assert "CAP007" in offered("torchferry explain CAP00").split()


@pytest.mark.parametrize(("words", "level"), [("-v", 1), ("-vv", 2), ("--verbose", 1), ("-v -v", 2), ("-q", 0)])
def test_logs_are_as_many_as_were_asked_for(
    words: str, level: int, here: Path, inside: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Ask] = []
    monkeypatch.setattr("torchferry.cli.work.work", lambda ask: seen.append(ask) or 0)
    assert inside("export", "models.py:fine", *words.split()) == 0
    assert (seen[0].verbose, seen[0].quiet) == (level, words == "-q")


@pytest.mark.parametrize(
    ("model", "output", "task", "directory"),
    [
        ("hf:gpt2", "out", None, True),
        ("hf:gpt2", "model.onnx", None, False),
        ("models.py:fine", "out", None, False),
        ("models.py:fine", "out", "text-generation", True),
        ("models.py:fine", ".", None, True),
    ],
)
def test_a_directory_is_told_from_a_file(model: str, output: str, task: str | None, directory: bool, here: Path) -> None:
    assert Ask("export", (), Path(output), model, task=task).into_directory == directory
