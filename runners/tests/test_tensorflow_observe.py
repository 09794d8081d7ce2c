"""Observing TensorFlow scripts: functions, eager loops, pipelines, and the switches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from observed import Observed, bare, written
from tiers import FULL, full_tier

pytest.importorskip("tensorflow")

TRAIN = """
import sys
import numpy as np
import tensorflow as tf

if "eager" in sys.argv:
    tf.config.run_functions_eagerly(True)
if "numerics" in sys.argv:
    tf.debugging.enable_check_numerics()
if "threads" in sys.argv:
    tf.config.threading.set_intra_op_parallelism_threads(1)
tf.random.set_seed(1)
w, v = tf.Variable(tf.fill((8, 16), 0.1)), tf.Variable(tf.fill((16, 1), 0.1))

@tf.function
def forward(x):
    return tf.tanh(x @ w) @ v

class Trainer:
    @tf.function
    def step(self, x, y, rate):
        \"\"\"One step.\"\"\"
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((forward(x) - y) ** 2)
        for a, g in zip((w, v), tape.gradient(loss, (w, v))):
            a.assign_sub(rate * g)
        return {"a": x[0, 0], "loss": loss}

@tf.function
def evaluate(x, y):
    return tf.reduce_mean((forward(x) - y) ** 2)

rows = np.random.default_rng(0).random((88, 8), "float32")
sums = rows.sum(1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((rows, sums)).shuffle(88, seed=1)
data = data.map(lambda a, b: (a, b)).batch(16)
trainer = Trainer()
for epoch in range(10):
    for x, y in data:
        made = trainer.step(x, y, 0.01 + (epoch * 1e-3 if "rates" in sys.argv else 0))
    told = float(made["loss"]).hex(), float(evaluate(rows, sums)).hex()
    print(epoch, *told, float(tf.reduce_sum(x)))
assert trainer.step.get_concrete_function(x, y, 0.01) is not None
assert Trainer.step.python_function.__doc__ == "One step."
"""

DOUBLE = """
import numpy as np
import tensorflow as tf

w = tf.Variable(np.full((8, 1), 0.1))
b = tf.Variable(tf.zeros(1, tf.float64))
rows = np.random.default_rng(0).random((88, 8))
data = tf.data.Dataset.from_tensor_slices(rows).batch(16)

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w + b) ** 2)
    for v, g in zip((w, b), tape.gradient(loss, (w, b))):
        v.assign_sub(0.01 * g)
    return loss

for _ in range(10):
    for x in data:
        step(x)
"""

EAGER = """
import sys
import tensorflow as tf

w = tf.Variable(tf.ones((4, 1)))
x = tf.ones((8, 4))

def gradient():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w) ** 2)
    return tape.gradient(loss, w)

if sys.argv[1] == "backward":
    for i in range(70):
        w.assign_sub(0.1 * gradient())
else:  # functions that are no step are called, too, and the step is given an iterator
    @tf.function
    def norm():
        return tf.norm(w)

    @tf.function
    def step(iterator):
        x = next(iterator)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w) ** 2)
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    iterator = iter(tf.data.Dataset.from_tensors(x).repeat())
    if sys.argv[1] == "concrete":
        step = step.get_concrete_function(iterator)
    for i in range(70):
        norm()
        step(iterator)
        tf.debugging.check_numerics(w, "w")
"""

# A loop that is not compiled, in the ways that people write it.
LOOP = """
import sys
import tensorflow as tf
import keras

word = sys.argv[1]
keras.utils.set_random_seed(1)
layers = [keras.layers.Dense(8, "relu") for _ in range(4)]
model = keras.Sequential([*layers, keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam(1e-2)
rows = tf.random.normal((90, 8))
sums = tf.reduce_sum(rows, 1, keepdims=True)
data = tf.data.Dataset.from_tensor_slices((rows, sums)).batch(16)

def deco(function):
    return lambda *args: function(*args)

@deco
def step(x, y, epoch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    if word == "numpy" and epoch < 1000:
        loss.numpy()
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

def step_of_batch():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(batch[0], training=True) - batch[1]) ** 2)
    variables = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

def raw():
    w = [tf.Variable(tf.ones((8, 8))), tf.Variable(tf.ones((8, 1)))]
    class Trainer:
        def step(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ w[0] @ w[1] - y) ** 2)
            for v, g in zip(w, tape.gradient(loss, w)):
                v.assign_sub(1e-3 * g)
            return {"loss": loss}
    trainer = Trainer()
    for epoch in range(15):
        for x, y in data:
            told = trainer.step(x, y)["loss"]
    return told

def train():
    global batch
    for epoch in range(8):
        for x, y in data:
            if word == "global":
                batch = x, y
                step_of_batch()
            else:
                step(x, y, epoch)
    return tf.reduce_sum(model(rows))

if word == "loop":
    for x, y in data.repeat(8):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        variables = model.trainable_variables
        optimizer.apply(tape.gradient(loss, variables), variables)
print(1, float(raw() if word == "raw" else train()).hex())
"""


@pytest.fixture(scope="module")
def train(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tensorflow") / "train.py"
    path.write_text(TRAIN)
    return path


def last_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line[:1].isdigit() and "0x" in line]


def observed(path: Path, word: str, switches: Any, steps: int = 24, **more: Any) -> Any:
    """The first steps with their facts, and what the rest says and prints."""
    with Observed(path, switches, [word] if word else [], **more) as script:
        first = script.run(steps, facts=True)
        if more.get("alone"):
            first["ops"] = script.run(2, watch="profile")["ops"]
        last = script.end()
        return first, last, last_lines(script.output())


@pytest.fixture(scope="module")
def printed(train: Path) -> list[str]:
    """What the script prints when nobody looks."""
    return last_lines(bare(train))


def test_steps_waits_facts_and_the_same_numbers(
    train: Path, printed: list[str]
) -> None:
    first, last, lines = observed(train, "", {}, alone=True)
    assert first["kind"] == "function" and len(first["marks"]) == 24
    assert "AssignSubVariableOp" in {one["name"] for one in first["ops"]}
    assert len(last["marks"]) == 60 - 27 and first["notes"] == []
    assert first["epochs"] == [0, 6, 12, 18]
    assert all(wait > 0 for wait in first["waits"])
    facts = first["facts"]["tensorflow"]
    assert facts["parameters"] == 8 * 16 + 16 and facts["dtypes"] == ["float32"]
    assert facts["function"] == "step" and facts["batch"] == 16
    assert not facts["run_eagerly"] and not facts["check_numerics"]
    retraces = facts["retraces"]["step"]  # the last batch of an epoch is smaller
    assert retraces == {"traces": 2, "reasons": ["x: shape", "y: shape"]}
    (pipeline,) = facts["pipelines"]
    assert pipeline["stages"] == ["tensor_slice", "shuffle", "map", "batch"]
    assert pipeline["batch"] == 16 and pipeline["map"] and pipeline["shuffle"]
    assert not (pipeline["prefetch"] or pipeline["cache"] or pipeline["parallel_map"])
    assert first["compiles"] >= 3 and last["compiles"] == 0
    assert 0 < facts["reads_per_step"] < 1  # what is printed after each epoch
    assert lines == printed
    assert first["losses"][5] == float.fromhex(lines[0].split()[1])
    assert last["loss"] == float.fromhex(lines[-1].split()[1])


def test_functions_that_run_eagerly(train: Path) -> None:
    first, last, _ = observed(train, "eager", {})
    assert first["kind"] == "function" and len(last["marks"]) == 60 - 24
    assert first["facts"]["tensorflow"]["run_eagerly"]
    assert first["compiles"] <= 1  # of the map
    thrown, last, _ = observed(train, "eager", {"no_eager": True})
    assert thrown["thrown"] == ["no_eager"] and thrown["compiles"] > 2
    assert not thrown["facts"]["tensorflow"]["run_eagerly"]
    assert first["losses"] == pytest.approx(thrown["losses"], rel=1e-4)


def test_python_values_that_change_and_relaxed_shapes(
    train: Path, printed: list[str]
) -> None:
    first, _, _ = observed(train, "rates", {"relax_shapes": True})
    assert first["thrown"] == ["relax_shapes"]
    reasons = first["facts"]["tensorflow"]["retraces"]["step"]["reasons"]
    assert "rate: Python value" in reasons
    first, last, lines = observed(train, "rates", {"tensor_values": True})
    assert first["thrown"] == ["tensor_values"]
    retraces = first["facts"]["tensorflow"]["retraces"]["step"]
    assert retraces["traces"] <= 4 and last["compiles"] == 0
    plain = last_lines(bare(train, "rates"))
    told, meant = (float.fromhex(told[-1].split()[1]) for told in (lines, plain))
    assert told == pytest.approx(meant, rel=1e-3)
    first, _, lines = observed(train, "", {"relax_shapes": True})
    assert first["facts"]["tensorflow"]["reduce_retracing"]
    assert lines == printed


@full_tier
def test_check_numerics_and_threads(train: Path, printed: list[str]) -> None:
    first, _, _ = observed(train, "numerics", {})
    assert first["facts"]["tensorflow"]["check_numerics"]
    switches = {"no_check_numerics": True, "threads": 2}
    first, _, _ = observed(train, "numerics", switches)
    assert not first["facts"]["tensorflow"]["check_numerics"]
    assert first["thrown"] == ["threads", "no_check_numerics"]
    first, _, lines = observed(train, "threads", {"threads": 2, "xla": True})
    assert first["facts"]["tensorflow"]["threads"] == 2
    assert first["facts"]["tensorflow"]["jit_compile"]
    assert first["thrown"] == ["threads", "xla"]
    told, meant = (float.fromhex(told[-1].split()[1]) for told in (lines, printed))
    assert told == pytest.approx(meant, rel=1e-3)


def test_pipelines_that_are_changed(train: Path, printed: list[str]) -> None:
    plain = printed
    first, _, lines = observed(train, "", {"prefetch": True})
    assert first["thrown"] == ["prefetch"] and lines == plain
    first, last, lines = observed(train, "", {"cached_batch": True})
    assert first["thrown"] == ["cached_batch"] and len(last["marks"]) == 60 - 24
    assert len({line.split()[3] for line in lines}) == 1  # the same rows in all epochs
    assert len({line.split()[3] for line in plain}) > 5
    first, _, lines = observed(train, "", {"parallel_map": True})
    assert first["thrown"] == ["parallel_map"] and lines == plain
    assert first["facts"]["tensorflow"]["pipelines"][0]["parallel_map"]
    sizes = {"batch": {"from": 16, "to": 44}}
    with Observed(train, sizes) as script:
        wider = script.run(1 << 50, facts=True)
    assert wider["thrown"] == ["batch"] and len(wider["marks"]) == 20
    assert wider["facts"]["tensorflow"]["batch"] == 44


def test_double_precision(tmp_path: Path) -> None:
    path = written(tmp_path / "double.py", DOUBLE)
    for switches, dtype in (({}, "float64"), ({"float32": True}, "float32")):
        with Observed(path, switches) as script:
            seen = script.run(20, facts=True)
            assert "error" not in script.end(), script.output()
        assert seen["facts"]["tensorflow"]["dtypes"] == [dtype]
        assert seen["thrown"] == list(switches)


def test_loops_of_other_kinds(tmp_path: Path) -> None:
    path = written(tmp_path / "eager.py", EAGER)
    with Observed(path, argv=["backward"]) as script:
        last = script.run(1 << 50, facts=True)
        assert last["kind"] == "backward" and len(last["marks"]) == 70
        assert last["facts"]["tensorflow"]["parameters"] == 4
        assert last["losses"][0] == 16.0
    switches = {"xla": True, "no_check_numerics": True}
    with Observed(path, switches, ["iterator"]) as script:
        first = script.run(8, facts=True)
        assert first["kind"] == "function" and len(first["marks"]) == 8
        assert first["facts"]["tensorflow"]["batch"] == 8
        assert first["losses"][0] == 16.0
        assert first["thrown"] == ["xla", "no_check_numerics"]  # of `norm` alone
        assert not first["facts"]["tensorflow"]["jit_compile"]
        assert len(script.end()["marks"]) == 62
    with Observed(path, argv=["concrete"]) as script:
        first = script.run(8, facts=True)
        assert first["kind"] == "function" and first["losses"][0] == 16.0
        assert first["facts"]["tensorflow"]["parameters"] == 4
        assert len(script.end()["marks"]) == 62


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tensorflow") / "loop.py"
    path.write_text(LOOP)
    return path


def line_of(path: Path, words: str) -> int:
    return next(
        i for i, line in enumerate(path.read_text().splitlines(), 1) if words in line
    )


@pytest.fixture(scope="module")
def steps(loop: Path) -> Any:
    """What one run of the loop that calls a function shows."""
    return observed(loop, "step", {}, 8)


def test_a_loop_that_is_not_compiled(loop: Path, steps: Any) -> None:
    plain, last, lines = steps
    assert plain["kind"] == "optimizer" and len(plain["marks"]) == 8
    assert plain["facts"]["tensorflow"]["eager_loop"] == {
        "function": "step",
        "line": line_of(loop, "@deco"),
        "scope": "function",
    }
    assert lines == last_lines(bare(loop, "step"))
    first, rest, same = observed(loop, "step", {"graph": True}, 8)
    assert first["thrown"] == ["graph"] and first["kind"] == "optimizer"
    assert len(first["marks"]) == 8 and len(rest["marks"]) == len(last["marks"])
    assert first["losses"] == pytest.approx(plain["losses"], rel=1e-4)
    assert rest["compiles"] < 4 and first["notes"] == []
    told, meant = (float.fromhex(each[0].split()[1]) for each in (same, lines))
    assert told == pytest.approx(meant, rel=1e-2)
    with Observed(loop, {"graph": True}, ["raw"]) as script:
        raw = script.run(1 << 50, facts=True)  # without an optimizer
        assert raw["thrown"] == ["graph"] and len(raw["marks"]) == 15 * 6
        assert raw["kind"] == "backward" and len(raw["losses"]) == 10
        assert "eager_loop" not in raw["facts"]["tensorflow"]
        assert (
            raw["facts"]["tensorflow"]["batch"]
            == raw["facts"]["tensorflow"]["pipelines"][0]["batch"]
        )


@full_tier
def test_loops_of_which_the_model_alone_can_be_compiled(loop: Path, steps: Any) -> None:
    plain, _, _ = steps
    words = [("numpy", "step"), ("global", "step_of_batch")]
    for word, name in words if FULL else words[:1]:
        first, _, _ = observed(loop, word, {"graph": True}, 8)
        assert first["thrown"] == ["graph"]
        assert first["notes"][0].startswith(f"{name} cannot be made a graph: ")
        assert first["facts"]["tensorflow"]["eager_loop"]["scope"] == "model"
        assert first["losses"] == pytest.approx(plain["losses"], rel=1e-4)
    first, rest, _ = observed(loop, "loop", {"graph": True}, 8)
    assert first["thrown"] == ["graph"] and first["notes"] == []
    assert len(first["marks"]) == 8 and len(rest["marks"]) == 2 * 8 * 6 - 8
    found = first["facts"]["tensorflow"]["eager_loop"]
    assert found["scope"] == "model" and found["function"] == ""
    assert found["line"] == line_of(loop, 'if word == "loop"') + 2


ANEW = """
import tensorflow as tf

x = tf.reshape(tf.range(8.0), (2, 4)) / 8
w = tf.Variable(tf.ones((4, 1)))
for i in range(32):
    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w) ** 2)
        w.assign_sub(0.01 * tape.gradient(loss, w))
        return loss

    loss = step(x)
print(float(loss).hex())
"""


@full_tier
def test_a_function_that_is_defined_anew(tmp_path: Path) -> None:
    path = written(tmp_path / "anew.py", ANEW)
    printed = []
    for switches in ({}, {"one_function": True}):
        with Observed(path, switches) as script:
            script.run(8)
            seen = script.run(10, facts=True)
            assert "error" not in script.end()
            printed.append(script.output().splitlines()[-1])
        facts = seen["facts"]["tensorflow"]
        assert seen["thrown"] == list(switches) and len(seen["marks"]) == 10
        assert seen["compiles"] == (0 if switches else 10)
        told = any("a new function" in str(one) for one in facts["retraces"].values())
        assert told == (not switches)
    assert printed[0] == printed[1]


SAVES = """
import sys
import tensorflow as tf

w = tf.Variable(tf.ones((8, 1)))
checkpoint = tf.train.Checkpoint(w=w)
manager = tf.train.CheckpointManager(checkpoint, sys.argv[1], max_to_keep=2)

@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ w) ** 2)
    w.assign_sub(1e-3 * tape.gradient(loss, w))
    return loss

for _ in range(20):
    step(tf.ones((4, 8)))
    manager.save()
"""


def test_checkpoints_at_each_step(tmp_path: Path) -> None:
    path = written(tmp_path / "saves.py", SAVES)
    with Observed(path, argv=[str(tmp_path / "all")]) as script:
        facts = script.run(16, facts=True)["facts"]["tensorflow"]
        script.end()
    word = "tf.train.CheckpointManager.save"
    assert 0.5 < facts["calls_per_step"][word] <= 1
    assert facts["lines"][word] == SAVES.splitlines().index("    manager.save()") + 1
    assert len(list((tmp_path / "all").glob("*.index"))) == 2
    with Observed(path, {"no_save": True}, [str(tmp_path / "one")]) as script:
        assert script.end()["thrown"] == ["no_save"]
    assert len(list((tmp_path / "one").glob("*.index"))) == 1


ELEMENTS = """
import numpy as np
import tensorflow as tf

w = tf.Variable(tf.ones((4, 1)))
momentum = tf.Variable(tf.zeros((4, 1)))  # trainable by default, and no parameter

def rows():
    for i in range(16 * 40):
        yield np.full(4, i % 3, "float32"), np.float32(i % 2)

types = tf.TensorSpec((4,), tf.float32), tf.TensorSpec((), tf.float32)
data = tf.data.Dataset.from_generator(rows, output_signature=types).batch(16)

@tf.function
def step(x, y, rate):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.squeeze(x @ w, 1) - y) ** 2)
    momentum.assign(0.9 * momentum + tape.gradient(loss, w))
    w.assign_sub(rate * momentum)
    return loss

for x, y in data:
    loss = step(x, y, tf.constant(0.01))
print(float(loss).hex())
"""


def test_elements_that_cross_one_by_one(tmp_path: Path) -> None:
    path = written(tmp_path / "elements.py", ELEMENTS)
    plain = bare(path)
    with Observed(path) as script:
        script.run(5)
        facts = script.run(20, facts=True)["facts"]["tensorflow"]
        script.end()
        assert script.output().splitlines()[-1] == plain.splitlines()[-1]
    assert 12 <= facts["generator_elements_per_step"] <= 24  # a few are read ahead
    line = next(i for i, one in enumerate(ELEMENTS.splitlines()) if "from_gen" in one)
    assert facts["lines"]["from_generator"] == line + 1
    stages = facts["pipelines"][0]["stages"]
    assert stages[:2] == ["generator", "batch"], "no map of the user's"
    assert facts["parameters"] == 4, "what is differentiated, and no state"
    assert [one["shape"] for one in facts["inputs"]] == [[16, 4], [16]]


CALLED = """
import os
import sys
import numpy as np

os.environ["KERAS_BACKEND"] = "tensorflow"
import tensorflow as tf
import keras

w = tf.ones((4, 1))

@tf.function
def scores(x):
    return tf.reduce_sum(tf.tanh(x @ w))

total = 0.0
if "predict" in sys.argv:
    layer = keras.layers.Dense(1, "tanh", False, "ones")
    model = keras.Sequential([keras.Input((4,)), layer])
    for _ in range(80):
        total += float(model.predict(np.ones((8, 4), "float32"), verbose=0).sum())
else:
    for _ in range(100):
        total += float(scores(tf.ones((8, 4))))
print(total.hex())
"""


WORDS = ["function", "predict"] if FULL else ["function"]


@pytest.mark.parametrize("word", WORDS)
def test_calls_of_what_nothing_trains(tmp_path: Path, word: str) -> None:
    path = written(tmp_path / "calls.py", CALLED)
    plain = bare(path, word)
    with Observed(path, argv=[word]) as script:
        first = script.run(5, facts=True)
        assert first["kind"] == "call" and 16 <= len(first["marks"]) <= 64
        assert first["notes"] == []
        of = "keras" if word == "predict" else "tensorflow"
        assert first["facts"][of]["batch"] == 8
        script.end()
        assert script.output().splitlines()[-1] == plain.splitlines()[-1]


FITTED = """
import os
import sys
import time
import numpy as np

os.environ["KERAS_BACKEND"] = "tensorflow"
import tensorflow as tf
import keras

def slow(x):
    time.sleep(0.002)
    return x

def mapped(x, y):
    return tf.ensure_shape(tf.numpy_function(slow, [x], tf.float32), (4,)), y

x, y = np.ones((4000, 4), "float32"), np.ones((4000, 1), "float32")
data = tf.data.Dataset.from_tensor_slices((x, y))
if "map" in sys.argv:
    data = data.map(mapped)
data = data.batch(8).prefetch(2)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data, epochs=2, verbose=0)
"""


@pytest.mark.parametrize("word", ["map", "plain"])
def test_what_fit_reads_within_a_graph(tmp_path: Path, word: str) -> None:
    path = written(tmp_path / "fitted.py", FITTED)
    with Observed(path, argv=[word]) as script:
        first = script.run(5, facts=True)
        assert "input_s" not in first
        seen = script.run(10, facts=True, watch="hooks")
    pipelines = seen["facts"]["keras"]["pipelines"]
    assert [one["python"] for one in pipelines] == [word == "map"]
    if word == "map":
        assert seen["input_s"] >= 8 * 0.002
    else:
        assert seen["input_s"] > 0
    assert seen["facts"]["keras"]["graph_ops"] > 10
