"""ONNX's own node tests and light networks.

python3 -m tests.onnx.corpus_test build/dev/bakeoff build/dev/tests/onnx/bakeoff_onnx_node_tests

Every node test passes or is refused by the name of an op or of a type. None gives other numbers.
"""

from __future__ import annotations

import re
import subprocess
import sys
import unittest
from pathlib import Path

from tests.cli import support

ROOT = Path(__file__).resolve().parent.parent.parent
NODE_TESTS = 1765
PASSED = 1073  # at least; more as the IR gets more ops
IN_SCOPE = 99  # % of the tests whose ops are in scope (node_tests.cc) pass, at least
LIGHT = [
    "shufflenet",
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "squeezenet",
    "vgg19",
    "zfnet512",
]
PROGRAMS: list[str] = []


def corpus() -> Path:
    folder = support.real_home() / "data" / "onnx-1.22.0"
    subprocess.run([ROOT / "scripts" / "onnx_tests", folder], check=True, timeout=600)
    return folder


class Corpus(unittest.TestCase):
    def test_node_tests(self) -> None:
        folders = sorted((corpus() / "node").iterdir())
        self.assertEqual(len(folders), NODE_TESTS)
        done = subprocess.run(
            [PROGRAMS[0], *folders], capture_output=True, text=True, timeout=600
        )
        self.assertEqual(re.findall("MISMATCH.*", done.stdout), [])
        counts = re.search(
            r"^passed (\d+), refused (\d+), out of scope (\d+), mismatched 0: ([\d.]+) %",
            done.stdout,
            re.M,
        )
        assert counts is not None, done.stdout[-500:] + done.stderr
        self.assertEqual(sum(int(counts[i]) for i in (1, 2, 3)), NODE_TESTS)
        self.assertGreaterEqual(float(counts[4]), IN_SCOPE)
        self.assertGreaterEqual(int(counts[1]), PASSED)
        for line in re.findall("^refused test.*", done.stdout, re.M):
            self.assertRegex(line, r"^refused \w+: \S+")

    def test_light_networks(self) -> None:
        support.need("onnxruntime")
        place = support.Place(["onnxruntime"])
        self.addCleanup(place.close)
        for name in LIGHT if support.FULL else LIGHT[:1]:
            with self.subTest(name):
                file = corpus() / "light" / f"light_{name}.onnx"
                out = place.path / f"{name}.ir"
                outcome = place.run("import", file, "--loss", "mse", "--out", out)
                self.assertEqual(outcome.code, 0, outcome.err)
                self.assertIn("proven against the file", outcome.out)


if __name__ == "__main__":
    PROGRAMS[:] = [sys.argv.pop(2)]
    support.main()
