"""`bakeoff check`: plain scripts become contenders by a few lines, and what is wrong is named.

python3 -m tests.cli.check_test build/dev/bakeoff
"""

from __future__ import annotations

import re
import unittest
from pathlib import Path

from tests.cli import support

PLAIN = Path(__file__).resolve().parent.parent / "plain"
MOST_LINES = 5
GUARD = 'if __name__ == "__main__":'

TORCH = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(100, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        return self.fc2(torch.relu(self.fc1(x)))


def make_model():
    return Net()


def make_optimizer(model):
    return torch.optim.SGD(model.parameters(), lr=0.1)


loss_fn = nn.CrossEntropyLoss()
"""
SGD = 'kind = "sgd"\nlr = 0.1\n'


def mended(text: str, said: str) -> tuple[str, int]:
    """The script with what `bakeoff check` says done to it, and how many lines that adds."""
    lines = text.splitlines()
    added = 0
    for number in sorted(map(int, re.findall(r"\.py:(\d+): this trains", said))):
        at = number - 1 + added
        end = at + 1
        while end < len(lines) and lines[end].startswith((" ", ")")):
            end += 1
        lines[at:end] = [GUARD, *("    " + line for line in lines[at:end])]
        added += 1
    found = re.search(r"Add at its end:\n\n(.*?)\n\n", said, re.DOTALL)
    suggested = found.group(1).splitlines() if found else []
    return "\n".join([*lines, "", "", *suggested]) + "\n", added + len(suggested)


class Check(unittest.TestCase):
    """Each test has a place of its own."""

    def setUp(self) -> None:
        support.need("torch")
        names = ("torch", "tensorflow", "jax")
        self.place = support.Place(filter(support.present, names), warm=True)
        self.addCleanup(self.place.close)
        self.temporary = self.place.path / "temporary"  # others check at the same time
        self.temporary.mkdir()
        self.place.variables["TMPDIR"] = str(self.temporary)
        self.place.write("mlp.ir", support.MLP)

    def check(self, text: str, *more: str) -> support.Outcome:
        self.place.write("mine.py", text)
        got = self.place.run("check", "mine.py", *more)
        self.assertEqual(self.place.none_left(), {})
        self.assertEqual(list(self.temporary.glob("bakeoff_tmp_*")), [])
        return got


class PlainScripts(Check):
    def setUp(self) -> None:
        support.need("tensorflow", "jax")
        super().setUp()

    def test_five_lines_make_a_contender_that_passes_the_gate(self) -> None:
        scripts = sorted(path.name for path in PLAIN.glob("*.py"))
        self.assertEqual(len(scripts), 5)
        for name in scripts:
            with self.subTest(name):
                text = (PLAIN / name).read_text()
                self.place.write(name, text)
                got = self.place.run("check", name)
                self.assertEqual(got.code, 1, got.out + got.err)
                text, added = mended(text, got.out)
                self.assertGreater(added, 0, got.out)
                self.assertLessEqual(added, MOST_LINES, got.out)
                self.place.write(name, text)
                got = self.place.ok("check", name)
                self.assertIn("is a contender", got.out)
        rows = [f'script = "{name}"' for name in scripts]
        self.place.write("race.toml", support.recipe(rows, optimizer=SGD))
        got = self.place.ok("parity", "race.toml")
        self.assertEqual(got.out.count(": same\n"), 5, got.out)

    @support.full_tier
    def test_an_epoch_function_is_raced_as_it_is(self) -> None:
        text = (PLAIN / "torch_functions.py").read_text()
        text, _ = mended(text, self.check(text).out)
        self.place.write("mine.py", text)
        rows = ['framework = "torch"', 'script = "mine.py"']
        self.place.set_interpreters({"torch": support.interpreter("torch")})
        self.place.write("race.toml", support.recipe(rows, optimizer=SGD))
        self.place.ok("run", "race.toml", "--out", "out", "--format", "json")
        log = "".join(
            path.read_text(errors="replace")
            for path in (self.place.path / "out").rglob("*.log")
        )
        self.assertIn("loss:", log, "the script's own function prints")


NET = TORCH.partition("\n\ndef make_model")[0] + "\n\n"
EPOCH = """
def train(args, model, device, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(epoch, len(train_loader.dataset), loss.item())
            if args.dry_run:
                break


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--log-interval", "-l", type=int, default=10)
    parser.add_argument("--dry-run", action="store_true")
    args = parser.parse_args()
    device = torch.device("cpu")
    model = Net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    for epoch in range(3):
        train(args, model, device, None, optimizer, epoch)


if __name__ == "__main__":
    main()
"""
STEPS = """
def get_model():
    return nn.Sequential(nn.Linear(100, 32), nn.ReLU(), nn.Linear(32, 10))


def fit(epochs, model, loss_func, opt, train_dl):
    for epoch in range(epochs):
        for xb, yb in train_dl:
            loss_batch(model, loss_func, xb, yb, opt)


def loss_batch(model, loss_func, xb, yb, opt=None):
    loss = loss_func(model(xb), yb)
    if opt is not None:
        loss.backward()
        opt.step()
        opt.zero_grad()
    return loss.item(), len(xb)


if __name__ == "__main__":
    model = get_model()
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    fit(2, model, nn.functional.cross_entropy, opt, [])
"""
CLIPPED = """
def train_model(model, loader, lr=0.1):
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for images, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(images), labels, reduction="mean")
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
"""


class OtherShapes(Check):
    """Scripts as others write them become contenders by the lines that are shown."""

    def contender(self, text: str, *lines: str) -> str:
        got = self.check(text)
        for line in lines:
            self.assertIn(f"\n{line}\n", got.out + got.err)
        text, added = mended(text, got.out)
        self.assertLessEqual(added, MOST_LINES)
        again = self.check(text)
        self.assertEqual(again.code, 0, got.out + again.out + again.err)
        self.place.write(
            "race.toml", support.recipe(['script = "mine.py"'], optimizer=SGD)
        )
        proof = self.place.ok("parity", "race.toml")
        self.assertIn(": same\n", proof.out)
        return got.out

    def test_arguments_of_the_command_line_get_their_defaults(self) -> None:
        self.contender(
            "import argparse\n" + NET + EPOCH,
            "def make_optimizer(model): return torch.optim.SGD(model.parameters(), lr=0.1)",
            "def train_epoch(model, optimizer, batches): return train("
            "argparse.Namespace(lr=0.1, log_interval=10, dry_run=False), model, "
            "torch.device('cpu'), batches, optimizer, 0)",
        )

    def test_an_epoch_whose_step_is_another_function(self) -> None:
        self.contender(
            NET + STEPS,
            "def train_epoch(model, optimizer, batches): return fit(1, model, "
            "nn.functional.cross_entropy, optimizer, batches)",
        )

    def test_a_step_that_returns_no_loss(self) -> None:
        fit = STEPS[STEPS.index("def fit") : STEPS.index("def loss_batch")]
        text = support.replaced(
            STEPS,
            (fit, ""),
            (
                "fit(2, model, nn.functional.cross_entropy, opt, [])",
                "for x, y in []:\n        loss_batch(model, nn.CrossEntropyLoss(), x, y, opt)",
            ),
        )
        self.contender(
            NET + text,
            "def train_epoch(model, optimizer, batches): return [loss_batch(model, "
            "nn.CrossEntropyLoss(), xb, yb, opt=optimizer) for xb, yb in batches]",
        )

    def test_what_a_loop_does_besides_is_not_hidden(self) -> None:
        out = self.contender(NET + CLIPPED, "def make_model(): return Net()")
        self.assertIn("clip_grad_norm_() is left out", out)

    def test_keras_of_tensorflow(self) -> None:
        support.need("tensorflow")
        text = support.replaced(
            (PLAIN / "keras_fit.py").read_text(),
            ("import keras\n", "import tensorflow as tf\n"),
            ("from keras import layers\n", ""),
            (" keras.Seq", " tf.keras.Seq"),
            ("=keras.optimizers", "=tf.keras.optimizers"),
            ("=keras.losses", "=tf.keras.losses"),
        ).replace("layers.Dense", "tf.keras.layers.Dense")
        self.contender(text, "def build_model(): return model")


# Ten seconds in a tenth of one.
ENDLESS = """import signal
assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 10
signal.setitimer(signal.ITIMER_REAL, 0.1)
while True:
    pass"""


class Findings(Check):
    def refused(self, text: str, *says: str, more: tuple[str, ...] = ()) -> str:
        got = self.check(text, *more)
        self.assertEqual(got.code, 1, got.out + got.err)
        for pattern in says:
            self.assertRegex(got.out, pattern)
        self.assertNotIn("Traceback", got.out + got.err)
        return got.out

    def test_a_contender_lacks_nothing(self) -> None:
        got = self.check(TORCH)
        self.assertEqual(got.code, 0, got.out + got.err)
        self.assertIn('{ script = "mine.py", framework = "torch" }', got.out)

    def test_each_part_that_is_missing_is_named(self) -> None:
        for part, line in {
            "make_model": r"^def make_model\(\): return Net\(\)$",
            "make_optimizer": r"^make_optimizer = other$",
            "loss_fn": r"train_epoch\(model, optimizer, batches\): one step",
        }.items():
            with self.subTest(part):
                out = self.refused(TORCH.replace(part, "other"), f"(?m){line}")
                self.assertIn("lacks", out)

    def test_what_runs_at_import(self) -> None:
        for line, says in {
            "make_model(argparse.ArgumentParser().parse_args())": "reads the command line",
            "hidden = int(sys.argv[1])": "reads the command line",
            "name = input()": "waits for somebody to type",
            "data = datasets.MNIST('.', download=True)": "reads from the network",
            "for x in []:\n    make_model()(x).backward()": "trains when the script",
        }.items():
            with self.subTest(line):
                self.refused(
                    f"{TORCH}\n{line}\n", rf"mine\.py:26: this .*{says}", GUARD
                )

    def test_what_shows_when_it_is_imported(self) -> None:
        for lines, says in {
            "import socket\nget = socket.create_connection\nget(('pypi.org', 80))": (
                r"mine\.py:28: importing the script reads from the network: it "
                r"asks for the host 'pypi\.org'"
            ),
            "import socket\nsocket.socket().connect(('1.1.1.1', 80))": (
                r"mine\.py:27: .*it connects to '1\.1\.1\.1'"
            ),
            ENDLESS: r"mine\.py:(29|30): .* takes longer than 10 s",
            "import sys\nsys.exit('usage')": r"mine\.py:27: .*ends the process",
            "import os\nos._exit(3)": r"ended without a result: exit code 3",
            "import no_such_package": r"mine\.py:26: .*No module named.*\n.*pip install",
            "open('rows.csv')": r"mine\.py:26: importing the script fails: FileNotFound",
            "1 / 0": r"mine\.py:26: importing the script fails: ZeroDivisionError",
        }.items():
            with self.subTest(lines):
                self.refused(f"{TORCH}\n{lines}\n", says)

    def test_a_script_that_prints_is_a_contender(self) -> None:
        got = self.check(TORCH + "\nprint('hello')\nprint('world')\n")
        self.assertEqual(got.code, 0, got.out + got.err)
        self.assertIn("Note: it prints 2 lines", got.out)

    def test_parts_that_do_not_work(self) -> None:
        for old, new, says in (
            ("make_model()", "make_model(hidden)", "needs hidden too"),
            ("return Net()", "return 3", r"make_model\(\) gives int"),
            (
                "return Net()",
                "return nn.Linear()",
                r"mine\.py:1\d: make_model\(\) fails",
            ),
            (
                "model.parameters()",
                "Net().parameters()",
                "trains parameters of another model",
            ),
            (
                "return torch.optim.SGD(model.parameters(), lr=0.1)",
                "pass",
                "gives NoneType",
            ),
        ):
            with self.subTest(new):
                self.refused(support.replaced(TORCH, (old, new)), says)

    def test_an_encoding_that_the_script_states(self) -> None:
        text = "# -*- coding: latin-1 -*-\n" + TORCH + "name = 'Zo\xeb'\n"
        (self.place.path / "mine.py").write_bytes(text.encode("latin-1"))
        self.place.ok("check", "mine.py")

    def test_bad_files(self) -> None:
        self.refused("import torch\ndef f(:\n", r"mine\.py:2: not valid Python")
        self.refused("import torch\n" + "(" * 500, "not valid Python")
        self.refused("import torch\nx = '\0'\n", "not valid Python")
        for text in ("x = 3\n", ""):
            got = self.check(text)
            self.assertEqual(got.code, 2)
            self.assertIn("imports no framework", got.err)
        (self.place.path / "bytes.py").write_bytes(b"import torch\nx = '\xff'\n")
        got = self.place.run("check", "bytes.py")
        self.assertEqual(got.code, 1, got.out + got.err)
        self.assertIn("bytes.py:1: not valid Python: 'utf-8' codec", got.out)
        for name in ("none.py", "home"):
            got = self.place.run("check", name)
            self.assertEqual(got.code, 2, got.out)
            self.assertGreaterEqual(len(got.err.strip().splitlines()), 2)

    def test_a_recipe_shows_what_does_not_fit(self) -> None:
        self.place.write("race.toml", support.recipe(['framework = "torch"']))
        more = ("--recipe", "race.toml")
        got = self.check(TORCH, *more)
        self.assertEqual(got.code, 0, got.out + got.err)
        self.assertIn("trains on the recipe's data", got.out)
        other = support.replaced(
            TORCH, ("(100, 32)", "(100, 33)"), ("(32, 10)", "(33, 10)")
        )
        self.refused(
            other, r"has shape \[33, 100\], the workload's has \[32, 100\]", more=more
        )
        renamed = TORCH.replace("fc1", "first").replace("fc2", "second")
        self.assertEqual(self.check(renamed, *more).code, 0)


if __name__ == "__main__":
    support.main()
