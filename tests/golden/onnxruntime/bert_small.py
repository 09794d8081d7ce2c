"""Predicts with bert_small in ONNX Runtime."""

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
    tokens = data["tokens"].astype(np.int32)
    token_types = data["token_types"].astype(np.int32)
    last = data["last"].astype(np.int32)
    return tokens, token_types, last


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

    add("Gather", ["embeddings.word.weight", "tokens"], "h1")
    add("Gather", ["embeddings.token_type.weight", "token_types"], "h2")
    add("Add", ["h1", "h2"], "h3")
    constants["embeddings.position.weight.first"] = constants[
        "embeddings.position.weight"
    ][:24]
    add("Add", ["h3", "embeddings.position.weight.first"], "h4")
    add(
        "LayerNormalization",
        ["h4", "embeddings.norm.weight", "embeddings.norm.bias"],
        "h5",
        axis=-1,
        epsilon=1e-12,
    )
    constants["encoder.0.attention.query.weight.T"] = np.transpose(
        constants["encoder.0.attention.query.weight"]
    )
    add("MatMul", ["h5", "encoder.0.attention.query.weight.T"], "h7.product")
    add("Add", ["h7.product", "encoder.0.attention.query.bias"], "h7")
    constants["h8.shape"] = np.array([-1, 24, 4, 16], np.int64)
    add("Reshape", ["h7", "h8.shape"], "h8")
    constants["encoder.0.attention.key.weight.T"] = np.transpose(
        constants["encoder.0.attention.key.weight"]
    )
    add("MatMul", ["h5", "encoder.0.attention.key.weight.T"], "h9.product")
    add("Add", ["h9.product", "encoder.0.attention.key.bias"], "h9")
    add("Reshape", ["h9", "h8.shape"], "h10")
    constants["encoder.0.attention.value.weight.T"] = np.transpose(
        constants["encoder.0.attention.value.weight"]
    )
    add("MatMul", ["h5", "encoder.0.attention.value.weight.T"], "h11.product")
    add("Add", ["h11.product", "encoder.0.attention.value.bias"], "h11")
    add("Reshape", ["h11", "h8.shape"], "h12")
    add("Transpose", ["h8"], "h13.q", perm=[0, 2, 1, 3])
    add("Transpose", ["h10"], "h13.k", perm=[0, 2, 3, 1])
    add("Transpose", ["h12"], "h13.v", perm=[0, 2, 1, 3])
    add("MatMul", ["h13.q", "h13.k"], "h13.product")
    constants["h13.scale"] = np.array(16**-0.5, real)
    add("Mul", ["h13.product", "h13.scale"], "h13.scores")
    constants["h13.axes"] = np.array([1, 2, 3], np.int64)
    add("Unsqueeze", ["last", "h13.axes"], "h13.last")
    constants["h13.places"] = np.arange(24, dtype=np.int32)
    add("LessOrEqual", ["h13.places", "h13.last"], "h13.seen")
    constants["h13.never"] = np.array(-np.inf, real)
    add("Where", ["h13.seen", "h13.scores", "h13.never"], "h13.seen_scores")
    add("Softmax", ["h13.seen_scores"], "h13.weights")
    add("MatMul", ["h13.weights", "h13.v"], "h13.mixed")
    add("Transpose", ["h13.mixed"], "h13", perm=[0, 2, 1, 3])
    constants["h14.shape"] = np.array([-1, 24, 64], np.int64)
    add("Reshape", ["h13", "h14.shape"], "h14")
    constants["encoder.0.attention.output.weight.T"] = np.transpose(
        constants["encoder.0.attention.output.weight"]
    )
    add("MatMul", ["h14", "encoder.0.attention.output.weight.T"], "h15.product")
    add("Add", ["h15.product", "encoder.0.attention.output.bias"], "h15")
    add("Add", ["h5", "h15"], "h17")
    add(
        "LayerNormalization",
        ["h17", "encoder.0.attention.norm.weight", "encoder.0.attention.norm.bias"],
        "h18",
        axis=-1,
        epsilon=1e-12,
    )
    constants["encoder.0.intermediate.weight.T"] = np.transpose(
        constants["encoder.0.intermediate.weight"]
    )
    add("MatMul", ["h18", "encoder.0.intermediate.weight.T"], "h19.product")
    add("Add", ["h19.product", "encoder.0.intermediate.bias"], "h19")
    add("Gelu", ["h19"], "h20")
    constants["encoder.0.output.weight.T"] = np.transpose(
        constants["encoder.0.output.weight"]
    )
    add("MatMul", ["h20", "encoder.0.output.weight.T"], "h21.product")
    add("Add", ["h21.product", "encoder.0.output.bias"], "h21")
    add("Add", ["h18", "h21"], "h23")
    add(
        "LayerNormalization",
        ["h23", "encoder.0.norm.weight", "encoder.0.norm.bias"],
        "h24",
        axis=-1,
        epsilon=1e-12,
    )
    constants["encoder.1.attention.query.weight.T"] = np.transpose(
        constants["encoder.1.attention.query.weight"]
    )
    add("MatMul", ["h24", "encoder.1.attention.query.weight.T"], "h25.product")
    add("Add", ["h25.product", "encoder.1.attention.query.bias"], "h25")
    add("Reshape", ["h25", "h8.shape"], "h26")
    constants["encoder.1.attention.key.weight.T"] = np.transpose(
        constants["encoder.1.attention.key.weight"]
    )
    add("MatMul", ["h24", "encoder.1.attention.key.weight.T"], "h27.product")
    add("Add", ["h27.product", "encoder.1.attention.key.bias"], "h27")
    add("Reshape", ["h27", "h8.shape"], "h28")
    constants["encoder.1.attention.value.weight.T"] = np.transpose(
        constants["encoder.1.attention.value.weight"]
    )
    add("MatMul", ["h24", "encoder.1.attention.value.weight.T"], "h29.product")
    add("Add", ["h29.product", "encoder.1.attention.value.bias"], "h29")
    add("Reshape", ["h29", "h8.shape"], "h30")
    add("Transpose", ["h26"], "h31.q", perm=[0, 2, 1, 3])
    add("Transpose", ["h28"], "h31.k", perm=[0, 2, 3, 1])
    add("Transpose", ["h30"], "h31.v", perm=[0, 2, 1, 3])
    add("MatMul", ["h31.q", "h31.k"], "h31.product")
    add("Mul", ["h31.product", "h13.scale"], "h31.scores")
    add("Unsqueeze", ["last", "h13.axes"], "h31.last")
    add("LessOrEqual", ["h13.places", "h31.last"], "h31.seen")
    add("Where", ["h31.seen", "h31.scores", "h13.never"], "h31.seen_scores")
    add("Softmax", ["h31.seen_scores"], "h31.weights")
    add("MatMul", ["h31.weights", "h31.v"], "h31.mixed")
    add("Transpose", ["h31.mixed"], "h31", perm=[0, 2, 1, 3])
    add("Reshape", ["h31", "h14.shape"], "h32")
    constants["encoder.1.attention.output.weight.T"] = np.transpose(
        constants["encoder.1.attention.output.weight"]
    )
    add("MatMul", ["h32", "encoder.1.attention.output.weight.T"], "h33.product")
    add("Add", ["h33.product", "encoder.1.attention.output.bias"], "h33")
    add("Add", ["h24", "h33"], "h35")
    add(
        "LayerNormalization",
        ["h35", "encoder.1.attention.norm.weight", "encoder.1.attention.norm.bias"],
        "h36",
        axis=-1,
        epsilon=1e-12,
    )
    constants["encoder.1.intermediate.weight.T"] = np.transpose(
        constants["encoder.1.intermediate.weight"]
    )
    add("MatMul", ["h36", "encoder.1.intermediate.weight.T"], "h37.product")
    add("Add", ["h37.product", "encoder.1.intermediate.bias"], "h37")
    add("Gelu", ["h37"], "h38")
    constants["encoder.1.output.weight.T"] = np.transpose(
        constants["encoder.1.output.weight"]
    )
    add("MatMul", ["h38", "encoder.1.output.weight.T"], "h39.product")
    add("Add", ["h39.product", "encoder.1.output.bias"], "h39")
    add("Add", ["h36", "h39"], "h41")
    add(
        "LayerNormalization",
        ["h41", "encoder.1.norm.weight", "encoder.1.norm.bias"],
        "h42",
        axis=-1,
        epsilon=1e-12,
    )
    constants["head.dense.weight.T"] = np.transpose(constants["head.dense.weight"])
    add("MatMul", ["h42", "head.dense.weight.T"], "h43.product")
    add("Add", ["h43.product", "head.dense.bias"], "h43")
    add("Gelu", ["h43"], "h44")
    add(
        "LayerNormalization",
        ["h44", "head.norm.weight", "head.norm.bias"],
        "h45",
        axis=-1,
        epsilon=1e-12,
    )
    constants["embeddings.word.weight.T"] = np.transpose(
        constants["embeddings.word.weight"]
    )
    add("MatMul", ["h45", "embeddings.word.weight.T"], "logits.product")
    add("Add", ["logits.product", "decoder_bias"], "logits")

    inputs = [
        value("tokens", np.int32, ["N", 24]),
        value("token_types", np.int32, ["N", 24]),
        value("last", np.int32, ["N"]),
    ]
    output = value("logits", real, ["N", 24, 500])
    read = {name for node in nodes for name in node.input}
    arrays = [(name, array) for name, array in constants.items() if name in read]
    initial = [numpy_helper.from_array(array, name) for name, array in arrays]
    graph = helper.make_graph(nodes, "bert_small", inputs, [output], initial)
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def make_session(model, threads=0):
    """`threads`: 0 is one for each core."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    providers = [PROVIDER]
    return ort.InferenceSession(model.SerializeToString(), options, providers)


def predict_step(session, tokens, token_types, last):
    feed = {"tokens": tokens, "token_types": token_types, "last": last}
    return session.run(["logits"], feed)[0]


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
