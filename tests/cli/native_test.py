"""Native programs: alone, under sanitizers, and proven and raced beside torch.

Compiles: python3 -m tests.cli.native_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import unittest
from pathlib import Path
from typing import ClassVar

from tests.cli import support

BOTH = ['framework = "torch"', 'framework = "native"']
# Rows that threads share, what looks across them, and weights that want many rows at once.
SHARED = """workload shared(x: f32[N,8,12,12], y: i32[N]) {
  c = conv2d(x; weight=c.weight[16,8,3,3], bias=c.bias[16]) pad=1,1,1,1
  n = batch_norm(c; weight=n.weight[16], bias=n.bias[16], mean=n.mean[16] frozen, var=n.var[16] frozen)
  r = relu(n)
  p = max_pool2d(r) kernel=2,2 stride=2,2
  f = flatten(p)
  h = linear(f; weight=h.weight[20,576], bias=h.bias[20])
  a = relu(h)
  z = linear(a; weight=z.weight[7,20], bias=z.bias[7])
  loss = softmax_cross_entropy(z, y)
}
"""
NATIVE = Path(__file__).resolve().parents[2] / "docs/native.md"
# What ./predict saved against torch's script, the same from arrays, and what ./caller of docs/native.md prints.
CHECK = """
import subprocess, sys
from pathlib import Path
import numpy as np
from safetensors.numpy import load_file
subprocess.run([sys.executable, "predict_torch.py", "--out", "torch"], check=True)
expected, found = load_file("torch")["output"], load_file("native")["output"]
assert np.abs(found - expected).max() < 1e-5 * np.abs(expected).max()
weights = load_file("weights.safetensors")
Path("w").mkdir()
for name, array in weights.items():
    np.save(f"w/{name}.npy", array)
x = load_file("data.safetensors")["x"][:77]
np.save("x.npy", x.astype(np.float64))
subprocess.run("./predict --data x.npy --weights w --out o.npy".split(), check=True)
saved = np.load("o.npy")
assert saved.dtype == np.float32 and np.array_equal(saved, found[:77])
np.save("x.npy", (np.arange(300, dtype=np.float32) / np.float32(100)).reshape(3, 100))
subprocess.run("./predict --data x.npy --out o.npy".split(), check=True)
told = subprocess.run(["./caller", "weights.safetensors"], check=True, capture_output=True)
assert np.array_equal(np.array(told.stdout.split(), np.float32), np.load("o.npy").ravel())
"""
# Data and weights that cannot be used, and arrays that can.
SPOIL = """
from pathlib import Path
import numpy as np
from safetensors.numpy import load_file, save_file
data, weights = load_file("data.safetensors"), load_file("weights.safetensors")
whole = Path("data.safetensors").read_bytes()
Path("cut").write_bytes(whole[:-1])
Path("head").write_bytes(whole[:20])
Path("noise").write_bytes(b"x" * 40)
x, y = data["x"], data["y"]
save_file({"x": np.ascontiguousarray(x[:, 1:]), "y": y}, "narrow")
save_file({"x": x, "y": y[:7]}, "few")
save_file({"x": x, "y": np.where(np.arange(200) == 3, 10, y).astype(np.int32)}, "classes")
save_file({"x": x}, "lacking")
save_file({"x": x[:20], "y": y[:20]}, "short")
save_file({**weights, "fc1.weight": np.ascontiguousarray(weights["fc1.weight"][:, 1:])}, "other")
np.save("x.npy", x)
for folder in ("columns", "shorter", "words", "empty", "arrays"):
    Path(folder).mkdir()
    if folder != "empty":
        np.save(f"{folder}/x.npy", np.asfortranarray(x) if folder == "columns" else x)
        np.save(f"{folder}/y.npy", y.astype(str) if folder == "words" else y.astype(np.int64))
Path("shorter/y.npy").write_bytes(Path("arrays/y.npy").read_bytes()[:-8])
"""
STRICT = ["-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]


def shapes_of(path: Path) -> dict[str, object]:
    """Of a safetensors file, by name."""
    raw = path.read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    header.pop("__metadata__", None)
    return {name: entry["shape"] for name, entry in header.items()}


class Native(unittest.TestCase):
    place: ClassVar[support.Place]

    @classmethod
    def setUpClass(cls) -> None:
        cls.place = support.place_for(cls, "torch", shared_programs=True)

    def test_it_is_proven_and_raced_beside_torch(self) -> None:
        text = support.recipe(
            BOTH,
            budget="minutes = 4\nheats = 3\n",
            race="burst_seconds = 0.05\nbursts = 2\nthreads = 1\nparity_steps = 3\n"
            "max_busy = 1\nconfirm_heats = 0\n",
        )
        recipe = self.place.write("race.toml", text)
        raced = self.place.ok("run", recipe, "--out", "race", "--format", "json")
        result = raced.json()
        rows = {row["contender"]["id"]: row for row in result["ranked"]}
        self.assertEqual(sorted(rows), ["native", "torch"], result["unranked"])
        for row in rows.values():
            self.assertEqual(row["parity"], "proven")
            self.assertGreater(row["ms_per_step"]["value"], 0)
        self.assertEqual(rows["native"]["effective"]["threads"], "1")
        self.assertEqual(self.place.none_left(), {})

    def test_the_program_runs_alone(self) -> None:
        self.place.write("shared.ir", SHARED)
        top = 'workload = "shared.ir"\nbatch = 50\n'
        recipe = self.place.write("alone.toml", support.recipe(BOTH, top=top))
        self.place.ok("emit", recipe, "--out", "alone")
        folder = self.place.path / "alone"
        self.built(folder, "-std=c++20", "-pthread", "train_native.cc", "-o", "native")
        command = ["./native", "--steps", "21", "--out", "trained.safetensors"]
        run = support.losses(command, folder)
        script = support.losses(
            [support.interpreter("torch"), "train_torch.py", "--steps", "21"], folder
        )
        self.assertEqual(sorted(run), [0, 10, 20])
        for step, loss in run.items():
            self.assertAlmostEqual(loss, script[step], delta=1e-5 * script[step])
        shapes = shapes_of(folder / "weights.safetensors")
        self.assertEqual(shapes_of(folder / "trained.safetensors"), shapes)
        threads = {}  # any number of threads: the same bits
        for count in ("1", "2", "3"):
            support.losses([*command[:-1], count, "--threads", count], folder)
            threads[count] = (folder / count).read_bytes()
        self.assertEqual(len(set(threads.values())), 1)
        with subprocess.Popen(  # Ctrl-C saves them too
            ["./native", "--steps", "9999999999", "--out", "now"],
            cwd=folder,
            stdout=subprocess.PIPE,
            text=True,
        ) as child:
            assert child.stdout is not None
            self.assertRegex(child.stdout.readline(), support.LINE)
            child.send_signal(signal.SIGINT)
            child.communicate(timeout=support.HANGS)
        self.assertEqual(child.returncode, 0)
        self.assertEqual(shapes_of(folder / "now"), shapes)

    def built(self, folder: Path, *arguments: str) -> None:
        compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
        command = [compiler, *STRICT, *arguments]
        built = support.called(command, cwd=folder)
        self.assertEqual(built.returncode, 0, built.stderr)

    def test_predictions_alone_and_inside_another_program(self) -> None:
        """Those of torch's script; from npy as from safetensors; through C as through files."""
        text = support.recipe(BOTH, top=support.PREDICTIONS, optimizer="")
        self.place.ok("emit", self.place.write("p.toml", text), "--out", "p")
        folder = self.place.path / "p"
        self.built(folder, "-std=c++20", "predict_native.cc", "-o", "predict")
        ran = subprocess.run(
            ["./predict", "--out", "native"],
            cwd=folder,
            check=True,
            capture_output=True,
        )
        self.assertEqual(ran.stdout, b"")
        example = re.findall(r"```c\n(.*?)```", NATIVE.read_text(), re.DOTALL)[0]
        (folder / "caller.c").write_text(example)
        library = ("-std=c++20", "-DBAKEOFF_LIBRARY", "-c", "predict_native.cc")
        self.built(folder, *library)
        self.built(folder, "-x", "c", "-std=c11", "-c", "caller.c")
        self.built(folder, "caller.o", "predict_native.o", "-o", "caller")
        checked = support.called(
            [support.interpreter("torch"), "-c", CHECK], cwd=folder
        )
        self.assertEqual(checked.returncode, 0, checked.stderr)
        refused = support.called(["./caller", "none"], cwd=folder)
        self.assertEqual(refused.returncode, 2)
        self.assertIn("cannot read 'none'", refused.stderr)

    @support.full_tier  # every day trainings are raced, predictions run alone
    def test_predictions_are_raced_and_served(self) -> None:
        text = support.recipe(
            BOTH,
            top=support.PREDICTIONS,
            optimizer="",
            latency="arrivals_per_second = [50]\nrequests = 50\nprocesses = 1\n",
        )
        recipe = self.place.write("served.toml", text)
        raced = self.place.run("run", recipe, "--out", "served", "--format", "json")
        self.assertIn(raced.code, (0, 1), raced.err)
        rows = {row["contender"]["id"]: row for row in raced.json()["ranked"]}
        self.assertEqual(sorted(rows), ["native", "torch"], raced.json()["unranked"])
        self.assertEqual(rows["native"]["parity"], "proven")
        served = {
            (row["contender"], row["arrivals_per_second"]): row
            for row in raced.json()["latency"]["rows"]
        }
        self.assertEqual(served["native", None]["queue"], "steady")
        self.assertIn(("native", 50), served)

    def test_bad_files_and_arguments_are_refused_with_their_remedy(self) -> None:
        text = support.recipe(BOTH[1:])
        self.place.ok("emit", self.place.write("b.toml", text), "--out", "b")
        folder = self.place.path / "b"
        self.built(folder, "-std=c++20", "train_native.cc", "-o", "native")
        spoilt = support.called([support.interpreter("torch"), "-c", SPOIL], cwd=folder)
        self.assertEqual(spoilt.returncode, 0, spoilt.stderr)
        for arguments, told in (
            ("--data none", "cannot read 'none': No such file or directory"),
            ("--data cut", "'cut' ends within '"),
            ("--data head", "'head' ends within its header"),
            ("--data noise", "'noise' is no safetensors file"),
            ("--data narrow", "'x' of 'narrow' has the shape [200, 99], the model reads [rows, 100]"),
            ("--data few", "'y' of 'few' has 7 rows, 'x' has 200"),
            ("--data classes", "'y' of 'classes' has 10 in row 3, the model reads 0..9"),
            ("--data lacking", "'lacking' has no 'y'"),
            ("--data x.npy", "'x.npy' is one array, where 2 are needed"),
            ("--data short", "'short' has 20 rows, fewer than one batch"),
            ("--data columns", "'columns/x.npy' is stored column by column"),
            ("--data shorter", "bytes of numbers, its shape [200] another number"),
            ("--data words", "'words/y.npy' has numbers of an unknown type"),
            ("--data empty", "cannot read 'empty/x.npy'"),
            ("--weights other", "'fc1.weight' of 'other' has the shape [32, 99], the model's has [32, 100]"),
            ("--weights x.npy", "'x.npy' is one array"),
            ("--steps -1", "--steps is '-1'"),
            ("--stepz 1", "there is no option --stepz"),
            ("--steps", "--steps needs a value"),
            ("--steps 1 --out none/there", "cannot write 'none/there'"),
        ):  # fmt: skip
            with self.subTest(arguments):
                ran = support.called(["./native", *arguments.split()], cwd=folder)
                self.assertEqual(ran.returncode, 2, ran.stderr)
                self.assertIn(told, ran.stderr.splitlines()[0])
                self.assertRegex(ran.stderr.splitlines()[1], r"^  \w")
        told = support.called(
            ["./native", "--tuned", "--threads", "1"], cwd=folder, check=True
        ).stdout
        self.assertIn("constexpr int64_t kThreads = 1;", told.splitlines())
        self.assertRegex(
            told, r"kTileRowsOfTwoVectors = \d+;\nconstexpr int64_t kBlockRows"
        )
        arrays = support.called(
            ["./native", "--steps", "1", "--data", "arrays"], cwd=folder
        )
        self.assertEqual(arrays.returncode, 0, arrays.stderr)
        self.assertEqual(
            support.losses(["./native", "--steps", "1"], folder),
            {0: float(arrays.stdout.split()[-1])},
        )

    def test_no_compiler_is_a_row_with_its_remedy(self) -> None:
        empty = self.place.path / "bin"
        empty.mkdir()
        self.place.variables["PATH"], path = str(empty), self.place.variables["PATH"]
        try:
            recipe = self.place.write("none.toml", support.recipe(BOTH[1:]))
            raced = self.place.run("parity", recipe)
        finally:
            self.place.variables["PATH"] = path
        self.assertEqual(raced.code, 1, raced.err)
        self.assertIn(
            "native: FAILED in stage compile: there is no C++ compiler in PATH; "
            "install a C++ compiler: apt-get install g++",
            raced.out,
        )

    def test_a_compiler_that_is_missing_or_too_old_is_a_row_with_its_remedy(
        self,
    ) -> None:
        old = self.place.write(
            "old",
            "#!/bin/sh\n"
            'if [ "$1" = --version ]; then echo "g++ (old) 7.5.0"; exit 0; fi\n'
            "echo \"g++: error: unrecognized command line option '-std=c++20'\" >&2; exit 1\n",
        )
        old.chmod(0o755)
        for compiler, told in (
            (
                str(old),
                "g++ (old) 7.5.0 is too old for C++20; install g++ 11 or clang 14",
            ),
            ("g++-none", "there is no 'g++-none', which CXX names, in PATH"),
        ):
            self.place.variables["CXX"] = compiler
            recipe = self.place.write("old.toml", support.recipe(BOTH[1:]))
            raced = self.place.run("parity", recipe)
            del self.place.variables["CXX"]
            self.assertEqual(raced.code, 1, raced.err)
            self.assertIn(f"native: FAILED in stage compile: {told}", raced.out)


if __name__ == "__main__":
    support.main()
