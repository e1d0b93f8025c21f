"""A small DialoGPT-shaped model with a tokenizer, exported once for all tests of generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small import small_model

from torchferry.demo_dialogue import tokenizer as small_tokenizer
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


@pytest.fixture(scope="session")
def runtime(exported: Path) -> Any:
    from torchferry.runtime.generation import CausalLM

    return CausalLM.from_pretrained(exported, threads=1)
