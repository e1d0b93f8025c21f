"""A small DialoGPT-shaped model with a tokenizer, exported once for all tests of generation."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from small import small_model

from torchferry import pipeline
from torchferry.demo_dialogue import tokenizer as small_tokenizer
from torchferry.records import History, Job
from torchferry.tasks import export_directory


@pytest.fixture(scope="session")
def tokenizer() -> Any:
    return small_tokenizer()


@pytest.fixture(scope="session")
def model(tokenizer: Any) -> Any:
    return small_model(len(tokenizer))


@pytest.fixture(scope="session")
def result(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the export came to."""
    return export_directory(model, tmp_path_factory.mktemp("exported") / "out", tokenizer=small_tokenizer())


@pytest.fixture(scope="session")
def exported(result: Any) -> Path:
    """The directory that the export wrote."""
    return Path(result.path).parent


@pytest.fixture
def exported_before(result: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an export go on from the graph that was exported for all tests, instead of making another just like it."""

    def heal(job: Job, allow: Any) -> History:
        assert job.workspace is not None
        made = Path(shutil.copy(result.path, job.workspace / "model.onnx"))
        known = [step for step in result.history.best.steps if step.stage != "generate"]
        known = [replace(s, value=replace(s.value, path=made)) if hasattr(s.value, "path") else s for s in known]
        case = pipeline.run(job, tuple(known))
        return History((case,), case)

    monkeypatch.setattr(pipeline, "heal", heal)


@pytest.fixture(scope="session")
def runtime(exported: Path) -> Any:
    from torchferry.runtime.generation import CausalLM

    return CausalLM.from_pretrained(exported, threads=1)
