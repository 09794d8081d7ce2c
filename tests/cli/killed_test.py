"""kill -9 of every long command: no process of it stays, the home is whole, and the next command removes its
temporary files.

Real frameworks; every command is killed soon after its first process, and later:
python3 -m tests.cli.killed_test build/dev/bakeoff
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
import unittest
from pathlib import Path

from tests.cli import explain_test, gate_test, latency_test, support, translate_test

LATER = (0.3, 2.0, 6.0)  # seconds after its first process, more or less
# The same moments in each run but a shuffled one (scripts/run_ctest.py).
RANDOM = random.Random(os.environ.get("BAKEOFF_TEST_SHUFFLE", "1"))
SUITE = 'name = "two"\nrecipes = ["race.toml", "race.toml"]\n'


@support.full_tier
class Killed(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.place_for(
            self, "torch", "onnxruntime", "jax", shared_proofs=True
        )
        self.temporary = self.place.path / "temporary"
        self.temporary.mkdir()
        self.place.variables["TMPDIR"] = str(self.temporary)
        self.place.write("mlp.ir", support.MLP)
        self.shared = set(Path("/dev/shm").iterdir())

    def kill(self, *arguments: str, out: str = "", begun: str = "") -> None:
        """`begun`: part of the command of a process that tells that the work began."""
        for number, seconds in enumerate(LATER):
            folder = f"{number}-{out}" if out else ""
            more = ("--out", folder) if out else ()
            process = self.place.start(*arguments, *more, stderr=subprocess.DEVNULL)
            with process:
                self.kill_one(process, begun, seconds * RANDOM.uniform(0.5, 1.5))
            self.all_is_well(f"{arguments[0]}, killed after about {seconds} s", folder)
        self.recipe()
        self.place.write("whole.py", explain_test.SCRIPT)
        for words in (("run", "race.toml", "--out", "after"), ("check", "whole.py")):
            got = self.place.run(*words)
            self.assertLess(got.code, 2, got.out + got.err)
        left = [p.name for p in self.temporary.rglob("*") if p.is_file()]
        self.assertEqual(left, [], f"{arguments[0]} leaves temporary files")
        shared = {p.name for p in set(Path("/dev/shm").iterdir()) - self.shared}
        self.assertEqual([name for name in shared if "bakeoff" in name], [])

    def kill_one(
        self, process: subprocess.Popen[str], begun: str, seconds: float
    ) -> None:
        def works() -> bool:
            running = self.place.processes().items()
            return any(
                begun in command for pid, command in running if pid != process.pid
            )

        support.wait_for(works, process)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=support.HANGS)

    def all_is_well(self, what: str, folder: str) -> None:
        self.assertEqual(self.place.none_left(), {}, what)
        commands = [("env", "list"), ("history",)]
        if folder and (self.place.path / folder / "run.json").exists():
            commands.append(("report", folder))
        for command in commands:
            got = self.place.run(*command)
            self.assertLess(got.code, 2, what + got.out + got.err)
            self.assertNotIn("internal error", got.out + got.err)

    def recipe(self, **sections: str) -> None:
        text = latency_test.recipe([latency_test.ONE, latency_test.OTHER], **sections)
        self.place.write("race.toml", text)

    def test_run_in_a_study(self) -> None:
        self.recipe(latency=latency_test.LATENCY)
        self.kill("run", "race.toml", out="run", begun="bakeoff_runner")

    def test_suite(self) -> None:
        self.recipe()
        self.place.write("suite.toml", SUITE)
        self.kill("suite", "suite.toml", out="suite", begun="bakeoff_runner")

    def test_tune(self) -> None:
        self.recipe()
        self.kill(
            "tune", "race.toml", "--minutes", "3", out="t", begun="bakeoff_runner"
        )

    def test_gate(self) -> None:
        self.place.write("old.py", gate_test.FAST)
        self.place.write("new.py", gate_test.SLOW)
        self.kill("gate", "--base", "old.py", "--head", "new.py", begun=".py")

    def test_explain(self) -> None:
        self.place.write("fast.py", explain_test.SCRIPT)
        self.place.write("slow.py", explain_test.SLOW)
        self.kill("explain", "slow.py", "fast.py", out="why", begun="slow.py")

    def test_import(self) -> None:
        self.place.write("net.py", translate_test.MODEL)
        words = ("net.py:make", *translate_test.INPUT)
        self.kill("import", *words, out="imported.ir", begun="bakeoff_import")

    def test_translate(self) -> None:
        self.place.write("net.py", translate_test.MODEL)
        words = ("net.py:make", *translate_test.INPUT, "--to", "jax")
        self.kill("translate", *words, out="translated", begun="bakeoff_import")


if __name__ == "__main__":
    support.main()
