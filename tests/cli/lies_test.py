"""Real PyTorch workers that lie about their work: none is ranked, each for its reason.

One race for all of them: python3 -m tests.cli.lies_test build/dev/bakeoff

A script runs inside its worker, so it can lie about everything. These behave while they
are proven (the gate gives its workers no ring of step marks), and lie in the race.
"""

from __future__ import annotations

import json
import unittest
from dataclasses import dataclass
from typing import Any, ClassVar

from tests.cli import support

IMPORTS = "import argparse\n"
STEP = "def train_step("
RACED = f"{IMPORTS}import sys\n\nRACED = '--ring' in sys.argv\n"
ADAPTER = "    import bakeoff_runner.adapters.torch_adapter as adapter\n"

# The true step under another name; the liar's own takes its place at the end.
HEAD = "def true_step("


@dataclass(frozen=True)
class Lie:
    code: str  # appended to the script, whose own step is called true_step
    reason: str  # pattern
    always: bool = False  # in the gate, too


LIES = {
    "half_the_batch": Lie(
        """
def train_step(model, optimizer, x, y):
    half = len(x) // 2
    return true_step(model, optimizer, x[:half], y[:half])
""",
        "not the same computation",
        always=True,
    ),
    "half_the_batch_once_proven": Lie(
        """
def train_step(model, optimizer, x, y):
    half = len(x) // 2 if RACED else len(x)
    return true_step(model, optimizer, x[:half], y[:half])
""",
        "equal losses for equal work",
    ),
    "idle_after_two_steps": Lie(
        """
LOSSES = []


def train_step(model, optimizer, x, y):
    if not RACED or len(LOSSES) < 2:
        LOSSES.append(true_step(model, optimizer, x, y))
    return LOSSES[-1]
""",
        "equal losses for equal work",
    ),
    "no_barrier": Lie(
        """
from concurrent.futures import ThreadPoolExecutor

POOL = ThreadPoolExecutor(1)
DONE = [torch.tensor(0.0)]


def later(*step):
    DONE[0] = true_step(*step)


def train_step(*step):
    if not RACED:
        return true_step(*step)
    POOL.submit(later, *step)
    return DONE[0]
""",
        "answers before its work is done|equal losses for equal work",
    ),
    "twice_the_steps": Lie(
        f"""
if RACED:
{ADAPTER}
    run = adapter.TorchAdapter.run

    def lie(self, steps, mark):
        true = run(self, steps, mark)
        return adapter.RunResult(true.ns, true.loss, 2 * steps)

    adapter.TorchAdapter.run = lie

train_step = true_step
""",
        "steps answered = steps asked for",
    ),
    "half_the_time": Lie(
        f"""
if RACED:
{ADAPTER}
    run = adapter.TorchAdapter.run

    def lie(self, steps, mark):
        true = run(self, steps, mark)
        return adapter.RunResult(true.ns // 2, true.loss)

    adapter.TorchAdapter.run = lie

train_step = true_step
""",
        "answers before its work is done|steps lie within their bursts",
    ),
}


class Lies(unittest.TestCase):
    place: ClassVar[support.Place]
    rows: ClassVar[Any]

    @classmethod
    def setUpClass(cls) -> None:
        support.need("torch")
        cls.place = place = support.Place(["torch"])
        cls.addClassCleanup(place.close)
        place.write("mlp.ir", support.MLP)
        only = support.recipe(['framework = "torch"'])
        emitted = place.run("emit", place.write("only.toml", only), "--out", "emitted")
        assert emitted.code == 0, emitted.err
        source = (place.path / "emitted" / "train_torch.py").read_text()
        body, separator, main = source.partition('if __name__ == "__main__":')
        assert separator
        renamed = support.replaced(body, (IMPORTS, RACED), (STEP, HEAD))
        for name, lie in LIES.items():
            place.write(f"{name}.py", renamed + lie.code)
        contenders = ['framework = "torch"'] + [
            f'script = "{name}.py"' for name in LIES
        ]
        text = support.recipe(
            contenders,
            top='workload = "mlp.ir"\nbatch = 50\nalpha = 0.5\nmargin = 1.0\n',
            budget="minutes = 3\nheats = 5\n",
            race="burst_seconds = 0.3\nbursts = 3\nparity_steps = 10\nmax_busy = 1\n",
        )
        outcome = place.run(
            "run",
            place.write("race.toml", text),
            "--out",
            "run",
            "--format",
            "json",
            timeout=600,
        )
        assert outcome.code == 0, outcome.err + outcome.out
        cls.rows = outcome.json()

    def test_every_lie_is_told(self) -> None:
        unranked = {row["contender"]["id"]: row for row in self.rows["unranked"]}
        for name, lie in LIES.items():
            with self.subTest(name):
                self.assertIn(f"torch:{name}.py", unranked, "it was ranked")
                row = unranked[f"torch:{name}.py"]
                self.assertRegex(row["failure"]["reason"], lie.reason)
                proven = row["parity"] == "proven"
                self.assertEqual(proven, not lie.always, json.dumps(row["proof"]))

    def test_the_honest_one_is_not_accused(self) -> None:
        ranked = [row["contender"]["id"] for row in self.rows["ranked"]]
        self.assertEqual(ranked, ["torch"])


if __name__ == "__main__":
    support.main()
