"""A host that is busy throughout is named, and the verdict refused with exit code 3.

The limits are set so low that no machine keeps them: what is tested is not the machine.
Real PyTorch: python3 -m tests.cli.busy_host_test build/dev/bakeoff

Not part of `make test` yet: beside other tests rounds may be too short to be judged. The
rule itself is tested in src/lab/host_watch_test.cc and src/lab/race_test.cc.
"""

from __future__ import annotations

import unittest

from tests.cli import support

RACE = """
parity_steps = 3
bursts = 2
burst_seconds = 0.6
max_clock_change = 0
max_busy = {max_busy}
max_reruns = 1
"""


def recipe(max_busy: float) -> str:
    return support.recipe(
        ['framework = "torch"', 'framework = "torch", channels_last = true'],
        race=RACE.format(max_busy=max_busy),
        budget="minutes = 1\nheats = 4\n",
    )


class BusyHost(unittest.TestCase):
    def setUp(self) -> None:
        support.need("torch")
        self.place = support.Place(["torch"])
        self.addCleanup(self.place.close)
        self.place.write("mlp.ir", support.MLP)

    def test_the_verdict_is_refused_and_the_host_named(self) -> None:
        self.place.write("busy.toml", recipe(0))
        outcome = self.place.run("run", "busy.toml", "--out", "run", "--format", "json")
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertIn("no verdict: this host was busy throughout", outcome.err)
        # Other tests may run beside this one, which disturbs as well.
        self.assertRegex(
            outcome.err, "the processor's speed changed by|other processes used"
        )
        report = outcome.json()
        self.assertFalse(report["decided"])
        self.assertIn("busy throughout", report["host"]["refusal"])
        self.assertGreaterEqual(report["host"]["run_again"], 3)
        self.assertEqual({row["verdict"] for row in report["ranked"]}, {"refused"})
        self.assertTrue(any("run again, whole" in note for note in report["notes"]))
        again = self.place.run("report", "run")
        self.assertIn("No verdict: this host was busy throughout", again.out)

    def test_a_recipe_may_allow_it(self) -> None:
        self.place.write("allowed.toml", recipe(1))
        outcome = self.place.run("run", "allowed.toml", "--format", "json")
        self.assertEqual(outcome.code, 0, outcome.err)
        report = outcome.json()
        self.assertIsNone(report["host"]["refusal"])
        self.assertGreater(report["host"]["disturbed"], 0)
        self.assertTrue(any("The host disturbed" in n for n in report["notes"]))


if __name__ == "__main__":
    support.main()
