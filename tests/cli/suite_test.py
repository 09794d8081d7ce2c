"""`bakeoff suite`: recipes one after another, one table; baseline; resumed, and computed again offline.

python3 -m tests.cli.suite_test build/dev/bakeoff
"""

from __future__ import annotations

import csv
import io
import json
import signal
import unittest

from tests.cli import support

PLAIN, BOUND, BASIC, NONE = (
    'framework = "onnxruntime"',
    'framework = "onnxruntime", io_binding = true',
    'framework = "onnxruntime", optimization = "basic"',
    'framework = "onnxruntime", optimization = "disabled"',
)
TOP = support.PREDICTIONS.replace("alpha = 0.5", "alpha = 0.05")
PREDICTED = {"top": TOP, "optimizer": ""}
SMALL = support.recipe([PLAIN, NONE, BOUND], **PREDICTED)
WIDE = support.recipe([PLAIN, BOUND, BASIC], **PREDICTED)
WIDE = WIDE.replace("batch = 50", "batch = 20")
SUITE = """
name = "both"
recipes = ["small.toml", "broken.toml", "wide.toml"]
baseline = "onnxruntime"
"""


class Suite(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.place_for(self, "onnxruntime", shared_proofs=True)
        self.place.write("small.toml", SMALL)
        self.place.write("wide.toml", WIDE)
        self.place.write("broken.toml", SMALL.replace("batch", "bacth"))
        self.place.write("both.toml", SUITE)

    def check_table(self, folder: str) -> None:
        """What the folder holds, computed again in every format."""
        again = self.place.ok("suite", "--report", folder, "--format", "json")
        table = again.json()
        rows = {row["recipe"]: row for row in table["rows"]}
        self.assertEqual(list(rows), ["small", "broken", "wide"])
        self.assertIn("unknown key 'bacth'", rows["broken"]["failure"])
        for name in ("small", "wide"):
            cell = rows[name]["cells"]["onnxruntime"]
            self.assertEqual(cell["state"], "ranked", cell["reason"])
            self.assertTrue(rows[name]["best"])
            self.assertTrue(
                (self.place.path / folder / rows[name]["run"] / "report.html").exists()
            )
        self.assertEqual(
            rows["small"]["cells"]["onnxruntime[optimization=basic]"]["state"],
            "not in the recipe",
        )
        self.assertEqual(table["geometric_mean"]["rows"], ["small", "wide"])
        means = table["geometric_mean"]["contenders"]
        for name in ("onnxruntime", "onnxruntime[io_binding]"):
            self.assertTrue(means[name]["compared"])
        alone = means["onnxruntime[optimization=disabled]"]
        self.assertEqual(alone["why_not"], "not in wide")
        self.assertAlmostEqual(table["geometric_mean"]["error_rate"], 0.1)
        value = 1.0
        for name in ("small", "wide"):
            value *= rows[name]["cells"]["onnxruntime[io_binding]"]["ratio"]["value"]
        mean = means["onnxruntime[io_binding]"]["ratio"]["value"]
        self.assertAlmostEqual(mean, value**0.5, places=9)
        self.assertEqual(means["onnxruntime"]["against_baseline"], "baseline")
        text = self.place.run("suite", "--report", folder, "--format", "csv").out
        lines = list(csv.DictReader(io.StringIO(text)))
        self.assertEqual(len(lines), 4 + 1 + 4 + 4)
        for width in ("80", "200"):
            self.place.variables["COLUMNS"] = width
            text = self.place.run("suite", "--report", folder).out
            for part in (
                "geometric mean",
                "(io_binding)",
                "broken",
                "How many times as fast as ONNX Runtime",
            ):
                self.assertIn(part, text)
            for line in text.splitlines()[:-1]:
                self.assertLessEqual(len(line), int(width), line)
        page = (self.place.path / folder / "report.html").read_text()
        self.assertIn("geometric mean", page)

    def test_interrupted_resumed_and_computed_again(self) -> None:
        """Ctrl-C in the first race, then all of it; a broken recipe is a row."""
        with self.place.start("suite", "both.toml", "--out", "s") as process:
            trials = self.place.path / "s" / "01-small" / "parity.jsonl"
            support.wait_for(trials.exists, process)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=support.HANGS)
        self.assertEqual(process.returncode, 130, err)
        self.assertIn("stopped before its turn", " ".join(out.split()))
        record = json.loads((self.place.path / "s" / "suite.json").read_text())
        states = [entry["state"] for entry in record["entries"]]
        self.assertEqual(states, ["running", "failed", "waiting"])
        got = self.place.run("suite", "--resume", "s")
        self.assertEqual(got.code, 1, got.err)
        self.assertEqual(self.place.none_left(), {})
        self.assertIn("recipe 3 of 3: wide", got.err)
        self.check_table("s")
        # The report of a run: against the baseline, and the effect of the setting.
        run = self.place.run("report", "s/02-broken")
        self.assertEqual(run.code, 2)
        run = self.place.run(
            "report", "s/03-wide", "--baseline", "onnxruntime", "--format", "json"
        )
        self.assertEqual(run.json()["baseline"]["contender"], "onnxruntime")
        pairs = run.json()["effects"]["pairs"]
        self.assertEqual(
            {(pair["setting"], pair["from"], pair["to"]) for pair in pairs},
            {("io_binding", "false", "true"), ("optimization", "all", "basic")},
        )
        wrong = self.place.run("report", "s/03-wide", "--baseline", "onnxrutime")
        self.assertEqual(wrong.code, 2)
        self.assertIn("did you mean 'onnxruntime'?", wrong.err)
        trials = self.place.path / "s" / "03-wide" / "trials.jsonl"
        before = trials.read_bytes()
        self.place.run("suite", "--resume", "s", "--budget", "5s")
        self.assertEqual(trials.read_bytes(), before, "nothing is raced twice")
        self.fails_with_an_older_run()

    def fails_with_an_older_run(self) -> None:
        """What its folder holds is shown, and that it failed is said, too."""
        file = self.place.path / "s" / "suite.json"
        record = json.loads(file.read_text())
        record["entries"] = [record["entries"][0] | {"state": "waiting"}]
        file.write_text(json.dumps(record))
        recipe = self.place.path / "small.toml"
        recipe.write_text("bacth = 3\n" + recipe.read_text())
        got = self.place.run("suite", "--resume", "s")
        self.assertEqual(got.code, 1, got.out + got.err)
        self.assertIn("small: ", got.out)
        self.assertIn("unknown key 'bacth'", " ".join(got.out.split()))
        self.assertIn("1.000", got.out)

    def test_bad_input(self) -> None:
        for arguments, message in (
            ([], "name recipes, or a suite"),
            (["none.toml"], "none.toml"),
            (["broken.toml"], "unknown key 'bacth'"),
            (["both.toml", "small.toml"], "name one suite alone"),
            (["both.toml", "--baseline", "onnxrutime"], "did you mean 'onnxruntime'?"),
            (["both.toml", "--budget", "20pairs"], "must be a time above 0"),
            (["both.toml", "--budget", "9e9h"], "must be a time above 0"),
            (["both.toml", "--profile", "none.json"], "none.json"),
            (["--resume", "nowhere"], "nowhere/suite.json"),
            (["--report", "."], "suite.json"),
        ):
            with self.subTest(arguments=arguments):
                got = self.place.run("suite", *arguments)
                self.assertEqual(got.code, 2, got.err)
                self.assertIn(message, got.err)
                self.assertFalse((self.place.path / "runs").exists())


if __name__ == "__main__":
    support.main()
