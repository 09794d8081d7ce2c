"""What `bakeoff check` looks for in scripts of Keras 2: the same as in Keras 3."""

from bakeoff_runner.adapters.keras_check import Source, parts

__all__ = ["Source", "parts"]
