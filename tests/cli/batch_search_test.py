"""The search for the best batch, from recipe to plot: torch. Everyday it is part of latency_test.

python3 -m tests.cli.batch_search_test build/dev/bakeoff
"""

from __future__ import annotations

import csv
import io
import json
import unittest
from typing import Any

from tests.cli import support

# The race beside the search is not what is tested.
BRIEF = {
    "top": 'workload = "mlp.ir"\nbatch = 50\nalpha = 0.5\nmargin = 1.0\n',
    "budget": "minutes = 4\nheats = 3\n",
}
TRAIN = ['framework = "torch"', 'framework = "torch", channels_last = true']


def check_points(
    test: unittest.TestCase, report: Any, names: set[str], processes: int
) -> None:
    """Of a search among batches of 1, 100 and 1000 rows of 200."""
    rows = {row["contender"]: row for row in report["batch_search"]}
    test.assertEqual(set(rows), names)
    for row in rows.values():
        points = {point["batch"]: point for point in row["points"]}
        test.assertEqual(set(points), {1, 100, 1000})
        test.assertEqual(points[100]["processes"], processes)
        # A step of 100 rows costs an MLP hardly more than one of 1.
        rates = [points[batch]["samples_per_second"] for batch in (1, 100)]
        test.assertGreater(rates[1], rates[0])
        test.assertEqual(row["best_batch"], 100)
        test.assertIn("the data has 200 rows", points[1000]["failure"])


def check_other_formats(test: unittest.TestCase, place: support.Place) -> None:
    shown = place.run("report", "r")
    for part in ("Batch size", "best batch", "the data has 200 rows"):
        test.assertIn(part, shown.out)
    html = (place.path / "r" / "report.html").read_text()
    test.assertIn("samples/s against rows a step", html)
    table = place.run("report", "r", "--format", "csv").out
    for row in csv.DictReader(io.StringIO(table)):
        test.assertEqual(row["best_batch"], "100")


class BatchSearch(unittest.TestCase):
    place: support.Place

    def setUp(self) -> None:
        self.place = support.place_for(self, "torch", shared_proofs=True)

    def run_search(self, section: str, contenders: list[str]) -> Any:
        recipe = self.place.write(
            "search.toml", support.recipe(contenders, **BRIEF, search=section)
        )
        done = self.place.run("run", recipe, "--out", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        return done.json()

    @support.full_tier
    def test_batches_of_the_recipe(self) -> None:
        report = self.run_search("batches = [1, 100, 1000]\nprocesses = 2\n", TRAIN)
        check_points(self, report, {"torch", "torch[channels_last]"}, processes=2)
        scripts = sorted(p.name for p in (self.place.path / "r" / "scripts").iterdir())
        self.assertIn("train_torch_batch100.py", scripts)
        one = (self.place.path / "r" / "scripts" / "train_torch.py").read_text()
        other = (
            self.place.path / "r" / "scripts" / "train_torch_batch100.py"
        ).read_text()
        self.assertEqual(one.replace("BATCH_SIZE = 50", "BATCH_SIZE = 100"), other)
        text = (self.place.path / "r" / "batches.jsonl").read_text()
        timed = [json.loads(line)["trial"]["failure"] for line in text.splitlines()]
        self.assertEqual(timed.count(None), 2 * 2 * 2)
        check_other_formats(self, self.place)

    @support.full_tier
    def test_doubling_ends_at_the_data_and_goes_on_after_an_interruption(self) -> None:
        report = self.run_search("least = 16\nprocesses = 1\n", ['framework = "torch"'])
        (row,) = report["batch_search"]
        batches = [point["batch"] for point in row["points"]]
        self.assertEqual(batches, [16, 32, 64, 128][: len(batches)])
        self.assertGreaterEqual(len(batches), 3)
        # As if it had been interrupted before the last batch.
        file = self.place.path / "r" / "batches.jsonl"
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(lines[:-1]))
        done = self.place.run("run", "--resume", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        again = file.read_text().splitlines(keepends=True)
        self.assertEqual(again[: len(lines) - 1], lines[:-1])
        self.assertGreaterEqual(len(again), len(lines))

    def test_bad_input(self) -> None:
        for section, message in (
            ("batches = [0]\n", "outside its range"),
            ("batches = [8, 1.5]\n", "must be an integer or a list of integers"),
            (
                "batches = [8]\nmost = 64\n",
                "has no effect together with search.batches",
            ),
            ("least = 9\nmost = 8\n", "is above search.most"),
        ):
            text = support.recipe(['framework = "torch"'], search=section)
            done = self.place.run("run", self.place.write("bad.toml", text))
            self.assertEqual(done.code, 2, done.out + done.err)
            self.assertIn(message, done.err)
            self.assertRegex(done.err, r"bad\.toml:\d+")


if __name__ == "__main__":
    support.main()
