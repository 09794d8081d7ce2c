"""Stochastic variational inference for a Bayesian logistic regression, with a
random subsample of the observations at every step (as numpyro's plate does)."""
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax

N_OBS = 100_000
N_FEATURES = 24
SUBSAMPLE = 256
N_STEPS = 260
LR = 0.02


def make_data(seed=0):
    rng = np.random.default_rng(seed)
    w = rng.normal(size=N_FEATURES).astype(np.float32)
    X = rng.normal(size=(N_OBS, N_FEATURES)).astype(np.float32)
    p = 1.0 / (1.0 + np.exp(-X @ w))
    y = (rng.uniform(size=N_OBS) < p).astype(np.float32)
    return jnp.asarray(X), jnp.asarray(y), w


class LogisticModel:
    """Mean-field Gaussian posterior over the weights."""

    def __init__(self, n_features, prior_scale=2.0):
        self.n_features = n_features
        self.prior_scale = prior_scale

    def init(self):
        return {"loc": jnp.zeros(self.n_features),
                "log_scale": jnp.full(self.n_features, -2.0)}

    def log_lik(self, w, X, y):
        logits = X @ w
        return y * jax.nn.log_sigmoid(logits) + (1 - y) * jax.nn.log_sigmoid(-logits)

    def neg_elbo(self, q, key, X, y, scale):
        eps = jax.random.normal(key, (self.n_features,))
        std = jnp.exp(q["log_scale"])
        w = q["loc"] + std * eps
        ll = scale * self.log_lik(w, X, y).sum()
        kl = 0.5 * jnp.sum((std ** 2 + q["loc"] ** 2) / self.prior_scale ** 2
                           - 1.0 - 2.0 * q["log_scale"]
                           + 2.0 * jnp.log(self.prior_scale))
        return (kl - ll) / N_OBS


def subsample_indices(key, size, subsample_size):
    """Indices of a random subsample, without replacement."""
    return jax.random.permutation(key, size)[:subsample_size]


def make_step(model, opt):
    @jax.jit
    def step(q, opt_state, key, X, y):
        k_sub, k_eps = jax.random.split(key)
        idx = subsample_indices(k_sub, N_OBS, SUBSAMPLE)
        loss, grads = jax.value_and_grad(model.neg_elbo)(
            q, k_eps, X[idx], y[idx], N_OBS / SUBSAMPLE)
        updates, opt_state = opt.update(grads, opt_state)
        return optax.apply_updates(q, updates), opt_state, loss
    return step


def main():
    X, y, w_true = make_data()
    model = LogisticModel(N_FEATURES)
    opt = optax.adam(LR)
    q = model.init()
    opt_state = opt.init(q)
    step = make_step(model, opt)
    key = jax.random.key(1)
    losses = []
    start = time.perf_counter()
    for i in range(N_STEPS):
        key, sub = jax.random.split(key)
        q, opt_state, loss = step(q, opt_state, sub, X, y)
        losses.append(loss)
        if (i + 1) % 65 == 0:
            mean = float(jnp.mean(jnp.stack(losses[-65:])))
            print(f"step {i + 1:4d}  -ELBO/N {mean:.4f}")
    err = float(jnp.abs(q["loc"] - w_true).mean())
    print(f"mean abs error of the posterior mean: {err:.4f}")
    print(f"time {time.perf_counter() - start:.1f}s")


if __name__ == "__main__":
    main()
