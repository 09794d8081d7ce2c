"""A Keras script with many faces, and what must be seen of it: Keras 2 and 3 alike."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from observed import RUNNERS, Observed, bare
from tiers import FULL

SCRIPT = """
import sys
import numpy as np
import KERAS as keras

words = sys.argv[1:]
keras.utils.set_random_seed(1)
rows = np.random.default_rng(0).random((88, 8)).astype("float32")
sums = rows.sum(axis=1, keepdims=True)
sums[16:] += 100  # of the first batch nothing like it is to be seen

def made(width):
    layers = keras.layers
    return keras.Sequential(
        [keras.Input((8,)), layers.Dense(width, "relu"), layers.Dense(1)]
    )

class Tell(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        told = [float(value).hex() for value in logs.values()]
        print(epoch, *told)

class Other(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        other.fit(rows, sums, batch_size=8, verbose=0)

class Own(keras.Model):
    def train_step(self, *args):
        return super().train_step(*args)

model, other = made(16), made(4)
if "own" in words:
    inputs = keras.Input((8,))
    model = Own(inputs, keras.layers.Dense(1)(inputs))
for one in (model, other):
    one.compile(
        keras.optimizers.Adam(0.01),
        "mse",
        metrics=["mae"],
        run_eagerly="eager" in words,
    )

def batches():
    while True:
        for k in range(6):
            yield rows[k * 16 : k * 16 + 16], sums[k * 16 : k * 16 + 16]

source = batches()
if "batch" in words:
    for i in range(24):
        x, y = next(source)
        loss = model.train_on_batch(x, y)
        other.train_on_batch(x, y)
        if "calls" in words:
            model.predict(x[: 1 + i % 8 if "sizes" in words else 1], verbose=0)
            model.save_weights(f"{words[-1]}/{i}.weights.h5")
        print(i, float(loss[0]).hex())
elif "fits" in words:
    for i in range(24):
        x, y = next(source)
        guess = model.predict(x, verbose=0)
        history = model.fit(x, y, shuffle=False, verbose=0).history
        print(i, float(history["loss"][-1]).hex(), guess.shape)
elif "generator" in words:
    model.fit(source, steps_per_epoch=6, epochs=4, verbose=0)
elif "apply" in words:
    optimizer = keras.optimizers.Adam(0.01)
    if "tensorflow" in sys.modules:
        import tensorflow as tf
        for i in range(24):
            x, y = next(source)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
            grads = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
    else:
        import torch
        for i in range(24):
            x, y = next(source)
            model.zero_grad()
            loss = ((model(x, training=True) - torch.as_tensor(y)) ** 2).mean()
            loss.backward()
            with torch.no_grad():
                grads = [v.value.grad for v in model.trainable_variables]
                optimizer.apply(grads, model.trainable_variables)
else:
    callbacks = [Tell(), Other()] if "other" in words else [Tell()]
    for k in range(2):
        model.fit(
            rows,
            sums,
            batch_size=16,
            epochs=2,
            verbose=2,
            shuffle=False,
            callbacks=callbacks,
            validation_data=(rows, sums),
        )
total = sum(float(np.abs(w).sum()) for w in model.get_weights())
print(9, total.hex())
"""


def processors() -> int:
    return len(os.sched_getaffinity(0))


STEPS = 24  # of every face


def written(folder: Path, keras: str) -> Path:
    path = folder / "train.py"
    path.write_text(SCRIPT.replace("KERAS", keras))
    return path


def numbers(text: str) -> list[str]:
    return [line for line in text.splitlines() if line[:1].isdigit() and "0x" in line]


class Faces:
    """Runs faces of the script, each in a process of its own."""

    def __init__(self, path: Path, name: str, environment: dict[str, str]) -> None:
        self.path, self.name, self.environment = path, name, environment
        self._plain: dict[str, Any] = {}
        self._bare: dict[str, list[str]] = {}

    def plain(self, words: str) -> Any:
        """A run without switches, of which one does for all tests."""
        if words not in self._plain:
            self._plain[words] = self.run(words)
        return self._plain[words]

    def run(
        self, words: str, switches: Any = None, steps: int = 14, whole: bool = True
    ) -> Any:
        """The first steps with the facts of Keras, the rest, and what is printed."""
        with Observed(
            self.path, switches, words.split(), environment=self.environment
        ) as script:
            first = script.run(steps, facts=True)
            assert not first["ended"], script.output()
            assert first["notes"] == []
            first["facts"] = first["facts"][self.name]
            if not whole:
                return first
            last = script.end()
            assert "error" not in last, script.output()
            return first, last, script.output()

    def bare(self, words: str = "") -> list[str]:
        if words not in self._bare:
            printed = bare(self.path, *words.split(), **self.environment)
            self._bare[words] = numbers(printed)
        return self._bare[words]


def check_fit(faces: Faces, backend: str) -> None:
    first, last, printed = faces.plain("")
    assert first["kind"] == last["kind"] == "fit"
    assert len(first["marks"]) == 14 and len(last["marks"]) == STEPS - 14
    assert first["epochs"] == [0, 6, 12] and last["epochs"] == [4]
    assert numbers(printed) == faces.bare()
    facts = first["facts"]
    expected: dict[str, Any] = {
        "backend": backend,
        "parameters": 161,
        "parameter_tensors": 4,
        "dtypes": ["float32"],
        "device": "cpu",
        "model": "Sequential",
        "loss": "mse",
        "batch": 16,
        "batches": 6,
        "inputs": [{"shape": [16, 8], "dtype": "float32"}],
        "data": "ndarray",
        "callbacks": ["Tell"],
        "validation": True,
        "verbose": 2,
        "run_eagerly": False,
        "steps_per_execution": 1,
        "dtype_policy": "float32",
        "convolutions": 0,
        "threads": 1 if backend == "torch" else processors(),  # forks.py: 1 of OpenMP
    }
    assert {key: facts[key] for key in expected} == expected
    assert facts["validation_s"] > 0
    (optimizer,) = facts["optimizers"]
    assert optimizer["class"] == "Adam" and optimizer["beta_1"] == 0.9
    assert optimizer["lr"] == pytest.approx(0.01)
    if backend in ("jax", "torch"):
        assert all(wait > 0 for wait in first["waits"])
    # What a step's loss was is what the same batches give one by one.
    batch, rest, printed = faces.plain("batch")
    assert batch["kind"] == "fit" and len(batch["marks"]) == 14
    assert len(rest["marks"]) == STEPS - 14  # of two models
    assert batch["facts"]["data"] == "train_on_batch"
    if FULL:  # every day of the other face, and of check_apply
        assert numbers(printed) == faces.bare("batch")
    assert first["losses"] == pytest.approx(batch["losses"], rel=1e-3)
    told = [float.fromhex(line.split()[1]) for line in numbers(printed)[:10]]
    assert batch["losses"] == pytest.approx(told, rel=1e-6)


def check_switches_of_fit(faces: Faces) -> None:
    switches = {"no_callbacks": True, "no_validation": True, "silent": True}
    first, last, printed = faces.run("", switches)
    assert sorted(first["thrown"]) == sorted(switches)
    assert first["facts"]["callbacks"] == [] and first["facts"]["verbose"] == 0
    assert len(numbers(printed)) == 1  # the last line: no callback told anything
    assert "Epoch" not in printed and len(last["marks"]) == STEPS - 14
    assert numbers(printed)[-1] == faces.bare()[-1]  # weights: untouched by them
    needless = faces.run("generator", switches, whole=False)
    assert needless["thrown"] == []
    assert needless["facts"]["data"] == "generator"
    assert needless["facts"]["batch"] == 16


def check_switches_of_compile(faces: Faces, backend: str, jit: bool) -> None:
    eager = faces.run("eager", steps=5, whole=False)
    assert eager["facts"]["run_eagerly"]
    steps = 1 if backend == "torch" else 3
    switches = {"no_eager": True, "steps_per_execution": 3, "jit_compile": jit}
    first, last, _ = faces.run("eager", switches, steps=5)
    assert not first["facts"]["run_eagerly"]
    assert first["facts"]["steps_per_execution"] == steps
    assert first["facts"]["jit_compile"] is jit
    assert "no_eager" in first["thrown"]
    assert ("steps_per_execution" in first["thrown"]) == (steps == 3)
    assert len(last["marks"]) == STEPS // steps - 5
    sums = [sum(one["losses"][i : i + steps]) / steps for one, i in ((eager, 0),)]
    assert first["losses"][0] == pytest.approx(sums[0], rel=1e-3)


def check_cached_batch(faces: Faces) -> None:
    plain, _, _ = faces.plain("")
    assert plain["losses"][0] < 1000 < plain["losses"][1]
    cached = faces.run("", {"cached_batch": True}, whole=False)
    assert "cached_batch" in cached["thrown"]
    assert max(cached["losses"]) < 1000


def check_fits(faces: Faces) -> None:
    """`fit` and `predict` on one batch at a time."""
    plain, _, printed = faces.run("fits")
    assert plain["facts"]["fits_per_step"] == 1 and plain["kind"] == "fit"
    assert plain["facts"]["calls_per_step"]["model.predict"] > 0.9
    assert plain["facts"]["metrics"] == ["mae"]
    assert numbers(printed) == faces.bare("fits")
    switches = {"direct_fit": True, "direct_predict": True, "no_metrics": True}
    thrown, last, direct = faces.run("fits", switches)
    assert sorted(thrown["thrown"]) == sorted(switches)
    assert thrown["facts"]["batch"] == 16 and len(last["marks"]) == STEPS - 14
    told = [
        [float.fromhex(line.split()[1]) for line in numbers(text)]
        for text in (direct, printed)
    ]
    assert len(told[0]) == STEPS + 1 and told[0] == pytest.approx(told[1], rel=1e-3)
    wider, rest, _ = faces.run(
        "", {**switches, "batch": {"from": 16, "to": 88}}, steps=2
    )
    assert sorted(wider["thrown"]) == ["batch", "no_metrics"]  # epochs of a whole
    assert wider["facts"]["batch"] == 88 and len(rest["marks"]) == 2


def check_others(faces: Faces) -> None:
    """A callback that trains another model, and a `train_step` of the script's own."""
    first, last, printed = faces.run("other")
    assert len(last["marks"]) == STEPS - 14 and first["facts"]["parameters"] == 161
    assert first["epochs"] == [0, 6, 12] and numbers(printed) == faces.bare("other")
    own, _, printed = faces.run("own")
    assert own["facts"]["model"] == "Own" and own["facts"]["parameters"] == 9
    assert numbers(printed) == faces.bare("own")


def check_apply(faces: Faces) -> None:
    first, last, printed = faces.run("apply")
    assert first["kind"] == "optimizer" and len(last["marks"]) == STEPS - 14
    assert first["facts"]["parameters"] == 161
    assert first["facts"]["model"] == "Sequential"
    batch, _, _ = faces.plain("batch")
    assert first["losses"] == pytest.approx(batch["losses"], rel=1e-3)
    assert numbers(printed) == faces.bare("apply")
    if FULL and "tensorflow" in str(first["facts"].get("backend")):
        graph, rest, _ = faces.run("apply", {"graph": True})
        assert graph["thrown"] == ["graph"] and len(rest["marks"]) == STEPS - 14
        assert graph["facts"]["eager_loop"]["scope"] == "model"
        assert graph["losses"] == pytest.approx(first["losses"], rel=1e-4)


def check_calls(faces: Faces, folder: Path) -> None:
    first, _, printed = faces.run(f"batch calls {folder}", {"no_save": True})
    assert first["thrown"] == ["no_save"]
    assert [each.name for each in folder.iterdir()] == ["0.weights.h5"]
    facts, lines = first["facts"], SCRIPT.splitlines()
    for word in ("model.predict", "model.save_weights"):
        assert facts["calls_per_step"][word] == pytest.approx(13 / 14)
        assert word in lines[facts["lines"][word] - 1]
    assert facts["rows"] == {"model.predict": 1}
    assert numbers(printed) == faces.bare(f"batch calls {folder}")


def check_sizes(faces: Faces, folder: Path) -> None:
    """What the first predictions compile is theirs; what later ones do is told."""
    equal, other = (
        faces.run(f"batch calls {word} {folder}", {"no_save": True}, whole=False)
        for word in ("alike", "sizes")
    )
    assert other["compiles"] >= equal["compiles"] + 5


LOGITS = """
import sys
import KERAS as keras

sys.path.insert(0, sys.argv[1])
from bakeoff_observe.keras_shared import KerasHooks

class Hooks(KerasHooks):
    def __init__(self):
        pass

    def backend(self):
        return sys.argv[2]

def told(activation, loss, outputs=3):
    inputs = keras.Input((8,))
    x = keras.layers.Dense(outputs, activation)(inputs)
    x = keras.layers.Softmax()(x) if activation is None and outputs == 4 else x
    model = keras.Model(inputs, x)
    model.compile("sgd", loss)
    return sorted(Hooks().logits(model))

losses = keras.losses
print("0x", told("softmax", "categorical_crossentropy"))
print("0x", told(None, "sparse_categorical_crossentropy"))
print("0x", told("softmax", losses.SparseCategoricalCrossentropy(from_logits=True)))
print("0x", told("sigmoid", losses.BinaryCrossentropy(from_logits=True)))
print("0x", told(None, losses.CategoricalCrossentropy(from_logits=True)))
print("0x", told(None, losses.CategoricalCrossentropy()))
print("0x", told(None, losses.CategoricalCrossentropy(), outputs=4))
print("0x", told(None, "mse"))
"""


def check_logits(faces: Faces, backend: str, folder: Path) -> None:
    path = folder / "logits.py"
    path.write_text(LOGITS.replace("KERAS", faces.name))
    printed = bare(path, str(RUNNERS), backend, **faces.environment)
    twice = [] if backend == "tensorflow" else ["double_softmax"]
    expected = [[], ["missing_softmax"], twice, twice, [], ["missing_softmax"], [], []]
    told = [line for line in printed.splitlines() if line.startswith("0x")]
    assert told == [f"0x {each}" for each in expected]
