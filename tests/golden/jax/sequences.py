"""Trains sequences with JAX and optax."""

import argparse
import itertools
import json
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from safetensors.numpy import load_file

BATCH_SIZE = 1000
LEARNING_RATE = 0.001

# No TF32 or bfloat16 passes inside float32 matrix products and convolutions.
jax.config.update("jax_default_matmul_precision", "highest")


def load_data(path):
    """The inputs as numpy arrays."""
    data = load_file(path)
    x = data["x"].astype(np.float32)
    last = data["last"].astype(np.int32)
    y = data["y"].astype(np.int32)
    return x, last, y


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


def linear(x, weight, bias):
    return x @ weight + bias


def attention(q, k, v, last=None, *, causal=False):
    """As jax.nn.dot_product_attention, whose softmax is float32 even for float64."""
    scores = jnp.einsum("nthd,nshd->nhts", q, k) * q.shape[-1] ** -0.5
    if causal:
        seen = jnp.tri(q.shape[1], dtype=bool)
        scores = jnp.where(seen, scores, -jnp.inf)
    if last is not None:
        seen = jnp.arange(k.shape[1]) <= last[:, None, None, None]
        scores = jnp.where(seen, scores, -jnp.inf)
    weights = jax.nn.softmax(scores)
    return jnp.einsum("nhts,nshd->nthd", weights, v)


def lstm(x, weight_ih, weight_hh, bias=0.0):
    """The whole sequence from a zero state; the gates are i, f, g, o."""

    def step(state, gates):
        h, c = state
        i, f, g, o = jnp.split(gates + h @ weight_hh, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    gates = x @ weight_ih + bias
    zeros = jnp.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    _, h = lax.scan(step, (zeros, zeros), jnp.swapaxes(gates, 0, 1))
    return jnp.swapaxes(h, 0, 1)


def forward(params, x, last):
    placed = x + params["place.weight"][:6]
    own = lstm(
        placed, params["rnn.kernel"], params["rnn.recurrent"], params["rnn.bias"]
    )
    bare = lstm(own, params["bare.weight_ih_l0"], params["bare.weight_hh_l0"])
    full = lstm(
        bare,
        params["deep.full.weight_ih_l0"],
        params["deep.full.weight_hh_l0"],
        params["deep.full.bias_ih_l0"],
    )
    q = full.reshape(*full.shape[:2], 2, 2)
    a1 = attention(q, q, q, last, causal=True)
    a2 = attention(a1, q, a1, causal=True)
    a3 = attention(a2, q, q, last)
    a4 = attention(a3, q, a3, last)
    a5 = attention(a4, a3, q)
    f = a5.reshape(a5.shape[0], 24)
    return linear(f, params["head.weight"], params["head.bias"])


def loss_fn(params, x, last, y):
    logits = forward(params, x, last)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)
    return losses.mean()


def make_optimizer():
    return optax.adam(LEARNING_RATE, b1=0.9, b2=0.999, eps=1e-8)


OPTIMIZER = make_optimizer()


def init_params(weights):
    return {name: jnp.array(value) for name, value in weights.items()}


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, x, last, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, last, y)
    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def main():
    here = Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default=here / "data.safetensors")
    parser.add_argument("--weights", default=here / "weights.safetensors")
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()

    params = init_params(load_weights(args.weights))
    opt_state = OPTIMIZER.init(params)
    data = batches(load_data(args.data))
    for step in range(args.steps):
        params, opt_state, loss = train_step(params, opt_state, *next(data))
        if step % 10 == 0:
            print(f"step {step}: loss {loss:.6f}")


if __name__ == "__main__":
    main()
