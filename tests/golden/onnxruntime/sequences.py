"""Predicts with sequences in ONNX Runtime."""

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
    x = data["x"].astype(np.float32) / 255.0
    last = data["last"].astype(np.int32)
    return x, last


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


def causal_mask(keys, window, real):
    """What is added to the scores: 0 where a query sees a key, else -inf; 0: no window."""
    seen = np.tri(keys, dtype=bool)
    if window:
        seen &= ~np.tri(keys, k=-window, dtype=bool)
    return np.where(seen, 0, -np.inf).astype(real)


def lstm_gates(array):
    """The gates i, f, g, o in ONNX's order i, o, f, c, with an axis of directions."""
    i, f, g, o = np.split(array, 4)
    return np.concatenate([i, o, f, g])[np.newaxis]


def lstm_biases(bias):
    """ONNX has a second bias, which stays zero."""
    gates = lstm_gates(bias)
    return np.concatenate([gates, np.zeros_like(gates)], axis=1)


def build_model(weights, real=np.float32):
    """The graph with its weights; `real`: the type of floating-point numbers."""
    constants = {name: array.astype(real) for name, array in weights.items()}
    nodes = []

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], output, **attributes))

    def value(name, dtype, shape):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return helper.make_tensor_value_info(name, kind, shape)

    constants["place.weight.first"] = constants["place.weight"][:6]
    add("Add", ["x", "place.weight.first"], "placed")
    add("Transpose", ["placed"], "own.by_time", perm=[1, 0, 2])
    constants["rnn.kernel.onnx"] = lstm_gates(constants["rnn.kernel"])
    constants["rnn.recurrent.onnx"] = lstm_gates(constants["rnn.recurrent"])
    constants["rnn.bias.onnx"] = lstm_biases(constants["rnn.bias"])
    add(
        "LSTM",
        ["own.by_time", "rnn.kernel.onnx", "rnn.recurrent.onnx", "rnn.bias.onnx"],
        "own.states",
        hidden_size=4,
    )
    constants["own.direction"] = np.array([1], np.int64)
    add("Squeeze", ["own.states", "own.direction"], "own.one")
    add("Transpose", ["own.one"], "own", perm=[1, 0, 2])
    add("Transpose", ["own"], "bare.by_time", perm=[1, 0, 2])
    constants["bare.weight_ih_l0.onnx"] = lstm_gates(constants["bare.weight_ih_l0"])
    constants["bare.weight_hh_l0.onnx"] = lstm_gates(constants["bare.weight_hh_l0"])
    add(
        "LSTM",
        ["bare.by_time", "bare.weight_ih_l0.onnx", "bare.weight_hh_l0.onnx"],
        "bare.states",
        hidden_size=4,
    )
    add("Squeeze", ["bare.states", "own.direction"], "bare.one")
    add("Transpose", ["bare.one"], "bare", perm=[1, 0, 2])
    add("Transpose", ["bare"], "full.by_time", perm=[1, 0, 2])
    constants["deep.full.weight_ih_l0.onnx"] = lstm_gates(
        constants["deep.full.weight_ih_l0"]
    )
    constants["deep.full.weight_hh_l0.onnx"] = lstm_gates(
        constants["deep.full.weight_hh_l0"]
    )
    constants["deep.full.bias_ih_l0.onnx"] = lstm_biases(
        constants["deep.full.bias_ih_l0"]
    )
    add(
        "LSTM",
        [
            "full.by_time",
            "deep.full.weight_ih_l0.onnx",
            "deep.full.weight_hh_l0.onnx",
            "deep.full.bias_ih_l0.onnx",
        ],
        "full.states",
        hidden_size=4,
    )
    add("Squeeze", ["full.states", "own.direction"], "full.one")
    add("Transpose", ["full.one"], "full", perm=[1, 0, 2])
    constants["q.shape"] = np.array([-1, 6, 2, 2], np.int64)
    add("Reshape", ["full", "q.shape"], "q")
    add("Transpose", ["q"], "a1.q", perm=[0, 2, 1, 3])
    add("Transpose", ["q"], "a1.k", perm=[0, 2, 3, 1])
    add("Transpose", ["q"], "a1.v", perm=[0, 2, 1, 3])
    add("MatMul", ["a1.q", "a1.k"], "a1.product")
    constants["a1.scale"] = np.array(2**-0.5, real)
    add("Mul", ["a1.product", "a1.scale"], "a1.scores")
    constants["a1.causal"] = causal_mask(6, 0, real)
    add("Add", ["a1.scores", "a1.causal"], "a1.causal_scores")
    constants["a1.axes"] = np.array([1, 2, 3], np.int64)
    add("Unsqueeze", ["last", "a1.axes"], "a1.last")
    constants["a1.places"] = np.arange(6, dtype=np.int32)
    add("LessOrEqual", ["a1.places", "a1.last"], "a1.seen")
    constants["a1.never"] = np.array(-np.inf, real)
    add("Where", ["a1.seen", "a1.causal_scores", "a1.never"], "a1.seen_scores")
    add("Softmax", ["a1.seen_scores"], "a1.weights")
    add("MatMul", ["a1.weights", "a1.v"], "a1.mixed")
    add("Transpose", ["a1.mixed"], "a1", perm=[0, 2, 1, 3])
    add("Transpose", ["a1"], "a2.q", perm=[0, 2, 1, 3])
    add("Transpose", ["q"], "a2.k", perm=[0, 2, 3, 1])
    add("Transpose", ["a1"], "a2.v", perm=[0, 2, 1, 3])
    add("MatMul", ["a2.q", "a2.k"], "a2.product")
    add("Mul", ["a2.product", "a1.scale"], "a2.scores")
    add("Add", ["a2.scores", "a1.causal"], "a2.causal_scores")
    add("Softmax", ["a2.causal_scores"], "a2.weights")
    add("MatMul", ["a2.weights", "a2.v"], "a2.mixed")
    add("Transpose", ["a2.mixed"], "a2", perm=[0, 2, 1, 3])
    add("Transpose", ["a2"], "a3.q", perm=[0, 2, 1, 3])
    add("Transpose", ["q"], "a3.k", perm=[0, 2, 3, 1])
    add("Transpose", ["q"], "a3.v", perm=[0, 2, 1, 3])
    add("MatMul", ["a3.q", "a3.k"], "a3.product")
    add("Mul", ["a3.product", "a1.scale"], "a3.scores")
    add("Unsqueeze", ["last", "a1.axes"], "a3.last")
    add("LessOrEqual", ["a1.places", "a3.last"], "a3.seen")
    add("Where", ["a3.seen", "a3.scores", "a1.never"], "a3.seen_scores")
    add("Softmax", ["a3.seen_scores"], "a3.weights")
    add("MatMul", ["a3.weights", "a3.v"], "a3.mixed")
    add("Transpose", ["a3.mixed"], "a3", perm=[0, 2, 1, 3])
    add("Transpose", ["a3"], "a4.q", perm=[0, 2, 1, 3])
    add("Transpose", ["q"], "a4.k", perm=[0, 2, 3, 1])
    add("Transpose", ["a3"], "a4.v", perm=[0, 2, 1, 3])
    add("MatMul", ["a4.q", "a4.k"], "a4.product")
    add("Mul", ["a4.product", "a1.scale"], "a4.scores")
    add("Unsqueeze", ["last", "a1.axes"], "a4.last")
    add("LessOrEqual", ["a1.places", "a4.last"], "a4.seen")
    add("Where", ["a4.seen", "a4.scores", "a1.never"], "a4.seen_scores")
    add("Softmax", ["a4.seen_scores"], "a4.weights")
    add("MatMul", ["a4.weights", "a4.v"], "a4.mixed")
    add("Transpose", ["a4.mixed"], "a4", perm=[0, 2, 1, 3])
    add("Transpose", ["a4"], "a5.q", perm=[0, 2, 1, 3])
    add("Transpose", ["a3"], "a5.k", perm=[0, 2, 3, 1])
    add("Transpose", ["q"], "a5.v", perm=[0, 2, 1, 3])
    add("MatMul", ["a5.q", "a5.k"], "a5.product")
    add("Mul", ["a5.product", "a1.scale"], "a5.scores")
    add("Softmax", ["a5.scores"], "a5.weights")
    add("MatMul", ["a5.weights", "a5.v"], "a5.mixed")
    add("Transpose", ["a5.mixed"], "a5", perm=[0, 2, 1, 3])
    add("Flatten", ["a5"], "f")
    add("Gemm", ["f", "head.weight", "head.bias"], "logits", transB=1)

    inputs = [
        value("x", real, ["N", 6, 4]),
        value("last", np.int32, ["N"]),
    ]
    output = value("logits", real, ["N", 3])
    read = {name for node in nodes for name in node.input}
    arrays = [(name, array) for name, array in constants.items() if name in read]
    initial = [numpy_helper.from_array(array, name) for name, array in arrays]
    graph = helper.make_graph(nodes, "sequences", inputs, [output], initial)
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def make_session(model, threads=0):
    """`threads`: 0 is one for each core."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    providers = [PROVIDER]
    return ort.InferenceSession(model.SerializeToString(), options, providers)


def predict_step(session, x, last):
    return session.run(["logits"], {"x": x, "last": last})[0]


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
