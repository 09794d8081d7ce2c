"""Levenberg-Marquardt fit of three Voigt-like lines plus background, one spectrum per fit."""
import time

import jax
import jax.numpy as jnp
import numpy as np

POINTS, LINES, SPECTRA, ITERS = 900, 3, 15, 8
rng = np.random.default_rng(0)
energy = jnp.linspace(0.0, 10.0, POINTS)


def model(p):
    pos, width, height, mix = p[:12].reshape(4, LINES)
    background = p[12] + p[13] * energy + p[14] * energy ** 2
    d = (energy[:, None] - pos) / width
    shape = mix * jnp.exp(-0.5 * d ** 2) + (1 - mix) / (1 + d ** 2)
    ideal = background + shape @ height
    # detector response: convolve with an exponential tail
    tail = jnp.exp(-jnp.arange(40) / (1.0 + p[15] ** 2))
    return jnp.convolve(ideal, tail / tail.sum(), mode="full")[:POINTS]


def residuals(p, counts):
    return (model(p) - counts) / jnp.sqrt(jnp.abs(counts) + 1.0)


@jax.jit
def lm_step(p, lam, counts):
    r = residuals(p, counts)
    J = jax.jacrev(residuals)(p, counts)
    A = J.T @ J
    step = jnp.linalg.solve(A + lam * jnp.diag(jnp.diag(A) + 1e-6), J.T @ r)
    new = p - step
    better = jnp.sum(residuals(new, counts) ** 2) < jnp.sum(r ** 2)
    return jnp.where(better, new, p), jnp.where(better, lam / 3, lam * 4)


true = jnp.array([2.5, 5.0, 7.5, 0.3, 0.4, 0.5, 50., 80., 40.,
                  0.5, 0.4, 0.6, 10., 0.5, -0.02, 1.5])
start = time.time()
for s in range(SPECTRA):
    clean = np.asarray(model(true))
    counts = jnp.asarray(rng.poisson(np.maximum(clean, 0)), jnp.float32)
    p = true * (1 + 0.05 * jnp.asarray(rng.standard_normal(16), jnp.float32))
    lam = jnp.float32(1e-2)
    for _ in range(ITERS):
        p, lam = lm_step(p, lam, counts)
    chi2 = float(jnp.sum(residuals(p, counts) ** 2) / (POINTS - 16))
    print(f"spectrum {s + 1}/{SPECTRA} chi2/dof {chi2:.3f} "
          f"{(time.time() - start) / ((s + 1) * ITERS) * 1e3:.1f} ms/iteration", flush=True)
print(f"total {time.time() - start:.1f} s")
