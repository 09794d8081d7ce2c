"""Predicts with all_sorts in ONNX Runtime."""

import argparse
import itertools
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import helper, numpy_helper
from safetensors.numpy import load_file, save_file

BATCH_SIZE = 256
OPSET = 21
PROVIDER = "CPUExecutionProvider"


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    picture = data["picture"].astype(np.float32) / 255.0
    words = data["words"].astype(np.int32)
    return picture, words


def load_weights(path):
    """Initial weights as numpy arrays."""
    return load_file(path)


def batches(arrays):
    """Endless batches, in file order; rows left over are dropped."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tuple(a[i : i + BATCH_SIZE] for a in arrays) for i in starts]
    return itertools.cycle(ready)


def build_model(weights, real=np.float32):
    """The graph with its weights; `real`: the type of floating-point numbers."""
    constants = {name: array.astype(real) for name, array in weights.items()}
    nodes = []

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], output, **attributes))

    def value(name, dtype, shape):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return helper.make_tensor_value_info(name, kind, shape)

    add(
        "Conv",
        ["picture", "stem.conv.weight", "stem.conv.bias"],
        "c1",
        strides=[2, 1],
        pads=[0, 1, 1, 0],
    )
    add(
        "Conv",
        ["c1", "stem.depth.weight"],
        "c2",
        pads=[2, 2, 2, 2],
        dilations=[2, 2],
        group=6,
    )
    add("Gelu", ["c2"], "g", approximate="tanh")
    add("MaxPool", ["g"], "m", kernel_shape=[2, 2], pads=[1, 0, 0, 1])
    add(
        "AveragePool",
        ["m"],
        "a",
        kernel_shape=[3, 2],
        strides=[2, 2],
        pads=[1, 0, 0, 1],
    )
    constants["p.pads"] = np.array([0, 0, 1, 0, 0, 0, 0, 2], np.int64)
    constants["p.value"] = np.array(0.5, real)
    add("Pad", ["a", "p.pads", "p.value"], "p")
    add(
        "AveragePool",
        ["p"],
        "v",
        kernel_shape=[2, 2],
        pads=[1, 0, 1, 0],
        count_include_pad=1,
    )
    add(
        "BatchNormalization",
        [
            "v",
            "stem.bn.weight",
            "stem.bn.bias",
            "stem.bn.running_mean",
            "stem.bn.running_var",
        ],
        "n",
        epsilon=0.001,
    )
    add("Sigmoid", ["n"], "s")
    add("Mul", ["n", "s"], "gated")
    add("GlobalAveragePool", ["gated"], "pooled.mean")
    add("Flatten", ["pooled.mean"], "pooled")
    add("Gather", ["words.weight", "words"], "e")
    add("Transpose", ["e"], "t", perm=[0, 2, 1])
    constants["r.shape"] = np.array([-1, 5, 6], np.int64)
    add("Reshape", ["t", "r.shape"], "r")
    add(
        "LayerNormalization",
        ["r", "norm.weight", "norm.bias"],
        "l",
        axis=-1,
        epsilon=1e-6,
    )
    add("Flatten", ["l"], "f")
    add("Gemm", ["f", "mix.weight", "mix.bias"], "q", transB=1)
    add("Tanh", ["q"], "w")
    add("Softmax", ["w"], "k", axis=1)
    add("Concat", ["pooled", "k"], "both", axis=1)
    add("Gemm", ["both", "head.weight"], "z", transB=1)
    add("Add", ["z", "pooled"], "u")
    add("Gelu", ["u"], "ge")
    add("Gemm", ["ge", "words.weight", "tied_bias"], "logits", transB=1)

    inputs = [
        value("picture", real, ["N", 3, 9, 8]),
        value("words", np.int32, ["N", 5]),
    ]
    output = value("logits", real, ["N", 20])
    read = {name for node in nodes for name in node.input}
    arrays = [(name, array) for name, array in constants.items() if name in read]
    initial = [numpy_helper.from_array(array, name) for name, array in arrays]
    graph = helper.make_graph(nodes, "all_sorts", inputs, [output], initial)
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def make_session(model, threads=0):
    """`threads`: 0 is one for each core."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    providers = [PROVIDER]
    return ort.InferenceSession(model.SerializeToString(), options, providers)


def predict_step(session, picture, words):
    return session.run(["logits"], {"picture": picture, "words": words})[0]


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    args = parser.parse_args()

    session = make_session(build_model(load_weights(args.weights)))
    arrays = load_data(args.data)
    data = batches(arrays)
    steps = len(arrays[0]) // BATCH_SIZE if args.out else args.steps
    outputs = []
    for step in range(steps):
        output = predict_step(session, *next(data))
        if step % 10 == 0:
            print(f"batch {step}: mean output {output.mean():.6f}")
        if args.out:
            outputs.append(np.asarray(output, np.float32))
    if args.out:
        save_file({"output": np.concatenate(outputs)}, args.out)


if __name__ == "__main__":
    main()
