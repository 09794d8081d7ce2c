"""The ONNX Runtime adapter; that it predicts is in test_predict_adapter.py."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnxruntime")
np = pytest.importorskip("numpy")

from onnx import TensorProto, checker, helper  # noqa: E402

from bakeoff_runner.adapter import (  # noqa: E402
    AdapterError,
    BuildRequest,
    ParityRequest,
)
from bakeoff_runner.adapters import onnxruntime_adapter  # noqa: E402
from bakeoff_runner.script import load_script, unload_script  # noqa: E402
from bakeoff_runner.tensors import read_safetensors, write_safetensors  # noqa: E402

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden" / "onnxruntime"

# y = x W^T by hand; $provider$ and $node$ differ between tests.
SCRIPT = """
import numpy as np
import onnxruntime as ort
from onnx import helper, numpy_helper
from safetensors.numpy import load_file

BATCH_SIZE = 2
PROVIDER = "$provider$"


def load_data(path):
    return (load_file(path)["x"],)


def batches(arrays):
    while True:
        yield (arrays[0][:BATCH_SIZE],)


def build_model(weights, real=np.float32):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(real))
    x = helper.make_tensor_value_info("x", kind, ["N", 3])
    y = helper.make_tensor_value_info("y", kind, None)
    w = numpy_helper.from_array(weights["w"].astype(real), "w")
    nodes = [$nodes$]
    graph = helper.make_graph(nodes, "g", [x], [y], [w])
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )


def make_session(model, threads=0):
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    return ort.InferenceSession(model.SerializeToString(), options, [PROVIDER])


def predict_step(session, x):
    return session.run(None, {"x": x})[0]
"""
GEMM = 'helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)'
ERF = (
    'helper.make_node("Gemm", ["x", "w"], ["h"], transB=1), '
    'helper.make_node("Erf", ["h"], ["y"])'
)


def request(
    folder: Path, nodes: str = GEMM, provider: str = "CPUExecutionProvider", **more: Any
) -> BuildRequest:
    script = folder / "predict_mine.py"
    script.write_text(SCRIPT.replace("$provider$", provider).replace("$nodes$", nodes))
    rng = np.random.default_rng(1)
    write_safetensors(folder / "w", {"w": rng.normal(size=(4, 3)).astype("f4")})
    write_safetensors(folder / "x", {"x": rng.normal(size=(5, 3)).astype("f4")})
    fields = {"train": False, "predict": True, "layout": None, **more}
    return BuildRequest(script, folder / "w", folder / "x", **fields)


def adapter(**options: str) -> Any:
    made = onnxruntime_adapter.make()
    made.import_framework(options, 1)
    return made


def test_effective_settings_are_the_session_s(tmp_path: Path) -> None:
    effective = adapter().build(request(tmp_path))
    assert effective["provider"] == "CPUExecutionProvider"
    assert effective["threads"] == 1
    assert effective["optimization"] == "ORT_ENABLE_ALL"
    assert effective["parameters"] == 12 and effective["batch"] == 2
    assert effective["computed_by"] == "onnxruntime"


def test_a_provider_that_falls_back_is_a_failure(tmp_path: Path) -> None:
    asked = request(tmp_path, provider="CUDAExecutionProvider")
    available = adapter().import_framework({}, 1).effective
    if "CUDAExecutionProvider" in available["available_providers"]:
        pytest.skip("there is a GPU")
    with pytest.raises(AdapterError, match="runs on CPUExecutionProvider"):
        adapter().build(asked)


def test_a_provider_that_fails_later_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import onnxruntime

    calls = []
    original = onnxruntime.InferenceSession.disable_fallback
    monkeypatch.setattr(
        onnxruntime.InferenceSession,
        "disable_fallback",
        lambda session: (calls.append(session), original(session)),
    )
    adapter().build(request(tmp_path))
    adapter().build(request(tmp_path, dtype="float64"))
    assert len(calls) == 2


def test_the_device_is_that_of_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    import onnxruntime

    def device(provider: str, *available: str) -> str:
        offered = [f"{name}ExecutionProvider" for name in available]
        monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: offered)
        made = onnxruntime_adapter.make()
        found: str = made.import_framework({"provider": provider}, 1).device
        return found

    assert device("cuda", "CUDA", "CPU") == "cuda:0"
    assert device("tensorrt", "Tensorrt", "CUDA", "CPU") == "cuda:0"
    assert device("tensorrt", "CUDA", "CPU") == "cpu"
    assert device("cuda", "CPU") == "cpu"
    assert device("cpu", "CUDA", "CPU") == "cpu"
    assert onnxruntime_adapter.make().import_framework({}, 1).device == "cpu"


def test_double_without_kernels_is_by_the_reference(tmp_path: Path) -> None:
    mine = adapter()
    assert (
        mine.build(request(tmp_path, ERF, dtype="float64"))["computed_by"]
        == "onnx.reference"
    )
    output = mine.parity(ParityRequest(0, 2, None))["output"]
    single = adapter()
    single.build(request(tmp_path, ERF))
    assert output.dtype == np.float64
    assert single.parity(ParityRequest(0, 2, None))["output"] == pytest.approx(
        output, abs=1e-6
    )
    with pytest.raises(AdapterError, match="no kernels"):
        mine.run(1, lambda: None)


def node(name: str, inputs: str, output: str, **attributes: Any) -> str:
    return f"helper.make_node('{name}', {inputs.split()}, ['{output}'], **{attributes})"


GELUS = {
    "none": lambda v: 0.5 * v * (1 + math.erf(v / math.sqrt(2))),
    "tanh": lambda v: (
        0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))
    ),
}


def test_an_error_of_the_script_is_not_taken_for_a_missing_kernel(
    tmp_path: Path,
) -> None:
    mine = adapter()
    asked = request(tmp_path, dtype="float64")
    wrong = 'raise ValueError("a step of mine")\n    return session.run'
    text = asked.script.read_text()
    asked.script.write_text(text.replace("return session.run", wrong))
    mine.build(asked)
    with pytest.raises(ValueError, match="a step of mine"):
        mine.parity(ParityRequest(0, 2, None))


def test_an_lstm_in_double_is_by_the_reference(tmp_path: Path) -> None:
    nodes = (
        'helper.make_node("Unsqueeze", ["x", "axes"], ["row"]), '
        'helper.make_node("LSTM", ["row", "w", "r"], ["y"], hidden_size=1)'
    )
    more = (
        'w = numpy_helper.from_array(np.ones((1, 4, 3), real), "w")\n'
        '    r = numpy_helper.from_array(np.ones((1, 4, 1), real), "r")\n'
        '    axes = numpy_helper.from_array(np.array([0]), "axes")\n'
    )
    asked = request(tmp_path, nodes, dtype="float64")
    text = asked.script.read_text()
    begin = text.index("w = numpy_helper")
    text = text[:begin] + more + text[text.index("    nodes = ") :]
    asked.script.write_text(text.replace("[w])", "[w, r, axes])"))
    mine = adapter()
    assert mine.build(asked)["computed_by"] == "onnxruntime"
    output = mine.parity(ParityRequest(0, 2, None))["output"]
    assert output.dtype == np.float64 and np.isfinite(output).all()


@pytest.mark.parametrize("form", GELUS)
def test_gelu_is_double_in_double(tmp_path: Path, form: str) -> None:
    nodes = f"{GEMM.replace('y', 'h')}, {node('Gelu', 'h', 'y', approximate=form)}"
    mine = adapter()
    mine.build(request(tmp_path, nodes, dtype="float64"))
    x = read_safetensors(tmp_path / "x")["x"][:2].astype("f8")
    wanted = np.vectorize(GELUS[form])(
        x @ read_safetensors(tmp_path / "w")["w"].T.astype("f8")
    )
    output = mine.parity(ParityRequest(0, 2, None))["output"]
    assert output == pytest.approx(wanted, rel=1e-14)


def test_a_scale_stays_double(tmp_path: Path) -> None:
    """Optimisation makes it an attribute of the product, in float32."""
    scale = (
        "helper.make_node('Constant', [], ['s'], "
        "value=numpy_helper.from_array(np.array(3**-0.5, real)))"
    )
    product = (
        "helper.make_node('Transpose', ['w'], ['t']), "
        "helper.make_node('MatMul', ['x', 't'], ['h'])"
    )
    mine = adapter()
    nodes = f"{scale}, {product}, {node('Mul', 'h s', 'y')}"
    effective = mine.build(request(tmp_path, nodes, dtype="float64"))
    assert effective["computed_by"] == "onnxruntime"
    x = read_safetensors(tmp_path / "x")["x"][:2].astype("f8")
    wanted = x @ read_safetensors(tmp_path / "w")["w"].T.astype("f8") * 3**-0.5
    output = mine.parity(ParityRequest(0, 2, None))["output"]
    assert output == pytest.approx(wanted, rel=1e-14)


def test_what_it_does_not_do(tmp_path: Path) -> None:
    with pytest.raises(AdapterError, match="does not train"):
        adapter().build(request(tmp_path, predict=False, train=True))
    with pytest.raises(AdapterError, match="unknown option 'donate'"):
        adapter(donate="true")
    built = adapter()
    built.build(request(tmp_path))
    with pytest.raises(AdapterError, match="5 rows, not 6"):
        built.parity(ParityRequest(0, 6, None))


def test_lrn_of_the_reference_counts_channels() -> None:
    """An even and an odd number of channels beside a batch of one."""
    lrn = onnxruntime_adapter._correct_lrn()
    from onnx.reference import ReferenceEvaluator

    x = np.arange(1, 7, dtype=np.float64).reshape(1, 6, 1, 1)
    value = helper.make_tensor_value_info
    node = helper.make_node("LRN", ["x"], ["y"], size=3, alpha=3.0, beta=1.0, bias=1.0)
    graph = helper.make_graph(
        [node],
        "g",
        [value("x", TensorProto.DOUBLE, x.shape)],
        [value("y", TensorProto.DOUBLE, x.shape)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    y = ReferenceEvaluator(model, new_ops=[lrn]).run(None, {"x": x})[0].ravel()
    squares = [1 + 4, 1 + 4 + 9, 4 + 9 + 16, 9 + 16 + 25, 16 + 25 + 36, 25 + 36]
    assert y == pytest.approx([n / (1 + s) for n, s in enumerate(squares, 1)])


def test_the_emitted_graph_is_valid() -> None:
    """By ONNX's own checker and shape inference."""
    shapes = {
        "conv1": (32, 1, 3, 3), "conv2": (32, 32, 3, 3), "conv3": (32, 32, 3, 3),
        "conv4": (64, 32, 3, 3), "fc1": (128, 4096), "fc2": (10, 128),
    }  # fmt: skip
    weights = {f"{layer}.weight": np.ones(s, "f4") for layer, s in shapes.items()}
    weights.update(
        {f"{layer}.bias": np.ones(s[0], "f4") for layer, s in shapes.items()}
    )
    weights["spare"] = np.ones(3, "f4")
    script = load_script(GOLDEN / "mnist_cnn.py")
    try:
        model = script.build_model(weights)
    finally:
        unload_script(script)
    checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == 21
    names = {tensor.name for tensor in model.graph.initializer}
    assert names == set(weights) - {"spare"}
