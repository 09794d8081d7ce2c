"""A convolutional network in plain JAX, trained by gradient descent."""

# mypy: ignore-errors

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

EPOCHS = 1000
BATCH = 16


def make_params(rng):
    def normal(*shape):
        fan = np.prod(shape[:-1])
        return jnp.asarray(rng.standard_normal(shape) / np.sqrt(fan), jnp.float32)

    return {
        "conv1": normal(3, 3, 1, 8),
        "conv2": normal(3, 3, 8, 16),
        "dense": normal(7 * 7 * 16, 10),
    }


def conv(x, kernel):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(
        x, kernel, (2, 2), "SAME", dimension_numbers=numbers
    )


def loss_fn(params, images, labels):
    h = jax.nn.relu(conv(images, params["conv1"]))
    h = jax.nn.relu(conv(h, params["conv2"]))
    logits = h.reshape(len(h), -1) @ params["dense"]
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1)
    return -picked.mean()


@jax.jit
def update(params, images, labels):
    loss, grads = jax.value_and_grad(loss_fn)(params, images, labels)
    params = jax.tree.map(lambda p, g: p - 0.05 * g, params, grads)
    return params, loss


def main():
    rng = np.random.default_rng(0)
    images = rng.standard_normal((800, 28, 28, 1)).astype(np.float32)
    labels = rng.integers(0, 10, 800)
    params = make_params(rng)
    for epoch in range(EPOCHS):
        for start in range(0, len(images), BATCH):
            batch = images[start : start + BATCH], labels[start : start + BATCH]
            params, loss = update(params, *batch)
        print(f"epoch {epoch}: loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
