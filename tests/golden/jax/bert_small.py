"""Trains bert_small with JAX and optax."""

import argparse
import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001
DROPOUT_RATE = 0.1
SEED = 1

# No TF32 or bfloat16 passes inside float32 matrix products and convolutions.
jax.config.update("jax_default_matmul_precision", "highest")


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    tokens = data["tokens"].astype(np.int32)
    token_types = data["token_types"].astype(np.int32)
    last = data["last"].astype(np.int32)
    labels = data["labels"].astype(np.int32)
    return tokens, token_types, last, labels


def load_weights(path):
    """Initial weights (kernels O, I, H, W; linear O, I) as this script stores them."""
    layout_file = Path(__file__).with_name("train_jax.layout.json")
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


def linear(x, weight, bias):
    return x @ weight + bias


def layer_norm(x, scale, shift, *, dims, eps):
    axes = tuple(range(x.ndim - dims, x.ndim))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(var + eps) * scale + shift


def dropout(key, x, rate):
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def attention(q, k, v, last):
    """As jax.nn.dot_product_attention, whose softmax is float32 even for float64."""
    scores = jnp.einsum("nthd,nshd->nhts", q, k) * q.shape[-1] ** -0.5
    seen = jnp.arange(k.shape[1]) <= last[:, None, None, None]
    scores = jnp.where(seen, scores, -jnp.inf)
    weights = jax.nn.softmax(scores)
    return jnp.einsum("nhts,nshd->nthd", weights, v)


def attention_block(params, x, last, keys):
    q = linear(x, params["query.weight"], params["query.bias"])
    q = q.reshape(*q.shape[:2], 4, 16)
    k = linear(x, params["key.weight"], params["key.bias"])
    k = k.reshape(*k.shape[:2], 4, 16)
    v = linear(x, params["value.weight"], params["value.bias"])
    v = v.reshape(*v.shape[:2], 4, 16)
    h = attention(q, k, v, last)
    h = h.reshape(*h.shape[:2], 64)
    h = linear(h, params["output.weight"], params["output.bias"])
    h = dropout(keys[0], h, DROPOUT_RATE)
    x = x + h
    return layer_norm(x, params["norm.weight"], params["norm.bias"], dims=1, eps=1e-12)


def encoder_block(params, x, last, keys):
    x = attention_block(below(params, "attention"), x, last, keys)
    h = linear(x, params["intermediate.weight"], params["intermediate.bias"])
    h = jax.nn.gelu(h, approximate=False)
    h = linear(h, params["output.weight"], params["output.bias"])
    h = dropout(keys[1], h, DROPOUT_RATE)
    x = x + h
    return layer_norm(x, params["norm.weight"], params["norm.bias"], dims=1, eps=1e-12)


def head(params, x):
    x = linear(x, params["dense.weight"], params["dense.bias"])
    x = jax.nn.gelu(x, approximate=False)
    return layer_norm(x, params["norm.weight"], params["norm.bias"], dims=1, eps=1e-12)


def forward(params, tokens, token_types, last, key):
    keys = jax.random.split(key, 5)
    x = params["embeddings.word.weight"][tokens]
    h = params["embeddings.token_type.weight"][token_types]
    x = x + h
    x = x + params["embeddings.position.weight"][:24]
    x = layer_norm(
        x,
        params["embeddings.norm.weight"],
        params["embeddings.norm.bias"],
        dims=1,
        eps=1e-12,
    )
    x = dropout(keys[0], x, DROPOUT_RATE)
    for i in range(2):
        x = encoder_block(below(params, f"encoder.{i}"), x, last, keys[1 + 2 * i :])
    x = head(below(params, "head"), x)
    return linear(x, params["embeddings.word.weight"].T, params["decoder_bias"])


def loss_fn(params, tokens, token_types, last, labels, key):
    logits = forward(params, tokens, token_types, last, key)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return losses.mean()


def make_optimizer():
    return optax.adam(LEARNING_RATE, b1=0.9, b2=0.999, eps=1e-8)


OPTIMIZER = make_optimizer()


class TrainState(NamedTuple):
    params: Any
    opt_state: Any
    key: Any


def init_state(weights):
    params = {name: jnp.array(value) for name, value in weights.items()}
    key = jax.random.key(SEED)
    return TrainState(params, OPTIMIZER.init(params), key)


@partial(jax.jit, donate_argnums=0)
def train_step(state, tokens, token_types, last, labels):
    key, dropout_key = jax.random.split(state.key)
    grad_fn = jax.value_and_grad(loss_fn)
    loss, grads = grad_fn(state.params, tokens, token_types, last, labels, dropout_key)
    updates, opt_state = OPTIMIZER.update(grads, state.opt_state, state.params)
    params = optax.apply_updates(state.params, updates)
    return TrainState(params, opt_state, key), loss


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    state = init_state(load_weights(args.weights))
    data = batches(load_data(args.data))
    for step in range(args.steps):
        state, loss = train_step(state, *next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.6f}")


if __name__ == "__main__":
    main()
