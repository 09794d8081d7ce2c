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


def half(array):
    """In bfloat16; its gradient comes back in float32."""
    return array.astype(jnp.bfloat16)


def in_float32(function, x, *arguments, **options):
    """What adds up many elements, here or for a gradient; x comes in half precision."""
    return half(function(x.astype(jnp.float32), *arguments, **options))


def linear(x, weight, bias):
    return half(x @ weight + bias)


def layer_norm(x, scale, shift, *, dims, eps):
    axes = tuple(range(x.ndim - dims, x.ndim))
    mean, var = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(var + eps) * scale + shift


def dropout(key, x, rate):
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def attention(q, k, v, last):
    """Products are in half precision, scores and softmax in float32."""
    scores = jnp.einsum("nthd,nshd->nhts", q, k).astype(jnp.float32)
    scores = scores * q.shape[-1] ** -0.5
    seen = jnp.arange(k.shape[1]) <= last[:, None, None, None]
    scores = jnp.where(seen, scores, -jnp.inf)
    return jnp.einsum("nhts,nshd->nthd", half(jax.nn.softmax(scores)), v)


def forward(params, tokens, token_types, last, key):
    keys = jax.random.split(key, 5)
    tokens = half(params["embeddings.word.weight"][tokens])
    token_types = half(params["embeddings.token_type.weight"][token_types])
    tokens = tokens + token_types
    tokens = in_float32(jnp.add, tokens, params["embeddings.position.weight"][:24])
    tokens = in_float32(
        layer_norm,
        tokens,
        params["embeddings.norm.weight"],
        params["embeddings.norm.bias"],
        dims=1,
        eps=1e-12,
    )
    tokens = dropout(keys[0], tokens, DROPOUT_RATE)
    h7 = linear(
        tokens,
        half(params["encoder.0.attention.query.weight"]),
        params["encoder.0.attention.query.bias"],
    )
    h7 = h7.reshape(h7.shape[0], 24, 4, 16)
    h9 = linear(
        tokens,
        half(params["encoder.0.attention.key.weight"]),
        params["encoder.0.attention.key.bias"],
    )
    h9 = h9.reshape(h9.shape[0], 24, 4, 16)
    h11 = linear(
        tokens,
        half(params["encoder.0.attention.value.weight"]),
        params["encoder.0.attention.value.bias"],
    )
    h11 = h11.reshape(h11.shape[0], 24, 4, 16)
    h11 = attention(h7, h9, h11, last)
    h11 = h11.reshape(h11.shape[0], 24, 64)
    h11 = linear(
        h11,
        half(params["encoder.0.attention.output.weight"]),
        params["encoder.0.attention.output.bias"],
    )
    h11 = dropout(keys[1], h11, DROPOUT_RATE)
    tokens = tokens + h11
    tokens = in_float32(
        layer_norm,
        tokens,
        params["encoder.0.attention.norm.weight"],
        params["encoder.0.attention.norm.bias"],
        dims=1,
        eps=1e-12,
    )
    h19 = linear(
        tokens,
        half(params["encoder.0.intermediate.weight"]),
        params["encoder.0.intermediate.bias"],
    )
    h19 = jax.nn.gelu(h19, approximate=False)
    h19 = linear(
        h19, half(params["encoder.0.output.weight"]), params["encoder.0.output.bias"]
    )
    h19 = dropout(keys[2], h19, DROPOUT_RATE)
    tokens = tokens + h19
    tokens = in_float32(
        layer_norm,
        tokens,
        params["encoder.0.norm.weight"],
        params["encoder.0.norm.bias"],
        dims=1,
        eps=1e-12,
    )
    h25 = linear(
        tokens,
        half(params["encoder.1.attention.query.weight"]),
        params["encoder.1.attention.query.bias"],
    )
    h25 = h25.reshape(h25.shape[0], 24, 4, 16)
    h27 = linear(
        tokens,
        half(params["encoder.1.attention.key.weight"]),
        params["encoder.1.attention.key.bias"],
    )
    h27 = h27.reshape(h27.shape[0], 24, 4, 16)
    h29 = linear(
        tokens,
        half(params["encoder.1.attention.value.weight"]),
        params["encoder.1.attention.value.bias"],
    )
    h29 = h29.reshape(h29.shape[0], 24, 4, 16)
    h25 = attention(h25, h27, h29, last)
    h25 = h25.reshape(h25.shape[0], 24, 64)
    h25 = linear(
        h25,
        half(params["encoder.1.attention.output.weight"]),
        params["encoder.1.attention.output.bias"],
    )
    h25 = dropout(keys[3], h25, DROPOUT_RATE)
    tokens = tokens + h25
    tokens = in_float32(
        layer_norm,
        tokens,
        params["encoder.1.attention.norm.weight"],
        params["encoder.1.attention.norm.bias"],
        dims=1,
        eps=1e-12,
    )
    h37 = linear(
        tokens,
        half(params["encoder.1.intermediate.weight"]),
        params["encoder.1.intermediate.bias"],
    )
    h37 = jax.nn.gelu(h37, approximate=False)
    h37 = linear(
        h37, half(params["encoder.1.output.weight"]), params["encoder.1.output.bias"]
    )
    h37 = dropout(keys[4], h37, DROPOUT_RATE)
    tokens = tokens + h37
    tokens = in_float32(
        layer_norm,
        tokens,
        params["encoder.1.norm.weight"],
        params["encoder.1.norm.bias"],
        dims=1,
        eps=1e-12,
    )
    tokens = linear(
        tokens, half(params["head.dense.weight"]), params["head.dense.bias"]
    )
    tokens = jax.nn.gelu(tokens, approximate=False)
    tokens = in_float32(
        layer_norm,
        tokens,
        params["head.norm.weight"],
        params["head.norm.bias"],
        dims=1,
        eps=1e-12,
    )
    logits = linear(
        tokens, half(params["embeddings.word.weight"]).T, params["decoder_bias"]
    )
    return logits.astype(jnp.float32)


def loss_fn(params, tokens, token_types, last, labels, key):
    logits = forward(params, tokens, token_types, last, key)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    loss = losses.mean()
    return loss


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
