"""Networks whose float64 proofs take fewer rows than a batch: what must pass, what not.

BAKEOFF_FULL_TESTS=1 python3 -m tests.attacks.cut_test build/dev/bakeoff

The search for a cause of a wrong script takes minutes on a network of this size.
"""

from __future__ import annotations

import unittest

from tests.attacks.gate_test import verdicts
from tests.cli import support

NET = """
workload wide(x: f32[N,20], y: i32[N]) {
  h1 = linear(x; weight=fc1.weight[1200,20], bias=fc1.bias[1200])
  h2 = relu(h1)
  h3 = linear(h2; weight=fc2.weight[1200,1200], bias=fc2.bias[1200])
  h4 = relu(h3)
  logits = linear(h4; weight=fc3.weight[5,1200], bias=fc3.bias[5])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
TOP = 'workload = "net.ir"\nbatch = 256\nalpha = 0.5\n'  # cut to 112 rows
DATA = "samples = 600\n"
OPTIMIZER = 'kind = "rmsprop"\nlr = 1e-4\nrho = 0.9\neps = 1e-7\n'

LOSS = "F.cross_entropy(model(x), y)"
ROWS = "rows = slice(first, first + BATCH_SIZE)"
RIGHT = {
    "as_emitted": (),
    # Only with their own batch.
    "loss_by_the_batch": ((LOSS, f'{LOSS[:-1]}, reduction="sum") / 256'),),
    "batch_of_its_own": ((ROWS, "rows = slice(first, first + 256)"),),
    "refuses_other_batches": ((LOSS, f"[{LOSS} for _ in [0] if len(x) == 256][0]"),),
}
WRONG = {
    "loss_by_almost_the_batch": (
        (LOSS, f'{LOSS[:-1]}, reduction="sum") / (len(x) + 1e-5)'),
    ),
    # Right on few rows, wrong on 256.
    "last_row_left_out": ((LOSS, "F.cross_entropy(model(x[:255]), y[:255])"),),
}


class Cut(unittest.TestCase):
    @support.full_tier
    def test_torch(self) -> None:
        support.need("torch")
        place = support.Place(["torch"], warm=True)
        self.addCleanup(place.close)
        place.write("net.ir", NET)

        def ask(contenders: list[str], command: str, *rest: str) -> str:
            sections = {"top": TOP, "data": DATA, "optimizer": OPTIMIZER}
            text = support.recipe(contenders, race="parity_steps = 5\n", **sections)
            done = place.run(command, place.write("r.toml", text), *rest, timeout=900)
            self.assertIn(done.code, (0, 1), done.err)
            return done.out

        ask(['framework = "torch"'], "emit", "--out", "emitted")
        source = (place.path / "emitted" / "train_torch.py").read_text()
        for name, changes in {**RIGHT, **WRONG}.items():
            place.write(f"{name}.py", support.replaced(source, *changes))
        rows = [f'script = "{name}.py"' for name in {**RIGHT, **WRONG}]
        said = verdicts(ask(rows, "parity"))
        for name in RIGHT:
            with self.subTest(name):
                self.assertIn(": same", said[f"{name}.py"])
        for name in WRONG:
            with self.subTest(name):
                self.assertIn(": DIFFERS", said[f"{name}.py"])
        self.assertEqual(place.none_left(), {})


if __name__ == "__main__":
    support.main()
