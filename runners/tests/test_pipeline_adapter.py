"""Input pipelines: the emitted scripts of every framework that is installed here.

Each runs in a worker; the batches that it delivers are those of the data file.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import forks  # noqa: E402
from supervisor import RUNNERS, WorkerProcess  # noqa: E402

from bakeoff_runner.adapter import AdapterError, BatchWait  # noqa: E402
from bakeoff_runner.pipeline import TimedBatches, digest, endless  # noqa: E402
from bakeoff_runner.script import load_script  # noqa: E402
from bakeoff_runner.tensors import write_safetensors  # noqa: E402

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
BATCH, ROWS = 256, 600  # two whole batches, and rows left over
SHAPES = [[1, 28, 28], []]

SCRIPTS = {
    "torch/mnist_cnn.py": "torch",
    "torch/input_tensor_dataset.py": "torch",
    "torch/input_dataset.py": "torch",
    "torch/input_batched_index.py": "torch",
    "tensorflow/mnist_cnn.py": "tensorflow",
    "tensorflow/mnist_cnn_loop.py": "tensorflow",
    "tensorflow/input_tf_data.py": "tensorflow",
    "tensorflow/input_tf_data_loop.py": "tensorflow",
    "jax/mnist_cnn.py": "jax",
    "jax/mnist_cnn_scan.py": "jax",
    "keras/mnist_cnn.py": "keras",
    "keras/input_tf_data.py": "keras",
    "keras/input_py_dataset_jax.py": "keras",
    "keras2/mnist_cnn.py": "keras2",
}


def installed(script: str) -> bool:
    framework = script.partition("/")[0]
    if importlib.util.find_spec("tf_keras"):  # the others are seen where it is not
        return framework == "keras2"
    if framework == "keras":
        backend = "jax" if "_jax" in script else "tensorflow"
        if importlib.util.find_spec(backend) is None:
            return False
    return importlib.util.find_spec(framework) is not None


HERE = [script for script in SCRIPTS if installed(script)]
if not HERE:
    pytest.skip("needs a framework", allow_module_level=True)


def data_in(folder: Path) -> dict[str, Any]:
    generator = np.random.default_rng(3)
    data = {
        "x": generator.integers(0, 256, (ROWS, 1, 28, 28)).astype(np.uint8),
        "y": generator.integers(0, 10, ROWS).astype(np.int32),
    }
    write_safetensors(folder / "data.safetensors", data)
    return data


def write_weights(folder: Path) -> None:
    generator = np.random.default_rng(7)
    shapes = {
        "conv1": (32, 1, 3, 3),
        "conv2": (32, 32, 3, 3),
        "conv3": (32, 32, 3, 3),
        "conv4": (64, 32, 3, 3),
        "fc1": (128, 4096),
        "fc2": (10, 128),
    }
    weights = {}
    for name, shape in shapes.items():
        weights[f"{name}.weight"] = generator.normal(0, 0.05, shape).astype(np.float32)
        weights[f"{name}.bias"] = np.zeros(shape[0], np.float32)
    write_safetensors(folder / "weights.safetensors", weights)


def expected(data: dict[str, Any], count: int) -> list[str]:
    hashes = []
    for step in range(count):
        rows = slice(step % 2 * BATCH, (step % 2 + 1) * BATCH)
        x = data["x"][rows].astype(np.float32) / np.float32(255)
        hashes.append(digest([x, data["y"][rows]], SHAPES))
    return hashes


def built(worker: WorkerProcess, script: str, folder: Path) -> None:
    file = GOLDEN / script
    layout = file.with_suffix(".layout.json")
    if not layout.exists():  # where many scripts share one
        layout = file.with_name("mnist_cnn.layout.json")
    options = {"backend": "jax"} if script.endswith("_jax.py") else {}
    imported = worker.ask("import", options=options, threads=1)
    assert imported["ok"], imported
    answer = worker.ask(
        "build",
        script=str(file),
        weights=str(folder / "weights.safetensors"),
        data=str(folder / "data.safetensors"),
        layout=str(layout) if layout.exists() else None,
    )
    assert answer["ok"], answer


@pytest.mark.parametrize("script", HERE)
def test_every_pipeline_delivers_the_batches_of_the_file(
    script: str, tmp_path: Path
) -> None:
    data = data_in(tmp_path)
    write_weights(tmp_path)
    framework = SCRIPTS[script]
    with WorkerProcess(framework) as worker:
        built(worker, script, tmp_path)
        answer = worker.ask("batches", count=5, row_shapes=SHAPES)
        assert answer["ok"], answer
        assert answer["sha256"] == expected(data, 5)
        # Again from the start, and the loop that trains reads what follows.
        again = worker.ask("batches", count=1, row_shapes=SHAPES)
        assert again["sha256"] == answer["sha256"][:1]
        if framework != "torch":  # compiling the step takes the others seconds
            return
        run = worker.ask("run", steps=1)
        assert run["ok"], run
        assert run["wait"]["firsts"] == 1
        assert 0 < run["wait"]["first_ns"] < run["ns"]
        assert worker.ask("run", steps=2)["wait"]["batches"] == 1


# How many rows each takes at once.
TAKES = {
    "torch/input_tensor_dataset_as_is.py": 256,
    "tensorflow/mnist_cnn.py": 256,
    "tensorflow/input_preloaded_as_is.py": 256,
    "tensorflow/input_tf_data_as_is.py": 256,
    "tensorflow/mlp_deep_loop_as_is.py": 8000,
    "tensorflow/predict_mnist_cnn.py": 256,
    "jax/mnist_cnn.py": 256,
    "jax/mnist_cnn_scan.py": 256,
    "jax/mnist_cnn_as_is.py": 256,
    "jax/mlp_deep_scan_as_is.py": 8000,
    "keras/mnist_cnn.py": 256,
    "keras/input_tf_data_as_is.py": 256,
    "keras/input_py_dataset_jax_as_is.py": 256,
    "keras/predict_mnist_cnn.py": 256,
    "keras2/mnist_cnn_as_is.py": 256,
    "onnxruntime/mnist_cnn.py": 256,
}


@pytest.mark.parametrize("script", [s for s in TAKES if installed(s)])
def test_a_script_with_fewer_rows_than_it_takes_says_so(script: str) -> None:
    module: Any = load_script(GOLDEN / script)
    calls = TAKES[script] > 256
    rows = TAKES[script] - 1
    x, y = np.zeros((rows, 1, 28, 28), np.float32), np.zeros(rows, np.int32)
    if script.startswith("torch"):
        import torch

        x, y = torch.from_numpy(x), torch.from_numpy(y)
    what = "call" if calls else "batch"
    with pytest.raises(ValueError, match=f"fewer rows than one {what}"):
        if hasattr(module, "fit"):
            module.fit(None, x, y, 1)
        elif script.startswith("torch"):
            next(iter(module.batches(x, y)))
        else:
            next(iter(module.batches(x if "keras" in script else (x, y))))


def test_an_iterator_that_ends_says_what_a_call_takes() -> None:
    data = [np.zeros((30, 2)), np.zeros(30)]
    script: Any = SimpleNamespace(BATCH_SIZE=10)
    batches = endless([1, 2], script, data, each=4)
    assert [next(batches), next(batches)] == [1, 2]
    wanted = "a call takes 4 batches of 10 rows, of which the data has 30"
    with pytest.raises(AdapterError, match=wanted):
        next(batches)
    with pytest.raises(AdapterError, match="it must be endless, and a call takes a ba"):
        next(endless([], SimpleNamespace(), data))
    # Before a loop that would look for a whole batch for ever.
    with pytest.raises(AdapterError, match="the data has 9 rows, a batch 10"):
        endless([], script, [np.zeros(9)])


TRANSFER = """
import json, sys
from pathlib import Path
from bakeoff_runner.adapter import BuildRequest, load_adapter
framework, script, layout, folder, call, backend = sys.argv[1:]
adapter = load_adapter(framework)
options = {"backend": backend} if backend else {}
adapter.import_framework(options, 1)
folder, layout = Path(folder), Path(layout)
weights = None if "as_is" in script else folder / "weights.safetensors"
layout = layout if layout.exists() else None
data = folder / "data.safetensors"
adapter.build(BuildRequest(Path(script), weights, data, layout))
assert adapter.transfer() is None, "on the CPU"
print(json.dumps(vars(eval("adapter." + call))))
"""
ROW = 28 * 28 * 4 + 4  # bytes


@pytest.mark.parametrize(
    ("script", "call", "of", "size"),
    [
        # torch keeps labels as it wants them, in 8 bytes.
        ("torch/mnist_cnn.py", "_transfer_to('cpu')", "batch", BATCH * (ROW + 4)),
        ("tensorflow/mnist_cnn.py", "_transfer_to('CPU:0', 'CPU')", "data", ROWS * ROW),
        (
            "tensorflow/input_tf_data_loop.py",
            "_transfer_to('CPU:0', 'GPU')",
            "batch",
            BATCH * ROW,
        ),
        ("jax/mnist_cnn_scan.py", "_transfer()", "data", ROWS * ROW),
        ("jax/mnist_cnn_as_is.py", "_transfer()", "batch", BATCH * ROW),
        ("keras/mnist_cnn.py", "_transfer()", "batch", BATCH * ROW),
        ("keras/input_py_dataset_jax.py", "_transfer()", "batch", BATCH * ROW),
        ("keras2/mnist_cnn.py", "_transfer()", "batch", BATCH * ROW),
    ],
)
def test_a_copy_is_that_of_what_the_pipeline_hands_over(
    script: str, call: str, of: str, size: int, tmp_path: Path
) -> None:
    if not installed(script):
        pytest.skip("another environment's")
    data_in(tmp_path)
    write_weights(tmp_path)
    layout = (GOLDEN / script).with_suffix(".layout.json")
    if not layout.exists():
        layout = layout.with_name("mnist_cnn.layout.json")
    backend = "jax" if script.endswith("_jax.py") else ""
    arguments = [script.partition("/")[0], str(GOLDEN / script), str(layout)]
    call_of = ["-c", TRANSFER, *arguments, str(tmp_path), call, backend]
    done = forks.run(call_of, RUNNERS)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["of"], found["bytes"]) == (of, size)
    assert found["ns"] > 0


def test_a_batch_of_other_rows_or_in_another_order_has_another_hash() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2)
    y = np.array([1, 2], np.int32)
    shapes = [[3, 2, 2], []]
    original = digest([x, y], shapes)
    assert digest([y.astype(np.int64), x.astype(np.float64)], shapes) == original
    assert digest([np.moveaxis(x, 1, -1), y], shapes) == original
    assert digest([x[::-1], y[::-1]], shapes) != original
    assert digest([x, y[::-1]], shapes) != original
    with pytest.raises(AdapterError, match="rows of shape"):
        digest([x.reshape(2, 12), y], shapes)


def test_waits_of_first_batches_stand_apart() -> None:
    batches = TimedBatches(iter(range(7)), per_epoch=3)
    assert [next(batches) for _ in range(4)] == [0, 1, 2, 3]
    wait = batches.take()
    assert (wait.batches, wait.firsts) == (2, 2)
    assert wait.ns > 0 and wait.first_ns > 0
    assert list(batches) == [4, 5, 6]
    wait = batches.take()
    assert (wait.batches, wait.firsts) == (2, 1)
    assert batches.take() == BatchWait()
    # Three calls of two batches, two calls an epoch.
    calls = TimedBatches(iter(range(3)), per_epoch=4, each=2)
    assert list(calls) == [0, 1, 2]
    wait = calls.take()
    assert (wait.batches, wait.firsts) == (1 + 2 + 1, 2)
    assert wait.ns > 0 and wait.first_ns > 0
    unknown = TimedBatches(iter(range(4)), per_epoch=0, each=3)
    assert list(unknown) == [0, 1, 2, 3]
    wait = unknown.take()
    assert (wait.batches, wait.firsts) == (12, 0)
