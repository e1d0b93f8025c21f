"""What is the system's: it is touched behind one door, and where it is missing everything goes on without it."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import helper

from torchferry.foreign import posix as door

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "torchferry"
FILES = [p for p in sorted(SOURCE.rglob("*.py")) if p != Path(door.__file__)]
MODULES = ("fcntl", "resource", "pwd", "grp", "termios", "tty", "pty", "posix", "syslog", "msvcrt", "winreg")
OF_OS = (
    "fork", "forkpty", "wait", "waitpid", "killpg", "setsid", "geteuid", "getuid", "getgid", "chown", "register_at_fork",
    "sysconf", "sched_getaffinity", "nice", "uname", "mkfifo", "O_DIRECTORY", "O_NOFOLLOW", "WIFEXITED", "statvfs", "getloadavg",
)  # fmt: skip
OF_SIGNAL = (
    "SIGHUP", "SIGKILL", "SIGALRM", "SIGTSTP", "SIGSTOP", "SIGCONT", "SIGUSR1", "SIGCHLD", "setitimer", "getitimer", "alarm",
    "pause", "ITIMER_REAL", "pthread_kill", "sigwait",
)  # fmt: skip
HIDE = f"""
import os, signal, sys
for name in {[m for m in MODULES if m not in ("posix", "msvcrt", "winreg")]}:
    sys.modules[name] = None
for name in {[n for n in OF_OS if n not in ("waitpid", "uname", "register_at_fork")]}:
    vars(os).pop(name, None)
for name in {[n for n in OF_SIGNAL if n != "SIGKILL"]}:  # which `subprocess` ends a child with
    vars(signal).pop(name, None)
"""
WORK = """
import numpy, torch, torchferry
from torchferry.foreign import posix
from torchferry.memory import free

assert not (posix.has_alarms() or posix.can_fork() or posix.can_supervise() or posix.limits()), "nothing is hidden"
assert posix.locked(1) is None
session = torchferry.InferenceSession("m.onnx")
print(session.run(None, {"x": numpy.full((1, 2), -1.0, numpy.float32)})[0].tolist())


class Halves(torch.nn.Module):
    def forward(self, x):
        return x / 2


print(torchferry.export(Halves(), (torch.rand(3, 2),), "halves.onnx").ok)
"""


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_no_other_file_touches_what_one_system_alone_has(path: Path) -> None:
    assert list(touched(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "code",
    [
        "import fcntl",
        "from resource import getrlimit",
        "import os\nos.fork()",
        "from os import fork",
        "import signal\nsignal.signal(signal.SIGALRM, stop)",
        "getattr(os, 'geteuid')()",
        "subprocess.run(words, preexec_fn=begin)",
        "subprocess.Popen(words, pass_fds=[3])",
        "ctypes.CDLL(None)",
    ],
)
def test_what_one_system_alone_has_is_noticed(code: str) -> None:
    assert list(touched(code))


@pytest.mark.parametrize(
    "code", ["os.kill(1, signal.SIGTERM)", "import posixpath", "signal.getsignal(signal.SIGINT)", "x.fork()"]
)
def test_what_every_system_has_is_let_through(code: str) -> None:
    assert list(touched(code)) == []


@pytest.fixture(scope="module")
def poorer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file, and with what hides all that from every Python that starts there."""
    place = tmp_path_factory.mktemp("poorer")
    (place / "hiding").mkdir()
    (place / "hiding" / "sitecustomize.py").write_text(HIDE, encoding="utf-8")
    kinds = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", kinds[:1], kinds[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), place / "m.onnx")
    return place


def test_a_file_is_checked_without_it(poorer: Path) -> None:
    ended = python(poorer, "-m", "torchferry", "check", "m.onnx")
    assert (ended.returncode, "loads and runs" in ended.stdout) == (0, True), ended.stderr


def test_a_file_is_run_and_a_model_exported_without_it_and_nothing_is_left_behind(poorer: Path) -> None:
    (poorer / "work.py").write_text(WORK, encoding="utf-8")
    ended = python(poorer, "work.py")
    assert ended.stdout.splitlines() == ["[[1.0, 1.0]]", "True"], ended.stderr
    assert (poorer / "halves.onnx").is_file()
    assert not list(poorer.glob(".torchferry*"))


@pytest.mark.skipif(not door.can_fork(), reason="this system has no forks")
def test_the_end_of_a_copy_of_this_process_is_told() -> None:
    if (pid := door.fork()) == 0:
        door.end_now()
    assert door.exit_code(pid) == -signal.SIGKILL
    assert door.exit_code(pid) is None
    door.kill(pid)  # is not there any more, which is no error


@pytest.mark.skipif(door.module("fcntl") is None, reason="this system has no locks of files")
def test_a_lock_is_somebodys_until_the_file_is_closed(tmp_path: Path) -> None:
    one, other = (os.open(tmp_path / "lease", os.O_RDWR | os.O_CREAT) for _ in range(2))
    assert (door.locked(one), door.locked(other)) == (True, False)
    os.close(one)
    assert door.locked(other) is True
    os.close(other)


def touched(code: str) -> Iterator[str]:
    """Yield what a piece of code touches that not every system has."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name in MODULES)
        elif isinstance(node, ast.ImportFrom):
            names = OF_OS if node.module == "os" else OF_SIGNAL if node.module == "signal" else ()
            yield from (a.name for a in node.names if a.name in names or node.module in MODULES)
        elif isinstance(node, ast.Attribute):
            names = {"os": OF_OS, "signal": OF_SIGNAL}.get(ast.unparse(node.value), ())
            yield from [ast.unparse(node)] if node.attr in names else []
        elif isinstance(node, ast.Call):
            yield from _called(node)


def _called(node: ast.Call) -> Iterator[str]:
    name, first = ast.unparse(node.func), [ast.unparse(a) for a in node.args[:2]]
    yield from (k.arg for k in node.keywords if k.arg in ("preexec_fn", "pass_fds"))
    if name.endswith("CDLL") and first == ["None"]:
        yield "CDLL(None)"
    if name in ("getattr", "hasattr") and first[1:] and first[0] in ("os", "signal"):
        yield from [first[1]] if first[1].strip("'\"") in (*OF_OS, *OF_SIGNAL) else []


def python(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join((str(place / "hiding"), str(ROOT / "src")))
    env = {"PYTHONPATH": path, "PATH": "/usr/bin:/bin", "HOME": str(place), "USERNAME": "anybody", "OMP_NUM_THREADS": "1"}
    return subprocess.run([sys.executable, *words], cwd=place, env=env, capture_output=True, text=True, timeout=200, check=False)
