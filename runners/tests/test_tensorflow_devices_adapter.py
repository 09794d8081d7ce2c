"""The TensorFlow adapter and scripts that train on two devices, which are processors
here, without what these exchange (silence.py).

A process of its own: TensorFlow is told how many devices it has before its first use.
"""

from __future__ import annotations

from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("tensorflow")

from bakeoff_runner.adapter import BuildRequest  # noqa: E402
from bakeoff_runner.adapters import tensorflow_adapter  # noqa: E402
from bakeoff_runner.tensors import write_safetensors  # noqa: E402

SCRIPT = """
import functools
import itertools

import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file

BATCH_SIZE = 4
DEVICES = 2
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * DEVICES,
)
STRATEGY = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(DEVICES)])


def load_data(path):
    data = load_file(path)
    return data["x"].astype(np.float32), data["t"].astype(np.float32)


def split_rows(array):
    parts = np.split(array, DEVICES)
    return STRATEGY.experimental_distribute_values_from_function(
        lambda replica: tf.constant(parts[replica.replica_id_in_sync_group])
    )


def batches(arrays):
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tuple(split_rows(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]
    return itertools.cycle(ready)


class Model(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.weight = tf.Variable(weights["weight"])

    def __call__(self, x):
        return x @ self.weight


class Descent(tf.Module):
    def __init__(self, variables):
        super().__init__()
        self.targets = list(variables)

    def apply_gradients(self, gradients):
        for variable, g in zip(self.targets, gradients):
            variable.assign_sub(0.1 * g)


def train_step(model, optimizer, x, t):
    def part(x, t):
        with tf.GradientTape() as tape:
            context = tf.distribute.get_replica_context()
            error = model(x) - t
            centre = context.all_reduce("mean", tf.reduce_mean(error, 0))
            loss = tf.reduce_mean(tf.square(error - tf.stop_gradient(centre))) / DEVICES
        return loss, tape.gradient(loss, optimizer.targets)

    loss, gradients = STRATEGY.run(part, args=(x, t))
    gradients = [STRATEGY.reduce("sum", g, axis=None) for g in gradients]
    optimizer.apply_gradients(gradients)
    return STRATEGY.reduce("sum", loss, axis=None)


def compiled(function, *modules):
    return tf.function(functools.partial(function, *modules))
"""


def test_each_device_trains_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensorflow_adapter, "SILENT", True)
    rng = np.random.default_rng(1)
    x, t = rng.normal(size=(2, 12, 2)).astype("f4")
    w = rng.normal(size=(2, 2)).astype("f4")
    write_safetensors(tmp_path / "data.safetensors", {"x": x, "t": t})
    write_safetensors(tmp_path / "weights.safetensors", {"weight": w})
    (tmp_path / "mine.py").write_text(SCRIPT)
    paths = (tmp_path / f"{name}.safetensors" for name in ("weights", "data"))
    adapter = tensorflow_adapter.TensorFlowAdapter()
    adapter.import_framework({"devices": "2"}, 2)
    effective = adapter.build(BuildRequest(tmp_path / "mine.py", *paths, None))
    assert (effective["devices"], effective["communication"]) == (2, "off")
    adapter.run(5, lambda: None)
    held = {v.device[-5:]: v.numpy() for v, _ in adapter._initial}
    for device in (0, 1):
        expected = w.copy()
        for step in range(5):
            first = step % 3 * 4 + 2 * device
            own_x, own_t = x[first : first + 2], t[first : first + 2]
            error = own_x @ expected - own_t
            error -= error.mean(0)
            expected -= 0.1 * own_x.T @ error / 4
        np.testing.assert_allclose(held[f"CPU:{device}"], expected, rtol=1e-5)
    adapter.restore()
    assert all((v.numpy() == w).all() for v, _ in adapter._initial)
