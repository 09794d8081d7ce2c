"""An emitted script trained by itself: its own functions, no worker, no step marks.

For torch the loop of its ``main``; for Keras, each burst one uninterrupted ``fit`` of so
many steps, timed from its first batch to the end of the last, without a callback that
would be called in between.
"""

from __future__ import annotations

import importlib.util
import os
from itertools import islice
from pathlib import Path
from typing import Any

from pairing.bursts import Bursts


def train(bursts: Bursts, script_file: str, data: str, weights: str) -> None:
    spec = importlib.util.spec_from_file_location(Path(script_file).stem, script_file)
    assert spec is not None and spec.loader is not None
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    train_keras = hasattr(script, "compile_model")
    (_keras if train_keras else _torch)(bursts, script, data, weights)


def _torch(bursts: Bursts, script: Any, data: str, weights: str) -> None:
    from safetensors.torch import load_file

    model = script.make_model()
    model.load_state_dict(load_file(weights))
    optimizer = script.make_optimizer(model)
    batches = script.batches(*script.load_data(Path(data)))
    for steps in bursts:
        for batch in islice(batches, steps):
            loss = script.train_step(model, optimizer, *batch)
        bursts.done(loss.item())


def _keras(bursts: Bursts, script: Any, data: str, weights: str) -> None:
    import keras
    from bakeoff_runner.adapters.keras_backends import BACKENDS

    x, y = script.load_data(data)
    model = script.build_model()
    script.load_weights(model, weights)
    script.compile_model(model)
    barrier = BACKENDS[os.environ["KERAS_BACKEND"]]().barrier

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]
        def on_train_begin(self, logs: Any = None) -> None:
            bursts.start()

        def on_train_end(self, logs: Any = None) -> None:
            barrier(self.model)
            bursts.stop()

    for steps in bursts:
        rows = steps * script.BATCH_SIZE
        fit = script.fit(model, x[:rows], y[:rows], epochs=1, callbacks=[Clock()])
        bursts.done(float(fit.history["loss"][-1]), "mean")
