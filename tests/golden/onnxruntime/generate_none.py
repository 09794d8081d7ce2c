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


def causal_mask(keys, window, real):
    """What is added to the scores: 0 where a query sees a key, else -inf; 0: no window."""
    seen = np.tri(keys, dtype=bool)
    if window:
        seen &= ~np.tri(keys, k=-window, dtype=bool)
    return np.where(seen, 0, -np.inf).astype(real)


class Decoder:
    """A session whose steps read the rows of words so far, and keep no more of them."""

    def __init__(self, session, rows):
        self.session = session
        self.words, self.positions = session.get_inputs()
        self.read = np.zeros((rows, self.words.shape[1]), np.int32)

    def step(self, words, first):
        """Logits of the word that follows `words`, the first of which is at `first`."""
        end = first + words.shape[1]
        self.read[:, first:end] = words
        last = np.arange(end - 1, end, dtype=np.int32)
        feed = {self.words.name: self.read, self.positions.name: last}
        return self.session.run(None, feed)[0][:, -1]


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
    add("Add", ["e", "places.weight"], "p")
    constants["attn.q.weight.T"] = np.transpose(constants["attn.q.weight"])
    add("MatMul", ["p", "attn.q.weight.T"], "q")
    constants["qs.shape"] = np.array([-1, 6, 2, 4], np.int64)
    add("Reshape", ["q", "qs.shape"], "qs")
    constants["attn.k.weight.T"] = np.transpose(constants["attn.k.weight"])
    add("MatMul", ["p", "attn.k.weight.T"], "k")
    constants["ks.shape"] = np.array([-1, 6, 1, 4], np.int64)
    add("Reshape", ["k", "ks.shape"], "ks")
    add("Transpose", ["qs"], "a.q", perm=[0, 2, 1, 3])
    constants["a.shared"] = np.arange(2) // 2
    add("Gather", ["ks", "a.shared"], "a.k_of_heads", axis=2)
    add("Transpose", ["a.k_of_heads"], "a.k", perm=[0, 2, 3, 1])
    add("Gather", ["ks", "a.shared"], "a.v_of_heads", axis=2)
    add("Transpose", ["a.v_of_heads"], "a.v", perm=[0, 2, 1, 3])
    add("MatMul", ["a.q", "a.k"], "a.product")
    constants["a.scale"] = np.array(4**-0.5, real)
    add("Mul", ["a.product", "a.scale"], "a.scores")
    constants["a.causal"] = causal_mask(6, 3, real)
    add("Add", ["a.scores", "a.causal"], "a.causal_scores")
    add("Softmax", ["a.causal_scores"], "a.weights")
    add("MatMul", ["a.weights", "a.v"], "a.mixed")
    add("Transpose", ["a.mixed"], "a", perm=[0, 2, 1, 3])
    constants["f.shape"] = np.array([-1, 6, 8], np.int64)
    add("Reshape", ["a", "f.shape"], "f")
    add("Add", ["p", "f"], "r")
    add("Gather", ["r", "positions"], "r_now", axis=1)
    constants["head.weight.T"] = np.transpose(constants["head.weight"])
    add("MatMul", ["r_now", "head.weight.T"], "head")

    inputs = [
        value("ids", np.int32, ["N", 6]),
        value("positions", np.int32, ["L"]),
    ]
    output = value("head", real, ["N", "L", 9])
    read = {name for node in nodes for name in node.input}
    arrays = [(name, array) for name, array in constants.items() if name in read]
    initial = [numpy_helper.from_array(array, name) for name, array in arrays]
    graph = helper.make_graph(nodes, "lm", inputs, [output], initial)
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
    return Decoder(session, BATCH_SIZE)


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
