"""The JAX adapter and the scripts of the JAX emitter (tests/golden/jax).

Everything is executed. Needs an interpreter with jax and optax.
"""

# ruff: noqa: F811 (a fixture that is imported is an argument, too)
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

from bakeoff_runner.adapter import AdapterError  # noqa: E402
from bakeoff_runner.adapters.jax_adapter import JaxAdapter  # noqa: E402

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


@pytest.fixture
def text() -> str:
    return SMALL


@pytest.fixture(scope="module")
def adapter() -> Any:
    adapter = JaxAdapter()
    adapter.import_framework({}, 2)
    return adapter


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
    check_several_steps_a_call(adapter, small, CALLS)
    script = small["folder"] / "mine.py"
    script.write_text(script.read_text().replace("def train_steps", "def other"))
    with pytest.raises(AdapterError, match=r"defines no train_steps\("):
        build(adapter, small["folder"])


def test_the_step_itself_is_proven(adapter: Any, small: dict[str, Any]) -> None:
    check_doubled_gradients(
        adapter,
        small,
        "updates, opt_state = OPTIMIZER.update(grads,",
        "updates, opt_state = OPTIMIZER.update(jax.tree.map(lambda g: 2 * g, grads),",
    )


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
