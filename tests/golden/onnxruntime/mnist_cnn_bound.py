"""Predicts with mnist_cnn in ONNX Runtime."""

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
DEVICE = "cpu"


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    x = data["x"].astype(np.float32) / 255.0
    return (x,)


def load_weights(path):
    """Initial weights as numpy arrays."""
    return load_file(path)


def batches(arrays):
    """Endless batches on the device, in file order; rows left over are dropped."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    parts = [[a[i : i + BATCH_SIZE] for a in arrays] for i in starts]
    to_device = ort.OrtValue.ortvalue_from_numpy
    ready = [tuple(to_device(array, DEVICE, 0) for array in part) for part in parts]
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

    add("Conv", ["x", "conv1.weight", "conv1.bias"], "h1")
    add("Relu", ["h1"], "h2")
    add("Conv", ["h2", "conv2.weight", "conv2.bias"], "h3")
    add("Relu", ["h3"], "h4")
    add("MaxPool", ["h4"], "h5", kernel_shape=[2, 2], strides=[2, 2])
    add("Conv", ["h5", "conv3.weight", "conv3.bias"], "h6")
    add("Relu", ["h6"], "h7")
    add("Conv", ["h7", "conv4.weight", "conv4.bias"], "h8")
    add("Relu", ["h8"], "h9")
    add("Flatten", ["h9"], "h10")
    add("Gemm", ["h10", "fc1.weight", "fc1.bias"], "h11", transB=1)
    add("Relu", ["h11"], "h12")
    add("Gemm", ["h12", "fc2.weight", "fc2.bias"], "logits", transB=1)

    inputs = [
        value("x", real, ["N", 1, 28, 28]),
    ]
    output = value("logits", real, ["N", 10])
    read = {name for node in nodes for name in node.input}
    arrays = [(name, array) for name, array in constants.items() if name in read]
    initial = [numpy_helper.from_array(array, name) for name, array in arrays]
    graph = helper.make_graph(nodes, "mnist_cnn", inputs, [output], initial)
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def make_session(model, threads=0):
    """`threads`: 0 is one for each core."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    providers = [PROVIDER]
    return ort.InferenceSession(model.SerializeToString(), options, providers)


def predict_step(session, x):
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", x)
    binding.bind_output("logits", DEVICE)
    session.run_with_iobinding(binding)
    return binding.get_outputs()[0]


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
            print(f"batch {step}: mean output {output.numpy().mean():.6f}")
        if args.out:
            outputs.append(np.asarray(output.numpy(), np.float32))
    if args.out:
        save_file({"output": np.concatenate(outputs)}, args.out)


if __name__ == "__main__":
    main()
