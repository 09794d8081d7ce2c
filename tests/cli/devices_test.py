"""Contenders that train on several devices: right ones race, wrong ones are refused by name,
and a rank that dies or hangs is its contender's failure.

python3 -m tests.cli.devices_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import unittest
from pathlib import Path
from typing import Any, ClassVar

from tests.attacks.tables import CNN, DROP
from tests.cli import support

TORCH = 'framework = "torch", devices = 2'
IMPORTS = "import argparse\n"
BACKWARD = "    loss.backward()\n"
ROWS = "mine = first + RANK * share"
WRAP = "return DistributedDataParallel(model)"
ALONE = {**os.environ, "OMP_NUM_THREADS": "1"}
RACE = "threads = 2\nparity_steps = 3\nmax_busy = 1\nburst_seconds = 0.02\nbursts = 2\nconfirm_heats = 0\n"

# Edits of the emitted script, and what the gate says of it.
WRONG: dict[str, tuple[tuple[tuple[str, str], ...], str]] = {
    "same_rows": (
        ((ROWS, "mine = first"),),
        r"losses: ranks 0 and 1 of \S*same_rows.py train on the same rows",
    ),
    "other_order": (((ROWS, "mine = first + (1 - RANK) * share"),), "other rows"),
    "not_averaged": (
        ((WRAP, "return model"),),
        r"rank 1 of \S*not_averaged.py has another grad/fc1\S* than rank 0: gradients are not averaged",
    ),
    "averaged_twice": (
        (
            (
                BACKWARD,
                BACKWARD
                + "    for p in model.parameters():\n        p.grad /= DEVICES\n",
            ),
        ),
        "matches: gradients averaged over 2 devices twice",
    ),
    "added_up": (
        (
            (
                BACKWARD,
                BACKWARD
                + "    for p in model.parameters():\n        p.grad *= DEVICES\n",
            ),
        ),
        "matches: gradients of 2 devices added up, not averaged",
    ),
    "one_rank": (
        ((ROWS, "mine, share = first, BATCH_SIZE"),),
        r"rank 0 of \S*one_rank.py trains on 50 rows of a batch of 50, not on 25: the batch is not shared among 2",
    ),
    "averaged_in_half": (
        (
            (
                WRAP,
                "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks\n"
                "    replica = DistributedDataParallel(model)\n"
                "    replica.register_comm_hook(None, default_hooks.fp16_compress_hook)\n"
                "    return replica",
            ),
        ),
        r"DIFFERS, first at grad/fc1.weight",
    ),
    "not_distributed": (
        (("def distribute(", "def distributed("),),
        r"defines no distribute\(model\)",
    ),
    "other_rank_fails": (
        ((BACKWARD, "    assert RANK == 0, 'boom'\n" + BACKWARD),),
        "rank 1: AssertionError: boom",
    ),
}
# Every day; by ranks without a framework test_torch_ranks.py plants each kind.
if not support.FULL:
    WRONG = {n: WRONG[n] for n in ("same_rows", "averaged_twice")}


def edited(source: str, edits: tuple[tuple[str, str], ...]) -> str:
    # Its main() is never called: what stands there too is left as it is.
    return support.replaced(source, *edits)


def in_step(number: int, code: str) -> tuple[tuple[str, str], ...]:
    """Runs `code` in rank 1, in step `number` of a process."""
    body = f"    CALLS.append(None)\n    if RANK == 1 and len(CALLS) == {number}:\n        {code}\n"
    zero = "    optimizer.zero_grad(set_to_none=True)\n"
    return ((IMPORTS, f"{IMPORTS}CALLS = []\n"), (zero, body + zero))


LATE = 40  # seconds of a stage
SELF = "__import__('os').kill(__import__('os').getpid(), {})"
# In the warm-up of a race: the gate takes fewer steps, and how many a burst has depends on the machine's load. Only the
# last averages no more.
BEYOND = 15
FAULTS = {
    "stopped": (
        in_step(BEYOND, SELF.format(19)),
        "rank 1: was stopped by a signal from outside",
    ),
    "left": (
        in_step(BEYOND, "__import__('os')._exit(3)"),
        "rank 1: ended with exit code 3",
    ),
    "hangs": (
        in_step(BEYOND, "__import__('time').sleep(3600)"),
        "rank 1: does not answer: it hangs",
    ),
    "later_alone": (
        (
            (IMPORTS, f"{IMPORTS}CALLS = []\n"),
            (
                "    loss = F.cross_entropy(model(x), y)\n" + BACKWARD,
                "    CALLS.append(None)\n"
                f"    model.require_backward_grad_sync = len(CALLS) < {BEYOND}\n"
                "    loss = F.cross_entropy(model(x), y)\n" + BACKWARD,
            ),
        ),
        r"rank 1 of \S*later_alone.py has another 'fc1.weight' than rank 0 after a burst",
    ),
}
OUTSIDE = {"killed": (signal.SIGKILL, "ended by signal 9")}
if support.FULL:
    OUTSIDE["stopped"] = (signal.SIGSTOP, "was stopped")


class Devices(unittest.TestCase):
    place: ClassVar[support.Place]

    @classmethod
    def setUpClass(cls) -> None:
        support.need("torch")
        if len(os.sched_getaffinity(0)) < 2:
            raise unittest.SkipTest("one processor")
        cls.place = support.Place(["torch", "jax"])
        for name, text in (("mlp", support.MLP), ("cnn", CNN), ("drop", DROP)):
            cls.place.write(f"{name}.ir", text)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.place.close()

    def recipe(self, contenders: list[str], **sections: str) -> Path:
        sections = {"race": RACE, "budget": support.UNENDING, **sections}
        return self.place.write("race.toml", support.recipe(contenders, **sections))

    def emitted(self, **sections: str) -> str:
        self.place.ok("emit", self.recipe([TORCH], **sections), "--out", "out")
        (script,) = (self.place.path / "out").glob("train_torch*.py")
        return script.read_text()

    def own(self, name: str, source: str) -> str:
        self.place.write(f"{name}.py", source)
        return f'script = "{name}.py", {TORCH}'

    def test_wrong_scripts_are_refused_by_name(self) -> None:
        source = self.emitted()
        rows = [self.own(n, edited(source, edits)) for n, (edits, _) in WRONG.items()]
        done = self.place.run("parity", self.recipe(rows))
        for name, (_, reason) in WRONG.items():
            with self.subTest(name):
                said = re.search(
                    rf"(?ms)^\S*{name}\.py: .*?(?=^\S*\.py: |\Z)", done.out
                )
                text = said.group(0) if said else done.out + done.err
                self.assertRegex(text, reason)
                self.assertNotRegex(text, r": same\b")
        self.assertEqual(self.place.none_left(), {})

    def test_scripts_run_alone(self) -> None:
        """torchrun starts them; the losses are those of one device."""
        rows = ['framework = "torch"', TORCH, TORCH + ', parallel = "fsdp"']
        self.place.ok("emit", self.recipe(rows), "--out", "alone")
        python, folder = support.interpreter("torch"), self.place.path / "alone"
        torchrun = [
            "-m",
            "torch.distributed.run",
            "--standalone",
            "--nproc-per-node",
            "2",
        ]
        told = []
        alone = [("", []), ("_devices_2", torchrun)]
        if support.FULL:
            alone.append(("_devices_2_parallel_fsdp", torchrun))
        for name, start in alone:
            words: list[str | Path] = [
                python,
                *start,
                folder / f"train_torch{name}.py",
                "--steps",
                "21",
            ]
            ran = support.called(words, env=ALONE)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            told.append([float(x) for x in re.findall(r"loss (\S+)", ran.stdout)])
        self.assertEqual(len(told[0]), 3)
        for losses in told[1:]:
            for mine, one in zip(losses, told[0], strict=True):
                self.assertAlmostEqual(mine, one, delta=2e-5)
        if not support.FULL:  # cli.processes starts one without a launcher every day
            return
        plain = [python, folder / "train_torch_devices_2.py"]
        ran = support.called(plain, env=ALONE)
        self.assertEqual(ran.returncode, 2)
        self.assertIn("torchrun --standalone --nproc-per-node 2 ", ran.stderr)

    @support.full_tier
    def test_masks_are_of_each_rank(self) -> None:
        top = 'workload = "drop.ir"\nbatch = 20\n'
        source = self.emitted(top=top)
        same = support.replaced(source, ("manual_seed(1 + RANK)", "manual_seed(1)"))
        rows = [TORCH, self.own("same_masks", same)]
        done = self.place.run("parity", self.recipe(rows, top=top))
        self.assertRegex(done.out, r"(?m)^torch\[devices=2\]: same")
        self.assertIn("same_masks.py draw the same masks", done.out)

    @support.full_tier
    def test_statistics_are_of_all_rows(self) -> None:
        top = 'workload = "cnn.ir"\nbatch = 20\n'
        local = support.replaced(
            self.emitted(top=top),
            ("self.bn1 = SyncedBatchNorm(", "self.bn1 = nn.BatchNorm2d("),
        )
        rows = [TORCH, TORCH + ', parallel = "fsdp"', self.own("local", local)]
        done = self.place.run("parity", self.recipe(rows, top=top))
        for name in ("torch[devices=2]", "torch[devices=2,parallel=fsdp]"):
            self.assertIn(f"{name}: same", done.out)
        self.assertRegex(
            done.out, r"rank 1 of \S*local.py has another buffer/.*: statistics are not"
        )

    def test_more_devices_than_it_has(self) -> None:
        for contender, reason in (
            (
                TORCH.replace("2", "3"),
                "a batch of 50 rows does not divide by devices = 3",
            ),
            (TORCH.replace("2", "50"), "devices = 50 need a processor each"),
            (
                'framework = "libtorch", devices = 2',
                "libtorch has no setting 'devices'",
            ),
        ):
            done = self.place.run("run", self.recipe([contender]), "--out", "none")
            self.assertEqual(done.code, 2, done.out)
            self.assertRegex(done.err, r"race\.toml:\d+: .*" + re.escape(reason))
            self.assertFalse((self.place.path / "none").exists())
        self.assertRegex(done.err, r"gloo's headers.*\n  leave it out; .*\btorch\b")

    def test_a_race_of_one_and_two(self) -> None:
        """By JAX: its devices are of one process, a start of PyTorch is one for each rank."""
        support.need("jax")
        self.races_on_one_and_two("jax", {"parallel": "data"})

    @support.full_tier
    def test_a_race_of_one_and_two_of_torch(self) -> None:
        told = {
            "backend": "gloo",
            "parallel": "DistributedDataParallel",
            "reduced_gradient": "float32",
            "master_weights": "float32",
        }
        self.races_on_one_and_two("torch", told)

    def races_on_one_and_two(self, framework: str, told: dict[str, str]) -> None:
        # Every day the study alone compares with one device: a race of two contenders has three heats at least.
        devices, heats = ("[1, 2]", 3) if support.FULL else ("2", 1)
        path = self.recipe(
            [f'framework = "{framework}", devices = {devices}'],
            budget=f"minutes = 30\nheats = {heats}\n",
            scaling="heats = 2\n",
        )
        out = f"two_{framework}"
        done = self.place.run("run", path, "--out", out)
        self.assertIn(done.code, (0, 1), done.err)
        (row,) = (r for r in self.rows(out) if "devices=2" in r["contender"]["id"])
        told |= {"devices": "2", "threads": "2"}
        self.assertEqual({**row["effective"], **told}, row["effective"])
        self.assertEqual(row["threads"], 2)
        if support.FULL:
            self.assertRegex(done.out, r"(?s)\nDevices\n.*speed-up.*strong scaling")
        (scaled,) = self.report(out)["scaling"]
        self.assertEqual(
            (scaled["devices"], scaled["heats"], scaled["note"]), (2, 2, None)
        )
        for key in ("strong_efficiency", "weak_efficiency", "communication_share"):
            self.assertIsNotNone(scaled[key]["value"], key)
        numbers = 32 * 100 + 32 + 10 * 32 + 10
        self.assertEqual(scaled["sent_bytes"], 4 * numbers)
        self.assertEqual(self.place.none_left(), {})

    @support.full_tier
    def test_what_a_script_of_ones_own_exchanges_is_left_out(self) -> None:
        rows = [self.own("mine", self.emitted())]
        path = self.recipe([TORCH, *rows], scaling="heats = 2\n")
        done = self.place.run("run", path, "--out", "mine")
        self.assertIn(done.code, (0, 1), done.err)
        scaled = {row["contender"]: row for row in self.report("mine")["scaling"]}
        (mine,) = (row for name, row in scaled.items() if "mine" in name)
        self.assertIsNotNone(mine["communication_share"]["value"], mine)
        self.assertIsNone(mine["strong_efficiency"])
        self.assertIn("one device: emit: the devices of a script", mine["note"])

    def report(self, out: str) -> dict[str, Any]:
        shown = self.place.run("report", out, "--format", "json")
        found: dict[str, Any] = json.loads(shown.out)
        return found

    def rows(self, out: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.report(out)["ranked"]
        return found

    @support.full_tier
    def test_a_rank_that_fails_is_its_contenders_failure(self) -> None:
        source = self.emitted()
        rows = ['framework = "torch"']
        rows += [self.own(n, edited(source, edits)) for n, (edits, _) in FAULTS.items()]
        race = RACE + f"stage_seconds = {LATE}\nwarmup_steps = 20\n"
        done = self.place.run("run", self.recipe(rows, race=race), "--out", "faults")
        for name, (_, reason) in FAULTS.items():
            with self.subTest(name):
                self.assertRegex(" ".join(done.out.split()), reason)
        self.assertEqual(self.place.none_left(), {})

    def test_a_rank_that_is_killed_from_outside(self) -> None:
        files: dict[signal.Signals, Path] = {}
        rows = []
        for name, (number, _) in OUTSIDE.items():
            files[number] = told = self.place.path / f"rank_{name}"
            tell = f"Path({str(told)!r}).write_text(str(os.getpid()))"
            wait = "__import__('time').sleep(60)"  # in the warm-up
            edits = in_step(BEYOND, f"{tell}; {wait}")
            rows.append(self.own(name, edited(self.emitted(), edits)))
        path = self.recipe(rows, race=RACE + "warmup_steps = 20\n")
        with self.place.start("run", path, "--out", "outside") as process:
            while files:  # they come in any order
                number = self.first_told(files, process)
                os.kill(int(files.pop(number).read_text()), number)
            out, _ = process.communicate(timeout=support.HANGS)
        said = " ".join(out.split())
        for name, (_, reason) in OUTSIDE.items():
            self.assertRegex(said, rf"{name}\.py: no result: rank 1: {reason}")
        self.assertEqual(self.place.none_left(), {})

    def first_told(
        self, files: dict[signal.Signals, Path], process: subprocess.Popen[str]
    ) -> signal.Signals:
        def written() -> list[signal.Signals]:
            return [
                n for n, file in files.items() if file.exists() and file.read_text()
            ]

        support.wait_for(written, process)
        return written()[0]


if __name__ == "__main__":
    support.main()
