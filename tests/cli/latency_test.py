"""Latencies of requests and the best batch, from recipe to table: ONNX Runtime on an MLP.

python3 -m tests.cli.latency_test build/dev/bakeoff
"""

from __future__ import annotations

import csv
import io
import json
import unittest
from pathlib import Path
from typing import Any

from tests.cli import batch_search_test, support

RATE = 500000  # a second: more than anything can answer
LATENCY = f"""arrivals_per_second = [50, {RATE}]
requests = 100
processes = 2
percentiles = [50, 90]
"""
SEARCH = "batches = [1, 100, 1000]\nprocesses = 1\n"
ONE, OTHER = (
    'framework = "onnxruntime"',
    'framework = "onnxruntime", optimization = "basic"',
)


def recipe(contenders: list[str], **sections: str) -> str:
    top = support.PREDICTIONS.replace("batch = 50", "batch = 1")
    # One thread: several wait for each other on a busy machine, a batch of 100 longer than one of 1.
    race = "burst_seconds = 0.02\nbursts = 2\nthreads = 1\nmax_busy = 1\nconfirm_heats = 0\n"
    return support.recipe(contenders, top=top, optimizer="", race=race, **sections)


class Latency(unittest.TestCase):
    place: support.Place

    def setUp(self) -> None:
        support.need("onnxruntime")
        names = ["onnxruntime", *(["torch"] if support.FULL else [])]
        self.place = support.Place(names, shared_proofs=True)
        self.addCleanup(self.place.close)
        self.place.write("mlp.ir", support.MLP)

    def records(self, run: Path) -> list[dict[str, Any]]:
        text = (run / "latency.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def test_single_stream_a_rate_an_overload_and_the_best_batch(self) -> None:
        text = recipe([ONE, OTHER], latency=LATENCY, search=SEARCH)
        names = ("onnxruntime", "onnxruntime[optimization=basic]")
        report = self.measured(text, names)
        batch_search_test.check_points(self, report, set(names), processes=1)
        batch_search_test.check_other_formats(self, self.place)

    @support.full_tier
    def test_two_frameworks(self) -> None:
        support.need("torch")
        text = recipe([ONE, 'framework = "torch"'], latency=LATENCY)
        self.measured(text, ("onnxruntime", "torch"))

    def measured(self, text: str, names: tuple[str, str]) -> Any:
        recipe = self.place.write("latency.toml", text)
        done = self.place.run("run", recipe, "--out", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        latency = done.json()["latency"]
        self.assertAlmostEqual(latency["level"], 0.5)
        rows = {(r["contender"], r["arrivals_per_second"]): r for r in latency["rows"]}
        self.assertEqual(len(rows), 6, done.out + done.err)
        for name in names:
            alone, steady, overload = (rows[name, rate] for rate in (None, 50, RATE))
            self.assertEqual(alone["queue"], "steady", alone["note"])
            self.check_percentiles(alone)
            # Fewer than 200 where a busy machine takes longer than latency.seconds.
            self.assertIn(alone["requests"], range(20, 201))
            if steady["queue"] == "steady":  # a busy machine may be too slow for it
                self.check_percentiles(steady)
            # No latency is quoted.
            self.assertEqual(overload["queue"], "growing", overload["note"])
            self.assertEqual(overload["percentiles"], [])
            self.assertGreater(overload["growth_per_second"], 0)
            self.assertIn("the queue grows by", overload["note"])
        self.check_records(self.records(self.place.path / "r"), names)
        self.check_other_formats()
        return done.json()

    def check_percentiles(self, row: dict[str, Any]) -> None:
        self.assertEqual([p["percentile"] for p in row["percentiles"]], [50, 90])
        last = 0.0
        for one in row["percentiles"]:
            ms = one["ms"]
            self.assertLessEqual(last, ms["value"])
            last = ms["value"]
            self.assertLessEqual(ms["low"], ms["value"])
            if ms["high"] is not None:
                self.assertGreaterEqual(ms["high"], ms["value"])

    def check_records(
        self, records: list[dict[str, Any]], names: tuple[str, str]
    ) -> None:
        """The raw times are those of an open loop."""
        self.assertEqual(len(records), 12)
        for record in records:
            arrivals = record["arrival_ns"] or record["start_ns"]
            for i, (start, end) in enumerate(
                zip(record["start_ns"], record["end_ns"], strict=True)
            ):
                self.assertGreaterEqual(start, arrivals[i])
                self.assertGreater(end, start)
                if i > 0:
                    self.assertGreaterEqual(start, record["end_ns"][i - 1])
        planned = {
            (r["contender"], r["round"], r["rate"]): r["arrival_ns"] for r in records
        }
        for (name, process, rate), arrivals in planned.items():
            self.assertEqual(arrivals, planned[names[0], process, rate], name)

    def check_other_formats(self) -> None:
        shown = self.place.run("report", "r")
        for part in ("Latency", "single stream", "50 requests/s", "queue grows", "p90"):
            self.assertIn(part, shown.out)
        html = (self.place.path / "r" / "report.html").read_text()
        self.assertIn('<section id="latency">', html)
        table = self.place.run("report", "r", "--format", "csv").out
        rows = list(csv.DictReader(io.StringIO(table)))
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertGreater(float(row["latency_single_stream_p90_ms"]), 0)
            self.assertEqual(row[f"latency_{RATE}_per_s_queue"], "queue grows")
            self.assertEqual(row[f"latency_{RATE}_per_s_p50_ms"], "")
        markdown = self.place.run("report", "r", "--format", "markdown").out
        self.assertIn("**Latency of requests**", markdown)

    def test_bad_input(self) -> None:
        predicted = recipe([ONE, OTHER], latency=LATENCY)
        trained = support.recipe(['framework = "jax"'], latency=LATENCY)
        rates = f"arrivals_per_second = [50, {RATE}]\n"
        for text, old, new, message in (
            (predicted, rates, "", "is missing"),
            (predicted, f"[50, {RATE}]", "[0]", "outside its range"),
            (predicted, f"[50, {RATE}]", "0.01", "too few for a percentile"),
            (trained, "", "", "[latency] is about predictions"),
        ):
            text = support.replaced(text, (old, new)) if old else text
            path = self.place.write("bad.toml", text)
            done = self.place.run("run", path, "--out", "bad")
            self.assertEqual(done.code, 2, done.out + done.err)
            self.assertIn(message, done.err)
            self.assertRegex(done.err, r"bad\.toml:\d+")


if __name__ == "__main__":
    support.main()
