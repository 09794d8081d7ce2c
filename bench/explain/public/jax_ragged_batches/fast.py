"""Sentence classifier with one attention layer on sentences of different lengths."""
import time

import jax
import jax.numpy as jnp
import numpy as np

VOCAB, DIM, CLASSES = 2000, 64, 4
BATCH = 8
STEPS = 40
LR = 0.05

rng = np.random.default_rng(1)
sentences = [rng.integers(1, VOCAB, size=rng.integers(12, 300)) for _ in range(BATCH * STEPS)]
labels = np.array([int(s.sum()) % CLASSES for s in sentences], dtype=np.int32)


def init(key):
    ks = jax.random.split(key, 5)
    return {
        "emb": jax.random.normal(ks[0], (VOCAB, DIM)) * 0.1,
        "q": jax.random.normal(ks[1], (DIM, DIM)) * 0.1,
        "k": jax.random.normal(ks[2], (DIM, DIM)) * 0.1,
        "v": jax.random.normal(ks[3], (DIM, DIM)) * 0.1,
        "out": jax.random.normal(ks[4], (DIM, CLASSES)) * 0.1,
    }


def loss_fn(params, tokens, labels):
    mask = tokens > 0
    x = params["emb"][tokens]
    q, k, v = x @ params["q"], x @ params["k"], x @ params["v"]
    scores = jnp.einsum("bid,bjd->bij", q, k) / jnp.sqrt(DIM)
    scores = jnp.where(mask[:, None, :], scores, -1e9)
    x = x + jnp.einsum("bij,bjd->bid", jax.nn.softmax(scores), v)
    pooled = (x * mask[..., None]).sum(1) / mask.sum(1, keepdims=True)
    logp = jax.nn.log_softmax(pooled @ params["out"])
    return -jnp.mean(jnp.take_along_axis(logp, labels[:, None], axis=1))


@jax.jit
def train_step(params, tokens, labels):
    loss, grads = jax.value_and_grad(loss_fn)(params, tokens, labels)
    return jax.tree_util.tree_map(lambda p, g: p - LR * g, params, grads), loss


def collate(batch):
    longest = max(len(s) for s in batch)
    width = -(-longest // 100) * 100
    out = np.zeros((len(batch), width), dtype=np.int32)
    for i, s in enumerate(batch):
        out[i, :len(s)] = s
    return out


params = init(jax.random.PRNGKey(0))
# short sentences with short ones, to waste less padding
order = np.argsort([len(s) for s in sentences])
batches = [order[i:i + BATCH] for i in range(0, len(order), BATCH)]
rng.shuffle(batches)
start = time.time()
for step, pick in enumerate(batches):
    tokens = collate([sentences[i] for i in pick])
    params, loss = train_step(params, tokens, labels[pick])
    if step % 5 == 0:
        print(f"step {step} loss {float(loss):.4f} elapsed {time.time() - start:.1f}s")
