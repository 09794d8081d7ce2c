"""A little class-conditional DDPM on 2-D rings, then sampling with several
strengths of classifier-free guidance."""
import time
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

T = 32
HIDDEN = 96
N_CLASSES = 3
N_SAMPLES = 512
TRAIN_STEPS = 300
GUIDANCE = (0.0, 0.5)

betas = np.linspace(1e-4, 0.15, T).astype(np.float32)
alphas = 1.0 - betas
alpha_bars = np.cumprod(alphas)


def make_batch(rng, n=256):
    c = rng.integers(0, N_CLASSES, n)
    ang = rng.uniform(0, 2 * np.pi, n)
    r = 0.5 + 0.6 * c + 0.05 * rng.normal(size=n)
    x = np.stack([r * np.cos(ang), r * np.sin(ang)], 1).astype(np.float32)
    return x, c.astype(np.int32)


class Denoiser:
    def init(self, key):
        ks = jax.random.split(key, 6)
        dims = [2 + 32 + 16, HIDDEN, HIDDEN, HIDDEN, 2]
        layers = [(jax.random.normal(k, (i, o)) / np.sqrt(i), jnp.zeros(o))
                  for k, i, o in zip(ks, dims[:-1], dims[1:])]
        # one more row: the "no class" embedding
        return {"layers": layers,
                "cls": 0.3 * jax.random.normal(ks[-1], (N_CLASSES + 1, 16))}

    def __call__(self, params, x, t, c):
        freqs = jnp.exp(-jnp.arange(16) / 4.0)
        ang = t[:, None] * freqs
        emb = jnp.concatenate([jnp.sin(ang), jnp.cos(ang)], -1)
        h = jnp.concatenate([x, emb, params["cls"][c]], -1)
        for w, b in params["layers"][:-1]:
            h = jax.nn.silu(h @ w + b)
        w, b = params["layers"][-1]
        return h @ w + b


model = Denoiser()
opt = optax.adam(2e-3)


@jax.jit
def train_step(params, opt_state, key, x, c):
    k1, k2, k3 = jax.random.split(key, 3)
    t = jax.random.randint(k1, (x.shape[0],), 0, T)
    noise = jax.random.normal(k2, x.shape)
    ab = jnp.asarray(alpha_bars)[t][:, None]
    xt = jnp.sqrt(ab) * x + jnp.sqrt(1 - ab) * noise
    c = jnp.where(jax.random.uniform(k3, c.shape) < 0.15, N_CLASSES, c)

    def loss_fn(p):
        return jnp.mean((model(p, xt, t.astype(jnp.float32), c) - noise) ** 2)

    loss, grads = jax.value_and_grad(loss_fn)(params)
    updates, opt_state = opt.update(grads, opt_state)
    return optax.apply_updates(params, updates), opt_state, loss


@partial(jax.jit, static_argnums=(3, 4))
def p_sample(params, x, c, t, guidance, key):
    """One reverse step, from x_t to x_{t-1}."""
    tb = jnp.full((x.shape[0],), float(t))
    eps_c = model(params, x, tb, c)
    eps_u = model(params, x, tb, jnp.full_like(c, N_CLASSES))
    eps = eps_c + guidance * (eps_c - eps_u)
    mean = (x - betas[t] / np.sqrt(1 - alpha_bars[t]) * eps) / np.sqrt(alphas[t])
    if t == 0:
        return mean
    return mean + np.sqrt(betas[t]) * jax.random.normal(key, x.shape)


def sample(params, key, guidance):
    c = jnp.arange(N_SAMPLES, dtype=jnp.int32) % N_CLASSES
    key, k = jax.random.split(key)
    x = jax.random.normal(k, (N_SAMPLES, 2))
    for t in reversed(range(T)):
        key, k = jax.random.split(key)
        x = p_sample(params, x, c, t, guidance, k)
    r = jnp.linalg.norm(x, axis=-1)
    return [float(r[c == i].mean()) for i in range(N_CLASSES)]


def main():
    rng = np.random.default_rng(0)
    params = model.init(jax.random.key(0))
    opt_state = opt.init(params)
    key = jax.random.key(1)
    start = time.perf_counter()
    for i in range(TRAIN_STEPS):
        key, k = jax.random.split(key)
        params, opt_state, loss = train_step(params, opt_state, k, *make_batch(rng))
    print(f"trained {TRAIN_STEPS} steps, loss {float(loss):.4f}")
    for g in GUIDANCE:
        t0 = time.perf_counter()
        radii = sample(params, jax.random.key(7), g)
        print(f"guidance {g}: ring radii", " ".join(f"{r:.3f}" for r in radii),
              f" {T / (time.perf_counter() - t0):.1f} steps/s")
    print(f"total {time.perf_counter() - start:.1f}s")


if __name__ == "__main__":
    main()
