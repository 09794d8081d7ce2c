"""Contenders that misbehave: each is a row with its reason, the others race on.

Predictions of ONNX Runtime, whose worker starts in a fifth of PyTorch's time: what Bakeoff makes
of a fault does not depend on the framework. With BAKEOFF_FULL_TESTS=1 trainings by PyTorch too.
One race for all of them, and one for those that hang, which have a limit that a slow machine
may not keep otherwise: python3 -m tests.cli.faults_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import re
import unittest
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from tests.cli import support

IMPORTS = "import argparse\n"
STEP = re.compile(
    r"(?:    optimizer\.zero_grad\(set_to_none=True\)|def predict_step\(.*\):)\n"
)
LOSS = "    return loss.detach()\n"


def at_import(code: str) -> Callable[[str], str]:
    return lambda source: support.replaced(source, (IMPORTS, IMPORTS + code))


def in_step(number: int, code: str) -> Callable[[str], str]:
    """Runs `code` in step `number` of a process, counted from 1."""
    count = f"{IMPORTS}CALLS = []\n"
    body = f"    CALLS.append(None)\n    if len(CALLS) == {number}:\n        {code}\n"

    def edit(source: str) -> str:
        (line,) = STEP.findall(source)
        return support.replaced(source, (IMPORTS, count), (line, line + body))

    return edit


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


# What hangs is found out after so many seconds of a stage. Importing torch takes longer on a machine that is slow
# enough: then it is another stage.
LIMIT = 15
LATE = rf"timed out after {LIMIT}(\.0)? s"
LATE_STAGES = "import|build|parity|losses|first step|warmup"
LOADER = "train_torch_input_dataset_workers_1.py"


@dataclass(frozen=True)
class Fault:
    edit: Callable[[str], str]
    stage: str  # where its row says that it ended
    reason: str  # pattern
    tail: str = "^"  # pattern in the log tail
    predicting: str = ""  # the stage where it predicts; empty: the same
    base: str = ""  # the emitted script that is edited; empty: the first one
    trains: bool = False  # what it edits is there in trainings alone
    everyday: bool = True  # else another one ends in the same way, or fake workers do (src/worker, src/race)


# The gate trains 5 steps in one process and 3 in another, or predicts twice in one; a heat has at least 10 steps.
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
        r"in (train|predict)_step",
    ),
    "segfault": Fault(
        in_step(2, "__import__('os').kill(__import__('os').getpid(), 11)"),
        "parity|losses",
        "SIGSEGV|signal 11",
        "Fatal Python error|Segmentation|(train|predict)_step",
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
        trains=True,
        everyday=False,
    ),
    "late_nan": Fault(
        with_loss("loss.detach() * (float('nan') if len(CALLS) > 8 else 1)"),
        "run",
        "loss became nan",
        trains=True,
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
        predicting="first step|warmup",
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
        "(train|predict)_step",
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
        trains=True,
    ),
    "loader_hangs": Fault(
        in_loader("__import__('time').sleep(3600)"),
        LATE_STAGES,
        LATE,
        base=LOADER,
        trains=True,
        everyday=False,
    ),
    "orphans": Fault(
        at_import(f"{SLEEPER}True)\n{SLEEPER}False)\nraise RuntimeError('alone')\n"),
        "build",
        "alone",
    ),
}
# Odd, but no reason not to be ranked.
HARMLESS: dict[str, Callable[[str], str]] = {
    "parent": at_import(f"{SLEEPER}True)\n{SLEEPER}False)\n"),
}


RUN = f"a run in a folder of a long name, {80 * 'x'}"


class Predicting(unittest.TestCase):
    framework = "onnxruntime"
    script = "predict_onnxruntime.py"
    bases: tuple[str, ...] = ('framework = "onnxruntime"',)
    sections: ClassVar[dict[str, str]] = {"top": support.PREDICTIONS, "optimizer": ""}

    told: ClassVar[dict[str, Fault]]
    hanging: ClassVar[set[str]]
    place: ClassVar[support.Place]
    outcome: ClassVar[support.Outcome]
    left: ClassVar[dict[int, str]]
    temporary: ClassVar[Path]
    rows: ClassVar[dict[str, Any]]
    late: ClassVar[dict[str, Any]]

    @classmethod
    def faults(cls) -> dict[str, Fault]:
        fit = {name: fault for name, fault in FAULTS.items() if not fault.trains}
        return {n: fault for n, fault in fit.items() if fault.everyday or support.FULL}

    @classmethod
    def setUpClass(cls) -> None:
        support.need(cls.framework)
        cls.told = cls.faults()
        cls.hanging = {n for n, fault in cls.told.items() if fault.reason == LATE}
        cls.place = support.Place([cls.framework])
        cls.addClassCleanup(cls.place.close)
        place = cls.place
        place.write("mlp.ir", support.MLP)
        one = place.write("one.toml", support.recipe(cls.bases, **cls.sections))
        place.ok("emit", one, "--out", "emitted")
        cls.temporary = place.path / "tmp"
        cls.temporary.mkdir()
        place.variables["TMPDIR"] = str(cls.temporary)
        edits = {n: (fault.edit, fault.base) for n, fault in cls.told.items()}
        edits |= {name: (edit, "") for name, edit in HARMLESS.items()}
        for name, (edit, base) in edits.items():
            source = (place.path / "emitted" / (base or cls.script)).read_text()
            place.write(f"{name}.py", edit(source))
        honest = f'framework = "{cls.framework}"'
        hanging = [f'script = "{name}.py"' for name in sorted(cls.hanging)]
        late = cls.race([*hanging, honest], LIMIT, "late")
        # 1 where the honest one, too, is later than the limit.
        assert late.code in (0, 1), late.err + late.out
        cls.late = late.json()
        others = [f'script = "{name}.py"' for name in edits if name not in cls.hanging]
        contenders = [honest, 'framework = "jax"', *others]
        cls.outcome = cls.race(contenders, support.HANGS, RUN)
        cls.left = place.none_left()
        assert cls.outcome.code == 0, cls.outcome.err + cls.outcome.out
        cls.rows = cls.outcome.json()

    @classmethod
    def race(cls, contenders: list[str], limit: int, out: str) -> support.Outcome:
        sections = {
            "budget": "minutes = 30\nheats = 3\n",
            "race": "burst_seconds = 0.02\nbursts = 2\nthreads = 1\nparity_steps = 3\nmax_busy = 1\n"
            f"confirm_heats = 0\nstage_seconds = {limit}\n",
        }
        text = support.recipe(contenders, **{**cls.sections, **sections})
        recipe = cls.place.write("race.toml", text)
        return cls.place.run("run", recipe, "--out", out, "--format", "json")

    def row(self, group: str, contender: str) -> Any:
        for row in [*self.rows[group], *self.late[group]]:
            if row["contender"]["id"] == contender:
                return row
        raise AssertionError(
            f"no {contender} in {group}: {json.dumps(self.rows)[:3000]}"
        )

    def own(self, name: str) -> str:
        return f"{self.framework}:{name}.py"

    def stage(self, fault: Fault) -> str:
        return fault.predicting or fault.stage

    def test_every_fault_has_its_row(self) -> None:
        for name, fault in self.told.items():
            with self.subTest(name):
                failure = self.row("unranked", self.own(name))["failure"]
                stage = self.stage(fault)
                self.assertRegex(failure["stage"], f"^({stage})$", failure)
                self.assertRegex(failure["reason"], fault.reason)
                self.assertNotIn("\n", failure["reason"])
                self.assertRegex(failure["log_tail"], fault.tail)
                self.assertLessEqual(len(failure["log_tail"].encode()), 5000)

    def test_the_others_are_ranked(self) -> None:
        wanted = {self.framework, *map(self.own, HARMLESS)}
        self.assertEqual(
            {row["contender"]["id"] for row in self.rows["ranked"]}, wanted
        )
        for name in wanted:
            self.assertGreater(self.row("ranked", name)["ms_per_step"]["value"], 0)

    def test_beside_one_that_hangs_the_race_goes_on(self) -> None:
        rows = [*self.late["ranked"], *self.late["unranked"]]
        wanted = {self.framework, *map(self.own, self.hanging)}
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
            shown = self.place.ok("report", RUN, "--format", form)
            late = self.place.run("report", "late", "--format", form)
            for name in self.told:
                out = late.out if name in self.hanging else shown.out
                self.assertIn(self.own(name), out)
            self.assertIn("boom at step 9", shown.out)


@support.full_tier
class Training(Predicting):
    framework = "torch"
    script = "train_torch.py"
    bases = (
        'framework = "torch"',
        'framework = "torch", input = "dataset", workers = 1',
    )
    sections: ClassVar[dict[str, str]] = {
        "top": 'workload = "mlp.ir"\nbatch = 50\nalpha = 0.5\nmargin = 1.0\n'
    }

    @classmethod
    def faults(cls) -> dict[str, Fault]:
        return FAULTS

    def stage(self, fault: Fault) -> str:
        return fault.stage


if __name__ == "__main__":
    support.main()
