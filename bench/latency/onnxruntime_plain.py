"""Answers requests with the CNN of the MNIST comparison in ONNX Runtime, by hand.

    python onnxruntime_plain.py WEIGHTS DATA THREADS

Writes a byte to standard output when it is ready, reads a byte a request from standard
input and writes one back when the whole output is there. Knows nothing of Bakeoff but
the two files.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import helper, numpy_helper
from safetensors.numpy import load_file

LAYERS = (
    ("Conv", "x", "conv1", "a"),
    ("Relu", "a", "", "b"),
    ("Conv", "b", "conv2", "c"),
    ("Relu", "c", "", "d"),
    ("MaxPool", "d", "", "e"),
    ("Conv", "e", "conv3", "f"),
    ("Relu", "f", "", "g"),
    ("Conv", "g", "conv4", "h"),
    ("Relu", "h", "", "i"),
    ("Flatten", "i", "", "j"),
    ("Gemm", "j", "fc1", "k"),
    ("Relu", "k", "", "l"),
    ("Gemm", "l", "fc2", "logits"),
)
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "MaxPool": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "Gemm": {"transB": 1},
}


def session(weights: dict[str, np.ndarray], threads: int) -> ort.InferenceSession:
    nodes = []
    for op, source, layer, target in LAYERS:
        inputs = [source, f"{layer}.weight", f"{layer}.bias"] if layer else [source]
        nodes.append(helper.make_node(op, inputs, [target], **ATTRIBUTES.get(op, {})))
    float32 = helper.np_dtype_to_tensor_dtype(np.dtype(np.float32))
    graph = helper.make_graph(
        nodes,
        "cnn",
        [helper.make_tensor_value_info("x", float32, [1, 1, 28, 28])],
        [helper.make_tensor_value_info("logits", float32, [1, 10])],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opset = helper.make_opsetid("", 21)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    return ort.InferenceSession(
        model.SerializeToString(), options, ["CPUExecutionProvider"]
    )


def main() -> None:
    weights, data, threads = sys.argv[1:]
    model = session(load_file(weights), int(threads))
    pictures = load_file(data)["x"].astype(np.float32) / 255
    for i in range(50):
        model.run(None, {"x": pictures[i : i + 1]})
    os.write(1, b"!")
    i = 0
    while os.read(0, 1):
        model.run(None, {"x": pictures[i : i + 1]})
        os.write(1, b".")
        i = (i + 1) % len(pictures)


if __name__ == "__main__":
    main()
