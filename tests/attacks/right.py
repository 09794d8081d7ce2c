"""Scripts that compute the same as the emitted ones, written in another way."""

from __future__ import annotations

from tests.attacks.tables import Script
from tests.attacks.wrong_torch import (
    ADAM,
    ADAMW,
    BACKWARD,
    CALL,
    LOSS,
    MAKE,
    SGD,
    STEP,
    ZERO,
    loop,
    own_adam,
)


def T(recipe: str, name: str, *changes: tuple[str, str]) -> Script:
    return Script("torch", recipe, name, changes)


RELU = "F.relu(self.fc1(x))"
CLASS = "class TinyMlp("
TORCH_MLP = [
    T("mlp", "relu_method", (RELU, "self.fc1(x).relu()")),
    T("mlp", "relu_in_place", (RELU, "self.fc1(x).relu_()")),
    T("mlp", "relu_clamp", (RELU, "self.fc1(x).clamp(min=0)")),
    T(
        "mlp",
        "relu_module",
        ("        self.fc2 =", "        self.act = nn.ReLU()\n        self.fc2 ="),
        (RELU, "self.act(self.fc1(x))"),
    ),
    T(
        "mlp",
        "fused_linear_relu",
        (
            CLASS,
            "class LinearReLU(nn.Linear):\n    def forward(self, x):\n        return F.relu(super().forward(x))\n\n\n"
            + CLASS,
        ),
        ("self.fc1 = nn.Linear(", "self.fc1 = LinearReLU("),
        (RELU, "self.fc1(x)"),
    ),
    T(
        "mlp",
        "function_of_its_own",
        (
            CLASS,
            "class Relu(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
            "        ctx.save_for_backward(x)\n        return x * (x > 0)\n\n    @staticmethod\n"
            "    def backward(ctx, g):\n        return g * (ctx.saved_tensors[0] > 0)\n\n\n"
            + CLASS,
        ),
        (RELU, "Relu.apply(self.fc1(x))"),
    ),
    T(
        "mlp",
        "functional_linear",
        ("self.fc1(x)", "F.linear(x, self.fc1.weight, self.fc1.bias)"),
    ),
    T("mlp", "matmul", ("self.fc1(x)", "(x @ self.fc1.weight.T + self.fc1.bias)")),
    T(
        "mlp",
        "einsum",
        (
            "self.fc2(x)",
            "(torch.einsum('ni,oi->no', x, self.fc2.weight) + self.fc2.bias)",
        ),
    ),
    T(
        "mlp",
        "addmm",
        (
            "return self.fc3(x)",
            "return torch.addmm(self.fc3.bias, x, self.fc3.weight.T)",
        ),
    ),
    T(
        "mlp",
        "wide_layer_in_two_halves",
        (
            "self.fc1(x)",
            "torch.cat([F.linear(x, w, b) for w, b in zip(self.fc1.weight.split(12), self.fc1.bias.split(12))], 1)",
        ),
    ),
    T(
        "mlp",
        "gelu_by_formula",
        (
            "F.gelu(self.fc2(x))",
            "(lambda h: h * (1 + torch.erf(h / 2**0.5)) / 2)(self.fc2(x))",
        ),
    ),
    T("mlp", "nll_of_log_softmax", (LOSS, "F.nll_loss(F.log_softmax(model(x), 1), y)")),
    T(
        "mlp",
        "logsumexp",
        (
            LOSS,
            "(lambda z: (z.logsumexp(1) - z.gather(1, y[:, None])[:, 0]).mean())(model(x))",
        ),
    ),
    T(
        "mlp",
        "sum_over_count",
        (LOSS, 'F.cross_entropy(model(x), y, reduction="sum") / len(y)'),
    ),
    T(
        "mlp",
        "mean_of_rows",
        (LOSS, 'F.cross_entropy(model(x), y, reduction="none").mean()'),
    ),
    T(
        "mlp",
        "one_hot_targets",
        (LOSS, "(lambda z: F.cross_entropy(z, F.one_hot(y, 5).to(z.dtype)))(model(x))"),
    ),
    T("mlp", "loss_module", (LOSS, "nn.CrossEntropyLoss()(model(x), y)")),
    T(
        "mlp",
        "two_halves_accumulated",
        (
            "    loss = " + LOSS + "\n" + BACKWARD,
            "    loss = 0\n    for part in (slice(0, 10), slice(10, 20)):\n"
            "        half = F.cross_entropy(model(x[part]), y[part]) / 2\n        half.backward()\n        loss = loss + half.detach()\n",
        ),
        ("return loss.detach()", "return loss"),
    ),
    T(
        "mlp",
        "autograd_grad",
        (
            BACKWARD,
            "    for p, g in zip(model.parameters(), torch.autograd.grad(loss, list(model.parameters()))):\n        p.grad = g\n",
        ),
    ),
    T("mlp", "zeroed_in_place", ("set_to_none=True", "set_to_none=False")),
    T("mlp", "zeroed_afterwards", (ZERO, ""), (STEP, STEP + ZERO)),
    T(
        "mlp",
        "closure",
        (
            ZERO + "    loss = " + LOSS + "\n" + BACKWARD + STEP,
            "    def closure():\n    "
            + ZERO
            + "        loss = "
            + LOSS
            + "\n        loss.backward()\n        return loss\n\n"
            "    loss = optimizer.step(closure)\n",
        ),
    ),
    T("mlp", "foreach", ("weight_decay=0.0,", "weight_decay=0.0, foreach=True,")),
    T("mlp", "fused", ("weight_decay=0.0,", "weight_decay=0.0, fused=True,")),
    T(
        "mlp",
        "two_groups",
        (
            "        model.parameters(),",
            "        [{'params': list(model.fc1.parameters())},\n"
            "         {'params': [*model.fc2.parameters(), *model.fc3.parameters()]}],",
        ),
    ),
    T(
        "mlp",
        "parameters_backwards",
        ("        model.parameters(),", "        list(model.parameters())[::-1],"),
    ),
    T(
        "mlp",
        "own_adam",
        *own_adam("p.sub_(group['lr'] * (m / c1) / ((v / c2).sqrt() + eps))"),
    ),
    T(
        "mlp",
        "layers_declared_otherwise",
        (
            "        self.fc1 = nn.Linear(20, 24)\n        self.fc2 = nn.Linear(24, 16)\n",
            "        self.fc2 = nn.Linear(24, 16)\n        self.fc1 = nn.Linear(20, 24)\n",
        ),
    ),
    T(
        "mlp",
        "functional_call",
        (
            LOSS,
            "F.cross_entropy(torch.func.functional_call(model, dict(model.named_parameters()), (x,)), y)",
        ),
    ),
    T(
        "mlp",
        "checkpointed",
        (
            "x = " + RELU,
            "x = torch.utils.checkpoint.checkpoint(lambda a: F.relu(self.fc1(a)), x, use_reentrant=False)",
        ),
        ("import torch\n", "import torch\nimport torch.utils.checkpoint\n"),
    ),
    T(
        "mlp",
        "row_by_row",
        ("self.fc2(x)", "torch.stack([self.fc2(row) for row in x])"),
    ),
    T(
        "mlp",
        "batches_by_index",
        (
            "rows = slice(first, first + BATCH_SIZE)",
            "rows = torch.arange(first, first + BATCH_SIZE)",
        ),
    ),
    T(
        "mlp",
        "data_loader",
        (
            "    while True:\n        for first in range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE):\n"
            "            rows = slice(first, first + BATCH_SIZE)\n            yield x[rows], y[rows]\n",
            "    data = torch.utils.data.TensorDataset(x, y)\n    while True:\n"
            "        yield from torch.utils.data.DataLoader(data, BATCH_SIZE, drop_last=True)\n",
        ),
    ),
    T(
        "mlp",
        "update_by_hand_in_the_gradient",
        (
            BACKWARD,
            BACKWARD
            + "    for p in model.parameters():\n        p.grad = p.grad.clone(memory_format=torch.contiguous_format)\n",
        ),
    ),
    T("mlp", "layer_called_by_name", ("self.fc1(x)", "self._modules['fc1'](x)")),
    T(
        "mlp",
        "sequential_inside",
        ("return self.fc3(x)", "return nn.Sequential(nn.Identity(), self.fc3)(x)"),
    ),
]
POOL = "F.max_pool2d(x, 3, stride=2, padding=1)"
CONV1 = "F.relu(self.bn1(self.conv1(x)))"
TORCH_CNN = [
    T(
        "cnn",
        "functional_conv",
        ("self.conv2(x)", "F.conv2d(x, self.conv2.weight, self.conv2.bias, padding=1)"),
    ),
    T(
        "cnn",
        "unfolded_conv",
        (
            "self.conv2(x)",
            "(self.conv2.weight.flatten(1) @ F.unfold(x, 3, padding=1) + self.conv2.bias[:, None]).unflatten(2, (5, 5))",
        ),
    ),
    T(
        "cnn",
        "padding_layer",
        ("kernel_size=3, padding=1)", "kernel_size=3)"),
        ("self.conv2(x)", "self.conv2(nn.ZeroPad2d(1)(x))"),
    ),
    T(
        "cnn",
        "conv_in_two_groups_of_outputs",
        (
            "self.conv2(x)",
            "torch.cat([F.conv2d(x, w, b, padding=1) for w, b in zip(self.conv2.weight.split(4), self.conv2.bias.split(4))], 1)",
        ),
    ),
    T(
        "cnn",
        "functional_batch_norm",
        (
            CONV1,
            "F.relu(F.batch_norm(self.conv1(x), self.bn1.running_mean, self.bn1.running_var,\n"
            "            self.bn1.weight, self.bn1.bias, True, 0.1, 1e-5))",
        ),
    ),
    T(
        "cnn",
        "own_batch_norm",
        (
            CONV1,
            "h = self.conv1(x)\n        mean, var = h.mean((0, 2, 3)), h.var((0, 2, 3), unbiased=False)\n"
            "        with torch.no_grad():\n            self.bn1.running_mean.lerp_(mean, 0.1)\n"
            "            n = h.numel() // h.shape[1]\n            self.bn1.running_var.lerp_(var * n / (n - 1), 0.1)\n"
            "        h = (h - mean[:, None, None]) * (var + 1e-5).rsqrt()[:, None, None]\n"
            "        x = F.relu(h * self.bn1.weight[:, None, None] + self.bn1.bias[:, None, None])",
        ),
    ),
    T("cnn", "pool_module", (POOL, "nn.MaxPool2d(3, 2, 1)(x)")),
    T(
        "cnn",
        "pool_of_padded",
        (
            POOL,
            "F.max_pool2d(F.pad(x, (1, 1, 1, 1), value=float('-inf')), 3, stride=2)",
        ),
    ),
    T("cnn", "reshape", ("x.flatten(1)", "x.reshape(len(x), -1)")),
    T(
        "cnn",
        "channels_last_inside",
        (
            "self.conv1(x)",
            "self.conv1(x.contiguous(memory_format=torch.channels_last))",
        ),
    ),
    T(
        "cnn",
        "own_sgd",
        (SGD, "OwnSGD("),
        (
            MAKE,
            "class OwnSGD(torch.optim.Optimizer):\n    def __init__(self, parameters, **settings):\n"
            "        super().__init__(parameters, settings)\n\n    @torch.no_grad()\n    def step(self):\n"
            "        for group in self.param_groups:\n            for p in group['params']:\n"
            "                s = self.state[p]\n                v = s['v'] = 0.9 * s['v'] + p.grad if s else p.grad.clone()\n"
            "                p -= group['lr'] * (p.grad + 0.9 * v)\n\n\n" + MAKE,
        ),
    ),
    T("cnn", "foreach", ("weight_decay=0.0,", "weight_decay=0.0, foreach=True,")),
    T(
        "cnn",
        "fused_conv_bn_relu",
        (
            "class TinyCnn(",
            "class ConvReLU(nn.Conv2d):\n    def forward(self, x):\n        return F.relu(super().forward(x))\n\n\nclass TinyCnn(",
        ),
        ("self.conv2 = nn.Conv2d(", "self.conv2 = ConvReLU("),
        ("x = F.relu(self.conv2(x))", "x = self.conv2(x)"),
    ),
]
ONE_HOT = "F.one_hot(x, 30).to(self.emb.weight.dtype) @ self.emb.weight"
SDPA = (
    "        h = F.scaled_dot_product_attention(\n"
    "            h.transpose(1, 2), u.transpose(1, 2), v.transpose(1, 2), attn_mask=mask\n"
    "        ).transpose(1, 2)\n"
)
TORCH_REST = [
    T("lstm", "cell_by_cell", (CALL, loop())),
    T(
        "lstm",
        "cell_function",
        (
            CALL,
            loop(
                "h, c = torch.lstm_cell(x[:, t], (h, c), self.lstm.weight_ih, self.lstm.weight_hh, "
                "self.lstm.bias, torch.zeros_like(self.lstm.bias))"
            ),
        ),
    ),
    T("lstm", "one_hot_embedding", ("self.emb(x)", ONE_HOT)),
    T("lstm", "embedding_by_index", ("self.emb(x)", "self.emb.weight[x]")),
    T(
        "lstm",
        "loss_of_transposed",
        (
            "F.cross_entropy(prediction.flatten(0, 1), y.flatten())",
            "F.cross_entropy(prediction.transpose(1, 2), y)",
        ),
    ),
    T(
        "lstm",
        "loss_step_by_step",
        (
            "F.cross_entropy(prediction.flatten(0, 1), y.flatten())",
            "sum(F.cross_entropy(prediction[:, t], y[:, t]) for t in range(6)) / 6",
        ),
    ),
    T(
        "lstm",
        "time_first",
        (
            CALL,
            "x = lstm(x.transpose(0, 1).contiguous().transpose(0, 1), self.lstm.weight_ih, self.lstm.weight_hh, self.lstm.bias)",
        ),
    ),
    T(
        "att",
        "softmax_by_hand",
        (
            SDPA,
            "        s = torch.einsum('nthd,nshd->nhts', h, u) / 8**0.5\n"
            "        s = s.masked_fill(~mask, float('-inf')).softmax(-1)\n"
            "        h = torch.einsum('nhts,nshd->nthd', s, v)\n",
        ),
    ),
    T(
        "att",
        "head_by_head",
        (
            SDPA,
            "        h = torch.stack([F.scaled_dot_product_attention(\n"
            "            h[:, :, i], u[:, :, i], v[:, :, i], attn_mask=mask[:, 0]) for i in range(2)], 2)\n",
        ),
    ),
    T(
        "att",
        "mask_added",
        (
            "attn_mask=mask",
            "attn_mask=torch.zeros(mask.shape, dtype=h.dtype).masked_fill(~mask, float('-inf'))",
        ),
    ),
    T(
        "att",
        "projections_joined",
        (
            "h = self.query(x)\n",
            "h, u, v = F.linear(x, torch.cat([self.query.weight, self.key.weight, self.value.weight]),\n"
            "            torch.cat([self.query.bias, self.key.bias, self.value.bias])).chunk(3, -1)\n",
        ),
        ("        u = self.key(x)\n", ""),
        ("        v = self.value(x)\n", ""),
    ),
    T(
        "att",
        "own_layer_norm",
        (
            "x = self.norm2(x)",
            "d = x - x.mean(-1, keepdim=True)\n"
            "        x = d * (d.square().mean(-1, keepdim=True) + 1e-5).rsqrt() * self.norm2.weight + self.norm2.bias",
        ),
    ),
    T(
        "att",
        "positions_by_lookup",
        ("self.position.weight[:6]", "self.position(torch.arange(6))"),
    ),
    T(
        "att",
        "decoder_by_matmul",
        (
            "F.linear(x, self.word.weight, self.decoder_bias)",
            "x @ self.word.weight.T + self.decoder_bias",
        ),
    ),
    T(
        "att",
        "feed_forward_step_by_step",
        (
            "h = F.gelu(self.inner(x))\n        x = x + self.outer(h)",
            "x = x + torch.stack([self.outer(F.gelu(self.inner(x[:, t]))) for t in range(6)], 1)",
        ),
    ),
    T(
        "att",
        "decay_in_the_adam_class",
        (ADAMW, ADAM),
        ("weight_decay=0.05,", "weight_decay=0.05, decoupled_weight_decay=True,"),
    ),
    T("att", "foreach", ("weight_decay=0.05,", "weight_decay=0.05, foreach=True,")),
    T(
        "drop",
        "functional",
        ("x = self.dropout1(x)", "x = F.dropout(x, 0.3, self.training)"),
        ("        self.dropout1 = nn.Dropout(p=0.3)\n", ""),
    ),
    T(
        "drop",
        "own_mask",
        (
            "x = self.dropout1(x)",
            "p = self.dropout1.p\n        x = x * (torch.rand_like(x) >= p) / (1 - p)",
        ),
    ),
    T(
        "drop",
        "bernoulli",
        (
            "x = self.dropout2(x)",
            "p = self.dropout2.p\n        x = x * torch.empty_like(x).bernoulli_(1 - p) / (1 - p)",
        ),
    ),
    T(
        "drop",
        "before_relu",
        (
            "x = F.relu(self.fc1(x))\n        x = self.dropout1(x)",
            "x = F.relu(self.dropout1(self.fc1(x)))",
        ),
    ),
    T(
        "drop",
        "one_module_class",
        (
            "x = torch.tanh(self.fc2(x))\n        x = self.dropout2(x)",
            "x = nn.Sequential(self.fc2, nn.Tanh(), self.dropout2)(x)",
        ),
    ),
    T("drop", "another_seed", ("torch.manual_seed(1)", "torch.manual_seed(20)")),
    T("drop", "foreach", ("nesterov=False,", "nesterov=False, foreach=True,")),
    T(
        "reg",
        "mse_by_hand",
        ("F.mse_loss(model(x), y)", "(model(x) - y).square().mean()"),
    ),
    T(
        "reg",
        "mse_of_columns",
        (
            "F.mse_loss(model(x), y)",
            "sum(F.mse_loss(p, t) for p, t in zip(model(x).unbind(1), y.unbind(1))) / 3",
        ),
    ),
    T(
        "reg",
        "sigmoid_by_tanh",
        ("torch.sigmoid(self.fc1(x))", "(1 + torch.tanh(self.fc1(x) / 2)) / 2"),
    ),
]


def J(recipe: str, name: str, *changes: tuple[str, str]) -> Script:
    return Script("jax", recipe, name, changes)


JLOSS = "losses = optax.softmax_cross_entropy_with_integer_labels(logits, y)"
JAX_ADAM = "return optax.adam(LEARNING_RATE, b1=0.9, b2=0.999, eps=1e-7)"
JAX = [
    J(
        "mlp",
        "log_softmax",
        (
            JLOSS,
            "losses = -jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], 1)",
        ),
    ),
    J(
        "mlp",
        "logsumexp",
        (JLOSS, "losses = jax.nn.logsumexp(logits, 1) - logits[jnp.arange(len(y)), y]"),
    ),
    J(
        "mlp",
        "one_hot",
        (JLOSS, "losses = optax.softmax_cross_entropy(logits, jax.nn.one_hot(y, 5))"),
    ),
    J(
        "mlp",
        "row_by_row",
        (
            "    logits = forward(params, x)\n",
            "    logits = jax.vmap(lambda row: forward(params, row))(x)\n",
        ),
    ),
    J(
        "mlp",
        "einsum",
        (
            "return x @ weight + bias",
            'return jnp.einsum("...i,io->...o", x, weight) + bias',
        ),
    ),
    J("mlp", "maximum", ("jax.nn.relu(x)", "jnp.maximum(x, 0)")),
    J(
        "mlp",
        "gelu_by_formula",
        (
            "jax.nn.gelu(x, approximate=False)",
            "x * (1 + jax.lax.erf(x / np.sqrt(2).astype(x.dtype))) / 2",
        ),
    ),
    J(
        "mlp",
        "parts_of_adam",
        (
            JAX_ADAM,
            "return optax.chain(\n        optax.scale_by_adam(b1=0.9, b2=0.999, eps=1e-7),\n"
            "        optax.scale_by_learning_rate(LEARNING_RATE),\n    )",
        ),
    ),
    J(
        "mlp",
        "rematerialised",
        ("jax.value_and_grad(loss_fn)", "jax.value_and_grad(jax.checkpoint(loss_fn))"),
    ),
    J("mlp", "not_compiled", ("@partial(jax.jit, donate_argnums=(0, 1))\n", "")),
    J(
        "mlp",
        "not_donated",
        ("@partial(jax.jit, donate_argnums=(0, 1))\n", "@jax.jit\n"),
    ),
    J(
        "mlp",
        "two_halves",
        (
            "    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)\n",
            "    f = jax.value_and_grad(loss_fn)\n    a, b = f(params, x[:10], y[:10]), f(params, x[10:], y[10:])\n"
            "    loss, grads = jax.tree.map(lambda u, v: (u + v) / 2, a, b)\n",
        ),
    ),
    J(
        "cnn",
        "padded_before",
        (
            'conv2d(x, params["conv1.weight"], params["conv1.bias"], stride=2, padding=1)',
            'conv2d(jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0))), params["conv1.weight"], params["conv1.bias"], stride=2)',
        ),
    ),
    J(
        "cnn",
        "mean_of_squares",
        (
            "batch_mean, batch_var = x.mean(axes), x.var(axes)",
            "batch_mean = x.mean(axes)\n    batch_var = jnp.square(x - batch_mean).mean(axes)",
        ),
    ),
    J(
        "lstm",
        "unrolled",
        (
            "    _, h = lax.scan(step, (zeros, zeros), jnp.swapaxes(gates, 0, 1))\n    return jnp.swapaxes(h, 0, 1)\n",
            "    state, outputs = (zeros, zeros), []\n    for t in range(x.shape[1]):\n"
            "        state, h = step(state, gates[:, t])\n        outputs.append(h)\n    return jnp.stack(outputs, 1)\n",
        ),
    ),
    J(
        "lstm",
        "one_hot_embedding",
        (
            'e = params["emb.weight"][x]',
            'e = jax.nn.one_hot(x, 30, dtype=params["emb.weight"].dtype) @ params["emb.weight"]',
        ),
    ),
    J(
        "att",
        "head_by_head",
        (
            "a = attention(qh, kh, vh, last)",
            "a = jnp.concatenate([attention(*(w[:, :, i : i + 1] for w in (qh, kh, vh)), last) for i in range(2)], 2)",
        ),
    ),
    J(
        "drop",
        "scaled_first",
        ("jnp.where(keep, x / (1 - rate), 0)", "keep * x / (1 - rate)"),
    ),
]


def F(recipe: str, name: str, *changes: tuple[str, str]) -> Script:
    return Script("tensorflow", recipe, name, changes)


FLOSS = (
    "losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits)"
)
TENSORFLOW = [
    F(
        "mlp",
        "one_hot",
        (
            FLOSS,
            "losses = tf.nn.softmax_cross_entropy_with_logits(tf.one_hot(y, 5, dtype=logits.dtype), logits)",
        ),
    ),
    F(
        "mlp",
        "log_softmax",
        (FLOSS, "losses = -tf.gather(tf.nn.log_softmax(logits), y, batch_dims=1)"),
    ),
    F(
        "mlp",
        "sum_over_count",
        (
            "return tf.reduce_mean(losses)",
            "return tf.reduce_sum(losses) / tf.cast(tf.size(losses), losses.dtype)",
        ),
    ),
    F("mlp", "maximum", ("tf.nn.relu(x)", "tf.maximum(x, 0)")),
    F(
        "mlp",
        "einsum",
        (
            "linear(x, self.fc2_weight, self.fc2_bias)",
            'tf.einsum("ni,io->no", x, self.fc2_weight) + self.fc2_bias',
        ),
    ),
    F(
        "mlp",
        "compiled_by_xla",
        (
            "return tf.function(functools.partial(function, *modules))",
            "return tf.function(functools.partial(function, *modules), jit_compile=True)",
        ),
    ),
    F(
        "mlp",
        "adam_of_the_paper",
        (
            "moment.assign_add((1 - BETA_1) * (g - moment))",
            "moment.assign(BETA_1 * moment + (1 - BETA_1) * g)",
        ),
    ),
    F(
        "cnn",
        "padded_before",
        (
            "x, self.conv2_weight, strides=1, padding=[[0, 0], [1, 1], [1, 1], [0, 0]]",
            'tf.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]]), self.conv2_weight, strides=1, padding="VALID"',
        ),
    ),
    F(
        "cnn",
        "own_normalisation",
        (
            "return tf.nn.batch_normalization(x, mean, var, shift, scale, eps)",
            "return (x - mean) / tf.sqrt(var + eps) * scale + shift",
        ),
    ),
    F(
        "lstm",
        "gates_apart",
        (
            "i, f, g, o = tf.split(step + tf.matmul(h, weight_hh), 4, axis=-1)",
            "i, f, g, o = (s + tf.matmul(h, w) for s, w in zip(tf.split(step, 4, -1), tf.split(weight_hh, 4, -1)))",
        ),
    ),
    F(
        "att",
        "masked_by_where",
        (
            "scores += tf.cast(after, scores.dtype) * (scores.dtype.min / 2)",
            "scores = tf.where(after, scores.dtype.min, scores)",
        ),
    ),
    F(
        "drop",
        "own_mask",
        (
            "x = tf.nn.dropout(x, rate=DROPOUT_RATE)\n",
            "x = x * tf.cast(tf.random.uniform(tf.shape(x)) >= DROPOUT_RATE, x.dtype) / (1 - DROPOUT_RATE)\n",
        ),
    ),
]


def K(
    recipe: str, name: str, *changes: tuple[str, str], on: str = "keras-tensorflow"
) -> Script:
    return Script(on, recipe, name, changes)


def keras(on: str) -> list[Script]:
    lib = "tf.nn" if on == "keras2" else "ops"
    return [
        K(
            "mlp",
            "fused_relu",
            (
                'layers.Dense(24, name="fc1")',
                'layers.Dense(24, activation="relu", name="fc1")',
            ),
            (f"h2 = {lib}.relu(h1)", "h2 = h1"),
            on=on,
        ),
        K("mlp", "relu_layer", (f"{lib}.relu(h1)", "layers.ReLU()(h1)"), on=on),
        K(
            "mlp",
            "activation_layer",
            (f"{lib}.relu(h1)", 'layers.Activation("relu")(h1)'),
            on=on,
        ),
        K(
            "mlp",
            "sequential",
            (
                "return keras.Model(x, logits",
                "tail = keras.Sequential([layers.Identity()])\n    return keras.Model(x, tail(logits)",
            ),
            on=on,
        )
        if on != "keras2"
        else K(
            "mlp",
            "linear_activation",
            (
                'layers.Dense(5, name="fc3")',
                'layers.Dense(5, activation="linear", name="fc3")',
            ),
            on=on,
        ),
        K(
            "mlp",
            "eager",
            (
                'jit_compile="auto"' if on != "keras2" else "jit_compile=False",
                "run_eagerly=True, jit_compile=False",
            ),
            on=on,
        ),
        K(
            "mlp",
            "loss_function",
            (
                '    loss = keras.losses.SparseCategoricalCrossentropy(\n        from_logits=True, reduction="sum_over_batch_size"\n    )\n',
                "    def loss(y, p):\n        return keras.losses.sparse_categorical_crossentropy(y, p, from_logits=True)\n\n",
            ),
            on=on,
        ),
        K(
            "cnn",
            "fused_relu",
            (
                'layers.Conv2D(8, (3, 3), name="conv2")',
                'layers.Conv2D(8, (3, 3), activation="relu", name="conv2")',
            ),
            (f"h5 = {lib}.relu(h4)", "h5 = h4"),
            on=on,
        ),
        K(
            "cnn",
            "padding_same_where_it_is_the_same",
            (
                "h3_padded = layers.ZeroPadding2D(((1, 1), (1, 1)))(h3)",
                "h3_padded = h3",
            ),
            (
                'layers.Conv2D(8, (3, 3), name="conv2")',
                'layers.Conv2D(8, (3, 3), padding="same", name="conv2")',
            ),
            on=on,
        ),
        K(
            "cnn",
            "reshape",
            ("layers.Flatten()(h6)", "layers.Reshape((72,))(h6)"),
            on=on,
        ),
        K(
            "cnn",
            "layers_for_all",
            (f"h3 = {lib}.relu(h2)", "h3 = layers.ReLU()(h2)"),
            on=on,
        ),
        K(
            "lstm",
            "unrolled",
            ("return_sequences=True", "return_sequences=True, unroll=True"),
            on=on,
        ),
        K(
            "att",
            "add_layer",
            (
                "r = ops.add(h3, o)" if on != "keras2" else "r = tf.add(h3, o)",
                "r = layers.Add()([h3, o])",
            ),
            on=on,
        ),
        K(
            "att",
            "fused_gelu" if on != "keras2" else "plus",
            *(
                (
                    (
                        'layers.Dense(32, name="inner")',
                        'layers.Dense(32, activation=lambda v: ops.gelu(v, approximate=False), name="inner")',
                    ),
                    ("h6 = ops.gelu(h5, approximate=False)", "h6 = h5"),
                )
                if on != "keras2"
                else (("h8 = tf.add(h4, h7)", "h8 = h4 + h7"),)
            ),
            on=on,
        ),
        K(
            "drop",
            "fused_tanh",
            (
                'layers.Dense(24, name="fc2")',
                'layers.Dense(24, activation="tanh", name="fc2")',
            ),
            ("h5 = ops.tanh(h4)" if on != "keras2" else "h5 = tf.tanh(h4)", "h5 = h4"),
            on=on,
        ),
    ]


def L(recipe: str, name: str, *changes: tuple[str, str]) -> Script:
    return Script("libtorch", recipe, name, changes)


LIBTORCH = [
    L("cnn", "reshape", ("x.flatten(1)", "x.reshape({x.size(0), -1})")),
    L(
        "cnn",
        "functional",
        (
            "torch::relu(conv2(x))",
            "F::relu(F::conv2d(x, conv2->weight, F::Conv2dFuncOptions().bias(conv2->bias).padding(1)))",
        ),
    ),
    L(
        "mlp",
        "nll",
        (
            "F::cross_entropy(model(x), y)",
            "F::nll_loss(F::log_softmax(model(x), 1), y)",
        ),
    ),
]
SCRIPTS = (
    TORCH_MLP
    + TORCH_CNN
    + TORCH_REST
    + JAX
    + TENSORFLOW
    + keras("keras-tensorflow")
    + keras("keras-torch")[::2]
    + keras("keras-jax")[1::2]
    + keras("keras2")
    + LIBTORCH
)
