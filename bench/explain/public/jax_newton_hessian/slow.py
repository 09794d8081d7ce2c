"""Newton-CG fit of a small network to noisy measurements."""
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

HIDDEN = 16
ITERATIONS = 100
CG_STEPS = 12
DAMPING = 0.1

rng = np.random.default_rng(0)
x = jnp.asarray(rng.uniform(-2, 2, size=(300, 6)).astype(np.float32))
target = jnp.sin(x[:, 0] * x[:, 1]) + 0.5 * jnp.cos(2 * x[:, 2]) + 0.1 * x[:, 3]
y = target + 0.05 * jnp.asarray(rng.normal(size=300).astype(np.float32))


def init(seed):
    local = np.random.default_rng(seed)
    sizes = [6, HIDDEN, HIDDEN, 1]
    return [(jnp.asarray(local.normal(size=(a, b)).astype(np.float32) / np.sqrt(a)),
             jnp.zeros(b)) for a, b in zip(sizes[:-1], sizes[1:])]


theta, unravel = ravel_pytree(init(0))


def loss(theta):
    h = x
    layers = unravel(theta)
    for w, b in layers[:-1]:
        h = jnp.tanh(h @ w + b)
    w, b = layers[-1]
    return jnp.mean(((h @ w + b)[:, 0] - y) ** 2) + 1e-4 * jnp.sum(theta ** 2)


def hessian_times(theta, v):
    return jax.hessian(loss)(theta) @ v


@jax.jit
def newton_iteration(theta):
    value, grad = jax.value_and_grad(loss)(theta)

    def cg_step(carry, _):
        d, r, p, rr = carry
        hp = hessian_times(theta, p) + DAMPING * p
        curvature = p @ hp
        alpha = jnp.where(curvature > 0, rr / curvature, 0.0)
        d = d + alpha * p
        r = r - alpha * hp
        rr_new = r @ r
        p = jnp.where(curvature > 0, r + rr_new / rr * p, p)
        return (d, r, p, rr_new), None

    start = (jnp.zeros_like(theta), -grad, -grad, grad @ grad)
    (direction, _, _, _), _ = jax.lax.scan(cg_step, start, None, length=CG_STEPS)
    scales = 0.5 ** jnp.arange(8)
    values = jax.vmap(lambda s: loss(theta + s * direction))(scales)
    best = jnp.argmin(values)
    step = jnp.where(values[best] < value, scales[best], 0.0)
    return theta + step * direction, value, jnp.linalg.norm(grad)


print("parameters:", theta.size)
began = time.time()
for it in range(ITERATIONS):
    theta, value, gnorm = newton_iteration(theta)
    if it % 10 == 0:
        print(f"iteration {it:3d} loss {float(value):.5f} |g| {float(gnorm):.5f} "
              f"[{time.time() - began:.1f}s]")
print(f"final loss {float(loss(theta)):.5f}")
