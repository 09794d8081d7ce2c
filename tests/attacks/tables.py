"""Recipes, and the wrong and right scripts that edits/ makes of what is emitted for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from scripts.edits import Edit, edits, read

EDITS = Path(__file__).resolve().parent / "edits"


@dataclass(frozen=True)
class Script:
    """An edited script.

    `cause` is the pattern of causes that are true of it; a gate that names another one
    says something false. A right script has none.
    """

    framework: str
    recipe: str
    name: str
    changes: Sequence[Edit]  # of the emitted script
    cause: str = ""


MLP = """
workload tiny_mlp(x: f32[N,20], y: i32[N]) {
  h1 = linear(x; weight=fc1.weight[24,20], bias=fc1.bias[24])
  h2 = relu(h1)
  h3 = linear(h2; weight=fc2.weight[16,24], bias=fc2.bias[16])
  h4 = gelu(h3)
  logits = linear(h4; weight=fc3.weight[5,16], bias=fc3.bias[5])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
CNN = """
workload tiny_cnn(x: f32[N,3,10,10], y: i32[N]) {
  h1 = conv2d(x; weight=conv1.weight[6,3,3,3], bias=conv1.bias[6]) stride=2,2 pad=1,1,1,1
  h2 = batch_norm(h1; weight=bn1.weight[6], bias=bn1.bias[6], \
mean=bn1.running_mean[6], var=bn1.running_var[6]) eps=1e-05 momentum=0.1
  h3 = relu(h2)
  h4 = conv2d(h3; weight=conv2.weight[8,6,3,3], bias=conv2.bias[8]) stride=1,1 pad=1,1,1,1
  h5 = relu(h4)
  h6 = max_pool2d(h5) kernel=3,3 stride=2,2 pad=1,1,1,1
  h7 = flatten(h6)
  logits = linear(h7; weight=fc.weight[5,72], bias=fc.bias[5])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
LSTM = """
workload tiny_lstm(x: i32[N,6], y: i32[N,6]) {
  e = embedding(x; weight=emb.weight[30,8])
  h = lstm(e; weight_ih=lstm.weight_ih[40,8], weight_hh=lstm.weight_hh[40,10], \
bias=lstm.bias[40])
  logits = linear(h; weight=dec.weight[30,10], bias=dec.bias[30])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
ATT = """
workload tiny_att(tokens: i32[N,6], last: i32[N], labels: i32[N,6]) {
  h1 = embedding(tokens; weight=word.weight[30,16])
  h2 = position_embedding(h1; weight=position.weight[8,16])
  h3 = layer_norm(h2; weight=norm1.weight[16], bias=norm1.bias[16]) dims=1 eps=1e-5
  q = linear(h3; weight=query.weight[16,16], bias=query.bias[16])
  qh = reshape(q) shape=N,6,2,8
  k = linear(h3; weight=key.weight[16,16], bias=key.bias[16])
  kh = reshape(k) shape=N,6,2,8
  v = linear(h3; weight=value.weight[16,16], bias=value.bias[16])
  vh = reshape(v) shape=N,6,2,8
  a = attention(qh, kh, vh, last) causal=false
  ar = reshape(a) shape=N,6,16
  o = linear(ar; weight=out.weight[16,16], bias=out.bias[16])
  r = add(h3, o)
  h4 = layer_norm(r; weight=norm2.weight[16], bias=norm2.bias[16]) dims=1 eps=1e-5
  h5 = linear(h4; weight=inner.weight[32,16], bias=inner.bias[32])
  h6 = gelu(h5) form=erf
  h7 = linear(h6; weight=outer.weight[16,32], bias=outer.bias[16])
  h8 = add(h4, h7)
  logits = linear(h8; weight=word.weight[30,16], bias=decoder_bias[30])
  loss = softmax_cross_entropy(logits, labels) reduction=mean
}
"""
DROP = """
workload tiny_drop(x: f32[N,20], y: i32[N]) {
  h1 = linear(x; weight=fc1.weight[32,20], bias=fc1.bias[32])
  h2 = relu(h1)
  h3 = dropout(h2) rate=0.3
  h4 = linear(h3; weight=fc2.weight[24,32], bias=fc2.bias[24])
  h5 = tanh(h4)
  h6 = dropout(h5) rate=0.5
  logits = linear(h6; weight=fc3.weight[5,24], bias=fc3.bias[5])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
# The normalisation undoes any scale of what dropout keeps.
NORM = """
workload tiny_norm(x: f32[N,20], y: i32[N]) {
  h1 = linear(x; weight=fc1.weight[32,20], bias=fc1.bias[32])
  h2 = relu(h1)
  h3 = dropout(h2) rate=0.3
  h4 = linear(h3; weight=fc2.weight[24,32])
  h5 = batch_norm(h4; weight=bn.weight[24], bias=bn.bias[24], mean=bn.running_mean[24], var=bn.running_var[24])
  h6 = relu(h5)
  logits = linear(h6; weight=fc3.weight[5,24], bias=fc3.bias[5])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
REG = """
workload tiny_reg(x: f32[N,12], y: f32[N,3]) {
  h1 = linear(x; weight=fc1.weight[16,12], bias=fc1.bias[16])
  h2 = sigmoid(h1)
  out = linear(h2; weight=fc2.weight[3,16], bias=fc2.bias[3])
  loss = mse(out, y) reduction=mean
}
"""
WORKLOADS = {
    "mlp": MLP,
    "cnn": CNN,
    "lstm": LSTM,
    "att": ATT,
    "drop": DROP,
    "norm": NORM,
    "reg": REG,
}

# Workload and optimizer.
RECIPES = {
    "mlp": ("mlp", 'kind = "adam"\nlr = 1e-3\neps = 1e-7\n'),
    "mlp_slow": ("mlp", 'kind = "adam"\nlr = 1e-6\neps = 1e-7\n'),
    "cnn": ("cnn", 'kind = "sgd"\nlr = 0.02\nmomentum = 0.9\nnesterov = true\n'),
    "cnn_slow": ("cnn", 'kind = "sgd"\nlr = 1e-7\nmomentum = 0.9\n'),
    "lstm": ("lstm", 'kind = "rmsprop"\nlr = 1e-3\neps = 1e-6\n'),
    "att": ("att", 'kind = "adamw"\nlr = 1e-3\neps = 1e-6\nweight_decay = 0.05\n'),
    "drop": ("drop", 'kind = "sgd"\nlr = 0.1\nmomentum = 0.9\nweight_decay = 0.01\n'),
    "norm": ("norm", 'kind = "sgd"\nlr = 0.1\nmomentum = 0.9\n'),
    "reg": ("reg", 'kind = "sgd"\nlr = 0.05\nmomentum = 0.9\n'),
}

# Framework: the environment that it needs, the contender, the emitted file.
FRAMEWORKS = {
    "torch": ("torch", 'framework = "torch"', "train_torch.py"),
    "jax": ("jax", 'framework = "jax"', "train_jax.py"),
    "tensorflow": ("tensorflow", 'framework = "tensorflow"', "train_tensorflow.py"),
    "keras-tensorflow": (
        "tensorflow",
        'framework = "keras", backend = "tensorflow"',
        "train_keras_tensorflow.py",
    ),
    "keras-torch": (
        "torch",
        'framework = "keras", backend = "torch"',
        "train_keras_torch.py",
    ),
    "keras-jax": ("jax", 'framework = "keras", backend = "jax"', "train_keras_jax.py"),
    "jax-devices": (
        "jax",
        'framework = "jax", devices = 2',
        "train_jax_devices_2.py",
    ),
    "tensorflow-devices": (
        "tensorflow",
        'framework = "tensorflow", devices = 2',
        "train_tensorflow_devices_2.py",
    ),
    "keras2": ("keras2", 'framework = "keras2"', "train_keras2.py"),
    "libtorch": ("torch", 'framework = "libtorch"', "train_libtorch.cc"),
}

TITLE = re.compile(r"(wrong|right) (\w+) (\w+)(?: \(Keras ([23])\))?(?: \? (.*))?")


def scripts(kind: str, framework: str, begin: int = 0, step: int = 1) -> list[Script]:
    """Every `step`-th wrong or right one of a framework, in the order of its file.

    All that change what dropout keeps before a normalisation, which hides it.
    """
    two, keras = framework == "keras2", framework.startswith("keras")
    words = {"NN.": "tf.nn." if two else "ops.", "TF.": "tf." if two else "ops."}
    words["AUTO"] = "False" if two else '"auto"'
    file = EDITS / f"{'keras' if keras else framework}.txt"
    found = []
    number = 0
    for title, lines in read(file, words if keras else None).items():
        parts = TITLE.fullmatch(title)
        assert parts, f"{file}: {title}"
        of, recipe, name, only, cause = parts.groups()
        if of != kind:
            continue
        taken = number % step == begin or recipe == "norm"
        number += 1
        if taken and only in (None, "2" if two else "3"):
            found.append(Script(framework, recipe, name, edits(lines), cause or ""))
    return found


# Of what Keras on TensorFlow does wrong or right, the other Keras do a part.
WRONG = [
    *scripts("wrong", "torch"),
    *scripts("wrong", "jax"),
    *scripts("wrong", "tensorflow"),
    *scripts("wrong", "keras-tensorflow"),
    *scripts("wrong", "keras-torch", 0, 3),
    *scripts("wrong", "keras-jax", 1, 3),
    *scripts("wrong", "keras2", 0, 2),
    *scripts("wrong", "libtorch"),
    *scripts("wrong", "jax-devices"),
    *scripts("wrong", "tensorflow-devices"),
]
RIGHT = [
    *scripts("right", "torch"),
    *scripts("right", "jax"),
    *scripts("right", "tensorflow"),
    *scripts("right", "keras-tensorflow"),
    *scripts("right", "keras-torch", 0, 2),
    *scripts("right", "keras-jax", 1, 2),
    *scripts("right", "keras2"),
    *scripts("right", "libtorch"),
]
