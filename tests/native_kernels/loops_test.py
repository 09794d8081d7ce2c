"""The loops of the native kernels hold their sums in registers, by every compiler and instruction set.

python3 -m tests.native_kernels.loops_test

What is compiled is tests/native_kernels/loops.cc. A turn of the inner loop of tile<T, TileShape{tall, wide, vectors}>
has tall x wide x vectors multiplications (a compiler may unroll it: a multiple), and none of its operands is on the
stack: sums that are spilled cost a factor of up to 9, and no result shows it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from tests import peak_loops_test as peaks

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCE = ROOT / "tests/native_kernels/loops.cc"
RUNS = [("portable", "-O2"), ("avx2", "-O2"), ("avx512", "-O2")]
if os.environ.get("BAKEOFF_FULL_TESTS"):
    RUNS.append(("avx512", "-O3"))
SETS = {"avx512": ["-mavx512f", "-mfma"], "avx2": ["-mavx2", "-mfma"], "portable": []}

TILE = re.compile(
    r"native::(\w+)::tile<(float|double), .*?TileShape\{(\d+)l?, (\d+)l?, (\d+)l?"
)


def compilers() -> list[str]:
    there = {os.path.realpath(p) for n in peaks.COMPILERS if (p := shutil.which(n))}
    return sorted(there)


def disassembly(compiler: str, options: list[str], folder: str) -> str:
    out = Path(folder) / "loops.o"
    command = [compiler, "-std=c++20", f"-I{ROOT / 'src'}", *options]
    subprocess.run([*command, "-c", str(SOURCE), "-o", str(out)], check=True)
    dump = ["objdump", "-d", "-C", "--no-show-raw-insn", str(out)]
    return subprocess.run(dump, capture_output=True, text=True, check=True).stdout


def faults(disassembled: str) -> tuple[int, list[str]]:
    """How many tiles were seen, and what is wrong with them."""
    seen, found = 0, []
    for head, code in peaks.functions(disassembled).items():
        if not (match := TILE.search(head)) or "[clone .cold]" in head:
            continue
        seen += 1
        wanted = int(match[3]) * int(match[4]) * int(match[5])
        name = f"{match[1]} {match[2]} tile {match[3]} x {match[4]} x {match[5]}"
        turn = max(peaks.turns(code), key=peaks.multiplications, default=[])
        products = peaks.multiplications(turn)
        if products == 0 or products % wanted:
            found.append(f"{name}: {products} multiplications")
        framed = any(w == "mov" and o.strip() == "%rsp,%rbp" for _, w, o in code)
        stack = re.compile(r"\(%r[sb]p" if framed else r"\(%rsp")
        spilled = sum(bool(stack.search(operands)) for _, _, operands in turn)
        if spilled:
            found.append(f"{name}: {spilled} operands on the stack")
    return seen, found


class Loops(unittest.TestCase):
    def test_sums_stay_in_registers(self) -> None:
        for compiler in compilers():
            for isa, level in RUNS:
                with self.subTest(compiler=compiler, isa=isa, level=level):
                    with tempfile.TemporaryDirectory() as folder:
                        text = disassembly(compiler, [*SETS[isa], level], folder)
                    seen, found = faults(text)
                    self.assertEqual(found, [])
                    self.assertGreaterEqual(seen, 20)

    def test_a_spilled_sum_is_seen(self) -> None:
        head = (
            "0 <void native::avx2::tile<float, native::avx2::TileShape{1l, 2l, 1l}>()>:"
        )
        lines = [
            "   0:\tvfmadd231ps (%rax),%ymm1,%ymm2",
            "   4:\tvfmadd231ps 0x20(%rsp),%ymm1,%ymm3",
            "   8:\tjne    0 <x>",
        ]
        self.assertEqual(
            faults("\n".join([head, *lines]))[1],
            ["avx2 float tile 1 x 2 x 1: 1 operands on the stack"],
        )


if __name__ == "__main__":
    unittest.main()
