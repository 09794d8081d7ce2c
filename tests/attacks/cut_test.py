"""Networks whose float64 proofs take fewer rows than a batch: what must pass, what not.

python3 -m tests.attacks.cut_test build/dev/bakeoff
"""

from __future__ import annotations

import unittest

from tests.attacks.gate_test import verdicts
from tests.cli import support

TOP = 'workload = "mnist_cnn"\nbatch = 64\nalpha = 0.5\n'  # cut to 20 rows
DATA = "samples = 200\n"
OPTIMIZER = 'kind = "rmsprop"\nlr = 1e-4\nrho = 0.9\neps = 1e-7\n'

LOSS = "F.cross_entropy(model(x), y)"
ROWS = "rows = slice(first, first + BATCH_SIZE)"
RIGHT = {
    "as_emitted": (),
    # Only with their own batch of 64 rows.
    "loss_by_the_batch": ((LOSS, f'{LOSS[:-1]}, reduction="sum") / 64'),),
    "batch_of_its_own": ((ROWS, "rows = slice(first, first + 64)"),),
    "refuses_other_batches": ((LOSS, f"[{LOSS} for _ in [0] if len(x) == 64][0]"),),
}
WRONG = {
    "rho": (("alpha=0.9,", "alpha=0.9000001,"),),
    "epsilon": (("eps=1e-7", "eps=1.001e-7"),),
    "momentum": (("momentum=0.0,", "momentum=1e-6,"),),
    "one_gelu": (("F.relu(self.fc1(x))", "F.gelu(self.fc1(x))"),),
    "almost_relu": (("F.relu(self.fc1(x))", "F.leaky_relu(self.fc1(x), 1e-7)"),),
    "smoothing": ((LOSS, f"{LOSS[:-1]}, label_smoothing=1e-7)"),),
    "loss_by_almost_the_batch": (
        (LOSS, f'{LOSS[:-1]}, reduction="sum") / (len(x) + 1e-6)'),
    ),
    # Right on 20 rows, wrong on 64.
    "rows_beyond_32_left_out": ((LOSS, "F.cross_entropy(model(x[:32]), y[:32])"),),
    "last_row_left_out": ((LOSS, "F.cross_entropy(model(x[:63]), y[:63])"),),
    "half_precision_of_whole_batches": (
        (LOSS, "F.cross_entropy(model(x.bfloat16().to(x) if len(x) == 64 else x), y)"),
    ),
}


class Cut(unittest.TestCase):
    def test_torch(self) -> None:
        support.need("torch")
        place = support.Place(["torch"], warm=True)
        self.addCleanup(place.close)

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
