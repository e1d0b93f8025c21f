"""export, verify and check as commands: exit codes, what goes where, and files that were asked for."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from commands import run
from typer.testing import CliRunner

from torchferry.cli.app import app
from torchferry.cli.outcome import exit_code
from torchferry.records import Case, Checked, Diagnosis, Fault, History, Job, Step, Tolerance, Trial, Verified
from torchferry.result import Result
from torchferry.saturation.asked import features

COMMANDS = ("", "export", "verify", "check", "explain", "doctor")


def _examples(command: str) -> list[str]:
    shown = CliRunner().invoke(app, [*command.split(), "--help"]).output
    return [line.strip() for line in shown.splitlines() if line.strip().startswith("torchferry ") and line.startswith("    ")]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_in_the_help_works(
    command: str, here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    examples = _examples(command)
    assert len(examples) >= 2
    for example in examples:
        assert inside(*shlex.split(example)[1:]) == 0, f"{example}\n{capsys.readouterr()}"


def test_results_go_to_stdout_and_all_else_to_stderr(here: Path) -> None:
    ended = run("export", "models.py:fine", "-o", "m.onnx", "--format", "json", cwd=here)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["ok"] is True
    assert "printed while loading" in ended.stderr
    assert "printed in forward" in ended.stderr
    assert "✓ capture" in ended.stderr
    assert "\x1b" not in ended.stdout + ended.stderr
    assert (here / "m.onnx").is_file()


def test_an_ascii_terminal_gets_ascii_and_quiet_gets_nothing(here: Path) -> None:
    ended = run("export", "models.py:fine", "-o", "m.onnx", cwd=here, PYTHONIOENCODING="ascii")
    assert ended.returncode == 0, ended.stderr
    assert (ended.stdout + ended.stderr).isascii()
    assert "+ capture" in ended.stderr
    quiet = run("verify", "torchferry.demo:mlp", "m.onnx", "-q", cwd=here)
    assert quiet.returncode != 0  # another model's file
    assert quiet.stderr == ""


def test_a_file_that_is_not_the_model_ends_with_code_1(
    here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert inside("export", "models.py:fine", "-o", "m.onnx", "-q") == 0
    assert inside("verify", "models.py:fine", "m.onnx", "-q") == 0
    capsys.readouterr()
    assert inside("verify", "models.py:other", "m.onnx", "-q", "--format", "json") == 1
    assert json.loads(capsys.readouterr().out)["ok"] is False


def test_a_model_that_cannot_be_loaded_ends_with_code_3(
    here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert inside("export", "models.py:raises", "-o", "m.onnx") == 3
    said = capsys.readouterr().out
    assert "could not be loaded" in said
    assert "RuntimeError: no weights here" in said
    assert not (here / "m.onnx").exists()


def test_reports_are_written_beside_the_result(here: Path, inside: Callable[..., int]) -> None:
    assert inside("export", "models.py:fine", "-o", "m.onnx", "--report", "r.html", "-q") == 0
    assert (here / "r.html").read_text(encoding="utf-8").startswith("<!doctype html>")


def test_the_snippet_in_the_result_runs(here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert inside("export", "torchferry.demo:dialogpt", "-o", "m.onnx", "-q") == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("  run it") + 1
    code = "\n".join(line[4:] for line in lines[start : lines.index("  what was verified")])
    found: dict[str, list[np.ndarray]] = {}
    exec(code, found)
    assert found["outputs"][0].shape[-1] == 1000


def test_words_of_the_options_reach_the_file(here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    words = "--input features:4x3 --dynamic features:rows,_ --range rows=1..9 --opset 17 --trials 9 -q --format json"
    assert inside("export", "models.py:fine", "-o", "m.onnx", *words.split()) == 0, capsys.readouterr()
    report = json.loads(capsys.readouterr().out)
    assert report["opset"] == 17
    assert 9 <= len(report["runs"]) <= 9 * 5 + 9 // 4  # directed ones come on top, and those with redrawn weights
    (moving,) = report["moving"]
    assert (moving["name"], moving["low"], moving["high"]) == ("rows", 1, 9)
    (taken,) = onnxruntime.InferenceSession("m.onnx").get_inputs()
    assert (taken.name, taken.shape) == ("features", ["rows", 3])


def test_fixed_sizes_are_fixed(here: Path, inside: Callable[..., int]) -> None:
    assert inside("export", "models.py:fine", "-o", "m.onnx", "--dynamic", "none", "-q") == 0
    assert onnxruntime.InferenceSession("m.onnx").get_inputs()[0].shape == [2, 3]


def test_a_certificate_is_shown_without_the_model(
    here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert inside("export", "models.py:fine", "-o", "m.onnx", "-q") == 0
    capsys.readouterr()
    assert inside("verify", "--certificate", "m.onnx") == 0
    said = capsys.readouterr().out
    assert "was verified against its model" in said
    assert "batch" in said
    assert inside("verify", "--certificate", "m.onnx", "--format", "json") == 0
    held = json.loads(capsys.readouterr().out)
    assert held["trials"]["agree"] > 1
    assert f"a processor with {', '.join(held['instruction_sets'])}" in said
    assert held["instruction_sets"] == list(features())


def test_a_certificate_does_not_speak_for_a_file_that_was_changed(
    here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert inside("export", "models.py:fine", "-o", "m.onnx", "-q") == 0
    model = onnx.load("m.onnx")
    onnx.save(model, "copied.onnx")
    model.graph.node[0].doc_string = "another"
    onnx.save(model, "changed.onnx")
    capsys.readouterr()
    assert inside("verify", "--certificate", "copied.onnx") == 0
    assert "changed" not in capsys.readouterr().out
    assert inside("verify", "--certificate", "changed.onnx") == 1
    assert "its graph has changed" in capsys.readouterr().out


def test_a_file_without_a_certificate_says_so(here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    (here / "m.onnx").write_bytes(b"")
    assert inside("verify", "--certificate", "m.onnx") == 1
    assert "carries no certificate" in capsys.readouterr().out


def test_feeds_with_pickled_objects_are_refused(
    here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "m.onnx").write_bytes(b"")
    np.savez(here / "feeds.npz", x=np.array([object()], dtype=object))
    assert inside("check", "m.onnx", "--data", "feeds.npz") == 2
    assert "plain arrays" in capsys.readouterr().err


def test_a_fault_of_ours_asks_for_a_report_and_is_no_success(
    here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("ours")

    monkeypatch.setattr("torchferry.api.export", broken)
    assert inside("export", "models.py:fine", "-o", "m.onnx") == 3
    said = capsys.readouterr().err
    assert "torchferry itself failed" in said
    assert "torchferry export models.py:fine -o m.onnx -v" in said
    assert "Traceback" not in said
    assert inside("export", "models.py:fine", "-o", "m.onnx", "-v") == 3
    assert "Traceback" in capsys.readouterr().err


def test_github_gets_annotations_and_a_summary(
    here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    assert inside("export", "models.py:raises", "-q", "--format", "json") == 3
    printed = capsys.readouterr()
    assert "::error file=models.py,line=" in printed.err
    assert json.loads(printed.out)["ok"] is False
    assert "not exported" in (here / "summary.md").read_text(encoding="utf-8")


def test_a_file_that_only_a_repair_would_mend_is_no_success_until_it_is_written(
    here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert inside("export", "torchferry.demo:mlp", "-o", "m.onnx", "-q") == 0
    model = onnx.load("m.onnx")
    model.ir_version = 99
    (here / "new.onnx").write_bytes(model.SerializeToString())
    capsys.readouterr()
    assert inside("check", "new.onnx", "-q") == 3
    assert "torchferry check new.onnx -o new.mended.onnx" in capsys.readouterr().out
    assert inside("check", "new.onnx", "-o", "new.mended.onnx", "-q") == 0
    assert inside("check", "new.mended.onnx", "-q") == 0
    assert inside("check", "new.onnx", "-o", "new.onnx", "-q") == 2


def test_a_directory_is_told_apart_from_a_file_and_the_command_that_mends_keeps_its_words(
    inside: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = '<ir_version: 10, opset_import: ["": 20]> g (float[N] x) => (float[N] y) { y = Relu (x) }'
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "relu.onnx").write_bytes(onnx.parser.parse_model(text).SerializeToString())
    assert inside("check", "in", "-q") == 3
    assert "name the .onnx in it: `relu.onnx`" in capsys.readouterr().out
    assert inside("check", "in/relu.onnx", "--target", "onnxruntime==1.17", "-q") == 3
    assert "torchferry check in/relu.onnx --target onnxruntime==1.17 -o in/relu.mended.onnx" in capsys.readouterr().out


def _ended(kind: str, *steps: Step, errors: int = 0, path: str | None = None) -> Result:
    reached = Job(onnx=Path("m.onnx"), model=None if kind == "check" else 1) if kind != "export" else Job()
    before = [Step(stage, object()) for stage in reached.stages[: reached.stages.index(steps[0].stage)]]
    case = Case(reached, (*before, *steps), (Diagnosis("XXX001", "wrong"),) * errors)
    return Result(kind, History((case,), case), Path(path) if path else None)  # type: ignore[arg-type]


def _verified(outcome: str) -> Step:
    return Step("verify", Verified((Trial("t", {}, "example", 0, outcome),), Tolerance(1e-5, 1e-5, "float32")))  # type: ignore[arg-type]


BROKEN = Fault("RuntimeError", "broken")


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (_ended("export", _verified("agree"), path="m.onnx"), 0),
        (_ended("export", _verified("agree")), 1),  # no file came out of it, so it is no success
        (_ended("export", _verified("differ"), path="m.onnx"), 1),
        (_ended("verify", _verified("file-refused"), path="m.onnx"), 1),
        (_ended("verify", _verified("agree"), errors=1, path="m.onnx"), 1),
        (_ended("verify", _verified("eager-refused"), path="m.onnx"), 1),  # no evidence is no success
        (_ended("verify", _verified("random"), path="m.onnx"), 0),
        (_ended("export", Step("inputs", fault=BROKEN)), 3),
        (_ended("export", Step("translate", fault=BROKEN), errors=2), 3),
        (_ended("verify", Step("verify", fault=BROKEN), path="m.onnx"), 4),
        (_ended("check", Step("check", Checked(18, 10, 1, "ort", reached=1)), errors=1, path="m.onnx"), 4),
        (_ended("check", Step("check", Checked(18, 10, 1, "ort", reached=0)), errors=1, path="m.onnx"), 3),
        (_ended("check", Step("check", fault=BROKEN), errors=1), 3),
    ],
)
def test_exit_codes_say_how_it_ended(result: Result, code: int) -> None:
    assert exit_code(result) == code
