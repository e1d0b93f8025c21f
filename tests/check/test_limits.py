"""Limits hold: of time in whatever thread, of memory at a share of what is free, and what was not run is not said to run."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from broken_files import linear, model, node, value
from onnx import helper

import torchferry
from torchferry import memory
from torchferry.check.reading import external, fingerprint, graph
from torchferry.check.types import fold
from torchferry.deadline import TookTooLong, time_limit
from torchferry.records import Budget, Fault
from torchferry.runtime.session import SessionError
from torchferry.worker import Worker


def saved(made: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def doubling(depth: int) -> onnx.ModelProto:
    """A model whose functions each call the one before twice: 2^depth nodes, in a few bytes for each step."""
    own = [helper.make_opsetid("", 18), helper.make_opsetid("my", 1)]
    functions = [helper.make_function("my", "F0", ["a"], ["b"], [node("Relu", ["a"], ["b"])], own)]
    for i in range(depth):
        twice = [node(f"F{i}", ["a"], ["t"], domain="my"), node(f"F{i}", ["t"], ["b"], domain="my")]
        functions.append(helper.make_function("my", f"F{i + 1}", ["a"], ["b"], twice, own))
    made = model(
        [node(f"F{depth}", ["x"], ["y"], domain="my")], [value("x", 1, ["N"])], [value("y", 1, ["N"])], extra=[("my", 1)]
    )
    made.functions.extend(functions)
    return made


# --- time -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("elsewhere", [False, True], ids=["main-thread", "another-thread"])
def test_functions_that_call_each_other_without_end_are_an_answer_within_the_time(elsewhere: bool, tmp_path: Path) -> None:
    path = saved(doubling(40), tmp_path)
    assert path.stat().st_size < 4000
    codes: list[str] = []
    asked = threading.Thread(
        target=lambda: codes.extend(d.code for d in torchferry.check(path, budget=Budget(time_limit=6)).diagnoses)
    )
    asked.start() if elsewhere else asked.run()
    if elsewhere:
        asked.join(60)
        assert not asked.is_alive()
    assert codes in (["CHK030"], ["RUN901"])  # who is first to lose patience with it, the worker's limit or the stage's


def test_nobody_waits_for_the_other_end_of_a_pipe(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "model.onnx")
    (told,) = torchferry.check(path, repair="off", budget=Budget(time_limit=5)).diagnoses
    assert "a pipe" in told.message
    for special in (path, "/dev/zero"):
        with time_limit(5, "the session"), pytest.raises(SessionError, match="a pipe, a device"):
            torchferry.InferenceSession(special)


def test_how_many_nodes_a_model_comes_to_is_known_before_it_is_written_out() -> None:
    small = doubling(3)
    assert graph.written_out(small) == 1 + 2 + 4 + 8 + 8
    assert len(graph.flat(small).graph.node) == 8
    large = doubling(60)
    assert graph.flat(large) is large
    large.functions[0].node[0].op_type, large.functions[0].node[0].domain = "F60", "my"
    assert graph.written_out(large) == float("inf")


def test_a_constant_that_doubles_at_each_step_is_worked_out_once_or_not_at_all() -> None:
    inner = [node("Add", [f"c{i}", f"c{i}"], [f"c{i + 1}"]) for i in range(40)]
    made = model(inner, [value("x", 1, [3])], [value("c40", 7, [1])], [("c0", [1])])
    assert fold.value("c40", made.graph, {}) == 2**40
    joined = [node("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], axis=0) for i in range(60)]
    made = model(joined, [value("x", 1, [3])], [value("c60", 7, [1])], [("c0", [1])])
    assert fold.value("c60", made.graph, {}) is None
    wide = [node("Add", ["row", "column"], ["y"])]
    made = model(wide, [], [value("y", 7, None)], [("row", np.ones((1, 60000), int)), ("column", np.ones((60000, 1), int))])
    assert fold.value("y", made.graph, {}) is None


def test_a_limit_of_time_holds_in_every_thread() -> None:
    ends: list[BaseException | str] = []

    def endless() -> None:
        try:
            with time_limit(0.2, "counting"):
                while True:
                    sum(range(1000))
        except TookTooLong as error:
            ends.append(error)
        for _ in range(200):  # what is raised at the very end of a block is raised in it, or not at all
            try:
                with time_limit(0.001, "waiting"):
                    until = time.monotonic() + 0.001
                    while time.monotonic() < until:
                        pass
            except TookTooLong:
                pass
        ends.append("whole")

    thread = threading.Thread(target=endless)
    thread.start()
    thread.join(60)
    assert str(ends[0]) == "counting took longer than the time limit of 0.2 s"
    assert type(ends[0]).__name__ == "TookTooLong"
    assert ends[1:] == ["whole"]


def test_a_limit_of_work_is_not_used_up_by_waiting_for_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(seconds: float, share: float) -> None:
        """Stay for so many seconds, of which this process is given a share."""
        monkeypatch.setattr("torchferry.deadline.time.process_time", lambda: share * time.monotonic())
        with time_limit(0.1, "the block", again=0.02, of_work=True):
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                pass

    busy(0.3, share=0.2)
    for seconds, share in ((30, 0.5), (30, 0.0)):  # one has had its turn, and one waits for something that never comes
        with pytest.raises(TookTooLong):
            busy(seconds, share)


# --- memory -----------------------------------------------------------------------------------------

WIDE = model([node("Expand", ["x", "s"], ["y"])], [value("x", 1, [1])], [value("y", 1, None)], [("s", [1 << 31])])


def test_a_small_file_that_asks_for_much_is_refused_with_what_it_may_take(tmp_path: Path, capfd: Any) -> None:
    with Worker(60.0, memory_limit=1 << 30) as worker:
        key = worker.open(saved(WIDE, tmp_path))
        assert isinstance(key, str)
        fault = worker.run(key, {"x": np.ones(1, np.float32)}, keep=False)
        assert isinstance(fault, Fault)
        assert "8589934592 (it may take 1.0 GiB here, at most 50% of the memory that is free)" in fault.text
        assert "\n" not in fault.text.strip()
    assert not capfd.readouterr().err


def test_values_too_large_to_hand_over_are_a_fault_and_the_process_lives_on(tmp_path: Path) -> None:
    wide = model([node("Expand", ["x", "s"], ["y"])], [value("x", 1, [1])], [value("y", 1, None)], [("s", [1 << 27])])
    with Worker(60.0, memory_limit=1 << 30) as worker:
        key = worker.open(saved(wide, tmp_path))
        assert isinstance(key, str)
        fed = {"x": np.ones(1, np.float32)}
        assert worker.run(key, fed, keep=False) == []
        fault = worker.run(key, fed)
        assert isinstance(fault, Fault)
        assert "handed over" in fault.text
        assert worker.version(), "it is the same process still"


def test_a_runtime_that_has_no_memory_at_all_dies_in_words(tmp_path: Path, capfd: Any) -> None:
    with Worker(60.0, memory_limit=1 << 20) as worker:
        fault = worker.open(saved(linear(), tmp_path))
    assert isinstance(fault, Fault)
    assert "it may take 0.0 GiB here" in fault.text
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("megabytes", [4096, 1024, 400, 200, 150, 100])
def test_under_any_hard_limit_of_the_shell_there_is_an_answer_in_words(megabytes: int, tmp_path: Path) -> None:
    command = f"ulimit -v {megabytes << 10}; exec {sys.executable} -m torchferry check {saved(linear(), tmp_path)}"
    asked = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=300, check=False)
    said = asked.stdout + asked.stderr
    assert "Traceback" not in said
    assert "report it" not in said
    if megabytes >= 400:
        assert asked.returncode == 0, said
        assert "loads and runs" in said
    else:
        assert ("loads and runs" in said) == (asked.returncode == 0)
        assert asked.returncode == 0 or "memory" in said.lower(), said


def test_a_soft_limit_of_the_user_is_never_raised() -> None:
    script = """
import resource
from torchferry.verify.run.memory import little_memory
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, resource.RLIM_INFINITY))
with little_memory():
    assert resource.getrlimit(resource.RLIMIT_AS)[0] == 1 << 30
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def system(root: Path, groups: str, **files: str) -> Path:
    for name, text in {"proc/meminfo": "MemTotal: 100 kB\nMemAvailable:  2000 kB\n", "proc/self/cgroup": groups, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("groups", "files", "free"),
    [
        ("", {}, 2000 << 10),
        ("0::/a/b\n", {"a/memory.max": "900000", "a/memory.current": "100000", "a/b/memory.max": "max"}, 800000),
        ("0::/a\n", {"a/memory.max": "9", "a/memory.current": "5", "a/memory.stat": "anon 3\ninactive_file 2\n"}, 6),
        ("0::/from/outside\n", {"memory.max": "700", "memory.current": "300"}, 400),
        ("0::/a\n", {"a/memory.max": "100", "a/memory.current": "300"}, 0),
        ("5:cpu:/\n4:memory:/a\n", {"memory/a/memory.limit_in_bytes": "800", "memory/a/memory.usage_in_bytes": "300"}, 500),
        ("4:memory:/\n", {"memory/memory.limit_in_bytes": str(2**63 - 4096), "memory/memory.usage_in_bytes": "3"}, 2000 << 10),
        ("0::/a\n", {"a/memory.max": "much", "a/memory.current": "²"}, 2000 << 10),
        ("nonsense\n::\n0::/../../etc\n", {}, 2000 << 10),
    ],
)  # fmt: skip
def test_what_is_free_is_the_least_that_anybody_leaves(groups: str, files: dict[str, str], free: int, tmp_path: Path) -> None:
    held = {f"sys/fs/cgroup/{name}": text for name, text in files.items()}
    assert memory.free(system(tmp_path, groups, **held)) == free


# --- what was run, and what was not -----------------------------------------------------------------


def test_a_file_that_was_not_run_is_not_said_to_run(tmp_path: Path) -> None:
    huge = model([node("Relu", ["x"], ["y"])], [value("x", 1, [2**60])], [value("y", 1, [2**60])])
    result = torchferry.check(saved(huge, tmp_path))
    assert [d.code for d in result.diagnoses] == ["RUN023"]
    assert "was not run" in result.diagnoses[0].message
    assert "67,108,864 elements" in result.diagnoses[0].message
    assert str(result).splitlines()[0].endswith("loads; it was not seen to run")


def test_an_input_of_more_axes_than_an_array_has_is_a_diagnosis(tmp_path: Path) -> None:
    deep = model([node("Relu", ["x"], ["y"])], [value("x", 1, [1] * 70)], [value("y", 1, [1] * 70)])
    result = torchferry.check(saved(deep, tmp_path))
    assert [d.code for d in result.diagnoses] == ["RUN023"]
    assert "`x` has 70 axes" in result.diagnoses[0].message


@pytest.mark.parametrize("offset", ["²", "٣", "9" * 5000, "-1", "1_0", ""])
def test_an_offset_that_is_no_number_is_a_diagnosis(offset: str, tmp_path: Path) -> None:
    made = linear()
    tensor = made.graph.initializer[0]
    raw = tensor.raw_data
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="w.bin")
    tensor.external_data.add(key="offset", value=offset)
    (tmp_path / "w.bin").write_bytes(raw)
    assert external.piece_of(tensor).offset == 0
    with pytest.raises(fingerprint.WeightsUnreadable, match="no place in a file"):
        fingerprint.fingerprint(made, tmp_path)
    codes = [d.code for d in torchferry.check(saved(made, tmp_path)).diagnoses]
    assert "RUN900" not in codes, codes
