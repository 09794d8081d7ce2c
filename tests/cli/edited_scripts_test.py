"""Edited scripts through `bakeoff parity`: copies pass, subtly wrong ones are refused.

python3 -m tests.cli.edited_scripts_test build/dev/bakeoff Torch
"""

from __future__ import annotations

import re
import unittest
from dataclasses import dataclass

from tests.cli import support

CNN = """
workload tiny_cnn(x: f32[N,3,10,10], y: i32[N]) {
  h1 = conv2d(x; weight=conv1.weight[8,3,3,3], bias=conv1.bias[8]) stride=2,2 pad=1,1,1,1
  h2 = batch_norm(h1; weight=bn1.weight[8], bias=bn1.bias[8], \
mean=bn1.running_mean[8], var=bn1.running_var[8]) eps=1e-05 momentum=0.1
  h3 = relu(h2)
  h4 = flatten(h3)
  logits = linear(h4; weight=fc.weight[5,200], bias=fc.bias[5])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
RMSPROP = 'kind = "rmsprop"\nlr = 1e-3\neps = 1e-4\n'

# What the gate says, as patterns.
FIRST_UPDATE = r"update/conv1\.weight"
SAME_WORDS = "matches: conv2d padded as SAME"
INSIDE_WORDS = r"matches: epsilon inside the root: sqrt\(v \+ eps\)"
SOFTMAX_WORDS = "matches: softmax before a loss that takes logits"


@dataclass(frozen=True)
class Edit:
    """A change of an emitted script, the first tensor it moves, and the explanation."""

    name: str
    changes: tuple[tuple[str, str], ...]
    at: str
    why: str


TORCH_INSIDE = """class InsideRMSprop(torch.optim.Optimizer):
    def __init__(self, parameters, **settings):
        super().__init__(parameters, settings)

    @torch.no_grad()
    def step(self):
        group = self.param_groups[0]
        for p in group["params"]:
            v = self.state[p].setdefault("v", torch.zeros_like(p))
            v.mul_(group["alpha"]).addcmul_(p.grad, p.grad, value=1 - group["alpha"])
            p.addcdiv_(p.grad, (v + group["eps"]).sqrt(), value=-group["lr"])


def make_optimizer("""

TORCH = [
    Edit(
        "eps_inside",
        (
            ("def make_optimizer(", TORCH_INSIDE),
            ("torch.optim.RMSprop(", "InsideRMSprop("),
        ),
        FIRST_UPDATE,
        INSIDE_WORDS,
    ),
    Edit(
        "same_padding",
        (
            ("stride=2, padding=1", "stride=2, padding=0"),
            ("self.conv1(x)", "self.conv1(F.pad(x, (0, 1, 0, 1)))"),
        ),
        "output of conv1",
        SAME_WORDS,
    ),
    Edit(
        "bn_momentum",
        (("eps=1e-5, momentum=0.1", "eps=1e-5, momentum=0.01"),),
        r"buffer/bn1\.running_mean",
        r"matches: BatchNorm momentum 0\.01",
    ),
    Edit(
        "bn_eps",
        (("eps=1e-5, momentum=0.1", "eps=1e-3, momentum=0.1"),),
        "output of bn1",
        r"matches: BatchNorm epsilon 0\.001",
    ),
    Edit(
        "softmax",
        (("F.cross_entropy(model(x), y)", "F.cross_entropy(model(x).softmax(1), y)"),),
        "loss",
        SOFTMAX_WORDS,
    ),
    Edit(
        "bias_not_added",
        (("return self.fc(x)", "return F.linear(x, self.fc.weight)"),),
        "prediction",
        "matches: linear layer without its bias",
    ),
    Edit(
        "learning_rate",
        (("LEARNING_RATE = 0.001", "LEARNING_RATE = 0.002"),),
        FIRST_UPDATE,
        r"matches: learning rate 0\.002",
    ),
    Edit(
        "odd_learning_rate",
        (("LEARNING_RATE = 0.001", "LEARNING_RATE = 0.0013"),),
        FIRST_UPDATE,
        r"matches: learning rate 0\.0013",
    ),
    Edit(
        "rho",
        (("alpha=0.9", "alpha=0.99"),),
        FIRST_UPDATE,
        r"matches: rho 0\.99",
    ),
    Edit(
        "gelu",
        (("F.relu(", "F.gelu("),),
        "output of fc",
        r"matches: gelu \(erf\) instead of relu",
    ),
    Edit(
        "loss_sum",
        (
            (
                "F.cross_entropy(model(x), y)",
                'F.cross_entropy(model(x), y, reduction="sum")',
            ),
        ),
        "loss",
        "matches: the loss reduced by sum",
    ),
]

JAX = [
    Edit(
        "eps_inside",
        (("eps_in_sqrt=False", "eps_in_sqrt=True"),),
        FIRST_UPDATE,
        INSIDE_WORDS,
    ),
    Edit(
        "same_padding",
        (("padding=((padding, padding), (padding, padding))", 'padding="SAME"'),),
        "prediction",
        SAME_WORDS,
    ),
    Edit(
        "bn_momentum",
        (("momentum=0.1", "momentum=0.9"),),
        r"buffer/bn1\.running_mean",
        r"matches: BatchNorm momentum 0\.9",
    ),
    Edit(
        "softmax",
        (("integer_labels(logits, y)", "integer_labels(jax.nn.softmax(logits), y)"),),
        "loss",
        SOFTMAX_WORDS,
    ),
    Edit(
        "bias_not_added",
        (("return x @ weight + bias", "return x @ weight"),),
        "prediction",
        "matches: linear layer without its bias",
    ),
    Edit(
        "gelu",
        (("jax.nn.relu(x)", "jax.nn.gelu(x)"),),
        "prediction",
        r"matches: gelu \(tanh\) instead of relu",
    ),
]

TENSORFLOW = [
    Edit(
        "eps_inside",
        (("tf.sqrt(square) + EPSILON", "tf.sqrt(square + EPSILON)"),),
        FIRST_UPDATE,
        INSIDE_WORDS,
    ),
    Edit(
        "same_padding",
        (("padding=[[0, 0], [1, 1], [1, 1], [0, 0]]", 'padding="SAME"'),),
        "prediction",
        SAME_WORDS,
    ),
    Edit(
        "bn_eps",
        (("eps=1e-5", "eps=1e-3"),),
        "prediction",
        r"matches: BatchNorm epsilon 0\.001",
    ),
    Edit(
        "softmax",
        (("logits=logits", "logits=tf.nn.softmax(logits)"),),
        "loss",
        SOFTMAX_WORDS,
    ),
]

KERAS = [
    Edit(
        "eps_inside",
        (
            (
                "optimizer = RMSpropEpsOutside(",
                "optimizer = keras.optimizers.RMSprop(",
            ),
        ),
        FIRST_UPDATE,
        INSIDE_WORDS,
    ),
    Edit(
        "same_padding",
        (
            ("x_padded = layers.ZeroPadding2D(((1, 1), (1, 1)))(x)", "x_padded = x"),
            ("strides=(2, 2), name", 'strides=(2, 2), padding="same", name'),
        ),
        "output of conv1",
        SAME_WORDS,
    ),
    Edit(
        "bn_momentum",
        (("momentum=0.9, epsilon=1e-5", "momentum=0.99, epsilon=1e-5"),),
        r"buffer/bn1\.running_mean",
        r"matches: BatchNorm momentum 0\.01",
    ),
    Edit(
        "softmax",
        (('layers.Dense(5, name="fc")', 'layers.Dense(5, "softmax", name="fc")'),),
        # Keras finds the softmax on TensorFlow and gives its loss the logits before it:
        # what it trains is the same, what it predicts is not.
        "output of fc",
        "matches: in the prediction alone, not in loss and gradients: softmax before a "
        "loss that takes logits",
    ),
]


def verdicts(text: str) -> dict[str, str]:
    """File name of a contender -> all lines about it."""
    parts = re.split(r"(?m)^(?=[a-z]\S*: )", text)
    return {
        part.split(": ", 1)[0].rpartition(":")[2]: part
        for part in parts
        if part.strip()
    }


class Frameworks(unittest.TestCase):
    """A test method for each framework: one call of the gate for all its scripts."""

    def check(
        self, environment: str, framework: str, script: str, edits: list[Edit]
    ) -> None:
        place = support.place_for(self, environment, warm=True)
        place.write("cnn.ir", CNN)
        top = 'workload = "cnn.ir"\nbatch = 50\nalpha = 0.5\n'
        sections = {"top": top, "optimizer": RMSPROP}
        first = place.write("emitted.toml", support.recipe([framework], **sections))
        place.ok("emit", first, "--out", "emitted")
        source = (place.path / "emitted" / script).read_text()
        place.write("unchanged.py", source)
        for edit in edits:
            place.write(f"{edit.name}.py", support.replaced(source, *edit.changes))

        with self.subTest("an unchanged copy"):
            text = support.recipe(['script = "unchanged.py"'], **sections)
            passed = place.ok("parity", place.write("unchanged.toml", text))
            self.assertIn("unchanged.py: same\n", passed.out)

        contenders = [f'script = "{edit.name}.py"' for edit in edits]
        text = support.recipe(contenders, **sections)
        refused = place.run("parity", place.write("edited.toml", text))
        self.assertEqual(refused.code, 1, refused.out + refused.err)
        found = verdicts(refused.out)
        for edit in edits:
            with self.subTest(edit.name):
                said = found[f"{edit.name}.py"]
                self.assertRegex(said, rf"DIFFERS, first at {edit.at}\n")
                self.assertRegex(said, edit.why)
        self.assertEqual(place.none_left(), {})

    def test_torch(self) -> None:
        self.check("torch", 'framework = "torch"', "train_torch.py", TORCH)

    @support.full_tier
    def test_jax(self) -> None:
        self.check("jax", 'framework = "jax"', "train_jax.py", JAX)

    @support.full_tier
    def test_tensorflow(self) -> None:
        self.check(
            "tensorflow",
            'framework = "tensorflow"',
            "train_tensorflow.py",
            TENSORFLOW,
        )

    def test_keras(self) -> None:
        self.check(
            "tensorflow",
            'framework = "keras", backend = "tensorflow"',
            "train_keras_tensorflow.py",
            KERAS,
        )

    @support.full_tier
    def test_keras2(self) -> None:
        self.check("keras2", 'framework = "keras2"', "train_keras2.py", KERAS)


if __name__ == "__main__":
    support.main()
