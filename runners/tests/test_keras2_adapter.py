"""What Keras 2 has of its own; what it shares with Keras 3: test_keras_adapter.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("tf_keras") is None:
    pytest.skip("needs tf_keras", allow_module_level=True)

import numpy as np
from supervisor import WorkerProcess
from test_keras_adapter import (  # noqa: F401
    Problem,
    prepare,
    problem,
    worker,
)

from bakeoff_runner.adapter import RunCommand, RunResult, TrainCommands
from bakeoff_runner.adapters.keras_adapter import _new_bursts
from bakeoff_runner.adapters.keras_libraries import Keras2
from bakeoff_runner.adapters.keras_waits import Waits


def test_a_short_execution_that_was_left_does_not_shorten_the_next(
    worker: WorkerProcess,  # noqa: F811
    tmp_path: Path,
    problem: Problem,  # noqa: F811
) -> None:
    assert prepare(worker, tmp_path, steps=2)["ok"]
    # Of the three batches of an epoch the last is an execution of one step, before
    # which `fit` is left.
    assert worker.ask("run", steps=1)["steps"] == 2
    losses = worker.ask("losses", steps=3)["losses"]
    assert losses == pytest.approx(problem.losses(3), rel=1e-12)
    assert worker.ask("run", steps=1)["steps"] == 2


def test_has_no_backend_to_choose(worker: WorkerProcess) -> None:  # noqa: F811
    options = {"backend": "tensorflow"}
    answer = worker.ask("import", options=options, threads=1)
    assert not answer["ok"]
    assert "unknown option 'backend' of framework keras2" in answer["error"]


class Nothing(TrainCommands):
    def next(self) -> RunCommand | None:
        return None

    def answer(self, result: RunResult) -> None:
        pass

    @property
    def mark(self) -> Any:
        return None


def test_bursts_do_not_wait_for_the_logs_of_a_step() -> None:
    library = Keras2()
    library.start()
    bursts = _new_bursts(
        library, library.backend({}), Nothing(), Waits(), lambda sums: {}
    )
    callbacks = library.keras.callbacks
    made = callbacks.CallbackList([bursts], add_history=True)
    assert made._batch_hooks_support_tf_logs
    other = callbacks.CallbackList([bursts, callbacks.Callback()], add_history=True)
    assert other._batch_hooks_support_tf_logs, "it has no hook of a batch"

    class Ends(callbacks.Callback):  # type: ignore[misc, name-defined]
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            pass

    assert not callbacks.CallbackList([bursts, Ends()])._batch_hooks_support_tf_logs


@pytest.mark.parametrize("shape", [(4, 2), (2, 3, 2, 1)])
def test_the_fused_batch_norm_keeps_the_unbiased_variance(shape: Any) -> None:
    """What src/emit/keras/defaults.cc says: unbiased for pictures, else biased."""
    from tf_keras import layers

    pictures = len(shape) == 4
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    norm = layers.BatchNormalization()
    norm(x, training=True)
    assert norm.fused == pictures
    axes = tuple(range(len(shape) - 1))
    variance = x.astype(float).var(axis=axes, ddof=1 if pictures else 0)
    np.testing.assert_allclose(
        norm.moving_variance.numpy(), 0.99 + 0.01 * variance, rtol=1e-5
    )


@pytest.mark.parametrize("kind", ["SGD", "RMSprop", "Adam", "AdamW"])
def test_stock_optimizers_add_up_the_rows_of_an_embedding(kind: str) -> None:
    """What src/emit/keras/optimizer.cc relies on."""
    import tensorflow as tf
    import tf_keras

    start = np.arange(6.0).reshape(3, 2)
    rows = tf.constant([[0.5, -1.0], [2.0, 0.25], [1.5, 1.0]], tf.float64)
    sparse = tf.IndexedSlices(rows, tf.constant([2, 2, 1]), tf.constant([3, 2]))
    dense = np.zeros((3, 2))
    np.add.at(dense, [2, 2, 1], rows.numpy())
    results = []
    for gradient in (sparse, tf.constant(dense)):
        variable = tf.Variable(start)
        optimizer = getattr(tf_keras.optimizers, kind)(0.1)
        for _ in range(3):
            optimizer.apply_gradients([(gradient, variable)])
        results.append(variable.numpy())
    assert not np.array_equal(results[0], start)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-12)


def test_adaptive_epsilon_is_the_form_outside() -> None:
    import tensorflow as tf
    import tf_keras

    gradient, eps = 0.5, 0.1
    variable = tf.Variable([0.0], dtype=tf.float64)
    optimizer = tf_keras.optimizers.Adam(
        np.float64(1.0), epsilon=eps, adaptive_epsilon=True
    )
    optimizer.apply_gradients([(tf.constant([gradient], tf.float64), variable)])
    expected = gradient / (np.sqrt(gradient**2) + eps)  # both moments corrected
    assert -variable.numpy()[0] == pytest.approx(expected, rel=1e-4)
