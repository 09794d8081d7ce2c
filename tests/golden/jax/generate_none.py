"""Generates with lm in JAX."""

import argparse
import itertools
import json
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from safetensors.numpy import load_file, save_file

BATCH_SIZE = 4
PROMPT = 2  # words of each row that are read first
WORDS = 3  # that are chosen in answer

# No TF32 or bfloat16 passes inside float32 matrix products and convolutions.
jax.config.update("jax_default_matmul_precision", "highest")


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    ids = data["ids"].astype(np.int32)
    return (ids,)


def load_weights(path):
    """Initial weights (kernels O, I, H, W; linear O, I) as this script stores them."""
    layout_file = Path(__file__).with_name("generate_jax.layout.json")
    layout = json.loads(layout_file.read_text())
    weights = {}
    for name, array in load_file(path).items():
        entry = layout.get(name, {"target": name})
        array = array.reshape(entry.get("view", array.shape))
        array = array.transpose(entry.get("perm", range(array.ndim)))
        array = array.reshape(entry.get("reshape", array.shape))
        weights[entry["target"]] = array
    return weights


def batches(arrays):
    """Endless batches on the device, in file order; rows left over are dropped."""
    if len(arrays[0]) < BATCH_SIZE:
        raise ValueError("the data has fewer rows than one batch")
    starts = range(0, len(arrays[0]) - BATCH_SIZE + 1, BATCH_SIZE)
    ready = [tuple(jnp.array(a[i : i + BATCH_SIZE]) for a in arrays) for i in starts]
    return itertools.cycle(ready)


def below(tree, path):
    """What stands below a path, by the rest of the names."""
    start = path + "."
    return {name[len(start) :]: x for name, x in tree.items() if name.startswith(start)}


def attention(q, k, v, *, causal=False, window=0):
    """As jax.nn.dot_product_attention, whose softmax is float32 even for float64."""
    scores = jnp.einsum("nthd,nshd->nhts", q, k) * q.shape[-1] ** -0.5
    if causal:
        seen = jnp.tri(q.shape[1], dtype=bool)
        if window:
            seen &= ~jnp.tri(q.shape[1], k=-window, dtype=bool)
        scores = jnp.where(seen, scores, -jnp.inf)
    weights = jax.nn.softmax(scores)
    return jnp.einsum("nhts,nshd->nthd", weights, v)


def grouped_attention(q, k, v, *, causal=False, window=0):
    """Neighbouring heads of q share a head of k and v, which are not copied."""

    def attend(heads):
        return attention(heads, k, v, causal=causal, window=window)

    shared = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[3])
    return jax.vmap(attend, in_axes=3, out_axes=3)(shared).reshape(q.shape)


def attn(params, x):
    q = x @ params["q.weight"]
    q = q.reshape(*q.shape[:2], 2, 4)
    x = x @ params["k.weight"]
    x = x.reshape(*x.shape[:2], 1, 4)
    return grouped_attention(q, x, x, causal=True, window=3)


def forward(params, ids, positions):
    e = params["embed.weight"][ids]
    p = e + params["places.weight"][:6]
    a = attn(below(params, "attn"), p)
    f = a.reshape(*a.shape[:2], 8)
    r = p + f
    r_now = jnp.take(r, positions, axis=1)
    return r_now @ params["head.weight"]


def init_params(weights):
    return {name: jnp.array(value) for name, value in weights.items()}


@partial(jax.jit, donate_argnums=1)
def decode_step(params, read, words, first):
    """Logits of the word that follows `words`, which join `read` at `first`; `read`."""
    words = words.astype(read.dtype)
    read = lax.dynamic_update_slice_in_dim(read, words, first, axis=1)
    positions = first + jnp.arange(words.shape[1])
    return forward(params, read, positions[-1:])[:, -1], read


def likeliest(logits):
    return logits.argmax(-1)


def generate(params, rows, choose=likeliest):
    """WORDS words in answer to the first PROMPT of each row, one after the other."""
    read = jnp.zeros_like(rows)
    words, first = rows[:, :PROMPT], 0
    for _ in range(WORDS):
        logits, read = decode_step(params, read, words, first)
        first += words.shape[1]
        words = choose(logits)[:, None]
        yield words


def predict_step(params, rows):
    parts = list(generate(params, rows))
    return jnp.concatenate(parts, axis=1)


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", help="saves what is predicted of each full batch")
    args = parser.parse_args()

    params = init_params(load_weights(args.weights))
    arrays = load_data(args.data)
    data = batches(arrays)
    steps = len(arrays[0]) // BATCH_SIZE if args.out else args.steps
    outputs = []
    for step in range(steps):
        output = predict_step(params, *next(data))
        if step % 10 == 0:
            print(f"batch {step}: first answer {output[0].tolist()}")
        if args.out:
            outputs.append(np.asarray(output))
    if args.out:
        save_file({"words": np.concatenate(outputs)}, args.out)


if __name__ == "__main__":
    main()
