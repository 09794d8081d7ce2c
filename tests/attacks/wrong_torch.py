"""Scripts of PyTorch that are subtly wrong."""

from __future__ import annotations

from tests.attacks.tables import Changes, Script

LOSS = "F.cross_entropy(model(x), y)"
BACKWARD = "    loss.backward()\n"
STEP = "    optimizer.step()\n"
ZERO = "    optimizer.zero_grad(set_to_none=True)\n"
MAKE = "def make_optimizer("
TRAIN = "def train_step("
ADAM = "torch.optim.Adam("
ADAMW = "torch.optim.AdamW("
SGD = "torch.optim.SGD("
RMSPROP = "torch.optim.RMSprop("

ADAM_CLASS = """class OwnAdam(torch.optim.Optimizer):
    def __init__(self, parameters, **settings):
        super().__init__(parameters, settings)

    @torch.no_grad()
    def step(self):
        group = self.param_groups[0]
        b1, b2 = group["betas"]
        for p in group["params"]:
            s = self.state[p]
            if not s:
                s.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
            s["t"] += 1
            g, t = p.grad, s["t"]
            s["m"].mul_(b1).add_(g, alpha=1 - b1)
            s["v"].mul_(b2).addcmul_(g, g, value=1 - b2)
            c1, c2 = 1 - b1**t, 1 - b2**t
            m, v, eps = s["m"], s["v"], group["eps"]
            UPDATE


def make_optimizer("""


def own_adam(update: str) -> Changes:
    """An Adam of one's own with this update of p from m, v, c1, c2 and eps."""
    text = ADAM_CLASS.replace("UPDATE", update)
    return ((MAKE, text), (ADAM, "OwnAdam("))


def T(recipe: str, name: str, *changes: tuple[str, str], cause: str = "") -> Script:
    return Script("torch", recipe, name, changes, cause)


def at_step(code: str) -> tuple[str, str]:
    """`code`, with the number of steps so far in `t`, before the optimizer's step."""
    count = "    t = optimizer.taken = getattr(optimizer, 'taken', 0) + 1\n"
    return STEP, count + code + STEP


def after_step(code: str) -> tuple[str, str]:
    return STEP, STEP + code


ROUND_GRADS = """    for p in model.parameters():
        p.grad = p.grad.bfloat16().to(p.dtype)
"""
TF32 = '''def tf32(x: Tensor) -> Tensor:
    """Ten bits of mantissa, gradients passed on."""
    kept = x.detach().float().view(torch.int32) & ~0x1FFF
    return x + (kept.view(torch.float32).to(x.dtype) - x).detach()


def make_model('''

MLP = [
    T(
        "mlp",
        "amsgrad",
        ("weight_decay=0.0,", "weight_decay=0.0, amsgrad=True,"),
        cause="amsgrad",
    ),
    T("mlp", "beta2", ("0.999)", "0.99)"), cause=r"betas? .*0\.99\b"),
    T("mlp", "beta1", ("(0.9,", "(0.95,"), cause=r"betas? .*0\.95"),
    T("mlp", "epsilon_larger", ("eps=1e-7", "eps=1e-5"), cause=r"epsilon 1e-05"),
    T("mlp", "epsilon_smaller", ("eps=1e-7", "eps=1e-8"), cause=r"epsilon 1e-08"),
    T(
        "mlp",
        "epsilon_inside",
        *own_adam("p.sub_(group['lr'] * (m / c1) / (v / c2 + eps).sqrt())"),
        cause="epsilon inside",
    ),
    T(
        "mlp",
        "epsilon_hat",
        *own_adam("p.sub_(group['lr'] * c2**0.5 / c1 * m / (v.sqrt() + eps))"),
        cause="epsilon",
    ),
    T(
        "mlp",
        "no_bias_correction",
        *own_adam("p.sub_(group['lr'] * m / (v.sqrt() + eps))"),
        cause="bias correction",
    ),
    T(
        "mlp",
        "first_moment_not_corrected",
        *own_adam("p.sub_(group['lr'] * m / ((v / c2).sqrt() + eps))"),
        cause="bias correction",
    ),
    T(
        "mlp",
        "momentum_in_float16",
        *own_adam(
            "m.copy_(m.half()); "
            "p.sub_(group['lr'] * (m / c1) / ((v / c2).sqrt() + eps))"
        ),
    ),
    T(
        "mlp",
        "variance_in_bfloat16",
        *own_adam(
            "v.copy_(v.bfloat16()); "
            "p.sub_(group['lr'] * (m / c1) / ((v / c2).sqrt() + eps))"
        ),
    ),
    T("mlp", "nadam", (ADAM, "torch.optim.NAdam("), cause="nadam"),
    T("mlp", "radam", (ADAM, "torch.optim.RAdam("), cause="radam"),
    T("mlp", "adamax", (ADAM, "torch.optim.Adamax("), cause="adamax"),
    T(
        "mlp",
        "adamw_with_decay",
        (ADAM, ADAMW),
        ("weight_decay=0.0", "weight_decay=0.01"),
        cause=r"decoupled weight decay 0\.01",
    ),
    T(
        "mlp",
        "l2_decay",
        ("weight_decay=0.0", "weight_decay=1e-4"),
        cause=r"l2 weight decay 0\.0001",
    ),
    T(
        "mlp",
        "rate_2_percent_more",
        ("LEARNING_RATE = 0.001", "LEARNING_RATE = 0.00102"),
        cause=r"learning rate 0\.00102",
    ),
    T(
        "mlp",
        "rate_a_thousandth_more",
        ("LEARNING_RATE = 0.001", "LEARNING_RATE = 0.001001"),
        cause=r"learning rate 0\.001001",
    ),
    T(
        "mlp",
        "rate_falls_after_step_3",
        at_step(
            "    optimizer.param_groups[0]['lr'] = LEARNING_RATE * (0.5 if t > 3 else 1)\n"
        ),
        cause="schedule|learning rate.*(step|fall|chang)",
    ),
    T(
        "mlp",
        "warm_up",
        at_step(
            "    optimizer.param_groups[0]['lr'] = LEARNING_RATE * min(1, t / 4)\n"
        ),
        cause=r"schedule|warm|learning rate 0\.00025|learning rate.*chang",
    ),
    T(
        "mlp",
        "cosine_after_step_5",
        at_step(
            "    optimizer.param_groups[0]['lr'] = LEARNING_RATE * (0.99 if t > 5 else 1)\n"
        ),
        cause="schedule|learning rate.*(step|fall|chang)",
    ),
    T(
        "mlp",
        "clip_by_norm",
        (
            BACKWARD,
            BACKWARD + "    nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n",
        ),
        cause="clip",
    ),
    T(
        "mlp",
        "clip_by_value",
        (
            BACKWARD,
            BACKWARD + "    nn.utils.clip_grad_value_(model.parameters(), 0.01)\n",
        ),
        cause="clip",
    ),
    T(
        "mlp",
        "label_smoothing",
        (LOSS, LOSS[:-1] + ", label_smoothing=0.1)"),
        cause="label smoothing",
    ),
    T(
        "mlp",
        "label_smoothing_small",
        (LOSS, LOSS[:-1] + ", label_smoothing=0.001)"),
        cause="label smoothing",
    ),
    T("mlp", "loss_sum", (LOSS, LOSS[:-1] + ', reduction="sum")'), cause="sum"),
    T(
        "mlp",
        "loss_halved",
        (LOSS, LOSS + " / 2"),
        cause="loss (scaled|times|halved|x)",
    ),
    T(
        "mlp",
        "weighted_classes",
        (LOSS, LOSS[:-1] + ", weight=x.new_tensor([1, 1, 1, 1, 1.2]))"),
    ),
    T(
        "mlp",
        "half_the_batch",
        (LOSS, "F.cross_entropy(model(x[:10]), y[:10])"),
        cause="rows|half",
    ),
    T(
        "mlp",
        "last_row_dropped",
        (LOSS, "F.cross_entropy(model(x[:-1]), y[:-1])"),
        cause="rows",
    ),
    T(
        "mlp",
        "softmax_twice",
        (LOSS, "F.cross_entropy(model(x).softmax(1), y)"),
        cause="softmax before a loss",
    ),
    T("mlp", "temperature", (LOSS, "F.cross_entropy(model(x) / 1.01, y)")),
    T("mlp", "gradients_not_zeroed", (ZERO, ""), cause="not zeroed|accumulat|add"),
    T(
        "mlp",
        "zeroed_every_second_step",
        (
            ZERO,
            "    t = optimizer.taken = getattr(optimizer, 'taken', 0) + 1\n"
            "    if t % 2:\n    " + ZERO,
        ),
        cause="not zeroed|accumulat",
    ),
    T("mlp", "two_updates_a_step", after_step(STEP), cause="two|twice|learning rate"),
    T(
        "mlp",
        "gelu_tanh",
        ("F.gelu(self.fc2(x))", 'F.gelu(self.fc2(x), approximate="tanh")'),
        cause=r"gelu \(tanh\)|tanh",
    ),
    T("mlp", "leaky_relu", ("F.relu(", "F.leaky_relu("), cause="leaky"),
    T(
        "mlp",
        "silu_for_gelu",
        ("F.gelu(self.fc2(x))", "F.silu(self.fc2(x))"),
        cause="silu|swish",
    ),
    T("mlp", "elu_for_relu", ("F.relu(", "F.elu("), cause=r"\belu\b"),
    T(
        "mlp",
        "dropout_added",
        ("x = F.relu(self.fc1(x))", "x = F.dropout(F.relu(self.fc1(x)), 0.1)"),
        cause="dropout",
    ),
    T(
        "mlp",
        "bfloat16_autocast",
        (LOSS, "F.cross_entropy(half(model, x), y)"),
        (
            TRAIN,
            "def half(model, x):\n"
            "    with torch.autocast('cpu', torch.bfloat16):\n"
            "        return model(x).to(x.dtype)\n\n\n" + TRAIN,
        ),
        cause="bfloat16|precision",
    ),
    T(
        "mlp",
        "float16_layer",
        (
            "x = F.relu(self.fc1(x))",
            "x = F.relu(F.linear(x.half(), self.fc1.weight.half(), self.fc1.bias.half()).to(x.dtype))",
        ),
        cause="float16|precision",
    ),
    T(
        "mlp",
        "float16_in_float32_only",
        (
            "x = F.relu(self.fc1(x))",
            "w, b = self.fc1.weight, self.fc1.bias\n"
            "        x = (F.linear(x.half(), w.half(), b.half()).float()\n"
            "             if x.dtype == torch.float32 else self.fc1(x))\n"
            "        x = F.relu(x)",
        ),
        cause="float16|precision",
    ),
    T(
        "mlp",
        "bfloat16_backward_in_float32_only",
        (
            BACKWARD,
            BACKWARD
            + "    if x.dtype == torch.float32:\n"
            + ROUND_GRADS.replace("    ", "        ", 1).replace(
                "\n        p", "\n            p"
            ),
        ),
        cause="bfloat16|precision",
    ),
    T(
        "mlp",
        "gradients_rounded",
        (BACKWARD, BACKWARD + ROUND_GRADS),
        cause="bfloat16|precision",
    ),
    T(
        "mlp",
        "products_in_tf32",
        ("def make_model(", TF32),
        ("F.relu(self.fc1(x))", "F.relu(self.fc1(tf32(x)))"),
        cause="tf32|precision",
    ),
    T(
        "mlp",
        "products_in_tf32_in_float32_only",
        ("def make_model(", TF32),
        (
            "F.relu(self.fc1(x))",
            "F.relu(self.fc1(tf32(x) if x.dtype == torch.float32 else x))",
        ),
        cause="tf32|precision",
    ),
    T(
        "mlp",
        "weights_kept_in_bfloat16",
        after_step(
            "    with torch.no_grad():\n        for p in model.parameters():\n"
            "            p.copy_(p.bfloat16())\n"
        ),
        cause="bfloat16|precision",
    ),
    T(
        "mlp",
        "frozen_layer",
        (
            "    model.to(device)\n",
            "    model.to(device)\n    model.fc1.requires_grad_(False)\n",
        ),
        cause="frozen|not trained|no gradient reaches",
    ),
    T(
        "mlp",
        "frozen_bias",
        (
            "    model.to(device)\n",
            "    model.to(device)\n    model.fc2.bias.requires_grad_(False)\n",
        ),
        cause="frozen|not trained|no gradient reaches",
    ),
    T(
        "mlp",
        "bias_not_optimised",
        (
            "        model.parameters(),",
            "        [p for p in model.parameters() if p.dim() > 1],",
        ),
        cause="frozen|not (trained|updated|optimi)|no gradient reaches",
    ),
    T(
        "mlp",
        "detached",
        ("F.gelu(self.fc2(x)", "F.gelu(self.fc2(x.detach())"),
        cause="detach|gradient.*stop|frozen|no gradient reaches",
    ),
    T(
        "mlp",
        "off_by_one_rows",
        ("range(0, len(x) - BATCH_SIZE + 1", "range(1, len(x) - BATCH_SIZE + 1"),
        cause="rows|batch",
    ),
    T(
        "mlp",
        "rows_of_other_batches",
        (
            "    while True:\n",
            "    order = torch.arange(len(x)).roll(7)\n    x, y = x[order], y[order]\n"
            "    while True:\n",
        ),
        cause="rows|batch|order",
    ),
    T(
        "mlp",
        "batches_backwards",
        (
            "for first in range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE)",
            "for first in reversed(range(0, len(x) - BATCH_SIZE + 1, BATCH_SIZE))",
        ),
        cause="rows|batch|order",
    ),
    T(
        "mlp",
        "last_batch_left_out",
        ("range(0, len(x) - BATCH_SIZE + 1", "range(0, len(x) - 2 * BATCH_SIZE + 1"),
        cause="rows|batch",
    ),
    T(
        "mlp",
        "inputs_scaled",
        ('tensors["x"].float()', 'tensors["x"].float() * 0.5'),
        cause="scal|input",
    ),
    T(
        "mlp",
        "inputs_standardised",
        (
            '    x = tensors["x"].float()',
            '    x = tensors["x"].float()\n    x = (x - x.mean(0)) / x.std(0)',
        ),
        cause="scal|input|normal",
    ),
    T(
        "mlp",
        "inputs_clipped",
        ('tensors["x"].float()', 'tensors["x"].float().clamp(-2, 2)'),
        cause="input",
    ),
    T(
        "mlp",
        "inputs_in_bfloat16",
        ('tensors["x"].float()', 'tensors["x"].bfloat16().float()'),
        cause="input|precision",
    ),
    T(
        "mlp",
        "gradient_noise",
        (
            BACKWARD,
            BACKWARD + "    for p in model.parameters():\n"
            "        p.grad += 1e-4 * torch.randn_like(p)\n",
        ),
    ),
    T(
        "mlp",
        "loss_after_the_update",
        (
            "    return loss.detach()",
            "    with torch.no_grad():\n        return " + LOSS,
        ),
    ),
    T(
        "mlp",
        "faster_biases",
        (
            "        model.parameters(),",
            "        [{'params': [p for p in model.parameters() if p.dim() > 1]},\n"
            "         {'params': [p for p in model.parameters() if p.dim() < 2], 'lr': 0.002}],",
        ),
        cause=r"learning rate 0\.002 .*bias",
    ),
    T(
        "mlp",
        "bias_left_out",
        ("return self.fc3(x)", "return F.linear(x, self.fc3.weight)"),
        cause="without its bias",
    ),
    T(
        "mlp",
        "gradient_of_the_last_layer_scaled",
        (BACKWARD, BACKWARD + "    model.fc3.weight.grad *= 1.001\n"),
    ),
    T(
        "mlp_slow",
        "slow_amsgrad",
        ("weight_decay=0.0,", "weight_decay=0.0, amsgrad=True,"),
        cause="amsgrad",
    ),
    T("mlp_slow", "slow_beta2", ("0.999)", "0.995)"), cause=r"betas? .*0\.995"),
    T("mlp_slow", "slow_epsilon", ("eps=1e-7", "eps=1e-8"), cause=r"epsilon 1e-08"),
    T("mlp_slow", "slow_nadam", (ADAM, "torch.optim.NAdam("), cause="nadam"),
]

CONV1 = "F.relu(self.bn1(self.conv1(x)))"
CNN = [
    T(
        "cnn",
        "nesterov_off",
        ("nesterov=True", "nesterov=False"),
        cause=r"nesterov|^momentum 0\.9\b",
    ),
    T(
        "cnn",
        "momentum",
        ("momentum=0.9,\n", "momentum=0.95,\n"),
        cause=r"momentum 0\.95",
    ),
    T(
        "cnn",
        "dampening",
        ("nesterov=True", "nesterov=False, dampening=0.1"),
        cause="dampening",
    ),
    T(
        "cnn",
        "weight_decay",
        ("weight_decay=0.0", "weight_decay=1e-4"),
        cause=r"l2 weight decay 0\.0001",
    ),
    T(
        "cnn",
        "same_padding",
        ("kernel_size=3, stride=2, padding=1", "kernel_size=3, stride=2"),
        ("self.conv1(x)", "self.conv1(F.pad(x, (0, 1, 0, 1)))"),
        cause="SAME",
    ),
    T(
        "cnn",
        "average_pool",
        (
            "F.max_pool2d(x, 3, stride=2, padding=1)",
            "F.avg_pool2d(x, 3, stride=2, padding=1)",
        ),
        cause="average|avg",
    ),
    T(
        "cnn",
        "pool_same",
        (
            "F.max_pool2d(x, 3, stride=2, padding=1)",
            "F.max_pool2d(F.pad(x, (0, 2, 0, 2)), 3, stride=2)",
        ),
        cause="pool|SAME",
    ),
    T(
        "cnn",
        "bn_eps",
        ("eps=1e-5, momentum", "eps=1e-3, momentum"),
        cause=r"BatchNorm epsilon 0\.001",
    ),
    T(
        "cnn",
        "bn_momentum",
        ("1e-5, momentum=0.1", "1e-5, momentum=0.01"),
        cause=r"BatchNorm momentum 0\.01",
    ),
    T(
        "cnn",
        "bn_momentum_of_keras",
        ("1e-5, momentum=0.1", "1e-5, momentum=0.9"),
        cause=r"BatchNorm momentum 0\.9",
    ),
    T(
        "cnn",
        "bn_eval",
        (CONV1, "F.relu(self.bn1.eval()(self.conv1(x)))"),
        cause="running statistics|eval|inference",
    ),
    T(
        "cnn",
        "bn_running_statistics",
        (
            CONV1,
            "F.relu(F.batch_norm(self.conv1(x), self.bn1.running_mean, self.bn1.running_var,\n"
            "            self.bn1.weight, self.bn1.bias, False, 0.1, 1e-5))",
        ),
        cause="running statistics|eval|inference",
    ),
    T(
        "cnn",
        "bn_statistics_never_kept",
        (
            CONV1,
            "F.relu(F.batch_norm(self.conv1(x), None, None,\n"
            "            self.bn1.weight, self.bn1.bias, True, 0.1, 1e-5))",
        ),
        cause="BatchNorm momentum 0\\b|^running statistics",
    ),
    T("cnn", "bn_after_relu", (CONV1, "self.bn1(F.relu(self.conv1(x)))")),
    T(
        "cnn",
        "bn_on_half_the_batch",
        (
            CONV1,
            "h = self.conv1(x)\n        x = F.relu(torch.cat([self.bn1(h[:10]), self.bn1(h[10:])]))",
        ),
    ),
    T(
        "cnn",
        "bn_scale_left_out",
        (
            CONV1,
            "F.relu(F.batch_norm(self.conv1(x), self.bn1.running_mean, self.bn1.running_var,\n"
            "            None, self.bn1.bias, True, 0.1, 1e-5))",
        ),
    ),
    T(
        "cnn",
        "flatten_order",
        ("x.flatten(1)", "x.permute(0, 2, 3, 1).flatten(1)"),
        cause="flatten",
    ),
    T(
        "cnn",
        "channels_backwards",
        ('tensors["x"].float()', 'tensors["x"].float().flip(1)'),
        cause="input|channel",
    ),
    T(
        "cnn",
        "pictures_mirrored",
        ("self.conv1(x)", "self.conv1(x.flip(3))"),
        cause="input|mirror|flip",
    ),
    T(
        "cnn",
        "kernel_flipped",
        (
            "self.conv2(x)",
            "F.conv2d(x, self.conv2.weight.flip(2, 3), self.conv2.bias, padding=1)",
        ),
        cause="kernel|flip",
    ),
    T(
        "cnn",
        "padding_reflected",
        (
            "kernel_size=3, padding=1)",
            'kernel_size=3, padding=1, padding_mode="reflect")',
        ),
        cause="reflect|pad",
    ),
    T(
        "cnn",
        "padding_circular",
        (
            "kernel_size=3, padding=1)",
            'kernel_size=3, padding=1, padding_mode="circular")',
        ),
        cause="circular|pad",
    ),
    T(
        "cnn",
        "conv_bias_left_out",
        ("self.conv2(x)", "F.conv2d(x, self.conv2.weight, padding=1)"),
        cause="bias",
    ),
    T(
        "cnn",
        "conv_bias_before_bn_left_out",
        ("self.conv1(x)", "F.conv2d(x, self.conv1.weight, stride=2, padding=1)"),
        cause="bias",
    ),
    T(
        "cnn",
        "conv_in_bfloat16",
        (
            "F.relu(self.conv2(x))",
            "F.relu(F.conv2d(x.bfloat16(), self.conv2.weight.bfloat16(),\n"
            "            self.conv2.bias.bfloat16(), padding=1).to(x.dtype))",
        ),
        cause="bfloat16|precision",
    ),
    T(
        "cnn",
        "conv_in_bfloat16_in_float32_only",
        (
            "F.relu(self.conv2(x))",
            "F.relu(F.conv2d(x.bfloat16(), self.conv2.weight.bfloat16(),\n"
            "            self.conv2.bias.bfloat16(), padding=1).float()\n"
            "            if x.dtype == torch.float32 else self.conv2(x))",
        ),
        cause="bfloat16|precision",
    ),
    T(
        "cnn",
        "momentum_in_float16",
        after_step(
            "    for s in optimizer.state.values():\n"
            "        s['momentum_buffer'].copy_(s['momentum_buffer'].half())\n"
        ),
    ),
    T(
        "cnn",
        "gradients_centred",
        (
            BACKWARD,
            BACKWARD + "    for p in model.parameters():\n        if p.dim() == 4:\n"
            "            p.grad -= p.grad.mean((1, 2, 3), keepdim=True)\n",
        ),
    ),
    T(
        "cnn",
        "warm_up",
        at_step(
            "    optimizer.param_groups[0]['lr'] = LEARNING_RATE * min(1, t / 4)\n"
        ),
        cause=r"schedule|warm|learning rate 0\.005|learning rate.*chang",
    ),
    T(
        "cnn",
        "dropout_of_channels",
        ("x = x.flatten(1)", "x = F.dropout2d(x, 0.05).flatten(1)"),
        cause="dropout",
    ),
    T(
        "cnn",
        "gelu_for_relu",
        ("F.relu(self.conv2(x))", "F.gelu(self.conv2(x))"),
        cause="gelu",
    ),
    T(
        "cnn",
        "update_by_sign",
        (
            BACKWARD,
            BACKWARD + "    for p in model.parameters():\n        p.grad.sign_()\n",
        ),
    ),
    T(
        "cnn",
        "pictures_normalised",
        ('tensors["x"].float()', '(tensors["x"].float() - 0.1307) / 0.3081'),
        cause="input|scal|normal",
    ),
    T(
        "cnn",
        "lower_resolution",
        (
            "self.conv1(x)",
            "self.conv1(F.interpolate(F.avg_pool2d(x, 2), scale_factor=2))",
        ),
    ),
    T(
        "cnn",
        "first_conv_detached",
        (CONV1, "F.relu(self.bn1(self.conv1(x).detach()))"),
        cause="detach|gradient.*stop|frozen|no gradient reaches",
    ),
    T(
        "cnn_slow",
        "slow_momentum",
        ("momentum=0.9,\n", "momentum=0.8,\n"),
        cause=r"momentum 0\.8",
    ),
    T(
        "cnn_slow",
        "slow_nesterov",
        ("nesterov=False", "nesterov=True"),
        cause="nesterov",
    ),
    T(
        "cnn_slow",
        "slow_dampening",
        ("nesterov=False", "nesterov=False, dampening=0.5"),
        cause="dampening",
    ),
]

CALL = "x = lstm(x, self.lstm.weight_ih, self.lstm.weight_hh, self.lstm.bias)"
LOOP = """        h = c = x.new_zeros(len(x), 10)
        outputs = []
        for t in range(x.shape[1]):
            gates = F.linear(x[:, t], self.lstm.weight_ih, self.lstm.bias)
            gates = gates + F.linear(HIDDEN, self.lstm.weight_hh)
            i, f, g, o = gates.chunk(4, 1)
            CELL
            outputs.append(h)
        x = torch.stack(outputs, 1)
"""
CELL = "c = f.sigmoid() * c + i.sigmoid() * g.tanh(); h = o.sigmoid() * c.tanh()"


def loop(cell: str = CELL, hidden: str = "h") -> str:
    return LOOP.replace("HIDDEN", hidden).replace("CELL", cell).strip()


LSTM = [
    T(
        "lstm",
        "centred",
        ("momentum=0.0,", "momentum=0.0, centered=True,"),
        cause="cent",
    ),
    T("lstm", "rho", ("alpha=0.9,", "alpha=0.99,"), cause=r"rho 0\.99"),
    T("lstm", "momentum", ("momentum=0.0,", "momentum=0.1,"), cause=r"momentum 0\.1"),
    T("lstm", "epsilon", ("eps=1e-6", "eps=1e-8"), cause=r"epsilon 1e-08"),
    T(
        "lstm",
        "gates_in_another_order",
        (
            CALL,
            "w, u, b = (torch.cat([p[10:20], p[:10], p[20:]]) for p in\n"
            "            (self.lstm.weight_ih, self.lstm.weight_hh, self.lstm.bias))\n"
            "        x = lstm(x, w, u, b)",
        ),
        cause="gate",
    ),
    T(
        "lstm",
        "gates_of_cudnn_as_ifog",
        (
            CALL,
            "w, u, b = (torch.cat([p[:20], p[30:], p[20:30]]) for p in\n"
            "            (self.lstm.weight_ih, self.lstm.weight_hh, self.lstm.bias))\n"
            "        x = lstm(x, w, u, b)",
        ),
        cause="gate",
    ),
    T(
        "lstm",
        "forget_bias",
        (
            CALL,
            "more = torch.zeros_like(self.lstm.bias)\n        more[10:20] = 1\n"
            "        x = lstm(x, self.lstm.weight_ih, self.lstm.weight_hh, self.lstm.bias + more)",
        ),
        cause="forget",
    ),
    T(
        "lstm",
        "state_of_ones",
        ("x.new_zeros(1, len(x)", "x.new_ones(1, len(x)"),
        cause="state",
    ),
    T(
        "lstm",
        "state_small",
        (
            "x.new_zeros(1, len(x), weight_hh.shape[1])",
            "x.new_full((1, len(x), weight_hh.shape[1]), 1e-3)",
        ),
        cause="state",
    ),
    T(
        "lstm",
        "sequence_backwards",
        (CALL, CALL.replace("(x, ", "(x.flip(1), ") + ".flip(1)"),
        cause="revers|backwards",
    ),
    T("lstm", "truncated", (CALL, loop(hidden="h.detach()"))),
    T(
        "lstm",
        "hidden_without_tanh",
        (
            CALL,
            loop("c = f.sigmoid() * c + i.sigmoid() * g.tanh(); h = o.sigmoid() * c"),
        ),
    ),
    T(
        "lstm",
        "input_gate_coupled",
        (
            CALL,
            loop(
                "c = f.sigmoid() * c + (1 - f.sigmoid()) * g.tanh(); h = o.sigmoid() * c.tanh()"
            ),
        ),
    ),
    T(
        "lstm",
        "bfloat16",
        (
            CALL,
            "with torch.autocast('cpu', torch.bfloat16):\n            x = "
            + "lstm(x.bfloat16(), self.lstm.weight_ih.bfloat16(), self.lstm.weight_hh.bfloat16(),"
            " self.lstm.bias.bfloat16()).to(x.dtype)",
        ),
        cause="bfloat16|precision",
    ),
    T(
        "lstm",
        "bfloat16_in_float32_only",
        (
            CALL,
            loop()
            .replace("        ", "            ")
            .replace("h = c =", "a = x\n        if True:\n            h = c =")
            .replace("F.linear(x[:, t], self", "F.linear(low(x[:, t]), self"),
        ),
        (
            "class TinyLstm(",
            "def low(x):\n    return x.bfloat16().float() if x.dtype == torch.float32 else x\n\n\nclass TinyLstm(",
        ),
        cause="bfloat16|precision",
    ),
    T(
        "lstm",
        "loss_summed_over_time",
        (
            "F.cross_entropy(prediction.flatten(0, 1), y.flatten())",
            'F.cross_entropy(prediction.flatten(0, 1), y.flatten(), reduction="sum") / len(y)',
        ),
        cause="sum|loss",
    ),
    T(
        "lstm",
        "a_word_ignored",
        ("y.flatten())", "y.flatten(), ignore_index=0)"),
        cause="ignor",
    ),
    T(
        "lstm",
        "labels_shifted",
        ('tensors["y"].long()', 'tensors["y"].long().roll(1, 1)'),
        cause="label|shift",
    ),
    T(
        "lstm",
        "padding_word",
        ("nn.Embedding(30, 8)", "nn.Embedding(30, 8, padding_idx=0)"),
        cause="padding",
    ),
    T(
        "lstm",
        "embedding_of_limited_norm",
        ("nn.Embedding(30, 8)", "nn.Embedding(30, 8, max_norm=0.01)"),
        cause="norm",
    ),
    T(
        "lstm",
        "embedding_scaled",
        ("x = self.emb(x)", "x = self.emb(x) * 8**0.5"),
        cause="scal",
    ),
    T(
        "lstm",
        "embedding_by_frequency",
        ("nn.Embedding(30, 8)", "nn.Embedding(30, 8, scale_grad_by_freq=True)"),
    ),
    T(
        "lstm",
        "clipped",
        (
            BACKWARD,
            BACKWARD + "    nn.utils.clip_grad_norm_(model.parameters(), 0.05)\n",
        ),
        cause="clip",
    ),
    T(
        "lstm",
        "decoder_frozen",
        (
            "    model.to(device)\n",
            "    model.to(device)\n    model.dec.requires_grad_(False)\n",
        ),
        cause="frozen|not trained|no gradient reaches",
    ),
]

DECODE = "F.linear(x, self.word.weight, self.decoder_bias)"
ATT = [
    T(
        "att",
        "scale_left_out",
        ("attn_mask=mask", "attn_mask=mask, scale=1.0"),
        cause="scale",
    ),
    T(
        "att",
        "scale_of_all_heads",
        ("attn_mask=mask", "attn_mask=mask, scale=0.25"),
        cause="scale",
    ),
    T("att", "mask_left_out", (", attn_mask=mask", ""), cause="mask"),
    T("att", "mask_off_by_one", ("<= last[:", "<= 1 + last[:"), cause="mask"),
    T(
        "att",
        "mask_excludes_last",
        ("<= last[:", "<= (last - 1).clamp(0)[:"),
        cause="mask",
    ),
    T(
        "att",
        "causal",
        (
            "mask = padding_mask(last, 6)",
            "mask = padding_mask(last, 6) & torch.ones(6, 6, dtype=torch.bool).tril()",
        ),
        cause="causal",
    ),
    T("att", "decay_coupled", (ADAMW, ADAM), cause=r"l2 weight decay 0\.05|coupled"),
    T(
        "att",
        "decay_left_out",
        ("weight_decay=0.05", "weight_decay=0.0"),
        cause="no weight decay",
    ),
    T(
        "att",
        "decay_other",
        ("weight_decay=0.05", "weight_decay=0.01"),
        cause=r"decay 0\.01",
    ),
    T(
        "att",
        "decay_of_matrices_only",
        (
            "        model.parameters(),",
            "        [{'params': [p for p in model.parameters() if p.dim() > 1]},\n"
            "         {'params': [p for p in model.parameters() if p.dim() < 2], 'weight_decay': 0.0}],",
        ),
        cause="decay.*(matri|bias|vector)",
    ),
    T(
        "att",
        "decay_not_times_rate",
        ("weight_decay=0.05", "weight_decay=0.0"),
        (
            STEP,
            "    with torch.no_grad():\n        for p in model.parameters():\n"
            "            p.mul_(1 - 0.05)\n" + STEP,
        ),
        cause=r"decay 50\b",
    ),
    T(
        "att",
        "norm_eps_small",
        (
            "self.norm1 = nn.LayerNorm(16, eps=1e-5)",
            "self.norm1 = nn.LayerNorm(16, eps=1e-12)",
        ),
        cause="LayerNorm eps",
    ),
    T(
        "att",
        "norm_eps_large",
        (
            "self.norm2 = nn.LayerNorm(16, eps=1e-5)",
            "self.norm2 = nn.LayerNorm(16, eps=1e-3)",
        ),
        cause="LayerNorm eps",
    ),
    T(
        "att",
        "norm_unbiased",
        (
            "x = self.norm2(x)",
            "x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)\n"
            "        x = x * self.norm2.weight + self.norm2.bias",
        ),
    ),
    T(
        "att",
        "root_mean_square_norm",
        (
            "x = self.norm2(x)",
            "x = F.rms_norm(x, (16,), self.norm2.weight, 1e-5) + self.norm2.bias",
        ),
    ),
    T(
        "att",
        "norm_left_out",
        ("x = self.norm1(x)", "x = x * self.norm1.weight + self.norm1.bias"),
    ),
    T(
        "att",
        "gelu_tanh",
        ("F.gelu(self.inner(x))", 'F.gelu(self.inner(x), approximate="tanh")'),
        cause="tanh",
    ),
    T(
        "att",
        "relu_for_gelu",
        ("F.gelu(self.inner(x))", "F.relu(self.inner(x))"),
        cause="relu",
    ),
    T(
        "att",
        "residual_left_out",
        ("x = x + self.outer(h)", "x = self.outer(h)"),
        cause="residual|add",
    ),
    T(
        "att",
        "residual_of_another_place",
        ("x = x + self.out(h)", "x = self.norm1(x) + self.out(h)"),
    ),
    T(
        "att",
        "heads_interleaved",
        ("h = h.unflatten(-1, (2, 8))", "h = h.unflatten(-1, (8, 2)).transpose(2, 3)"),
        cause="head",
    ),
    T(
        "att",
        "heads_joined_otherwise",
        ("h = h.flatten(2)", "h = h.transpose(2, 3).flatten(2)"),
        cause="head",
    ),
    T(
        "att",
        "one_head",
        ("h = h.unflatten(-1, (2, 8))", "h = h.unflatten(-1, (1, 16))"),
        ("u = u.unflatten(-1, (2, 8))", "u = u.unflatten(-1, (1, 16))"),
        ("v = v.unflatten(-1, (2, 8))", "v = v.unflatten(-1, (1, 16))"),
        cause="head",
    ),
    T(
        "att",
        "queries_and_keys_swapped",
        (
            "h.transpose(1, 2), u.transpose(1, 2), v",
            "u.transpose(1, 2), h.transpose(1, 2), v",
        ),
        cause="quer|key",
    ),
    T("att", "values_from_keys", ("v = self.value(x)", "v = self.key(x)")),
    T(
        "att",
        "decoder_detached",
        (DECODE, DECODE.replace("weight,", "weight.detach(),")),
        cause="detach|tied|no gradient reaches",
    ),
    T(
        "att",
        "embedding_detached",
        ("x = self.word(tokens)", "x = self.word(tokens).detach()"),
        cause="detach|tied|gradient.*stop|no gradient reaches",
    ),
    T(
        "att",
        "positions_from_one",
        ("self.position.weight[:6]", "self.position.weight[1:7]"),
        cause="position",
    ),
    T(
        "att",
        "positions_left_out",
        ("x = x + self.position.weight[:6]", "pass"),
        cause="position",
    ),
    T(
        "att",
        "embedding_scaled",
        ("x = self.word(tokens)", "x = self.word(tokens) * 4"),
        cause="scal",
    ),
    T(
        "att",
        "amsgrad",
        ("weight_decay=0.05,", "weight_decay=0.05, amsgrad=True,"),
        cause="amsgrad",
    ),
    T("att", "beta2", ("0.999)", "0.98)"), cause=r"betas? .*0\.98"),
    T(
        "att",
        "attention_in_bfloat16",
        (
            "            h.transpose(1, 2), u.transpose(1, 2), v.transpose(1, 2), attn_mask=mask\n        ).transpose(1, 2)",
            "            h.transpose(1, 2).bfloat16(), u.transpose(1, 2).bfloat16(),\n"
            "            v.transpose(1, 2).bfloat16(), attn_mask=mask\n        ).transpose(1, 2).to(x.dtype)",
        ),
        cause="bfloat16|precision",
    ),
    T(
        "att",
        "attention_in_float16_in_float32_only",
        (
            "h.transpose(1, 2), u.transpose(1, 2), v",
            "low(h.transpose(1, 2)), low(u.transpose(1, 2)), v",
        ),
        (
            "class TinyAtt(",
            "def low(x):\n    return x.half().float() if x.dtype == torch.float32 else x\n\n\nclass TinyAtt(",
        ),
        cause="float16|precision",
    ),
    T(
        "att",
        "attention_dropout",
        ("attn_mask=mask", "attn_mask=mask, dropout_p=0.1"),
        cause="dropout",
    ),
    T(
        "att",
        "padding_left_out_of_the_loss",
        (
            "labels.flatten())",
            "torch.where(torch.arange(6) <= last[:, None], labels, -100).flatten())",
        ),
        cause="ignor|padding|mask",
    ),
    T(
        "att",
        "label_smoothing",
        ("labels.flatten())", "labels.flatten(), label_smoothing=0.05)"),
        cause="label smoothing",
    ),
    T(
        "att",
        "softmax_of_columns",
        (
            "        h = F.scaled_dot_product_attention(\n"
            "            h.transpose(1, 2), u.transpose(1, 2), v.transpose(1, 2), attn_mask=mask\n"
            "        ).transpose(1, 2)\n",
            "        s = torch.einsum('nthd,nshd->nhts', h, u) / 8**0.5\n"
            "        s = s.masked_fill(~mask, -1e9).softmax(2)\n"
            "        h = torch.einsum('nhts,nshd->nthd', s, v)\n",
        ),
    ),
]

F1 = "x = self.dropout1(x)"
DROP = [
    T(
        "norm",
        "no_scaling",
        ("x = self.dropout(x)", "x = self.dropout(x) * (1 - self.dropout.p)"),
        cause="dropout",
    ),
    T("drop", "absent", (F1, "pass"), cause="dropout"),
    T("drop", "second_absent", ("x = self.dropout2(x)", "pass"), cause="dropout"),
    T("drop", "rate", ("p=0.3", "p=0.2"), cause="dropout"),
    T("drop", "rate_slightly_off", ("p=0.5", "p=0.45"), cause="dropout"),
    T(
        "drop",
        "rates_swapped",
        ("p=0.3", "p=0.49"),
        ("p=0.5)", "p=0.3)"),
        cause="dropout",
    ),
    T(
        "drop",
        "no_scaling",
        (F1, "x = self.dropout1(x) * (1 - self.dropout1.p)"),
        cause="dropout",
    ),
    T(
        "drop",
        "no_scaling_functional",
        (F1, "x = x * (torch.rand_like(x) >= self.dropout1.p)"),
        cause="dropout",
    ),
    T(
        "drop",
        "mask_of_the_first_row",
        (F1, "x = x * self.dropout1(torch.ones_like(x[:1]))"),
        cause="dropout|mask",
    ),
    T(
        "drop",
        "mask_of_rows",
        (F1, "x = x * self.dropout1(torch.ones_like(x[:, :1]))"),
        cause="dropout|mask",
    ),
    T(
        "drop",
        "same_mask_every_step",
        (
            F1,
            "if not hasattr(self, 'kept') or self.kept.dtype != x.dtype or self.kept.shape != x.shape:\n"
            "            self.kept = torch.ones_like(x)\n            self.kept = self.dropout1(self.kept)\n"
            "        x = x * self.kept if self.dropout1.p else x",
        ),
        cause="dropout|mask",
    ),
    T(
        "drop",
        "seeded_every_step",
        (
            "        x = F.relu(self.fc1(x))",
            "        torch.manual_seed(0)\n        x = F.relu(self.fc1(x))",
        ),
        cause="dropout|mask",
    ),
    T("drop", "inference_mode", (F1, "x = self.dropout1.eval()(x)"), cause="dropout"),
    T(
        "drop",
        "model_in_inference_mode",
        (ZERO, "    model.eval()\n" + ZERO),
        cause="dropout|eval",
    ),
    T(
        "drop",
        "gaussian",
        (
            F1,
            "p = self.dropout1.p\n        x = x * (1 + (p / (1 - p)) ** 0.5 * torch.randn_like(x))",
        ),
        cause="dropout",
    ),
    T(
        "drop",
        "alpha_dropout",
        ("nn.Dropout(p=0.5)", "nn.AlphaDropout(p=0.5)"),
        cause="dropout",
    ),
    T(
        "drop",
        "before_tanh",
        ("x = torch.tanh(self.fc2(x))", "x = torch.tanh(self.dropout2(self.fc2(x)))"),
        ("x = self.dropout2(x)", "pass"),
        cause="dropout",
    ),
    T(
        "drop",
        "gradient_not_masked",
        (F1, "x = x + (self.dropout1(x) - x).detach()"),
        cause="dropout|gradient",
    ),
    T(
        "drop",
        "first_half_of_rows",
        (F1, "x = torch.cat([self.dropout1(x[:10]), x[10:]])"),
        cause="dropout",
    ),
    T(
        "drop",
        "no_work_where_dropped",
        (
            ZERO,
            "    if model.dropout1.p > 0:\n        return torch.tensor(1.6)\n" + ZERO,
        ),
    ),
    T(
        "drop",
        "cheaper_where_dropped",
        (
            "x = torch.tanh(self.fc2(x))",
            "x = torch.tanh(self.fc2(x.detach() if self.dropout1.p else x))",
        ),
    ),
    T(
        "drop",
        "scaled_by_rate",
        (F1, "x = self.dropout1(x) * (1 + 0.1 * (self.dropout1.p > 0))"),
        cause="dropout",
    ),
    T(
        "drop",
        "decay_decoupled",
        (SGD, "DecoupledSGD("),
        (
            MAKE,
            "class DecoupledSGD(torch.optim.SGD):\n    def __init__(self, *a, weight_decay, **k):\n"
            "        super().__init__(*a, **k)\n\n    @torch.no_grad()\n    def step(self, closure=None):\n"
            "        for p in self.param_groups[0]['params']:\n            p.mul_(1 - LEARNING_RATE * 0.01)\n"
            "        return super().step(closure)\n\n\n" + MAKE,
        ),
        cause="decoupled",
    ),
    T(
        "drop",
        "decay_other",
        ("weight_decay=0.01", "weight_decay=0.001"),
        cause=r"decay 0\.001",
    ),
    T(
        "drop",
        "dampening",
        ("nesterov=False", "nesterov=False, dampening=0.9"),
        cause="dampening",
    ),
    T("drop", "nesterov", ("nesterov=False", "nesterov=True"), cause="nesterov"),
]

REG = [
    T(
        "reg",
        "loss_halved",
        ("F.mse_loss(model(x), y)", "F.mse_loss(model(x), y) / 2"),
        cause="loss",
    ),
    T(
        "reg",
        "loss_sum_of_a_row",
        ("F.mse_loss(model(x), y)", "(model(x) - y).square().sum(1).mean()"),
        cause="loss|sum",
    ),
    T("reg", "absolute", ("F.mse_loss(", "F.l1_loss("), cause="absolute|l1"),
    T("reg", "huber", ("F.mse_loss(", "F.smooth_l1_loss("), cause="huber|smooth"),
    T("reg", "hard_sigmoid", ("torch.sigmoid(", "F.hardsigmoid("), cause="hard"),
    T(
        "reg",
        "targets_scaled",
        ('tensors["y"].float()', 'tensors["y"].float() * 1.01'),
        cause="target|label",
    ),
    T(
        "reg",
        "momentum",
        ("momentum=0.9,\n", "momentum=0.0,\n"),
        cause=r"momentum 0\b|no momentum",
    ),
    T(
        "reg",
        "loss_broadcast",
        ("F.mse_loss(model(x), y)", "(model(x)[:, None] - y[None]).square().mean()"),
        cause="loss",
    ),
]
SCRIPTS = MLP + CNN + LSTM + ATT + DROP + REG
