"""Calibration with the built-in kernel: needs no framework.

python3 -m tests.cli.calibrate_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import signal
import unittest
from pathlib import Path
from typing import Any

from tests.cli import support


class Calibrate(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.Place()
        self.addCleanup(self.place.close)

    def profile(self, path: Path) -> Any:
        found = json.loads(path.read_text())
        self.assertEqual(found["profile_version"], 1)
        self.assertEqual(found["framework"], "kernel")
        return found

    def test_a_short_one_writes_a_profile(self) -> None:
        # No environment exists here, so that the kernel is what is left.
        for minutes in ("0.25", "1", "5"):  # a slow machine needs more for two blocks
            got = self.place.ok("calibrate", "--quick", "--minutes", minutes)
            path = Path(got.out.strip().splitlines()[-1])
            self.assertEqual(path, self.place.path / "home" / "profile.json")
            profile = self.profile(path)
            measured = [entry for entry in profile["entries"] if entry["d"]]
            if len(measured) >= 2:
                break
        self.assertTrue(profile["complete"])
        names = [entry["name"] for entry in profile["entries"]]
        self.assertIn("tuned glibc malloc", names)
        self.assertGreaterEqual(len(measured), 2)
        for entry in measured:
            self.assertLess(entry["sd_low"], entry["sd"])
            self.assertLess(entry["sd"], entry["sd_high"])
            self.assertEqual(sorted(entry["pairs_needed"]), ["1%", "2%", "3%", "5%"])
        self.assertEqual(sum(entry["kept"] for entry in profile["entries"]), 1)
        self.assertRegex(got.err, "calibrating with kernel")
        self.assertEqual(self.place.none_left(), {})
        left = [p.name for p in (self.place.path / "home").iterdir()]
        self.assertFalse([name for name in left if name.startswith("calibrate-")])

    def test_ctrl_c_keeps_what_was_measured(self) -> None:
        process = self.place.start(
            "calibrate", "--quick", "--framework", "kernel", "--output", "kept.json"
        )
        # The workers of a third block start when two have been measured.
        home = self.place.path / "home"
        support.wait_for(
            lambda: any(home.glob("calibrate-*/run/logs/*.heat3.log")), process
        )
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=support.HANGS)
        self.assertEqual(process.returncode, 130, err)
        self.assertRegex(out, "interrupted")
        profile = self.profile(self.place.path / "kept.json")
        self.assertFalse(profile["complete"])
        self.assertGreaterEqual(sum(len(e["d"]) for e in profile["entries"]), 1)
        self.assertEqual(self.place.none_left(), {})


if __name__ == "__main__":
    support.main()
