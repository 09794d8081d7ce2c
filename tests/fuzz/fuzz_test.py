"""Mutated files of every kind that the program reads: each gives a value or a message (fuzz.cc).

python3 -m tests.fuzz.fuzz_test build/dev/bakeoff build/dev/tests/fuzz/bakeoff_fuzz
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile
from pathlib import Path

from tests.cli import support
from tests.cli.latency_test import ONE, OTHER
from tests.onnx.corpus_test import corpus

PROGRAMS: list[str] = []
MUTANTS = 1_000_000 if support.FULL else 10_000
# The same mutants in each run but a shuffled one (scripts/run_ctest.py).
SEED = os.environ.get("BAKEOFF_TEST_SHUFFLE", "1")


def npy(dtype: str, shape: str, data: bytes) -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({shape}), }}"
    header = text.ljust(117) + "\n"
    return (
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data
    )


def npz(**arrays: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", array)
    return file.getvalue()


def safetensors() -> bytes:
    entries = {
        "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
        "b": {"dtype": "I64", "shape": [2], "data_offsets": [24, 40]},
        "__metadata__": {"made_by": "a test"},
    }
    header = json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header + bytes(40)


X = npy("<f4", "5, 4", struct.pack("<20f", *range(20)))
Y = npy("<i8", "5,", struct.pack("<5q", 0, 1, 2, 1, 0))
FILES: dict[str, list[bytes]] = {
    "npy": [X, Y],
    "npz": [npz(x=X, y=Y)],
    "idx": [
        struct.pack(">BBBBII", 0, 0, 13, 2, 5, 4) + struct.pack(">20f", *range(20)),
        struct.pack(">BBBBI", 0, 0, 8, 1, 5) + bytes(5),
    ],
    "csv": [
        b"a,b,c,d,y\n1,2.5,-3e4,4,red\n5,6,7,8,green\n",
        b'a,b,c,d,y\r\n"1",2,3,4,"a ""b"", c"\r\n1,2,3,4,red\r\n',
    ],
    "series": [
        b"name,started,value,low,high,note\nx,2026-01-02T03:04:05Z,1.5,1,2,-\nx,1700000000,2,1,3,a\n",
        b"date,fast,slow\n2026-01-02,0.5,3\n2026-01-03,,1e-3\n",
    ],
    "safetensors": [safetensors()],
}
# What once ended the program.
FOUND_ONNX = base64.b64decode(  # Gemm of a scalar, transposed
    "CAcSDGJhY2tlbmQtdGVzdDqNAQohCgFhCgFiCgFjEgF5IgRHZW1tKg0KBnRyYW5zQhgBoAECEhR0ZXN0"
    "X2dlbW1fdHJhbnNwb3NlQloTCgFhEg4KDAgBEggKAggDCgIIBloTCgFiEg4KDAgBEgAKAggECgIIBloT"
    "CgFjEg4KDAgBEggKAggBCgIIBGITCgF5Eg4KDAgBEggKAggDCgIIBEIECgAQDQ=="
)
FOUND_RECIPE = b"batch = [3,}"


class Fuzz(unittest.TestCase):
    def setUp(self) -> None:
        self.place = support.Place(["onnxruntime"], shared_proofs=True)
        self.addCleanup(self.place.close)
        # In memory: a disk would write each of the mutants.
        memory = Path("/dev/shm")
        self.mutants = Path(
            tempfile.mkdtemp(
                prefix="bakeoff_fuzz_", dir=memory if memory.is_dir() else None
            )
        )
        self.addCleanup(shutil.rmtree, self.mutants)

    def fuzz(self, kind: str, files: list[Path], share: int = 1) -> None:
        """A `share`-th of the mutants, where one takes long to read."""
        count = str(MUTANTS // share)
        words = [PROGRAMS[0], kind, count, SEED, str(self.mutants)]
        done = subprocess.run(
            [*words, *map(str, files)],
            env=self.place.variables,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            kept = Path(f"{PROGRAMS[0]}.{kind}.mutants")
            subprocess.run(["cp", "-r", str(self.mutants), str(kept)], check=True)
            self.fail(f"{kind}, in {kept}: {done.returncode} {done.stderr[-2000:]}")
        counts = re.search(r"read (\d+), refused (\d+)", done.stdout)
        assert counts is not None, done.stdout
        self.assertGreater(
            int(counts[1]), 0, f"{kind}: none is read, so all break early"
        )
        self.assertGreater(int(counts[2]), 0, f"{kind}: none is refused")

    def write(self, name: str, content: bytes) -> Path:
        path = self.place.path / name
        path.write_bytes(content)
        return path

    def test_data_and_tables(self) -> None:
        for kind, contents in FILES.items():
            with self.subTest(kind):
                files = [
                    self.write(f"{kind}{number}", content)
                    for number, content in enumerate(contents)
                ]
                self.fuzz(kind, files)

    def test_recipes_and_networks(self) -> None:
        recipes = support.ROOT / "recipes"
        found = self.write("found.toml", FOUND_RECIPE)
        self.fuzz("recipe", [found, *sorted(recipes.glob("*.toml"))])
        self.fuzz("suite", sorted((recipes / "suites").glob("*.toml")))
        self.fuzz("study", sorted((recipes / "published").glob("*.toml")))
        files = [recipes / "digits_cnn.ir", recipes / "clip_text_tiny.ir"]
        for name in ("mlp_small", "lstm_lm_small", "bert_small"):
            shown = self.place.run("show", name)
            self.assertEqual(shown.code, 0, shown.err)
            text = shown.out.partition("\n}\n")[0] + "\n}\n"
            files.append(self.write(f"{name}.ir", text.encode()))
        self.fuzz("ir", files)

    def test_onnx(self) -> None:
        models = sorted((corpus() / "node").glob("*/model.onnx"))
        found = self.write("found.onnx", FOUND_ONNX)
        self.fuzz("onnx", [found, *models[:: 1 if support.FULL else 9]])

    def test_what_runs_keep(self) -> None:
        support.need("onnxruntime")
        self.place.write("mlp.ir", support.MLP)
        text = support.recipe(
            [ONE, OTHER],
            top=support.replaced(support.PREDICTIONS, ("batch = 50", "batch = 2000")),
            optimizer="",
            data="samples = 4000\n",  # steps of which a record has not many
        )
        self.place.write("race.toml", text)
        self.place.write("two.toml", 'name = "two"\nrecipes = ["race.toml"]\n')
        got = self.place.run("suite", "two.toml", "--out", "suite")
        self.assertEqual(got.code, 0, got.err)
        suite = self.place.path / "suite"
        self.fuzz("suite_record", [suite / "suite.json"])
        run = suite / "01-race"
        kept = ("run.json", "parity.jsonl", "trials.jsonl", "peak.json")
        self.fuzz("machine", [run / "peak.json"])
        for name in kept:
            (self.mutants / name).write_bytes((run / name).read_bytes())
        shutil.copytree(run / "scripts", self.mutants / "scripts")
        self.fuzz("run", [run / name for name in kept], share=10)


if __name__ == "__main__":
    PROGRAMS[:] = [sys.argv.pop(2)]
    support.main()
