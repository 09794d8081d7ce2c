"""Generates with lm in ONNX Runtime."""

import argparse
import itertools
from pathlib import Path

import numpy as np
import onnxruntime as ort
from onnx import helper, numpy_helper
from safetensors.numpy import load_file, save_file

BATCH_SIZE = 4
PROMPT = 2  # words of each row that are read first
WORDS = 3  # that are chosen in answer
OPSET = 21
PROVIDER = "CPUExecutionProvider"
DEVICE = "cpu"


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    ids = data["ids"].astype(np.int32)
    return (ids,)


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


def empty_cache(cache, rows, device):
    """Zeros for an input of the graph; no places where it grows."""
    sizes = [0 if isinstance(size, str) else size for size in cache.shape[1:]]
    real = np.float64 if cache.type == "tensor(double)" else np.float32
    zeros = np.zeros((rows, *sizes), real)
    # Memory of its own: ortvalue_from_numpy has the array's, which a binding does not keep.
    value = ort.OrtValue.ortvalue_from_shape_and_type(zeros.shape, real, device, 0)
    value.update_inplace(zeros)
    return value


class CachedDecoder:
    """A session with its caches; each step writes its keys and values where they lie."""

    def __init__(self, session, rows, device):
        self.session, self.binding = session, session.io_binding()
        self.words, self.positions, *pasts = session.get_inputs()
        self.logits = session.get_outputs()[0]
        for past in pasts:
            cache = empty_cache(past, rows, device)
            self.binding.bind_ortvalue_input(past.name, cache)
            self.binding.bind_ortvalue_output(past.name + ".next", cache)

    def step(self, words, first):
        """Logits of the word that follows `words`, the first of which is at `first`."""
        positions = np.arange(first, first + words.shape[1], dtype=np.int32)
        self.binding.bind_cpu_input(self.words.name, words)
        self.binding.bind_cpu_input(self.positions.name, positions)
        self.binding.bind_output(self.logits.name)
        self.session.run_with_iobinding(self.binding)
        return self.binding.get_outputs()[-1].numpy()[:, -1]


def build_model(weights, real=np.float32):
    """The graph with its weights; `real`: the type of floating-point numbers."""
    constants = {name: array.astype(real) for name, array in weights.items()}
    nodes = []

    def add(op, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], output, **attributes))

    def value(name, dtype, shape):
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return helper.make_tensor_value_info(name, kind, shape)

    add("Gather", ["embed.weight", "ids"], "e")
    constants["p_rows.shape"] = np.array([1, 6, 8], np.int64)
    add("Reshape", ["places.weight", "p_rows.shape"], "p_rows")
    add("Gather", ["p_rows", "positions"], "p_rows_now", axis=1)
    add("Add", ["e", "p_rows_now"], "p")
    constants["attn.q.weight.T"] = np.transpose(constants["attn.q.weight"])
    add("MatMul", ["p", "attn.q.weight.T"], "q")
    constants["qs.shape"] = np.array([0, -1, 2, 4], np.int64)
    add("Reshape", ["q", "qs.shape"], "qs")
    constants["attn.k.weight.T"] = np.transpose(constants["attn.k.weight"])
    add("MatMul", ["p", "attn.k.weight.T"], "k")
    constants["ks.shape"] = np.array([0, -1, 1, 4], np.int64)
    add("Reshape", ["k", "ks.shape"], "ks")
    add("Transpose", ["ks"], "a.k", perm=[0, 2, 1, 3])
    constants["a.four"] = np.array([1, 1, -1, 1], np.int64)
    add("Reshape", ["positions", "a.four"], "a.positions")
    add("Shape", ["a.k"], "a.sizes")
    add("Expand", ["a.positions", "a.sizes"], "a.places")
    add(
        "ScatterElements",
        ["attn.key_cache", "a.places", "a.k"],
        "attn.key_cache.next",
        axis=2,
    )
    add("Transpose", ["ks"], "a.v", perm=[0, 2, 1, 3])
    add(
        "ScatterElements",
        ["attn.value_cache", "a.places", "a.v"],
        "attn.value_cache.next",
        axis=2,
    )
    add("Transpose", ["qs"], "a.q", perm=[0, 2, 1, 3])
    constants["a.grouped"] = np.array([0, 1, -1, 4], np.int64)
    add("Reshape", ["a.q", "a.grouped"], "a.rows")
    add("Transpose", ["attn.key_cache.next"], "a.keys", perm=[0, 1, 3, 2])
    add("MatMul", ["a.rows", "a.keys"], "a.product")
    constants["a.scale"] = np.array(4**-0.5, real)
    add("Mul", ["a.product", "a.scale"], "a.scores")
    constants["a.all"] = np.arange(6, dtype=np.int32)
    constants["a.column"] = np.array([-1, 1], np.int64)
    add("Reshape", ["positions", "a.column"], "a.own")
    add("LessOrEqual", ["a.all", "a.own"], "a.seen")
    constants["a.window"] = np.array(3, np.int32)
    add("Sub", ["a.own", "a.window"], "a.before")
    add("Greater", ["a.all", "a.before"], "a.after")
    add("And", ["a.seen", "a.after"], "a.near")
    constants["a.zero"] = np.array(0, real)
    constants["a.never"] = np.array(-np.inf, real)
    add("Where", ["a.near", "a.zero", "a.never"], "a.bias")
    add("Concat", ["a.bias", "a.bias"], "a.biases", axis=0)
    add("Add", ["a.scores", "a.biases"], "a.seen_scores")
    add("Softmax", ["a.seen_scores"], "a.weights")
    add("MatMul", ["a.weights", "attn.value_cache.next"], "a.mixed")
    constants["a.each"] = np.array([0, 2, -1, 4], np.int64)
    add("Reshape", ["a.mixed", "a.each"], "a.heads")
    add("Transpose", ["a.heads"], "a", perm=[0, 2, 1, 3])
    constants["f.shape"] = np.array([0, -1, 8], np.int64)
    add("Reshape", ["a", "f.shape"], "f")
    add("Add", ["p", "f"], "r")
    constants["r_last.integers"] = np.array([-1], np.int64)
    constants["r_last.integers.2"] = np.array([9223372036854775807], np.int64)
    constants["r_last.integers.3"] = np.array([1], np.int64)
    add(
        "Slice",
        [
            "r",
            "r_last.integers",
            "r_last.integers.2",
            "r_last.integers.3",
            "r_last.integers.3",
        ],
        "r_last",
    )
    constants["head.weight.T"] = np.transpose(constants["head.weight"])
    add("MatMul", ["r_last", "head.weight.T"], "head")

    inputs = [
        value("ids", np.int32, ["N", "L"]),
        value("positions", np.int32, ["L"]),
        value("attn.key_cache", real, ["N", 1, 6, 4]),
        value("attn.value_cache", real, ["N", 1, 6, 4]),
    ]
    outputs = [
        value("head", real, ["N", 1, 9]),
        value("attn.key_cache.next", real, ["N", 1, 6, 4]),
        value("attn.value_cache.next", real, ["N", 1, 6, 4]),
    ]
    read = {name for node in nodes for name in node.input}
    arrays = [(name, array) for name, array in constants.items() if name in read]
    initial = [numpy_helper.from_array(array, name) for name, array in arrays]
    graph = helper.make_graph(nodes, "lm", inputs, outputs, initial)
    opset = helper.make_opsetid("", OPSET)
    return helper.make_model(graph, opset_imports=[opset], ir_version=10)


def make_session(model, threads=0):
    """`threads`: 0 is one for each core."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.intra_op_num_threads = threads
    providers = [PROVIDER]
    return ort.InferenceSession(model.SerializeToString(), options, providers)


def make_decoder(session):
    return CachedDecoder(session, BATCH_SIZE, DEVICE)


def likeliest(logits):
    return logits.argmax(-1).astype(np.int32)


def generate(decoder, rows, choose=likeliest):
    """WORDS words in answer to the first PROMPT of each row, one after the other."""
    words, first = rows[:, :PROMPT], 0
    for _ in range(WORDS):
        logits = decoder.step(words, first)
        first += words.shape[1]
        words = choose(logits)[:, None]
        yield words


def predict_step(decoder, rows):
    parts = list(generate(decoder, rows))
    return np.concatenate(parts, axis=1)


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    args = parser.parse_args()

    session = make_session(build_model(load_weights(args.weights)))
    decoder = make_decoder(session)
    arrays = load_data(args.data)
    data = batches(arrays)
    steps = len(arrays[0]) // BATCH_SIZE if args.out else args.steps
    outputs = []
    for step in range(steps):
        output = predict_step(decoder, *next(data))
        if step % 10 == 0:
            print(f"batch {step}: first answer {output[0].tolist()}")
        if args.out:
            outputs.append(np.asarray(output))
    if args.out:
        save_file({"words": np.concatenate(outputs)}, args.out)


if __name__ == "__main__":
    main()
