"""A race of predictions, from recipe to table, and its scripts alone.

python3 -m tests.cli.predict_test build/dev/bakeoff
"""

from __future__ import annotations

import unittest
from pathlib import Path

from tests.cli import support

TORCH, PLAIN = 'framework = "torch"', 'framework = "onnxruntime"'
CONTENDERS = [
    PLAIN,
    f"{PLAIN}, io_binding = true",
    f'{PLAIN}, provider = "cuda"',
    *([TORCH] if support.FULL else []),
]
SCRIPTS = {"predict_torch.py": "torch", "predict_onnxruntime.py": "onnxruntime"}
CONV = """workload conv(x: f32[N,3,5,4], y: f32[N,2,5,4]) {
  z = conv2d(x; weight=c.weight[2,3,3,3], bias=c.bias[2]) pad=1,1,1,1
  loss = mse(z, y)
}
"""
# With two heads, as a detector has them.
HEADS = """workload heads(x: f32[N,3,5,4], y: f32[N,2,5,4], k: i32[N]) {
  h = conv2d(x; weight=c.weight[4,3,3,3], bias=c.bias[4]) pad=1,1,1,1
  masks = conv2d(h; weight=m.weight[2,4,1,1])
  pooled = global_avg_pool2d(h)
  scores = linear(pooled; weight=s.weight[5,4], bias=s.bias[5])
  loss_masks = mse(masks, y)
  loss_scores = softmax_cross_entropy(scores, k)
  loss = add(loss_masks, loss_scores)
}
"""
# Rows of the outputs that two scripts saved, and the largest difference between them.
COMPARE = """
import sys
from safetensors.numpy import load_file
a, b = (load_file(path)["output"] for path in sys.argv[1:])
assert a.shape == b.shape and abs(a).max() > 0
print(len(a), abs(a - b).max())
"""


class Predict(unittest.TestCase):
    place: support.Place

    def setUp(self) -> None:
        self.place = support.place_for(self, "torch", "onnxruntime", shared_proofs=True)

    def recipe(self, contenders: list[str]) -> Path:
        text = support.recipe(contenders, top=support.PREDICTIONS, optimizer="")
        return self.place.write("predict.toml", text)

    def test_race(self) -> None:
        recipe = self.recipe(CONTENDERS)
        done = self.place.run("run", recipe, "--out", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        report = done.json()
        ranked = {row["contender"]["id"]: row for row in report["ranked"]}
        names = {"onnxruntime", "onnxruntime[io_binding]"}
        self.assertEqual(set(ranked), names | ({"torch"} if support.FULL else set()))
        for row in ranked.values():
            checks = [check["what"] for check in row["proof"]["checks"]]
            self.assertEqual(checks, ["float64 prediction", "float32 prediction"])
        effective = ranked["onnxruntime"]["effective"]
        self.assertEqual(effective["provider"], "CPUExecutionProvider")
        # 2 per multiply-accumulate of the forward pass, and nothing else.
        self.assertAlmostEqual(
            report["gflop_per_step"], 2 * 50 * (100 * 32 + 32 * 10) / 1e9
        )
        (cuda,) = report["unranked"]
        self.assertEqual(cuda["contender"]["id"], "onnxruntime[provider=cuda]")
        self.assertIn("runs on CPUExecutionProvider", cuda["failure"]["reason"])
        shown = self.place.run("report", "r")
        self.assertIn("predictions: a step is one batch forward", shown.out)

    def test_scripts_alone(self) -> None:
        self.place.ok("emit", self.recipe([TORCH, PLAIN]), "--out", "s")
        folder = self.place.path / "s"
        for script, environment in SCRIPTS.items():
            shown = self.alone(
                environment, folder / script, "--out", folder / environment
            )
            self.assertRegex(shown, r"^batch +0:? +mean output \S+\n")
        compared = self.alone(
            "onnxruntime", "-c", COMPARE, *[folder / name for name in SCRIPTS.values()]
        )
        rows, distance = compared.split()
        self.assertEqual(int(rows) % 50, 0)
        self.assertGreater(int(rows), 0)
        self.assertLess(float(distance), 1e-5)

    def test_pictures_are_saved_alike(self) -> None:
        support.need("jax")
        place = support.Place(["torch", "jax"])
        self.addCleanup(place.close)
        place.write("conv.ir", CONV)
        recipe = support.recipe(
            [TORCH, 'framework = "jax"'],
            top=support.PREDICTIONS.replace("mlp.ir", "conv.ir"),
            optimizer="",
        )
        place.ok("emit", place.write("p.toml", recipe), "--out", "s")
        folder = place.path / "s"
        for name in ("torch", "jax"):
            self.alone(name, folder / f"predict_{name}.py", "--out", folder / name)
        compared = self.alone(
            "onnxruntime", "-c", COMPARE, folder / "torch", folder / "jax"
        )
        self.assertLess(float(compared.split()[1]), 1e-5)

    def test_several_outputs_are_proven_and_saved(self) -> None:
        """As values of their own, pictures with channels first."""
        names = ["torch", "onnxruntime", "jax"]
        if support.FULL:
            names += ["tensorflow", "keras2"]
        support.need(*names)
        place = support.Place(names)
        self.addCleanup(place.close)
        place.write("heads.ir", HEADS)
        rows = [f'framework = "{name}"' for name in names]
        rows.append(f"{PLAIN}, io_binding = true")
        if support.FULL:
            backends = ("torch", "tensorflow", "jax")
            rows += [f'framework = "keras", backend = "{name}"' for name in backends]
        top = support.PREDICTIONS.replace("mlp.ir", "heads.ir")
        text = support.recipe(
            rows, top=f'{top}outputs = ["scores", "masks"]\n', optimizer=""
        )
        proven = place.ok("parity", place.write("p.toml", text))
        self.assertEqual(proven.out.count(": same"), len(rows))
        place.ok("emit", "p.toml", "--out", "s")
        folder = place.path / "s"
        for name in names[:2]:
            self.alone(name, folder / f"predict_{name}.py", "--out", folder / name)
        for output in ("scores", "masks"):
            compared = self.alone(
                "onnxruntime", "-c", COMPARE.replace("output", output),
                folder / names[0], folder / names[1],
            )  # fmt: skip
            self.assertLess(float(compared.split()[1]), 1e-5)

    def test_outputs_that_there_are_not(self) -> None:
        for outputs, scenario, told in (
            ('["fc2"]', "predict", "computes no value 'fc2' before its loss"),
            ('["h1", "h1"]', "predict", "'h1' is named twice"),
            ("[]", "predict", "outputs"),
            ('["h1"]', "train", "is about the scenario"),
        ):
            top = f'workload = "mlp.ir"\nscenario = "{scenario}"\noutputs = {outputs}\n'
            text = support.recipe([TORCH], top=top)
            done = self.place.run("show", self.place.write("p.toml", text))
            self.assertEqual(done.code, 2, done.out)
            self.assertIn(told, done.err)
            self.assertRegex(done.err, r"p\.toml:\d+")

    def alone(self, environment: str, *arguments: str | Path) -> str:
        done = support.called(
            [str(support.interpreter(environment)), *map(str, arguments)],
            cwd="/",
            timeout=support.HANGS,
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout


if __name__ == "__main__":
    support.main()
