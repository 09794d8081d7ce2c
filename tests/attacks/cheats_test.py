"""Scripts that compute rightly in the gate and cheat in the race: none is ranked.

python3 -m tests.attacks.cheats_test build/dev/bakeoff
python3 -m tests.attacks.cheats_test build/dev/bakeoff Torch

Some cheats share a race with two honest contenders, which must be ranked. A cheat that
found no occasion (its file .cheated is not there) computed rightly and may be ranked.
With BAKEOFF_FULL_TESTS=1 all of them, else a few of each kind. A table of what was
seen is printed in any case.
"""

from __future__ import annotations

import json
import os
import re
import sys
import unittest
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tests.attacks import cheats as all_cheats
from tests.attacks.cheats import Cheat
from tests.cli import support

MLP = """
workload cheated_mlp(x: f32[N,64], y: i32[N]) {
  h1 = linear(x; weight=fc1.weight[96,64], bias=fc1.bias[96])
  h2 = relu(h1)
  h3 = linear(h2; weight=fc2.weight[48,96], bias=fc2.bias[48])
  h4 = tanh(h3)
  logits = linear(h4; weight=fc3.weight[10,48], bias=fc3.bias[10])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
CNN = """
workload cheated_cnn(x: f32[N,3,12,12], y: i32[N]) {
  h1 = conv2d(x; weight=conv1.weight[8,3,3,3], bias=conv1.bias[8]) stride=1,1 pad=1,1,1,1
  h2 = batch_norm(h1; weight=bn1.weight[8], bias=bn1.bias[8], \
mean=bn1.running_mean[8], var=bn1.running_var[8]) eps=1e-05 momentum=0.1
  h3 = relu(h2)
  h4 = max_pool2d(h3) kernel=2,2 stride=2,2
  h5 = conv2d(h4; weight=conv2.weight[12,8,3,3], bias=conv2.bias[12]) stride=1,1 pad=1,1,1,1
  h6 = relu(h5)
  h7 = flatten(h6)
  logits = linear(h7; weight=fc.weight[10,432], bias=fc.bias[10])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
DROP = """
workload cheated_drop(x: f32[N,64], y: i32[N]) {
  h1 = linear(x; weight=fc1.weight[96,64], bias=fc1.bias[96])
  h2 = relu(h1)
  h3 = dropout(h2) rate=0.3
  logits = linear(h3; weight=fc2.weight[10,96], bias=fc2.bias[10])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
WORKLOADS = {"mlp": MLP, "cnn": CNN, "drop": DROP}
OPTIMIZERS = {
    "mlp": 'kind = "adam"\nlr = 1e-3\neps = 1e-6\n',
    "cnn": 'kind = "sgd"\nlr = 0.02\nmomentum = 0.9\n',
    "drop": 'kind = "adam"\nlr = 1e-3\neps = 1e-6\n',
}
TOGETHER = 7  # cheats in one race
# What docs/audits.md says that audits do not see; they are raced and shown all the same.
NOT_SEEN = {
    "rounded_gradients_after_12_steps",
    "others_slowed_down",
    "others_scripts_edited",
    "a_child_burns_processor_time",
}
# To look into something by hand: longer bursts; these cheats alone, by name.
HEATS = 6 if support.FULL else 4
BURST_SECONDS = float(os.environ.get("BAKEOFF_ATTACK_BURST", "0.1"))
CHOSEN = os.environ.get("BAKEOFF_ATTACKS", "").split()

# What a worker that merely broke down would say.
BROKEN = re.compile(
    r"Error\b|exit code|killed by|timed out|no longer|Traceback|was not built"
)


@dataclass(frozen=True)
class Seen:
    """What became of one script in a race."""

    name: str
    ranked: bool
    proven: bool
    cheated: bool
    reason: str

    @property
    def noticed(self) -> bool:
        return not self.ranked and not BROKEN.search(self.reason)

    @property
    def broken(self) -> bool:
        """It did not run: no cheat at all."""
        return not self.ranked and not self.noticed

    @property
    def missed(self) -> bool:
        """It cheated, and nobody said so."""
        return self.cheated and not self.noticed

    def line(self) -> str:
        if self.noticed:
            word = "noticed" if self.proven else "refused by the gate"
        elif not self.ranked:
            word = "BROKEN"
        else:
            word = "MISSED" if self.cheated else "never cheated"
        return f"  {self.name:55} {word:20} {self.reason}"


def recipe(workload: str, contenders: Iterable[str], scenario: str = "train") -> str:
    top = f'workload = "{workload}.ir"\nbatch = 32\nalpha = 0.5\nmargin = 1.0\n'
    if scenario == "predict":
        top = f'scenario = "predict"\n{top}'
    return support.recipe(
        contenders,
        top=top,
        data="samples = 320\n",
        optimizer=OPTIMIZERS[workload],
        budget=f"minutes = 6\nheats = {HEATS}\n",
        race=f"burst_seconds = {BURST_SECONDS}\nbursts = 4\nparity_steps = 10\nmax_busy = 1\n"
        "threads = 1\nstage_seconds = 120\nconfirm_heats = 0\n",
    )


def emitted(place: support.Place, text: str, name: str) -> str:
    """What Bakeoff emits, without its main part."""
    done = place.run("emit", place.write("only.toml", text), "--out", "emitted")
    assert done.code == 0, done.err
    return (place.path / "emitted" / name).read_text()


def without_main(source: str) -> str:
    body, separator, _ = source.partition('if __name__ == "__main__":')
    assert separator
    return body


def renamed(source: str, step: str) -> str:
    """The script with its own step under the name true_step."""
    if step.startswith("Tensor "):
        body, _, _ = source.partition("int main(")
        return support.replaced(body, (f"{step}(", "Tensor true_step("))
    return support.replaced(without_main(source), (f"def {step}(", "def true_step("))


@dataclass(frozen=True)
class Result:
    cheats: list[Seen]
    honest: list[Seen]

    def table(self, title: str) -> str:
        missed = sum(seen.missed for seen in self.cheats)
        head = f"{title}: {len(self.cheats)} scripts, {missed} cheated unnoticed"
        lines = [seen.line() for seen in self.cheats]
        for seen in self.honest:
            word = "ranked" if seen.ranked else f"ACCUSED {seen.reason}"
            lines.append(f"  {seen.name:55} honest, {word}")
        return "\n".join([head, *lines])


def race(
    place: support.Place,
    workload: str,
    honest: Sequence[str],
    scripts: dict[str, str],
    head: str = "",
    scenario: str = "train",
    suffix: str = "py",
) -> Result:
    """One race of the honest contenders and the scripts, by name."""
    name = f"race{len(list(place.path.glob('race*.toml')))}"
    for file, source in scripts.items():
        place.write(f"{file}.{suffix}", source)
    rows = [*honest, *(f'{head}script = "{file}.{suffix}"' for file in scripts)]
    path = place.write(f"{name}.toml", recipe(workload, rows, scenario))
    done = place.run(
        "run", path, "--out", name, "--format", "json", timeout=10 * support.HANGS
    )
    if not done.out.startswith("{"):
        raise AssertionError(done.err + done.out)
    report = done.json()
    cheats: list[Seen] = []
    others: list[Seen] = []
    ranked = {row["contender"]["id"]: row for row in report["ranked"]}
    unranked = {row["contender"]["id"]: row for row in report["unranked"]}
    for identity, row in {**ranked, **unranked}.items():
        _, _, file = identity.rpartition(":")
        file = file.split(",")[0].split(" ")[0].removesuffix(f".{suffix}")
        seen = Seen(
            name=file if file in scripts else identity,
            ranked=identity in ranked,
            proven=row.get("parity") == "proven",
            cheated=any(place.path.rglob(f"*{file}*.cheated")),
            reason=reason(row),
        )
        (cheats if file in scripts else others).append(seen)
    if len(cheats) != len(scripts) or len(others) != len(honest):
        raise AssertionError(json.dumps([[s.name for s in cheats], done.out])[:4000])
    return Result(cheats, others)


def reason(row: Any) -> str:
    failure = row.get("failure")
    text = failure["reason"] if failure else ""
    return " ".join(str(text).split())[:160]


class Cheats(unittest.TestCase):
    def settle(self, title: str, results: Sequence[Result]) -> None:
        result = Result(
            [s for r in results for s in r.cheats],
            [s for r in results for s in r.honest],
        )
        missed = sum(seen.missed for seen in result.cheats)
        print(f"{title}: {missed} of {len(result.cheats)}", file=sys.stderr)
        for seen in result.cheats:
            unseen = seen.missed and seen.name not in NOT_SEEN
            with self.subTest(seen.name):
                self.assertFalse(unseen or seen.broken, seen.line())
        for seen in result.honest:
            with self.subTest(seen.name):
                self.assertTrue(seen.ranked, seen.line())

    def place(self, *environments: str) -> support.Place:
        support.need(*environments)
        place = support.Place(environments)
        self.addCleanup(place.close)
        for name, text in WORKLOADS.items():
            place.write(f"{name}.ir", text)
        return place

    def check(
        self,
        workload: str,
        environment: str,
        contender: str,
        honest: Sequence[str],
        file: str,
        step: str,
        cheats: Sequence[Cheat],
        together: int = TOGETHER,
        scenario: str = "train",
    ) -> None:
        place = self.place(environment)
        source = emitted(place, recipe(workload, [contender], scenario), file)
        body = renamed(source, step)
        suffix = file.rpartition(".")[2]
        cheats = [c for c in cheats if not CHOSEN or c.name in CHOSEN]
        results = []
        for first in range(0, len(cheats), together):
            part = cheats[first : first + together]
            scripts = {cheat.name: body + cheat.code for cheat in part}
            head = f"{contender}, " if "backend" in contender else ""
            results.append(
                race(place, workload, honest, scripts, head, scenario, suffix)
            )
            print(results[-1].table(workload), file=sys.stderr, flush=True)
        self.settle(f"{contender} on {workload}", results)
        self.assertEqual(place.none_left(), {})


TORCH_HONEST = [
    'framework = "torch"',
    *(['framework = "torch", optimizer_impl = "foreach"'] if support.FULL else []),
]
# One of every kind: less work, work done before, work done later, no work.
QUICK = {
    "gradient_of_half_the_batch_called_by_run",
    "film_unless_weights_were_set",
    "lazy_loss",
    "answers_made_up",
}


class Torch(Cheats):
    def torch(
        self, workload: str, cheats: Sequence[Cheat], together: int = TOGETHER
    ) -> None:
        self.check(
            workload,
            "torch",
            TORCH_HONEST[0],
            TORCH_HONEST,
            "train_torch.py",
            "train_step",
            cheats,
            together,
        )

    def test_one_of_every_kind(self) -> None:
        quick = [c for c in all_cheats.TORCH if c.name in QUICK]
        self.assertEqual(len(quick), len(QUICK))
        self.torch("mlp", quick, together=len(quick))

    @support.full_tier
    def test_all_on_an_mlp(self) -> None:
        self.torch("mlp", all_cheats.TORCH)

    @support.full_tier
    def test_some_on_a_small_conv_net(self) -> None:
        self.torch("cnn", all_cheats.TORCH[1::3])

    @support.full_tier
    def test_some_where_masks_are_drawn(self) -> None:
        self.torch("drop", all_cheats.TORCH[::4])

    @support.full_tier
    def test_unfair_conditions(self) -> None:
        self.torch("mlp", all_cheats.ALONE, together=1)

    @support.full_tier
    def test_predictions(self) -> None:
        self.check(
            "mlp",
            "torch",
            TORCH_HONEST[0],
            [TORCH_HONEST[0], 'framework = "torch", compile = "default"'],
            "predict_torch.py",
            "predict_step",
            all_cheats.PREDICT,
            scenario="predict",
        )

    @support.full_tier
    def test_libtorch(self) -> None:
        one = 'framework = "libtorch"'
        file, step = "train_libtorch.cc", "Tensor train_step"
        cheats = all_cheats.LIBTORCH
        self.check("mlp", "torch", one, [one, TORCH_HONEST[0]], file, step, cheats)


@support.full_tier
class Others(Cheats):
    def test_jax(self) -> None:
        one = 'framework = "jax"'
        self.check(
            "mlp", "jax", one, [one], "train_jax.py", "train_step", all_cheats.JAX
        )

    def test_tensorflow(self) -> None:
        one = 'framework = "tensorflow"'
        other = f'{one}, mode = "eager"'
        file, step = "train_tensorflow.py", "train_step"
        cheats = all_cheats.TENSORFLOW
        self.check("mlp", "tensorflow", one, [one, other], file, step, cheats)

    def keras(self, environment: str, backend: str, contender: str) -> None:
        name = f"keras_{backend}" if backend else "keras2"
        cheats = all_cheats.keras(name.replace("_", "-"))
        file = f"train_{name}.py"
        self.check("mlp", environment, contender, [contender], file, "fit", cheats)

    def test_keras_on_tensorflow(self) -> None:
        one = 'framework = "keras", backend = "tensorflow"'
        self.keras("tensorflow", "tensorflow", one)

    def test_keras_on_torch(self) -> None:
        self.keras("torch", "torch", 'framework = "keras", backend = "torch"')

    def test_keras_on_jax(self) -> None:
        self.keras("jax", "jax", 'framework = "keras", backend = "jax"')

    def test_keras2(self) -> None:
        self.keras("keras2", "", 'framework = "keras2"')


if __name__ == "__main__":
    support.main()
