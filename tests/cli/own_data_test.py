"""Data of the user's own, from the recipe to the run's data.safetensors and its record.

python3 -m tests.cli.own_data_test build/dev/bakeoff
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import struct
import unittest
import zipfile
import zlib
from pathlib import Path

from tests.cli import support

ROWS = 60

TABLE = """
workload table(x: f32[N,3], y: i32[N]) {
  h = linear(x; weight=fc1.weight[8,3], bias=fc1.bias[8])
  a = relu(h)
  logits = linear(a; weight=fc2.weight[2,8], bias=fc2.bias[2])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""
PICTURES = """
workload pictures(x: f32[N,3,4,4], y: i32[N]) {
  c = conv2d(x; weight=c.weight[4,3,3,3], bias=c.bias[4])
  a = relu(c)
  f = flatten(a)
  logits = linear(f; weight=fc.weight[2,16], bias=fc.bias[2])
  loss = softmax_cross_entropy(logits, y) reduction=mean
}
"""


def npy(descr: str, shape: tuple[int, ...], data: bytes) -> bytes:
    header = repr({"descr": descr, "fortran_order": False, "shape": shape})
    header += " " * (53 - len(header) % 64) + "\n"
    return (
        b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data
    )


def png(width: int, height: int, rgb: bytes) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        crc = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + crc

    rows = b"".join(
        b"\0" + rgb[3 * width * y : 3 * width * (y + 1)] for y in range(height)
    )
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + body


def tensors(path: Path) -> dict[str, bytes]:
    whole = path.read_bytes()
    size = struct.unpack("<Q", whole[:8])[0]
    header = json.loads(whole[8 : 8 + size])
    header.pop("__metadata__", None)
    data = whole[8 + size :]
    return {
        name: data[entry["data_offsets"][0] : entry["data_offsets"][1]]
        for name, entry in header.items()
    }


NUMBERS = [(i * 7 % 13 - 6) / 4 for i in range(3 * ROWS)]
LABELS = [i * 5 % 2 for i in range(ROWS)]
X = struct.pack(f"<{len(NUMBERS)}f", *NUMBERS)
Y = struct.pack(f"<{ROWS}i", *LABELS)


class OwnData(unittest.TestCase):
    environments: tuple[str, ...] = ()

    def setUp(self) -> None:
        support.need(*self.environments)
        self.place = support.Place(self.environments)
        self.addCleanup(self.place.close)
        self.place.write("table.ir", TABLE)
        self.place.write("pictures.ir", PICTURES)

    def write(self, name: str, data: bytes) -> Path:
        path = self.place.write(name, "")
        path.write_bytes(data)
        return path

    def recipe(self, data: str, workload: str = "table.ir") -> None:
        text = support.recipe(
            ['framework = "jax"'],
            top=f'workload = "{workload}"\nbatch = 20\nalpha = 0.05\nmargin = 0.5\n',
            data=data,
            budget="minutes = 4\nheats = 1\n",
        )
        self.place.write("race.toml", text)

    def make_npz(self) -> str:
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as out:
            out.writestr("x.npy", npy("<f4", (ROWS, 3), X))
            out.writestr("labels.npy", npy("<i4", (ROWS,), Y))
        self.write("mine.npz", archive.getvalue())
        return 'kind = "npz"\npath = "mine.npz"\ninputs = { y = "labels" }\n'

    def make_npy(self) -> str:
        self.write("x.npy", npy("<f4", (ROWS, 3), X))
        self.write("y.npy", npy("<i4", (ROWS,), Y))
        return 'kind = "npy"\ninputs = { x = "x.npy", y = "y.npy" }\n'

    def make_idx(self) -> str:
        x = struct.pack(">BBBBII", 0, 0, 0x0D, 2, ROWS, 3)
        x += struct.pack(f">{len(NUMBERS)}f", *NUMBERS)
        y = struct.pack(">BBBBI", 0, 0, 0x0C, 1, ROWS) + struct.pack(
            f">{ROWS}i", *LABELS
        )
        self.write("x.idx.gz", gzip.compress(x))
        self.write("y.idx", y)
        return 'kind = "idx"\ninputs = { x = "x.idx.gz", y = "y.idx" }\n'

    def make_csv(self) -> str:
        lines = ["id,u,v,w,kind"]
        for i, label in enumerate(LABELS):
            u, v, w = NUMBERS[3 * i : 3 * i + 3]
            lines.append(f'"row {i},\nof many",{u},{v},{w},{"ab"[label]}')
        self.place.write("mine.csv", "\n".join(lines) + "\n")
        return (
            'kind = "csv"\npath = "mine.csv"\ncategories = ["kind"]\n'
            'inputs = { x = ["u", "v", "w"], y = "kind" }\n'
        )

    def make_folder(self) -> str:
        for i in range(ROWS):
            rgb = bytes((i * 3 + j) % 256 for j in range(48))
            name = f"set/{'dog' if i % 2 else 'cat'}/{i:03}.png"
            (self.place.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.place.path / name).write_bytes(png(4, 4, rgb))
        return 'kind = "image folder"\npath = "set"\ndivisor = 255\n'


class Emitted(OwnData):
    def emitted(self, data: str, workload: str = "table.ir") -> dict[str, bytes]:
        self.recipe(data, workload)
        self.place.ok("emit", "race.toml", "--out", "out")
        return tensors(self.place.path / "out" / "data.safetensors")

    def test_the_same_rows_from_every_format(self) -> None:
        for make in (self.make_npz, self.make_npy, self.make_idx, self.make_csv):
            with self.subTest(make.__name__):
                self.assertEqual(self.emitted(make()), {"x": X, "y": Y})

    def test_a_folder_of_pictures(self) -> None:
        got = self.emitted(self.make_folder(), "pictures.ir")
        order = [*range(0, ROWS, 2), *range(1, ROWS, 2)]
        expected = b""
        for i in order:
            rgb = bytes((i * 3 + j) % 256 for j in range(48))
            expected += rgb[0::3] + rgb[1::3] + rgb[2::3]
        self.assertEqual(got["x"], expected)
        labels = [0] * (ROWS // 2) + [1] * (ROWS // 2)
        self.assertEqual(got["y"], struct.pack(f"<{ROWS}i", *labels))

    def refused(self, data: str, *says: str) -> None:
        self.recipe(data)
        got = self.place.run("emit", "race.toml", "--out", "refused")
        self.assertEqual(got.code, 2, got.err)
        for pattern in says:
            self.assertRegex(got.err, pattern)
        self.assertGreaterEqual(len(got.err.strip().splitlines()), 2, "a remedy")
        self.assertFalse((self.place.path / "refused").exists())

    def test_misfits_name_file_row_or_line(self) -> None:
        data = self.make_csv()
        text = (self.place.path / "mine.csv").read_text()
        self.place.write("mine.csv", text + "last,1,2,3\n")
        self.refused(data, r"mine\.csv:122: 4 fields, the header has 5")
        data = self.make_npy()
        labels = struct.pack(f"<{ROWS}i", *LABELS[:-1], 2)
        self.write("y.npy", npy("<i4", (ROWS,), labels))
        self.refused(data, r"y\.npy' holds 2 in row 59, outside 0\.\.1")
        (self.place.path / "x.npy").unlink()
        self.refused(data, r"there is no file '.*x\.npy'", "relative to the recipe")
        data = self.make_npz()
        self.write("mine.npz", (self.place.path / "mine.npz").read_bytes()[:-30])
        self.refused(data, r"mine\.npz' is no whole zip archive")

    def test_memory_stays_below_twice_the_data(self) -> None:
        rows = 4_000_000  # 48 MB of x, 16 MB of y
        x = struct.pack("<3f", 0.5, 1, 2) * rows
        archive = io.BytesIO()
        with zipfile.ZipFile(
            archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1
        ) as out:
            out.writestr("x.npy", npy("<f4", (rows, 3), x))
            out.writestr("labels.npy", npy("<i4", (rows,), bytes(4 * rows)))
        self.write("mine.npz", archive.getvalue())
        data = 'kind = "npz"\npath = "mine.npz"\ninputs = { y = "labels" }\n'
        small = self.peak(self.make_csv())
        self.assertLess(self.peak(data) - small, 1.5 * 16 * rows)

    def peak(self, data: str) -> int:
        """Bytes of memory at most, mapped files included."""
        self.recipe(data)
        with self.place.start("emit", "race.toml", "--out", "out") as process:
            most = 0
            while process.poll() is None:
                try:
                    status = Path(f"/proc/{process.pid}/status").read_text()
                except OSError:
                    break
                for line in status.splitlines():
                    if line.startswith("VmHWM"):
                        most = max(most, 1024 * int(line.split()[1]))
            process.communicate()
        return most


class Raced(OwnData):
    """Trained on in the full tier: every day all are the same file by then (Emitted)."""

    environments = ("jax",)

    def check(self, name: str, code: int) -> None:
        workload = "pictures.ir" if name == "folder" else "table.ir"
        made: str = getattr(self, f"make_{name}")()
        self.recipe(made, workload)
        got = self.place.run("run", "race.toml", "--out", name)
        self.assertEqual(got.code, code, got.out + got.err)
        record = json.loads((self.place.path / name / "run.json").read_text())
        for file, digest in record["source_sha256"].items():
            if Path(file).is_file():
                data = Path(file).read_bytes()
                self.assertEqual(hashlib.sha256(data).hexdigest(), digest)
        self.assertEqual(len(record["source_sha256"]), 2 if name == "idx" else 1)
        self.assertIn(f"{ROWS} rows of", record["data_description"])

    @support.full_tier
    def test_a_race_on_pictures(self) -> None:
        self.check("folder", 0)

    def test_the_others_are_recorded(self) -> None:
        """Without any environment, there is nothing to race with."""
        if not support.FULL:
            self.place.set_interpreters({})
        for name in ("npz", "idx", "csv", *(() if support.FULL else ("folder",))):
            with self.subTest(name):
                self.check(name, 0 if support.FULL else 1)


if __name__ == "__main__":
    support.main()
