"""`bakeoff explain`: causes are confirmed or not named, and scripts that cannot be explained are told so.

python3 -m tests.cli.explain_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import os
import unittest
from typing import Any

from tests.cli import support

SCRIPT = """
import argparse
import gc
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
kept = [[n] for n in range(300_000)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=1000)
    args = parser.parse_args()
    x, y = torch.randn(2048, 64), torch.randint(0, 10, (2048,))
    model = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(args.epochs):
        for xb, yb in DataLoader(TensorDataset(x, y), batch_size=128, shuffle=True):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
"""
SLOW = SCRIPT.replace(
    "            optimizer.step()\n",
    "            optimizer.step()\n            gc.collect()\n",
)
# Most of a step is the same on every machine, and however busy it is.
STEADY = SLOW.replace("gc.collect()", "time.sleep(0.01)").replace("gc", "time")
TRAIN = SCRIPT.replace("    for epoch", "    # BEFORE\n    for epoch")


class Explain(unittest.TestCase):
    def setUp(self) -> None:
        support.need("torch")
        self.place = support.Place(("torch",))
        self.addCleanup(self.place.close)
        # Others may explain something at the same time.
        self.temporary = self.place.path / "temporary"
        self.temporary.mkdir()
        self.place.variables["TMPDIR"] = str(self.temporary)
        self.place.variables["BAKEOFF_BRIEF"] = "1"

    def explain(self, *words: str, seconds: int = 10) -> support.Outcome:
        got = self.place.run("explain", "--seconds", str(seconds), *words)
        self.assertEqual(self.place.none_left(), {})
        left = {path.name for path in self.temporary.glob("bakeoff_*")}
        # What a compiler keeps for the next script stays, as it does without Bakeoff.
        self.assertLessEqual(left, {f"bakeoff_inductor_{os.getuid()}"})
        return got

    def explained(self, *words: str, seconds: int = 10) -> Any:
        got = self.explain("--format", "json", *words, seconds=seconds)
        self.assertEqual(got.code, 0, got.err)
        self.said = got.err
        return json.loads(got.out)


# Forward passes alone, soon over.
CALLS = """
import time
import torch

torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Linear(8, 8).eval()
x = torch.ones(4, 8)
with torch.no_grad():
    for _ in range(200):
        model(x)
        # HERE
"""

# In a module, whose lines are named as such.
PAUSE = """import time

def wait():
    time.sleep(0.02)
"""


class Pairs(Explain):
    @support.full_tier
    def test_calls_of_a_model_that_nothing_trains_and_that_end_soon(self) -> None:
        calls = CALLS.replace("range(200)", "range(390)")  # 388 are observed
        self.assertIn("range(390)", calls)
        slow = "import pause" + calls.replace("# HERE", "pause.wait()")
        self.place.write("slow.py", slow)
        self.place.write("pause.py", PAUSE)
        self.place.write("fast.py", calls)
        for seconds in (20, 600):
            found = self.explained("slow.py", "fast.py", seconds=seconds)
            named = [cause for cause in found["causes"] if cause["named"]]
            if named:
                break
        self.assertEqual([cause["key"] for cause in named], ["sleep"], found)
        line = PAUSE.splitlines().index("    time.sleep(0.02)") + 1
        self.assertEqual((named[0]["file"], named[0]["line"]), ("pause.py", line))
        self.assertGreater(found["gap"]["value"], 3)

    def test_a_planted_cause_is_named_with_its_line(self) -> None:
        self.place.write("slow.py", SLOW)
        self.place.write("fast.py", SCRIPT)
        call = ("--out", "out", "slow.py", "fast.py", "--", "--epochs", "100000")
        for seconds in (25, 600):  # beside other work pairs of runs take longer
            found = self.explained(*call, seconds=seconds)
            named = [cause for cause in found["causes"] if cause["named"]]
            if named:
                break
        self.assertGreater(found["gap"]["value"], 1.5, found)
        self.assertEqual(named[0]["key"], "collections", found)
        self.assertGreater(named[0]["booked_share"], 0.2, found)
        self.assertEqual(
            named[0]["line"], SLOW.splitlines().index("            gc.collect()") + 1
        )
        order = ["first standing", "suspected", "standing"]
        if named[0]["confirmed"]:  # beside other work it may be booked alone
            self.assertGreater(named[0]["gain"]["value"], 1.5)
            self.assertGreater(named[0]["gain"]["low"], 1)
            order.append("confirmed")
        # What is known is said before the answer is there.
        said = [line.split(": ")[0] for line in self.said.splitlines()]
        at = [said.index(word) for word in order]
        self.assertEqual(at, sorted(at), self.said)
        page = (self.place.path / "out/explain.html").read_text()
        self.assertIn("it collects garbage at each step", page)
        self.assertNotIn("{{", page)
        self.assertEqual(found["work"], [])
        phases = found["scripts"][0]["phases_seconds"]
        self.assertAlmostEqual(
            sum(phases.values()), found["scripts"][0]["total_seconds"], places=3
        )

    @support.full_tier
    def test_lines_of_the_other_script_are_tried_by_themselves(self) -> None:
        busy = "for _ in range(ROUNDS):\n            torch.ones(90, 90) @ torch.ones(90, 90)"
        calls = "ROUNDS = 1\n" + CALLS.replace("range(200)", "range(4000)").replace(
            "# HERE", busy
        )
        self.place.write("fast.py", calls)
        slow = calls.replace("ROUNDS = 1", "ROUNDS = 60") + "print('slow')\n"
        self.place.write("slow.py", slow)
        found = self.explained("slow.py", "fast.py", seconds=60)
        named = [cause for cause in found["causes"] if cause["named"]]
        self.assertEqual([cause["key"] for cause in named], ["other_code"], found)
        self.assertTrue(named[0]["confirmed"], found)
        self.assertGreater(named[0]["gain"]["low"], 1.5)
        self.assertEqual(named[0]["line"], 1)

    @support.full_tier
    def test_nothing_is_named_between_equal_scripts(self) -> None:
        for script, seconds in ((STEADY, 10), (SCRIPT, 30)):
            self.place.write("a.py", script)
            self.place.write("b.py", script)
            found = self.explained("a.py", "b.py", seconds=seconds)
            self.assertFalse(found["gap_confirmed"], found)
            self.assertFalse(any(cause["confirmed"] for cause in found["causes"]))

    @support.full_tier
    def test_other_work_is_said_first(self) -> None:
        self.place.write("a.py", SLOW)
        self.place.write(
            "b.py",
            SCRIPT.replace("512", "256").replace("batch_size=128", "batch_size=64"),
        )
        got = self.explain("a.py", "b.py", seconds=1)
        self.assertEqual(got.code, 0, got.err)
        first = got.out.splitlines()
        self.assertIn("NOT THE SAME WORK:", first)
        self.assertIn("  parameters: 38,410 against 19,210".replace(",", ""), first)
        self.assertIn("  samples of a step: 128 against 64", first)


@support.full_tier
class WholeRuns(Explain):
    """Scripts that end after a few steps are compared from start to end."""

    def test_a_cause_of_a_short_script(self) -> None:
        short = SCRIPT.replace("default=1000", "default=1").replace(
            "import torch\n", "import time\nimport torch\n", 1
        )
        slow = short.replace(
            "            optimizer.step()\n",
            "            optimizer.step()\n            time.sleep(0.25)\n",
        )
        self.place.write("slow.py", slow)
        self.place.write("fast.py", short)
        found = self.explained("slow.py", "fast.py", seconds=150)
        self.assertEqual(found["per"], "run")
        self.assertGreater(found["gap"]["value"], 1.5)
        # Starts differ by a tenth or more, so a gap of 2 is not certain in each run.
        named = [cause["key"] for cause in found["causes"] if cause["named"]]
        self.assertEqual(named[0], "sleep")
        phases = found["gap_by_phase_seconds"]
        # The first script that is started reads its files from the disk.
        self.assertGreater(phases["steps"], 0.5 * sum(phases.values()))

    def test_runs_that_are_too_long_to_be_made_again(self) -> None:
        short = SCRIPT.replace("default=1000", "default=1")
        for name, nap in (("slow.py", 0.2), ("fast.py", 0.02)):
            after = f"\nimport time\nfor i in range(75):\n    time.sleep({nap})\n"
            self.place.write(name, short + after)
        found = self.explained("slow.py", "fast.py", seconds=30)
        self.assertEqual((found["per"], found["heats"]), ("run", 0))
        self.assertFalse(found["gap_confirmed"])
        self.assertGreater(found["gap"]["value"], 2)
        self.assertIn("each was observed once", " ".join(found["notes"]))
        self.assertLess(found["seconds"], 45)
        found = self.explained("slow.py", "slow.py", seconds=30)
        named = [cause for cause in found["causes"] if cause["named"]]
        self.assertEqual((found["heats"], named), (0, []))
        self.assertLess(found["gap"]["value"], 2)


@support.full_tier
class Published(Explain):
    """The scripts of published comparisons, as they are timed there."""

    def setUp(self) -> None:
        super().setUp()
        for name in ("mlp_keras", "mlp_torch", "mnist_dataset", "mnist_memory"):
            file = support.ROOT / f"examples/claim/{name}.py"
            self.place.write(file.name, file.read_text())

    def test_ten_steps_of_an_mlp(self) -> None:
        support.need("tensorflow")
        self.place.set_interpreters(
            {name: support.interpreter(name) for name in ("torch", "tensorflow")}
        )
        for words in ((), ("--", "--deep")):
            found = self.explained("mlp_keras.py", "mlp_torch.py", *words, seconds=30)
            self.assertEqual(found["per"], "run")
            names = {script["framework"] for script in found["scripts"]}
            self.assertEqual(names, {"keras", "torch"})
            # The article says that one takes four times as long as the other: from
            # start to end neither does, as imports are most of it.
            self.assertLess(found["gap"]["low"], 2)
            self.assertGreater(found["gap"]["high"], 0.5)
            for script in found["scripts"]:
                phases = script["phases_seconds"]
                self.assertGreater(phases["imports"], phases["steps"])

    def test_rows_of_a_dataset_against_tensors_in_memory(self) -> None:
        # How much of a step the rows take depends on the machine; what is suspect and
        # what may be named does not.
        found = self.explained(
            *("mnist_dataset.py", "mnist_memory.py", "--", "--epochs", "1000"),
            seconds=45,
        )
        suspects = {cause["key"] for cause in found["causes"]}
        named = {cause["key"] for cause in found["causes"] if cause["confirmed"]}
        self.assertLessEqual(named, {"input", "no_workers"}, found)
        if found["scripts"][0]["wait_share"] >= 0.15:
            self.assertLessEqual({"input", "no_workers"}, suspects)
        waits = [script["wait_share"] for script in found["scripts"]]
        self.assertGreater(max(waits), 0.05)


@support.full_tier
class OddScripts(Explain):
    def test_that_write_files_fork_move_catch_signals_and_print_much(self) -> None:
        writes = (
            "import os; open('made.txt', 'w').write('x'); os.remove('precious.txt');"
            "open('log.txt', 'a').write('y');"
        )
        odd = writes + (
            "import os, signal, sys, threading, time; os.makedirs('else'); os.chdir('else');"
            "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
            "signal.signal(signal.SIGINT, signal.SIG_IGN);"
            "print('x' * (64 << 20));"
            "threading.Thread(target=time.sleep, args=(1e6,), daemon=True).start();"
            "os.fork() or (time.sleep(1e6), os._exit(0))"
        )
        self.place.write("train.py", TRAIN.replace("# BEFORE", odd))
        self.place.write("precious.txt", "mine")
        self.place.write("log.txt", "mine")
        got = self.explain("train.py", seconds=1)
        self.assertEqual(got.code, 0, got.err)
        # The user's files are left as they are.
        self.assertEqual((self.place.path / "precious.txt").read_text(), "mine")
        self.assertEqual((self.place.path / "log.txt").read_text(), "mine")
        self.assertFalse((self.place.path / "made.txt").exists())
        self.assertFalse((self.place.path / "else").exists())
        self.assertLess(len(got.out), 10_000)


class WithoutSteps(Explain):
    """Scripts in which no step is seen are taken as a whole."""

    @support.full_tier
    def test_two_that_never_train(self) -> None:
        text = "import torch\ntotal = torch.zeros(8)\nfor n in range(40):\n    total = total + n\n"
        self.place.write("fast.py", text)
        slow = "import time\n" + text + "    time.sleep(0.2)\nprint(total)\n"
        self.place.write("slow.py", slow)
        for seconds in (30, 600):
            found = self.explained("slow.py", "fast.py", seconds=seconds)
            named = [cause["key"] for cause in found["causes"] if cause["named"]]
            if named:
                break
        self.assertEqual(found["per"], "run")
        self.assertEqual([script["steps"] for script in found["scripts"]], [0, 0])
        self.assertTrue(any("no steps were seen" in note for note in found["notes"]))
        self.assertEqual(named, ["sleep"], found)

    @support.full_tier  # the same, from another reason
    def test_one_that_trains_in_another_process(self) -> None:
        source = SCRIPT.replace(
            "    main()",
            "    import multiprocessing\n"
            "    other = multiprocessing.Process(target=main)\n"
            "    other.start()\n    other.join(1)\n    other.kill()",
        )
        self.place.write("train.py", source)
        got = self.explain("train.py")
        self.assertEqual(got.code, 0, got.err)
        self.assertIn("no steps were seen, or too few", " ".join(got.out.split()))


class Refusals(Explain):
    def refused(self, source: str, *said: str) -> None:
        self.place.write("train.py", source)
        got = self.explain("train.py")
        self.assertEqual(got.code, 2, got.out)
        for words in said:
            self.assertIn(words, got.err)

    def test_a_script_that_fails(self) -> None:
        self.refused(
            TRAIN.replace("# BEFORE", "raise ValueError('no such thing')"),
            "0 steps were seen",
            "ValueError: no such thing",
            "train.py:",
        )

    @support.full_tier  # it fails, as the one above
    def test_a_script_that_needs_a_gpu(self) -> None:
        self.refused(
            TRAIN.replace("# BEFORE", "model.cuda()"),
            "0 steps were seen",
            "train.py:",
        )

    @support.full_tier  # it fails, too
    def test_a_script_that_reads_the_network(self) -> None:
        self.refused(
            TRAIN.replace(
                "# BEFORE",
                "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9/x')",
            ),
            "0 steps were seen",
            "urlopen error",
        )

    @support.full_tier  # it fails, too
    def test_a_script_that_ends_at_once(self) -> None:
        self.refused(TRAIN.replace("# BEFORE", "import os; os._exit(3)"), "exit code 3")

    @support.full_tier  # it fails, too
    def test_a_script_that_asks(self) -> None:
        self.refused(TRAIN.replace("# BEFORE", "input('which one? ')"), "EOFError")

    def test_a_script_without_a_framework(self) -> None:
        self.refused("print(1)\n", "imports a framework", "--framework")

    def test_no_script(self) -> None:
        got = self.explain("nothing.py")
        self.assertEqual(got.code, 2)
        self.assertIn("there is no script 'nothing.py'", got.err)


if __name__ == "__main__":
    support.main()
