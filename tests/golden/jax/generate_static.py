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


def cached_attention(q, k, v, positions, cache, keys, values, *, window=0):
    """k and v join the cache at their positions; then a query sees it up to its own."""
    for name, new in ((keys, k), (values, v)):
        start = positions[0]
        cache[name] = lax.dynamic_update_slice_in_dim(cache[name], new, start, axis=1)
    k, v = cache[keys], cache[values]
    grouped = q.reshape(*q.shape[:2], k.shape[2], -1, q.shape[3])
    scores = jnp.einsum("ntgrd,nsgd->ngrts", grouped, k) * q.shape[-1] ** -0.5
    places, positions = jnp.arange(k.shape[1]), positions[:, None]
    seen = places <= positions
    if window:
        seen &= places > positions - window
    scores = jnp.where(seen, scores, -jnp.inf)
    x = jnp.einsum("ngrts,nsgd->ntgrd", jax.nn.softmax(scores), v)
    return x.reshape(q.shape)


def attn(params, cache, prefix, x, positions):
    q = x @ params[f"{prefix}.q.weight"]
    q = q.reshape(*q.shape[:2], 2, 4)
    x = x @ params[f"{prefix}.k.weight"]
    x = x.reshape(*x.shape[:2], 1, 4)
    return cached_attention(
        q,
        x,
        x,
        positions,
        cache,
        f"{prefix}.key_cache",
        f"{prefix}.value_cache",
        window=3,
    )


def forward(params, cache, ids, positions):
    """The prediction and the new cache."""
    cache = dict(cache)
    e = params["embed.weight"][ids]
    p_rows = params["places.weight"].reshape(-1, 6, 8)
    p_rows_now = jnp.take(p_rows, positions, axis=1)
    p = e + p_rows_now
    a = attn(params, cache, "attn", p, positions)
    f = a.reshape(*a.shape[:2], 8)
    r = p + f
    r_last = r[:, -1:]
    head = r_last @ params["head.weight"]
    return head, cache


def init_params(weights):
    return {name: jnp.array(value) for name, value in weights.items()}


def empty_cache():
    """Zeros for the keys and values of all places."""
    return {
        "attn.key_cache": jnp.zeros((BATCH_SIZE, 6, 1, 4)),
        "attn.value_cache": jnp.zeros((BATCH_SIZE, 6, 1, 4)),
    }


@partial(jax.jit, donate_argnums=1)
def decode_step(params, cache, words, first):
    """Logits of the word that follows `words`, which begin at `first`; the cache."""
    positions = first + jnp.arange(words.shape[1])
    logits, cache = forward(params, cache, words, positions)
    return logits[:, -1], cache


def likeliest(logits):
    return logits.argmax(-1)


def generate(params, rows, choose=likeliest):
    """WORDS words in answer to the first PROMPT of each row, one after the other."""
    cache = empty_cache()
    words, first = rows[:, :PROMPT], 0
    for _ in range(WORDS):
        logits, cache = decode_step(params, cache, words, first)
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
