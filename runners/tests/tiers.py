"""The full tier, with BAKEOFF_FULL_TESTS=1 (`make full`): what others see in part."""

from __future__ import annotations

import os

import pytest

FULL = bool(os.environ.get("BAKEOFF_FULL_TESTS"))
full_tier = pytest.mark.skipif(not FULL, reason="with BAKEOFF_FULL_TESTS=1 (make full)")
