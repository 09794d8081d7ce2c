"""Forward model of a stellar spectrum: sum of Voigt lines, marched through atmosphere layers."""
import time

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import wofz

LINES = 60
GRID = 300
LAYERS = 8
SPECTRA = 72


def voigt_host(x, gamma):
    z = np.asarray(x) + 1j * np.asarray(gamma)
    return wofz(z).real.astype(np.float32)


def voigt(x, gamma):
    """Profile of one line on the wavelength grid; scipy has the Faddeeva function."""
    shape = jax.ShapeDtypeStruct(x.shape, jnp.float32)
    gamma = jnp.broadcast_to(gamma, x.shape)
    return jax.pure_callback(voigt_host, shape, x, gamma, vmap_method="sequential")


def line_opacity(grid, center, strength, width, gamma):
    return strength * voigt((grid - center) / width, gamma)


@jax.jit
def synthesize(grid, lines, temperature):
    def through_layer(flux, depth):
        local_t = temperature * (0.7 + 0.5 * depth)
        width = 0.02 * jnp.sqrt(local_t)
        gamma = lines["gamma"] * (1.0 + depth)
        strength = lines["strength"] * jnp.exp(-lines["energy"] / local_t)
        opacity = jax.vmap(line_opacity, in_axes=(None, 0, 0, None, 0))(
            grid, lines["center"], strength, width, gamma)
        tau = jnp.sum(opacity, axis=0) / LAYERS
        source = 1.0 / (jnp.exp(1.5 / local_t) - 1.0)
        flux = flux * jnp.exp(-tau) + source * (1.0 - jnp.exp(-tau))
        return flux, tau.mean()

    depths = jnp.linspace(1.0, 0.0, LAYERS)
    return jax.lax.scan(through_layer, jnp.ones_like(grid), depths)


rng = np.random.default_rng(0)
grid = jnp.linspace(0.0, 10.0, GRID)
lines = {"center": jnp.asarray(rng.uniform(0, 10, LINES), jnp.float32),
         "strength": jnp.asarray(rng.exponential(1.0, LINES), jnp.float32),
         "gamma": jnp.asarray(rng.uniform(0.05, 0.6, LINES), jnp.float32),
         "energy": jnp.asarray(rng.uniform(0.1, 2.0, LINES), jnp.float32)}

began = time.time()
table = []
for n, temperature in enumerate(np.linspace(0.6, 1.6, SPECTRA).astype(np.float32)):
    flux, tau = synthesize(grid, lines, temperature)
    table.append(np.asarray(flux))
    if n % 5 == 0:
        print(f"spectrum {n:3d} T {temperature:.2f} mean flux {float(flux.mean()):.5f} "
              f"min {float(flux.min()):.5f} [{time.time() - began:.1f}s]")
print("table", np.stack(table).shape, "mean", float(np.mean(table)))
