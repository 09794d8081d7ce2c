"""Train a Lipschitz-regularised MLP critic: hinge loss + penalty on the spectral norm of every layer."""
import time

import jax
import jax.numpy as jnp
import numpy as np

SIZES = [64, 128, 128, 1]
BATCH = 1024
STEPS = 800
LR = 1e-3
PENALTY = 0.02


def make_data(n=20000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, SIZES[0])).astype(np.float32)
    w = rng.normal(size=(SIZES[0], 8)).astype(np.float32) / 8
    y = np.sign(np.sin(x @ w).sum(1)).astype(np.float32)
    return x, y


def init_params(key):
    params = []
    for i, o in zip(SIZES[:-1], SIZES[1:]):
        key, sub = jax.random.split(key)
        params.append((jax.random.normal(sub, (i, o)) * np.sqrt(2.0 / i), jnp.zeros(o)))
    return params


def forward(params, x):
    for w, b in params[:-1]:
        x = jax.nn.relu(x @ w + b)
    w, b = params[-1]
    return (x @ w + b)[:, 0]


def layer_norm2(w):
    return jnp.linalg.norm(w, ord=2)


def lipschitz_bound(params):
    return sum(jnp.log(layer_norm2(w)) for w, _ in params)


def loss_fn(params, x, y):
    out = forward(params, x)
    hinge = jnp.maximum(0.0, 1.0 - y * out).mean()
    return hinge + PENALTY * lipschitz_bound(params), hinge


def adam_init(params):
    zeros = jax.tree_util.tree_map(jnp.zeros_like, params)
    return zeros, zeros


@jax.jit
def train_step(params, opt, step, x, y):
    (loss, hinge), grads = jax.value_and_grad(loss_fn, has_aux=True)(params, x, y)
    m, v = opt
    tm = jax.tree_util.tree_map
    m = tm(lambda a, g: 0.9 * a + 0.1 * g, m, grads)
    v = tm(lambda a, g: 0.999 * a + 0.001 * g * g, v, grads)
    c1, c2 = 1 - 0.9 ** step, 1 - 0.999 ** step
    params = tm(lambda p, a, b: p - LR * (a / c1) / (jnp.sqrt(b / c2) + 1e-8), params, m, v)
    return params, (m, v), loss, hinge


@jax.jit
def accuracy(params, x, y):
    return (jnp.sign(forward(params, x)) == y).mean()


def main():
    x, y = make_data()
    xt, yt = x[18000:], y[18000:]
    params = init_params(jax.random.PRNGKey(0))
    opt = adam_init(params)
    rng = np.random.default_rng(1)
    t0 = time.time()
    for step in range(1, STEPS + 1):
        idx = rng.integers(0, 18000, BATCH)
        params, opt, loss, hinge = train_step(params, opt, float(step), x[idx], y[idx])
        if step % 100 == 0:
            acc = accuracy(params, xt, yt)
            print(f"step {step} loss {loss:.4f} hinge {hinge:.4f} acc {acc:.3f} ({time.time() - t0:.1f}s)", flush=True)


if __name__ == "__main__":
    main()
