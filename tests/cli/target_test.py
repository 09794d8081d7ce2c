"""Training to a target, from recipe to table: torch and JAX on rows that can be learnt.

Everyday it is part of fit_test.

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


def records(place: support.Place) -> list[dict[str, Any]]:
    text = (place.path / "r" / "target.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def check(
    test: unittest.TestCase, place: support.Place, report: Any, seeds: int
) -> None:
    """All arrived, as the referee did; the run is in the folder r."""
    rows = {row["contender"]: row for row in report["target"]["rows"]}
    raced = {row["contender"]["id"] for row in report["ranked"]}
    test.assertEqual(set(rows), {"referee", *raced})
    for name, row in rows.items():
        test.assertEqual((row["seeds"], row["reached"]), (seeds, seeds), row["note"])
        test.assertGreaterEqual(row["last_accuracy"], 0.9)
        steps = row["steps"]
        test.assertLessEqual(steps["low"], steps["value"])
        test.assertGreaterEqual(steps["high"], steps["value"])
        # 400 rows are trained on, 50 a step.
        test.assertAlmostEqual(row["epochs"]["value"], steps["value"] / 8)
        if name != "referee":
            test.assertEqual(row["convergence"], "within chance")
            test.assertGreater(row["seconds"]["value"], 0)
    kept = {(r["contender"], r["seed"]): r["looks"] for r in records(place)}
    for (name, seed), looks in kept.items():
        own = kept["referee", seed]
        # The same weights, batches and mathematics: the same number of steps, or a
        # look apart where float32 decides.
        test.assertLessEqual(abs(looks[-1]["steps"] - own[-1]["steps"]), 5, name)
        test.assertAlmostEqual(looks[0]["loss"], own[0]["loss"], delta=1e-3)
    # Seeds differ from each other.
    first = {round(kept["referee", s + 1][0]["loss"], 6) for s in range(seeds)}
    test.assertEqual(len(first), seeds)
    check_other_formats(test, place, seeds)


def check_other_formats(
    test: unittest.TestCase, place: support.Place, seeds: int
) -> None:
    shown = place.run("report", "r")
    reached = f"{seeds} of {seeds}"
    for part in ("Training to an accuracy of 90%", reached, "within chance"):
        test.assertIn(part, shown.out)
    html = (place.path / "r" / "report.html").read_text()
    test.assertIn('<section id="target">', html)
    table = place.run("report", "r", "--format", "csv").out
    for row in csv.DictReader(io.StringIO(table)):
        test.assertEqual(row["target_reached"], str(seeds))
        test.assertGreater(float(row["target_steps"]), 0)


class Target(unittest.TestCase):
    place: support.Place

    def setUp(self) -> None:
        if support.FULL:
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
        return records(self.place)

    @support.full_tier
    def test_both_arrive_as_the_referee_does(self) -> None:
        done = self.place.run("run", self.recipe(), "--out", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        check(self, self.place, done.json(), seeds=3)

    @support.full_tier
    def test_the_budget_ends_it_after_a_whole_seed(self) -> None:
        """A twentieth of a second: the race of at most 2 heats spends it all."""
        race = "burst_seconds = 1e-3\nbursts = 2\nthreads = 1\nparity_steps = 3\nmax_busy = 1\n"
        recipe = self.recipe(budget="minutes = 8e-4\nheats = 3\n", race=race)
        done = self.place.run("run", recipe, "--out", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        self.assertEqual({record["seed"] for record in self.records()}, {1})
        self.assertEqual(len(self.records()), 3)
        notes = " ".join(done.json()["notes"])
        self.assertIn("1 of 3 seeds were trained, then budget.minutes", notes)
        again = self.place.run(
            "run", "--resume", "r", "--budget", "30", "--format", "json"
        )
        self.assertIn(again.code, (0, 1), again.err)
        self.assertEqual(len(self.records()), 9)

    @support.full_tier
    def test_a_target_out_of_reach_is_said(self) -> None:
        target = "loss = 1e-9\nseeds = 1\nrows = 100\nevery = 4\nepochs = 1\n"
        done = self.place.run(
            "run", self.recipe(target), "--out", "r", "--format", "json"
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
