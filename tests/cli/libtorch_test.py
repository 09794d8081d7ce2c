"""LibTorch C++ beside PyTorch: one gate, one race, and the emitted program alone.

Compiles: python3 -m tests.cli.libtorch_test build/dev/bakeoff
"""

from __future__ import annotations

import json
import os
import re
import shutil
import unittest
from typing import ClassVar

from tests.cli import support

BOTH = ['framework = "torch"', 'framework = "libtorch"']
AWAY = re.compile(
    r"^(?P<framework>\w+)\[precision=(?P<precision>\w+)\]: its float32 counterpart is "
    r"equal; from it the loss differs by \S+, the gradients by (?P<gradients>\S+)$",
    re.MULTILINE,
)
# What compiles a program of its own.
HALVES = ("bfloat16", "float16") if support.FULL else ("bfloat16",)


class Libtorch(unittest.TestCase):
    place: ClassVar[support.Place]

    @classmethod
    def setUpClass(cls) -> None:
        cls.place = support.place_for(cls, "torch", shared_programs=True)

    @support.full_tier
    def test_half_precision_is_that_of_torch(self) -> None:
        """Rounded at the same places: as far from float32 as Python's autocast.

        Its update is proven in float64, with all that surrounds it.
        """
        half = f", precision = {json.dumps(HALVES)}"
        recipe = self.place.write(
            "half.toml",
            support.recipe(
                [text + half for text in BOTH],
                top='workload = "mnist_cnn"\nbatch = 16\n',
                data="samples = 64\n",
                optimizer='kind = "sgd"\nlr = 0.01\nmomentum = 0.9\nclip_norm = 0.5\n'
                'weight_decay = 0.1\nno_decay = "bias"\nema = 0.9\naccumulate = 2\n',
                schedule='kind = "linear"\nwarmup_steps = 2\nsteps = 9\n',
            ),
        )
        proven = self.place.ok("parity", recipe)
        rows = {
            (row["framework"], row["precision"]): float(row["gradients"])
            for row in AWAY.finditer(proven.out)
        }
        self.assertEqual(len(rows), 2 * len(HALVES), proven.out)
        for precision in HALVES:
            python = rows["torch", precision]
            self.assertGreater(python, 1e-5)  # it does round
            self.assertAlmostEqual(rows["libtorch", precision] / python, 1, delta=0.05)

    def test_the_cnn_is_proven_and_raced_beside_torch(self) -> None:
        text = support.recipe(
            [BOTH[0], 'framework = "libtorch", channels_last = true'],
            top='workload = "mnist_cnn"\nbatch = 16\nalpha = 0.5\nmargin = 1.0\n',
            data="samples = 32\n",
            optimizer='kind = "rmsprop"\nlr = 1e-4\nrho = 0.9\neps = 1e-7\n'
            'eps_form = "inside"\n',
            budget="minutes = 4\nheats = 3\n",
            # Whose verdict it is does not matter here: the host may be busy. Epochs of 2 batches: two steps in
            # a row have the first batch of one and another, on however slow a machine.
            race="burst_seconds = 0.2\nbursts = 2\nthreads = 1\nparity_steps = 3\nmax_busy = 1\n"
            "confirm_heats = 0\n",
        )
        recipe = self.place.write("cnn.toml", text)
        raced = self.place.ok("run", recipe, "--out", "cnn", "--format", "json")
        result = raced.json()
        rows = {row["contender"]["id"]: row for row in result["ranked"]}
        self.assertEqual(result["unranked"], [])
        self.assertEqual(sorted(rows), ["libtorch[channels_last]", "torch"])
        row = rows["libtorch[channels_last]"]
        for contender in rows.values():
            self.assertEqual(contender["parity"], "proven")
            checks = {check["what"]: check for check in contender["proof"]["checks"]}
            self.assertRegex(checks["batches"]["tensor"], r"^[1-9]\d* batches$")
            self.assertGreater(contender["batch_wait"]["ms_per_batch"], 0)
            self.assertGreater(contender["batch_wait"]["ms_first_of_epoch"], 0)
        self.assertGreater(row["ms_per_step"]["value"], 0)
        self.assertRegex(row["effective"]["compiler"], r"g\+\+|clang")
        self.assertEqual(row["effective"]["channels_last"], "true")
        notes = "\n".join(result["notes"])
        self.assertRegex(notes, r"LibTorch.* was compiled in \d+\.\d s by \S+")
        self.assertEqual(self.place.none_left(), {})

    @support.full_tier
    def test_the_program_runs_alone_as_torch_does(self) -> None:
        recipe = self.place.write("mlp.toml", support.recipe(BOTH))
        emitted = self.place.ok("emit", recipe, "--out", "alone")
        self.assertEqual(
            emitted.out.split(), ["alone/train_torch.py", "alone/train_libtorch.cc"]
        )
        folder = self.place.path / "alone"
        python = support.interpreter("torch")
        prefix = support.called(
            [python, "-c", "import torch; print(torch.utils.cmake_prefix_path)"],
            check=True,
        ).stdout.strip()
        variables = {**os.environ, "CCACHE_BASEDIR": str(folder)}
        if shutil.which("ccache"):  # compiled once for all test runs
            variables["CMAKE_CXX_COMPILER_LAUNCHER"] = "ccache"
        for command in (
            ["cmake", "-S", ".", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}"],
            ["cmake", "--build", "build"],
        ):
            done = support.called(command, cwd=folder, env=variables)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        program = support.losses(
            ["build/train_libtorch", "data.safetensors", "weights.safetensors", "21"],
            folder,
        )
        script = support.losses([python, "train_torch.py", "--steps", "21"], folder)
        self.assertEqual(sorted(program), [0, 10, 20])
        for step, loss in program.items():
            self.assertAlmostEqual(loss, script[step], delta=1e-5 * script[step])

    def own(self, name: str, source: str) -> str:
        self.place.write(name, source)
        return f'script = "{name}"'

    def test_what_cannot_be_compiled_is_a_row(self) -> None:
        recipe = self.place.write("one.toml", support.recipe(BOTH))
        self.assertEqual(self.place.run("emit", recipe, "--out", "own").code, 0)
        source = (self.place.path / "own" / "train_libtorch.cc").read_text()
        broken = support.replaced(
            source, ("loss.backward();", "loss.bakward();  // a slip")
        )
        other = support.replaced(source, ("torch::relu(", "torch::sigmoid("))
        # The batches of the file, but beginning with the second one.
        shifted = support.replaced(
            source, ("  int64_t first_ = 0;\n", "  int64_t first_ = kBatchSize;\n")
        )
        contenders = [
            'framework = "torch"',
            self.own("broken.cc", broken),
        ]
        if support.FULL:  # each compiles for half a minute
            contenders.append(self.own("shifted.cc", shifted))
            contenders.append(self.own("other.cc", other))
        text = support.recipe(contenders)
        raced = self.place.run("parity", self.place.write("own.toml", text))
        self.assertEqual(raced.code, 1, raced.err)
        self.assertIn("torch: same\n", raced.out)
        self.assertRegex(
            raced.out,
            r"libtorch:broken.cc: FAILED in stage compile: the compiler refused the "
            r"program: .*own_2_broken.cc:\d+:\d+: error: .*bakward",
        )
        if support.FULL:
            self.assertRegex(raced.out, r"libtorch:other.cc: DIFFERS, first at ")
            self.assertRegex(raced.out, r"sigmoid instead of relu")
            self.assertIn(
                "libtorch:shifted.cc: DIFFERS, first at loss of step 0\n"
                "  the input pipeline delivers other rows, or in another order, from "
                "batch 0 on\n",
                raced.out,
            )

    def test_no_compiler_is_a_row_with_its_remedy(self) -> None:
        empty = self.place.path / "bin"
        empty.mkdir()
        self.place.variables["PATH"], path = str(empty), self.place.variables["PATH"]
        try:
            recipe = self.place.write("none.toml", support.recipe(BOTH))
            raced = self.place.run("parity", recipe)
        finally:
            self.place.variables["PATH"] = path
        self.assertEqual(raced.code, 1, raced.err)
        self.assertIn("torch: same\n", raced.out)
        self.assertRegex(
            raced.out,
            "libtorch: FAILED in stage compile: there is no CMake in PATH; install .*g",
        )


if __name__ == "__main__":
    support.main()
