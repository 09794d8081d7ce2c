"""Training to a target, from recipe to table: torch and JAX on rows that can be learnt.

python3 -m tests.cli.target_test build/dev/bakeoff
"""

from __future__ import annotations

import csv
import io
import json
import random
import struct
import unittest
from pathlib import Path
from typing import Any

from tests.cli import support

ROWS = 600
TARGET = "accuracy = 0.9\nseeds = 3\nrows = 200\nevery = 5\nepochs = 30\n"


def write_data(path: Path) -> None:
    """Rows of 100 numbers whose class is the largest of the first ten."""
    draw = random.Random(4)
    x, y = [], []
    for _ in range(ROWS):
        row = [draw.gauss(0, 0.3) for _ in range(100)]
        label = draw.randrange(10)
        row[label] += 3
        x += row
        y.append(label)
    blobs = [struct.pack(f"<{len(x)}f", *x), struct.pack(f"<{ROWS}i", *y)]
    end = len(blobs[0])
    header = json.dumps(
        {
            "x": {"dtype": "F32", "shape": [ROWS, 100], "data_offsets": [0, end]},
            "y": {
                "dtype": "I32",
                "shape": [ROWS],
                "data_offsets": [end, end + len(blobs[1])],
            },
        }
    ).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"".join(blobs))


class Target(unittest.TestCase):
    place: support.Place

    def setUp(self) -> None:
        support.need("torch", "jax")
        self.place = support.Place(["torch", "jax"], shared_proofs=True)
        self.addCleanup(self.place.close)
        self.place.write("mlp.ir", support.MLP)
        write_data(self.place.path / "rows.safetensors")

    def recipe(self, target: str = TARGET, **sections: str) -> Path:
        contenders = ['framework = "torch"', 'framework = "jax"']
        sections.setdefault("data", 'kind = "file"\npath = "rows.safetensors"\n')
        # Trainings are within the budget, and this machine may be busy.
        sections.setdefault("budget", "minutes = 30\nheats = 3\n")
        sections.setdefault(
            "top", 'workload = "mlp.ir"\nbatch = 50\nalpha = 0.5\nmargin = 1.0\n'
        )
        text = support.recipe(contenders, target=target, **sections)
        return self.place.write("target.toml", text)

    def records(self) -> list[dict[str, Any]]:
        text = (self.place.path / "r" / "target.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def test_both_arrive_as_the_referee_does(self) -> None:
        done = self.place.run(
            "run", self.recipe(), "--out", "r", "--format", "json", timeout=600
        )
        self.assertIn(done.code, (0, 1), done.err)
        rows = {row["contender"]: row for row in done.json()["target"]["rows"]}
        self.assertEqual(set(rows), {"referee", "torch", "jax"})
        for name, row in rows.items():
            self.assertEqual((row["seeds"], row["reached"]), (3, 3), row["note"])
            self.assertGreaterEqual(row["last_accuracy"], 0.9)
            steps = row["steps"]
            self.assertLessEqual(steps["low"], steps["value"])
            self.assertGreaterEqual(steps["high"], steps["value"])
            # 400 rows are trained on, 50 a step.
            self.assertAlmostEqual(row["epochs"]["value"], steps["value"] / 8)
            if name != "referee":
                self.assertEqual(row["convergence"], "within chance")
                self.assertGreater(row["seconds"]["value"], 0)
        # The same weights, batches and mathematics: the same number of steps, or a
        # look apart where float32 decides.
        for record in self.records():
            own = [
                r["looks"][-1]["steps"]
                for r in self.records()
                if r["seed"] == record["seed"] and r["contender"] == "referee"
            ]
            self.assertLessEqual(abs(record["looks"][-1]["steps"] - own[0]), 5)
        self.check_seeds()
        self.check_other_formats()

    def check_seeds(self) -> None:
        """Seeds differ from each other; everybody starts from the same weights."""
        first = {
            (r["contender"], r["seed"]): r["looks"][0]["loss"] for r in self.records()
        }
        for seed in (1, 2, 3):
            self.assertAlmostEqual(
                first["torch", seed], first["referee", seed], delta=1e-3
            )
            self.assertAlmostEqual(
                first["jax", seed], first["referee", seed], delta=1e-3
            )
        self.assertEqual(len({round(first["referee", s], 6) for s in (1, 2, 3)}), 3)

    def check_other_formats(self) -> None:
        shown = self.place.run("report", "r")
        for part in ("Training to an accuracy of 90%", "3 of 3", "within chance"):
            self.assertIn(part, shown.out)
        html = (self.place.path / "r" / "report.html").read_text()
        self.assertIn('<section id="target">', html)
        table = self.place.run("report", "r", "--format", "csv").out
        for row in csv.DictReader(io.StringIO(table)):
            self.assertEqual(row["target_reached"], "3")
            self.assertGreater(float(row["target_steps"]), 0)

    @support.full_tier
    def test_the_budget_ends_it_after_a_whole_seed(self) -> None:
        """A twentieth of a second: the race of at most 2 heats spends it all."""
        race = "burst_seconds = 1e-3\nbursts = 2\nparity_steps = 3\nmax_busy = 1\n"
        recipe = self.recipe(budget="minutes = 8e-4\nheats = 3\n", race=race)
        done = self.place.run(
            "run", recipe, "--out", "r", "--format", "json", timeout=600
        )
        self.assertIn(done.code, (0, 1), done.err)
        self.assertEqual({record["seed"] for record in self.records()}, {1})
        self.assertEqual(len(self.records()), 3)
        notes = " ".join(done.json()["notes"])
        self.assertIn("1 of 3 seeds were trained, then budget.minutes", notes)
        again = self.place.run(
            "run", "--resume", "r", "--budget", "30", "--format", "json", timeout=600
        )
        self.assertIn(again.code, (0, 1), again.err)
        self.assertEqual(len(self.records()), 9)

    def test_a_target_out_of_reach_is_said(self) -> None:
        target = "loss = 1e-9\nseeds = 1\nrows = 100\nevery = 4\nepochs = 1\n"
        done = self.place.run(
            "run", self.recipe(target), "--out", "r", "--format", "json", timeout=600
        )
        self.assertIn(done.code, (0, 1), done.err)
        for row in done.json()["target"]["rows"]:
            self.assertEqual((row["seeds"], row["reached"]), (1, 0))
            self.assertIsNone(row["steps"])
            self.assertIn("did not reach it within 1 epoch", row["note"])
        # 500 rows, 50 a step: looks after 4, 8 and the last of 10 steps.
        for record in self.records():
            self.assertEqual([look["steps"] for look in record["looks"]], [4, 8, 10])
            watched = 0 if record["contender"] == "referee" else 3
            self.assertEqual(len(record["rounds"]), watched)

    def test_bad_input(self) -> None:
        for target, message in (
            ("seeds = 3\n", "either an accuracy or a loss"),
            ("accuracy = 0.9\nloss = 1\n", "either an accuracy or a loss"),
            ("accuracy = 97\n", "outside its range"),
            ("accuracy = 0.9\nrows = 580\n", "580 rows are to be held out"),
        ):
            done = self.place.run("run", self.recipe(target), "--out", "bad")
            self.assertEqual(done.code, 2, done.out + done.err)
            self.assertIn(message, done.err)
            self.assertRegex(done.err, r"target\.toml:\d+")


if __name__ == "__main__":
    support.main()
