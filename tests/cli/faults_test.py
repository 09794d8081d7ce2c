"""Contenders that misbehave: each is a row with its reason, the others race on.

Real PyTorch, one race for all of them, and one for those that hang, which have a limit that
a slow machine may not keep otherwise: python3 -m tests.cli.faults_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import unittest
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tests.cli import support

IMPORTS = "import argparse\n"
STEP = "    optimizer.zero_grad(set_to_none=True)\n"
LOSS = "    return loss.detach()\n"


def at_import(code: str) -> Callable[[str], str]:
    return lambda source: support.replaced(source, (IMPORTS, IMPORTS + code))


def in_step(number: int, code: str) -> Callable[[str], str]:
    """Runs `code` in training step `number` of a process, counted from 1."""
    count = f"{IMPORTS}CALLS = []\n"
    body = f"    CALLS.append(None)\n    if len(CALLS) == {number}:\n        {code}\n"
    return lambda source: support.replaced(
        source, (IMPORTS, count), (STEP, body + STEP)
    )


def with_loss(expression: str) -> Callable[[str], str]:
    count = f"{IMPORTS}CALLS = []\n"
    body = f"    CALLS.append(None)\n    return {expression}\n"
    return lambda source: support.replaced(source, (IMPORTS, count), (LOSS, body))


def in_loader(code: str) -> Callable[[str], str]:
    """Runs `code` in the worker process of a DataLoader, for its tenth sample."""
    line = '    """A stored sample as the model takes it."""\n'
    body = (
        "    SEEN.append(None)\n"
        "    if torch.utils.data.get_worker_info() and len(SEEN) == 10:\n"
        f"        {code}\n"
    )
    return lambda source: support.replaced(
        source, (IMPORTS, f"{IMPORTS}SEEN = []\n"), (line, line + body)
    )


PRELOADED = "train_torch.py"
# What hangs is found out after so many seconds of a stage. Importing torch takes longer on a machine that is slow
# enough: then it is another stage.
LIMIT = 15
LATE = rf"timed out after {LIMIT}(\.0)? s"
LATE_STAGES = "import|build|parity|losses"
LOADER = "train_torch_input_dataset_workers_1.py"


@dataclass(frozen=True)
class Fault:
    edit: Callable[[str], str]
    stage: str  # where its row says that it ended
    reason: str  # pattern
    tail: str = "^"  # pattern in the log tail
    base: str = PRELOADED  # the emitted script that is edited
    everyday: bool = True  # else another one ends in the same way, or fake workers do (src/worker, src/race)


# The gate trains 5 steps in one process and 3 in another, a heat at least 10.
SLEEPER = "__import__('subprocess').Popen(['sleep', '600'], start_new_session="
FAULTS = {
    "import_crash": Fault(
        at_import("raise RuntimeError('boom at import')\n"),
        "build",
        "boom at import",
        "boom at import",
        everyday=False,
    ),
    "step_crash": Fault(
        in_step(9, "raise RuntimeError('boom at step 9')"),
        "warmup|run",  # a slow machine warms up longer
        "boom at step 9",
        r"in train_step",
    ),
    "segfault": Fault(
        in_step(2, "__import__('os').kill(__import__('os').getpid(), 11)"),
        "parity|losses",
        "SIGSEGV|signal 11",
        "Fatal Python error|Segmentation|train_step",
    ),
    "hang": Fault(
        in_step(2, "__import__('time').sleep(3600)"),
        LATE_STAGES,
        LATE,
    ),
    "nan": Fault(
        with_loss("loss.detach() * float('nan')"),
        "parity",
        "not the same computation: loss",
        everyday=False,
    ),
    "late_nan": Fault(
        with_loss("loss.detach() * (float('nan') if len(CALLS) > 8 else 1)"),
        "run",
        "loss became nan",
        everyday=False,
    ),
    "flood": Fault(
        at_import(
            "import sys\n"
            "for i in range(40000):\n"
            "    print(f'out {i} ' + 'x' * 90)\n"
            "    print(f'err {i} ' + 'y' * 90, file=sys.stderr)\n"
            "import os\n"
            "os._exit(3)\n"
        ),
        "build",
        "exit",
        "(out|err) 39999 ",
    ),
    "quiet_exit": Fault(
        in_step(1, "__import__('os')._exit(0)"),
        "parity",
        "exit|ended|closed",
        everyday=False,
    ),
    "system_exit": Fault(
        in_step(1, "raise SystemExit(0)"), "parity", ".", everyday=False
    ),
    "killed": Fault(
        in_step(3, "__import__('os').kill(__import__('os').getpid(), 9)"),
        "losses",
        "SIGKILL|signal 9",
        everyday=False,
    ),
    "no_memory": Fault(
        in_step(
            1,
            "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 30,) * 2); "
            "hoard = [bytearray(1 << 26) for _ in range(1 << 10)]",
        ),
        "parity",
        "MemoryError",
        "train_step",
    ),
    "garbage": Fault(
        in_step(1, "__import__('os').write(4, b'what is this\\n')"),
        "parity",
        "garbage",
    ),
    "loader_dies": Fault(
        in_loader("__import__('os').kill(__import__('os').getpid(), 9)"),
        "losses",
        "DataLoader worker .*(killed by signal|exited unexpectedly)",
        base=LOADER,
    ),
    "loader_hangs": Fault(
        in_loader("__import__('time').sleep(3600)"),
        LATE_STAGES,
        LATE,
        base=LOADER,
        everyday=False,
    ),
    "orphans": Fault(
        at_import(f"{SLEEPER}True)\n{SLEEPER}False)\nraise RuntimeError('alone')\n"),
        "build",
        "alone",
    ),
}
TOLD = {name: fault for name, fault in FAULTS.items() if fault.everyday or support.FULL}
HANGING = {name for name, fault in TOLD.items() if fault.reason == LATE}
# Odd, but no reason not to be ranked.
HARMLESS: dict[str, Callable[[str], str]] = {
    "parent": at_import(f"{SLEEPER}True)\n{SLEEPER}False)\n"),
}


RUN = f"a run in a folder of a long name, {80 * 'x'}"


class Faults(unittest.TestCase):
    place: ClassVar[support.Place]
    outcome: ClassVar[support.Outcome]
    left: ClassVar[dict[int, str]]
    temporary: ClassVar[Path]
    rows: ClassVar[dict[str, Any]]
    late: ClassVar[dict[str, Any]]

    @classmethod
    def setUpClass(cls) -> None:
        support.need("torch")
        cls.place = support.Place(["torch"])
        cls.addClassCleanup(cls.place.close)
        place = cls.place
        place.write("mlp.ir", support.MLP)
        bases = ['framework = "torch"'] * 2
        bases[1] += ', input = "dataset", workers = 1'
        one = place.write("one.toml", support.recipe(bases))
        emitted = place.run("emit", one, "--out", "emitted")
        assert emitted.code == 0, emitted.err
        cls.temporary = place.path / "tmp"
        cls.temporary.mkdir()
        place.variables["TMPDIR"] = str(cls.temporary)
        for name, fault in TOLD.items():
            source = (place.path / "emitted" / fault.base).read_text()
            place.write(f"{name}.py", fault.edit(source))
        source = (place.path / "emitted" / PRELOADED).read_text()
        for name, edit in HARMLESS.items():
            place.write(f"{name}.py", edit(source))
        all_names = [*TOLD, *HARMLESS]
        others = [f'script = "{name}.py"' for name in all_names if name not in HANGING]
        hanging = [f'script = "{name}.py"' for name in sorted(HANGING)]
        late = cls.race([*hanging, 'framework = "torch"'], LIMIT, "late")
        # 1 where the honest one, too, is later than the limit.
        assert late.code in (0, 1), late.err + late.out
        cls.late = late.json()
        cls.outcome = cls.race(
            ['framework = "torch"', 'framework = "jax"', *others], support.HANGS, RUN
        )
        cls.left = place.none_left()
        assert cls.outcome.code == 0, cls.outcome.err + cls.outcome.out
        cls.rows = cls.outcome.json()

    @classmethod
    def race(cls, contenders: list[str], limit: int, out: str) -> support.Outcome:
        text = support.recipe(
            contenders,
            top='workload = "mlp.ir"\nbatch = 50\nalpha = 0.5\nmargin = 1.0\n',
            budget="minutes = 30\nheats = 3\n",
            race="burst_seconds = 0.02\nbursts = 2\nthreads = 1\nparity_steps = 3\nmax_busy = 1\n"
            f"confirm_heats = 0\nstage_seconds = {limit}\n",
        )
        recipe = cls.place.write("race.toml", text)
        return cls.place.run("run", recipe, "--out", out, "--format", "json")

    def row(self, group: str, contender: str) -> Any:
        for row in [*self.rows[group], *self.late[group]]:
            if row["contender"]["id"] == contender:
                return row
        raise AssertionError(
            f"no {contender} in {group}: {json.dumps(self.rows)[:3000]}"
        )

    def test_every_fault_has_its_row(self) -> None:
        for name, fault in TOLD.items():
            with self.subTest(name):
                failure = self.row("unranked", f"torch:{name}.py")["failure"]
                self.assertRegex(failure["stage"], f"^({fault.stage})$", failure)
                self.assertRegex(failure["reason"], fault.reason)
                self.assertNotIn("\n", failure["reason"])
                self.assertRegex(failure["log_tail"], fault.tail)
                self.assertLessEqual(len(failure["log_tail"].encode()), 5000)

    def test_the_others_are_ranked(self) -> None:
        wanted = {"torch", *(f"torch:{name}.py" for name in HARMLESS)}
        self.assertEqual(
            {row["contender"]["id"] for row in self.rows["ranked"]}, wanted
        )
        for name in wanted:
            self.assertGreater(self.row("ranked", name)["ms_per_step"]["value"], 0)

    def test_beside_one_that_hangs_the_race_goes_on(self) -> None:
        rows = [*self.late["ranked"], *self.late["unranked"]]
        wanted = {"torch", *(f"torch:{name}.py" for name in HANGING)}
        self.assertEqual({row["contender"]["id"] for row in rows}, wanted)

    def test_a_missing_environment_is_a_row(self) -> None:
        failure = self.row("unranked", "jax")["failure"]
        self.assertEqual(failure["stage"], "environment")
        self.assertRegex(failure["reason"], "bakeoff env create")

    def test_no_process_is_left(self) -> None:
        self.assertEqual(self.left, {})

    def test_logs_are_kept_within_bounds(self) -> None:
        sizes = {
            p.name: p.stat().st_size for p in (self.place.path / RUN / "logs").iterdir()
        }
        flood = [size for name, size in sizes.items() if "flood" in name]
        self.assertTrue(flood)
        self.assertLessEqual(max(flood), 5 << 20)
        self.assertGreater(max(flood), 1 << 20)

    def test_nothing_is_left_among_temporary_files(self) -> None:
        self.assertEqual(list(self.temporary.iterdir()), [])

    def test_nothing_is_left_in_shared_memory(self) -> None:
        rings = Path("/dev/shm").glob(f"bakeoff-{self.outcome.pid}-*")
        self.assertEqual(list(rings), [])

    def test_text_and_markdown_tell_the_reasons(self) -> None:
        for form in ("text", "markdown"):
            shown = self.place.run("report", RUN, "--format", form)
            self.assertEqual(shown.code, 0, shown.err)
            late = self.place.run("report", "late", "--format", form)
            for name in TOLD:
                out = late.out if name in HANGING else shown.out
                self.assertIn(f"torch:{name}.py", out)
            self.assertIn("boom at step 9", shown.out)


if __name__ == "__main__":
    support.main()
