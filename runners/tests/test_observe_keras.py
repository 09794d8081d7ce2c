"""Observing scripts of Keras 3, on the backend that the environment has."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import observe_keras
import pytest
from observe_keras import Faces
from observed import Observed
from tiers import FULL, full_tier

pytest.importorskip("numpy")
if importlib.util.find_spec("keras") is None or importlib.util.find_spec("tf_keras"):
    pytest.skip("no Keras 3, or beside Keras 2", allow_module_level=True)
BACKEND = next(
    name for name in ("jax", "torch", "tensorflow") if importlib.util.find_spec(name)
)

# What no backend has code of its own for is seen on one of them.
on_one_backend = pytest.mark.skipif(
    not FULL and BACKEND != "tensorflow", reason="on TensorFlow; on all in make full"
)


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Faces:
    path = observe_keras.written(tmp_path_factory.mktemp("keras"), "keras")
    return Faces(path, "keras", {"KERAS_BACKEND": BACKEND})


def test_fit(faces: Faces) -> None:
    observe_keras.check_fit(faces, BACKEND)


@on_one_backend
def test_switches_of_fit(faces: Faces) -> None:
    observe_keras.check_switches_of_fit(faces)


def test_switches_of_compile(faces: Faces) -> None:
    observe_keras.check_switches_of_compile(faces, BACKEND, BACKEND == "tensorflow")


def test_cached_batch(faces: Faces) -> None:
    observe_keras.check_cached_batch(faces)


@full_tier
def test_calls(faces: Faces, tmp_path: Path) -> None:
    observe_keras.check_calls(faces, tmp_path)


@pytest.mark.skipif(BACKEND != "jax", reason="others keep what takes any size")
def test_predictions_of_many_sizes_are_compiled(faces: Faces, tmp_path: Path) -> None:
    observe_keras.check_sizes(faces, tmp_path)


@on_one_backend
def test_logits(faces: Faces, tmp_path: Path) -> None:
    observe_keras.check_logits(faces, BACKEND, tmp_path)


@full_tier
def test_fits(faces: Faces) -> None:
    observe_keras.check_fits(faces)


@full_tier
def test_others(faces: Faces) -> None:
    observe_keras.check_others(faces)


@pytest.mark.skipif(BACKEND == "jax", reason="its variables cannot be differentiated")
def test_apply(faces: Faces) -> None:
    observe_keras.check_apply(faces)


HEAVY = """
import numpy as np
import keras

layers = keras.layers
model = keras.Sequential(
    [keras.Input((64,)), layers.Dense(2048), layers.Dense(2048), layers.Dense(1)]
)
model.compile("sgd", "mse")
rows = np.zeros((1536, 64), "float32")
model.fit(
    rows,
    rows[:, :1],
    batch_size=256,
    epochs=6,
    verbose=0,
    validation_data=(rows[:8], rows[:8, :1]),
)
"""


@full_tier
@pytest.mark.skipif(BACKEND != "jax", reason="others compute before a call returns")
def test_what_steps_compute_is_no_part_of_a_validation(tmp_path: Path) -> None:
    path = tmp_path / "heavy.py"
    path.write_text(HEAVY)
    with Observed(path) as script:
        script.run(8)
        seen = script.run(12, facts=True)
    spent = seen["facts"]["keras"]["validation_s"] * len(seen["marks"])
    assert 0 < spent < 0.3e-9 * seen["ns"]
    marks = [seen["begun"], *seen["marks"]]
    steps = sorted(b - a for a, b in zip(marks, marks[1:]))
    assert sum(steps[-3:]) > 0.5 * sum(steps), "an epoch's last step waits for all"
