"""The vision transformer of recipes/vit_tiny.toml in JAX, as one would type it."""

# mypy: ignore-errors

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax_loop import cross_entropy, load_batches, load_weights, pictures, train_loop
from pairing.bursts import Bursts

HEADS, LAYERS, PATCH = 4, 2, 8


def native(name, w):
    return w.transpose(2, 3, 1, 0) if w.ndim == 4 else w.T if w.ndim == 2 else w


def dense(p, name, x):
    return x @ p[name + ".weight"] + p[name + ".bias"]


def layer_norm(p, name, x):
    mean = jnp.mean(x, -1, keepdims=True)
    var = jnp.var(x, -1, keepdims=True)
    x = (x - mean) * lax.rsqrt(var + 1e-6)
    return x * p[name + ".weight"] + p[name + ".bias"]


def attention(p, name, x):
    qkv = dense(p, name + ".qkv", x).reshape(*x.shape[:2], 3, HEADS, -1)
    q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]
    h = jax.nn.dot_product_attention(q, k, v)
    return dense(p, name + ".proj", h.reshape(x.shape))


def forward(p, x):
    x = lax.conv_general_dilated(
        x,
        p["patch_embed.proj.weight"],
        (PATCH, PATCH),
        "VALID",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )
    x = (x + p["patch_embed.proj.bias"]).reshape(len(x), -1, x.shape[-1])
    first = jnp.broadcast_to(p["cls_token"], (len(x), 1, x.shape[-1]))
    x = jnp.concatenate([first, x], 1) + p["pos_embed"]
    for n in range(LAYERS):
        layer = f"blocks.{n}"
        x = x + attention(p, layer + ".attn", layer_norm(p, layer + ".norm1", x))
        h = dense(p, layer + ".mlp.fc1", layer_norm(p, layer + ".norm2", x))
        x = x + dense(p, layer + ".mlp.fc2", jax.nn.gelu(h, approximate=False))
    return dense(p, "head", layer_norm(p, "norm", x)[:, 0])


def loss_fn(p, running, key, x, y):
    return cross_entropy(forward(p, x), y), running


def train(bursts: Bursts, data: str, weights: str) -> None:
    p, running = load_weights(weights, native)
    batches = load_batches(data, ("x", "y"), 16, pictures)
    optimizer = optax.adamw(1e-4, eps=1e-7, weight_decay=0.01)
    train_loop(bursts, loss_fn, optimizer, p, running, batches)
