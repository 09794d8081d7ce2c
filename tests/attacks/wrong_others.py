"""Subtly wrong scripts of JAX, TensorFlow, Keras, Keras 2 and LibTorch."""

from __future__ import annotations

from tests.attacks.tables import FRAMEWORKS, Script


def J(recipe: str, name: str, *changes: tuple[str, str], cause: str = "") -> Script:
    return Script("jax", recipe, name, changes, cause)


JAX_ADAM = "optax.adam(LEARNING_RATE, b1=0.9, b2=0.999, eps=1e-7)"
JAX_LOSS = "losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)"
JAX_APPLY = "    updates, opt_state = OPTIMIZER.update(grads, opt_state, params)\n"
JAX = [
    J(
        "mlp",
        "amsgrad",
        (JAX_ADAM, JAX_ADAM.replace("adam(", "amsgrad(")),
        cause="amsgrad",
    ),
    J("mlp", "beta2", ("b2=0.999", "b2=0.99"), cause=r"betas? .*0\.99\b"),
    J(
        "mlp",
        "epsilon_in_the_root",
        (JAX_ADAM, JAX_ADAM.replace("eps=1e-7", "eps=0.0, eps_root=1e-14")),
        cause="epsilon inside",
    ),
    J("mlp", "nadam", (JAX_ADAM, JAX_ADAM.replace("adam(", "nadam(")), cause="nadam"),
    J("mlp", "radam", (JAX_ADAM, JAX_ADAM.replace("adam(", "radam(")), cause="radam"),
    J(
        "mlp",
        "clipped",
        (
            f"return {JAX_ADAM}",
            f"return optax.chain(optax.clip_by_global_norm(0.1), {JAX_ADAM})",
        ),
        cause="clip",
    ),
    J(
        "mlp",
        "schedule",
        (
            JAX_ADAM,
            JAX_ADAM.replace(
                "LEARNING_RATE",
                "optax.piecewise_constant_schedule(LEARNING_RATE, {3: 0.5})",
            ),
        ),
        cause="schedule|learning rate.*chang",
    ),
    J(
        "mlp",
        "warm_up",
        (
            JAX_ADAM,
            JAX_ADAM.replace(
                "LEARNING_RATE", "optax.linear_schedule(0.0, LEARNING_RATE, 4)"
            ),
        ),
        cause="schedule|warm|learning rate (0\\b|.*chang)",
    ),
    J(
        "mlp",
        "label_smoothing",
        (
            JAX_LOSS,
            "losses = optax.softmax_cross_entropy(\n"
            "        logits, optax.smooth_labels(jax.nn.one_hot(y, 5), 0.1))",
        ),
        cause="label smoothing",
    ),
    J("mlp", "loss_sum", ("losses.mean()", "losses.sum()"), cause="sum"),
    J(
        "mlp",
        "loss_of_all_but_one",
        ("losses.mean()", "losses[1:].mean()"),
        cause="rows",
    ),
    J(
        "mlp",
        "loss_maximum_left_out",
        ("losses.mean()", "jnp.sort(losses)[:-1].mean()"),
    ),
    J(
        "mlp",
        "bfloat16",
        (
            "return x @ weight + bias",
            "return (x.astype(jnp.bfloat16) @ weight.astype(jnp.bfloat16)).astype(x.dtype) + bias",
        ),
        cause="bfloat16|precision",
    ),
    J(
        "mlp",
        "bfloat16_in_float32_only",
        (
            "return x @ weight + bias",
            "low = jnp.bfloat16 if x.dtype == jnp.float32 else x.dtype\n"
            "    return (x.astype(low) @ weight.astype(low)).astype(x.dtype) + bias",
        ),
        cause="bfloat16|precision",
    ),
    J(
        "mlp",
        "gradients_rounded_in_float32_only",
        (
            JAX_APPLY,
            "    if x.dtype == jnp.float32:\n        grads = jax.tree.map(lambda g: g.astype(jnp.bfloat16).astype(g.dtype), grads)\n"
            + JAX_APPLY,
        ),
        cause="bfloat16|precision",
    ),
    J("mlp", "gelu_tanh", ("approximate=False", "approximate=True"), cause="tanh"),
    J(
        "mlp",
        "stopped_gradient",
        (
            'x = linear(x, params["fc2.weight"]',
            'x = linear(jax.lax.stop_gradient(x), params["fc2.weight"]',
        ),
        cause="detach|gradient.*stop|frozen|no gradient reaches",
    ),
    J(
        "mlp",
        "bias_gradient_dropped",
        (
            JAX_APPLY,
            '    grads["fc2.bias"] = jnp.zeros_like(grads["fc2.bias"])\n' + JAX_APPLY,
        ),
        cause="frozen|not trained|no gradient reaches",
    ),
    J(
        "mlp",
        "first_layer_not_updated",
        (
            "return optax.apply_updates(params, updates), opt_state, loss",
            'updates["fc1.weight"] = jnp.zeros_like(updates["fc1.weight"])\n'
            "    return optax.apply_updates(params, updates), opt_state, loss",
        ),
        cause="frozen|not (trained|updated)|no gradient reaches",
    ),
    J(
        "mlp",
        "batches_off_by_one",
        ("starts = range(0,", "starts = range(1,"),
        cause="rows|batch",
    ),
    J(
        "mlp",
        "inputs_halved",
        ('data["x"].astype(np.float32)', 'data["x"].astype(np.float32) / 2'),
        cause="input|scal",
    ),
    J(
        "mlp",
        "old_moments",
        (
            "return optax.apply_updates(params, updates), opt_state, loss",
            "return optax.apply_updates(params, updates), OPTIMIZER.init(params), loss",
        ),
        cause="moment|state",
    ),
    J("mlp_slow", "slow_amsgrad", ("optax.adam(", "optax.amsgrad("), cause="amsgrad"),
    J(
        "cnn",
        "nesterov_off",
        ("nesterov=True", "nesterov=False"),
        cause=r"nesterov|^momentum 0\.9\b",
    ),
    J(
        "cnn",
        "same",
        (
            'conv2d(x, params["conv1.weight"], params["conv1.bias"], stride=2, padding=1)',
            'lax.conv_general_dilated(x, params["conv1.weight"], (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + params["conv1.bias"]',
        ),
        cause="SAME",
    ),
    J("cnn", "bn_eps", ("eps=1e-5", "eps=1e-3"), cause=r"BatchNorm epsilon 0\.001"),
    J(
        "cnn",
        "bn_momentum",
        ("momentum=0.1", "momentum=0.01"),
        cause=r"BatchNorm momentum 0\.01",
    ),
    J(
        "cnn",
        "bn_running",
        (
            "return (x - batch_mean) * (lax.rsqrt(batch_var + eps) * scale) + shift",
            "return (x - stats[mean]) * (lax.rsqrt(stats[var] + eps) * scale) + shift",
        ),
        cause="running statistics|eval|inference",
    ),
    J("cnn", "bn_unbiased", ("x.var(axes)", "x.var(axes, ddof=1)"), cause="unbiased"),
    J(
        "cnn",
        "bn_statistics_detached",
        (
            "batch_mean, batch_var = x.mean(axes), x.var(axes)",
            "batch_mean, batch_var = map(lax.stop_gradient, (x.mean(axes), x.var(axes)))",
        ),
    ),
    J(
        "cnn",
        "flatten_order",
        (
            "x.reshape(x.shape[0], 72)",
            "x.transpose(0, 3, 1, 2).reshape(x.shape[0], 72)",
        ),
        cause="flatten",
    ),
    J(
        "cnn",
        "average_pool",
        (
            "x = max_pool2d(x, window=(3, 3), stride=(2, 2), padding=((1, 1), (1, 1)))",
            "x = lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (1, 1), (0, 0))) / 9",
        ),
        cause="average|avg",
    ),
    J(
        "lstm",
        "gates",
        ("i, f, g, o = jnp.split", "f, i, g, o = jnp.split"),
        cause="gate",
    ),
    J(
        "lstm",
        "forget_bias",
        ("jax.nn.sigmoid(f) * c", "jax.nn.sigmoid(f + 1) * c"),
        cause="forget",
    ),
    J("lstm", "state", ("zeros = jnp.zeros(", "zeros = jnp.ones("), cause="state"),
    J(
        "lstm",
        "truncated",
        ("gates + h @ weight_hh", "gates + lax.stop_gradient(h) @ weight_hh"),
    ),
    J(
        "lstm",
        "epsilon_inside",
        ("eps_in_sqrt=False", "eps_in_sqrt=True"),
        cause="epsilon inside",
    ),
    J(
        "lstm",
        "started_at_one",
        ("eps_in_sqrt=False", "eps_in_sqrt=False, initial_scale=1.0"),
        cause="initial|start",
    ),
    J("att", "scale", ("q.shape[-1] ** -0.5", "q.shape[-1] ** -1"), cause="scale"),
    J(
        "att",
        "mask",
        ("<= last[:", "< last[:"),
        (
            "scores = jnp.where(seen, scores, -jnp.inf)",
            "scores = jnp.where(seen, scores, -1e9)",
        ),
        cause="mask",
    ),
    J(
        "att",
        "softmax_axis",
        ("jax.nn.softmax(scores)", "jax.nn.softmax(scores, axis=-2)"),
    ),
    J(
        "att",
        "decay_masked",
        (
            "weight_decay=0.05",
            "weight_decay=0.05, mask=lambda p: jax.tree.map(lambda v: v.ndim > 1, p)",
        ),
        cause="decay.*(matri|bias|vector)",
    ),
    J(
        "att",
        "norm_eps",
        (
            "return (x - mean) * lax.rsqrt(var + eps)",
            "return (x - mean) * lax.rsqrt(var + 1e-6)",
        ),
        cause="LayerNorm eps",
    ),
    J(
        "att",
        "untied",
        (
            'logits = linear(h5, params["word.weight"].T',
            'logits = linear(h5, lax.stop_gradient(params["word.weight"]).T',
        ),
        cause="detach|tied|no gradient reaches",
    ),
    J("drop", "no_scaling", ("x / (1 - rate)", "x"), cause="dropout"),
    J("norm", "no_scaling", ("x / (1 - rate)", "x"), cause="dropout"),
    J(
        "drop",
        "same_key",
        (
            "keys = jax.random.split(key, 2)",
            "keys = jax.random.split(jax.random.key(0), 2)",
        ),
        cause="dropout|mask",
    ),
    J("drop", "rate", ("DROPOUT_RATE = 0.3", "DROPOUT_RATE = 0.25"), cause="dropout"),
    J(
        "drop",
        "mask_of_a_row",
        ("1 - rate, x.shape)", "1 - rate, x.shape[1:])"),
        cause="dropout|mask",
    ),
    J(
        "drop",
        "absent",
        ("return jnp.where(keep, x / (1 - rate), 0)", "return x"),
        cause="dropout",
    ),
    J(
        "drop",
        "key_not_renewed",
        (
            "return TrainState(params, opt_state, key), loss",
            "return TrainState(params, opt_state, state.key), loss",
        ),
        cause="dropout|mask",
    ),
]


def F(recipe: str, name: str, *changes: tuple[str, str], cause: str = "") -> Script:
    return Script("tensorflow", recipe, name, changes, cause)


TF_APPLY = "    optimizer.apply_gradients(gradients)\n"
TENSORFLOW = [
    F("mlp", "beta2", ("BETA_2 = 0.999", "BETA_2 = 0.99"), cause=r"betas? .*0\.99\b"),
    F(
        "mlp",
        "no_bias_correction",
        ("rate = LEARNING_RATE * root / (1 - BETA_1**t)", "rate = LEARNING_RATE"),
        cause="bias correction|hat",
    ),
    F("mlp", "epsilon_hat", ("EPSILON * root", "EPSILON"), cause="epsilon"),
    F(
        "mlp",
        "epsilon_inside",
        ("tf.sqrt(square) + EPSILON * root", "tf.sqrt(square + EPSILON * root)"),
        cause="epsilon",
    ),
    F(
        "mlp",
        "amsgrad",
        (
            "        self.squares = zeros_like(variables)\n",
            "        self.squares = zeros_like(variables)\n        self.best = zeros_like(variables)\n",
        ),
        (
            "            step = moment / (tf.sqrt(square) + EPSILON * root)",
            "            best = self.best[[s is square for s in self.squares].index(True)]\n"
            "            best.assign(tf.maximum(best, square))\n"
            "            step = moment / (tf.sqrt(best) + EPSILON * root)",
        ),
        cause="amsgrad",
    ),
    F(
        "mlp",
        "loss_sum",
        ("tf.reduce_mean(losses)", "tf.reduce_sum(losses)"),
        cause="sum",
    ),
    F(
        "mlp",
        "clipped",
        (
            TF_APPLY,
            "    gradients, _ = tf.clip_by_global_norm(gradients, 0.1)\n" + TF_APPLY,
        ),
        cause="clip",
    ),
    F(
        "mlp",
        "last_row_dropped",
        (
            "prediction = model(x)",
            "x, y = x[:-1], y[:-1]\n        prediction = model(x)",
        ),
        cause="rows",
    ),
    F(
        "mlp",
        "stopped",
        ("x = gelu(x)", "x = gelu(tf.stop_gradient(x))"),
        cause="detach|gradient.*stop|frozen|no gradient reaches",
    ),
    F(
        "mlp",
        "gelu_tanh",
        (
            "return 0.5 * x * (1 + tf.math.erf(x / math.sqrt(2)))",
            "return tf.nn.gelu(x, approximate=True)",
        ),
        cause="tanh",
    ),
    F(
        "mlp",
        "gelu_quick",
        (
            "return 0.5 * x * (1 + tf.math.erf(x / math.sqrt(2)))",
            "return x * tf.sigmoid(1.702 * x)",
        ),
    ),
    F(
        "mlp",
        "bfloat16_in_float32_only",
        (
            "x = linear(x, self.fc2_weight, self.fc2_bias)",
            "low = tf.bfloat16 if x.dtype == tf.float32 else x.dtype\n"
            "        h = tf.matmul(tf.cast(x, low), tf.cast(self.fc2_weight, low))\n"
            "        x = tf.cast(h, x.dtype) + self.fc2_bias",
        ),
        cause="bfloat16|precision",
    ),
    F(
        "mlp",
        "float16_gradients",
        (
            TF_APPLY,
            "    gradients = [tf.cast(tf.cast(g, tf.float16), g.dtype) for g in gradients]\n"
            + TF_APPLY,
        ),
        cause="float16|precision",
    ),
    F(
        "mlp",
        "rows_shifted",
        ("starts = range(0,", "starts = range(2,"),
        cause="rows|batch",
    ),
    F(
        "mlp",
        "label_smoothing",
        (
            "    return tf.reduce_mean(losses)",
            "    return 0.9 * tf.reduce_mean(losses) + 0.1 * tf.reduce_mean(\n"
            "        -tf.nn.log_softmax(logits))",
        ),
        cause="label smoothing",
    ),
    F(
        "mlp",
        "second_layer_untrained",
        (
            "optimizer = Adam(model.trainable_variables)",
            "optimizer = Adam(model.trainable_variables)",
        ),
        (
            "zip(\n            self.targets, gradients, self.moments, self.squares, strict=True\n        )",
            "list(zip(\n            self.targets, gradients, self.moments, self.squares, strict=True\n        ))[:-2]",
        ),
        cause="frozen|not (trained|updated)|no gradient reaches",
    ),
    F(
        "mlp",
        "update_before_moments",
        (
            "moment.assign_add((1 - BETA_1) * (g - moment))",
            "moment.assign(BETA_1 * moment + g)",
        ),
        cause="dampening|momentum|learning rate 0.01",  # the first moment is ten times as large
    ),
    F(
        "cnn",
        "nesterov_off",
        ("LEARNING_RATE * (g + MOMENTUM * u)", "LEARNING_RATE * u"),
        cause=r"nesterov|^momentum 0\.9\b",
    ),
    F(
        "cnn",
        "dampening",
        ("u = MOMENTUM * velocity + g", "u = MOMENTUM * velocity + 0.9 * g"),
        cause="dampening",
    ),
    F(
        "cnn",
        "same",
        (
            "self.conv1_weight, strides=2, padding=[[0, 0], [1, 1], [1, 1], [0, 0]]",
            'self.conv1_weight, strides=2, padding="SAME"',
        ),
        cause="SAME",
    ),
    F(
        "cnn",
        "pool_same",
        (
            "x, ksize=3, strides=2, padding=[[0, 0], [1, 1], [1, 1], [0, 0]]",
            'tf.pad(x, [[0, 0], [0, 2], [0, 2], [0, 0]]), ksize=3, strides=2, padding="VALID"',
        ),
        cause="pool|SAME",
    ),
    F(
        "cnn",
        "bn_momentum",
        ("momentum=0.1", "momentum=0.001"),
        cause=r"BatchNorm momentum 0\.001",
    ),
    F("cnn", "bn_eps", ("eps=1e-5", "eps=1e-4"), cause=r"BatchNorm epsilon 0\.0001"),
    F(
        "cnn",
        "bn_running",
        (
            "return tf.nn.batch_normalization(x, mean, var,",
            "return tf.nn.batch_normalization(x, running_mean, running_var,",
        ),
        cause="running statistics|eval|inference",
    ),
    F(
        "cnn",
        "flatten_order",
        (
            "tf.reshape(x, (-1, 72))",
            "tf.reshape(tf.transpose(x, (0, 3, 1, 2)), (-1, 72))",
        ),
        cause="flatten",
    ),
    F(
        "cnn",
        "bn_shift_left_out",
        (
            "tf.nn.batch_normalization(x, mean, var, shift, scale",
            "tf.nn.batch_normalization(x, mean, var, None, scale",
        ),
    ),
    F(
        "lstm",
        "gates",
        ("i, f, g, o = tf.split", "i, g, f, o = tf.split"),
        cause="gate",
    ),
    F(
        "lstm",
        "forget_bias",
        ("tf.sigmoid(f) * c", "tf.sigmoid(f + 1) * c"),
        cause="forget",
    ),
    F(
        "lstm",
        "hard_sigmoid",
        (
            "h = tf.sigmoid(o) * tf.tanh(c)",
            "h = tf.clip_by_value(0.2 * o + 0.5, 0, 1) * tf.tanh(c)",
        ),
    ),
    F(
        "lstm",
        "sparse_duplicates_lost",
        (
            "            g = tf.convert_to_tensor(g)\n",
            "            if isinstance(g, tf.IndexedSlices):\n                g = tf.tensor_scatter_nd_update(\n"
            "                    tf.zeros_like(variable), g.indices[:, None], g.values)\n",
        ),
    ),
    F("lstm", "rho", ("RHO = 0.9", "RHO = 0.99"), cause=r"rho 0\.99"),
    F("att", "scale", ("q.shape[-1] ** -0.5", "16 ** -0.5"), cause="scale"),
    F("att", "mask_added_softly", ("(scores.dtype.min / 2)", "-2.0"), cause="mask"),
    F(
        "att",
        "norm_eps",
        ("mean, var, shift, scale, eps)", "mean, var, shift, scale, 1e-3)"),
        cause="LayerNorm eps",
    ),
    F(
        "att",
        "decay_before_rate",
        ("LEARNING_RATE * WEIGHT_DECAY * variable", "rate * WEIGHT_DECAY * variable"),
        cause="decay",
    ),
    F("att", "residual", ("h5 = r + h5", "h5 = tokens + h5"), cause="residual|add"),
    F("drop", "rate", ("DROPOUT_RATE = 0.3", "DROPOUT_RATE = 0.35"), cause="dropout"),
    F(
        "norm",
        "no_scaling",
        (
            "x = tf.nn.dropout(x, rate=DROPOUT_RATE)\n",
            "x = tf.nn.dropout(x, rate=DROPOUT_RATE) * (1 - DROPOUT_RATE)\n",
        ),
        cause="dropout",
    ),
    F(
        "drop",
        "absent",
        ("        x = tf.nn.dropout(x, rate=DROPOUT_RATE)\n", ""),
        cause="dropout",
    ),
    F(
        "drop",
        "no_scaling",
        (
            "x = tf.nn.dropout(x, rate=DROPOUT_RATE)\n",
            "x = tf.nn.dropout(x, rate=DROPOUT_RATE) * (1 - DROPOUT_RATE)\n",
        ),
        cause="dropout",
    ),
    F(
        "drop",
        "mask_of_rows",
        ("rate=DROPOUT_RATE_2)", "rate=DROPOUT_RATE_2, noise_shape=(x.shape[0], 1))"),
        cause="dropout|mask",
    ),
    F(
        "drop",
        "same_mask",
        (
            "x = tf.nn.dropout(x, rate=DROPOUT_RATE)\n",
            "x = tf.nn.experimental.stateless_dropout(x, rate=DROPOUT_RATE, seed=[1, 2]) if DROPOUT_RATE else x\n",
        ),
        cause="dropout|mask",
    ),
]


def K(
    recipe: str,
    name: str,
    *changes: tuple[str, str],
    cause: str = "",
    on: str = "keras-tensorflow",
) -> Script:
    return Script(on, recipe, name, changes, cause)


LOSS3 = 'from_logits=True, reduction="sum_over_batch_size"'
SEEN3 = "loss = keras.losses.SparseCategoricalCrossentropy("


def keras(on: str) -> list[Script]:
    """What is wrong in the same words in all of Keras."""
    two = on == "keras2"
    tf_or_ops = "tf.nn" if two else "ops"
    return [
        K(
            "mlp",
            "beta1",
            ("beta_1=0.9,", "beta_1=0.8,"),
            cause=r"betas? .*0\.8",
            on=on,
        ),
        K(
            "mlp",
            "epsilon",
            ("epsilon=1e-7", "epsilon=1e-6"),
            cause="epsilon 1e-06",
            on=on,
        ),
        K(
            "mlp",
            "own_adam_of_keras",
            ("optimizer = AdamEpsOutside(", "optimizer = keras.optimizers.Adam("),
            cause="epsilon",
            on=on,
        ),
        K(
            "mlp",
            "clipped",
            ("epsilon=1e-7\n", "epsilon=1e-7, global_clipnorm=0.1\n"),
            cause="clip",
            on=on,
        ),
        K(
            "mlp",
            "loss_sum",
            (LOSS3, 'from_logits=True, reduction="sum"'),
            cause="sum",
            on=on,
        ),
        K(
            "mlp",
            "not_logits",
            (LOSS3, 'from_logits=False, reduction="sum_over_batch_size"'),
            cause="softmax|logits|from_logits",
            on=on,
        ),
        K(
            "mlp",
            "softmax_last",
            ('layers.Dense(5, name="fc3")', 'layers.Dense(5, "softmax", name="fc3")'),
            (LOSS3, 'from_logits=True, reduction="sum_over_batch_size"'),
            cause="softmax before a loss",
            on=on,
        ),
        K(
            "mlp",
            "untrained_layer",
            ('name="fc2")(h2)', 'name="fc2", trainable=False)(h2)'),
            cause="frozen|not trained|no gradient reaches",
            on=on,
        ),
        K(
            "mlp",
            "gelu_tanh",
            ("approximate=False", "approximate=True"),
            cause="tanh",
            on=on,
        ),
        K(
            "mlp",
            "relu_twice",
            ("layers.Dense(16, name=", 'layers.Dense(16, activation="relu", name='),
            cause="relu",
            on=on,
        ),
        K(
            "mlp",
            "l2_regulariser",
            (
                'layers.Dense(16, name="fc2")',
                'layers.Dense(16, name="fc2", kernel_regularizer=keras.regularizers.L2(1e-3))',
            ),
            cause="decay|l2|regular",
            on=on,
        ),
        K(
            "mlp",
            "unit_norm_constraint",
            (
                'layers.Dense(16, name="fc2")',
                'layers.Dense(16, name="fc2", kernel_constraint=keras.constraints.MaxNorm(0.3))',
            ),
            cause="constraint|norm",
            on=on,
        ),
        K(
            "mlp",
            "shuffled",
            ("shuffle=False", "shuffle=True"),
            cause="rows|batch|order",
            on=on,
        ),
        K(
            "mlp",
            "class_weights",
            (
                "shuffle=False,",
                "shuffle=False,\n        class_weight={0: 2.0, 1: 1, 2: 1, 3: 1, 4: 1},",
            ),
            on=on,
        ),
        K(
            "cnn",
            "nesterov_off",
            ("nesterov=True", "nesterov=False"),
            cause=r"nesterov|^momentum 0\.9\b",
            on=on,
        ),
        K(
            "cnn",
            "bn_default_eps",
            ("epsilon=1e-5, name", "epsilon=1e-3, name"),
            cause=r"BatchNorm epsilon 0\.001",
            on=on,
        ),
        K(
            "cnn",
            "bn_default_momentum",
            ("momentum=0.9, epsilon", "momentum=0.99, epsilon"),
            cause=r"BatchNorm momentum 0\.01",
            on=on,
        ),
        K(
            "cnn",
            "bn_without_scale",
            ('name="bn1")(h1)', 'name="bn1", trainable=False)(h1)'),
            cause="running statistics|eval|inference|frozen|not trained",
            on=on,
        ),
        K(
            "cnn",
            "same",
            ("x_padded = layers.ZeroPadding2D(((1, 1), (1, 1)))(x)", "x_padded = x"),
            ("strides=(2, 2), name", 'strides=(2, 2), padding="same", name'),
            cause="SAME",
            on=on,
        ),
        K(
            "cnn",
            "average_pool",
            (
                "layers.MaxPooling2D((3, 3), strides=(2, 2))(h5_padded)",
                'layers.AveragePooling2D((3, 3), strides=(2, 2), padding="same")(h5)',
            ),
            cause="average|avg",
            on=on,
        ),
        K(
            "cnn",
            "dropout_added",
            (
                "h7 = layers.Flatten()(h6)",
                "h7 = layers.Flatten()(layers.Dropout(0.1)(h6))",
            ),
            cause="dropout",
            on=on,
        ),
        K(
            "lstm",
            "recurrent_dropout",
            ("return_sequences=True", "return_sequences=True, recurrent_dropout=0.2"),
            cause="dropout",
            on=on,
        ),
        K(
            "lstm",
            "sigmoid_hard",
            (
                "return_sequences=True",
                'return_sequences=True, recurrent_activation="hard_sigmoid"',
            ),
            cause="hard",
            on=on,
        ),
        K(
            "lstm",
            "backwards",
            ("return_sequences=True", "return_sequences=True, go_backwards=True"),
            cause="revers|backwards",
            on=on,
        ),
        K(
            "lstm",
            "masked_zero",
            ("layers.Embedding(30, 8,", "layers.Embedding(30, 8, mask_zero=True,"),
            cause="mask",
            on=on,
        ),
        K(
            "drop",
            "rate",
            ("layers.Dropout(0.3)", "layers.Dropout(0.2)"),
            cause="dropout",
            on=on,
        ),
        K(
            "drop",
            "absent",
            ("h3 = layers.Dropout(0.3)(h2)", "h3 = h2"),
            cause="dropout",
            on=on,
        ),
        K(
            "drop",
            "noise_shape",
            ("layers.Dropout(0.5)", "layers.Dropout(0.5, noise_shape=(None, 1))"),
            cause="dropout|mask",
            on=on,
        ),
        K(
            "drop",
            "gaussian",
            ("layers.Dropout(0.5)", "layers.GaussianDropout(0.5)"),
            cause="dropout",
            on=on,
        ),
        # layers.Dropout(0.3)(h2, training=False) is no wrong script: the model's own
        # flag wins, and masks are drawn.
        K(
            "att",
            "norm_default_eps",
            ('epsilon=1e-5, name="norm1"', 'epsilon=1e-3, name="norm1"'),
            cause="LayerNorm eps",
            on=on,
        ),
        K("att", "mask_left_out", ("mask=mask", "mask=None"), cause="mask", on=on),
        K(
            "att",
            "decay",
            ("weight_decay=0.05", "weight_decay=0.01"),
            cause=r"decay 0\.01",
            on=on,
        ),
        K(
            "att",
            "relu_for_gelu",
            (f"{tf_or_ops}.gelu(h5, approximate=False)", f"{tf_or_ops}.relu(h5)"),
            cause="relu",
            on=on,
        ),
    ]


def L(recipe: str, name: str, *changes: tuple[str, str], cause: str = "") -> Script:
    return Script("libtorch", recipe, name, changes, cause)


def kept_unscaled(on: str) -> Script:
    """What dropout keeps without its scale in training: batch normalisation hides it in the loss."""
    kept = (
        "class Kept(layers.Dropout):\n"
        "        def call(self, x, training=False):\n"
        "            y = super().call(x, training=training)\n"
        "            return y * (1 - self.rate) if training else y\n\n"
        "    h3 = Kept(0.3)(h2)"
    )
    changes = ("h3 = layers.Dropout(0.3)(h2)", kept)
    return K("norm", "no_scaling", changes, cause="dropout", on=on)


LIBTORCH = [
    L(
        "norm",
        "no_scaling",
        (
            "    x = dropout(x);\n",
            "    x = dropout(x);\n    if (is_training()) x = x * (1 - dropout->options.p());\n",
        ),
        cause="dropout",
    ),
    L(
        "cnn",
        "nesterov_off",
        ("nesterov(true)", "nesterov(false)"),
        cause=r"nesterov|^momentum 0\.9\b",
    ),
    L("cnn", "bn_eps", ("eps(1e-5)", "eps(1e-3)"), cause=r"BatchNorm epsilon 0\.001"),
    L(
        "cnn",
        "not_zeroed",
        ("  optimizer.zero_grad();\n", ""),
        cause="not zeroed|accumulat",
    ),
    L(
        "cnn",
        "half_the_batch",
        (
            "F::cross_entropy(model(x), y)",
            "F::cross_entropy(model(x.narrow(0, 0, 10)), y.narrow(0, 0, 10))",
        ),
        cause="rows|half",
    ),
    L(
        "cnn",
        "flatten_order",
        ("x.flatten(1)", "x.permute({0, 2, 3, 1}).flatten(1)"),
        cause="flatten",
    ),
    L(
        "cnn",
        "batches_off_by_one",
        ("int64_t first_ = 0;", "int64_t first_ = 1;"),
        cause="rows|batch",
    ),
    L(
        "mlp",
        "gelu_tanh",
        ('torch::gelu(fc2(x), "none")', 'torch::gelu(fc2(x), "tanh")'),
        cause="tanh",
    ),
    L(
        "mlp",
        "amsgrad",
        (".weight_decay(0.0)", ".weight_decay(0.0).amsgrad(true)"),
        cause="amsgrad",
    ),
    L(
        "mlp",
        "loss_halved",
        ("F::cross_entropy(model(x), y)", "F::cross_entropy(model(x), y) * 0.5"),
    ),
    L("drop", "absent", ("x = dropout1(x);", ""), cause="dropout"),
]
SCRIPTS = (
    JAX
    + TENSORFLOW
    + keras("keras-tensorflow")
    + keras("keras-torch")[::3]
    + keras("keras-jax")[1::3]
    + [kept_unscaled(on) for on in FRAMEWORKS if on.startswith("keras")]
    + [s for s in keras("keras2")[::2] if s.name != "own_adam_of_keras"]
    + LIBTORCH
)
