"""Bakeoff from Python: your own model raced, or written in other frameworks.

    import bakeoff

    bakeoff.race(model, example, loss="mse", frameworks=["torch", "jax"])
    bakeoff.translate(model, example, to="jax")

``model`` is a live torch module, of a notebook too, or what the command line takes:
"model.py:make", a path to an ONNX file, a workload with weights, a recipe. Both give a
table: a pandas DataFrame where pandas is installed, else a `Table`. docs/python.md.
"""

from __future__ import annotations

from bakeoff._doors import race, translate
from bakeoff._program import BakeoffError
from bakeoff._table import Report, Table

__all__ = ["BakeoffError", "Report", "Table", "race", "translate"]
