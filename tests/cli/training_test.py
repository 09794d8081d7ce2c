"""What surrounds an update (docs/training.md) through `bakeoff parity`: proven alike
in every framework, and wrong scripts are refused with the mistake's name.

python3 -m tests.cli.training_test build/dev/bakeoff
"""

from __future__ import annotations

import unittest
from pathlib import Path
from typing import ClassVar

from tests.cli import support

# Environment and contender.
CONTENDERS = {
    'framework = "torch"': "torch",
    'framework = "jax"': "jax",
    'framework = "tensorflow"': "tensorflow",
    'framework = "keras", backend = "tensorflow"': "tensorflow",
    'framework = "keras2"': "keras2",
}
OPTIMIZER = """kind = "adamw"
lr = 0.01
weight_decay = 0.1
no_decay = "bias"
clip_norm = 0.5
ema = 0.9
"""
SCHEDULE = """kind = "cosine"
warmup_steps = 3
warmup_from = 0.1
steps = 2000
final = 0.05
"""
CHECKS = {"average of weights", "learning rates", "float64 parameters"}

# What is changed in the emitted torch script, and what the gate says.
WRONG = {
    "late": (
        ("    optimizer.schedule.step()\n", ""),
        (
            "    loss.backward()\n",
            "    loss.backward()\n    optimizer.late = getattr(optimizer, 'late', -2) + 1\n"
            "    optimizer.late > 0 and optimizer.schedule.step()\n",
        ),
    ),
    "unclipped": (("    clip_gradients(model)\n", ""),),
    "torchs_own": (
        (
            "    clip_gradients(model)\n",
            "    nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)\n",
        ),
    ),
    "biases_decay": (('"weight_decay": 0.0', '"weight_decay": 0.1'),),
    "other_end": (("DECAY_STEPS = 2000", "DECAY_STEPS = 1990"),),
    "longer_average": (("EMA_DECAY = 0.9", "EMA_DECAY = 0.95"),),
    "right": (("    clip_gradients(model)\n", "    clip_gradients(model)  # mine\n"),),
}
SELDOM = {"unclipped", "other_end"}  # in the full tier
SAID = {
    "late": r"matches: a schedule that is one step late",
    "unclipped": r"matches: gradients that are not clipped",
    "torchs_own": r"matches: 1e-6 added to the norm of the gradients",
    "biases_decay": r"first at update/\S*bias[\s\S]*matches: weight decay of every",
    "other_end": r"DIFFERS, first at (loss|learning rate) of step",
    "longer_average": r"first at average/",
    "right": "",
}


class Training(unittest.TestCase):
    found: ClassVar[list[str]]
    names: ClassVar[list[str]]
    place: support.Place

    @classmethod
    def setUpClass(cls) -> None:
        support.need("torch")
        cls.found = [line for line, name in CONTENDERS.items() if support.present(name)]
        cls.names = sorted({CONTENDERS[line] for line in cls.found})

    def setUp(self) -> None:
        self.place = support.Place(self.names, warm=True)
        self.addCleanup(self.place.close)
        self.place.write("mlp.ir", support.MLP)

    def recipe(self, contenders: list[str], **sections: str) -> Path:
        sections.setdefault("top", 'workload = "mlp.ir"\nbatch = 20\n')
        sections.setdefault("data", "samples = 100\n")
        sections.setdefault("optimizer", OPTIMIZER)
        sections.setdefault("schedule", SCHEDULE)
        text = support.recipe(contenders, **sections)
        return self.place.write("training.toml", text)

    def test_every_framework_does_all_of_it_alike(self) -> None:
        lines = self.found
        done = self.place.ok("parity", self.recipe(lines))
        self.assertEqual(done.out.count(": same"), len(lines), done.out)
        for check in CHECKS:
            self.assertEqual(done.out.count(f"ok   {check}"), len(lines), check)
        self.assertNotIn("never acted", done.out)

    def test_parts_of_a_batch(self) -> None:
        lines = [line for line in self.found if "backend" not in line]
        if not support.FULL:  # one that does it and one that cannot
            lines = [line for line in lines if '"torch"' in line or "keras2" in line]
        refused = sum("keras2" in line for line in lines)
        optimizer = OPTIMIZER + "accumulate = 5\n"
        done = self.place.run("parity", self.recipe(lines, optimizer=optimizer))
        self.assertEqual(done.out.count(": same"), len(lines) - refused, done.out)
        self.assertEqual(done.out.count("a step of fit is one part"), refused, done.out)

    def test_wrong_scripts_are_named(self) -> None:
        emit = self.recipe(['framework = "torch"'])
        done = self.place.ok("emit", emit, "--out", "scripts")
        source = (self.place.path / "scripts" / "train_torch.py").read_text()
        names = [name for name in WRONG if support.FULL or name not in SELDOM]
        for name in names:
            edited = support.replaced(source, *WRONG[name])
            self.place.write(f"{name}.py", edited)
        lines = [f'script = "{name}.py"' for name in names]
        done = self.place.run("parity", self.recipe(lines))
        self.assertEqual(done.code, 1, done.out + done.err)
        parts = {part.partition(": ")[0]: part for part in blocks(done.out)}
        for name in names:
            words = SAID[name]
            with self.subTest(name):
                if words:
                    self.assertRegex(parts[f"torch:{name}.py"], words)
                else:
                    self.assertIn(": same", parts[f"torch:{name}.py"])


def blocks(text: str) -> list[str]:
    """The lines of each contender."""
    found: list[str] = []
    for line in text.splitlines():
        if line.startswith(" ") and found:
            found[-1] += "\n" + line
        else:
            found.append(line)
    return found


if __name__ == "__main__":
    support.main()
