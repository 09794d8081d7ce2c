"""What emitted scripts call: the helper files of the emitters, each as a module."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

np = pytest.importorskip("numpy")

EMITTERS = Path(__file__).resolve().parents[2] / "src" / "emit"
FILES = sorted(EMITTERS.rglob("*.py"))


def helpers(framework: str, file: str = "helpers.py") -> ModuleType:
    """The module; the test is skipped where the framework is not installed."""
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    for package in {"keras": ["keras", "tensorflow"], "": []}.get(
        framework, [framework]
    ):
        pytest.importorskip(package)
    path = EMITTERS / framework / file
    spec = importlib.util.spec_from_file_location(f"{framework}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(EMITTERS))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(EMITTERS))
    return module


def drawn(*shape: int) -> Any:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def close(given: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(given), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "file", FILES, ids=lambda file: f"{file.parent.name}.{file.stem}"
)
def test_each_file_compiles(file: Path) -> None:
    compile(file.read_text(), file, "exec")


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_the_last_step_of_a_reversed_lstm_reads_the_last_place_alone(
    framework: str,
) -> None:
    lstm = helpers(framework).lstm
    x, kernel, recurrent = drawn(2, 3, 4), drawn(4, 20), drawn(5, 20)
    backward = np.asarray(lstm(x, kernel, recurrent, reverse=True))
    forward = np.asarray(lstm(x[:, ::-1], kernel, recurrent))
    i, _, g, o = np.split(x[:, -1] @ kernel, 4, -1)

    def sigmoid(a: Any) -> Any:
        return 1 / (1 + np.exp(-a))

    first = sigmoid(o) * np.tanh(sigmoid(i) * np.tanh(g))
    close(forward[:, 0], first)
    # JAX gives the outputs where their inputs are, and so does TensorFlow.
    close(backward[:, ::-1], forward)


@pytest.mark.parametrize("framework", ["jax", "tensorflow", "keras"])
def test_attention_sees_what_its_masks_leave(framework: str) -> None:
    module = helpers(framework)
    q, k, v = drawn(2, 3, 1, 4), drawn(2, 3, 1, 4), drawn(2, 3, 1, 4)
    if framework == "keras":
        causal = module.attention(q, k, v, is_causal=True)
        mask = module.padding_mask(np.array([0, 0]), 3)
        padded = module.attention(q, k, v, mask=mask)
    else:
        causal = module.attention(q, k, v, causal=True)
        padded = module.attention(q, k, v, np.array([0, 0], np.int32))
    close(np.asarray(causal)[:, 0], v[:, 0])
    close(padded, np.broadcast_to(v[:, :1], v.shape))


@pytest.mark.parametrize("framework", ["jax", "tensorflow"])
def test_neighbouring_heads_of_attention_share_keys(framework: str) -> None:
    module = helpers(framework)
    q, k, v = drawn(2, 3, 6, 4), drawn(2, 3, 2, 4), drawn(2, 3, 2, 4)
    grouped = module.grouped_attention(q, k, v, causal=True)
    repeated = (np.repeat(heads, 3, axis=2) for heads in (k, v))
    close(grouped, np.asarray(module.attention(q, *repeated, causal=True)))


def test_linear_layers_of_rows_are_those_of_sequences() -> None:
    module = helpers("tensorflow")
    x, weight, bias = drawn(3, 4), drawn(4, 2), drawn(2)
    expected = module.linear_rows(x, weight, bias)
    close(module.linear(x, weight, bias), expected)
    close(module.linear(np.stack([x, x]), weight, bias), np.stack([expected] * 2))


def test_the_fused_batch_norm_is_the_plain_one() -> None:
    module = helpers("tensorflow")
    tf = module.tf
    for x in (drawn(3, 4, 5, 2) + 1, drawn(6, 2)):
        scale, shift = tf.constant(drawn(2)), tf.constant(drawn(2))
        results = []
        for norm in (module.batch_norm, module.batch_norm_fused):
            mean, var = tf.Variable([0.1, 0.2]), tf.Variable([0.5, 2.0])
            y = norm(tf.constant(x), scale, shift, mean, var, eps=1e-5, momentum=0.1)
            results.append([*np.asarray(y).ravel(), *mean.numpy(), *var.numpy()])
        close(*results)
        constants = (tf.constant(x), scale, shift, mean, var)
        fused = module.batch_norm_predicts_fused(*constants, eps=1e-5)
        close(fused, module.batch_norm_predicts(*constants, eps=1e-5))


def test_convolutions_of_jax() -> None:
    module = helpers("jax")
    x, kernel, bias = drawn(1, 5, 4), drawn(1, 2, 6), drawn(6)
    options: dict[str, Any] = {"stride": (1,), "padding": ((0, 0),)}
    grouped = module.conv1d(x, kernel, bias, groups=2, **options)
    parts = [
        x[..., 2 * i : 2 * i + 2] @ kernel[0, :, 3 * i : 3 * i + 3] for i in (0, 1)
    ]
    expected = (np.concatenate(parts, -1) + bias).astype(grouped.dtype)
    np.testing.assert_allclose(grouped, expected, rtol=0.05, atol=0.05)  # in bfloat16
    stretched = module.conv_transpose(
        x, np.ones((2, 4, 1), np.float32), stride=(2,), padding=((1, 1),)
    )
    close(stretched, np.repeat(x.sum(-1, keepdims=True), 2, axis=1))


@pytest.mark.parametrize("axes", [1, 2, 3])
def test_convolutions_of_jax_with_even_numbers(axes: int) -> None:
    module = helpers("jax")
    x, kernel = drawn(2, *[7] * axes, 4), drawn(*[3] * axes, 2, 6)
    plain, even = (getattr(module, f"conv{axes}d{end}") for end in ("", "_even"))
    for stride, padding in ((1, 0), (2, 1), (3, 2)):
        pads = ((padding, padding),) * axes
        expected = plain(x, kernel, stride=(stride,) * axes, padding=pads, groups=2)
        close(even(x, kernel, stride=stride, padding=padding, groups=2), expected)


def test_pools_of_torch_count_real_places() -> None:
    torch = pytest.importorskip("torch")
    pool = helpers("torch").avg_pool1d_uneven
    x = torch.tensor([[[1.0, 2.0, 3.0]]])
    close(pool(x, (2,), (2,), (1, 0)), [[[1.0, 2.5]]])


def test_resize_reads_the_same_places_everywhere() -> None:
    module = helpers("torch")
    torch = pytest.importorskip("torch")
    matrix = helpers("", "numpy_helpers.py").resize_matrix
    x = torch.arange(6.0, dtype=torch.float64)[None, None]
    for mode in ("nearest", "linear"):
        expected = x.numpy() @ matrix(6, 4, mode, "asymmetric")
        close(module.resize(x, (4,), mode, "asymmetric"), expected)


def test_gates_of_onnxruntime() -> None:
    module = helpers("onnxruntime")
    close(module.lstm_gates(np.arange(4.0)), [[0, 3, 1, 2]])
    close(module.gru_gates(np.arange(3.0)), [[1, 0, 2]])
