"""Tests start from the same random numbers, in whatever order and company they run, and hypothesis minds no busy machine."""

from __future__ import annotations

import random
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    if find_spec("torch") is not None:  # what a light installation does is tested in one
        import torch

        torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
