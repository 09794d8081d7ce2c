"""Native programs: alone, under sanitizers, and proven and raced beside torch.

Compiles: python3 -m tests.cli.native_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import os
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
  d = dropout(a) rate=0.25
  z = linear(d; weight=z.weight[7,20], bias=z.bias[7])
  loss = softmax_cross_entropy(z, y)
}
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
        support.need("torch")
        cls.place = support.Place(["torch"], shared_programs=True)
        cls.addClassCleanup(cls.place.close)
        cls.place.write("mlp.ir", support.MLP)

    def test_it_is_proven_and_raced_beside_torch(self) -> None:
        text = support.recipe(
            BOTH,
            budget="minutes = 4\nheats = 3\n",
            race="burst_seconds = 0.05\nbursts = 2\nthreads = 1\nparity_steps = 3\n"
            "max_busy = 1\nconfirm_heats = 0\n",
        )
        recipe = self.place.write("race.toml", text)
        raced = self.place.run("run", recipe, "--out", "race", "--format", "json")
        self.assertEqual(raced.code, 0, raced.err)
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
        emitted = self.place.run("emit", recipe, "--out", "alone")
        self.assertEqual(emitted.code, 0, emitted.err)
        folder = self.place.path / "alone"
        compiler = os.environ.get("CXX") or shutil.which("g++") or "c++"
        built = subprocess.run(
            [compiler, "-std=c++20", *STRICT, "-pthread", "train_native.cc", "-o", "native"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        self.assertEqual(built.returncode, 0, built.stderr)
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

    def test_what_cannot_be_is_refused_by_name(self) -> None:
        self.place.write(
            "deep.ir",
            "workload deep(x: f32[N,1,2,2,2], y: f32[N,1,2,2,2]) {\n"
            "  h = conv3d(x; weight=c.weight[1,1,1,1,1])\n"
            "  loss = mse(h, y)\n}\n",
        )
        text = support.recipe(BOTH[1:], top='workload = "deep.ir"\nbatch = 4\n')
        refused = self.place.run(
            "emit", self.place.write("deep.toml", text), "--out", "deep"
        )
        self.assertEqual(refused.code, 2)
        self.assertIn("conv3d", refused.err)

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


if __name__ == "__main__":
    support.main()
