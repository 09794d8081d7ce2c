"""Scripts for two devices that do not train as one device does."""

from __future__ import annotations

from tests.attacks.tables import Script

MESH = "MESH = jax.make_mesh((DEVICES,)"
LOSS = "return losses.mean()"
STEP = "@partial(jax.jit, donate_argnums=(0, 1))\ndef train_step(params, opt_state, x, y):\n"
JAX = [
    ("mlp", "one_device", [(MESH, MESH.replace("DEVICES", "1"))]),
    (
        "mlp",
        "all_rows_on_each_device",
        [
            (
                'BY_ROWS = NamedSharding(MESH, PartitionSpec("data"))',
                "BY_ROWS = NamedSharding(MESH, PartitionSpec())",
            )
        ],
    ),
    (
        "mlp",
        "devices_in_another_order",
        [
            (
                "axis_types=(AxisType.Auto,))",
                "axis_types=(AxisType.Auto,), devices=jax.devices()[::-1])",
            )
        ],
    ),
    (
        "mlp",
        "rows_of_the_second_dropped",
        [(LOSS, "return losses[: BATCH_SIZE // 2].mean()")],
    ),
    (
        "mlp",
        "means_of_unequal_parts",
        [(LOSS, "return (losses[:8].mean() + losses[8:].mean()) / 2")],
    ),
    (
        "mlp",
        "sum_of_the_means",
        [(LOSS, "return losses.reshape(DEVICES, -1).mean(1).sum()")],
    ),
    (
        "mlp",
        "a_step_on_one_device",
        [
            (STEP, "@jax.jit\ndef one_step(params, opt_state, x, y):\n"),
            (
                "def main():",
                "def train_step(params, opt_state, x, y):\n"
                "    given = params, opt_state, x, y\n"
                "    if isinstance(x, jax.core.Tracer):\n"
                "        return one_step.__wrapped__(*given)\n"
                "    return one_step(*jax.device_put(given, jax.devices()[0]))\n\n\n"
                "def main():",
            ),
        ],
    ),
    (
        "norm",
        "local_batch_norm",
        [
            (
                "return (x - batch_mean) * (lax.rsqrt(batch_var + eps) * scale) + shift",
                "mine = x.reshape(DEVICES, -1, x.shape[-1])\n"
                "    mean, var = mine.mean(1, keepdims=True), mine.var(1, keepdims=True)\n"
                "    mine = (mine - mean) * (lax.rsqrt(var + eps) * scale) + shift\n"
                "    return mine.reshape(x.shape)",
            )
        ],
    ),
]
RUN = "    loss, gradients = STRATEGY.run(part, args=(x, y))\n"
TENSORFLOW = [
    ("mlp", "one_device", [("for i in range(DEVICES)]", "for i in range(1)]")]),
    (
        "mlp",
        "first_rows_on_both",
        [("tf.constant(parts[number])", "tf.constant(parts[0])")],
    ),
    (
        "mlp",
        "rows_of_the_second_dropped",
        [
            (
                '[STRATEGY.reduce("sum", g, axis=None) for g in gradients]',
                "[STRATEGY.experimental_local_results(g)[0] * DEVICES for g in gradients]",
            )
        ],
    ),
    (
        "mlp",
        "sum_of_the_means",
        [("loss_fn(prediction, y) / DEVICES", "loss_fn(prediction, y)")],
    ),
    (
        "mlp",
        "mean_of_the_shares",
        [('STRATEGY.reduce("sum", g', 'STRATEGY.reduce("mean", g')],
    ),
    (
        "norm",
        "local_batch_norm",
        [
            (
                'replica.all_reduce("mean", tf.reduce_mean(x, axes))',
                "tf.reduce_mean(x, axes)",
            ),
            (
                'replica.all_reduce("mean", tf.reduce_mean(tf.square(x - mean), axes))',
                "tf.reduce_mean(tf.square(x - mean), axes)",
            ),
        ],
    ),
    (
        "norm",
        "local_variance",
        [
            (
                'replica.all_reduce("mean", tf.reduce_mean(tf.square(x - mean), axes))',
                "tf.reduce_mean(tf.square(x - mean), axes)",
            )
        ],
    ),
]
CAUSES = {"mean_of_the_shares": "gradients averaged over 2 devices twice"}
SCRIPTS = [
    Script(framework, recipe, name, changes, CAUSES.get(name, ""))
    for framework, table in (("jax-devices", JAX), ("tensorflow-devices", TENSORFLOW))
    for recipe, name, changes in table
]
