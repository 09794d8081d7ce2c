"""JAX with optax: parameters in a dict, a jitted step."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

optimizer = optax.sgd(0.1)


def init_params(key):
    k1, k2 = jax.random.split(key)
    return {
        "fc1": {"weight": jax.random.normal(k1, (100, 32)), "bias": jnp.zeros(32)},
        "fc2": {"weight": jax.random.normal(k2, (32, 10)), "bias": jnp.zeros(10)},
    }


def predict(params, x):
    hidden = jax.nn.relu(x @ params["fc1"]["weight"] + params["fc1"]["bias"])
    return hidden @ params["fc2"]["weight"] + params["fc2"]["bias"]


def loss_fn(params, x, y):
    logits = predict(params, x)
    return optax.softmax_cross_entropy_with_integer_labels(logits, y).mean()


@jax.jit
def update(params, opt_state, x, y):
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    updates, opt_state = optimizer.update(grads, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, loss


def main():
    generator = np.random.default_rng(0)
    x = generator.normal(size=(1000, 100)).astype(np.float32)
    y = generator.integers(0, 10, 1000)
    params = init_params(jax.random.key(0))
    opt_state = optimizer.init(params)
    for epoch in range(3):
        for i in range(0, len(x), 50):
            batch = x[i : i + 50], y[i : i + 50]
            params, opt_state, loss = update(params, opt_state, *batch)
        print(f"epoch {epoch}: loss {loss:.4f}")


if __name__ == "__main__":
    main()
