"""Gemma of recipes/gemma_tiny.toml in JAX, as one would type it."""

# mypy: ignore-errors

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax
from jax_loop import cross_entropy, load_batches, load_weights, train_loop
from pairing.bursts import Bursts

TOKENS, WIDTH, SIZE, LAYERS = 24, 64, 16, 2
ANGLES = np.outer(np.arange(TOKENS), 10_000 ** (-np.arange(0, SIZE, 2) / SIZE))
ANGLES = np.concatenate([ANGLES, ANGLES], -1)[:, None].astype(np.float32)
COS, SIN = np.cos(ANGLES), np.sin(ANGLES)


def native(name, w):
    if "norm" in name:
        return w.ravel()
    return w.T if w.ndim == 2 and "embed" not in name else w


def norm(p, name, x):
    x = x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
    return x * (1 + p[name + ".weight"])


def turned(x):
    first, second = jnp.split(x, 2, -1)
    return x * COS + jnp.concatenate([-second, first], -1) * SIN


def attention(p, name, x):
    q, k, v = (
        (x @ p[f"{name}.{part}_proj.weight"]).reshape(*x.shape[:2], -1, SIZE)
        for part in "qkv"
    )
    h = jax.nn.dot_product_attention(turned(q), turned(k), v, is_causal=True)
    return h.reshape(x.shape) @ p[name + ".o_proj.weight"]


def forward(p, ids):
    # The row of the padding word stays as it is.
    table = p["model.embed_tokens.weight"]
    x = jnp.where((ids == 0)[..., None], lax.stop_gradient(table[ids]), table[ids])
    x = x * WIDTH**0.5
    for n in range(LAYERS):
        layer = f"model.layers.{n}"
        h = norm(p, layer + ".input_layernorm", x)
        x = x + attention(p, layer + ".self_attn", h)
        h = norm(p, layer + ".post_attention_layernorm", x)
        gate = jax.nn.gelu(h @ p[layer + ".mlp.gate_proj.weight"])
        h = gate * (h @ p[layer + ".mlp.up_proj.weight"])
        x = x + h @ p[layer + ".mlp.down_proj.weight"]
    return norm(p, "model.norm", x) @ table.T


def loss_fn(p, running, key, ids, y):
    return cross_entropy(forward(p, ids), y), running


def train(bursts: Bursts, data: str, weights: str) -> None:
    p, running = load_weights(weights, native)
    p = {name: w for name, w in p.items() if "rotary" not in name}
    batches = load_batches(data, ("input_ids", "y"), 16)
    optimizer = optax.adamw(1e-4, eps=1e-7, weight_decay=0.01)
    train_loop(bursts, loss_fn, optimizer, p, running, batches)
