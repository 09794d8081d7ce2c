"""The JAX adapter and the scripts of the JAX emitter (tests/golden/jax).

Everything is executed. Needs an interpreter with jax and optax.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")
pytest.importorskip("jax")
pytest.importorskip("optax")

from golden_cnn import (  # noqa: E402
    check_alone,
    check_gradients,
    insert_after,
    write_files,
    write_script,
)
from tiers import FULL, full_tier  # noqa: E402

from bakeoff_runner.adapter import (  # noqa: E402
    AdapterError,
    BuildRequest,
    ParityRequest,
)
from bakeoff_runner.adapters.jax_adapter import JaxAdapter  # noqa: E402
from bakeoff_runner.tensors import write_safetensors  # noqa: E402

SMALL = """
import itertools
import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import load_file


def load_data(path):
    data = load_file(path)
    return data["x"].astype(np.float32), data["t"].astype(np.float32)


def batches(arrays):
    return itertools.cycle([tuple(jnp.array(a[:4]) for a in arrays)])


def init_params(weights):
    return {"fc": {"weight": jnp.array(weights["fc.weight"])}}


def forward(params, x):
    return x @ params["fc"]["weight"]


def loss_fn(params, x, t):
    return jnp.square(forward(params, x) - t).mean()


def make_optimizer():
    return optax.sgd(0.5)


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
    adapter.import_framework({}, 2)
    return adapter


@pytest.fixture
def small(tmp_path: Path) -> dict[str, Any]:
    """A linear model with a hand-written script, its files and its arrays."""
    rng = np.random.default_rng(1)
    x, t = rng.normal(size=(8, 3)), rng.normal(size=(8, 2))
    arrays = {k: v.astype("f4") for k, v in {"x": x, "t": t}.items()}
    weights = {"fc.weight": rng.normal(size=(2, 3)).astype("f4")}
    write_safetensors(tmp_path / "data.safetensors", arrays)
    write_safetensors(tmp_path / "weights.safetensors", weights)
    write_safetensors(tmp_path / "grads.safetensors", {"fc.weight": np.ones((2, 3))})
    (tmp_path / "layout.json").write_text(
        '{"fc.weight": {"target": "fc.weight", "perm": [1, 0]}}'
    )
    (tmp_path / "mine.py").write_text(SMALL)
    return {"folder": tmp_path, **arrays, **weights}


def build(adapter: Any, folder: Path, **more: Any) -> dict[str, Any]:
    request = BuildRequest(
        folder / "mine.py",
        folder / "weights.safetensors",
        folder / "data.safetensors",
        folder / "layout.json",
        **{"dtype": "float64", **more},
    )
    effective: dict[str, Any] = adapter.build(request)
    return effective


def edit(folder: Path, old: str, new: str) -> None:
    script = (folder / "mine.py").read_text()
    assert old in script
    (folder / "mine.py").write_text(script.replace(old, new))


def test_proof_of_an_edited_script(adapter: Any, small: dict[str, Any]) -> None:
    effective = build(adapter, small["folder"])
    assert effective["dtype"] == "float64"
    assert effective["parameters"] == 6
    proof = ParityRequest(2, 5, small["folder"] / "grads.safetensors")
    got = adapter.parity(proof)
    x, t = (small[k][2:7].astype("f8") for k in "xt")
    w = small["fc.weight"].astype("f8")
    error = x @ w.T - t
    np.testing.assert_allclose(got["output"], x @ w.T, rtol=1e-12)
    np.testing.assert_allclose(got["loss"], np.mean(error**2), rtol=1e-12)
    np.testing.assert_allclose(got["grad/fc.weight"], error.T @ x / 5, rtol=1e-12)
    np.testing.assert_allclose(got["update/fc.weight"], w - 0.5, rtol=1e-12)


def test_losses_start_from_the_initial_state(
    adapter: Any, small: dict[str, Any]
) -> None:
    build(adapter, small["folder"])
    first = adapter.losses(4).losses
    marks: list[int] = []
    adapter.run(3, lambda: marks.append(1))
    assert len(marks) == 3
    assert adapter.losses(4).losses == first
    w, x = small["fc.weight"].astype("f8"), small["x"][:4].astype("f8")
    for loss in first:
        error = x @ w.T - small["t"][:4]
        assert loss == pytest.approx(np.mean(error**2), rel=1e-12)
        w = w - 0.5 * error.T @ x / 4


CALLS = """

STEPS_PER_CALL = 3


def batches(arrays):
    return itertools.cycle([tuple(jnp.array([a[:4]] * 3) for a in arrays)])


@jax.jit
def train_steps(params, opt_state, xs, ts):
    def step(carry, batch):
        *carry, loss = train_step(*carry, *batch)
        return tuple(carry), loss

    carry, losses = jax.lax.scan(step, (params, opt_state), (xs, ts))
    return *carry, losses
"""


def test_several_steps_a_call_are_the_same_steps(
    adapter: Any, small: dict[str, Any]
) -> None:
    build(adapter, small["folder"])
    single = adapter.losses(7).losses
    script = small["folder"] / "mine.py"
    script.write_text(script.read_text() + CALLS)
    effective = build(adapter, small["folder"])
    assert effective["steps_per_call"] == effective["steps_per_mark"] == 3
    assert adapter.losses(7).losses == pytest.approx(single, rel=1e-12)
    marks: list[int] = []
    ran = adapter.run(4, lambda: marks.append(1))
    assert (ran.steps, len(marks)) == (6, 2)
    script.write_text(script.read_text().replace("def train_steps", "def other"))
    with pytest.raises(AdapterError, match=r"defines no train_steps\("):
        build(adapter, small["folder"])


def test_the_step_itself_is_proven(adapter: Any, small: dict[str, Any]) -> None:
    edit(
        small["folder"],
        "updates, opt_state = OPTIMIZER.update(grads,",
        "updates, opt_state = OPTIMIZER.update(jax.tree.map(lambda g: 2 * g, grads),",
    )
    build(adapter, small["folder"])
    got = adapter.parity(ParityRequest(0, 8, None))
    x, t = small["x"].astype("f8"), small["t"].astype("f8")
    error = x @ small["fc.weight"].astype("f8").T - t
    np.testing.assert_allclose(got["grad/fc.weight"], 2 * error.T @ x / 8, rtol=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("def train_step", "def step", "mine.py defines no train_step"),
        ("def load_data", "def read", "mine.py defines no load_data"),
        ('"weight": jnp', '"kernel": jnp', "has 'fc.kernel', the workload has not"),
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
    check_gradients(adapter, "jax", tmp_path)


def test_scripts_run_alone(tmp_path: Path) -> None:
    write_files(tmp_path)
    names = ("mnist_cnn", "mnist_cnn_as_is", "mnist_cnn_scan")
    # As tests compile, without most optimisations, a convolution in a loop is slow.
    option = "jax.config.update('jax_disable_most_optimizations', False)"
    for name in names if FULL else names[1:2]:
        script = write_script("jax", name, tmp_path, 4)
        if name == names[-1]:
            insert_after(script, "import jax", option)
        check_alone(script, "step 8" if name == names[-1] else "step 10")
