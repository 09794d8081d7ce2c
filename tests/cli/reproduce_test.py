"""`bakeoff reproduce`: a published study replayed as a suite; its table beside today's, the shares of its confounds.

python3 -m tests.cli.reproduce_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import unittest

from tests.cli import support

STUDY = """
title = "A small study"
source = "somebody, 2025"
unit = "ms a step"
gpu = "an A100"
compared = ["It timed one network."]
columns = ["onnxruntime", "onnxruntime[optimization=disabled]", "jax"]
references = ["onnxruntime"]

[every.race]
bursts = 3

[[row]]
name = "small"
recipe = "small"
instead = "a network of 32"
figures = [1, 0.5, 3]

[[row]]
name = "broken"
recipe = "broken.toml"

[[row]]
name = "later"
why_not = "generate cannot be raced yet"
figures = [4, 2, nan]

[[confound]]
name = "Threads"
what = "One side had two."
settings = ["threads"]

[[confound]]
name = "TF32"
what = "On in one."
why_not = "there is no GPU"
"""
ROWS = (
    'framework = "onnxruntime"',
    'framework = "onnxruntime", optimization = "disabled"',
    'framework = "onnxruntime", threads = 2',
    'framework = "jax"',
)
SMALL = support.recipe(ROWS, top=support.PREDICTIONS, optimizer="")


class Reproduce(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.Place(["onnxruntime"], shared_proofs=True)
        self.addCleanup(self.place.close)
        self.place.write("mlp.ir", support.MLP)
        self.place.write("small.toml", SMALL)
        self.place.write("broken.toml", SMALL.replace("batch", "bacth"))
        self.place.write("mine.toml", STUDY)

    def test_a_study_is_replayed_and_its_record_shows_it_again(self) -> None:
        """One cheap row; a broken recipe, a missing environment and a later row are reasons."""
        support.need("onnxruntime")
        got = self.place.run("reproduce", "mine.toml", "--out", "s")
        self.assertEqual(got.code, 1, got.err)
        self.assertEqual(self.place.none_left(), {})
        self.assertTrue(
            got.out.startswith("Not a replication: no GPU was used"), got.out
        )
        result = json.loads((self.place.path / "s" / "report.json").read_text())
        self.assertFalse(result["replication"])
        rows = {row["row"]: row for row in result["rows"]}
        self.assertIsNone(rows["small"]["why_not_raced"])
        self.assertIn("unknown key 'bacth'", rows["broken"]["why_not_raced"])
        self.assertEqual(rows["later"]["why_not_raced"], "generate cannot be raced yet")
        slow, absent = rows["small"]["contenders"]
        self.assertEqual(slow["published"], 0.5)
        self.assertGreater(slow["here"]["value"], 0)
        self.assertIn(slow["order"], ("agrees", "reversed", "no gap here", "undecided"))
        self.assertIsNone(absent["here"])
        self.assertIn("jax is not ranked", absent["note"])
        self.assertEqual(result["confounds"][1]["why_no_share"], "there is no GPU")
        run = json.loads((self.place.path / "s/01-small/run.json").read_text())
        self.assertIn("bursts = 3", run["recipe_text"])
        # Offline, after the study's file is gone; as a suite; and nothing is raced twice.
        (self.place.path / "mine.toml").unlink()
        again = self.place.ok("reproduce", "--report", "s", "--format", "json")
        self.assertEqual(again.json(), result)
        for width in ("80", "200"):
            self.place.variables["COLUMNS"] = width
            text = self.place.run("reproduce", "--report", "s").out
            for line in text.splitlines()[:-1]:
                self.assertLessEqual(len(line), int(width), line)
        page = (self.place.path / "s" / "report.html").read_text()
        self.assertIn("Not a replication: no GPU was used", page)
        self.assertIn("generate cannot be raced yet", page)
        self.assertEqual(self.place.run("suite", "--report", "s").code, 0)
        trials = self.place.path / "s/01-small/trials.jsonl"
        before = trials.read_bytes()
        self.place.run("reproduce", "--resume", "s", "--budget", "5s")
        self.assertEqual(trials.read_bytes(), before)

    def test_what_is_inside_and_what_would_be_raced(self) -> None:
        listed = self.place.ok("reproduce")
        for part in (
            "keras3_a100",
            "Rows that can be raced here: 19 of 19",
            "Published",
        ):
            self.assertIn(part, listed.out)
        plan = self.place.ok("reproduce", "algoperf_a100", "--dry-run")
        self.assertIn("recipes/transformer_tiny.toml, batch 16: torch,", plan.out)
        self.assertIn("recipes/graph_network_tiny.toml, batch 32: torch,", plan.out)
        rows = ("--rows", "BERT fit by the libraries,Mistral fit by peft")
        plan = self.place.run("reproduce", "keras3_a100", "--dry-run", *rows)
        hub = ":hub_bert.py, ".join(
            f"keras[backend={backend}]" for backend in ("tensorflow", "jax", "torch")
        )
        for part in (
            f"recipes/bert_tiny.toml, batch 32: torch:bert.py, {hub}:hub_bert.py, torch",
            "recipes/mistral_lora_tiny.toml, batch 8: torch:mistral_lora.py, torch",
        ):
            self.assertIn(part, " ".join(plan.out.split()))
        one = self.place.run("reproduce", "mine.toml", "--dry-run", "--rows", "small")
        self.assertIn("is not among the rows asked for", one.out)
        self.assertFalse((self.place.path / "runs").exists())

    def test_a_script_in_no_environment_is_a_row(self) -> None:
        self.place.write("own.py", "import torch\n")
        rows = (ROWS[0], 'script = "own.py", environment = "nowhere"')
        text = support.recipe(rows, top=support.PREDICTIONS, optimizer="")
        self.place.write("own.toml", text)
        got = self.place.run("parity", "own.toml")
        self.assertIn("no environment 'nowhere'; `bakeoff env list`", got.out)
        self.assertIn("onnxruntime: same", got.out)

    def test_bad_input(self) -> None:
        self.place.write("wrong.toml", STUDY.replace("figures = [4", "figurs = [4"))
        self.place.write("suite/suite.json", '{"name": "x", "entries": []}')
        for arguments, message in (
            (["keras_a100"], "did you mean 'keras3_a100'?"),
            (["wrong.toml"], "wrong.toml:26: a row has no key 'figurs'"),
            (["mine.toml", "--rows", "smal"], "did you mean 'small'?"),
            (["mine.toml", "--rows", "later"], "generate cannot be raced yet"),
            (["mine.toml", "--rows", "broken"], "unknown key 'bacth'"),
            (["--report", "suite"], "is a suite and replays no study"),
            (["--resume", "nowhere"], "nowhere/suite.json"),
            (["small.toml"], "a study has no key"),
        ):
            with self.subTest(arguments=arguments):
                got = self.place.run("reproduce", *arguments)
                self.assertEqual(got.code, 2, got.err)
                self.assertIn(message, got.err)
                self.assertFalse((self.place.path / "runs").exists())


if __name__ == "__main__":
    support.main()
