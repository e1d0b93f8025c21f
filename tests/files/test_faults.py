"""Every file operation of publishing fails in turn; afterwards the old is there or the new, whole, and nothing else."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from failing_files import Way, failing
from tiny_models import read, write

from torchferry import files
from torchferry.errors import UsageError


@dataclass(frozen=True)
class Scene:
    """How things were, what is done, and what is then read from the place."""

    before: Callable[[Path], None]
    work: Callable[[Path], None]
    read: Callable[[Path], object]


@pytest.fixture(autouse=True)
def _no_disk_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda handle: None)


def _model(place: Path, value: float = 2.0) -> None:
    with files.in_words(place), files.workspace(near=place / "m.onnx") as folder:
        files.publish(write(folder / "m.onnx", value), place / "m.onnx")


def _old_model(place: Path) -> None:
    _model(place, 1.0)


def _linked(place: Path) -> None:
    (place / "far").mkdir()
    (place / "m.onnx").symlink_to(place / "far" / "real")
    _old_model(place)


def _read_linked(place: Path) -> object:
    assert (place / "m.onnx").is_symlink()
    assert all((place / name).samefile(place / "far" / name) for name in files.weights_named(place / "m.onnx"))
    return read(place / "far" / "real")


def _directory(place: Path, value: float) -> None:
    with files.in_words(place), files.workspace(near=place / "out") as folder:
        for name in ("decoder.onnx", "encoder.onnx"):
            write(folder / name, value)
        for name in ("config.json", "torchferry.json", f"only-{value}.json"):
            (folder / name).write_text(str(value))
        files.publish_directory(folder, place / "out", last="torchferry.json")


def _read_directory(place: Path) -> object:
    out = place / "out"
    if not out.exists():
        return "nothing"
    found = {read(out / "decoder.onnx"), read(out / "encoder.onnx")}
    found |= {float((out / name).read_text()) for name in ("config.json", "torchferry.json")}
    (value,) = found
    assert (out / "mine.txt").exists() == (out / "only-1.0.json").exists()
    assert (out / f"only-{value}.json").exists()
    return value


def _old_directory(place: Path) -> None:
    _directory(place, 1.0)
    (place / "out" / "mine.txt").write_text("a file of the user's")


SCENES = {
    "a first model": Scene(lambda place: None, _model, lambda p: read(p / "m.onnx") if (p / "m.onnx").exists() else "nothing"),
    "a model": Scene(_old_model, _model, lambda p: read(p / "m.onnx")),
    "the same model": Scene(_model, _model, lambda p: read(p / "m.onnx")),
    "through a link": Scene(_linked, _model, _read_linked),
    "a text": Scene(
        lambda p: files.write_text(p / "t.md", "1"),
        lambda p: files.write_text(p / "t.md", "2"),
        lambda p: (p / "t.md").read_text(),
    ),
    "a first directory": Scene(lambda place: None, lambda p: _directory(p, 2.0), _read_directory),
    "a directory": Scene(_old_directory, lambda p: _directory(p, 2.0), _read_directory),
}


def listing(place: Path) -> list[str]:
    return sorted(str(p.relative_to(place)) for p in place.rglob("*"))


@pytest.fixture(params=SCENES)
def scene(request: pytest.FixtureRequest) -> Scene:
    return SCENES[request.param]


@pytest.fixture
def whole(scene: Scene, tmp_path: Path) -> dict[object, list[str]]:
    """What may be read afterwards, the old first, each with the files that then lie there and no others."""
    (tmp_path / "whole").mkdir()
    scene.before(tmp_path / "whole")
    states = {_state(scene, tmp_path / "whole"): listing(tmp_path / "whole")}
    failing.run(lambda: scene.work(tmp_path / "whole"))
    states[scene.read(tmp_path / "whole")] = listing(tmp_path / "whole")
    return states


def _state(scene: Scene, place: Path) -> object:
    return scene.read(place) if any(place.iterdir()) else "nothing"


def swept(place: Path) -> None:
    """Do what the next run does first."""
    for folder in (place, place / "far", place / "out"):
        files.sweep(folder)


def fresh(scene: Scene, place: Path) -> Path:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    scene.before(place)
    return place


@pytest.mark.parametrize(("way", "number"), [("error", errno.ENOSPC), ("from then on", errno.EIO), ("short", 0)])
def test_an_operation_that_fails_leaves_the_old_or_the_new(
    scene: Scene, whole: dict[object, list[str]], tmp_path: Path, way: Way, number: int
) -> None:
    operations = list(enumerate(failing.seen, 1))
    assert {"open", "os.mkdir", "os.fsync", "os.rename", "os.remove"} < set(failing.seen)
    for at in [n for n, name in operations if way != "short" or name == "os.write"]:
        place, told = fresh(scene, tmp_path / "tried"), ""
        try:
            failed = failing.run(lambda place=place: scene.work(place), at, way, number)  # type: ignore[misc]
        except UsageError as error:
            told, failed = str(error), failing.failed
        assert failed, at
        assert not told or told.startswith("cannot write `"), told
        if not files.under_way(place / "out"):
            assert _state(scene, place) in (whole if told else [list(whole)[-1]]), f"{at}, {failed}"
        if not told or way == "from then on":  # the work was done, and what was left over could not be removed
            swept(place)
        assert listing(place) == whole[_state(scene, place)], f"{at}, {failed}"


def test_a_crash_leaves_the_old_or_the_new_once_the_next_run_has_swept(
    scene: Scene, whole: dict[object, list[str]], tmp_path: Path
) -> None:
    crashed, operations = 0, len(failing.seen)
    for at in range(1, operations + 1):
        place = fresh(scene, tmp_path / "tried")
        crashed += failing.crashes(lambda place=place: scene.work(place), at)  # type: ignore[misc]
        if not files.under_way(place / "out"):  # a reader refuses a directory that is
            assert _state(scene, place) in whole, at
        swept(place)
        assert listing(place) == whole[_state(scene, place)], at
    assert crashed == operations


def test_a_graph_that_another_still_names_keeps_its_weights(tmp_path: Path) -> None:
    _old_model(tmp_path)
    shutil.copyfile(tmp_path / "m.onnx", tmp_path / "kept.onnx")
    _model(tmp_path)
    assert (read(tmp_path / "m.onnx"), read(tmp_path / "kept.onnx")) == (2.0, 1.0)
    (tmp_path / "kept.onnx").unlink()
    _old_model(tmp_path)
    assert len(list(tmp_path.glob("*.data"))) == 1


def test_weights_of_others_are_never_removed(tmp_path: Path) -> None:
    write(tmp_path / "m.onnx", 1.0, "weights.data")
    write(tmp_path / "n.onnx", 1.0, files.data_name("n.onnx", "0123456789ab"))
    (tmp_path / "n.onnx").rename(tmp_path / "m2.onnx")  # another's, by its name
    for name in ("m.onnx", "m2.onnx"):
        with files.workspace(near=tmp_path / name) as folder:
            files.publish(write(folder / name, 2.0), tmp_path / name)
    assert {"weights.data", "n.onnx.0123456789ab.data"} < set(listing(tmp_path))
