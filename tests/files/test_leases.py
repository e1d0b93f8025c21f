"""A live run's files are nobody else's to sweep away, and a dead one's are the next one's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny_models import read, write

from torchferry import files
from torchferry.files import leases, locks
from torchferry.files.journal import settle

HOLD = """
import pathlib, sys
from torchferry import files
with files.workspace(near=pathlib.Path(sys.argv[1]) / "m.onnx") as folder:
    (folder / "half").write_text("half")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """Another run, at work in a folder of its own."""
    run = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    yield run, Path(run.stdout.readline().strip())
    run.kill()
    run.communicate()


def sweep(place: Path) -> None:
    with files.workspace(near=place / "m.onnx"):
        pass


def _nobody(*_: object) -> None:
    raise ProcessLookupError


def test_a_run_in_another_container_is_left_alone(
    tmp_path: Path, other: tuple[subprocess.Popen[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as here:
        here.setattr(os, "kill", _nobody)  # its process id means nothing here
        sweep(tmp_path)
    assert (other[1] / "half").read_text() == "half"
    other[0].kill()
    other[0].wait()
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_process_that_was_forked_does_not_hold_the_lease(tmp_path: Path) -> None:
    script = f"""
import os, pathlib, time
from torchferry import files
with files.workspace(near=pathlib.Path({str(tmp_path)!r}) / "m.onnx"):
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.write(theirs, b"here")
        time.sleep(60)
        os._exit(0)
    os.read(ours, 4)
    os._exit(0)
"""
    run = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    run.wait()
    try:
        assert len(list(tmp_path.iterdir())) == 1
        sweep(tmp_path)
        assert list(tmp_path.iterdir()) == []
    finally:
        os.killpg(run.pid, 9)


def test_without_locks_only_what_is_a_week_old_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (leases, locks):
        monkeypatch.setattr(module, "locked", lambda handle: None)
    with files.workspace(near=tmp_path / "m.onnx") as folder:
        sweep(tmp_path)
        assert folder.is_dir()
        old = time.time() - 8 * 24 * 3600
        os.utime(folder.parent, (old, old))
        sweep(tmp_path)
        assert not folder.exists()


def test_what_is_not_our_own_is_never_swept(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / f"{files.PREFIX}link").symlink_to("mine")
    (tmp_path / f"{files.PREFIX}file").write_text("a file")
    (tmp_path / ".torchferry-cache").mkdir()
    before = sorted(tmp_path.iterdir())
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == before


def test_many_runs_that_begin_and_end_at_once_do_not_sweep_each_other(tmp_path: Path) -> None:
    wrong: list[BaseException] = []

    def work() -> None:
        try:
            for number in range(40):
                with files.workspace(near=tmp_path / "m.onnx") as folder:
                    (folder / "a").write_text(str(number))
                    assert (folder / "a").read_text() == str(number)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert list(tmp_path.iterdir()) == []


def test_many_runs_that_publish_at_once_leave_one_pair(tmp_path: Path) -> None:
    wrong: list[BaseException] = []

    def work(value: float) -> None:
        try:
            for _ in range(8):
                with files.workspace(near=tmp_path / "m.onnx") as folder:
                    files.publish(write(folder / "m.onnx", value), tmp_path / "m.onnx")
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=[float(n % 3)]) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(list(tmp_path.iterdir())) == 2
    assert read(tmp_path / "m.onnx") in (0.0, 1.0, 2.0)


def test_a_note_cannot_lead_out_of_its_folder(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    victim = tmp_path / "m.onnx.0123456789ab.data"
    victim.write_text("weights of somebody")
    dead = tmp_path / "out" / f"{files.PREFIX}dead"
    (dead / "saved").mkdir(parents=True)
    (dead / "saved" / "x").write_text("evil")
    inode = victim.stat().st_ino
    names = '["../m.onnx.0123456789ab.data", 7]'
    (dead / "published.json").write_text(
        f'{{"weights": {names}, "graphs": [], "home": "{tmp_path}", "replaced": {{"../{victim.name}": {inode}}}}}'
    )
    sweep(tmp_path / "out")
    assert victim.read_text() == "weights of somebody"
    assert list((tmp_path / "out").iterdir()) == []


def test_a_second_interrupt_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(root: Path) -> bool:
        signal.raise_signal(signal.SIGINT)
        return settle(root)

    monkeypatch.setattr(leases, "settle", interrupted)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), leases.lease(tmp_path):
            raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, handler)
    assert list(tmp_path.iterdir()) == []
