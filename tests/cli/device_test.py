"""Contenders that are to compute on a GPU where there is none are rows that say so.

python3 -m tests.cli.device_test build/dev/bakeoff
"""

from __future__ import annotations

import unittest
from pathlib import Path

from tests.cli import support


class Device(unittest.TestCase):
    def test_no_gpu_is_a_row(self) -> None:
        support.need("torch")
        if Path("/proc/driver/nvidia/version").exists():
            self.skipTest("there is a GPU here")
        place = support.Place(["torch"], shared_proofs=True)
        self.addCleanup(place.close)
        place.write("mlp.ir", support.MLP)
        text = support.recipe(
            [
                'framework = "torch", device = ["cpu", "cuda"]',
                'framework = "torch", compile = "cuda_graphs"',
                'framework = "torch", cuda_allocator = "async"',
            ],
            top='workload = "mlp.ir"\nbatch = 50\nalpha = 0.5\nmargin = 1.0\n',
            budget="minutes = 4\nheats = 3\n",
        )
        outcome = place.run(
            "run",
            place.write("gpu.toml", text),
            "--out",
            "run",
            "--format",
            "json",
            timeout=300,
        )
        self.assertEqual(outcome.code, 0, outcome.err)
        rows = outcome.json()
        self.assertEqual(
            [row["contender"]["id"] for row in rows["ranked"]], ["torch[device=cpu]"]
        )
        unranked = {row["contender"]["id"]: row for row in rows["unranked"]}
        for setting, shown in (
            ("compile=cuda_graphs", 'compile = "cuda_graphs"'),
            ("cuda_allocator=async", 'cuda_allocator = "async"'),
        ):
            failure = unranked.pop(f"torch[{setting}]")["failure"]
            self.assertEqual(failure["stage"], "import")
            self.assertIn(
                f"{shown} needs a GPU, and torch sees none here", failure["reason"]
            )
        ((contender, row),) = unranked.items()
        self.assertEqual(contender, "torch[device=cuda]")
        self.assertEqual(row["failure"]["stage"], "import")
        self.assertEqual(
            row["failure"]["reason"],
            'device = "cuda", but torch computes on cpu here; no driver of NVIDIA is '
            "loaded here (there is no /proc/driver/nvidia/version)",
        )
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
