"""Keras 2, the package tf_keras, on TensorFlow.

Scripts offer what those of keras_adapter.py offer, with ``import tf_keras as keras``;
the adapter is that one with another library.
"""

from __future__ import annotations

from bakeoff_runner.adapter import Adapter
from bakeoff_runner.adapters.keras_adapter import KerasAdapter
from bakeoff_runner.adapters.keras_libraries import Keras2
from bakeoff_runner.adapters.tensorflow_shared import probe_tensorflow
from bakeoff_runner.probe import Probe


def probe(probe: Probe) -> None:
    """What the environment holds that is named after it (see probe.py)."""
    probe.load_framework("tf_keras")
    probe_tensorflow(probe)
    import tf_keras

    probe.say("floatx", tf_keras.backend.floatx())


def make() -> Adapter:
    return KerasAdapter(Keras2())
