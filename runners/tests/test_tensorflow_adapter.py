"""The TensorFlow adapter and its emitted scripts (tests/golden/tensorflow).

Everything is executed. Needs an interpreter with tensorflow.
"""

# ruff: noqa: F811 (a fixture that is imported is an argument, too)
from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("tensorflow")

from golden_cnn import (  # noqa: E402
    check_alone,
    check_gradients,
    insert_after,
    write_files,
    write_script,
)
from linear_model import (  # noqa: E402, F401
    build,
    check_doubled_gradients,
    check_several_steps_a_call,
    edit,
    small,
    test_losses_start_from_the_initial_state,
    test_proof_of_an_edited_script,
)
from tiers import FULL, full_tier  # noqa: E402

from bakeoff_runner.adapter import AdapterError, ParityRequest  # noqa: E402
from bakeoff_runner.adapters.tensorflow_adapter import TensorFlowAdapter  # noqa: E402
from bakeoff_runner.tensors import write_safetensors  # noqa: E402

SMALL = """
import itertools
import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file


def load_data(path):
    data = load_file(path)
    return data["x"].astype(np.float32), data["t"].astype(np.float32)


def batches(arrays):
    return itertools.cycle([tuple(tf.constant(a[:4]) for a in arrays)])


class Dense(tf.Module):
    def __init__(self, weight):
        super().__init__()
        self.weight = tf.Variable(weight)

    def __call__(self, x):
        return x @ self.weight


class Model(tf.Module):
    def __init__(self, weights):
        super().__init__()
        self.fc = Dense(weights["fc.weight"])

    def __call__(self, x):
        return self.fc(x)


class SGD(tf.Module):
    def __init__(self, variables):
        super().__init__()
        self.targets = list(variables)

    def apply_gradients(self, gradients):
        for variable, g in zip(self.targets, gradients):
            variable.assign_sub(0.5 * g)


@tf.function
def train_step(model, optimizer, x, t):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x) - t))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(gradients)
    return loss
"""


@pytest.fixture
def text() -> str:
    return SMALL


# For every test: threads cannot be set once TensorFlow has computed anything.
@pytest.fixture(scope="module", autouse=True)
def adapter() -> Any:
    adapter = TensorFlowAdapter()
    adapter.import_framework({}, 2)
    return adapter


CALLS = """

STEPS_PER_CALL = 3


def batches(arrays):
    return itertools.cycle([tuple(tf.constant(np.stack([a[:4]] * 3)) for a in arrays)])


@tf.function
def train_steps(model, optimizer, xs, ts):
    losses = tf.TensorArray(optimizer.targets[0].dtype, STEPS_PER_CALL)
    for i in tf.range(STEPS_PER_CALL):
        losses = losses.write(i, train_step(model, optimizer, xs[i], ts[i]))
    return losses.stack()
"""


COMPILED = """

CALLS = []


def compiled(function, *modules):
    graph = tf.function(lambda *batch: function(*modules, *batch))
    CALLS.append(graph)
    return graph
"""


def test_a_script_may_compile_its_step_for_batches_alone(
    adapter: Any, small: dict[str, Any]
) -> None:
    build(adapter, small["folder"])
    expected = adapter.losses(4).losses
    edit(small["folder"], "@tf.function\ndef train_step", "def train_step")
    assert build(adapter, small["folder"])["mode"] == "eager"
    script = small["folder"] / "mine.py"
    script.write_text(script.read_text() + COMPILED)
    assert build(adapter, small["folder"])["mode"] == "function"
    assert adapter.losses(4).losses == pytest.approx(expected, rel=1e-12)
    [graph] = adapter._the_script().CALLS
    assert graph.experimental_get_tracing_count() == 1  # of all four steps


def test_several_steps_a_call_are_the_same_steps(
    adapter: Any, small: dict[str, Any]
) -> None:
    check_several_steps_a_call(adapter, small, CALLS)


def test_what_a_script_stores_in_half_precision_stays_so(
    adapter: Any, small: dict[str, Any]
) -> None:
    stored = "self.base = tf.Variable([0.0, 0.0], False, dtype=tf.bfloat16)"
    edit(small["folder"], "self.fc = ", f"{stored}\n        self.fc = ")
    weights = {"fc.weight": small["fc.weight"], "base": np.float32([1, 1.01])}
    write_safetensors(small["folder"] / "weights.safetensors", weights)
    for dtype, exact in (("float32", False), ("float64", True)):
        build(adapter, small["folder"], dtype=dtype)
        got = adapter.parity(ParityRequest(0, 4, None))["buffer/base"]
        assert (np.float32(got)[1] == np.float32(1.01)) == exact


def test_the_step_itself_is_proven(adapter: Any, small: dict[str, Any]) -> None:
    check_doubled_gradients(
        adapter,
        small,
        "apply_gradients(gradients)\n    return",
        "apply_gradients([2 * g for g in gradients])\n    return",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def train_step", "def step", "mine.py defines no train_step"),
        ("def load_data", "def read", "mine.py defines no load_data"),
        (
            "def apply_gradients",
            "def update",
            "no tf.Module class with apply_gradients",
        ),
        ("self.fc =", "self.dense =", "has no 'fc.weight'"),
        ('["fc.weight"])', '["fc.weight"].T)', "has shape"),
    ],
)
def test_what_is_missing_is_named(
    adapter: Any, small: dict[str, Any], old: str, new: str, message: str
) -> None:
    edit(small["folder"], old, new)
    with pytest.raises(AdapterError, match=message):
        build(adapter, small["folder"])


@full_tier
def test_gradients_of_the_cnn_are_those_of_its_loss(
    adapter: Any, tmp_path: Path
) -> None:
    check_gradients(adapter, "tensorflow", tmp_path)


def test_scripts_run_alone(tmp_path: Path) -> None:
    write_files(tmp_path)
    names = ("mnist_cnn", "mnist_cnn_eager", "mnist_cnn_as_is", "mnist_cnn_loop")
    for name in names if FULL else names[3:]:
        script = write_script("tensorflow", name, tmp_path, 16)
        # Weights of the framework's own are other ones every time.
        seed = "tf.keras.utils.set_random_seed(1)"
        insert_after(script, "import tensorflow as tf", seed)
        check_alone(script, "step 8" if name == names[-1] else "step 10")


@pytest.mark.parametrize("blank", [0, 2, -1])
def test_ctc_in_double_precision_is_tensorflows_own(blank: int) -> None:
    import tensorflow as tf

    from bakeoff_runner.adapters.tensorflow_shared import double_ctc_loss, set_ctc_loss

    set_ctc_loss("float32")
    rng = np.random.default_rng(1)
    logits = rng.normal(size=(5, 9, 6)).astype("f4")
    labels = np.array([[1, 3, 3, 1], [4, 4, 4, 4], [3, 0, 0, 0], [0] * 4, [1, 4, 3, 0]])
    labels[labels == blank % 6] = 1
    counts, frames = [4, 4, 1, 0, 3], [9, 8, 9, 4, 3]
    found = []
    for function, dtype in ((tf.nn.ctc_loss, "f4"), (double_ctc_loss, "f8")):
        x = tf.constant(logits.astype(dtype))
        with tf.GradientTape() as tape:
            tape.watch(x)
            losses = function(
                labels, x, counts, frames, False, blank_index=blank, name="mine"
            )
        assert losses.dtype == x.dtype
        found.append((losses.numpy(), tape.gradient(losses, x).numpy()))
    for own, double in zip(*found):
        np.testing.assert_allclose(double, own, rtol=1e-4, atol=1e-5)
