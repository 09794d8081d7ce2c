"""Contenders of JAX and TensorFlow with a process for each device: right ones race, wrong ones
are refused by name, and a rank that dies or hangs is its contender's failure.

python3 -m tests.cli.processes_test build/dev/bakeoff
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import subprocess
import unittest
from pathlib import Path
from typing import ClassVar

from tests.attacks.tables import CNN, DROP
from tests.cli import support

EACH = "devices = 2, processes = 2"
JAX, TENSORFLOW = (f'framework = "{f}", {EACH}' for f in ("jax", "tensorflow"))
RACE = "threads = 2\nparity_steps = 3\nmax_busy = 1\nburst_seconds = 0.02\nbursts = 2\nconfirm_heats = 0\n"
MAIN = "def main():\n"
OWN = "lambda own: array[own]"
UPDATE = "updates, opt_state = OPTIMIZER.update(grads, opt_state, params)"
# Runs code in rank 1, in step {number} of a process, and so outside of the compiled step.
IN_STEP = """compiled_step = train_step
calls = []


def train_step(params, opt_state, x, y):
    if isinstance(x, jax.core.Tracer):
        return compiled_step.__wrapped__(params, opt_state, x, y)
    calls.append(None)
    if jax.process_index() == 1 and len(calls) == {number}:
        {code}
    return compiled_step(params, opt_state, x, y)


def main():
"""
# Edits of the emitted scripts, and what the gate says of them.
WRONG: dict[str, tuple[str, tuple[str, str], str]] = {
    "same_rows": (
        "jax",
        (OWN, "lambda own: array[: len(array) // DEVICES]"),
        "other rows",
    ),
    "own_gradients": (
        "jax",
        (
            UPDATE,
            "grads = jax.tree.map(lambda g: g * (1 + jax.process_index()), grads)\n    "
            + UPDATE,
        ),
        r"rank 1 of \S*own_gradients.py has another grad/\S* than rank 0",
    ),
    "one_process": (
        "jax",
        ("jax.make_mesh((DEVICES,)", "jax.make_mesh((1,)"),
        "one_process.py: ",
    ),
    "other_rank_fails": (
        "jax",
        (MAIN, IN_STEP.format(number=1, code="raise ValueError('boom')")),
        "rank 1: ValueError: boom",
    ),
    "each_for_itself": (
        "tensorflow",
        (
            'STRATEGY.reduce("sum", g, axis=None)',
            "STRATEGY.experimental_local_results(g)[0] * DEVICES",
        ),
        r"rank 1 of \S*each_for_itself.py has another grad/\S* than rank 0",
    ),
    "mirrored": (
        "tensorflow",
        (
            "tf.distribute.MultiWorkerMirroredStrategy()",
            "tf.distribute.MirroredStrategy()",
        ),
        r"mirrored.py: parameters are on 1 device, but devices = 2",
    ),
}

# The same of TensorFlow's compiled step.
IN_CALL = """compiled_of_all = compiled


def compiled(function, *modules):
    step, calls = compiled_of_all(function, *modules), []

    def counted(*batch):
        calls.append(None)
        if PROCESS == 1 and len(calls) == {number}:
            {code}
        return step(*batch)

    return counted


def main():
"""
KILL = "__import__('os').kill(__import__('os').getpid(), {})"
FAULTS = {
    "killed": (KILL.format(9), "rank 1: ended by signal 9"),
    "stopped": (KILL.format(19), "rank 1: was stopped by a signal from outside"),
    "left": ("__import__('os')._exit(3)", "rank 1: ended with exit code 3"),
    "hangs": ("__import__('time').sleep(3600)", "rank 1: does not answer: it hangs"),
}


class Processes(unittest.TestCase):
    place: ClassVar[support.Place]
    scripts: ClassVar[dict[str, str]] = {}

    @classmethod
    def setUpClass(cls) -> None:
        support.need("jax", "tensorflow", *(["torch"] if support.FULL else []))
        if len(os.sched_getaffinity(0)) < 2:
            raise unittest.SkipTest("one processor")
        cls.place = support.Place(["jax", "tensorflow", "torch"])
        for name, text in (("mlp", support.MLP), ("cnn", CNN), ("drop", DROP)):
            cls.place.write(f"{name}.ir", text)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.place.close()

    def tearDown(self) -> None:
        self.assertEqual(self.place.none_left(), {})

    def recipe(self, contenders: list[str], **sections: str) -> Path:
        sections = {"race": RACE, **sections}
        return self.place.write("race.toml", support.recipe(contenders, **sections))

    def emitted(self, framework: str) -> str:
        """The script for two processes; in the folder `out` all of them."""
        if not self.scripts:
            self.place.ok("emit", self.recipe([JAX, TENSORFLOW]), "--out", "out")
            for name in ("jax", "tensorflow"):
                (file,) = (self.place.path / "out").glob(f"train_{name}*.py")
                self.scripts[name] = file.read_text()
        return self.scripts[framework]

    def own(self, name: str, framework: str, *edits: tuple[str, str]) -> str:
        source = support.replaced(self.emitted(framework), *edits)
        self.place.write(f"{name}.py", source)
        return f'script = "{name}.py", framework = "{framework}", {EACH}'

    def test_both_are_proven(self) -> None:
        done = self.place.ok("parity", self.recipe([JAX, TENSORFLOW]))
        for name in ("jax", "tensorflow"):
            self.assertIn(f"{name}[devices=2,processes=2]: same", done.out)

    def test_a_script_runs_alone(self) -> None:
        self.runs_alone("jax")

    @support.full_tier
    def test_the_other_runs_alone(self) -> None:
        self.runs_alone("tensorflow")

    def runs_alone(self, framework: str) -> None:
        """Started as it says itself; the losses are those of one process."""
        self.emitted(framework)
        (file,) = (self.place.path / "out").glob(f"train_{framework}*.py")
        words: list[str | Path] = [
            support.interpreter(framework),
            file,
            "--steps",
            "21",
        ]
        alone = {**os.environ, "JAX_PLATFORMS": "cpu"}
        ran = support.called(words, env=alone)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("start one process for each device", ran.stderr)
        ports = free_ports(3)
        workers = [f"localhost:{port}" for port in ports[1:]]
        started = []
        for rank in (0, 1):
            task = {"type": "worker", "index": rank}
            cluster = {"cluster": {"worker": workers}, "task": task}
            each = {
                "JAX_PROCESS_ID": str(rank),
                "JAX_COORDINATOR_ADDRESS": f"localhost:{ports[0]}",
                "TF_CONFIG": json.dumps(cluster),
            }
            started.append(
                subprocess.Popen(
                    words,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={**alone, **each},
                )
            )
        told = [one.communicate(timeout=support.HANGS)[0].decode() for one in started]
        self.assertEqual([one.returncode for one in started], [0, 0])
        losses = [list(map(float, re.findall(r"loss (\S+)", out))) for out in told]
        self.assertEqual(list(map(len, losses)), [3, 0])
        self.assertEqual(losses[0], sorted(losses[0], reverse=True))

    @support.full_tier
    def test_they_race(self) -> None:
        path = self.recipe([JAX, TENSORFLOW], scaling="heats = 2\n")
        done = self.place.run("run", path, "--out", "both")
        self.assertIn(done.code, (0, 1), done.err)
        shown = self.place.run("report", "both", "--format", "json").json()
        rows = {row["contender"]["framework"]: row for row in shown["ranked"]}
        self.assertEqual(sorted(rows), ["jax", "tensorflow"], done.out)
        for name, row in rows.items():
            with self.subTest(name):
                told = {"devices": "2", "processes": "2", "master_weights": "float32"}
                self.assertEqual({**row["effective"], **told}, row["effective"])
        self.assertEqual(rows["jax"]["effective"]["backend"], "gloo")
        for row in shown["scaling"]:
            self.assertIsNotNone(row["communication_share"]["value"], row)
        trials = (self.place.path / "both" / "trials.jsonl").read_text().splitlines()
        for trial in map(json.loads, trials):
            # Pages that both share count twice in the one, and once in the other.
            self.assertGreater(trial["peak_rss_bytes"], trial["memory"]["pss_bytes"])

    @support.full_tier
    def test_what_devices_of_one_process_exchange_is_left_out(self) -> None:
        rows = [
            'framework = "tensorflow", devices = 2',
            'framework = "keras", backend = "jax", devices = 2',
        ]
        path = self.recipe(rows, scaling="heats = 2\n")
        done = self.place.run("run", path, "--out", "silent")
        self.assertIn(done.code, (0, 1), done.err)
        shown = self.place.run("report", "silent", "--format", "json").json()
        self.assertEqual(len(shown["scaling"]), 2, done.out)
        for row in shown["scaling"]:
            self.assertIsNotNone(row["communication_share"]["value"], row)

    @support.full_tier
    def test_three_and_four_devices(self) -> None:
        """More than there are processors, which a proof may share."""
        rows = [
            f'framework = "{framework}", devices = {count}{more}'
            for count in (3, 4)
            for framework, more in (
                ("torch", ""),
                ("torch", ', parallel = "fsdp"'),
                ("jax", ""),
                ("jax", f", processes = {count}"),
                ("jax", ', parallel = "fsdp"'),
                ("tensorflow", ""),
                ("tensorflow", f", processes = {count}"),
            )
        ]
        top = 'workload = "cnn.ir"\nbatch = 24\n'
        done = self.place.run("parity", self.recipe(rows, top=top))
        same = re.findall(r"(?m)^\S+\[devices=([34])\S*\]: same$", done.out)
        self.assertEqual((same.count("3"), same.count("4")), (7, 7), done.out)

    @support.full_tier
    def test_wrong_scripts_are_refused_by_name(self) -> None:
        rows = [self.own(name, f, edit) for name, (f, edit, _) in WRONG.items()]
        done = self.place.run("parity", self.recipe(rows))
        for name, (_, _, reason) in WRONG.items():
            with self.subTest(name):
                said = re.search(
                    rf"(?ms)^\S*{name}\.py: .*?(?=^\S*\.py: |\Z)", done.out
                )
                text = said.group(0) if said else done.out + done.err
                self.assertRegex(text, reason)
                self.assertNotRegex(text, r": same\b")

    @support.full_tier
    def test_statistics_and_masks_are_of_all_rows(self) -> None:
        split = JAX + ', parallel = "fsdp"'
        for name in ("cnn", "drop"):
            top = f'workload = "{name}.ir"\nbatch = 20\n'
            rows = [JAX, split, TENSORFLOW]
            done = self.place.run("parity", self.recipe(rows, top=top))
            for row in ("devices=2", "devices=2,parallel=fsdp"):
                self.assertIn(f"jax[{row},processes=2]: same", done.out)
            self.assertIn("tensorflow[devices=2,processes=2]: same", done.out)

    @support.full_tier
    def test_a_rank_that_fails_is_its_contenders_failure(self) -> None:
        race = RACE + "stage_seconds = 40\nwarmup_steps = 20\n"
        rows = [
            # In the warm-up of the race: the gate takes fewer steps.
            self.own(name, "jax", (MAIN, IN_STEP.format(number=15, code=code)))
            for name, (code, _) in FAULTS.items()
        ]
        path = self.recipe(rows, race=race, budget=support.UNENDING)
        done = self.place.run("run", path, "--out", "faults")
        for name, (_, reason) in FAULTS.items():
            with self.subTest(name):
                said = " ".join(done.out.split())
                self.assertRegex(said, rf"{name}\.py: no result: {reason}")

    @support.full_tier
    def test_a_rank_of_tensorflow_that_fails_is_named(self) -> None:
        race = RACE + "stage_seconds = 150\n"  # in which a busy machine imports it
        for name, (code, reason) in FAULTS.items():
            with self.subTest(name):
                edit = MAIN, IN_CALL.format(number=2, code=code)
                row = self.own(f"{name}_too", "tensorflow", edit)
                done = self.place.run("parity", self.recipe([row], race=race))
                self.assertRegex(" ".join(done.out.split()), reason)


def free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("localhost", 0))
        return [one.getsockname()[1] for one in sockets]


if __name__ == "__main__":
    support.main()
