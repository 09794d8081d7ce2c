"""Latencies of requests, from recipe to table: ONNX Runtime and torch on the CNN.

python3 -m tests.cli.latency_test build/dev/bakeoff
"""

from __future__ import annotations

import csv
import io
import json
import unittest
from pathlib import Path
from typing import Any

from tests.cli import support

RECIPE = """
scenario = "predict"
workload = "mnist_cnn"
batch = 1
alpha = 0.05
margin = 0.5
contenders = [{ framework = "torch" }, { framework = "onnxruntime" }]

[data]
samples = 64

[budget]
minutes = 4
heats = 3

[race]
burst_seconds = 0.02
bursts = 2
max_busy = 1

[latency]
arrivals_per_second = [50, 100000]
requests = 100
processes = 2
percentiles = [50, 90]
"""


class Latency(unittest.TestCase):
    place: support.Place

    def setUp(self) -> None:
        support.need("torch", "onnxruntime")
        self.place = support.Place(["torch", "onnxruntime"], shared_proofs=True)
        self.addCleanup(self.place.close)

    def records(self, run: Path) -> list[dict[str, Any]]:
        text = (run / "latency.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def test_single_stream_a_rate_and_an_overload(self) -> None:
        recipe = self.place.write("latency.toml", RECIPE)
        done = self.place.run("run", recipe, "--out", "r", "--format", "json")
        self.assertIn(done.code, (0, 1), done.err)
        latency = done.json()["latency"]
        self.assertAlmostEqual(latency["level"], 0.95)
        rows = {(r["contender"], r["arrivals_per_second"]): r for r in latency["rows"]}
        self.assertEqual(len(rows), 6, done.out + done.err)
        for name in ("torch", "onnxruntime"):
            alone, steady, overload = (rows[name, rate] for rate in (None, 50, 100000))
            self.assertEqual(alone["queue"], "steady", alone["note"])
            self.check_percentiles(alone)
            # Fewer than 200 where a busy machine takes longer than latency.seconds.
            self.assertIn(alone["requests"], range(20, 201))
            if steady["queue"] == "steady":  # a busy machine may be too slow for it
                self.check_percentiles(steady)
            # 100,000 a second is more than either can answer: no latency is quoted.
            self.assertEqual(overload["queue"], "growing", overload["note"])
            self.assertEqual(overload["percentiles"], [])
            self.assertGreater(overload["growth_per_second"], 0)
            self.assertIn("the queue grows by", overload["note"])
        self.check_records(self.records(self.place.path / "r"))
        self.check_other_formats()

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

    def check_records(self, records: list[dict[str, Any]]) -> None:
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
            if name == "torch":
                self.assertEqual(arrivals, planned["onnxruntime", process, rate])

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
            self.assertEqual(row["latency_100000_per_s_queue"], "queue grows")
            self.assertEqual(row["latency_100000_per_s_p50_ms"], "")
        markdown = self.place.run("report", "r", "--format", "markdown").out
        self.assertIn("**Latency of requests**", markdown)

    def test_bad_input(self) -> None:
        for old, new, message in (
            ("arrivals_per_second = [50, 100000]\n", "", "is missing"),
            ("[50, 100000]", "[0]", "outside its range"),
            ("[50, 100000]", "0.01", "too few for a percentile"),
            ('scenario = "predict"\n', "", "[latency] is about predictions"),
        ):
            text = support.replaced(RECIPE, (old, new))
            if "scenario" in old:
                text = text.replace("onnxruntime", "jax")
                text += '[optimizer]\nkind = "sgd"\nlr = 0.1\n'
            recipe = self.place.write("bad.toml", text)
            done = self.place.run("run", recipe, "--out", "bad")
            self.assertEqual(done.code, 2, done.out + done.err)
            self.assertIn(message, done.err)
            self.assertRegex(done.err, r"bad\.toml:\d+")


if __name__ == "__main__":
    support.main()
