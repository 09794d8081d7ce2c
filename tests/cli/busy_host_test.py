"""A host that is busy throughout is named, and the verdict refused with exit code 3.

The test makes it busy itself: a process that spins.
Real workers: python3 -m tests.cli.busy_host_test build/dev/bakeoff
"""

from __future__ import annotations

import subprocess
import sys
import unittest

from tests.cli import support

RACE = """
parity_steps = 3
bursts = 3
burst_seconds = 0.2
max_busy = 0
"""


def recipe() -> str:
    return support.recipe(
        ['framework = "onnxruntime"', 'framework = "onnxruntime", io_binding = true'],
        top=support.PREDICTIONS,
        optimizer="",
        race=RACE,
        budget="minutes = 4\nheats = 3\n",
    )


class BusyHost(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.place_for(self, "onnxruntime", shared_proofs=True)
        neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        self.addCleanup(neighbour.wait)
        self.addCleanup(neighbour.kill)

    @support.full_tier
    def test_the_verdict_is_refused_and_the_host_named(self) -> None:
        self.place.write("busy.toml", recipe())
        outcome = self.place.run("run", "busy.toml", "--out", "run", "--format", "json")
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertIn("no verdict: this host was busy throughout", outcome.err)
        self.assertIn("other processes used", outcome.err)
        report = outcome.json()
        self.assertFalse(report["decided"])
        self.assertIn("busy throughout", report["host"]["refusal"])
        self.assertEqual(report["host"]["run_again"], 0)
        # Beside even more work all of them may drift in every heat, and none is ranked.
        verdicts = {row["verdict"] for row in report["ranked"]}
        self.assertLessEqual(verdicts, {"not judged"})
        again = self.place.run("report", "run")
        self.assertIn("No verdict: this host was busy throughout", again.out)

    # Every day by workers of the tests' own: RaceTest.ABusyHostIsSeenHoweverShortTheRace.
    @support.full_tier
    def test_a_race_of_short_bursts_is_refused_too(self) -> None:
        self.place.write(
            "brief.toml",
            recipe()
            .replace("burst_seconds = 0.2", "burst_seconds = 0.01")
            .replace("heats = 3", "heats = 6"),
        )
        outcome = self.place.run(
            "run", "brief.toml", "--out", "brief", "--format", "json"
        )
        self.assertEqual(outcome.code, 3, outcome.err)
        self.assertIn("no verdict: this host was busy throughout", outcome.err)
        verdicts = {row["verdict"] for row in outcome.json()["ranked"]}
        self.assertLessEqual(verdicts, {"not judged"})


if __name__ == "__main__":
    support.main()
