"""Real workers that lie about their work: none is ranked, each for its reason.

python3 -m tests.cli.lies_test build/dev/bakeoff

Every day ONNX Runtime, whose worker starts in a fifth of PyTorch's time, and lies about
time. With BAKEOFF_FULL_TESTS=1 all lies about trainings of PyTorch, a liar whom only the
machine's limits give away, and lies about requests. A script runs inside its worker, so it
can lie about everything. These behave while they are proven, and lie in the race.
"""

from __future__ import annotations

import json
import unittest
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from tests.cli import support

IMPORTS = "import argparse\n"
STEP = "def train_step("
# What is timed goes through the adapter's `run`; of trainings the gate asks for nothing
# by that.
RACED = (
    IMPORTS
    + """import dataclasses
import sys


def raced():
    frame = sys._getframe()
    while frame is not None:
        code = frame.f_code
        if code.co_name == "run" and "adapters" in code.co_filename:
            return True
        frame = frame.f_back
    return False

"""
)
ADAPTER = "    import bakeoff_runner.adapters.torch_adapter as adapter\n"

CHANNEL = "    import bakeoff_runner.channel as channel\n"

# The true step under another name; the liar's own takes its place at the end.
HEAD = "def true_step("


@dataclass(frozen=True)
class Lie:
    code: str  # appended to the script, whose own step is called true_step
    reason: str  # pattern
    always: bool = False  # in the gate, too
    predicts: bool = False  # told every day, of predictions


LIES = {
    "half_the_batch": Lie(
        """
def train_step(model, optimizer, x, y):
    half = len(x) // 2
    return true_step(model, optimizer, x[:half], y[:half])
""",
        "not the same computation",
        always=True,
    ),
    "half_the_batch_once_proven": Lie(
        """
def train_step(model, optimizer, x, y):
    half = len(x) // 2 if raced() else len(x)
    return true_step(model, optimizer, x[:half], y[:half])
""",
        "equal losses for equal work|did other work|answers before its work is done",
    ),
    "idle_after_two_steps": Lie(
        """
LOSSES = []


def train_step(model, optimizer, x, y):
    if not raced() or len(LOSSES) < 2:
        LOSSES.append(true_step(model, optimizer, x, y))
    return LOSSES[-1]
""",
        "equal losses for equal work|did other work|answers before its work is done",
    ),
    "no_barrier": Lie(
        """
from concurrent.futures import ThreadPoolExecutor

POOL = ThreadPoolExecutor(1)
DONE = [torch.tensor(0.0)]


def later(*step):
    DONE[0] = true_step(*step)


def train_step(*step):
    if not raced():
        return true_step(*step)
    POOL.submit(later, *step)
    return DONE[0]
""",
        "answers before its work is done|equal losses for equal work|did other work",
    ),
    "twice_the_steps": Lie(
        f"""
if True:
{ADAPTER}
    run = adapter.TorchAdapter.run

    def lie(self, steps, mark):
        true = run(self, steps, mark)
        return dataclasses.replace(true, steps=2 * steps)

    adapter.TorchAdapter.run = lie

train_step = true_step
""",
        "steps answered = steps asked for|it reported .* losses for .* steps",
    ),
    "half_the_time": Lie(
        f"""
if True:
{ADAPTER}
    run = adapter.TorchAdapter.run

    def lie(self, steps, mark):
        true = run(self, steps, mark)
        return dataclasses.replace(true, ns=true.ns // 2)

    adapter.TorchAdapter.run = lie

train_step = true_step
""",
        "answers before its work is done|steps lie within their bursts|samples/s x",
    ),
    # Without a step mark to give it away.
    "a_quarter_less_time": Lie(
        f"""
if True:
{ADAPTER}
    run = adapter.TorchAdapter.run

    def lie(self, steps, mark):
        true = run(self, steps, lambda: None)
        return dataclasses.replace(true, ns=true.ns * 3 // 4)

    adapter.TorchAdapter.run = lie

train_step = true_step
""",
        "samples/s x time = samples: .* against |answers before its work is done",
        predicts=True,
    ),
    "waits_longer_than_it_runs": Lie(
        f"""
if True:
{ADAPTER}
    run = adapter.TorchAdapter.run

    def lie(self, steps, mark):
        true = run(self, steps, mark)
        true.wait.ns += 10**12
        return true

    adapter.TorchAdapter.run = lie

train_step = true_step
""",
        "waiting for batches lies within its burst: .* s against .* s",
    ),
    **{
        name: Lie(
            f"""
if True:
{CHANNEL}
    answer = channel.Channel.answer

    def lie(self, request, fields):
        if "steps" in fields and "ns" in fields:
            ns = fields["ns"]
            fields = {{**fields, "ns": {claim}}}
        answer(self, request, fields)

    channel.Channel.answer = lie

train_step = true_step
""",
            reason,
            predicts=name == "negative_time",
        )
        for name, claim, reason in (
            ("negative_time", "-ns", r"impossible burst: \d+ steps in -\d+ ns"),
            ("time_is_no_number", "float('nan')", "impossible burst: .* in nan ns"),
            ("endless_time", "10**30", "impossible burst: .* in 1.*e.?30 ns"),
        )
    },
    "no_loss_any_more": Lie(
        """
CALLS = [0]


def train_step(model, optimizer, x, y):
    CALLS[0] += raced()
    loss = true_step(model, optimizer, x, y)
    return loss * float("nan") if raced() and CALLS[0] > 3 else loss
""",
        "the loss became nan",
    ),
}


def emitted(place: support.Place, recipe: str) -> str:
    """The emitted script, its own step renamed."""
    place.ok("emit", place.write("only.toml", recipe), "--out", "emitted")
    (script,) = (place.path / "emitted").glob("*.py")
    body, separator, _ = script.read_text().partition('if __name__ == "__main__":')
    assert separator
    step = STEP if STEP in body else STEP.replace("train", "predict")
    return support.replaced(body, (IMPORTS, RACED), (step, HEAD))


def of_predictions(code: str) -> str:
    for training, prediction in (
        ("torch_adapter", "onnxruntime_adapter"),
        ("TorchAdapter", "OnnxRuntimeAdapter"),
        ("train_step", "predict_step"),
    ):
        code = code.replace(training, prediction)
    return code


class Predicting(unittest.TestCase):
    framework = "onnxruntime"
    sections: ClassVar[dict[str, str]] = {"top": support.PREDICTIONS, "optimizer": ""}
    # The others break the same rules as one of these, or as PlantedLies of src/race do.
    lies: ClassVar[dict[str, Lie]] = {
        name: replace(lie, code=of_predictions(lie.code))
        for name, lie in LIES.items()
        if lie.predicts
    }
    place: ClassVar[support.Place]
    rows: ClassVar[Any]

    @classmethod
    def setUpClass(cls) -> None:
        support.need(cls.framework)
        cls.place = place = support.Place([cls.framework])
        cls.addClassCleanup(place.close)
        place.write("mlp.ir", support.MLP)
        honest = f'framework = "{cls.framework}"'
        renamed = emitted(place, support.recipe([honest], **cls.sections))
        for name, lie in cls.lies.items():
            place.write(f"{name}.py", renamed + lie.code)
        sections = {
            "budget": "minutes = 15\nheats = 3\n",
            # A quarter of a burst is more than the 100 ms by which other work may hold up an answer.
            "race": "burst_seconds = 1\nbursts = 3\nthreads = 1\nparity_steps = 10\nmax_busy = 1\n"
            "confirm_heats = 0\n",
        }
        contenders = [honest, *(f'script = "{name}.py"' for name in cls.lies)]
        text = support.recipe(contenders, **{**cls.sections, **sections})
        recipe = place.write("race.toml", text)
        outcome = place.ok("run", recipe, "--out", "run", "--format", "json")
        cls.rows = outcome.json()

    def test_every_lie_is_told(self) -> None:
        unranked = {row["contender"]["id"]: row for row in self.rows["unranked"]}
        for name, lie in self.lies.items():
            with self.subTest(name):
                contender = f"{self.framework}:{name}.py"
                self.assertIn(contender, unranked, "it was ranked")
                row = unranked[contender]
                self.assertRegex(row["failure"]["reason"], lie.reason)
                proven = row["parity"] == "proven"
                self.assertEqual(proven, not lie.always, json.dumps(row["proof"]))

    def test_the_honest_one_is_not_accused(self) -> None:
        ranked = [row["contender"]["id"] for row in self.rows["ranked"]]
        self.assertEqual(ranked, [self.framework])


@support.full_tier
class Training(Predicting):
    framework = "torch"
    sections: ClassVar[dict[str, str]] = {
        "top": 'workload = "mlp.ir"\nbatch = 50\nalpha = 0.5\nmargin = 1.0\n'
    }
    lies = LIES


# Trains while it is proven, keeps the losses, and says them by heart in the race: steps,
# losses and clocks are all right.
BY_HEART = """
import json
from pathlib import Path

KEPT = Path(__file__).with_name("kept.json")
LOSSES = json.loads(KEPT.read_text()) if KEPT.exists() else []


def train_step(model, optimizer, x, y):
    if raced():
        return torch.tensor(LOSSES.pop(0) if len(LOSSES) > 1 else LOSSES[0])
    if x.dtype == torch.float64:
        return true_step(model, optimizer, x, y)
    loss = true_step(model, optimizer, x, y)
    LOSSES.append(float(loss))
    KEPT.write_text(json.dumps(LOSSES[-10:]))
    return loss
"""


@support.full_tier
class ByHeart(unittest.TestCase):
    """The machine's limits are planted: a record of an undisturbed measurement."""

    def setUp(self) -> None:
        self.place = support.place_for(self, "torch")
        wide = support.MLP.replace("[32", "[8192").replace("[10,32]", "[10,8192]")
        self.place.write("mlp.ir", wide)

    def race(self, contenders: list[str], out: str) -> Any:
        text = support.recipe(
            contenders,
            top='workload = "mlp.ir"\nbatch = 50\nalpha = 0.5\nmargin = 1.0\n',
            race="burst_seconds = 0.1\nbursts = 3\nthreads = 1\nparity_steps = 10\nmax_busy = 1\n",
        )
        recipe = self.place.write(f"{out}.toml", text)
        done = self.place.ok("run", recipe, "--out", out, "--format", "json")
        return done.json()

    def plant(self, peak: float) -> None:
        host = json.loads((self.place.path / "honest" / "run.json").read_text())["host"]
        rate = {"one": peak, "all": peak}
        record = {
            "version": 1,
            "measured": "2026-01-01T00:00:00Z",
            "host": host,
            "limits": {
                "cpus": host["cpus"],
                "peaks": [{"dtype": "f32", "isa": "planted", "ops": rate}],
            },
        }
        home = self.place.path / "home" / "machine"
        self.place.write(str(home / f"{host['name']}.json"), json.dumps(record))

    def test_who_says_the_losses_by_heart_exceeds_the_peak(self) -> None:
        honest = self.race(['framework = "torch"'], "honest")["ranked"][0]
        # Far above the honest one, whose speed depends on who else is here.
        self.plant(15e9 * honest["gflops"])
        only = support.recipe(['framework = "torch"'])
        source = emitted(self.place, only) + BY_HEART
        self.place.write("by_heart.py", source)
        both = ['framework = "torch"', 'script = "by_heart.py"']
        report = self.race(both, "both")
        self.assertIn("torch", [row["contender"]["id"] for row in report["ranked"]])
        (row,) = report["unranked"]
        self.assertEqual(row["parity"], "proven", json.dumps(row["proof"]))
        self.assertRegex(
            row["failure"]["reason"],
            r"FLOP/s <= measured peak: [\d.e+]+ FLOP/s against [\d.e+]+ FLOP/s",
        )


# Claims what would void the rounds of everybody, as a clock that jumps does.
TOO_LONG = f"""
if True:
{CHANNEL}
    answer = channel.Channel.answer
    LATER = []  # answers so far: first step, two of warming up, bursts

    def lie(self, request, fields):
        if "steps" in fields and "ns" in fields:
            LATER.append(0)
            ns = fields["ns"] * (100 if len(LATER) > 3 else 1)
            fields = {{**fields, "ns": ns}}
        answer(self, request, fields)

    channel.Channel.answer = lie

train_step = true_step
"""


@support.full_tier
class TooLong(unittest.TestCase):
    def test_does_no_harm_but_to_the_liar(self) -> None:
        place = support.place_for(self, "torch")
        only = support.recipe(['framework = "torch"'])
        place.write("too_long.py", emitted(place, only) + TOO_LONG)
        text = support.recipe(
            ['framework = "torch"', 'script = "too_long.py"'],
            budget="minutes = 2\nheats = 4\n",
            race="burst_seconds = 0.15\nbursts = 3\nthreads = 1\nparity_steps = 3\nmax_busy = 1\n",
        )
        recipe = place.write("race.toml", text)
        done = place.ok("run", recipe, "--out", "run", "--format", "json")
        report = done.json()
        ranked = [row["contender"]["id"] for row in report["ranked"]]
        self.assertEqual(ranked, ["torch"])
        (row,) = report["unranked"]
        self.assertRegex(
            row["failure"]["reason"], "samples/s x time = samples: .* against "
        )


# Of requests: what `serve` of the runner is replaced by, and the rule that it breaks.
SERVED = """
import bakeoff_runner.requests as requests
import bakeoff_runner.worker as worker

SERVE = worker.serve


def serve(answer, arrivals, count, limit_ns):
    true = SERVE(answer, arrivals, count, limit_ns)
    start, end, ns = list(true.start), list(true.end), true.ns
    {lie}
    array = type(true.start)
    return requests.Served(array("q", start), array("q", end), ns)


worker.serve = serve
"""
REQUEST_LIES = {
    "ends_before_it_starts": (
        "end = [at - 1000 for at in start]",
        "requests are taken up one at a time, once they arrived",
    ),
    "all_at_once": (
        "start = [start[0]] * len(start)",
        "requests are taken up one at a time, once they arrived",
    ),
    "in_half_the_time": (
        "start, end, ns = [t // 2 for t in start], [t // 2 for t in end], ns // 2",
        "requests took as long as went by|once they arrived",
    ),
    "in_ten_times_the_time": ("ns *= 10", "requests took no longer than went by"),
}


@support.full_tier
class LiesAboutRequests(unittest.TestCase):
    def test_none_has_a_percentile(self) -> None:
        place = support.place_for(self, "torch")
        wide = support.MLP.replace("[32", "[8192").replace("[10,32]", "[10,8192]")
        place.write("mlp.ir", wide)
        top = 'scenario = "predict"\nworkload = "mlp.ir"\nbatch = 200\n'
        parts = {
            "top": f"{top}alpha = 0.5\nmargin = 1.0\n",
            "latency": "arrivals_per_second = 20\nrequests = 400\nseconds = 3\n"
            "processes = 1\npercentiles = [50, 90]\n",
        }
        only = support.recipe(['framework = "torch"'], **parts)
        done = place.ok("emit", place.write("only.toml", only), "--out", "emitted")
        (file,) = (place.path / "emitted").glob("*_torch.py")
        source = file.read_text().partition('if __name__ == "__main__":')[0]
        for name, (lie, _) in REQUEST_LIES.items():
            place.write(f"{name}.py", source + SERVED.replace("{lie}", lie))
        contenders = ['framework = "torch"'] + [
            f'script = "{name}.py"' for name in REQUEST_LIES
        ]
        text = support.recipe(contenders, **parts)
        recipe = place.write("race.toml", text)
        done = place.ok("run", recipe, "--out", "run", "--format", "json")
        rows = done.json()["latency"]["rows"]
        for name, (_, rule) in REQUEST_LIES.items():
            with self.subTest(name):
                own = [row for row in rows if row["contender"] == f"torch:{name}.py"]
                broken = [row for row in own if row["queue"] == "failed"]
                self.assertTrue(broken, json.dumps(own))
                for row in broken:
                    self.assertEqual(row["percentiles"], [])
                    self.assertRegex(
                        row["note"], f"breaks a rule .*({rule}).* against "
                    )
        for row in rows:
            if row["contender"] == "torch":
                self.assertNotEqual(row["queue"], "failed", row["note"])


if __name__ == "__main__":
    support.main()
