"""What may stand at the place of an output: files, links, pipes, long names; and what the system may have against it."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_models import WORTH, read, write

import torchferry
from torchferry import files
from torchferry.errors import UsageError


def put(path: Path, value: float) -> None:
    files.check_writable(path)
    with files.workspace(near=path) as folder:
        files.publish(write(folder / path.name, value), path)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def run(path: Path) -> float:
    return float(torchferry.InferenceSession(path).run(None, {"x": np.zeros(WORTH, np.float32)})[0][0])


def test_weights_are_on_the_disk_before_the_graph_that_names_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "m.onnx", 1.0)
    (old,) = tmp_path.glob("*.data")
    told: list[tuple[str, str]] = []
    replace, unlink = os.replace, os.unlink
    monkeypatch.setattr(os, "fsync", lambda handle: told.append(("sync", Path(os.readlink(f"/proc/self/fd/{handle}")).name)))
    monkeypatch.setattr(os, "replace", lambda a, b: (told.append(("rename", Path(b).name)), replace(a, b)))
    monkeypatch.setattr(os, "unlink", lambda p, **k: (told.append(("remove", Path(p).name)), unlink(p, **k)))
    put(tmp_path / "m.onnx", 2.0)
    (new,) = tmp_path.glob("*.data")
    wanted = [
        *(("sync", new.name), ("rename", new.name), ("sync", tmp_path.name)),
        *(("sync", "m.onnx"), ("rename", "m.onnx"), ("sync", tmp_path.name)),
        ("remove", old.name),
    ]
    there = iter(told)
    assert [step for step in wanted if step not in there] == [], told


@pytest.mark.parametrize("value", [1.0, 2.0])
def test_a_link_is_followed_and_kept(tmp_path: Path, value: float) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "near").mkdir()
    if value == 2.0:  # else it leads nowhere yet
        put(tmp_path / "far" / "real.onnx", 1.0)
    (tmp_path / "near" / "m.onnx").symlink_to("../far/real.onnx")
    put(tmp_path / "near" / "m.onnx", value)
    assert (tmp_path / "near" / "m.onnx").is_symlink()
    assert read(tmp_path / "far" / "real.onnx") == value
    assert run(tmp_path / "near" / "m.onnx") == run(tmp_path / "far" / "real.onnx") == value


def test_a_link_to_another_disk_is_followed(tmp_path: Path) -> None:
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system to write to")
    with files.workspace(near=memory / "m.onnx") as folder:
        (tmp_path / "m.onnx").symlink_to(folder / "real.onnx")
        put(tmp_path / "m.onnx", 1.0)
        assert read(folder / "real.onnx") == run(tmp_path / "m.onnx") == 1.0


@pytest.mark.parametrize("target", ["no/such/folder.onnx", "m.onnx"])
def test_a_link_to_nowhere_is_refused_in_words(tmp_path: Path, target: str) -> None:
    (tmp_path / "m.onnx").symlink_to(tmp_path / target)
    with pytest.raises(UsageError, match=r"does not exist|lead back to themselves"):
        put(tmp_path / "m.onnx", 1.0)


def test_modes_are_kept_and_new_files_have_those_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        put(tmp_path / "m.onnx", 1.0)
        assert {mode(p) for p in tmp_path.iterdir()} == {0o640}
        (tmp_path / "m.onnx").chmod(0o600)
        put(tmp_path / "m.onnx", 2.0)
        assert {mode(p) for p in tmp_path.iterdir()} == {0o600}
        (tmp_path / "far.md").write_text("old")
        (tmp_path / "far.md").chmod(0o600)
        (tmp_path / "near.md").symlink_to("far.md")
        files.write_text(tmp_path / "near.md", "new")
        assert (tmp_path / "far.md").read_text() == "new"
        assert mode(tmp_path / "far.md") == 0o600
    finally:
        os.umask(before)


def test_what_is_no_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.onnx")
    for path, words in {tmp_path / "pipe.onnx": "a pipe", Path("/dev/null"): "a device", tmp_path: "a directory"}.items():
        with pytest.raises(UsageError, match=words):
            torchferry.export(lambda x: x, (), path)
    assert stat.S_ISFIFO((tmp_path / "pipe.onnx").stat().st_mode)
    with files.workspace(near=tmp_path / "m.onnx") as folder, pytest.raises(UsageError, match="a pipe"):
        files.publish(write(folder / "pipe.onnx", 1.0), tmp_path / "pipe.onnx")  # it came to be while the work was done
    assert names(tmp_path) == ["pipe.onnx"]


@pytest.mark.parametrize(
    "name", ["m" * 250 + ".onnx", "é" * 125 + ".onnx", "a\nb.onnx", "a\\b.onnx", " .onnx", "noending", "é`$;.onnx"]
)
def test_any_name_that_the_disk_takes_will_do(tmp_path: Path, name: str) -> None:
    for value in (1.0, 2.0):
        put(tmp_path / name, value)
        assert read(tmp_path / name) == value
    assert len(names(tmp_path)) == 2
    assert run(tmp_path / name) == 2.0


@pytest.mark.parametrize("name", ["m" * 251 + ".onnx", "m\0.onnx", "/".join(["m" * 200] * 25), "m\udcff.onnx"])
def test_a_name_that_the_disk_or_a_runtime_does_not_take_is_refused_in_words(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"too long|no zero byte|does not exist|not text in UTF-8"):
        torchferry.export(lambda x: x, (), tmp_path / name)


def test_no_place_for_temporary_files_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/proc/nowhere"])
    with pytest.raises(UsageError, match="No usable temporary directory"):
        torchferry.export(torch.nn.ReLU(), (torch.ones(2, 3),))


def test_a_deleted_working_directory_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(UsageError, match="the working directory no longer exists"):
        torchferry.export(lambda x: x, (), "m.onnx")
    put(tmp_path / "m.onnx", 1.0)
    assert read(tmp_path / "m.onnx") == 1.0


def test_a_folder_without_permission_is_told_before_any_work(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    tmp_path.parent.chmod(0o755)
    script = f"""
import os, pathlib
from torchferry import files
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
try:
    files.check_writable(pathlib.Path({str(tmp_path / "m.onnx")!r}))
except ValueError as error:
    print(error)
"""
    try:
        told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    finally:
        tmp_path.chmod(0o755)
    assert told.startswith(f"cannot write `{tmp_path / 'm.onnx'}`: "), told


EXPORT = """
import sys, torch, torchferry
from torchferry.translate import save
if sys.argv[2] == "beside":
    save.INLINE_BYTES = 0
import resource
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    torchferry.export(torch.nn.Linear(64, 256), (torch.randn(2, 64),), sys.argv[1])
except torchferry.UsageError as error:
    print(error)
"""


@pytest.mark.parametrize("where", ["inside", "beside"])
def test_a_limit_on_the_size_of_files_is_told(tmp_path: Path, where: str) -> None:
    command = [sys.executable, "-c", EXPORT, str(tmp_path / "m.onnx"), where]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert told == "stage `translate` cannot write its files: it would be larger than a file may be here; see `ulimit -f`\n"
    assert names(tmp_path) == []


def test_the_command_line_tells_a_limit_with_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text("import torch\nmodel = torch.nn.Linear(64, 256)\n")
    command = [sys.executable, "-m", "torchferry", "export", "models.py:model", "--input", "input:2x64", "-o", "m.onnx", "-q"]
    limit = (20_000, 20_000)
    made = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
    )
    assert made.returncode == 2, made.stderr
    assert "larger than a file may be here" in made.stderr
    assert names(tmp_path) == ["models.py"]


def test_a_name_in_bytes_is_refused_in_words() -> None:
    with pytest.raises(UsageError, match="it is bytes"):
        torchferry.export(torch.nn.Linear(3, 3), (torch.ones(2, 3),), b"model.onnx")  # type: ignore[arg-type]
