"""Classifies rows of a table with JAX and optax."""

# mypy: ignore-errors

import argparse

import jax
import jax.numpy as jnp
import numpy as np
import optax


def init(key, sizes):
    params = []
    for inputs, outputs in zip(sizes[:-1], sizes[1:], strict=True):
        key, part = jax.random.split(key)
        w = jax.random.normal(part, (inputs, outputs)) * (2 / inputs) ** 0.5
        params.append({"w": w, "b": jnp.zeros(outputs)})
    return params


def predict(params, x):
    for layer in params[:-1]:
        x = jax.nn.relu(x @ layer["w"] + layer["b"])
    return x @ params[-1]["w"] + params[-1]["b"]


def loss_fn(params, x, y):
    logits = predict(params, x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--width", type=int, default=256)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    x = rng.standard_normal((12800, 64)).astype(np.float32)
    y = rng.integers(0, 10, 12800)
    params = init(jax.random.key(0), [64, args.width, args.width, 10])
    optimizer = optax.adam(1e-3)
    state = optimizer.init(params)

    @jax.jit
    def step(params, state, x, y):
        loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
        updates, state = optimizer.update(grads, state, params)
        return optax.apply_updates(params, updates), state, loss

    for epoch in range(args.epochs):
        order = rng.permutation(len(x))
        for i in range(0, len(x), args.batch):
            rows = order[i : i + args.batch]
            params, state, loss = step(params, state, x[rows], y[rows])
        print(f"epoch {epoch}: loss {float(loss):.4f}", flush=True)


if __name__ == "__main__":
    main()
