"""What scripts/full_networks.py makes of numbers: estimates, complaints, tables."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "scripts"))

import full_networks as tier  # noqa: E402

SHOWN = """workload m(x: f32[N,2,3], y: i32[N]) {
  h = linear(x; weight=fc.weight[4,6])
}

values
  x                    f32[N,2,3]
  y                    i32[N]
  h                    f32[N,4]
  loss                 f32[]

24 trained parameters
of one row of a batch: 0.000 MFLOP forward, 0.000 MFLOP backward
  linear               48 FLOP forward, 96 FLOP backward
  lstm                 2 FLOP forward, 3 FLOP backward
"""


def row(framework: str, *losses: float, **more: Any) -> tier.Row:
    return tier.Row("m", framework, losses=losses, **more)


class FullNetworks(unittest.TestCase):
    def test_a_network_is_read_and_its_memory_estimated(self) -> None:
        network = tier.network_of("m", SHOWN)
        self.assertEqual(network, tier.Network("m", 24, 10, 50, 149))
        self.assertEqual(network.needs(3), 4 * (5 * 24 + 4 * 3 * 10) + tier.GIB)
        with self.assertRaises(SystemExit):
            tier.network_of("m", "nothing")

    def test_losses_that_differ_are_wrong(self) -> None:
        same = [row("torch", 1, 0.5, 0.25), row("jax", 1.00001, 0.5, 0.25)]
        self.assertEqual(tier.complaints(same), [])
        (wrong,) = tier.complaints([*same, row("keras", 1, 0.5, 0.26)])
        self.assertIn("keras has losses", wrong)
        wrong_twice = tier.complaints([row("jax", float("nan"), 1, 1)])
        self.assertEqual(len(wrong_twice), 2)

    def test_what_fits_must_train_and_what_does_not_is_no_fault(self) -> None:
        failed = row("jax", reason="killed")
        skipped = row("keras", reason="may need 40.0 GiB", skipped=True)
        self.assertEqual(tier.complaints([failed, skipped]), ["m: jax: killed"])
        table = tier.rows_table([row("torch", 1, 2, 3), skipped])
        self.assertIn("| torch | 1.00000, 2.00000, 3.00000 |", table)
        self.assertIn("| keras | may need 40.0 GiB |", table)


if __name__ == "__main__":
    unittest.main()
