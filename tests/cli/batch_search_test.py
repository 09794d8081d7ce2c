"""The search for the best batch, from recipe to plot: torch and ONNX Runtime.

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


class BatchSearch(unittest.TestCase):
    place: support.Place

    def setUp(self) -> None:
        support.need("torch")
        self.place = support.Place(["torch"], shared_proofs=True)
        self.addCleanup(self.place.close)
        self.place.write("mlp.ir", support.MLP)

    def run_search(self, section: str, contenders: list[str]) -> Any:
        recipe = self.place.write(
            "search.toml", support.recipe(contenders, **BRIEF, search=section)
        )
        done = self.place.run("run", recipe, "--out", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        return done.json()

    def records(self) -> list[dict[str, Any]]:
        text = (self.place.path / "r" / "batches.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def test_batches_of_the_recipe(self) -> None:
        report = self.run_search("batches = [1, 100, 1000]\nprocesses = 2\n", TRAIN)
        rows = {row["contender"]: row for row in report["batch_search"]}
        self.assertEqual(set(rows), {"torch", "torch[channels_last]"})
        for row in rows.values():
            points = {point["batch"]: point for point in row["points"]}
            self.assertEqual(set(points), {1, 100, 1000})
            self.assertEqual(points[100]["processes"], 2)
            # A step of 100 rows costs an MLP hardly more than one of 1.
            rates = [points[batch]["samples_per_second"] for batch in (1, 100)]
            self.assertGreater(rates[1], rates[0])
            self.assertEqual(row["best_batch"], 100)
            self.assertIn("the data has 200 rows", points[1000]["failure"])
        scripts = sorted(p.name for p in (self.place.path / "r" / "scripts").iterdir())
        self.assertIn("train_torch_batch100.py", scripts)
        one = (self.place.path / "r" / "scripts" / "train_torch.py").read_text()
        other = (
            self.place.path / "r" / "scripts" / "train_torch_batch100.py"
        ).read_text()
        self.assertEqual(one.replace("BATCH_SIZE = 50", "BATCH_SIZE = 100"), other)
        timed = [r for r in self.records() if r["trial"]["failure"] is None]
        self.assertEqual(len(timed), 2 * 2 * 2)
        self.check_other_formats()

    def check_other_formats(self) -> None:
        shown = self.place.run("report", "r")
        for part in ("Batch size", "best batch", "the data has 200 rows"):
            self.assertIn(part, shown.out)
        html = (self.place.path / "r" / "report.html").read_text()
        self.assertIn("samples/s against rows a step", html)
        table = self.place.run("report", "r", "--format", "csv").out
        for row in csv.DictReader(io.StringIO(table)):
            self.assertEqual(row["best_batch"], "100")

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
