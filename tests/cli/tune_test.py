"""`bakeoff tune` and `bakeoff run --why`: what settings gain, and the best of each framework.

python3 -m tests.cli.tune_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import tomllib
import unittest

from tests.cli import support

RECIPE = """
workload = "mlp_small"
batch = 64
contenders = [{ framework = "jax" }]
[data]
samples = 640
[optimizer]
kind = "sgd"
lr = 0.1
[race]
threads = 1
max_busy = 1
parity_steps = 3
"""


class Tune(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.place_for(self, "jax", shared_proofs=True)
        self.place.variables["BAKEOFF_BRIEF"] = "1"
        self.place.write("r.toml", RECIPE)

    def test_settings_are_raced_alone_and_the_best_remains(self) -> None:
        for minutes in ("0.5", "2", "10"):  # a busy machine needs more for every stage
            found = f"out{minutes}"
            got = self.place.run("tune", "r.toml", "--minutes", minutes, "--out", found)
            if got.code == 0:
                break
        self.assertEqual(got.code, 0, got.err)
        self.assertEqual(self.place.none_left(), {})
        for text in ("What each setting gains", "steps_per_call=8 alone: ", "times as"):
            self.assertIn(text, got.out)
        self.assertNotIn("not the same computation", got.out)
        out = self.place.path / found
        (tuned,) = json.loads((out / "tune.json").read_text())["tuned"]
        changes = {one["change"] for one in tuned["alone"]}
        self.assertLessEqual({"steps_per_call=8", "donate=false"}, changes)
        best = tomllib.loads((out / "best.toml").read_text())
        self.assertEqual(len(best["contenders"]), 1)
        self.assertEqual(best["contenders"][0]["framework"], "jax")
        self.assertEqual(best["batch"], 64)
        script = got.out.splitlines()[-1]
        self.assertTrue((self.place.path / script).exists(), script)

    def test_no_recipe(self) -> None:
        got = self.place.run("tune", "nothing.toml")
        self.assertEqual(got.code, 2)
        self.assertIn("nothing.toml", got.err)


@support.full_tier
class Why(unittest.TestCase):
    def test_it_says_what_steps_spend_time_on(self) -> None:
        place = support.place_for(self, "jax", "torch", shared_proofs=True)
        place.variables["BAKEOFF_BRIEF"] = "1"
        jax = '{ framework = "jax" }'
        place.write("r.toml", RECIPE.replace(jax, jax + ', { framework = "torch" }'))
        got = place.ok("run", "r.toml", "--why", "--budget", "60s", "--out", "out")
        self.assertEqual(place.none_left(), {})
        kept = (place.path / "out" / "why.jsonl").read_text().splitlines()
        accounts = json.loads(kept[-1])["accounts"]
        self.assertGreater(sum(one["ms"] for one in accounts), 0)
        self.assertGreater(sum(one["leader_ms"] for one in accounts), 0)
        said = " ".join(got.out.split())
        self.assertIn("What a step of each does, run by itself: ", said)


if __name__ == "__main__":
    support.main()
