"""The scenario "predict" in every adapter, with the emitters' scripts.

Runs in the environment of any framework: through a real worker, and the script alone.
That the numbers are right is proven against the referee (tests/op_parity); here the
worker's and the script's own output have to agree.
"""

from __future__ import annotations

import importlib.util
import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import forks  # noqa: E402
from supervisor import WorkerProcess  # noqa: E402
from tiers import FULL  # noqa: E402

from bakeoff_runner.prediction import predict_burst  # noqa: E402
from bakeoff_runner.tensors import read_safetensors, write_safetensors  # noqa: E402

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
BATCH = 16

# Golden script, the module it needs, options of the contender.
CASES: dict[str, tuple[str, str, dict[str, str]]] = {
    "torch": ("torch/predict_mnist_cnn", "torch", {}),
    "tensorflow": ("tensorflow/predict_mnist_cnn", "tensorflow", {}),
    "tensorflow_xla": (
        "tensorflow/predict_mnist_cnn_xla",
        "tensorflow",
        {"jit_compile": "true"},
    ),
    "jax": ("jax/predict_mnist_cnn", "jax", {}),
    "keras": ("keras/predict_mnist_cnn", "tensorflow", {}),
    "keras_torch": ("keras/predict_mnist_cnn_torch", "torch", {"backend": "torch"}),
    "keras2": ("keras2/predict_mnist_cnn", "tf_keras", {}),
    "onnxruntime": ("onnxruntime/mnist_cnn", "onnxruntime", {}),
    "onnxruntime_bound": (
        "onnxruntime/mnist_cnn_bound",
        "onnxruntime",
        {"io_binding": "true"},
    ),
}  # fmt: skip
if not FULL:
    del CASES["tensorflow_xla"]  # TensorFlow's but for one option


@pytest.fixture(params=CASES)
def case(request: Any, tmp_path: Path) -> tuple[str, dict[str, str], Path]:
    """Framework, options, and a script with its files beside it."""
    golden, module, options = CASES[request.param]
    if importlib.util.find_spec(module) is None:
        pytest.skip(f"no {module} here")
    if module == "tensorflow" and importlib.util.find_spec("tf_keras") is not None:
        pytest.skip("the same TensorFlow as in its own environment")
    framework = golden.partition("/")[0]
    text = (GOLDEN / f"{golden}.py").read_text()
    script = tmp_path / f"predict_{framework}.py"  # as the layout is named in it
    script.write_text(text.replace("BATCH_SIZE = 256", f"BATCH_SIZE = {BATCH}"))
    layout = GOLDEN / framework / "mnist_cnn.layout.json"
    if layout.is_file():
        shutil.copy(layout, script.with_suffix(".layout.json"))
    rng = np.random.default_rng(2)
    shapes = {
        "conv1": (32, 1, 3, 3), "conv2": (32, 32, 3, 3), "conv3": (32, 32, 3, 3),
        "conv4": (64, 32, 3, 3), "fc1": (128, 4096), "fc2": (10, 128),
    }  # fmt: skip
    weights = {}
    for layer, shape in shapes.items():
        scale = np.sqrt(2 / np.prod(shape[1:]))
        weights[f"{layer}.weight"] = (scale * rng.normal(size=shape)).astype("f4")
        weights[f"{layer}.bias"] = rng.normal(size=shape[0]).astype("f4") / 10
    write_safetensors(tmp_path / "weights.safetensors", weights)
    pictures = rng.integers(0, 256, size=(40, 1, 28, 28)).astype("u1")
    labels = rng.integers(0, 10, size=40).astype("u1")
    write_safetensors(tmp_path / "data.safetensors", {"x": pictures, "y": labels})
    return framework, options, script


def test_the_worker_and_the_script_alone_agree(case: Any) -> None:
    output = predicted(*case)
    assert output.dtype == np.float32 and output.shape == (BATCH, 10)
    run = forks.run([str(case[2]), "--steps", "11"])
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert [line.split()[1].rstrip(":") for line in lines] == ["0", "10"]
    mean = float(lines[0].split()[-1])
    assert mean == pytest.approx(output.astype("f8").mean(), abs=2e-6)
    assert float(lines[1].split()[-1]) == mean  # 40 rows are two batches: they repeat


def predicted(framework: str, options: dict[str, str], script: Path) -> Any:
    """The first batch's output, of a worker that answers everything as it has to."""
    out = script.with_suffix(".out.safetensors")
    layout = script.with_suffix(".layout.json")
    files = {
        "weights": str(script.parent / "weights.safetensors"),
        "data": str(script.parent / "data.safetensors"),
        "layout": str(layout) if layout.is_file() else None,
        "scenario": "predict",
        "train": False,
    }
    with WorkerProcess(framework) as worker:
        answer = worker.ask("import", options=options, threads=1)
        assert answer["ok"], answer["error"]
        answer = worker.ask("build", script=str(script), **files)
        assert answer["ok"], answer["traceback"]
        assert answer["effective"]["batch"] == BATCH
        answer = worker.ask("parity", batch=[0, BATCH], grads_in=None, out=str(out))
        assert answer["ok"], answer["traceback"]
        assert answer["tensors"] == ["output"]
        ran = worker.ask("run", steps=5)
        assert ran["ok"], ran["traceback"]
        assert ran["steps"] == 5 and ran["loss"] is None
        assert 0 < ran["ns"] <= ran["wall_ns"]
        told = worker.ask("outputs")
        assert told["ok"], told["traceback"]
        assert len(told["outputs"]) == 5
        assert not worker.ask("outputs")["ok"], "they are told once"
        if framework != "onnxruntime":  # whose weights are constants
            outputs_follow_each_nudge(worker, script.with_name("changes"))
        refused = worker.ask("losses", steps=1)
        assert not refused["ok"] and "no losses" in refused["error"]
        other = script.with_name("other.py")
        other.write_text(script.read_text().replace("def predict_step(", "def step("))
        refused = worker.ask("build", script=str(other), **files)
        assert not refused["ok"]
        assert "other.py defines no predict_step(" in refused["error"]
    return read_safetensors(out)["output"]


def outputs_follow_each_nudge(worker: WorkerProcess, changes: Path) -> None:
    """One burst that is nudged after each step is four bursts of a step each."""
    write_safetensors(changes, {"conv1.bias": np.full(32, 0.5, "f4")})

    def told(steps: int) -> list[Any]:
        ran = worker.ask("run", steps=steps, nudge=str(changes), nudge_every=1)
        assert ran["ok"], ran["traceback"]
        return list(worker.ask("outputs")["outputs"])

    assert worker.ask("restore")["ok"]
    together = told(4)
    assert worker.ask("restore")["ok"]
    alone = [told(1)[0] for _ in range(4)]
    for one, other in zip(together, alone):
        assert one == pytest.approx(other, rel=1e-4)
    assert alone[0][2] != pytest.approx(alone[2][2], rel=1e-2)


class Tensor:
    """As those of TensorFlow and ONNX Runtime, which tell no bytes."""

    def __init__(self, shape: Any) -> None:
        self.shape = shape


@pytest.mark.parametrize("in_tuple", [False, True])
@pytest.mark.parametrize("shape", [(50, 10), lambda: [50, 10]])
def test_of_a_burst_all_outputs_are_kept(shape: Any, in_tuple: bool) -> None:
    """A contender that tells fewer than there were is thrown out of its race."""
    one = Tensor(shape)
    arrays = {Tensor: lambda tensor: np.ones((50, 10), np.float32)}
    output = (one, one) if in_tuple else one
    ran = predict_burst(
        lambda: output, itertools.repeat(()), 3000, lambda: None, repr, arrays
    )
    assert ran.outputs is not None
    size = 1000 if in_tuple else 500
    assert ran.outputs() == [(size, 1.0, float(size))] * 3000
