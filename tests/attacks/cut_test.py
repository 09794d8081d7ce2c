"""Networks whose float64 proofs take fewer rows than a batch: what must pass, what not.

python3 -m tests.attacks.cut_test build/dev/bakeoff
BAKEOFF_FULL_TESTS=1 python3 -m tests.attacks.cut_test build/dev/bakeoff

Scripts that are wrong on the cut batch are in the full tier: the search for a cause takes
minutes on a network of this size. Of the others every third is tried every day.
"""

from __future__ import annotations

import unittest

from tests.attacks.parity_test import REFUSED, verdicts
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
TOP = 'workload = "net.ir"\nbatch = 256\nalpha = 0.5\n'  # cut to 114 rows
DATA = "samples = 600\n"
OPTIMIZER = 'kind = "rmsprop"\nlr = 1e-4\nrho = 0.9\neps = 1e-7\n'

LOSS = "F.cross_entropy(model(x), y)"
ROWS = "rows = slice(first, first + BATCH_SIZE)"
STEP = "    optimizer.step()\n"
ZERO = "    optimizer.zero_grad(set_to_none=True)\n"
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
# Right in float64 on the cut batch; only the float32 proofs see what is timed.
SEES_THE_CUT = {
    "rows_after_the_cut_left_out": (
        (LOSS, "F.cross_entropy(model(x[:128]), y[:128])"),
    ),
    "targets_wrong_from_row_240": (
        (LOSS, "F.cross_entropy(model(x), torch.cat([y[:240], y[240:].flip(0)]))"),
    ),
    "inputs_rounded_from_row_128": (
        (
            ZERO,
            f"{ZERO}    x = torch.cat([x[:128], x[128:].bfloat16().to(x.dtype)])\n",
        ),
    ),
    "two_updates_at_its_own_batch": (
        (STEP, f"{STEP}    if len(x) == 256:\n    {STEP}"),
    ),
    "no_second_update_at_its_own_batch": (
        (
            STEP,
            "    train_step.count = getattr(train_step, 'count', 0) + 1\n"
            "    if BATCH_SIZE != 256 or train_step.count % 2:\n    " + STEP,
        ),
    ),
    "loss_scaled_at_its_own_batch": (
        (LOSS, f"{LOSS} * (1.001 if len(x) == 256 else 1)"),
    ),
    "weights_rounded_in_float32": (
        (
            ZERO,
            f"{ZERO}    if x.dtype == torch.float32:\n"
            "        with torch.no_grad():\n"
            "            for p in model.parameters():\n"
            "                p.copy_(p.bfloat16())\n",
        ),
    ),
    "half_precision_in_the_second_precision": (
        (
            LOSS,
            f"{LOSS} if x.dtype == torch.float64 else\\\n"
            "        F.cross_entropy(torch.autocast('cpu', torch.bfloat16)(model)(x).float(), y)",
        ),
    ),
}


class Cut(unittest.TestCase):
    maxDiff = None

    def said(self, scripts: dict[str, tuple[tuple[str, str], ...]]) -> dict[str, str]:
        """What the gate says of them, by name."""
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
        for name, changes in scripts.items():
            place.write(f"{name}.py", support.replaced(source, *changes))
        said = verdicts(ask([f'script = "{name}.py"' for name in scripts], "parity"))
        self.assertEqual(place.none_left(), {}, said)
        return {name: said[f"{name}.py"] for name in scripts}

    def test_scripts_that_are_right_on_the_cut_batch_alone(self) -> None:
        seen = list(SEES_THE_CUT.items())[:: 1 if support.FULL else 3]
        said = self.said({"as_emitted": (), **dict(seen)})
        self.assertIn(": same", said.pop("as_emitted"))
        for name, text in said.items():
            with self.subTest(name):
                self.assertRegex(text, REFUSED)
                self.assertNotIn("DIFF float64", text)
                self.assertIn("DIFF float32", text)

    @support.full_tier
    def test_right_and_wrong_ones(self) -> None:
        said = self.said({**RIGHT, **WRONG})
        for name, text in said.items():
            with self.subTest(name):
                self.assertIn(": same" if name in RIGHT else ": DIFFERS", text)


if __name__ == "__main__":
    support.main()
