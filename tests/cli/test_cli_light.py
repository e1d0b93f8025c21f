"""Help, versions, pages and the doctor: quick, and without torch."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable

import pytest
from commands import environment, run

from torchferry import catalogue
from torchferry.cli import doctor
from torchferry.releases.tested import untested

HEAVY = ("torch", "onnx", "onnxruntime", "onnxscript", "onnx_ir", "transformers", "numpy", "sympy")
SOME_CODE = catalogue.load()[0].code


@pytest.mark.parametrize(
    "words",
    [["--help"], ["export", "--help"], ["--version"], ["explain", "--list"], ["explain", SOME_CODE], ["explain", "no-such-code"]],
)
def test_help_and_explain_load_nothing_heavy(words: list[str]) -> None:
    probe = (
        "import sys\nfrom torchferry.cli.main import main\nmain(sys.argv[1:])\n"
        f"print('loaded:', *[m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", probe, *words], env=environment(), capture_output=True, text=True, check=True)
    assert ended.stderr.splitlines()[-1] == "loaded:"


def test_the_parent_of_a_long_command_loads_nothing_heavy() -> None:
    probe = (
        "import sys\nfrom torchferry.cli import supervise\nfrom torchferry.cli.main import main\n"
        "supervise.run = lambda *a, **k: supervise.Ending(0)\n"
        "code = main(['export', 'torchferry.demo:mlp', '-o', '/tmp/never-written.onnx'])\n"
        f"print(code, 'loaded:', *[m for m in {HEAVY!r} if m in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", probe], env=environment(), capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "0 loaded:"


def test_help_answers_at_once() -> None:
    began = time.perf_counter()
    assert run("--help").returncode == 0
    assert time.perf_counter() - began < 3  # a fraction of a second on an idle machine; torch alone takes longer than this


@pytest.mark.parametrize("word", [SOME_CODE, SOME_CODE.lower(), catalogue.load()[0].slug])
def test_a_page_is_found_by_code_and_by_slug(word: str, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert inside("explain", word) == 0
    assert capsys.readouterr().out.startswith(f"# {SOME_CODE}: ")


def test_the_list_has_every_rule_once(inside: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert inside("explain", "--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [entry.code for entry in catalogue.load()]


@pytest.mark.parametrize("words", [["explain", SOME_CODE], ["explain", "--list"], ["doctor"]])
def test_what_is_asked_for_as_json_is_json(
    words: list[str], inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    inside(*words, "--format", "json")
    assert json.loads(capsys.readouterr().out)


def test_the_doctor_tells_versions_and_what_the_runtime_takes(
    inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    from torchferry.foreign import onnxruntime as ort

    inside("doctor")
    said = capsys.readouterr().out
    assert ort.version() in said
    assert f"opset 7 to {ort.limits()[1]}, and IR version up to {ort.limits()[0]}" in said


def test_the_doctor_names_the_instruction_sets_and_what_the_processor_answered(
    inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    from torchferry.saturation.asked import features
    from torchferry.saturation.elsewhere import without_vnni

    inside("doctor")
    assert ", ".join(features()) in capsys.readouterr().out
    with without_vnni():
        inside("doctor")
        said = " ".join(capsys.readouterr().out.split())
        assert "it cuts off sums of 8-bit products in 13 of" in said
        assert "torchferry explain CHK050" in said
        inside("doctor", "--format", "json")
        assert "MatMulInteger of uint8 by int8" in json.loads(capsys.readouterr().out)["processor"]["cut_off"]


GOOD = {"torch": "2.13.0+cpu", "onnxruntime": "1.31.1", "numpy": "2.4.6"} | {
    name: "9" for name in doctor.NEEDED if name not in ("torch", "onnxruntime", "numpy")
}


def test_good_versions_are_no_trouble() -> None:
    assert doctor.known_bad(GOOD) == []


@pytest.mark.parametrize(
    ("change", "command"),
    [
        ({"onnxscript": None}, "pip install 'torchferry[export]'"),
        ({"torch": None, "onnxscript": None, "sympy": None}, "pip install 'torchferry[export]'"),
        ({"onnxruntime": None}, "pip install 'torchferry[onnxruntime]'"),
        ({"onnxruntime-gpu": "1.31.0"}, "pip uninstall -y onnxruntime onnxruntime-gpu"),
        ({"onnxruntime": "1.18.1"}, "onnxruntime>=1.19"),
        ({"onnxruntime": "1.14.0", "numpy": "1.26.4"}, "pip install -U onnxruntime"),
        ({"torch": "2.5.1"}, "torch>="),
    ],
)
def test_bad_combinations_are_named_with_the_command_that_mends_them(change: dict[str, str | None], command: str) -> None:
    (trouble,) = doctor.known_bad({**GOOD, **change})
    assert command in trouble.command


@pytest.mark.parametrize(
    ("release", "words"), [("2.13.0+cpu", ""), ("2.15.1", ""), ("2.16.0.dev1", "untested with torch 2.16"), (None, "")]
)
def test_a_torch_that_is_newer_than_any_that_was_tried_is_said_to_be_so(
    release: str | None,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    inside: Callable[..., int],
) -> None:
    assert untested(release).startswith(words)
    assert bool(untested(release)) == bool(words)
    monkeypatch.setattr(doctor, "versions", lambda: {**GOOD, "torch": release or GOOD["torch"]})
    inside("doctor")
    assert ("untested with torch 2.16" in capsys.readouterr().out) == bool(words)


def test_a_gpu_build_alone_is_a_runtime() -> None:
    assert doctor.known_bad({**GOOD, "onnxruntime": None, "onnxruntime-gpu": "1.31.0"}) == []


def test_what_packages_ask_of_each_other_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    asks = {"transformers": ['numpy<2; extra == "old"', "torch>=99", "packaging"]}
    monkeypatch.setattr(doctor.metadata, "requires", lambda name: asks.get(name, []))
    (trouble,) = doctor.unmet({**GOOD, "transformers": "5.0"})
    assert "transformers 5.0 asks for torch>=99, and torch is 2.13.0+cpu" in trouble.what


def test_a_broken_runtime_is_reported_and_not_raised(
    monkeypatch: pytest.MonkeyPatch, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    from torchferry.foreign import onnxruntime as ort

    def broken() -> tuple[int, int]:
        raise ImportError("libonnxruntime.so: cannot open shared object file")

    monkeypatch.setattr(ort, "limits", broken)
    assert inside("doctor") == 3
    assert "cannot open shared object file" in capsys.readouterr().out
