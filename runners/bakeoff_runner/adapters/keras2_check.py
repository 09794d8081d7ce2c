"""What `bakeoff check` looks for in scripts of Keras 2: the same as in Keras 3."""

from __future__ import annotations

from bakeoff_runner.adapters.keras_check import BUILDS_ON_OTHERS, Source, parts

__all__ = ["BUILDS_ON_OTHERS", "PACKAGES", "Source", "parts"]

PACKAGES = {"tf_keras"}
