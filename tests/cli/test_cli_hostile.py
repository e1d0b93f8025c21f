"""Files of somebody who means ill, on the command line: their names reach neither the terminal, nor the page, nor the runner."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import numpy as np
import onnx
import pytest
from commands import environment, run
from onnx import TensorProto, helper

from torchferry.certificate import CERTIFICATE_KEY
from torchferry.cli import certificate, chat
from torchferry.cli.screen import Screen
from torchferry.progress import Event

EVIL = "\x1b[31m\x07\u202e\n::error file=x::owned\n![x](http://evil/x.png)`<img src=x>##[error]x"
FILE = f"a{EVIL}.onnx".replace("/", "")
KINDS = ("operator", "missing", "shapes", "reshape", "weights")


def _file(kind: str, path: Path) -> None:
    """Write a file in which every name is an attack, and which has a fault of a kind."""
    named = {name: f"{name}{EVIL}" for name in ("x", "y", "w", "node", "dim", "graph", "domain", "Foo", "nowhere", "data")}
    inputs, foreign = {"missing": ["x", "nowhere"], "operator": ["x"]}.get(kind, ["x", "w"]), kind == "operator"
    operator = named["Foo"] if foreign else "Reshape" if kind == "reshape" else "Add"
    node = helper.make_node(
        operator, [named[i] for i in inputs], [named["y"]], name=named["node"], domain=named["domain"] if foreign else ""
    )
    x = helper.make_tensor_value_info(named["x"], TensorProto.FLOAT, [named["dim"], 3])
    y = helper.make_tensor_value_info(named["y"], TensorProto.FLOAT, [named["dim"], 4])
    whole = kind == "reshape"
    weight = helper.make_tensor(
        named["w"], TensorProto.INT64 if whole else TensorProto.FLOAT, [2], [7, 5] if whole else [1.0, 1.0]
    )
    if kind == "weights":
        weight.ClearField("float_data")
        weight.data_location = TensorProto.EXTERNAL
        for key, value in (("location", named["data"]), ("offset", f"0{EVIL}"), ("length", "8")):
            weight.external_data.add(key=key, value=value)
    graph = helper.make_graph([node], named["graph"], [x], [y], [weight] if "w" in inputs else [])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(named["domain"], 1)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name=f"me{EVIL}", ir_version=9)
    helper.set_model_props(model, {f"key{EVIL}": EVIL})
    path.write_bytes(model.SerializeToString())


def _inert(written: str) -> None:
    assert {c for c in written if not c.isprintable()} <= {"\n", "\t"}
    assert not [line for line in written.splitlines() if line.strip().startswith("::error file=x")]
    assert not re.search(r"##\w*\[", written)


@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_file_is_told_of_and_does_nothing(
    kind: str, here: Path, inside: Callable[..., int], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(here / "summary.md"))
    _file(kind, here / FILE)
    assert inside("check", FILE, "--report", "report.html") in (0, 1, 3, 4)
    said = capfd.readouterr()
    for written in (said.out, said.err, (here / "summary.md").read_text(), (here / "report.html").read_text()):
        _inert(written)
    assert "a\\x1b[31m\\x07\\u202e\\n\\x3a:error" in said.out
    assert "<img" not in (here / "report.html").read_text()


def test_words_on_stderr_are_escaped_also_at_length(tmp_path: Path) -> None:
    _file("shapes", tmp_path / FILE)
    said = run("check", FILE, "-v", cwd=tmp_path)
    _inert(said.stdout)
    _inert(said.stderr)
    refused = run("check", f"nowhere{EVIL}", cwd=tmp_path)
    assert refused.returncode == 2
    _inert(refused.stderr)


def test_progress_and_errors_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    screen(Event("end", "capture", words=EVIL, seconds=1.0))
    screen(Event("repair", "capture", EVIL))
    screen.error(EVIL)
    screen.line(EVIL)
    _inert(capsys.readouterr().err)


class _Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_what_moves_on_a_terminal_has_no_markup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr("sys.stderr", terminal := _Terminal())
    with Screen() as screen:
        screen(Event("begin", "verify"))
        for words in ("[link=http://evil]x[/link]", "[/] x[0]", f"\x1b]0;owned\x07{EVIL}"):
            screen(Event("tick", "verify", words, done=1, total=2))
    assert "]8;" not in terminal.getvalue()
    assert "\x1b]0;" not in terminal.getvalue()


def test_a_session_says_what_is_wrong_in_its_own_words_alone(tmp_path: Path) -> None:
    for kind in KINDS:
        _file(kind, tmp_path / f"{kind}.onnx")
    np.save(tmp_path / "feed.npy", np.zeros((2, 3)))
    script = """
import sys, numpy, torchferry
feed, evil = numpy.load("feed.npy"), sys.argv[1]
for kind in sys.argv[2:]:
    try:
        session = torchferry.InferenceSession(f"{kind}.onnx")
    except Exception as error:
        print(kind, "opened", error)
        continue
    for names, fed in ((None, feed), (None, feed[:, :2]), (["z" + evil], feed)):
        try:
            session.run(names, {"x" + evil: fed})
        except Exception as error:
            print(kind, "run", error)
    try:
        session.profile({"x" + evil: feed})
    except Exception as error:
        print(kind, "profiled", error)
"""
    command = [sys.executable, "-c", script, EVIL, *KINDS]
    said = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, encoding="utf-8", check=True)
    assert {line.split()[0] for line in said.stdout.splitlines() if line.startswith(KINDS)} == set(KINDS)
    assert "reshape profiled" in said.stdout
    assert "CoercionWarning: RUN004: `x\\x1b" in said.stderr
    _inert(said.stdout)
    _inert(said.stderr)


def test_a_certificate_is_told_line_by_line(here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert inside("export", "models.py:fine", "-o", "m.onnx", "-q") == 0
    model = onnx.load("m.onnx")
    (prop,) = [p for p in model.metadata_props if p.key == CERTIFICATE_KEY]
    prop.value = json.dumps({**json.loads(prop.value), "notes": ["\x1b[31m\nverified: all of it ##[error]x"]})
    onnx.save(model, "m.onnx")
    capsys.readouterr()
    for form in ("text", "json"):
        certificate.show(Path("m.onnx"), form)
        said = capsys.readouterr().out
        assert "verified: all of it" in said
        assert not [line for line in said.splitlines() if line.startswith("verified")]
        _inert(said)


def test_a_models_own_words_do_nothing_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    chat._show("hello \x1b]0;owned\x07\u202e\r\x9b2J\U0001f469\u200d\U0001f4bb\n")
    assert capsys.readouterr().out == "hello \\x1b]0;owned\\x07\\u202e\\r\\x9b2J\U0001f469\u200d\U0001f4bb\n"
