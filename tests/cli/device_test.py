"""What is said of memory where there is no GPU. Contenders that ask for one: features_test.

python3 -m tests.cli.device_test build/dev/bakeoff
"""

from __future__ import annotations

import unittest
from pathlib import Path

from tests.cli import support


class Device(unittest.TestCase):
    def test_memory_without_a_gpu(self) -> None:
        support.need("torch")
        if Path("/proc/driver/nvidia/version").exists():
            self.skipTest("there is a GPU here")
        place = support.Place(["torch"], shared_proofs=True)
        self.addCleanup(place.close)
        place.write("mlp.ir", support.MLP)
        text = support.recipe(
            ['framework = "torch", device = "cpu"'],
            budget="minutes = 30\nheats = 1\n",
        )
        recipe = place.write("cpu.toml", text)
        outcome = place.ok("run", recipe, "--out", "run", "--format", "json")
        rows = outcome.json()
        self.assertEqual(len(rows["ranked"]), 1, outcome.err)
        memory = rows["ranked"][0]["memory"]
        self.assertGreater(memory["rss_in_bursts_bytes"], 50e6)
        self.assertGreater(memory["pss_bytes"], 50e6)
        self.assertIsNone(memory["allocator_peak_bytes"])
        self.assertIsNone(rows["ranked"][0]["gpu"])
        self.assertIn(
            "the framework's own memory count: torch's allocator keeps no count on "
            "the CPU",
            rows["not_sampled"],
        )


if __name__ == "__main__":
    support.main()
