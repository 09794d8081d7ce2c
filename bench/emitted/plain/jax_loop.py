"""What every plain script in JAX has: its data, its weights, the training step."""

# mypy: ignore-errors

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
from safetensors.numpy import load_file


def load_weights(path, native=lambda name, w: w.T if w.ndim == 2 else w):
    """Linear weights as inputs x outputs; the BatchNorms' statistics apart."""
    p = {name: jnp.array(native(name, w)) for name, w in load_file(path).items()}
    running = {name: p.pop(name) for name in list(p) if ".running_" in name}
    return p, running


def load_batches(path, names, size, change=None):
    """On the device, in the order of the file."""
    tensors = load_file(path)
    arrays = [np.asarray(tensors[name]) for name in names]
    if change:
        arrays = change(*arrays)
    starts = range(0, len(arrays[0]) - size + 1, size)
    return [tuple(jnp.array(a[i : i + size]) for a in arrays) for i in starts]


def pictures(x, y):
    return x.astype(np.float32).transpose(0, 2, 3, 1), y


def cross_entropy(logits, labels):
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def dropout(key, x, rate):
    keep = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jnp.where(keep, x / (1 - rate), 0)


def batch_norm(p, running, name, x, eps=1e-5, momentum=0.1):
    """Also the new running statistics, put into `running`."""
    axes = tuple(range(x.ndim - 1))
    mean, var = jnp.mean(x, axes), jnp.var(x, axes)
    for leaf, new in (("running_mean", mean), ("running_var", var)):
        old = running[f"{name}.{leaf}"]
        running[f"{name}.{leaf}"] = (1 - momentum) * old + momentum * new
    scale = p[name + ".weight"] * jax.lax.rsqrt(var + eps)
    return (x - mean) * scale + p[name + ".bias"]


def train_loop(bursts, loss_fn, optimizer, p, running, batches):
    """`loss_fn(p, running, key, *batch)` gives the loss and new statistics."""

    @partial(jax.jit, donate_argnums=(0, 1, 2, 3))
    def train_step(p, running, state, key, *batch):
        key, now = jax.random.split(key)
        grad_fn = jax.value_and_grad(loss_fn, has_aux=True)
        (loss, running), grads = grad_fn(p, running, now, *batch)
        updates, state = optimizer.update(grads, state, p)
        return optax.apply_updates(p, updates), running, state, key, loss

    state, key = optimizer.init(p), jax.random.key(1)
    step = 0
    for steps in bursts:
        for _ in range(steps):
            batch = batches[step % len(batches)]
            step += 1
            p, running, state, key, loss = train_step(p, running, state, key, *batch)
        jax.block_until_ready((p, running, state))
        bursts.done(float(loss))
