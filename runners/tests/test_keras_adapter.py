"""The Keras adapter, through a worker, on whichever backend is installed here.

Where tf_keras is installed: that of Keras 2, on TensorFlow.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BACKEND = next(
    (b for b in ("tensorflow", "jax", "torch") if importlib.util.find_spec(b)), None
)
SECOND = importlib.util.find_spec("tf_keras") is not None
if BACKEND is None or not (SECOND or importlib.util.find_spec("keras")):
    pytest.skip("needs Keras and a backend", allow_module_level=True)
os.environ["KERAS_BACKEND"] = BACKEND
FRAMEWORK = "keras2" if SECOND else "keras"

import numpy as np  # noqa: E402
from supervisor import WorkerProcess  # noqa: E402
from tiers import FULL  # noqa: E402

from bakeoff_runner.tensors import read_safetensors, write_safetensors  # noqa: E402

# What no backend has code of its own for is seen on TensorFlow.
on_one_backend = pytest.mark.skipif(
    not FULL and BACKEND != "tensorflow", reason="on TensorFlow; on all in make full"
)

SCRIPT = """
import keras
import numpy as np
from keras import layers
from safetensors.numpy import load_file

BATCH_SIZE = 4


def load_data(path):
    tensors = load_file(path)
    return tensors["x"], tensors["y"]


def build_model():
    x = keras.Input((3,), name="x")
    h = layers.Dropout(0.5)(x)
    return keras.Model(x, layers.Dense(2, name="out")(h))


def compile_model(model):
    model.compile(
        optimizer=keras.optimizers.SGD(0.1, momentum=0.9),
        loss="mse",
        steps_per_execution=STEPS,
    )


def fit(model, x, y, epochs, callbacks=None):
    rows = len(y) // BATCH_SIZE * BATCH_SIZE
    return model.fit(
        x[:rows],
        y[:rows],
        batch_size=BATCH_SIZE,
        epochs=epochs,
        shuffle=False,
        callbacks=callbacks,
        verbose=0,
    )
"""
if SECOND:
    SCRIPT = SCRIPT.replace("import keras\n", "import tf_keras as keras\n")
    SCRIPT = SCRIPT.replace("from keras import", "from tf_keras import")
LAYOUT = """{"out.weight": {"target": "out/kernel", "perm": [1, 0]},
 "out.bias": {"target": "out/bias"}}"""


class Problem:
    """Linear regression by numpy: the same as SCRIPT without dropout."""

    def __init__(self) -> None:
        rng = np.random.default_rng(7)
        self.x = rng.normal(size=(14, 3)).astype(np.float32)  # 3 batches and 2 rows
        self.y = rng.normal(size=(14, 2)).astype(np.float32)
        self.weight = rng.normal(size=(2, 3)).astype(np.float32)
        self.bias = rng.normal(size=2).astype(np.float32)

    def losses(self, steps: int) -> list[float]:
        w, b = self.weight.astype(float), self.bias.astype(float)
        vw, vb = np.zeros_like(w), np.zeros_like(b)
        losses = []
        for step in range(steps):
            loss, gw, gb = self.gradients(w, b, step % 3 * 4)
            losses.append(loss)
            vw, vb = 0.9 * vw - 0.1 * gw, 0.9 * vb - 0.1 * gb
            w, b = w + vw, b + vb
        return losses

    def gradients(self, w: Any, b: Any, first: int) -> tuple[float, Any, Any]:
        x, y = (a[first : first + 4].astype(float) for a in (self.x, self.y))
        error = x @ w.T + b - y
        slope = 2 * error / error.size
        return float(np.mean(error**2)), slope.T @ x, slope.sum(axis=0)


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    made = Problem()
    write_safetensors(tmp_path / "data.safetensors", {"x": made.x, "y": made.y})
    weights = {"out.weight": made.weight, "out.bias": made.bias}
    write_safetensors(tmp_path / "weights.safetensors", weights)
    (tmp_path / "mine.layout.json").write_text(LAYOUT)
    return made


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    with WorkerProcess(FRAMEWORK) as process:
        yield process


def prepare(
    worker: WorkerProcess, folder: Path, text: str = SCRIPT, **fields: Any
) -> dict[str, Any]:
    options = {} if SECOND else {"backend": str(BACKEND)}
    info = worker.ask("import", options=options, threads=1)
    assert info["ok"], info
    return rebuild(worker, folder, text, **fields)


def rebuild(
    worker: WorkerProcess, folder: Path, text: str = SCRIPT, **fields: Any
) -> dict[str, Any]:
    (folder / "mine.py").write_text(text.replace("STEPS", str(fields.pop("steps", 1))))
    return worker.ask(
        "build",
        script=str(folder / "mine.py"),
        weights=str(folder / "weights.safetensors"),
        data=str(folder / "data.safetensors"),
        **{"dropout": False, "dtype": "float64", **fields},
    )


def test_each_build_has_its_own_precision(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    """As in a process that has built nothing before."""
    out = tmp_path / "out.safetensors"
    wanted = problem.losses(4)
    single = None
    assert prepare(worker, tmp_path, dtype="float32")["ok"]
    for dtype in ("float32", "float64", "float32"):
        built = rebuild(worker, tmp_path, dtype=dtype)
        assert built["ok"], built
        assert built["effective"]["dtype"] == dtype
        losses = worker.ask("losses", steps=4)["losses"]
        assert worker.ask("parity", batch=[0, 4], out=str(out))["ok"]
        assert read_safetensors(out)["output"].dtype == dtype
        if dtype == "float64":
            assert losses == pytest.approx(wanted, rel=1e-12)
        else:
            assert losses == (single or losses)
            assert losses == pytest.approx(wanted, rel=1e-5)
            assert losses != pytest.approx(wanted, rel=1e-12)
            single = losses


@on_one_backend
def test_a_build_may_have_another_batch(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    built = prepare(worker, tmp_path, batch=2)
    assert built["ok"], built
    assert built["effective"]["batch"] == 2
    # The script's own size again.
    assert rebuild(worker, tmp_path)["effective"]["batch"] == 4


def test_losses_follow_the_arithmetic_and_wrap_around(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    built = prepare(worker, tmp_path)
    assert built["ok"], built
    assert built["effective"]["parameters"] == 8
    assert built["effective"]["optimizer"]["class"] == "SGD"
    for _ in range(2):  # from the initial state each time
        answer = worker.ask("losses", steps=8)
        assert answer["ok"], answer
        assert answer["losses"] == pytest.approx(problem.losses(8), rel=1e-12)
    assert 0 < answer["first_ns"] < answer["ns"]


def test_parity_gives_gradients_and_one_update_and_changes_nothing(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    assert prepare(worker, tmp_path)["ok"]
    assert worker.ask("losses", steps=2)["ok"]
    given = {"out.weight": np.ones((2, 3)), "out.bias": np.full(2, -2.0)}
    write_safetensors(tmp_path / "grads.safetensors", given)
    for _ in range(2):
        answer = worker.ask(
            "parity",
            batch=[4, 4],
            out=str(tmp_path / "out.safetensors"),
            grads_in=str(tmp_path / "grads.safetensors"),
            activations=True,
        )
        assert answer["ok"], answer
        found = read_safetensors(tmp_path / "out.safetensors")
        w, b = problem.weight.astype(float), problem.bias.astype(float)
        loss, gw, gb = problem.gradients(w, b, 4)
        np.testing.assert_allclose(found["loss"], loss, rtol=1e-12)
        np.testing.assert_allclose(found["grad/out.weight"], gw, rtol=1e-12)
        np.testing.assert_allclose(found["grad/out.bias"], gb, rtol=1e-12)
        np.testing.assert_allclose(found["update/out.weight"], w - 0.1, rtol=1e-12)
        np.testing.assert_allclose(found["update/out.bias"], b + 0.2, rtol=1e-12)
        output = problem.x[4:8].astype(float) @ w.T + b
        np.testing.assert_allclose(found["output"], output, rtol=1e-12)
        np.testing.assert_allclose(found["activation/out"], output, rtol=1e-12)


ROUNDED = """
class Rounded(layers.Layer):
    def call(self, x):
        x = keras.ops.cast(x, "float32") / 3
        rows = keras.ops.reshape(x, (1, -1, 1, 3))
        seen = keras.ops.dot_product_attention(rows, rows, rows, scale=0.7)
        keras.ops.argmax(x, axis=-1)  # as an accuracy does
        return keras.ops.reshape(seen, (-1, 3))


def build_model():
    x = keras.Input((3,), name="x")
    h = layers.Softmax(dtype="float32")(Rounded()(x))
    return keras.Model(x, layers.Dense(2, name="out")(h))
"""


@pytest.mark.skipif(SECOND, reason="KerasHub has layers of Keras 3")
def test_a_layer_of_a_library_is_proven(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    """Its code says float32, and the workload's table is no variable of it."""
    table = np.array([0.1, 1 / 3])
    weights = {"out.weight": problem.weight, "out.bias": problem.bias, "table": table}
    write_safetensors(tmp_path / "weights.safetensors", weights)
    stated = '{"inputs": {"x": "f32", "y": "f32"}, "batch": 4, "frozen": ["table"]}'
    (tmp_path / "mine.contender.json").write_text(stated)
    built = prepare(worker, tmp_path, SCRIPT + ROUNDED)
    assert built["ok"], built
    out = tmp_path / "out.safetensors"
    assert worker.ask("parity", batch=[0, 4], out=str(out))["ok"]
    found = read_safetensors(out)

    def softmax(z: Any) -> Any:
        return np.exp(z) / np.exp(z).sum(axis=-1, keepdims=True)

    x = problem.x[:4].astype(float) / 3
    hidden = softmax(softmax(0.7 * x @ x.T) @ x)
    wanted = hidden @ problem.weight.astype(float).T + problem.bias
    np.testing.assert_allclose(found["output"], wanted, rtol=1e-13)
    np.testing.assert_array_equal(found["buffer/table"], table)
    assert rebuild(worker, tmp_path, SCRIPT + ROUNDED, dtype="float32")["ok"]
    assert worker.ask("parity", batch=[0, 4], out=str(out))["ok"]
    found = read_safetensors(out)
    assert found["output"].dtype == np.float32
    np.testing.assert_allclose(found["output"], wanted, rtol=1e-5)
    (tmp_path / "mine.contender.json").write_text(stated.replace('"table"', ""))
    answer = rebuild(worker, tmp_path, SCRIPT + ROUNDED)
    assert "mine.py has no 'table'" in answer["error"]


@pytest.mark.skipif(SECOND, reason="Keras 2 scripts are float32")
def test_a_loss_scale_is_halved_until_gradients_are_finite(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    problem.y += 100  # an error of 100 by 2^15 is beyond float16
    tensors = {"x": problem.x, "y": problem.y}
    write_safetensors(tmp_path / "data.safetensors", tensors)
    policy = 'keras.config.set_dtype_policy("mixed_float16")\n\nBATCH_SIZE'
    mixed = SCRIPT.replace("BATCH_SIZE", policy, 1)
    assert prepare(worker, tmp_path, mixed, dtype="float32")["ok"]
    _, gw, gb = problem.gradients(problem.weight, problem.bias, 4)
    for _ in range(2):
        answer = worker.ask(
            "parity", batch=[4, 4], out=str(tmp_path / "out.safetensors")
        )
        assert answer["ok"], answer
        found = read_safetensors(tmp_path / "out.safetensors")
        np.testing.assert_allclose(found["grad/out.weight"], gw, rtol=0.01, atol=0.1)
        np.testing.assert_allclose(found["grad/out.bias"], gb, rtol=0.01)


def test_bursts_report_the_steps_they_made(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    assert prepare(worker, tmp_path)["ok"]
    for steps in (1, 3, 7):
        answer = worker.ask("run", steps=steps)
        assert answer["ok"], answer
        assert answer["steps"] == steps
        assert 0 < answer["ns"] <= answer["wall_ns"]
    assert worker.ask("losses", steps=2)["losses"] == pytest.approx(problem.losses(2))


@pytest.mark.skipif(BACKEND == "torch", reason="one step per execution only")
def test_bursts_end_with_an_execution(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    built = prepare(worker, tmp_path, steps=2)
    assert built["effective"]["steps_per_execution"] == 2
    answer = worker.ask("losses", steps=5)
    assert answer["losses"] == pytest.approx(problem.losses(5), rel=1e-12)
    # An epoch has three batches: executions of two steps and of one, in turn. The
    # first begins with batch 5, the third of an epoch that fit sees as its first.
    assert worker.ask("run", steps=1)["steps"] == 2
    assert worker.ask("run", steps=1)["steps"] == 1
    assert worker.ask("run", steps=4)["steps"] == 5


@pytest.mark.skipif(BACKEND == "torch", reason="one step per execution only")
@pytest.mark.usefixtures("problem")
def test_an_epoch_shorter_than_an_execution_hands_its_batches_on(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    built = prepare(worker, tmp_path, steps=4)
    assert built["ok"], built
    answer = worker.ask("batches", count=5, row_shapes=[[3], [2]])
    assert answer["ok"], answer
    assert len(answer["sha256"]) == 5


def waits(answer: dict[str, Any]) -> tuple[int, int]:
    """How many batches within an epoch and how many first ones a burst waited for."""
    assert answer["ok"], answer
    wait = answer["wait"]
    assert 0 <= wait["ns"] + wait["first_ns"] < answer["ns"]
    assert (wait["ns"] > 0) == (wait["batches"] > 0)
    assert (wait["first_ns"] > 0) == (wait["firsts"] > 0)
    return wait["batches"], wait["firsts"]


@pytest.mark.skipif(BACKEND == "tensorflow", reason="the graph reads its batches")
def test_bursts_tell_their_waits(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    """An epoch has three batches."""
    assert prepare(worker, tmp_path)["ok"]
    assert worker.ask("losses", steps=4)["ok"]
    # On torch `fit` has its first batch before the burst begins, and at the end of a
    # burst the first of the next one.
    early = BACKEND == "torch"
    expected = [(1, 0), (5, 2)] if early else [(0, 1), (5, 2)]
    assert [waits(worker.ask("run", steps=n)) for n in (1, 7)] == expected
    # A loop that was left begins an epoch of its own.
    assert worker.ask("losses", steps=2)["ok"]
    assert waits(worker.ask("run", steps=2)) == ((2, 0) if early else (1, 1))


@pytest.mark.skipif(BACKEND != "tensorflow", reason="fit reads its batches")
def test_a_graph_that_reads_its_batches_tells_no_waits(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    assert prepare(worker, tmp_path)["ok"]
    answer = worker.ask("run", steps=4)
    assert answer["ok"], answer
    assert answer.get("wait") is None, "nothing, not a zero"


@pytest.mark.skipif(BACKEND != "jax", reason="JAX alone: more steps, read by fit")
def test_executions_of_several_steps_tell_the_waits_of_each(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    assert prepare(worker, tmp_path, steps=2)["ok"]
    assert waits(worker.ask("run", steps=1)) == (1, 1)
    assert waits(worker.ask("run", steps=1)) == (1, 0)
    assert waits(worker.ask("run", steps=3)) == (2, 1)


SLOW = """

class Slow(keras.utils.SEQUENCE):
    def __init__(self, x, y):
        super().__init__()
        self.x, self.y = x, y

    def __len__(self):
        return len(self.y) // BATCH_SIZE

    def __getitem__(self, index):
        time.sleep(0.02)
        rows = slice(index * BATCH_SIZE, (index + 1) * BATCH_SIZE)
        return self.x[rows], self.y[rows]


def fit(model, x, y, epochs, callbacks=None):
    return model.fit(
        Slow(x, y), epochs=epochs, shuffle=False, callbacks=callbacks, verbose=0
    )
"""


@pytest.mark.skipif(BACKEND == "tensorflow", reason="the graph reads its batches")
def test_a_slow_source_is_waited_for(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    slow = SLOW.replace("SEQUENCE", "Sequence" if SECOND else "PyDataset")
    head, found, _ = SCRIPT.partition("\ndef fit(")
    assert found
    assert prepare(worker, tmp_path, "import time\n" + head + slow)["ok"]
    assert worker.ask("run", steps=6)["ok"]
    answer = worker.ask("run", steps=12)
    assert waits(answer) == (8, 4)
    wait = answer["wait"]
    # 20 ms a batch, of which the step's own time may be overlapped.
    assert wait["ns"] + wait["first_ns"] > 12 * 10e6
    assert wait["ns"] + wait["first_ns"] > 0.3 * answer["ns"]


@on_one_backend
@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def fit(", "def train(", "mine.py defines no fit(model, x, y, epochs"),
        ("BATCH_SIZE = 4", "BATCH_SIZE = None", "mine.py defines no BATCH_SIZE"),
        ('name="out"', 'name="other"', "the model of mine.py has no 'out/bias'"),
        (
            "Dense(2,",
            "Dense(3,",
            "'out/bias' of mine.py has shape [3], the workload's has [2]",
        ),
    ],
)
def test_says_what_a_script_lacks(
    worker: WorkerProcess,
    tmp_path: Path,
    problem: Problem,
    old: str,
    new: str,
    message: str,
) -> None:
    assert old in SCRIPT
    answer = prepare(worker, tmp_path, SCRIPT.replace(old, new))
    assert not answer["ok"]
    assert message in answer["error"]


@pytest.mark.skipif(SECOND, reason="TensorFlow alone")
def test_refuses_a_script_for_another_backend(
    worker: WorkerProcess, tmp_path: Path, problem: Problem
) -> None:
    text = 'import os\nos.environ["KERAS_BACKEND"] = "numpy"\n' + SCRIPT
    answer = prepare(worker, tmp_path, text)
    assert not answer["ok"]
    assert "sets KERAS_BACKEND to numpy" in answer["error"]


def numbers(variable: Any) -> Any:
    if SECOND:
        return variable.numpy()
    import keras

    return keras.ops.convert_to_numpy(variable.value)


def installed_keras() -> Any:
    return importlib.import_module("tf_keras" if SECOND else "keras")


@on_one_backend
def test_the_defaults_of_the_fairness_diff_are_those_of_the_installed_keras() -> None:
    """What src/emit/keras/defaults.cc says."""
    keras = installed_keras()
    layers = keras.layers
    for layer in (layers.Dense(2), layers.Conv2D(2, 3)):
        assert isinstance(layer.kernel_initializer, keras.initializers.GlorotUniform)
        assert isinstance(layer.bias_initializer, keras.initializers.Zeros)
    table = layers.Embedding(2, 2).embeddings_initializer
    assert isinstance(table, keras.initializers.RandomUniform)
    assert (table.minval, table.maxval) == (-0.05, 0.05)
    rmsprop = keras.optimizers.RMSprop()
    assert (rmsprop.rho, rmsprop.epsilon, rmsprop.weight_decay) == (0.9, 1e-7, None)
    adam = keras.optimizers.Adam()
    assert (adam.beta_1, adam.beta_2, adam.epsilon) == (0.9, 0.999, 1e-7)
    assert (adam.weight_decay, keras.optimizers.SGD().weight_decay) == (None, None)
    assert keras.optimizers.AdamW().weight_decay == 0.004
    assert layers.LayerNormalization().epsilon == 1e-3
    norm = layers.BatchNormalization()
    assert (norm.epsilon, norm.momentum) == (1e-3, 0.99)
    x = np.arange(8.0, dtype="float32").reshape(4, 2)
    norm(x, training=True)
    variance = numbers(norm.moving_variance)
    np.testing.assert_allclose(variance, 0.99 + 0.01 * x.var(axis=0), rtol=1e-5)


@on_one_backend
@pytest.mark.parametrize("kind", ["RMSprop", "Adam"])
def test_epsilon_sits_where_the_fairness_diff_says(kind: str) -> None:
    keras = installed_keras()
    gradient, eps = 0.5, 0.1
    optimizer = getattr(keras.optimizers, kind)(1.0, epsilon=eps)
    if SECOND:
        import tensorflow as tf

        variable = tf.Variable(np.zeros(1, dtype="float32"))
        optimizer.apply_gradients([(tf.constant([gradient]), variable)])
    else:
        variable = keras.Variable(np.zeros(1, dtype="float32"))
        optimizer.apply([keras.ops.convert_to_tensor([gradient])], [variable])
    if kind == "RMSprop":
        expected = gradient / np.sqrt(0.1 * gradient**2 + eps)
    else:
        v = 0.001 * gradient**2
        expected = np.sqrt(0.001) / 0.1 * 0.1 * gradient / (np.sqrt(v) + eps)
    step = -numbers(variable)[0]
    assert step == pytest.approx(expected, rel=1e-4)
