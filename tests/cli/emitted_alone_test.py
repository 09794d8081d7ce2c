"""Emitted scripts run without Bakeoff and print the same losses in every framework.

Every day those of three frameworks; runner.* runs scripts of each alone, too.

python3 -m tests.cli.emitted_alone_test build/dev/bakeoff
"""

from __future__ import annotations

import re
import unittest

from tests.cli import support

# Script and the environment that it needs, in the recipe's order; the first is what the
# others are held to.
SCRIPTS = {
    "train_torch.py": "torch",
    "train_jax.py": "jax",
    "train_tensorflow.py": "tensorflow",
    "train_keras_tensorflow.py": "tensorflow",
    "train_keras_torch.py": "torch",
    "train_keras2.py": "keras2",
}
# Threads that wait for each other beside other tests would spin.
QUIET = {"TF_CPP_MIN_LOG_LEVEL": "2", "OMP_NUM_THREADS": "1"}
EVERYDAY = ("train_torch.py", "train_jax.py", "train_keras_tensorflow.py")
CONTENDERS = [
    'framework = "torch"',
    'framework = "jax"',
    'framework = "tensorflow"',
    'framework = "keras", backend = ["tensorflow", "torch"]',
    'framework = "keras2"',
]
# Layers of Bakeoff's own behind products by a number, which Keras takes for sparse.
AFTER_PRODUCTS = """
workload products(x: f32[N,3,4,4], ids: i32[N,5], y: f32[N,5,9]) {
  two = constant() value=2
  x2 = mul(x, two)
  up = conv_transpose2d(x2; weight=up[3,1,2,2]) stride=2,2 output_pad=1,1 groups=3
  h = embedding(ids; weight=table[9,4])
  h2 = mul(h, two)
  placed = position_embedding(h2; weight=places[5,4])
  p2 = mul(placed, two)
  w = parameter(; weight=w[1,1,4])
  rows = expand(w, p2) shape=N,5,4
  sum = add(p2, rows)
  sum2 = mul(sum, two)
  logits = linear(sum2; weight=table[9,4])
  scale = mean(up) axes=1,2,3 keepdims=true
  flat = reshape(scale) shape=N,1,1
  scaled = mul(logits, flat)
  loss = mse(scaled, y)
}
"""
LINE = re.compile(r"^step\s+(\d+):?\s+loss (\S+)$", re.MULTILINE)


class EmittedAlone(unittest.TestCase):
    place: support.Place

    def setUp(self) -> None:
        self.place = support.Place()
        self.addCleanup(self.place.close)
        self.place.write("mlp.ir", support.MLP)
        text = support.recipe(CONTENDERS)
        emitted = self.place.ok(
            "emit", self.place.write("all.toml", text), "--out", "s"
        )
        self.assertEqual(emitted.out.split(), [f"s/{name}" for name in SCRIPTS])

    def losses(self, script: str) -> dict[int, float]:
        """Runs a script from another folder, as its user would; the losses printed."""
        done = support.called(
            [
                str(support.interpreter(SCRIPTS[script])),
                str(self.place.path / "s" / script),
                "--steps",
                "21",
            ],
            cwd="/",
            env={**self.place.variables, **QUIET},
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return {int(step): float(loss) for step, loss in LINE.findall(done.stdout)}

    def test_losses_agree(self) -> None:
        support.need("torch")
        wanted = [s for s in SCRIPTS if support.FULL or s in EVERYDAY]
        available = [s for s in wanted if support.present(SCRIPTS[s])]
        first = self.losses(available[0])
        self.assertEqual(sorted(first), [0, 10, 20])
        self.assertLess(first[20], first[0], "it learns")
        for script in available[1:]:
            with self.subTest(script):
                losses = self.losses(script)
                self.assertEqual(sorted(losses), [0, 10, 20])
                for step, loss in losses.items():
                    self.assertAlmostEqual(loss, first[step], delta=1e-5 * first[step])

    def test_keras_layers_take_what_keras_calls_sparse(self) -> None:
        support.need("jax")
        self.place.write("mlp.ir", AFTER_PRODUCTS)
        text = support.recipe(['framework = "keras", backend = "jax"'])
        path = self.place.write("keras.toml", text)
        emitted = self.place.ok("emit", path, "--out", "k")
        (name,) = emitted.out.split()
        build = f"import {name.removeprefix('k/').removesuffix('.py')} as script"
        done = support.called(
            [
                str(support.interpreter("jax")),
                "-c",
                f"{build}; print(script.build_model().output.shape)",
            ],
            cwd=self.place.path / "k",
            env={**self.place.variables, **QUIET},
        )
        self.assertIn("(None, 5, 9)", done.stdout, done.stderr)


if __name__ == "__main__":
    support.main()
