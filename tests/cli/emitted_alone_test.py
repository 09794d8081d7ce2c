"""Emitted scripts run without Bakeoff and print the same losses in every framework.

Every day those of three frameworks; runner.* runs scripts of each alone, too.

python3 -m tests.cli.emitted_alone_test build/dev/bakeoff
"""

from __future__ import annotations

import re
import subprocess
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
LINE = re.compile(r"^step\s+(\d+):?\s+loss (\S+)$", re.MULTILINE)


class EmittedAlone(unittest.TestCase):
    place: support.Place

    def setUp(self) -> None:
        self.place = support.Place()
        self.addCleanup(self.place.close)
        self.place.write("mlp.ir", support.MLP)
        text = support.recipe(CONTENDERS)
        emitted = self.place.run(
            "emit", self.place.write("all.toml", text), "--out", "s"
        )
        self.assertEqual(emitted.code, 0, emitted.err)
        self.assertEqual(emitted.out.split(), [f"s/{name}" for name in SCRIPTS])

    def losses(self, script: str) -> dict[int, float]:
        """Runs a script from another folder, as its user would; the losses printed."""
        done = subprocess.run(
            [
                str(support.interpreter(SCRIPTS[script])),
                str(self.place.path / "s" / script),
                "--steps",
                "21",
            ],
            cwd="/",
            env={**self.place.variables, **QUIET},
            capture_output=True,
            text=True,
            check=False,
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


if __name__ == "__main__":
    support.main()
