"""What JAX's optimizers lack (emit/helpers.h)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

NO_DECAY = ()  # a script has its own


class ScaleByAdamState(NamedTuple):
    count: Any
    mu: Any
    nu: Any


def scale_by_adam_eps_hat(b1, b2, eps):
    """Adam with the "epsilon hat" of Kingma & Ba (2015), section 2, as Keras has it.

    optax.scale_by_adam divides by sqrt(v_hat) + eps. Here epsilon is added to the
    root of the uncorrected v: sqrt(1 - b2^t) / (1 - b1^t) * m / (sqrt(v) + eps).
    """

    def init(params):
        mu, nu = optax.tree.zeros_like(params), optax.tree.zeros_like(params)
        return ScaleByAdamState(jnp.zeros([], jnp.int32), mu, nu)

    def update(grads, state, params=None):
        count = state.count + 1
        mu = optax.tree.update_moment(grads, state.mu, b1, 1)
        nu = optax.tree.update_moment(grads, state.nu, b2, 2)
        scale = jnp.sqrt(1 - b2**count) / (1 - b1**count)
        updates = jax.tree.map(
            lambda m, v: (scale * m / (jnp.sqrt(v) + eps)).astype(m.dtype), mu, nu
        )
        return updates, ScaleByAdamState(count, mu, nu)

    return optax.GradientTransformation(init, update)


class AverageState(NamedTuple):
    count: Any
    average: Any


def average_weights(decay):
    """Keeps a moving average of the updated parameters; the first update copies."""

    def init(params):
        return AverageState(jnp.zeros([], jnp.int32), optax.tree.zeros_like(params))

    def update(updates, state, params):
        kept = jnp.where(state.count > 0, decay, 0.0)
        average = jax.tree.map(
            lambda a, p, u: (kept * a + (1 - kept) * (p + u)).astype(p.dtype),
            state.average,
            params,
            updates,
        )
        return updates, AverageState(state.count + 1, average)

    return optax.GradientTransformation(init, update)


def decays(params):
    return {name: name not in NO_DECAY for name in params}
