"""The largest batch that fits into so much memory, from recipe to every format.

Everyday ONNX Runtime, which starts in less than a second; in the full tier PyTorch.

python3 -m tests.cli.largest_batch_test build/dev/bakeoff
"""

from __future__ import annotations

import csv
import io
import json
import unittest
from typing import Any

from tests.cli import support

# Some 100 KiB a row, so that some thousand rows reach the limit.
WIDE = support.MLP.replace("[32,100]", "[8192,100]").replace("[32]", "[8192]")
WIDE = WIDE.replace("[10,32]", "[10,8192]")
MIB = 1 << 20


class LargestBatch(unittest.TestCase):
    place: support.Place

    def setUp(self) -> None:
        support.need("onnxruntime")
        names = ["onnxruntime", *(["torch"] if support.FULL else [])]
        self.place = support.Place(names, shared_proofs=True)
        self.addCleanup(self.place.close)
        self.place.write("mlp.ir", WIDE)

    def run_search(self, framework: str, section: str, batch: int, samples: int) -> Any:
        parts = {"top": f'workload = "mlp.ir"\nbatch = {batch}\n'}
        if framework == "onnxruntime":
            parts = {"top": f'scenario = "predict"\n{parts["top"]}', "optimizer": ""}
        text = support.recipe(
            [f'framework = "{framework}"'],
            budget="minutes = 4\nheats = 1\n",
            data=f"samples = {samples}\n",
            largest_batch=section,
            **parts,
        )
        recipe = self.place.write("largest.toml", text)
        done = self.place.run("run", recipe, "--out", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        return done.json()

    def test_found_under_a_limit_and_shown_in_every_format(self) -> None:
        self.found_under("onnxruntime", 400)

    @support.full_tier
    def test_found_by_training(self) -> None:
        support.need("torch")
        self.found_under("torch", 900)

    def found_under(self, framework: str, limit: int) -> None:
        report = self.run_search(framework, f'memory = "{limit} MiB"\n', 800, 40000)
        (row,) = report["largest_batch"]
        self.assertEqual(row["contender"], framework)
        self.assertEqual(row["limit_bytes"], limit * MIB)
        self.assertIn(row["stop"], ("allocator", "limit", "crash"), row)
        largest, fails = row["largest_batch"], row["fails_at"]
        self.assertLess(largest, fails)
        self.assertLessEqual(fails - largest, max(1, largest // 16))
        self.assertLessEqual(row["peak_bytes"], limit * MIB)
        # More than its 100 inputs, less than 20 layers of 8192 floats. An arena's steps
        # and the peak of the start set the slope between: 26 and 67 KB were seen.
        self.assertGreater(row["bytes_per_sample"], 4 * 100)
        self.assertLess(row["bytes_per_sample"], 20 * 4 * 8192)
        # An arena that doubles asks for the limit when it has half, or less.
        self.assertGreater(row["peak_bytes"], limit // 4 * MIB)
        # The limit did not touch the race.
        self.assertEqual(len(report["ranked"]), 1)
        self.check_other_formats(framework, largest)
        self.check_records()

    def check_other_formats(self, framework: str, largest: int) -> None:
        shown = self.place.run("report", "r").out
        self.assertIn("Largest batch that fits", shown)
        self.assertIn(f"{largest:,}", shown)
        html = (self.place.path / "r" / "report.html").read_text()
        self.assertIn('<section id="largest_batch">', html)
        markdown = self.place.run("report", "r", "--format", "markdown").out
        name = {"onnxruntime": "ONNX Runtime", "torch": "PyTorch"}[framework]
        self.assertIn(f"| {name} | {largest:,} |", markdown)
        table = self.place.run("report", "r", "--format", "csv").out
        cells = {row["contender"]: row for row in csv.DictReader(io.StringIO(table))}
        self.assertEqual(cells[framework]["largest_batch"], str(largest))
        self.assertNotEqual(cells[framework]["largest_batch_stopped_by"], "")

    def check_records(self) -> None:
        file = self.place.path / "r" / "largest.jsonl"
        lines = file.read_text().splitlines(keepends=True)
        records = [json.loads(line) for line in lines]
        self.assertTrue(any(record["failure"] for record in records))
        # As if it had been interrupted before the last attempt.
        file.write_text("".join(lines[:-1]))
        done = self.place.run("run", "--resume", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        again = [json.loads(line) for line in file.read_text().splitlines()]
        self.assertEqual(again[:-1], records[:-1])
        self.assertEqual(again[-1]["batch"], records[-1]["batch"])

    @support.full_tier
    def test_the_rows_of_the_data_are_an_end(self) -> None:
        report = self.run_search("onnxruntime", "most = 100000\n", 100, 300)
        (row,) = report["largest_batch"]
        self.assertEqual(row["largest_batch"], 300)
        self.assertIsNone(row["fails_at"])
        self.assertIn("the data has 300 rows", row["stopped_by"])

    def test_bad_input(self) -> None:
        for section, message in (
            ('memory = "lots"\n', "'lots' is not an amount of memory"),
            ("memory = 4\n", "must be text"),
            ("most = 0\n", "outside its range"),
            ("least = 1\n", "unknown key"),
        ):
            text = support.recipe(['framework = "torch"'], largest_batch=section)
            done = self.place.run("run", self.place.write("bad.toml", text))
            self.assertEqual(done.code, 2, done.out + done.err)
            self.assertIn(message, done.err)
            self.assertRegex(done.err, r"bad\.toml:\d+")


if __name__ == "__main__":
    support.main()
