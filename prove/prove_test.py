"""The claims about verdicts hold; wrong statistics are noticed, bad input is refused.

Run alone: python3 prove/prove_test.py build/dev/prove/bakeoff_prove

Every day with a share of the simulations of --quick, with BAKEOFF_FULL_TESTS=1 with all.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

PROGRAM = ""
FULL = bool(os.environ.get("BAKEOFF_FULL_TESTS"))
SHARE = "1" if FULL else "0.15"
SHARE_OF_CLAIMS = "1" if FULL else "0.05"
# The least of the mutants show in no share: with BAKEOFF_FULL_TESTS=1 alone.
NEEDS_ALL = ("lengthened", "pooled-variance", "waves-of-one")


def prove(*arguments: str, share: str = SHARE) -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, "--quick", "--share", share, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def missed(output: str, claim: str) -> list[str]:
    lines = [line for line in output.splitlines() if line.startswith(claim + " ")]
    return [line for line in lines if line.endswith("MISSED")]


class Claims(unittest.TestCase):
    def test_all_hold(self) -> None:
        done = prove(share=SHARE_OF_CLAIMS)
        print(done.stdout, file=sys.stderr)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


class Mutants(unittest.TestCase):
    """Each turns the proof red, in the very rows that are there to notice it."""

    def misses(self, mutant: str, claim: str, row: str) -> None:
        if mutant in NEEDS_ALL and not FULL:
            return
        with self.subTest(mutant):
            done = prove("--only", claim, "--mutant", mutant)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            rows = [x for x in missed(done.stdout, claim) if row in x]
            self.assertTrue(rows, done.stdout)

    def test_in_place_of_the_judge(self) -> None:
        for mutant in ("iid", "pooled", "peeking"):
            self.misses(mutant, "T1", "usual")
        self.misses("peeking", "G1", "at the margin")
        self.misses("slopes", "T14", "steal in regimes")

    def test_in_the_measuring(self) -> None:
        self.misses("rerun", "T14", "steal in regimes")
        self.misses("lengthened", "T14", "steal in regimes")
        self.misses("whole-burst", "T14", "first step of a burst")

    def test_in_what_decides(self) -> None:
        self.misses("trimmed-alone", "V10", "every 50th step")

    def test_in_fleets(self) -> None:
        self.misses("nodes-forgotten", "L2", "4 nodes")
        self.misses("nodes-veto", "L3", "2.5% apart")
        self.misses("waves-of-one", "L1", "turns of heats")

    def test_among_many_contenders(self) -> None:
        self.misses("unshared", "T15", "K = 9 identical")
        self.misses("pooled-variance", "T15", "one three times as noisy")


class Seeds(unittest.TestCase):
    def test_figures_follow_from_the_seed(self) -> None:
        def lines(seed: str) -> list[str]:
            done = prove("--only", "T3", "--seed", seed)
            return done.stdout.splitlines()[:-1]  # the last one holds the time

        self.assertEqual(lines("5"), lines("5"))
        self.assertNotEqual(lines("5"), lines("6"))


class BadInput(unittest.TestCase):
    def refused(self, expected: str, *arguments: str) -> None:
        done = prove(*arguments)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertIn(expected, done.stdout + done.stderr)

    def test_is_refused(self) -> None:
        self.refused("no such claim", "--only", "T99")
        self.refused("sideways", "--mutant", "sideways")
        self.refused("cannot be read", "--only", "T1", "--traces", "/no/such/file")

    def test_of_recorded_blocks_is_named_by_line(self) -> None:
        good = '{"a": [1.0, 2.0], "b": [1.5]}\n'
        for bad, expected in (
            ("{oops\n", ":2: not JSON"),
            ('{"a": [1.0]}\n', ':2: no list "b"'),
            ('{"a": [1.0], "b": []}\n', ':2: "b" is empty'),
            ('{"a": [-1.0], "b": [1.0]}\n', ':2: "a" holds what is no positive'),
            ('{"a": [1.0], "b": [1.0], "a_bursts": [1.0]}\n', ':2: no list "b_bursts"'),
            ("\n", "1 blocks; the fewest are 4"),
        ):
            with self.subTest(expected), tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "blocks.jsonl"
                file.write_text(good + bad, encoding="utf-8")
                self.refused(expected, "--only", "T1", "--traces", str(file))


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
