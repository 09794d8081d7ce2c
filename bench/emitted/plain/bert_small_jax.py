"""The encoder of recipes/bert_small.toml in JAX, as one would type it."""

# mypy: ignore-errors

import jax
import jax.numpy as jnp
import optax
from jax import lax
from jax_loop import cross_entropy, dropout, load_batches, load_weights, train_loop
from pairing.bursts import Bursts

HEADS, LAYERS = 4, 2
DROPOUT = 0.1


def native(name, w):
    return w.T if w.ndim == 2 and not name.startswith("embeddings.") else w


def dense(p, name, x):
    return x @ p[name + ".weight"] + p[name + ".bias"]


def layer_norm(p, name, x):
    mean = jnp.mean(x, -1, keepdims=True)
    var = jnp.var(x, -1, keepdims=True)
    x = (x - mean) * lax.rsqrt(var + 1e-12)
    return x * p[name + ".weight"] + p[name + ".bias"]


def attention(p, name, x, mask):
    def heads(part):
        h = dense(p, f"{name}.{part}", x)
        return h.reshape(*h.shape[:2], HEADS, -1)

    q, k, v = heads("query"), heads("key"), heads("value")
    h = jax.nn.dot_product_attention(q, k, v, mask=mask)
    return dense(p, name + ".output", h.reshape(x.shape))


def forward(p, key, tokens, types, last):
    keys = iter(jax.random.split(key, 1 + 2 * LAYERS))
    places = jnp.arange(tokens.shape[1])
    mask = (places <= last[:, None])[:, None, None]
    x = p["embeddings.word.weight"][tokens] + p["embeddings.token_type.weight"][types]
    x = x + p["embeddings.position.weight"][: tokens.shape[1]]
    x = dropout(next(keys), layer_norm(p, "embeddings.norm", x), DROPOUT)
    for n in range(LAYERS):
        layer = f"encoder.{n}"
        h = attention(p, layer + ".attention", x, mask)
        h = dropout(next(keys), h, DROPOUT)
        x = layer_norm(p, layer + ".attention.norm", x + h)
        h = jax.nn.gelu(dense(p, layer + ".intermediate", x), approximate=False)
        h = dropout(next(keys), dense(p, layer + ".output", h), DROPOUT)
        x = layer_norm(p, layer + ".norm", x + h)
    x = jax.nn.gelu(dense(p, "head.dense", x), approximate=False)
    x = layer_norm(p, "head.norm", x)
    return x @ p["embeddings.word.weight"].T + p["decoder_bias"]


def loss_fn(p, running, key, tokens, types, last, labels):
    return cross_entropy(forward(p, key, tokens, types, last), labels), running


def train(bursts: Bursts, data: str, weights: str) -> None:
    p, running = load_weights(weights, native)
    batches = load_batches(data, ("tokens", "token_types", "last", "labels"), 16)
    optimizer = optax.adamw(1e-4, eps=1e-6, weight_decay=0.01)
    train_loop(bursts, loss_fn, optimizer, p, running, batches)
