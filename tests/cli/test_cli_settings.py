"""The table of a project: what it sets, what it may not, and at which line that is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchferry.cli import settings, settings_table, work
from torchferry.errors import UsageError


def project(folder: Path, table: str) -> Path:
    (folder / "pyproject.toml").write_text(f'[project]\nname = "x"\n\n[tool.torchferry]\n{table}\n', encoding="utf-8")
    return folder


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[work.Ask]:
    """What commands ask for, in place of the work."""
    seen: list[work.Ask] = []

    def note(ask: work.Ask) -> int:
        seen.append(ask)
        return 0

    monkeypatch.setattr(work, "work", note)
    return seen


def test_the_table_sets_defaults_and_the_command_line_goes_before(
    here: Path, inside: Callable[..., int], asked: list[work.Ask]
) -> None:
    project(here, 'trials = 9\ntime-limit = 60\nrange = ["batch=1..4"]\ntolerance = 1e-3')
    inside("export", "models.py:fine", "--trials", "5")
    ask = asked[0]
    assert (ask.trials, ask.time_limit, ask.ranges, ask.tolerance) == (5, 60.0, ("batch=1..4",), "0.001")
    assert "time-limit = 60.0" in ask.settings
    assert not any(words.startswith("trials") for words in ask.settings)


def test_what_a_project_sets_is_said_first(here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    project(here, 'target = "tensorrt"')
    assert inside("export", "models.py:fine") == 2
    assert capsys.readouterr().err.splitlines()[0] == "export models.py:fine -> model.onnx (by pyproject.toml: target = tensorrt)"


@pytest.mark.parametrize(
    ("table", "line", "words"),
    [
        ("\ntrails = 3", 6, "`trails` is not among what may stand there (did you mean `trials`?)"),
        ("seed = 1\ntime_limt = 3", 6, "(did you mean `time-limit`?)"),
        ("trials = true", 5, "must be a whole number"),
        ("trials = 0", 5, "out of range"),
        ('repair = "unsafe"', 5, "of the form off|safe"),
        ("trust = true", 5, "`trust` is not among"),
        ('model = "evil:model"', 5, "`model` is not among"),
        ('libraries = ["evil.so"]', 5, "`libraries` is not among"),
        ('output = "/etc/passwd"', 5, "`output` is not among"),
        ('reproducer = "x"', 5, "`reproducer` is not among"),
        ('task = "text-generation"', 5, "`task` is not among"),
    ],
)
def test_what_may_not_stand_there_is_told_with_its_line(table: str, line: int, words: str, tmp_path: Path) -> None:
    project(tmp_path, table)
    with pytest.raises(UsageError) as told:
        settings.read(tmp_path)
    assert f"pyproject.toml:{line}: in [tool.torchferry], " in str(told.value)
    assert words in str(told.value)


@pytest.mark.parametrize("text", [f"[tool.torchferry]\ntrials = {'1' * 5000}", "[tool]\ntorchferry = 'x'", "tool = 'torchferry'"])
def test_what_is_no_table_or_no_number_is_told(text: str, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"pyproject\.toml"):
        settings.read(tmp_path)


def test_a_file_that_is_no_toml_is_told_where_it_speaks_of_torchferry(tmp_path: Path) -> None:
    project(tmp_path, "trials = = 3")
    with pytest.raises(UsageError, match="line 5"):
        settings.read(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project\n", encoding="utf-8")
    assert settings.read(tmp_path).options == {}


def test_the_nearest_project_is_found_and_not_one_beyond_the_repository(tmp_path: Path) -> None:
    project(tmp_path, "trials = 9")
    (tmp_path / "inner" / "deep").mkdir(parents=True)
    assert settings.read(tmp_path / "inner" / "deep").options == {"trials": 9}
    (tmp_path / "inner" / ".git").mkdir()
    assert settings.read(tmp_path / "inner" / "deep").options == {}


def test_help_is_given_whatever_the_table_says(
    here: Path, inside: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    project(here, "trails = 3")
    assert inside("export", "--help") == 0
    assert inside("export", "models.py:fine") == 2
    assert "did you mean `trials`" in capsys.readouterr().err


def test_every_setting_is_an_option_of_a_command(here: Path) -> None:
    from test_cli_flags import words_of

    known: set[Any] = {flag.removeprefix("--") for flag in words_of("export")}
    assert {name.replace("_", "-") for name in settings_table.Table.__dataclass_fields__} <= known
