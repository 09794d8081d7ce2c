"""Trains speech with JAX and optax."""

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
    sound = data["sound"].astype(np.float32)
    words = data["words"].astype(np.int32)
    return sound, words


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


def gru(x, weight_ih, weight_hh, bias_ih, bias_hh):
    """The whole sequence from a zero state; the gates are r, z, n."""

    def step(h, gates):
        xr, xz, xn = jnp.split(gates, 3, axis=-1)
        hr, hz, hn = jnp.split(h @ weight_hh + bias_hh, 3, axis=-1)
        r, z = jax.nn.sigmoid(xr + hr), jax.nn.sigmoid(xz + hz)
        n = jnp.tanh(xn + r * hn)
        h = n + z * (h - n)
        return h, h

    gates = x @ weight_ih + bias_ih
    h = jnp.zeros((x.shape[0], weight_hh.shape[0]), x.dtype)
    _, h = lax.scan(step, h, jnp.swapaxes(gates, 0, 1))
    return jnp.swapaxes(h, 0, 1)


def forward(params, sound):
    h = gru(
        sound,
        params["rnn.weight_ih_l0"],
        params["rnn.weight_hh_l0"],
        params["rnn.bias_ih_l0"],
        params["rnn.bias_hh_l0"],
    )
    early = linear(sound, params["early.weight"], params["early.bias"])
    logits = linear(h, params["head.weight"], params["head.bias"])
    return logits, early


def loss_fn(params, sound, words):
    logits, early = forward(params, sound)
    losses = optax.ctc_loss(logits, jnp.zeros(logits.shape[:2]), words, words < 0)
    main_2 = losses.mean()
    losses = optax.ctc_loss(early, jnp.zeros(early.shape[:2]), words, words < 0)
    aux = losses.sum()
    return main_2 + 0.1 * aux


def make_optimizer():
    return optax.adam(LEARNING_RATE, b1=0.9, b2=0.999, eps=1e-8)


OPTIMIZER = make_optimizer()


def init_params(weights):
    return {name: jnp.array(value) for name, value in weights.items()}


@partial(jax.jit, donate_argnums=(0, 1))
def train_step(params, opt_state, sound, words):
    loss, grads = jax.value_and_grad(loss_fn)(params, sound, words)
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
