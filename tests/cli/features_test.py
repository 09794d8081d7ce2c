"""Contenders that ask for what a framework or a CPU has not: a row with its reason.

python3 -m tests.cli.features_test build/dev/bakeoff
"""

from __future__ import annotations

import unittest
from pathlib import Path

from tests.cli import support

# Contender, its name in the output, the stage and the reason of its row.
ABSENT = [
    (
        'framework = "torch", optimizer_impl = "fused"',
        "torch[optimizer_impl=fused]",
        "emit",
        "torch: torch.optim.RMSprop has no fused form",
    ),
    (
        'framework = "torch", tf32 = true',
        "torch[tf32]",
        "precision",
        "there is no TF32 on a CPU",
    ),
    (
        'framework = "torch", workers = 2',
        "torch[workers=2]",
        "emit",
        "preloaded tensors have no DataLoader",
    ),
    (
        'framework = "torch", precision = "bfloat16", scaler = true, '
        'compile = "cuda_graphs"',
        "torch[compile=cuda_graphs,precision=bfloat16,scaler]",
        "emit",
        "torch: a GradScaler asks the device in every step, which no CUDA graph can",
    ),
    (
        'framework = "torch", device = "cuda"',
        "torch[device=cuda]",
        "import",
        'device = "cuda", but torch computes on cpu here; no driver of NVIDIA is loaded '
        "here (there is no /proc/driver/nvidia/version)",
    ),
    (
        'framework = "torch", compile = "cuda_graphs"',
        "torch[compile=cuda_graphs]",
        "import",
        'compile = "cuda_graphs" needs a GPU, and torch sees none here',
    ),
    (
        'framework = "torch", cuda_allocator = "async"',
        "torch[cuda_allocator=async]",
        "import",
        'cuda_allocator = "async" needs a GPU, and torch sees none here',
    ),
    (
        'framework = "keras", backend = "torch", steps_per_execution = 2',
        "keras[backend=torch,steps_per_execution=2]",
        "emit",
        "Keras on torch runs one step per execution",
    ),
    (
        'framework = "keras", backend = "torch", input = "tf_data"',
        "keras[backend=torch,input=tf_data]",
        "emit",
        "tf.data needs TensorFlow, which is not beside torch in its environment",
    ),
]


class Features(unittest.TestCase):
    def test_each_is_a_row_and_the_others_are_proven(self) -> None:
        support.need("torch")
        if Path("/proc/driver/nvidia/version").exists():
            self.skipTest("there is a GPU here")
        place = support.Place(["torch"], warm=True)
        self.addCleanup(place.close)
        place.write("mlp.ir", support.MLP)
        text = support.recipe(
            ['framework = "torch"', *(contender for contender, *_ in ABSENT)],
            optimizer='kind = "rmsprop"\nlr = 1e-3\n',
        )
        outcome = place.run("parity", place.write("absent.toml", text))
        self.assertEqual(outcome.code, 1, outcome.err)
        self.assertIn("torch: same\n", outcome.out)
        for _, name, stage, reason in ABSENT:
            with self.subTest(name):
                self.assertIn(f"{name}: FAILED in stage {stage}: {reason}", outcome.out)

    def test_a_setting_that_a_framework_has_not_is_refused(self) -> None:
        place = support.Place()
        self.addCleanup(place.close)
        place.write("mlp.ir", support.MLP)
        for contender, says in [
            ('framework = "libtorch", scaler = true', "'scaler'"),
            ('framework = "keras2", backend = "jax"', "'backend'"),
            ('framework = "libtorch", workers = 2', "'workers'"),
            ('framework = "jax", cuda_allocator = "async"', "'cuda_allocator'"),
        ]:
            with self.subTest(contender):
                path = place.write("bad.toml", support.recipe([contender]))
                outcome = place.run("run", path, "--out", "out")
                self.assertEqual(outcome.code, 2, outcome.out)
                self.assertIn(says, outcome.err)
                self.assertRegex(outcome.err, r"bad\.toml:\d+")


if __name__ == "__main__":
    support.main()
