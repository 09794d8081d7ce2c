"""A linear model as a script of the user's own, and what an adapter must make of it.

A test file imports the tests that hold for its adapter, and has the fixtures `adapter`
and `text`, the script: `fc.weight` of two rows of three, the first four rows as every
batch, the mean of squares as loss, and SGD with a rate of 0.5. What is expected is
computed here by hand, so that no framework judges itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bakeoff_runner.adapter import BuildRequest, ParityRequest
from bakeoff_runner.tensors import write_safetensors


@pytest.fixture
def small(tmp_path: Path, text: str) -> dict[str, Any]:
    """The script, its files and its arrays."""
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
    (tmp_path / "mine.py").write_text(text)
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


def check_several_steps_a_call(adapter: Any, small: dict[str, Any], calls: str) -> None:
    """`calls`: the script's `train_steps` of three steps, and their batches."""
    build(adapter, small["folder"])
    single = adapter.losses(7).losses
    script = small["folder"] / "mine.py"
    script.write_text(script.read_text() + calls)
    effective = build(adapter, small["folder"])
    assert effective["steps_per_call"] == effective["steps_per_mark"] == 3
    assert adapter.losses(7).losses == pytest.approx(single, rel=1e-12)
    marks: list[int] = []
    ran = adapter.run(4, lambda: marks.append(1))
    assert (ran.steps, len(marks)) == (6, 2)


def check_doubled_gradients(
    adapter: Any, small: dict[str, Any], old: str, new: str
) -> None:
    """That the step itself is proven: `new` doubles its gradients."""
    edit(small["folder"], old, new)
    build(adapter, small["folder"])
    got = adapter.parity(ParityRequest(0, 8, None))
    x, t = small["x"].astype("f8"), small["t"].astype("f8")
    error = x @ small["fc.weight"].astype("f8").T - t
    np.testing.assert_allclose(got["grad/fc.weight"], 2 * error.T @ x / 8, rtol=1e-12)
