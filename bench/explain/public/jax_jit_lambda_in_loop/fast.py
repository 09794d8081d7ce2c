"""Digit-like classification with a two layer net and a cosine learning rate."""
import math
import time

import jax
import jax.numpy as jnp
import numpy as np

STEPS = 70
BATCH = 128
BASE_LR = 0.1

rng = np.random.default_rng(0)
images = rng.normal(size=(8192, 256)).astype(np.float32)
true_w = rng.normal(size=(256, 10)).astype(np.float32)
labels = np.argmax(images @ true_w, axis=1)


def init_params(seed):
    k1, k2, k3 = jax.random.split(jax.random.PRNGKey(seed), 3)
    return {
        "w1": jax.random.normal(k1, (256, 256)) * 0.06,
        "b1": jnp.zeros(256),
        "w2": jax.random.normal(k2, (256, 128)) * 0.06,
        "b2": jnp.zeros(128),
        "w3": jax.random.normal(k3, (128, 10)) * 0.09,
        "b3": jnp.zeros(10),
    }


def loss_fn(params, x, y):
    h = jax.nn.gelu(x @ params["w1"] + params["b1"])
    h = jax.nn.gelu(h @ params["w2"] + params["b2"])
    logits = h @ params["w3"] + params["b3"]
    logp = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(logp, y[:, None], axis=1))


def sgd_step(params, x, y, lr):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    params = jax.tree_util.tree_map(lambda p, g: p - lr * g, params, grads)
    return params, loss


params = init_params(0)
update = jax.jit(sgd_step)
start = time.time()
for step in range(STEPS):
    idx = rng.integers(0, len(images), size=BATCH)
    lr = BASE_LR * 0.5 * (1.0 + math.cos(math.pi * step / STEPS))
    params, loss = update(params, images[idx], labels[idx], lr)
    if step % 10 == 0:
        print(f"step {step:4d}  loss {float(loss):.4f}  {time.time() - start:.1f}s")
print("final loss", float(loss))
