"""Keras 2, the package tf_keras, on TensorFlow.

Scripts offer what those of keras_adapter.py offer, with ``import tf_keras as keras``;
the adapter is that one with another library.
"""

from __future__ import annotations

from bakeoff_runner.adapter import Adapter
from bakeoff_runner.adapters.keras_adapter import KerasAdapter
from bakeoff_runner.adapters.keras_libraries import Keras2


def make() -> Adapter:
    return KerasAdapter(Keras2())
