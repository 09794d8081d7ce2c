"""Tests in the order that BAKEOFF_TEST_SHUFFLE gives (scripts/run_ctest.py)."""

from __future__ import annotations

import os
import random
from typing import Any


def pytest_collection_modifyitems(items: list[Any]) -> None:
    if seed := os.environ.get("BAKEOFF_TEST_SHUFFLE"):
        random.Random(seed).shuffle(items)
