"""The JAX adapter and scripts that train on two devices, which are processors here.

A process of its own: JAX is told how many devices it has before its first use.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
jax = pytest.importorskip("jax")
pytest.importorskip("optax")

from bakeoff_runner.adapter import (  # noqa: E402
    AdapterError,
    BuildRequest,
    ParityRequest,
)
from bakeoff_runner.adapters import jax_adapter  # noqa: E402
from bakeoff_runner.adapters.jax_adapter import JaxAdapter  # noqa: E402
from bakeoff_runner.adapters.jax_shared import (  # noqa: E402
    CALLS_UNDER_WAY,
    as_held,
    paced,
    parts_of,
)
from bakeoff_runner.adapters.silence import silent_keras  # noqa: E402
from bakeoff_runner.pipeline import digest  # noqa: E402
from bakeoff_runner.tensors import write_safetensors  # noqa: E402

SCRIPT = """
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from safetensors.numpy import load_file

BATCH_SIZE = 4
DEVICES = 2
MESH = jax.make_mesh((DEVICES,), ("data",), axis_types=(AxisType.Auto,))
BY_ROWS = NamedSharding(MESH, PartitionSpec("data"))
REPLICATED = NamedSharding(MESH, PartitionSpec())


def load_data(path):
    data = load_file(path)
    return data["x"].astype(np.float32), data["t"].astype(np.float32)


def batches(arrays):
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tuple(a[i : i + BATCH_SIZE] for a in arrays) for i in starts]
    return itertools.cycle(jax.device_put(ready, BY_ROWS))


def init_params(weights):
    return jax.device_put(weights, REPLICATED)


def forward(params, x):
    return x @ params["fc.weight"]


def loss_fn(params, x, t):
    return jnp.square(forward(params, x) - t).mean()


def make_optimizer():
    return optax.adam(0.5)


OPTIMIZER = make_optimizer()


@jax.jit
def train_step(params, opt_state, x, t):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, t)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss
"""


@pytest.fixture(scope="module")
def adapter() -> Any:
    adapter = JaxAdapter()
    adapter.import_framework({"devices": "2"}, 2)
    return adapter


def build(adapter: Any, folder: Path, *edit: str, dtype: str = "float64") -> Any:
    rng = np.random.default_rng(1)
    arrays = {"x": rng.normal(size=(12, 3)), "t": rng.normal(size=(12, 2))}
    arrays = {name: array.astype("f4") for name, array in arrays.items()}
    write_safetensors(folder / "data.safetensors", arrays)
    weights = {"fc.weight": rng.normal(size=(3, 2)).astype("f4")}
    write_safetensors(folder / "weights.safetensors", weights)
    assert not edit or edit[0] in SCRIPT
    (folder / "mine.py").write_text(SCRIPT.replace(*edit) if edit else SCRIPT)
    paths = (folder / f"{name}.safetensors" for name in ("weights", "data"))
    request = BuildRequest(folder / "mine.py", *paths, None, dtype=dtype)
    return adapter.build(request), arrays, weights["fc.weight"]


def test_two_devices_compute_what_one_does(adapter: Any, tmp_path: Path) -> None:
    effective, arrays, w = build(adapter, tmp_path)
    assert effective["devices"] == 2
    assert effective["master_weights"] == "float64"
    got = adapter.parity(ParityRequest(4, 4, None))
    x, t = (arrays[name][4:8].astype("f8") for name in "xt")
    error = x @ w - t
    np.testing.assert_allclose(got["loss"], np.mean(error**2), rtol=1e-12)
    np.testing.assert_allclose(got["grad/fc.weight"], x.T @ error / 4, rtol=1e-12)
    first = adapter.losses(6).losses
    adapter.restore()
    assert adapter.losses(6).losses == first


def test_many_steps_in_one_burst_end(adapter: Any, tmp_path: Path) -> None:
    """Without waiting between them they would hang (docs/devices.md)."""
    build(adapter, tmp_path, dtype="float32")
    marks = []
    result = adapter.run(300, lambda: marks.append(1))
    assert len(marks) == len(result.losses) == 300
    adapter.nudge({"fc.weight": np.ones((3, 2), "f4")})
    assert adapter.run(20, lambda: None).steps == 20


def test_hashes_are_of_what_each_device_holds(adapter: Any, tmp_path: Path) -> None:
    _, arrays, _ = build(adapter, tmp_path, dtype="float32")
    expected = [
        digest([a[i : i + 4] for a in arrays.values()], [[3], [2]]) for i in (0, 4, 8)
    ]
    assert adapter.batch_hashes(3, [[3], [2]]) == expected
    build(adapter, tmp_path, '("data",), ', '("data",), devices=jax.devices()[::-1], ')
    assert adapter.batch_hashes(3, [[3], [2]])[0] != expected[0]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("jax.make_mesh((DEVICES,)", "jax.make_mesh((1,)", "parameters are on 1"),
        ('PartitionSpec("data")', "PartitionSpec()", "rows of a batch are on 1"),
        ("jax.device_put(ready, BY_ROWS)", "ready", "rows of a batch are on 1"),
    ],
)
def test_fewer_devices_than_asked_for_are_named(
    adapter: Any, tmp_path: Path, old: str, new: str, what: str
) -> None:
    with pytest.raises(AdapterError, match=f"mine.py: .*{what} device, but devices"):
        build(adapter, tmp_path, old, new)


def alone(arrays: Any, w: Any, device: int, steps: int) -> Any:
    """`w` after steps on this device's rows alone, without moments."""
    w = w.astype("f8")
    for step in range(steps):
        first = step % 3 * 4 + 2 * device
        x, t = (arrays[name][first : first + 2] for name in "xt")
        w = w - 0.1 * x.T @ (x @ w - t) / 2
    return w


def test_silent_devices_train_by_themselves(
    adapter: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax_adapter, "SILENT", True)
    descent = "optax.adam(0.5)", "optax.sgd(0.1)"
    effective, arrays, w = build(adapter, tmp_path, *descent, dtype="float32")
    assert effective["communication"] == "off"
    adapter.run(3, lambda: None)
    adapter.run(2, lambda: None)
    for device, held in enumerate(adapter._state.carry[0]):
        expected = alone(arrays, w, device, 5)
        np.testing.assert_allclose(held["fc.weight"], expected, rtol=1e-5)


def test_a_silent_step_of_keras(adapter: Any, tmp_path: Path) -> None:
    """Keras keeps the state that it gave."""
    _, arrays, w = build(adapter, tmp_path, dtype="float32")
    script = adapter._the_script()

    def step(state: Any, data: Any) -> Any:
        (weights,) = state[0]
        x, t, _ = data
        loss, grad = jax.value_and_grad(lambda w: jax.numpy.square(x @ w - t).mean())(
            weights
        )
        return {"loss": loss}, ([weights - 0.1 * grad], [])

    step, held = silent_keras(jax.jit(step, donate_argnums=0))
    first = state = [jax.device_put(w, script.REPLICATED)], []
    stream = script.batches(tuple(arrays.values()))
    for _ in range(5):
        logs, state = step(state, (*next(stream), None))
    assert state is first
    np.testing.assert_allclose(state[0][0], w)
    assert logs["loss"].shape == ()
    for device, ((weights,), _) in enumerate(held[0]):
        assert weights.devices() == {jax.devices()[device]}
        np.testing.assert_allclose(weights, alone(arrays, w, device, 5), rtol=1e-5)


def test_a_step_on_one_device_is_named(adapter: Any, tmp_path: Path) -> None:
    given = "params, opt_state, x, t"
    more = f"""

step = train_step


def train_step({given}):
    return step(*jax.device_put(({given}), jax.devices()[0]))
"""
    build(adapter, tmp_path, SCRIPT[-30:], SCRIPT[-30:] + more)
    with pytest.raises(AdapterError, match="after a step are on 1 device"):
        adapter.losses(2)


def test_split_parameters(tmp_path: Path) -> None:
    splits = JaxAdapter()
    splits.import_framework({"devices": "2", "parallel": "fsdp"}, 2)
    with pytest.raises(AdapterError, match="parts of the initial parameters are on 1"):
        build(splits, tmp_path)
    effective, _, w = build(
        splits, tmp_path, "MESH, PartitionSpec())", 'MESH, PartitionSpec(None, "data"))'
    )
    assert (effective["devices"], effective["parallel"]) == (2, "fsdp")
    np.testing.assert_allclose(splits.state()["fc.weight"], w)
    first = splits.losses(5).losses
    splits.restore()
    assert splits.losses(5).losses == first


def test_more_devices_than_asked_for_are_named(tmp_path: Path) -> None:
    alone = JaxAdapter()
    alone.import_framework({}, 2)
    with pytest.raises(AdapterError, match="on 2 devices, but devices = 1"):
        build(alone, tmp_path)


def test_what_devices_hold() -> None:
    from jax.sharding import NamedSharding, PartitionSpec

    mesh = jax.make_mesh((2,), ("data",))
    rows = np.arange(12).reshape(4, 3)
    split = jax.device_put(rows, NamedSharding(mesh, PartitionSpec("data")))
    whole = jax.device_put(rows, NamedSharding(mesh, PartitionSpec()))
    assert (parts_of(split), parts_of(whole), parts_of(rows)) == (2, 1, 1)
    np.testing.assert_array_equal(as_held(split, 0), rows)
    np.testing.assert_array_equal(as_held(whole, 0), np.concatenate([rows, rows]))


def test_few_calls_are_under_way() -> None:
    waited: list[int] = []

    class Loss:
        def __init__(self, step: int) -> None:
            self.step = step

        def block_until_ready(self) -> None:
            waited.append(self.step)

    kept: list[Any] = []
    mark = paced(lambda: None, kept, 2)
    for step in range(CALLS_UNDER_WAY + 2):
        kept.append(Loss(step))
        mark()
    assert waited == [0, 1, 2]
    assert paced(mark, kept, 1) is mark
